"""Programs without CHLO: its ops expanded into StableHLO's, which is all that a portable artifact holds.

What an op expands to is said by its definition, or by what computes an element (from_loop.py). The latter, being long,
become composites named like the op, each with one function for each type; versions without composites have calls.
Imports ir, rewrite, from_loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Unsupported
from hilo.formats.bytecode.opset import CURRENT, Version
from hilo.ir.module import Function, Module, region
from hilo.ir.op import Array, Op, OpDef
from hilo.ir.types import TensorType
from hilo.rewrite import ops

if TYPE_CHECKING:
    from hilo.rewrite import Rule, RuleSet

_DIALECTS: Final = ("chlo", "mhlo")
_COMPOSITES_SINCE: Final = (0, 19, 0)


def without_chlo(module: Module, target: Version = CURRENT) -> Module:
    """The module with every op of CHLO expanded that says how; itself if it has none."""
    if not any(map(_has_chlo, module.functions.values())):
        return module
    from hilo.rewrite import rewrite

    new = _Functions(module, target)
    rules = _rules(new)
    kept = {name: rewrite(f, rules) for name, f in module.functions.items()}
    return module.replace({**kept, **new.made})


class _Functions:
    """The functions that stand for ops of CHLO, each made once."""

    def __init__(self, module: Module, target: Version) -> None:
        self.taken = set(module.functions)
        self.made: dict[str, Function] = {}
        self.names: dict[Any, str] = {}
        self.composites = target >= _COMPOSITES_SINCE

    def call(self, op: Op) -> Op | None:
        """A call of the function for `op`; None if there is no program of StableHLO for it."""
        types = [x.type for x in op.operands]
        if not all(isinstance(t, TensorType) and t.is_static for t in (*types, op.type)):
            return None
        key = (op.kind, *types)
        if key not in self.names:
            name = base = f"{op.kind.full_name}.impl"
            while name in self.taken:
                name = f"{base}_{len(self.taken)}"
            try:
                f = _function(op, name)
            except Unsupported:
                return None
            self.taken.add(name)
            self.names[key] = name
            self.made[name] = Function(name, f.params, f.ops, f.results, visibility="private")
        if not self.composites:
            return ops.func_call(*op.operands, callee=self.names[key], type=op.type)
        return ops.composite(*op.operands, name=op.kind.full_name, decomposition=self.names[key], version=1,
                             type=op.type)  # fmt: skip


def _function(op: Op, name: str) -> Function:
    """The function that computes an elementwise `op`."""
    from hilo.formats.bytecode.from_loop import function_of

    types = [x.tensor for x in op.operands]
    if op.tensor.dtype.is_complex and op.name in ("sinh", "cosh"):
        return region(types, lambda z: _complex_hyperbolic(z, op.name), name)
    return function_of(op.kind, types, op.tensor, name)


def _complex_hyperbolic(z: Op, name: str) -> Op:
    """sinh x cos y + i cosh x sin y, or cosh x cos y + i sinh x sin y, without overflow before the result's."""
    from hilo.formats.bytecode.from_loop import tensors_of
    from hilo.ir.registry import lookup

    x, y = ops.real(z), ops.imag(z)
    t = x.tensor

    def full(value: float) -> Op:
        return ops.constant(value=Array(np.asarray(value, t.dtype.np), t.shape))

    def less(a: Op, b: Op, how: str = "LT") -> Op:
        return ops.compare(a, b, comparison_direction=how, compare_type="FLOAT")

    sinh, cosh = (tensors_of(lookup(f"chlo.{f}"), [x], t) for f in ("sinh", "cosh"))
    first, second = (sinh, cosh) if name == "sinh" else (cosh, sinh)
    zero, far = full(0.0), less(full(20.0), ops.abs(x))
    root = ops.exponential(ops.multiply(ops.abs(x), full(0.5)))  # both are the half of its square, far from 0
    parts = []
    for factor, wave, is_odd in ((first, ops.cosine(y), name == "sinh"), (second, ops.sine(y), name == "cosh")):
        great = ops.multiply(ops.multiply(ops.multiply(full(0.5), root), wave), root)
        great = ops.select(less(x, zero), ops.negate(great), great) if is_odd else great
        parts.append(ops.select(far, great, ops.multiply(factor, wave)))
    real = less(y, zero, "EQ")  # on the axis nothing is infinite times 0
    signed = ops.select(less(x, zero), ops.negate(y), y) if name == "cosh" else y
    endless = less(ops.abs(x), full(np.inf), "EQ")  # whatever the angle
    lost = ops.and_(endless, ops.not_(ops.is_finite(y)))
    re = ops.select(real, first, ops.select(lost, ops.abs(first), parts[0]))
    return ops.complex_(re, ops.select(real, signed, parts[1]))


def _has_chlo(f: Function) -> bool:
    stack = [f]
    while stack:
        for op in stack.pop().ops:
            if op.kind.dialect in _DIALECTS:
                return True
            for value in op.attrs.values():
                if isinstance(value, Function):
                    stack.append(value)
                elif isinstance(value, tuple):
                    stack.extend(v for v in value if isinstance(v, Function))
    return False


def _rules(functions: _Functions) -> RuleSet:
    from hilo.ir.registry import REGISTRY
    from hilo.rewrite import RuleSet

    known = [d for d in REGISTRY.values() if d.dialect in _DIALECTS and (d.expand or d.scalar)]
    return RuleSet("chlo", [_expansion(d, functions) for d in known])


def _expansion(kind: OpDef, functions: _Functions) -> Rule:
    from hilo.rewrite import PACK, Rule
    from hilo.rewrite.pattern import Symbol

    def expand(op: Op) -> Op | None:
        if kind.expand is None:
            exact = _EXACT.get(kind.name)
            return functions.call(op) if exact is None else exact(op.operands[0])
        simpler = kind.expand(*op.operands, **op.attrs.own())
        return PACK.make(simpler) if isinstance(simpler, tuple) else simpler

    return Rule([Symbol(kind.full_name).any], expand, "formats/bytecode/chlo.py", name=f"expand {kind.full_name}")


# -- ops that are compiled as they are, but are easily said in StableHLO, bit by bit ----------------


def _square(x: Op) -> Op:
    if not x.tensor.dtype.is_complex:
        return ops.multiply(x, x)
    re, im = ops.real(x), ops.imag(x)
    twice = ops.multiply(re, im)
    return ops.complex_(ops.multiply(ops.subtract(re, im), ops.add(re, im)), ops.add(twice, twice))


def _conj(x: Op) -> Op:
    return ops.complex_(ops.real(x), ops.negate(ops.imag(x))) if x.tensor.dtype.is_complex else x


def _is_inf(sign: int) -> Callable[[Op], Op | None]:
    """Whether a value is infinite; with a sign of 0, either infinity."""

    def test(x: Op) -> Op | None:
        t = x.tensor
        if not t.is_static:
            return None
        with np.errstate(all="ignore"):
            infinity = np.array(np.inf if sign >= 0 else -np.inf).astype(t.dtype.np)  # NaN in a type without
        return ops.compare(ops.abs(x) if sign == 0 else x, ops.constant(value=Array(infinity, t.shape)),
                           comparison_direction="EQ", compare_type="FLOAT")  # fmt: skip

    return test


_EXACT: Final[dict[str, Callable[[Op], Op | None]]] = {
    "conj": _conj,
    "is_inf": _is_inf(0),
    "is_neg_inf": _is_inf(-1),
    "is_pos_inf": _is_inf(1),
    "square": _square,
    "tan": lambda x: ops.tan(x),
}
