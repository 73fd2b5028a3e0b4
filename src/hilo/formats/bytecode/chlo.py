"""Programs without CHLO: its ops expanded into StableHLO's, which is all that a portable artifact holds.

Imports ir and rewrite; what an op expands to is said by its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hilo.ir.module import Function, Module
from hilo.ir.op import Array, Op, OpDef
from hilo.rewrite import ops

if TYPE_CHECKING:
    from hilo.rewrite import Rule, RuleSet


def without_chlo(module: Module) -> Module:
    """The module with every op of CHLO expanded that says how; itself if it has none."""
    if not any(map(_has_chlo, module.functions.values())):
        return module
    from hilo.rewrite import rewrite

    return module.replace({name: rewrite(f, _rules()) for name, f in module.functions.items()})


def _has_chlo(f: Function) -> bool:
    stack = [f]
    while stack:
        for op in stack.pop().ops:
            if op.kind.dialect == "chlo":
                return True
            for value in op.attrs.values():
                if isinstance(value, Function):
                    stack.append(value)
                elif isinstance(value, tuple):
                    stack.extend(v for v in value if isinstance(v, Function))
    return False


@cache
def _rules() -> RuleSet:
    from hilo.ir.registry import REGISTRY
    from hilo.rewrite import RuleSet

    known = [d for d in REGISTRY.values() if d.dialect == "chlo" and (d.expand or d.name in _EXACT)]
    return RuleSet("chlo", [_expansion(d) for d in known])


def _expansion(kind: OpDef) -> Rule:
    from hilo.rewrite import PACK, Rule
    from hilo.rewrite.pattern import Symbol

    def expand(op: Op) -> Op | None:
        if kind.expand is None:
            return _EXACT[kind.name](op.operands[0])
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
