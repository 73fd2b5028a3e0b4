"""Linear algebra on batches of matrices: cholesky, triangular_solve. Imports ir."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, c64, f32, f64, from_numpy
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import same_dim, same_shape, tensor
from hilo.ops.numeric import narrow
from hilo.ops.shape import transpose
from hilo.ops.sharding import axis_names

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@op("cholesky")
class cholesky:
    """The triangular factor of Hermitian positive definite matrices: `l` with `l @ l.H = a`, or (`lower` false) `l.H`.

    Only one triangle of `a` is read, the lower if `lower`; the other triangle of the result is zero. A matrix that is
    not positive definite gives NaN from the row on where that shows. Spec: cholesky.
    """

    attrs = {"lower": False}

    @staticmethod
    def infer(a: Type, *, lower: bool) -> Type:
        t = tensor(a)
        require(t.dtype.kind in "fc", "I1", "takes float or complex elements, not {t}", t=t)
        require(t.rank >= 2, "C2", "{t} holds no matrices", t=t)
        require(same_dim(t.shape[-2], t.shape[-1]), "C3", "the matrices of {t} are not square", t=t)
        return t

    @staticmethod
    def evaluate(a: np.ndarray, *, lower: bool) -> np.ndarray:
        x = _wide(a)
        u = np.triu(np.conj(np.swapaxes(x, -1, -2)) if lower else x)
        n = u.shape[-1]
        for j in range(n):
            row = u[..., j, j:] - np.einsum("...k,...kc->...c", np.conj(u[..., :j, j]), u[..., :j, j:])
            pivot = np.sqrt(row[..., :1].real)
            u[..., j, j:] = row / pivot
            u[..., j, j] = pivot[..., 0]
        return narrow(np.conj(np.swapaxes(u, -1, -2)) if lower else u, from_numpy(a.dtype))

    @staticmethod
    def sharding(a: TensorType, *, out: TensorType, lower: bool) -> str:
        names = axis_names(a.rank + 2)
        return f"{names[: a.rank]}->{names[: a.rank - 2]}{names[a.rank :]}"

    @staticmethod
    def cost(a: TensorType, *, out: TensorType, lower: bool) -> tuple[int, int]:
        return a.size * a.shape[-1] // 3, 2 * a.nbytes

    examples = lambda: [
        ((TensorType(f32, (5, 5)),), {"lower": True}),
        ((TensorType(f64, (2, 3, 20, 20)),), {}),
        ((TensorType(c64, (4, 4)),), {"lower": True}),
        ((TensorType(c64, (17, 17)),), {}),
        ((TensorType(bf16, (3, 3)),), {"lower": True}),
        ((TensorType(f32, (2, 0, 0)),), {}),
        ((TensorType(f32, (1, 1)),), {}),
    ]


@op("triangular_solve")
class triangular_solve:
    """`x` with `op(a) @ x = b` (`left_side`), or `x @ op(a) = b`, for batches of triangular matrices `a`.

    Only the lower triangle of `a` is read if `lower`, else the upper; its diagonal counts as ones if `unit_diagonal`.
    `transpose_a`: NO_TRANSPOSE, TRANSPOSE or ADJOINT says what `op` is. Spec: triangular_solve.
    """

    @staticmethod
    def infer(a: Type, b: Type, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str) -> Type:
        x, y = tensor(a), tensor(b)
        require(x.dtype.kind in "fc", "I1", "takes float or complex elements, not {x}", x=x)
        require(x.dtype is y.dtype, "C1", "{x} and {y} have different element types", x=x, y=y)
        require(x.rank == y.rank >= 2, "C2", "{x} and {y} must have one rank, at least 2", x=x, y=y)
        ok = same_shape(x.shape[:-2], y.shape[:-2]) and same_dim(x.shape[-2], x.shape[-1])
        ok = ok and same_dim(x.shape[-1], y.shape[-2 if left_side else -1])
        require(ok, "C3", "the matrices of {x} cannot stand on this side of those of {y}", x=x, y=y)
        require(transpose_a in TRANSPOSES, "I6", "transpose_a {t} must be one of {all}", t=transpose_a, all=TRANSPOSES)
        return y

    @staticmethod
    def evaluate(a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool, unit_diagonal: bool,
                 transpose_a: str) -> np.ndarray:  # fmt: skip
        m, x = _wide(a), _wide(b).copy()
        if transpose_a != "NO_TRANSPOSE":
            m, lower = np.swapaxes(m, -1, -2), not lower
            m = np.conj(m) if transpose_a == "ADJOINT" else m
        if not left_side:
            m, x, lower = np.swapaxes(m, -1, -2), np.swapaxes(x, -1, -2), not lower
        n = m.shape[-1]
        for i in range(n) if lower else reversed(range(n)):
            done = slice(0, i) if lower else slice(i + 1, n)
            x[..., i, :] -= np.einsum("...k,...kc->...c", m[..., i, done], x[..., done, :])
            if not unit_diagonal:
                x[..., i, :] /= m[..., i, i : i + 1]
        return narrow(x if left_side else np.swapaxes(x, -1, -2), from_numpy(b.dtype))

    @staticmethod
    def expand(a: Op, b: Op, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str) -> Op | None:
        """A solve from the left of transposed matrices."""
        if left_side:
            return None
        rank = a.tensor.rank
        swapped = (*range(rank - 2), rank - 1, rank - 2)
        turned = {"NO_TRANSPOSE": "TRANSPOSE"}.get(transpose_a, "NO_TRANSPOSE")
        if transpose_a == "ADJOINT" and a.dtype.is_complex:
            from hilo.ops.chlo import conj

            a = conj(a)
        x = triangular_solve(a, transpose(b, permutation=swapped), left_side=True, lower=lower,
                             unit_diagonal=unit_diagonal, transpose_a=turned)  # fmt: skip
        return transpose(x, permutation=swapped)

    @staticmethod
    def sharding(a: TensorType, b: TensorType, *, out: TensorType, left_side: bool, **_: Any) -> str:
        """Matrices, and columns of `b` (rows, from the right), are solved by themselves."""
        names = axis_names(a.rank + 3)
        batch, (p, q, free, mine, result) = names[: a.rank - 2], names[a.rank - 2 :]
        rows, results = (mine + free, result + free) if left_side else (free + mine, free + result)
        return f"{batch}{p}{q},{batch}{rows}->{batch}{results}"

    @staticmethod
    def cost(a: TensorType, b: TensorType, *, out: TensorType, **_: Any) -> tuple[int, int]:
        return b.size * a.shape[-1], a.nbytes + 2 * b.nbytes

    examples = lambda: [
        ((TensorType(d, (*batch, n, n)), TensorType(d, (*batch, *((n, m) if left else (m, n))))),
         {"left_side": left, "lower": lower, "unit_diagonal": unit, "transpose_a": t})
        for d, batch, n, m, left, lower, unit, t in (
            (f32, (), 4, 3, True, True, False, "NO_TRANSPOSE"),
            (f32, (2,), 5, 40, True, False, False, "TRANSPOSE"),
            (f64, (2,), 5, 2, False, True, True, "NO_TRANSPOSE"),
            (c64, (), 3, 20, True, True, False, "ADJOINT"),
            (c64, (), 3, 2, False, False, False, "ADJOINT"),
            (bf16, (), 2, 2, True, False, False, "NO_TRANSPOSE"),
            (f32, (), 0, 2, True, True, False, "NO_TRANSPOSE"),
            (f32, (), 2, 0, True, True, False, "NO_TRANSPOSE"),
        )
    ]  # fmt: skip
