"""HLO as data to hilo's module: one function for each computation that is called. Imports its siblings, ops, ir.

Arrays are logical: layouts do not matter, but for `bitcast`. Tuples vanish: a value of HLO is the list of its arrays
and tokens (`Value`), a parameter of tuple shape is several parameters, a root of tuple shape several results. A
computation that a reduce, a while ... applies becomes a region; calls and fusions call a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hilo.errors import Error, Unsupported, VerifyError
from hilo.formats.hlo_text import signature
from hilo.formats.hlo_text.annotations import discardable
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Value, shape_of, tuple_of
from hilo.formats.mlir_text.names import is_specified
from hilo.ir import registry
from hilo.ir.dtypes import DType
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import Array, Attrs, Op, OpDef
from hilo.ir.types import Results, TensorType, Type, compatible
from hilo.ops.result_rules import check_result
from hilo.ops.value_rules import check_values

_MAX_DEPTH = 64  # regions in regions


def lower(m: HloModule) -> Module:
    """The module with the same meaning. Its entry function is named `main`."""
    lowering = Lowering(m)
    for c in m.computations.values():
        lowering.function(c)
    assert m.entry is not None
    functions: dict[str, Function] = {}
    entry = lowering.functions[m.entry]
    entry = signature.entry_function(m, entry, lowering.names[m.entry])
    functions[entry.name] = entry
    for c, f in lowering.functions.items():
        if c is not m.entry and (c in lowering.called or c not in lowering.applied):
            functions[lowering.names[c]] = signature.function(c, f, lowering.names[c])
    return Module(functions, name=m.name, attrs=signature.module_attrs(m), loc=m.loc)


class Lowering:
    """What holds for the whole module: the functions made so far, and how they are used."""

    def __init__(self, m: HloModule) -> None:
        self.functions: dict[Computation, Function] = {}
        self.depths: dict[Computation, int] = {}
        self.called: set[Computation] = set()
        self.applied: set[Computation] = set()
        self.names: dict[Computation, str] = {}
        self.taken: set[str] = set()
        self.kinds: dict[str, OpDef] = {}
        assert m.entry is not None
        self._name(m.entry, "main")

    def _name(self, c: Computation, name: str) -> str:
        known = self.names.get(c)
        if known is None:
            known, n = name, 0
            while known in self.taken:
                n += 1
                known = f"{name}_{n}"
            self.taken.add(known)
            self.names[c] = known
        return known

    def function(self, c: Computation) -> Function:
        """The computation as a function, made when first asked for."""
        known = self.functions.get(c)
        if known is None:
            body = Body(self)
            known = body.build(c, self._name(c, c.name))
            self.functions[c] = known
            self.depths[c] = body.depth
        return known

    def call(self, c: Computation) -> tuple[str, Function]:
        """The function of the module for `c`, and its name."""
        self.called.add(c)
        return self._name(c, c.name), self.function(c)


class Body:
    """One computation on its way to a function."""

    def __init__(self, module: Lowering) -> None:
        self.module = module
        self.ops: list[Op] = []
        self.values: dict[Instruction, Value] = {}
        self.depth = 0
        self.contexts: set[Op] = set()

    def build(self, c: Computation, name: str) -> Function:
        params = self._parameters(c)
        self.ops = list(params)
        for i in c.instructions:
            if i.opcode != "parameter":
                self.values[i] = self.lower(i)
        assert c.root is not None
        results = self.values[c.root].leaves
        if self.contexts:  # nearly always nobody looks at them
            used = {x for o in self.ops for x in o.operands} | set(results)
            self.ops = [o for o in self.ops if o not in self.contexts or o in used]
        return Function(name, params, self.ops, results, loc=c.loc)

    def _parameters(self, c: Computation) -> list[Op]:
        """The parameters in order of their numbers, those of tuple shape as several."""
        found: dict[int, Instruction] = {}
        for i in c.instructions:
            if i.opcode == "parameter":
                number = i.attrs["number"]
                if number in found:
                    raise i.error(f"parameter {number} is defined twice")
                found[number] = i
        params: list[Op] = []
        for number in range(len(found)):
            if number not in found:
                raise next(iter(found.values())).error(f"there are {len(found)} parameters, but no parameter {number}")
            i = found[number]
            loc = i.get("metadata") or i.loc
            leaves = [parameter(len(params) + k, s.type, loc) for k, s in enumerate(i.declared.leaves())]
            self.values[i] = Value(i.declared, tuple(leaves))
            params.extend(leaves)
        return params

    # -- instructions ---------------------------------------------------------------------------

    def lower(self, i: Instruction) -> Value:
        """The value of an instruction whose operands have theirs."""
        from hilo.formats.hlo_text.instructions import lowering_of

        made = lowering_of(i)(self, i)
        if isinstance(made, Op):
            made = self.value(i, made.results() if isinstance(made.type, Results) else (made,))
        elif i.shape is not None:
            self._check(i, made)
        return made

    def value(self, i: Instruction, leaves: Sequence[Op]) -> Value:
        """The instruction's value, made of these ops; their `get`s enter the function."""
        self.ops.extend(o for o in leaves if o.kind.name == "get")
        if i.shape is not None:
            shape = i.shape
        else:
            parts = [shape_of(o.type) for o in leaves]
            shape = parts[0] if len(parts) == 1 else tuple_of(parts)
        made = Value(shape, tuple(leaves))
        self._check(i, made)
        return made

    def _check(self, i: Instruction, made: Value) -> None:
        want = [s.type for s in (i.shape or made.shape).leaves()]
        got = [o.type for o in made.leaves]
        if len(got) != len(want) or not all(map(compatible, got, want)):
            raise i.error(f"the result is {_types(got)}, but {_types(want)} is declared", VerifyError)

    def op(self, i: Instruction, name: str, operands: Iterable[Op], /, *, result: Type | None = None,
           **attrs: Any) -> Op:  # fmt: skip
        """The op that `i` stands for, with what the instruction carries beside its meaning."""
        return self._make(i, name, operands, result, {**attrs, **discardable(i)}, declared=True)

    def helper(self, i: Instruction, name: str, operands: Iterable[Op], /, *, result: Type | None = None,
               **attrs: Any) -> Op:  # fmt: skip
        """An op that is a part of what `i` means."""
        return self._make(i, name, operands, result, attrs, declared=False)

    def _make(self, i: Instruction, name: str, operands: Iterable[Op], result: Type | None, attrs: dict[str, Any],
              *, declared: bool) -> Op:  # fmt: skip
        kind = self._kind(i, name)
        want = result
        if want is None and declared and i.shape is not None:
            leaves = [s.type for s in i.shape.leaves()]
            want = leaves[0] if len(leaves) == 1 else Results(leaves)
        if kind.typed:
            if want is None:
                i.declared  # noqa: B018  # raises: the shape cannot be inferred
            attrs["type"] = want
        try:
            op = kind.make(operands, Attrs(attrs), i.get("metadata") or i.loc)
            if want is not None:
                check_result(kind.full_name, op.type, want)
            check_values(op)
        except Error as e:
            e.loc, e.op = i.loc, e.op or i.opcode
            raise
        except (AttributeError, AssertionError):  # a token where a rule expects an array
            raise i.error("an operand or the result is of a type that does not fit", VerifyError) from None
        if want is not None and op.type is not want:
            op = Op(kind, op.operands, op.attrs, want, op.loc)
        self.ops.append(op)
        return op

    def _kind(self, i: Instruction, name: str) -> OpDef:
        found = self.module.kinds.get(name)
        if found is None:
            try:
                found = self.module.kinds[name] = registry.lookup(name)
            except KeyError:
                raise not_supported(i, name) from None
        return found

    def constant(self, i: Instruction, value: Any) -> Op:
        """A constant that is a part of what `i` means."""
        return self.helper(i, "stablehlo.constant", (), value=Array(value))

    def context(self, i: Instruction, dtype: DType) -> Op:
        """What stands for a context that only the machine knows."""
        made = self.constant(i, np.zeros((), dtype.np))
        self.contexts.add(made)
        return made

    # -- operands -------------------------------------------------------------------------------

    def operand(self, i: Instruction, index: int = 0) -> Value:
        """The value of an operand; an `Error` if there is no such operand."""
        if index >= len(i.operands):
            raise i.error(f"{len(i.operands)} operands, but there must be more")
        return self.values[i.operands[index]]

    def leaves(self, i: Instruction, count: int | None = None, *, tuples: bool = False) -> list[Op]:
        """The operands; `count` is how many there must be. Tuples are flattened, where the operation takes `tuples`."""
        if count is not None and len(i.operands) != count:
            raise i.error(f"{len(i.operands)} operands, but there must be {count}")
        for k, x in enumerate(i.operands):
            if not tuples and self.values[x].shape.is_tuple:
                raise i.error(f"operand {k} is a tuple", VerifyError)
        return [o for x in i.operands for o in self.values[x].leaves]

    # -- computations ---------------------------------------------------------------------------

    def region(self, i: Instruction, c: Computation) -> Function:
        """A computation that `i` applies, as a region."""
        self.module.applied.add(c)
        f = self.module.function(c)
        self.depth = max(self.depth, 1 + self.module.depths[c])
        if self.depth > _MAX_DEPTH:
            raise i.error(f"computations are nested more than {_MAX_DEPTH} levels deep")
        return f


def not_supported(i: Instruction, name: str) -> Error:
    """The error for an op that has no definition."""
    what = f"{name} is in the specification, but not supported yet" if is_specified(name) else "this is not supported"
    return i.error(what, Unsupported)


def _types(types: Sequence[Type]) -> str:
    return repr(types[0]) if len(types) == 1 else f"({', '.join(map(repr, types))})"


def static_shape(i: Instruction, t: TensorType) -> tuple[int, ...]:
    """The sizes of a type that must have no dynamic ones."""
    if not t.is_static:
        raise i.error(f"{t!r} has dynamic dimensions here")
    return t.shape
