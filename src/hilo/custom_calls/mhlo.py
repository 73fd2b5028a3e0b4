"""MHLO's functions as targets: how StableHLO writes ops that it does not have (`mhlo.erf` ...). Imports ir, siblings.

They are CHLO's; compiled code has those in their place (passes/known_calls.py).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.custom_calls.registry import register
from hilo.ir.registry import lookup

FUNCTIONS: Final = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "sinh", "tan")


def _target(name: str) -> Any:
    def target(x: np.ndarray) -> Any:
        evaluate = lookup(f"chlo.{name}").evaluate
        assert evaluate is not None
        return evaluate(x)

    return target


def _register() -> None:
    for name in FUNCTIONS:
        register(f"mhlo.{name}", _target(name), builtin=True)


_register()
