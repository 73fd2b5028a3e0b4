"""Attributes of Shardy's dialect (`sdy`), which the IR keeps as text: from their encoding to that text.

Imports entries and values. An attribute inside another is written without its `#sdy.name` in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.formats.bytecode.entries import Codes, EntryReader
from hilo.formats.bytecode.values import Symbol, Text
from hilo.formats.mlir_text.attr_printer import symbol
from hilo.formats.mlir_text.lexer import quote
from hilo.record import record


@record(frozen=True)
class Part(Text):
    """An attribute's text, and `inner`: how it is written inside another."""

    inner: str


def _part(name: str, inner: Callable[[EntryReader], str], angles: bool = True) -> Callable[[EntryReader], Part]:
    """A decoder; `angles` says whether the text needs `<>` around what is written inside others."""

    def decode(r: EntryReader) -> Part:
        text = inner(r)
        return Part(f"#sdy.{name}{f'<{text}>' if angles else text}", text)

    return decode


def _inner(r: EntryReader) -> str:
    value = r.attr()
    if not isinstance(value, Part):
        raise r.error("an attribute of the dialect sdy should be here")
    return value.inner


def _inners(r: EntryReader) -> list[str]:
    return [_inner(r) for _ in range(r.count())]


def _list(r: EntryReader) -> str:
    return ", ".join(_inners(r))


def _braces(r: EntryReader) -> str:
    return f"{{{_list(r)}}}"


def _brackets(r: EntryReader) -> str:
    return f"[{_list(r)}]"


def _axis_ref(r: EntryReader) -> str:
    name, sub = r.string(), r.optional()
    return quote(name) + (f":{sub.inner}" if isinstance(sub, Part) else "")


def _mesh(r: EntryReader) -> str:
    axes, devices = _brackets(r), r.signeds()
    return f"<{axes}{f', device_ids=[{_numbers(devices)}]' if devices else ''}>"


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _dimension(r: EntryReader) -> str:
    axes, closed = _inners(r), r.byte()
    priority, has_priority = r.flagged()
    open_mark = [] if closed else ["?"]
    return f"{{{', '.join(axes + open_mark)}}}{f'p{priority}' if has_priority else ''}"


def _sharding(version: int) -> Callable[[EntryReader], str]:
    def inner(r: EntryReader) -> str:
        mesh = r.attr()
        name = symbol(mesh.name) if isinstance(mesh, Symbol) else f"mesh{mesh.inner}" if isinstance(mesh, Part) else "?"
        text = f"<{name}, {_brackets(r)}"
        replicated = _list(r)
        text += f", replicated={{{replicated}}}" if replicated else ""
        unreduced = _list(r) if version > 1 else ""
        reduction = r.signed() if version > 2 else 0
        if reduction not in _REDUCTIONS:
            raise r.error(f"reduction {reduction} of a sharding")
        return text + (f", unreduced={_REDUCTIONS[reduction]}{{{unreduced}}}" if unreduced else "") + ">"

    return inner


_REDUCTIONS: Final = {0: "", 1: "max", 2: "min"}


def _factor(i: int) -> str:
    """i, j, ... z, and z_1, z_2 ... behind that."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"


def _factors(r: EntryReader) -> str:
    return "".join(map(_factor, r.signeds())) or "*"


def _rule(r: EntryReader) -> str:
    sizes = r.signeds()
    text = f"<({_list(r)})->({_list(r)})"
    if sizes:
        text += f" {{{', '.join(f'{_factor(i)}={n}' for i, n in enumerate(sizes))}}}"
    for kind in ("reduction", "need_replication", "permutation", "blocked_propagation"):
        factors = r.signeds()
        text += f" {kind}={{{', '.join(map(_factor, factors))}}}" if factors else ""
    return text + (", custom>" if r.byte() else ">")


def _manual_axes(r: EntryReader) -> str:
    return f"{{{', '.join(quote(r.text_attr()) for _ in range(r.count()))}}}"


def _all_to_all(r: EntryReader) -> str:
    axes = _braces(r)
    return f"{axes}: {r.signed()}->{r.signed()}"


ATTRS: Final[Codes] = {
    0: _part("manual_axes", _manual_axes, angles=False),
    1: _part("mesh_axis", lambda r: f"{quote(r.string())}={r.signed()}"),
    2: _part("mesh", _mesh, angles=False),
    3: _part("sub_axis_info", lambda r: f"({r.signed()}){r.signed()}"),
    4: _part("axis_ref", _axis_ref),
    5: _part("dimension_sharding", _dimension),
    6: _part("sharding", _sharding(1), angles=False),
    7: _part("sharding_per_value", lambda r: f"<{_brackets(r)}>", angles=False),
    8: _part("dim_mapping", _factors),
    9: _part("tensor_mapping", _brackets),
    10: _part("op_sharding_rule", _rule, angles=False),
    11: _part("axis_ref_list", _braces),
    12: _part("list_of_axis_ref_lists", _brackets),
    13: _part("all_to_all_param", _all_to_all),
    14: _part("all_to_all_param_list", _brackets),
    15: _part("sharding", _sharding(2), angles=False),
    16: _part("sharding_per_value", lambda r: f"<{_brackets(r)}>", angles=False),
    17: _part("sharding", _sharding(3), angles=False),
}
