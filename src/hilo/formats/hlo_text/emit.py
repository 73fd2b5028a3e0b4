"""hilo's module to HLO as data: one computation for each function and region. Imports its siblings and ir.

Layouts are row-major. Several results are a tuple. HLO's computations capture nothing: what a loop or a branch captures
goes in as a part of its operand; captured constants are made again inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text import heading, schema
from hilo.formats.hlo_text.annotations import carried
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Shape, shape_of, tuple_of
from hilo.formats.hlo_text.shapes import leaf_count
from hilo.formats.mlir_text.functions import DECLARATION
from hilo.ir.module import Function, Loc, Module, topological
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import Results, Type

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_RESERVED: Final = frozenset((
    *schema.DTYPES, "true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT", "FileNames", "token", "opaque",
    "tuple", "maximal", "replicated", "manual", "unknown", "unreduced", "constant",
))  # fmt: skip


def emit(module: Module, entry_name: str | None = None) -> HloModule:
    """The same program in HLO's terms. The entry is `main`, or the first function that is not private, or the one that
    is named.

    Raises `Unsupported` for what HLO has no form for.
    """
    entry = heading.entry_of(module) if entry_name is None else module[entry_name]
    e = Emitter(module)
    made = HloModule(identifier(module.name or "module"), e.computations)
    try:
        for name, f in module.functions.items():
            if f is not entry:
                e.function(name)
        made.entry = e.entry(entry)
    except RecursionError:
        raise Error("calls or regions nest too deeply for HLO text", loc=module.loc) from None
    made.attrs = heading.header(module, entry)
    for n, i in enumerate((i for c in made.computations.values() for i in c.instructions), 1):
        i.name = f"{i.opcode}.{n}"
    return made


def identifier(name: str) -> str:
    """`name` with what HLO's identifiers cannot hold replaced."""
    plain = _UNFIT.sub("_", name) or "_"
    return f"_{plain}" if not (plain[0].isalpha() or plain[0] == "_") or plain in _RESERVED else plain


def unsupported(op: Op) -> Unsupported:
    """The error for an op without a form in HLO."""
    return Unsupported("HLO text has no form of this operation", loc=op.loc, op=op.kind.full_name)


