"""Programs without CHLO: its ops expanded into StableHLO's, which is all that a portable artifact holds.

Imports ir and rewrite; what an op expands to is said by its definition.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hilo.ir.module import Function, Module
from hilo.ir.op import Op, OpDef

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

    return RuleSet("chlo", [_expansion(d) for d in REGISTRY.values() if d.dialect == "chlo" and d.expand])


def _expansion(kind: OpDef) -> Rule:
    from hilo.rewrite import PACK, Rule
    from hilo.rewrite.pattern import Symbol

    def expand(op: Op) -> Op | None:
        assert kind.expand is not None
        simpler = kind.expand(*op.operands, **op.attrs.own())
        return PACK.make(simpler) if isinstance(simpler, tuple) else simpler

    return Rule([Symbol(kind.full_name).any], expand, "formats/bytecode/chlo.py", name=f"expand {kind.full_name}")
