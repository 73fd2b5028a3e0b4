"""Random numbers with state. Imports rewrite, ops, custom_calls, ir.

`tf.random.normal` and its kin become `stablehlo.rng`, whose numbers are the same in every run of hilo. In TensorFlow
they are others at each call: here each such op draws from a state of its own, which a function of the host gives.
"""

from __future__ import annotations

import secrets
from functools import cache
from itertools import count
from typing import Final

import numpy as np

from hilo.custom_calls.registry import register
from hilo.ir.dtypes import u64
from hilo.ir.module import Function, Module
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet, rewrite
from hilo.rewrite.ops import symbol
from hilo.rewrite.regions import any_op

STATE: Final = "hilo.tensorflow.random_state"
_KEY: Final = secrets.randbits(64)
_numbers: Final = count()


def with_states(module: Module) -> Module:
    """`module` with numbers that differ from run to run; itself if it draws none."""
    changed: dict[str, Function] = {}
    for name, f in module.functions.items():
        if any_op(f, lambda o: o.kind.full_name == "stablehlo.rng"):
            changed[name] = rewrite(f, _rules())
    return module.replace({**module.functions, **changed}) if changed else module


@cache
def _rules() -> RuleSet:
    from hilo.ops.calls import custom_call
    from hilo.ops.older import drawn_from

    register(STATE, _state, builtin=True)
    rules = RuleSet("random numbers with state")

    @rules.rule(symbol("rng"))
    def rng_with_state(op: Op) -> Op:
        state = custom_call(call_target_name=STATE, has_side_effect=True, type=TensorType(u64, (2,)))
        assert isinstance(op.type, TensorType)
        return drawn_from(state, op.operands[0], op.operands[1], op.attrs["rng_distribution"], op.type)

    return rules


def _state() -> np.ndarray:
    return np.array([_KEY, next(_numbers) << 32], np.uint64)
