"""Modules and functions as MLIR text: the pretty form where StableHLO has one, the generic form elsewhere.

Imports its siblings and ir. Captured values are put back: inside a region they go by the name that they have outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from hilo.formats.mlir_text import attr_printer, schema
from hilo.formats.mlir_text.forms import CHLO_FORMS, STABLEHLO_FORMS
from hilo.formats.mlir_text.functions import DECLARATION
from hilo.formats.mlir_text.locations import print_loc
from hilo.formats.mlir_text.pretty import printers
from hilo.formats.mlir_text.types import print_function_type, print_type
from hilo.ir.module import Function, Loc, Module
from hilo.ir.op import GET, PARAMETER, Attrs, Op
from hilo.ir.types import TensorType, result_types
from hilo.ops.reduce import mapped


def print_module(module: Module, *, locations: bool = False, elide: int | None = None) -> str:
    """The module as text that parses back to the same structure.

    `locations` adds `loc(...)` everywhere; `elide` replaces constants of more than so many elements by `...`.
    """
    name = f" {attr_printer.symbol(module.name)}" if module.name else ""
    plain = Attrs({k: v for k, v in module.attrs.items() if " @" not in k})
    attrs = f" attributes {_texts(plain)}" if plain else ""
    body = "".join(f"  {k} = {v}\n" for k, v in module.attrs.items() if " @" in k)  # meshes
    body += "".join(f"{Printer(locations, elide, 1).function(f)}\n" for f in module.functions.values())
    return f"module{name}{attrs} {{\n{body}}}{_loc(module.loc, locations)}\n"


def print_function(function: Function, *, locations: bool = False, elide: int | None = None) -> str:
    """One function as text (`func.func ...`), without a module around it."""
    return Printer(locations, elide, 0).function(function) + "\n"


def _texts(attrs: Attrs) -> str:
    items = ((attr_printer.key(k), attr_printer.attribute(k, v)) for k, v in attrs.items())
    return f"{{{', '.join(k if v == 'unit' else f'{k} = {v}' for k, v in items)}}}"


def _loc(loc: object, locations: bool) -> str:
    return f" {print_loc(loc)}" if locations and isinstance(loc, Loc) else ""


class Printer:
    """The state of printing one function: names of values, and how deep it is."""

    def __init__(self, locations: bool = False, elide: int | None = None, depth: int = 0) -> None:
        self.locations = locations
        self.elide = elide
        self.depth = depth
        self.names: dict[Op, str] = {}
        self.counters: dict[str, int] = {}

    # -- names ----------------------------------------------------------------------------------

    def _fresh(self, prefix: str) -> str:
        n = self.counters.get(prefix, 0)
        self.counters[prefix] = n + 1
        return f"%{prefix}{n}"

    def value(self, op: Op) -> str:
        """The name of a value."""
        name = self.names.get(op)
        if name is None:
            name = self.names[op] = self._fresh("")
        return name

    def values(self, ops: Iterable[Op]) -> str:
        return ", ".join(map(self.value, ops))

    def argument(self, op: Op, prefix: str) -> str:
        name = self.names[op] = self._fresh(prefix)
        return name

    def assign(self, pairs: Iterable[tuple[Op, str]]) -> None:
        self.names.update(pairs)

    def symbol(self, name: str) -> str:
        return attr_printer.symbol(name)

    def indent(self, more: int = 0) -> str:
        return "  " * (self.depth + more)

    def loc(self, loc: object) -> str:
        """` loc(...)`, if locations are wanted."""
        return _loc(loc, self.locations)

    # -- regions --------------------------------------------------------------------------------

    def enter(self, region: Function, captured: Sequence[Op]) -> None:
        """Begin a region: its trailing parameters are the `captured` values outside."""
        if captured:
            self.assign(zip(region.params[-len(captured) :], map(self.value, captured), strict=True))
        self.depth += 1

    def leave(self) -> None:
        self.depth -= 1

    def block(self, region: Function, terminator: str = "stablehlo.return") -> str:
        """`{ ops return }` of the region that was entered."""
        lines = [*self._ops(region), self._return(terminator, region)]
        inside = self.indent()
        body = "".join(f"{inside}{line}\n" for line in lines)
        return f"{{\n{body}{self.indent(-1)}}}"

    def region(self, region: Function, captured: Sequence[Op]) -> str:
        """A region in the generic form, with a block header if it has parameters of its own."""
        self.enter(region, captured)
        own = region.params[: len(region.params) - len(captured)]
        header = ", ".join(f"{self.argument(x, 'arg')}: {print_type(x.type)}{self.loc(x.loc)}" for x in own)
        text = self.block(region)
        if own:
            text = f"{{\n{self.indent(-1)}^bb0({header}):\n{text.removeprefix('{').lstrip(chr(10))}"
        self.leave()
        return text

    def _ops(self, f: Function) -> list[str]:
        lines = []
        for op in f.ops:
            if op.kind is GET:
                source = op.operands[0]
                several = len(result_types(source.type)) > 1
                self.names[op] = f"{self.value(source)}#{op.attrs['index']}" if several else self.value(source)
            elif op.kind is not PARAMETER:
                lines.append(self.op(op))
        return lines

    def _return(self, name: str, f: Function) -> str:
        types = f" : {', '.join(print_type(r.type) for r in f.results)}" if f.results else ""
        values = f" {self.values(f.results)}" if f.results else ""
        return f"{name}{values}{types}"

    # -- ops ------------------------------------------------------------------------------------

    def op(self, op: Op) -> str:
        """One op, without indentation before its first line."""
        text = self._pretty(op) or self._generic(op)
        n = len(result_types(op.type))
        name = self.argument(op, "") if n else ""
        if n > 1:
            name += f":{n}"
        return f"{name}{' = ' if n else ''}{text}{self.loc(op.loc)}"

    def _pretty(self, op: Op) -> str | None:
        write = printers().get(op.kind.full_name)
        form = (CHLO_FORMS if op.kind.dialect == "chlo" else STABLEHLO_FORMS).get(op.name)
        if write is None or (form is not None and not form.fits(op)):
            return None
        text = write(self, op)
        name = "call" if op.kind.full_name == "func.call" and self.depth <= 2 else op.kind.full_name
        space = "" if text is not None and text[:1] == "(" and op.name in _CALL_LIKE else " "
        return None if text is None else f"{name}{space}{text}"

    def _generic(self, op: Op) -> str:
        regions = [(k, v) for k, v in op.attrs.items() if isinstance(v, Function)]
        order = schema.REGIONS.get(op.name, ())
        regions.sort(key=lambda item: order.index(item[0]) if item[0] in order else len(order))
        closed = [v for _, v in regions]
        for value in op.attrs.values():
            if isinstance(value, tuple) and value and isinstance(value[0], Function):
                closed.extend(value)
        captured = self._captured(op, closed)
        operands = op.operands[: len(op.operands) - len(captured)]
        text = f'"{op.kind.full_name}"({self.values(operands)})'
        own, discardable = attr_printer.entries(op, ())
        if own:
            text += f" <{{{', '.join(own)}}}>"
        if closed:
            text += f" ({', '.join(self.region(r, captured) for r in closed)})"
        if discardable:
            text += f" {{{', '.join(discardable)}}}"
        types = print_function_type(tuple(o.type for o in operands), result_types(op.type))
        return f"{text} : {types}"

    def _captured(self, op: Op, regions: list[Function]) -> tuple[Op, ...]:
        """The trailing operands that the regions capture."""
        if not regions:
            return ()
        n = len(regions[0].params) - own_parameters(op)
        return op.operands[len(op.operands) - n :] if n > 0 else ()

    def attr_dict(self, op: Op, skip: Collection[str]) -> str:
        """` {name = value, ...}` of the attributes that the pretty form does not show otherwise, or nothing."""
        own, discardable = attr_printer.entries(op, skip)
        return f" {{{', '.join(sorted([*own, *discardable]))}}}" if own or discardable else ""

    # -- functions ------------------------------------------------------------------------------

    def function(self, f: Function) -> str:
        """`func.func ...` with its body, at the printer's depth."""
        is_declaration = DECLARATION in f.attrs
        params = []
        for i, x in enumerate(f.params):
            name = "" if is_declaration else f"{self.argument(x, 'arg')}: "
            attrs = f.arg_attrs[i] if i < len(f.arg_attrs) else None
            loc = "" if is_declaration else self.loc(x.loc)
            params.append(f"{name}{print_type(x.type)}{f' {_texts(attrs)}' if attrs else ''}{loc}")
        visibility = f"{f.visibility} " if f.visibility else ""
        attrs = Attrs({k: v for k, v in f.attrs.items() if k != DECLARATION})
        shown = f" attributes {_texts(attrs)}" if attrs else ""
        signature = f"{attr_printer.symbol(f.name)}({', '.join(params)}){_results(f)}"
        head = f"{self.indent()}func.func {visibility}{signature}{shown}"
        if is_declaration:
            return head + self.loc(f.loc)
        self.depth += 1
        lines = [*self._ops(f), self._return("return", f)]
        body = "".join(f"{self.indent()}{line}\n" for line in lines)
        self.depth -= 1
        return f"{head} {{\n{body}{self.indent()}}}{self.loc(f.loc)}"


