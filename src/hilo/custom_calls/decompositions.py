"""XLA's own decompositions as targets: Qr, ProductOfElementaryHouseholderReflectors, Eigh, Cholesky, LuDecomposition.

They need numpy alone. Results follow LAPACK's conventions; what has no answer is NaN. Imports siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hilo.custom_calls.batches import batched
from hilo.custom_calls.lapack import Attributes
from hilo.custom_calls.registry import register
from hilo.errors import Error
from hilo.ir.types import TensorType


def _wide(x: np.ndarray) -> np.ndarray:
    """Types that numpy decomposes; narrower ones are computed in f32."""
    return x if x.dtype.char in "fdFD" else x.astype(np.float32)


def _qr(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> r and reflectors, tau"""
    if not x.size:
        return x, like[1]
    packed, tau = np.linalg.qr(_wide(x), mode="raw")
    return packed.T, tau


def _reflectors(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray, tau: np.ndarray) -> Sequence[Any]:
    """reflectors, tau -> q: the first columns of the product of I - tau v v^H"""
    w = _wide(x)
    q = np.eye(*x.shape, dtype=w.dtype)
    for j in reversed(range(len(tau))):
        v = w[:, j].copy()
        v[:j] = 0
        v[j] = 1
        q -= np.outer(tau[j] * v, np.conj(v) @ q)
    return (q,)


def eigh(*operands: np.ndarray, results: Sequence[TensorType], backend_config: str) -> list[np.ndarray]:
    """x -> vectors, w; the configuration begins with whether the lower triangle counts, and whether w is sorted
    (it always is). Matrices of which LAPACK finds no eigenvalues have NaN."""
    (x,) = operands
    lower = (backend_config.strip() or "1").split(",")[0].strip() not in ("0", "false")
    real = np.real(x).dtype
    vectors, w = np.full(x.shape, np.nan, x.dtype), np.full(x.shape[:-1], np.nan, real)
    for i in np.ndindex(x.shape[:-2]):
        try:
            w[i], vectors[i] = np.linalg.eigh(_wide(x[i]), UPLO="L" if lower else "U")
        except np.linalg.LinAlgError:
            continue
    return [vectors.astype(results[0].dtype.np), w.astype(results[1].dtype.np)]


def cholesky(*operands: np.ndarray, results: Sequence[TensorType], backend_config: str) -> np.ndarray:
    """x -> its lower triangular factor; NaN for what is not positive definite."""
    (x,) = operands
    out = np.full(x.shape, np.nan, x.dtype)
    for i in np.ndindex(x.shape[:-2]):
        try:
            out[i] = np.linalg.cholesky(_wide(x[i]))
        except np.linalg.LinAlgError:
            continue
    return out


def lu(*operands: np.ndarray, results: Sequence[TensorType]) -> list[np.ndarray]:
    """x -> factors of rows in another order, pivots (from 0), that order"""
    (x,) = operands
    m, n = x.shape[-2:]
    k = min(m, n)
    a = _wide(x).reshape(prod(x.shape[:-2]), m, n).copy()
    each = np.arange(len(a))
    pivots = np.zeros((len(a), k), np.int32)
    order = np.broadcast_to(np.arange(m, dtype=np.int32), (len(a), m)).copy()
    for j in range(k):
        below = a[:, j:, j]
        size = np.abs(np.real(below)) + np.abs(np.imag(below))
        p = j + np.argmax(size, axis=1)
        pivots[:, j] = p
        for rows in (a, order):
            rows[each, j], rows[each, p] = rows[each, p].copy(), rows[each, j].copy()
        pivot = a[:, j, j, None]
        with np.errstate(all="ignore"):
            a[:, j + 1 :, j] = np.where(pivot == 0, a[:, j + 1 :, j], a[:, j + 1 :, j] / pivot)
            a[:, j + 1 :, j + 1 :] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 :]
    values = (a.astype(x.dtype), pivots, order)
    if len(results) > len(values):
        raise Error(f"{len(values)} results, not {len(results)}")
    return [v.reshape(t.shape) for v, t in zip(values, results, strict=False)]


for name, function in {
    "Qr": batched(_qr),
    "ProductOfElementaryHouseholderReflectors": batched(_reflectors, 2, 0),
    "Eigh": eigh,
    "Cholesky": cholesky,
    "LuDecomposition": lu,
}.items():
    register(name, function, builtin=True)
