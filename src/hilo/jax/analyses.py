"""`jax.jit(f).lower(x).cost_analysis()`: of a program that was not compiled, which PJRT has no question for.

Imports pjrt, callbacks; JAX when called.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from hilo.jax.callbacks import is_ours


def install() -> None:
    """Answer the question for programs that are lowered for hilo."""
    pxla: Any = import_module("jax._src.interpreters.pxla")
    computation: Any = getattr(pxla, "MeshComputation", None)
    original = getattr(computation, "cost_analysis", None)
    if original is None:  # another version of JAX
        return

    @wraps(original)
    def cost_analysis(self: Any) -> dict[str, float]:
        backend = self.compile_args["backend"]
        if backend is None or not is_ours(backend):
            return original(self)
        from hilo.pjrt.analysis import costs_of

        return costs_of(import_module("jax._src.interpreters.mlir").module_to_bytecode(self.stablehlo()))

    computation.cost_analysis = cost_analysis