# Written like calls: no space before the operands.
_CALL_LIKE: Final = ("convolution", "manual_computation", "reduce", "scan", "top_k", "topk", "while")


def own_parameters(op: Op) -> int:
    """How many parameters of its own (not captures) the op's regions have."""
    name = op.name
    if name in ("if", "case"):
        return 0
    if name == "while":
        return len(result_types(op.type))
    if name in ("reduce", "reduce_window"):
        return 2 * len(result_types(op.type))
    if name in ("select_and_scatter", "all_reduce", "reduce_scatter", "collective_reduce"):
        return 2
    if name == "scatter":
        return 2 * len(result_types(op.type))
    if name == "sort":
        return 2 * len(result_types(op.type))
    if name == "map":
        ranks = [o.type.rank if isinstance(o.type, TensorType) else -1 for o in op.operands]
        return mapped(ranks, op.attrs["body"])
    for value in op.attrs.values():  # regions of the others capture nothing
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, Function):
            return len(first.params)
    return 0


def _results(f: Function) -> str:
    if not f.results:
        return ""
    attrs = [f.result_attrs[i] if i < len(f.result_attrs) else None for i in range(len(f.results))]
    shown = [f"{print_type(r.type)}{f' {_texts(a)}' if a else ''}" for r, a in zip(f.results, attrs, strict=True)]
    return f" -> {shown[0]}" if len(shown) == 1 and not attrs[0] else f" -> ({', '.join(shown)})"
