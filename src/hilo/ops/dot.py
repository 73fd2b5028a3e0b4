"""Contractions: dot_general and dot. Imports ir."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import NARROW_FLOATS, DType, bf16, c64, dtype, f16, f32, f64, from_numpy, i1, i8, i32, u8
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import in_range, result_is, same_dim, tensor, unique
from hilo.ops.numeric import narrow
from hilo.ops.sharding import axis_names

Algorithm = tuple[str, str, str, int, int, int, bool]
_F8: Final = tuple(t.name for t in NARROW_FLOATS)
_PRECISIONS: Final = ("tf32", "bf16", "f16", "f32", "f64", *_F8)
_PARTS: Final = {1: 1, 3: 2, 6: 3, 9: 3}  # by num_primitive_operations: into how many parts operands are cut


def _check_algorithm(a: Algorithm, precision_config: tuple[str, ...] | None) -> None:
    require(
        all(p == "DEFAULT" for p in precision_config or ()),
        "C21",
        "an algorithm excludes precision_config {p}",
        p=precision_config,
    )
    require(a[3] > 0, "C22", "lhs_component_count {n} must be positive", n=a[3])
    require(a[4] > 0, "C23", "rhs_component_count {n} must be positive", n=a[4])
    require(a[5] > 0, "C24", "num_primitive_operations {n} must be positive", n=a[5])
    parts = _PARTS.get(a[5], 0)
    known = all(t in _PRECISIONS for t in a[:3]) and a[2] not in ("tf32", *_F8) and parts
    precise = not a[6] or {a[0], a[1]} <= set(_F8)  # sums narrower than said are known of products of f8 alone
    if not known or not precise or not {a[3], a[4]} <= {1, parts}:
        raise Unsupported(f"dot algorithm {a} is not known; leave it out, or use e.g. bf16 x bf16 -> f32 with 1, 1, 1")


def _example(
    a: Sequence[Any], b: Sequence[Any], dims: Sequence[Sequence[int]], out: Sequence[Any], **more: Any
) -> Any:
    names = (
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    )
    numbers = dict(zip(names, map(tuple, dims), strict=True))
    return (TensorType(*a), TensorType(*b)), {**numbers, "type": TensorType(*out), **more}


@op("dot_general", typed=True)
class dot_general:
    """Sum of products over the contracting axes, for each index of the batching axes.

    Operands: lhs and rhs of one element type, or each of some f8 type, or with an algorithm of some float type. Result
    axes: batching, then what is left of lhs, then of rhs; its element type may be wider than the operands'. Booleans:
    `or` of `and`. Integers wrap around in the result's type. f16 and bf16 accumulate in f32 and round once.
    `algorithm`: None or (lhs_precision_type, rhs_precision_type, accumulation_type, lhs_component_count,
    rhs_component_count, num_primitive_operations,
    allow_imprecise_accumulation), honoured or refused with `Unsupported`. Spec: dot_general.
    """

    attrs = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (),
        "rhs_contracting_dimensions": (),
        "precision_config": None,
        "algorithm": None,
    }

    @staticmethod
    def infer(
        lhs: Type,
        rhs: Type,
        *,
        lhs_batching_dimensions: tuple[int, ...],
        rhs_batching_dimensions: tuple[int, ...],
        lhs_contracting_dimensions: tuple[int, ...],
        rhs_contracting_dimensions: tuple[int, ...],
        precision_config: tuple[str, ...] | None,
        algorithm: Algorithm | None,
        type: Type,  # noqa: A002
    ) -> Type:
        x, y = tensor(lhs), tensor(rhs)
        xb, yb, xc, yc = (
            lhs_batching_dimensions,
            rhs_batching_dimensions,
            lhs_contracting_dimensions,
            rhs_contracting_dimensions,
        )
        require(len(xb) == len(yb), "C1", "batching dimensions {a} and {b} differ in number", a=xb, b=yb)
        require(len(xc) == len(yc), "C2", "contracting dimensions {a} and {b} differ in number", a=xc, b=yc)
        require(unique([*xb, *xc]), "C3", "lhs dimensions {a}, {b} name an axis twice", a=xb, b=xc)
        require(unique([*yb, *yc]), "C4", "rhs dimensions {a}, {b} name an axis twice", a=yb, b=yc)
        for rule, dims, t in (("C5", xb, x), ("C6", xc, x), ("C7", yb, y), ("C8", yc, y)):
            require(in_range(dims, t.rank), rule, "dimensions {d} are not all axes of {t}", d=dims, t=t)
        for rule, a, b in (("C9", xb, yb), ("C10", xc, yc)):
            ok = all(same_dim(x.shape[i], y.shape[j]) for i, j in zip(a, b, strict=True))
            require(ok, rule, "axes {a} of {x} and {b} of {y} have different sizes", a=a, x=x, b=b, y=y)
        require(
            precision_config is None or len(precision_config) <= 2,
            "C11",
            "precision_config {p} needs two entries",
            p=precision_config,
        )
        require(_multiply(x.dtype, y.dtype, algorithm), "C13", "{x} and {y} have different element types", x=x, y=y)
        if algorithm is not None:
            _check_algorithm(algorithm, precision_config)
        return result_is(
            type, [*(x.shape[d] for d in xb), *_free(x.shape, xb, xc), *_free(y.shape, yb, yc)], None, "C12"
        )

    @staticmethod
    def evaluate(
        lhs: np.ndarray,
        rhs: np.ndarray,
        *,
        lhs_batching_dimensions: tuple[int, ...],
        rhs_batching_dimensions: tuple[int, ...],
        lhs_contracting_dimensions: tuple[int, ...],
        rhs_contracting_dimensions: tuple[int, ...],
        precision_config: tuple[str, ...] | None,
        algorithm: Algorithm | None,
        type: TensorType,  # noqa: A002
    ) -> np.ndarray:
        x = _matrices(lhs, lhs_batching_dimensions, lhs_contracting_dimensions, last=True)
        y = _matrices(rhs, rhs_batching_dimensions, rhs_contracting_dimensions, last=False)
        if algorithm is not None and type.dtype.is_float:
            product = narrow(_by_algorithm(x, y, algorithm), type.dtype)
        else:
            product = _product(x, y, type.dtype)
        batch = [lhs.shape[d] for d in lhs_batching_dimensions]
        free = [_free(lhs.shape, lhs_batching_dimensions, lhs_contracting_dimensions),
                _free(rhs.shape, rhs_batching_dimensions, rhs_contracting_dimensions)]  # fmt: skip
        return product.reshape([*batch, *free[0], *free[1]])

    @staticmethod
    def sharding(
        lhs: TensorType,
        rhs: TensorType,
        *,
        out: TensorType,
        lhs_batching_dimensions: tuple[int, ...],
        rhs_batching_dimensions: tuple[int, ...],
        lhs_contracting_dimensions: tuple[int, ...],
        rhs_contracting_dimensions: tuple[int, ...],
        **_: Any,
    ) -> str:
        xb, xc = lhs_batching_dimensions, lhs_contracting_dimensions
        x = axis_names(lhs.rank)
        y = list(axis_names(lhs.rank + rhs.rank)[lhs.rank :])
        for i, j in zip([*xb, *xc], [*rhs_batching_dimensions, *rhs_contracting_dimensions], strict=True):
            y[j] = x[i]
        free = [*_free(x, xb, xc), *_free(y, rhs_batching_dimensions, rhs_contracting_dimensions)]
        return f"{x},{''.join(y)}->{''.join([*(x[d] for d in xb), *free])}"

    @staticmethod
    def cost(
        lhs: TensorType, rhs: TensorType, *, out: TensorType, lhs_contracting_dimensions: tuple[int, ...], **_: Any
    ) -> tuple[int, int]:
        flops = 2 * out.size * prod(lhs.shape[d] for d in lhs_contracting_dimensions)
        return flops, lhs.nbytes + rhs.nbytes + out.nbytes

    examples = lambda: [
        _example((f32, (2, 3)), (f32, (3, 4)), ((), (), (1,), (0,)), (f32, (2, 4))),
        _example((f32, (5, 2, 3)), (f32, (4, 3, 5)), ((0,), (2,), (2,), (1,)), (f32, (5, 2, 4))),
        _example((bf16, (2, 3)), (bf16, (3, 4)), ((), (), (1,), (0,)), (f32, (2, 4))),
        _example((f16, (2, 3)), (f16, (2, 3)), ((), (), (0, 1), (0, 1)), (f16, ())),
        _example((i8, (3,)), (i8, (3, 2)), ((), (), (0,), (0,)), (i32, (2,))),
        _example((u8, (2, 3)), (u8, (3, 2)), ((), (), (1,), (0,)), (u8, (2, 2))),
        _example((i1, (2, 3)), (i1, (3, 2)), ((), (), (1,), (0,)), (i1, (2, 2))),
        _example((c64, (2, 3)), (c64, (3, 2)), ((), (), (1,), (0,)), (c64, (2, 2))),
        _example((f64, (2, 0)), (f64, (0, 3)), ((), (), (1,), (0,)), (f64, (2, 3))),
        _example((f32, (2,)), (f32, (3,)), ((), (), (), ()), (f32, (2, 3))),
        _example(
            (f32, (2, 3)),
            (f32, (3, 4)),
            ((), (), (1,), (0,)),
            (f32, (2, 4)),
            algorithm=("bf16", "bf16", "f32", 3, 3, 6, False),
        ),
        _example(
            (f32, (2, 3)),
            (bf16, (3, 4)),
            ((), (), (1,), (0,)),
            (f32, (2, 4)),
            algorithm=("bf16", "bf16", "f32", 1, 1, 1, False),
        ),
    ]


@op("dot", typed=True)
class dot:
    """Product of vectors and matrices: the last axis of lhs with the first of rhs. Ranks 1 or 2.

    An older, simpler form of dot_general. Spec: dot_general.
    """

    attrs = {"precision_config": None}

    @staticmethod
    def infer(lhs: Type, rhs: Type, *, precision_config: tuple[str, ...] | None, type: Type) -> Type:  # noqa: A002
        x, y = tensor(lhs), tensor(rhs)
        require(x.rank in (1, 2) and y.rank in (1, 2), "", "dot takes vectors and matrices, not {x} and {y}", x=x, y=y)
        require(x.dtype is y.dtype, "", "{x} and {y} have different element types", x=x, y=y)
        require(
            same_dim(x.shape[-1], y.shape[0]), "", "the last axis of {x} and the first of {y} differ in size", x=x, y=y
        )
        return result_is(type, [*x.shape[:-1], *y.shape[1:]], None, "")

    @staticmethod
    def evaluate(
        lhs: np.ndarray,
        rhs: np.ndarray,
        *,
        precision_config: tuple[str, ...] | None,
        type: TensorType,  # noqa: A002
    ) -> np.ndarray:
        x, y = _matrices(lhs, (), (lhs.ndim - 1,), last=True), _matrices(rhs, (), (0,), last=False)
        return _product(x, y, type.dtype).reshape([*lhs.shape[:-1], *rhs.shape[1:]])

    @staticmethod
    def sharding(lhs: TensorType, rhs: TensorType, *, out: TensorType, **_: Any) -> str:
        x, y = "ik"[-lhs.rank :], "kj"[: rhs.rank]
        return f"{x},{y}->{x[:-1]}{y[1:]}"

    @staticmethod
    def cost(lhs: TensorType, rhs: TensorType, *, out: TensorType, **_: Any) -> tuple[int, int]:
        return 2 * out.size * lhs.shape[-1], lhs.nbytes + rhs.nbytes + out.nbytes

    examples = lambda: [
        ((TensorType(f32, (2, 3)), TensorType(f32, (3, 4))), {"type": TensorType(f32, (2, 4))}),
        ((TensorType(i32, (3,)), TensorType(i32, (3,))), {"type": TensorType(i32)}),
        ((TensorType(f32, (3,)), TensorType(f32, (3, 0))), {"type": TensorType(f32, (0,))}),
    ]


def _multiply(a: DType, b: DType, algorithm: Algorithm | None) -> bool:
    """Whether dot_general takes operands of these types: of one type, as the specification says; besides, of two f8
    types, which JAX writes for weights and activations (or gradients) of different ranges, and of two float types where
    an algorithm says to what each is rounded, which JAX writes for attention."""
    return a is b or (a.is_float and b.is_float and (algorithm is not None or a.bits == b.bits == 8))


def _free(axes: Sequence[Any], *used: Sequence[int]) -> list[Any]:
    """`axes` without the ones at the used positions."""
    return [a for d, a in enumerate(axes) if not any(d in dims for dims in used)]


def _matrices(x: np.ndarray, batch: tuple[int, ...], contract: tuple[int, ...], *, last: bool) -> np.ndarray:
    """`x` as [batch, free, contracted] (`last`) or [batch, contracted, free]."""
    free = _free(range(x.ndim), batch, contract)
    b, c, f = (prod(x.shape[d] for d in dims) for dims in (batch, contract, free))
    order = [*batch, *free, *contract] if last else [*batch, *contract, *free]
    return np.transpose(x, order).reshape((b, f, c) if last else (b, c, f))


def _product(x: np.ndarray, y: np.ndarray, out: DType) -> np.ndarray:
    """Batched matrix product, accumulated in a wider type and rounded once; exact (wrapping) for integers."""
    if out.kind in "iub":
        if out.kind == "b":
            return np.matmul(x.astype(np.bool_), y.astype(np.bool_))
        bits = from_numpy(x.dtype).bits + from_numpy(y.dtype).bits
        if x.shape[2] << bits < 1 << 53:  # exact in f64, which is much faster
            return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.int64).astype(out.np)
        wide = np.uint64 if out.kind == "u" else np.int64  # arithmetic modulo 2^64 wraps to any narrower type
        return np.matmul(x.astype(wide), y.astype(wide)).astype(out.np)
    wide = np.complex128 if out.is_complex else np.float64
    return narrow(np.matmul(x.astype(wide), y.astype(wide)), out)


def _by_algorithm(x: np.ndarray, y: np.ndarray, a: Algorithm) -> np.ndarray:
    """The product of operands cut into components of a narrower precision, most significant products first."""
    parts = range(_PARTS[a[5]])
    xs, ys = _components(x, a[0], len(parts)), _components(y, a[1], len(parts))
    pairs = sorted(((i, j) for i in parts for j in parts), key=sum)[: a[5]]
    total = np.zeros((x.shape[0], x.shape[1], y.shape[2]))
    for i, j in reversed(pairs):
        total = total + np.matmul(xs[i], ys[j])
    return total if a[2] == "f64" else narrow(total, dtype(a[2])).astype(np.float64)


def _components(x: np.ndarray, precision: str, count: int) -> list[np.ndarray]:
    """`x` as a sum of `count` values of the named precision, each in f64."""
    rest = x.astype(np.float64)
    out = []
    for _ in range(count):
        part = _tf32(rest) if precision == "tf32" else narrow(rest, dtype(precision)).astype(np.float64)
        out.append(part)
        rest = np.where(np.isfinite(part), rest - part, 0.0)
    return out


def _tf32(x: np.ndarray) -> np.ndarray:
    """Round to the 10-bit fraction of TensorFloat-32 (ties to even)."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0xFFF + ((bits >> np.uint64(13)) & np.uint64(1))) & ~np.uint64(0x1FFF)).astype(np.uint32)
    return np.where(np.isnan(x), x, kept.view(np.float32).astype(np.float64))