class Emitter:
    """What holds for the whole module: computations made so far, and names."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.computations: dict[str, Computation] = {}
        self.functions: dict[str, Computation | None] = {}  # None: being made
        self.regions: dict[Any, Computation] = {}
        self.kept: list[Any] = []  # keeps the ids in `regions` valid
        self.taken: set[str] = set()
        self.names = {name: self._name(name) for name in module.functions}

    def _name(self, name: str) -> str:
        """A name for a computation that no other one has."""
        base = made = identifier(name)
        n = 0
        while made in self.taken:
            n += 1
            made = f"{base}.{n}"
        self.taken.add(made)
        return made

    def function(self, name: str) -> Computation:
        """The computation of a function of the module."""
        if name not in self.functions:
            f = self.module.functions.get(name)
            if f is None:
                raise Error(f"there is no function @{name}")
            if DECLARATION in f.attrs:
                raise Unsupported(f"@{name} has no body", loc=f.loc)
            self.functions[name] = None
            self._callees_first(f)
            made = BodyEmitter(self, f).plain(Computation(self.names[name]), f.arg_attrs)
            self.computations[made.name] = made
            self.functions[name] = made
        known = self.functions[name]
        if known is None:
            raise Error(f"@{name} calls itself")
        return known

    def _callees_first(self, f: Function) -> None:
        """Make the computations of the functions that `f` and its regions call."""
        stack, seen = [f], {id(f)}
        while stack:
            for op in stack.pop().ops:
                for name in (op.attrs.get("callee"), op.attrs.get("decomposition")):
                    if isinstance(name, str):
                        self.function(name)
                for value in op.attrs.values():
                    for x in value if isinstance(value, tuple) else (value,):
                        if isinstance(x, Function) and id(x) not in seen:
                            seen.add(id(x))
                            stack.append(x)

    def entry(self, f: Function) -> Computation:
        made = BodyEmitter(self, f).entry(Computation(self.names[f.name]), heading.signature(self.module, f))
        self.computations[made.name] = made
        return made

    def region(self, f: Function, captured: Sequence[Op], user: Op) -> Computation:
        """The computation of a region that is applied to elements; it may capture constants only."""
        for o in captured:
            if o.kind.name != "constant":
                raise Unsupported("HLO has no computations that capture values", loc=user.loc, op=user.kind.full_name)
        key = (id(f), *map(id, captured))
        if key not in self.regions:
            body = BodyEmitter(self, f)
            made = body.plain(Computation(self._name(f.name or "region")), (), captured)
            self._keep(key, made, f, captured)
        return self.regions[key]

    def packed(self, f: Function, own: int, *, returns_captures: bool) -> Computation:
        """The computation of a region that takes one value: what its parameters are, as a tuple unless it is one.

        `returns_captures`: it gives the parameters after the first `own` back, as the body of a loop must.
        """
        key = (id(f), returns_captures)
        if key not in self.regions:
            more = f.params[own:] if returns_captures else ()
            made = BodyEmitter(self, f).packed(Computation(self._name(f.name or "region")), more)
            self._keep(key, made, f)
        return self.regions[key]

    def _keep(self, key: Any, made: Computation, *used: Any) -> None:
        self.regions[key] = made
        self.computations[made.name] = made
        self.kept.extend(used)


class BodyEmitter:
    """One function on its way to a computation."""

    def __init__(self, module: Emitter, f: Function) -> None:
        self.module = module
        self.function = f
        self.instructions: list[Instruction] = []
        self.values: dict[Op, Instruction] = {}
        self.parts: dict[Op, Sequence[Instruction]] = {}  # of ops whose results are nested in HLO
        self.loc: Loc | None = None

    # -- computations ---------------------------------------------------------------------------

    def plain(self, c: Computation, arg_attrs: Sequence[Any], captured: Sequence[Op] = ()) -> Computation:
        """A computation with the function's parameters; the last ones are `captured` constants."""
        own = len(self.function.params) - len(captured)
        for k, p in enumerate(self.function.params[:own]):
            attrs = carried(arg_attrs[k]) if k < len(arg_attrs) else {}
            self.values[p] = self._parameter(k, shape_of(p.type), p, attrs)
        for p, o in zip(self.function.params[own:], captured, strict=True):
            self.values[p] = self.emit(o)
        self._body()
        return self._finish(c, self._results())

    def packed(self, c: Computation, more: Sequence[Op]) -> Computation:
        """A computation of one parameter; `more` are returned after the results."""
        params = self.function.params
        if len(params) == 1:
            self.values[params[0]] = self._parameter(0, shape_of(params[0].type), params[0], {})
        else:
            whole = self._parameter(0, tuple_of([shape_of(p.type) for p in params]), None, {})
            self.values.update((p, self.take(whole, k)) for k, p in enumerate(params))
        self._body()
        return self._finish(c, [*self._results(), *(self.values[o] for o in more)])

    def entry(self, c: Computation, signature: tuple[Sequence[Shape], Shape]) -> Computation:
        """The entry, whose parameters and result have the shapes of the signature."""
        f = self.function
        flat: list[Instruction] = []
        owners = [k for k, p in enumerate(f.params) for _ in range(leaf_count(p.type))]
        for number, shape in enumerate(signature[0]):
            k = owners[len(flat)] if not shape.is_tuple else len(f.params)
            op = f.params[k] if k < len(f.params) else None
            attrs = carried(f.arg_attrs[k]) if k < len(f.arg_attrs) and op is not None else {}
            self._unpack(self._parameter(number, shape.without_layouts(), op, attrs), flat)
        leaves = iter(flat)
        self.values.update((p, self._pack(shape_of(p.type), leaves)) for p in f.params)
        self._body()
        results: list[Instruction] = []
        for r in self._results():
            self._unpack(r, results)
        root = self._pack(signature[1], iter(results))
        if root is not self.instructions[-1] and root.opcode == "tuple":
            root = self.add("tuple", root.declared, root.operands)
        sharding = heading.result_sharding(f, signature[1])
        if sharding and "sharding" not in root.attrs:
            root.attrs["sharding"] = sharding
        c.instructions, c.root = self.instructions, root
        return c

    def _unpack(self, i: Instruction, flat: list[Instruction]) -> None:
        shape = i.declared
        if not shape.is_tuple:
            flat.append(i)
        for k in range(len(shape.parts)):
            self._unpack(self.take(i, k), flat)

    def _pack(self, shape: Shape, leaves: Any) -> Instruction:
        if not shape.is_tuple:
            return next(leaves)
        return self.tuple([self._pack(p, leaves) for p in shape.parts])

    def _results(self) -> list[Instruction]:
        return [self.values[r] for r in self.function.results]

    def _finish(self, c: Computation, results: Sequence[Instruction]) -> Computation:
        c.root = results[0] if len(results) == 1 else self.tuple(results)
        c.instructions = self.instructions
        return c

    def _body(self) -> None:
        implied = self._implied()
        for op in self.function.ops:
            if op.kind is not PARAMETER and op not in implied:
                self.values[op] = self.emit(op)

    def _implied(self) -> set[Op]:
        """Constants that HLO has no place for: the sizes of what `rng` gives are in its type."""
        shapes = {op.operands[2] for op in self.function.ops if op.kind.full_name == "stablehlo.rng"}
        implied = {op for op in shapes if op.kind.name == "constant"}
        if implied:
            for op in self.function.ops:
                implied.difference_update(op.operands[:2] if op.kind.full_name == "stablehlo.rng" else op.operands)
            implied.difference_update(self.function.results)
        return implied

    # -- instructions ---------------------------------------------------------------------------

    def emit(self, op: Op) -> Instruction:
        """The instruction that gives the value of `op`, whose operands have theirs."""
        from hilo.formats.hlo_text.operations import EMIT
        from hilo.formats.hlo_text.scalars import by_elements

        if op.kind is GET:
            source = op.operands[0]
            parts = self.parts.get(source)
            return parts[op.attrs["index"]] if parts else self.take(self.values[source], op.attrs["index"])
        outer, self.loc = self.loc, op.loc
        write = EMIT.get(op.kind.full_name)
        if write is not None:
            first = len(self.instructions)
            made = write(self, op)
            if len(self.instructions) > first and (extra := carried(op.attrs)):
                made.attrs.update((k, v) for k, v in extra.items() if k not in made.attrs)
        elif op.kind.expand is not None:
            made = self._expanded(op)
        else:
            made = by_elements(self, op)
        self.loc = outer
        return made

    def _expanded(self, op: Op) -> Instruction:
        """An op by the simpler ones that it is made of."""
        assert op.kind.expand is not None
        simpler = op.kind.expand(*op.operands, **op.attrs.own())
        if simpler is None:
            raise unsupported(op)
        results = simpler if isinstance(simpler, tuple) else (simpler,)
        if not results:  # an op that says something to other tools alone: nothing stands for it
            return Instruction("", "tuple", tuple_of([]), [], {})
        for o in topological(results, op.operands):
            if o not in self.values:
                self.values[o] = self.emit(o)
        if isinstance(op.type, Results) and isinstance(simpler, tuple):
            self.parts[op] = [self.values[o] for o in results]
        return self.values[results[0]]

    def add(self, opcode: str, shape: Shape | Type, operands: Iterable[Instruction] = (), /,
            **attrs: Any) -> Instruction:  # fmt: skip
        """A new instruction; `Results` are a tuple."""
        if isinstance(shape, Results):
            shape = tuple_of([shape_of(t) for t in shape.types])
        elif isinstance(shape, Type):
            shape = shape_of(shape)
        made = Instruction("", opcode, shape, list(operands), {k: v for k, v in attrs.items() if v is not None})
        if self.loc is not None:
            made.attrs["metadata"] = self.loc
        self.instructions.append(made)
        return made

    def _parameter(self, number: int, shape: Shape, op: Op | None, attrs: dict[str, Any]) -> Instruction:
        self.loc = op.loc if op is not None else None
        made = self.add("parameter", shape, number=number, **attrs)
        self.loc = None
        return made

    def take(self, source: Instruction, index: int) -> Instruction:
        """Part `index` of a tuple."""
        if source.opcode == "tuple":
            return source.operands[index]
        return self.add("get-tuple-element", source.declared.parts[index], [source], index=index)

    def tuple(self, parts: Sequence[Instruction]) -> Instruction:
        return self.add("tuple", tuple_of([p.declared for p in parts]), parts)

    def one(self, parts: Sequence[Instruction]) -> Instruction:
        """The parts as one value: a tuple unless there is exactly one."""
        return parts[0] if len(parts) == 1 else self.tuple(parts)

    def operands(self, op: Op) -> list[Instruction]:
        return [self.values[o] for o in op.operands]
