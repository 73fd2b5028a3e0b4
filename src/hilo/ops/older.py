"""Ops that newer ones have replaced: broadcast, einsum, unary_einsum, torch_index_select, rng. They expand.

Imports ir, ops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import DType, bf16, f32, f64, i1, i8, i32, i64, u32, u64
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type
from hilo.ops.checks import in_range, promotable, result_is, same_dim, same_shape, tensor, unique
from hilo.ops.chlo import erf_inv
from hilo.ops.constant import constant
from hilo.ops.convert import convert
from hilo.ops.decompose import by_expansion, full, spread, total
from hilo.ops.dot import dot_general
from hilo.ops.elementwise_arith import add, maximum, minimum, multiply, remainder, subtract
from hilo.ops.elementwise_bits import shift_right_logical
from hilo.ops.gather import gather
from hilo.ops.random import rng_bit_generator
from hilo.ops.shape import broadcast_in_dim, transpose
from hilo.ops.sharding import axis_names, unsharded

SEED: Final = (0x243F6A8885A308D3, 0x13198A2E03707344)  # digits of pi


@op("broadcast")
class broadcast:
    """`broadcast_in_dim` with new axes of `broadcast_sizes` in front. Spec: broadcast_in_dim (an older form of it)."""

    @staticmethod
    def infer(x: Type, *, broadcast_sizes: tuple[int, ...]) -> Type:
        t = tensor(x)
        require(all(n >= 0 for n in broadcast_sizes), "C1", "broadcast_sizes {s} are negative", s=broadcast_sizes)
        return t.with_shape((*broadcast_sizes, *t.shape))

    @staticmethod
    def evaluate(x: np.ndarray, *, broadcast_sizes: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(x, (*broadcast_sizes, *x.shape)).copy()

    @staticmethod
    def expand(x: Op, *, broadcast_sizes: tuple[int, ...]) -> Op:
        n = len(broadcast_sizes)
        t = x.tensor.with_shape((*broadcast_sizes, *x.shape))
        return broadcast_in_dim(x, broadcast_dimensions=tuple(range(n, t.rank)), type=t)

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, broadcast_sizes: tuple[int, ...]) -> str:
        names = axis_names(out.rank)
        return f"{names[len(broadcast_sizes) :]}->{names}"

    examples = [((TensorType(f32, (3,)),), {"broadcast_sizes": (2, 4)}), ((TensorType(i32),), {"broadcast_sizes": ()})]


def _parsed(config: str, types: tuple[TensorType, ...]) -> tuple[list[str], str, dict[str, Any]]:
    """The letters of each operand and of the result, and the size of each letter."""
    left, arrow, right = config.replace(" ", "").partition("->")
    ins = left.split(",")
    ok = bool(arrow) and len(ins) == len(types) and all(c.isalpha() for c in config if c not in " ,->")
    require(ok, "C1", "einsum_config {c!r} is not of the form 'ab,bc->ac' for {n} operands", c=config, n=len(types))
    sizes: dict[str, Any] = {}
    for letters, t in zip(ins, types, strict=True):
        require(len(letters) == t.rank, "C2", "{l!r} must name the axes of {t}", l=letters, t=t)
        require(unique(letters), "C3", "{l!r} names an axis twice", l=letters)  # type: ignore[arg-type]
        for c, n in zip(letters, t.shape, strict=True):
            ok = same_dim(sizes.setdefault(c, n), n)
            require(ok, "C4", "axes {c!r} have sizes {n} and {m}", c=c, n=sizes[c], m=n)
    ok = unique(right) and all(c in sizes for c in right)  # type: ignore[arg-type]
    require(ok, "C5", "the result {r!r} must name axes of the operands, each once", r=right)
    return ins, right, sizes


def _summed(x: Op, letters: str, kept: str, wide: DType) -> tuple[Op, str]:
    """`x` summed, in the element type `wide`, over the axes that nobody else knows."""
    gone = [d for d, c in enumerate(letters) if c not in kept]
    if gone and x.dtype is not wide:
        x = convert(x, type=x.tensor.with_dtype(wide))
    return (total(x, gone), "".join(c for c in letters if c in kept)) if gone else (x, letters)


def _ordered(x: Op, letters: str, result: str) -> Op:
    return x if letters == result else transpose(x, permutation=tuple(letters.index(c) for c in result))


def _einsum(lhs: Op, rhs: Op, *, einsum_config: str, type: TensorType | None = None) -> Op:  # noqa: A002
    (a, b), r, sizes = _parsed(einsum_config, (lhs.tensor, rhs.tensor))
    wide = lhs.dtype if type is None else type.dtype  # what sums are in
    x, a = _summed(lhs, a, b + r, wide)
    y, b = _summed(rhs, b, a + r, wide)
    both = [c for c in a if c in b]
    batch, summed = [c for c in both if c in r], [c for c in both if c not in r]
    letters = "".join([*batch, *(c for c in a if c not in both), *(c for c in b if c not in both)])
    product = dot_general(
        x, y, lhs_batching_dimensions=tuple(map(a.index, batch)), rhs_batching_dimensions=tuple(map(b.index, batch)),
        lhs_contracting_dimensions=tuple(map(a.index, summed)), rhs_contracting_dimensions=tuple(map(b.index, summed)),
        type=TensorType(wide, [sizes[c] for c in letters]),
    )  # fmt: skip
    return _ordered(product, letters, r)


def _unary_einsum(x: Op, *, einsum_config: str) -> Op:
    (a,), r, _ = _parsed(einsum_config, (x.tensor,))
    y, a = _summed(x, a, r, x.dtype)
    return _ordered(y, a, r)


class _Einsum:
    @staticmethod
    def infer(*types: Type, einsum_config: str) -> Type:
        ts = tuple(map(tensor, types))
        require(all(t.dtype is ts[0].dtype for t in ts), "C6", "operands have several element types: {ts}", ts=ts)
        _, r, sizes = _parsed(einsum_config, ts)
        return ts[0].with_shape(sizes[c] for c in r)

    @staticmethod
    def sharding(*types: TensorType, out: TensorType, einsum_config: str) -> str:
        return einsum_config.replace(" ", "")


@op("einsum", typed=True)
class einsum(_Einsum):
    """Sums of products after `einsum_config`, e.g. "ab,bc->ac". Spec: dot_general (which it is made of).

    `type` may have wider elements than the operands; without it the result has theirs.
    """

    @staticmethod
    def infer(*types: Type, einsum_config: str, type: Type | None = None) -> Type:  # noqa: A002
        want = tensor(_Einsum.infer(*types, einsum_config=einsum_config))
        if type is None:
            return want
        t = tensor(type)
        require(promotable(want.dtype, t.dtype), "C6", "elements of {w} cannot be promoted to {t}", w=want, t=t)
        return result_is(t, want.shape, None, "C5")

    evaluate = staticmethod(by_expansion(_einsum))
    expand = staticmethod(_einsum)

    @staticmethod
    def cost(lhs: TensorType, rhs: TensorType, *, out: TensorType, einsum_config: str) -> tuple[int, int]:
        _, _, sizes = _parsed(einsum_config, (lhs, rhs))
        return 2 * int(np.prod(list(sizes.values()), dtype=np.int64)), lhs.nbytes + rhs.nbytes + out.nbytes

    examples = [
        ((TensorType(f32, (2, 3)), TensorType(f32, (3, 4))), {"einsum_config": "ab,bc->ac"}),
        ((TensorType(i32, (2, 3, 2)), TensorType(i32, (5, 2))), {"einsum_config": "abc,dc->cda"}),
        ((TensorType(f64, (3,)), TensorType(f64, (2,))), {"einsum_config": "a,b->ba"}),
    ]


@op("unary_einsum")
class unary_einsum(_Einsum):
    """Sums over axes and their order after `einsum_config`, e.g. "ab->b". Spec: reduce (which it is made of)."""

    evaluate = staticmethod(by_expansion(_unary_einsum))
    expand = staticmethod(_unary_einsum)

    @staticmethod
    def cost(x: TensorType, *, out: TensorType, einsum_config: str) -> tuple[int, int]:
        return x.size, x.nbytes + out.nbytes

    examples = [
        ((TensorType(f32, (2, 3)),), {"einsum_config": "ab->b"}),
        ((TensorType(i32, (2, 3, 4)),), {"einsum_config": "abc->ca"}),
        ((TensorType(i32, (2,)),), {"einsum_config": "a->a"}),
    ]


@op("torch_index_select")
class torch_index_select:
    """Elements of the operand along `dim` at the positions that `index` holds, moved into range.

    The first `batch_dims` axes of both run along together. Spec: gather (which it is made of).
    """

    attrs = {"batch_dims": 0}

    @staticmethod
    def infer(x: Type, index: Type, *, dim: int, batch_dims: int) -> Type:
        t, s = tensor(x), tensor(index)
        require(s.dtype.is_int, "I2", "index {s} must hold integers", s=s)
        require(in_range((dim,), t.rank), "C1", "dim {d} is not an axis of {t}", d=dim, t=t)
        ok = 0 <= batch_dims <= min(dim, s.rank)
        require(ok, "C2", "batch_dims {n} must be at most dim {d} and the rank of {s}", n=batch_dims, d=dim, s=s)
        ok = same_shape(t.shape[:batch_dims], s.shape[:batch_dims])
        require(ok, "C3", "{t} and {s} differ along the first {n} axes", t=t, s=s, n=batch_dims)
        return t.with_shape((*t.shape[:dim], *s.shape[batch_dims:], *t.shape[dim + 1 :]))

    @staticmethod
    def evaluate(x: np.ndarray, index: np.ndarray, *, dim: int, batch_dims: int) -> np.ndarray:
        if x.shape[dim] == 0:
            return np.zeros((*x.shape[:dim], *index.shape[batch_dims:], *x.shape[dim + 1 :]), x.dtype)
        inside = [min(max(int(i), 0), x.shape[dim] - 1) for i in index.reshape(-1)]
        at = np.array(inside, np.int64).reshape(index.shape)
        out = np.empty((*x.shape[:dim], *index.shape[batch_dims:], *x.shape[dim + 1 :]), x.dtype)
        for b in np.ndindex(*x.shape[:batch_dims]):
            out[b] = np.take(x[b], at[b], axis=dim - batch_dims)
        return out

    @staticmethod
    def expand(x: Op, index: Op, *, dim: int, batch_dims: int) -> Op:
        batch, rank, new = tuple(range(batch_dims)), x.tensor.rank, index.tensor.rank - batch_dims
        if isinstance(x.shape[dim], int) and x.shape[dim] == 0:
            return full(0, x.dtype, (*x.shape[:dim], *index.shape[batch_dims:], *x.shape[dim + 1 :]))
        return gather(
            x, index, operand_batching_dims=batch, start_indices_batching_dims=batch, collapsed_slice_dims=(dim,),
            start_index_map=(dim,), index_vector_dim=index.tensor.rank,
            offset_dims=(*range(batch_dims, dim), *range(dim + new, rank + new - 1)),
            slice_sizes=tuple(1 if d == dim or d in batch else n for d, n in enumerate(x.shape)),
        )  # fmt: skip

    sharding = staticmethod(unsharded)
    examples = [
        ((TensorType(f32, (5, 3)), TensorType(i32, (2,))), {"dim": 0}),
        ((TensorType(f32, (2, 5, 3)), TensorType(i64, (2, 4))), {"dim": 1, "batch_dims": 1}),
        ((TensorType(i8, (2, 3, 4)), TensorType(i32)), {"dim": 2}),
    ]


def _rng(a: Op, b: Op, shape: Op, *, rng_distribution: str, type: TensorType) -> Op:  # noqa: A002
    return drawn_from(constant(value=Array(np.array(SEED, np.uint64))), a, b, rng_distribution, type)


def drawn_from(state: Op, a: Op, b: Op, rng_distribution: str, t: TensorType) -> Op:
    """What `rng` gives for the state u64[2] of its generator."""
    low, high = (spread(x, t.shape, ()) for x in (a, b))
    if t.dtype is i1:
        return low
    bits = u64 if t.dtype.bits == 64 else u32
    kind = Results([TensorType(u64, (2,)), t.with_dtype(bits)])
    drawn = rng_bit_generator(state, rng_algorithm="THREE_FRY", type=kind).results()[1]
    if t.dtype.is_int:
        width = convert(subtract(high, low), type=t.with_dtype(bits))
        return add(low, convert(remainder(drawn, maximum(width, full(1, bits, t.shape))), type=t))
    work = f64 if t.dtype is f64 else f32
    digits = 53 if work is f64 else 24
    whole = shift_right_logical(drawn, full(bits.bits - digits, bits, t.shape))
    unit = multiply(convert(whole, type=t.with_dtype(work)), full(2.0**-digits, work, t.shape))  # in [0, 1)
    low, high = (convert(x, type=t.with_dtype(work)) if x.dtype is not work else x for x in (low, high))
    if rng_distribution == "NORMAL":
        odd = add(multiply(unit, full(2.0, work, t.shape)), full(2.0**-digits - 1.0, work, t.shape))  # in (-1, 1)
        value = add(low, multiply(high, multiply(full(2.0**0.5, work, t.shape), erf_inv(odd))))
    else:
        value = minimum(add(low, multiply(unit, subtract(high, low))), maximum(low, high))
    return value if t.dtype is work else convert(value, type=t)


@op("rng", typed=True)
class rng:
    """Random numbers: UNIFORM in [a, b), or NORMAL with mean a and standard deviation b. The same in every run.

    Operands: a, b (rank 0), the shape. Numbers are hilo's own: Threefry with a fixed key, so that two such ops of one
    type give the same numbers; rng_bit_generator has a state. Spec: rng.
    """

    @staticmethod
    def infer(a: Type, b: Type, shape: Type, *, rng_distribution: str, type: Type) -> Type:  # noqa: A002
        x, y, s, t = tensor(a), tensor(b), tensor(shape), tensor(type)
        require(x.rank == 0 and y.rank == 0, "I1", "{x} and {y} must have rank 0", x=x, y=y)
        require(x.dtype is y.dtype, "C1", "{x} and {y} have different element types", x=x, y=y)
        require(x.dtype.kind in "biuf", "I1", "takes real numbers, not {x}", x=x)
        require(rng_distribution in ("UNIFORM", "NORMAL"), "I4", "rng_distribution {d} is unknown", d=rng_distribution)
        ok = rng_distribution != "NORMAL" or x.dtype.is_float
        require(ok, "C2", "a normal distribution of {x}, which is not a float", x=x)
        ok = s.rank == 1 and s.dtype.is_int and same_dim(s.shape[0], t.rank)
        require(ok, "C3", "the shape must be a vector of {n} integers, not {s}", n=t.rank, s=s)
        return result_is(t, t.shape, x.dtype, "C1")

    evaluate = staticmethod(by_expansion(_rng))
    sharding = staticmethod(unsharded)

    @staticmethod
    def expand(a: Op, b: Op, shape: Op, *, rng_distribution: str, type: TensorType) -> Op:  # noqa: A002
        return _rng(a, b, shape, rng_distribution=rng_distribution, type=type)

    examples = [
        ((TensorType(d), TensorType(d), TensorType(i64, (len(s),))),
         {"rng_distribution": k, "type": TensorType(d, s)})
        for d, s, k in ((f32, (3, 5), "UNIFORM"), (f64, (7,), "NORMAL"), (i32, (9,), "UNIFORM"), (bf16, (4,), "NORMAL"),
                        (u64, (2, 2), "UNIFORM"), (i1, (3,), "UNIFORM"), (f32, (), "NORMAL"))
    ]  # fmt: skip
