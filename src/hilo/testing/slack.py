"""By how much a result may differ because the order of summation is open. Imports ir, ops, passes.inline.

The specification leaves the order open in which the terms of sums, dots and convolutions are added. A result that is
such a sum (perhaps moved, cut or converted afterwards) may differ by 4 * n * eps * (sum of the n terms' magnitudes).
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from hilo.ir.dtypes import f64
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, topological
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ops.reduce import body_of
from hilo.ops.regions import sole_op
from hilo.testing import compare

FACTOR: Final = 4
MOVES: Final = ("reshape", "transpose", "broadcast_in_dim", "slice", "reverse")  # results keep their operand's elements


def summation_slack(module: Module, inputs: list[np.ndarray]) -> list[np.ndarray | float]:
    """The allowance for each result of `main` on these inputs: an f64 array of the result's shape, or 0.0."""
    from hilo.passes.inline import inline

    main = inline(module, "main")
    return [_slack(main, r, inputs) for r in main.results]


def _slack(main: Function, result: Op, inputs: list[np.ndarray]) -> np.ndarray | float:
    moves: list[Op] = []
    o = result
    while o.kind.name in (*MOVES, "convert") and isinstance(o.type, TensorType) and o.dtype.kind in "fc":
        moves.append(o)
        o = o.operands[0]
    if not isinstance(o.type, TensorType) or o.dtype.kind not in "fc" or not _is_sum(o):
        return 0.0
    terms, magnitude = _terms(o, operands_of(main, o, inputs))
    for m in reversed(moves):
        if m.kind.name != "convert":
            magnitude = m.kind.evaluate(magnitude, **_on_f64(m))  # type: ignore[misc]
    eps = max(compare.epsilon(x.dtype) for x in (o, *moves))
    return FACTOR * terms * eps * magnitude


def operands_of(main: Function, o: Op, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The values of the operands of `o`, an op of `main`, on these inputs."""
    return run(main.replace(ops=topological(o.operands, main.params), results=o.operands), inputs)


def _is_sum(o: Op) -> bool:
    if o.kind.name in ("reduce", "reduce_window"):
        return sole_op(o.attrs["body"], len(o.operands) - 2) == "add"
    return o.kind.name in ("dot_general", "dot", "convolution", "triangular_solve")


def _terms(o: Op, operands: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """How many terms each element of a sum has, and the sum of their magnitudes."""
    if o.kind.name == "triangular_solve":
        return _condition(o, *operands)
    sizes = [compare.magnitudes(x) for x in operands]
    attrs: dict[str, Any] = _on_f64(o)
    if o.kind.name in ("reduce", "reduce_window"):
        attrs["body"] = body_of(o.attrs["body"].results[0].kind, f64)
        windows = o.attrs.get("window_dimensions")
        n = prod(windows if windows is not None else (operands[0].shape[d] for d in o.attrs["dimensions"])) + 1
    elif o.kind.name == "convolution":
        features = o.operands[1].shape[o.attrs["kernel_output_feature_dimension"]]
        n = o.operands[1].tensor.size // max(features, 1)
    else:
        attrs["algorithm" if o.kind.name == "dot_general" else "precision_config"] = None
        n = (
            operands[0].shape[-1]
            if o.kind.name == "dot"
            else prod(operands[0].shape[d] for d in o.attrs["lhs_contracting_dimensions"])
        )
    assert o.kind.evaluate is not None
    return n, o.kind.evaluate(*sizes, **attrs)


def _condition(o: Op, a: np.ndarray, b: np.ndarray) -> tuple[int, np.ndarray]:
    """What rounding the sums of a triangular solve may change: |inverse| |a| |solution|, for as many terms as rows."""
    solve, n, attrs = o.kind.evaluate, a.shape[-1], o.attrs.own()
    assert solve is not None
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    inverse = np.abs(solve(wide, np.broadcast_to(np.eye(n, dtype=wide.dtype), wide.shape), **attrs))
    x = np.abs(solve(wide, b.astype(wide.dtype), **attrs))
    kept = np.abs(np.tril(wide) if attrs["lower"] else np.triu(wide))
    kept = kept if attrs["transpose_a"] == "NO_TRANSPOSE" else np.swapaxes(kept, -1, -2)
    return n, inverse @ (kept @ x) if attrs["left_side"] else (x @ kept) @ inverse


def _on_f64(o: Op) -> dict[str, Any]:
    """The attributes of `o` for f64 operands."""
    attrs = o.attrs.own()
    if "type" in attrs:
        attrs["type"] = attrs["type"].with_dtype(f64)
    return attrs
