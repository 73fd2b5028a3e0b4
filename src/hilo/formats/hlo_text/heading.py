"""The header of an HLO module from hilo's module: signature, aliases, donors, counts. Imports its siblings and ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hilo.errors import Error
from hilo.formats.hlo_text import signature as names
from hilo.formats.hlo_text.annotations import FRONTEND, SHARDING, dictionary_of, text_of
from hilo.formats.hlo_text.lexer import HloSource
from hilo.formats.hlo_text.model import Shape, shape_of, tuple_of
from hilo.formats.hlo_text.reader import Reader
from hilo.ir.module import Function, Module
from hilo.ir.op import Attrs, Opaque

Signature = tuple[Sequence[Shape], Shape]


def entry_of(module: Module) -> Function:
    """`main`, or the first function that is not private, or the first."""
    functions = list(module.functions.values())
    if not functions:
        raise Error("a module without functions has no HLO text", loc=module.loc)
    public = next((f for f in functions if f.visibility != "private"), functions[0])
    return module.functions.get("main", public)


def signature(module: Module, entry: Function) -> Signature:
    """Shapes of the entry's parameters and result: those that the module keeps, if they fit; else flat ones."""
    flat = [shape_of(t) for t in entry.param_types]
    results = [shape_of(t) for t in entry.result_types]
    usual = flat, results[0] if len(results) == 1 else tuple_of(results)
    text = text_of(module.attrs, names.SIGNATURE)
    if not text:
        return usual
    try:
        shapes, result = Reader(HloSource(text, names.SIGNATURE)).signature()
    except Error:
        return usual
    given = [leaf.type for s in shapes for leaf in s.leaves()], [leaf.type for leaf in result.leaves()]
    return (shapes, result) if given == (list(entry.param_types), list(entry.result_types)) else usual


def header(module: Module, entry: Function) -> dict[str, Any]:
    """The attributes of the HLO module."""
    shapes, result = signature(module, entry)
    attrs: dict[str, Any] = {}
    if aliases := _aliases(entry, shapes, result):
        attrs["input_output_alias"] = aliases
    if donors := _donors(entry, shapes):
        attrs["buffer_donor"] = donors
    attrs["entry_computation_layout"] = (tuple(shapes), result)
    for name, key in names.KEPT.items():
        if text := text_of(module.attrs, key):
            attrs[name] = text
    for name, key in names.COUNTS.items():
        if (count := _integer(module.attrs.get(key))) is not None:
            attrs[name] = count
    if frontend := dictionary_of(module.attrs, FRONTEND):
        attrs["frontend_attributes"] = frontend
    return attrs


def result_sharding(f: Function, result: Shape) -> str:
    """The sharding of the root, if every result has one."""
    texts = [text_of(a, SHARDING) for a in f.result_attrs]
    if not texts or not all(texts) or len(texts) != len(f.results):
        return ""
    return f"{{{', '.join(texts)}}}" if result.is_tuple else texts[0]


def _integer(value: Any) -> int | None:
    """The number of an integer attribute's text, `2 : i32`."""
    digits = value.partition(":")[0].strip() if isinstance(value, Opaque) else ""
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def _paths(shapes: Sequence[Shape]) -> list[tuple[int, ...]]:
    """Where each flat value stands in a tuple of these shapes."""
    found: list[tuple[int, ...]] = []
    for k, s in enumerate(shapes):
        found.extend((k, *rest) for rest in (_paths(s.parts) if s.is_tuple else [()]))
    return found


def _aliases(f: Function, shapes: Sequence[Shape], result: Shape) -> tuple[Any, ...]:
    outputs = _paths(result.parts) if result.is_tuple else [()]
    found = []
    for path, a in zip(_paths(shapes), f.arg_attrs, strict=False):
        k = _integer(a.get(names.ALIAS))
        if k is not None and k < len(outputs):
            kind = "must-alias" if names.MUST_ALIAS in a else "may-alias"
            found.append((outputs[k], path[0], path[1:], kind))
    return tuple(sorted(found))


def _donors(f: Function, shapes: Sequence[Shape]) -> tuple[Any, ...]:
    def is_donor(a: Attrs) -> bool:
        return a.get(names.DONOR) in ("true", "unit")

    return tuple((p[0], p[1:]) for p, a in zip(_paths(shapes), f.arg_attrs, strict=False) if is_donor(a))
