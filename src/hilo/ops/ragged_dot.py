"""chlo.ragged_dot: a contraction one of whose axes is cut into groups. It expands into a loop. Imports ir, ops.

Three modes, by what the ragged axis of the lhs is:
free          [b, m, k], [g, b, k, n] -> [b, m, n]      every row is multiplied by the matrix of its group
contracting   [b, m, k], [b, k, n]    -> [g, b, m, n]   every group has a sum of its own
batching      [b, m, k], [b, k, n]    -> [b, m, n]      groups change nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import bf16, f32, f64, i32, i64, u64
from hilo.ir.module import region
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import in_range, result_is, same_dim, same_shape, tensor
from hilo.ops.compare import compare, select
from hilo.ops.control import while_
from hilo.ops.convert import convert
from hilo.ops.decompose import full, spread
from hilo.ops.dot import dot_general
from hilo.ops.elementwise_arith import add, maximum, minimum
from hilo.ops.elementwise_bits import and_
from hilo.ops.shape import iota, reshape
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import dynamic_slice, dynamic_update_slice

_BLOCK: Final = 64  # rows that are multiplied at once where the groups are the same for all of the lhs

_NUMBERS: Final = (
    "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions", "rhs_contracting_dimensions",
    "lhs_ragged_dimensions", "rhs_group_dimensions",
)  # fmt: skip


class Plan(NamedTuple):
    """The axes of one ragged_dot."""

    mode: str  # "free", "contracting", "batching"
    ragged: int  # axis of the lhs
    prefix: tuple[int, ...]  # axes of the lhs along which group sizes may differ
    free: tuple[int, ...]  # axes of the lhs that are in the result
    dims: tuple[tuple[int, ...], ...]  # of the dot_general of lhs and rhs (of one group's part of it)
    group: int  # axis of the rhs, or -1

    @property
    def numbers(self) -> dict[str, tuple[int, ...]]:
        return dict(zip(_NUMBERS[:4], self.dims, strict=True))

    @property
    def out_prefix(self) -> list[int]:
        """Where the prefix is in the result of the dot_general."""
        axes = [*self.dims[0], *self.free]
        return [axes.index(d) for d in self.prefix]

    @property
    def rhs_prefix(self) -> list[int]:
        """Where the prefix is in the rhs (mode "contracting")."""
        return [_opposite(self, d) for d in self.prefix]


def _opposite(p: Plan, d: int) -> int:
    return dict(zip([*p.dims[0], *p.dims[2]], [*p.dims[1], *p.dims[3]], strict=True))[d]


def _plan(rank: int, numbers: dict[str, tuple[int, ...]]) -> Plan:
    xb, yb, xc, yc, ragged, group = (numbers[n] for n in _NUMBERS)
    (at,) = ragged
    free = tuple(d for d in range(rank) if d not in xb and d not in xc)
    if at in xb:
        mode, prefix = "batching", xb[: xb.index(at)]
    elif at in xc:
        mode, prefix = "contracting", (*xb, *xc[: xc.index(at)])
    else:
        mode, prefix = "free", (*xb, *(d for d in free if d < at))
    g = group[0] if group else -1
    rest = (xb, tuple(d - (0 <= g < d) for d in yb), xc, tuple(d - (0 <= g < d) for d in yc))
    return Plan(mode, at, prefix, free, rest, g)


def _part(t: TensorType, axis: int) -> TensorType:
    """The type without an axis, or as it is without an axis to leave out."""
    return t if axis < 0 else t.with_shape((*t.shape[:axis], *t.shape[axis + 1 :]))


@op("ragged_dot", dialect="chlo", typed=True)
class ragged_dot:
    """A dot_general whose lhs has one ragged axis, cut into groups of the sizes that the third operand holds.

    A free ragged axis: each of its rows is multiplied by the part of the rhs that belongs to its group (the axis
    `rhs_group_dimensions`). A contracting one: each group has a sum of its own, and the result a new first axis. A
    batching one: the sizes do not matter. Rows behind the last group give 0. Sizes are a vector, or have the axes
    before the ragged one in front. Source: CHLO.
    """

    attrs = {**dict.fromkeys(_NUMBERS, ()), "precision_config": None}

    @staticmethod
    def infer(lhs: Type, rhs: Type, sizes: Type, *, precision_config: tuple[str, ...] | None, type: Type,  # noqa: A002
              **numbers: tuple[int, ...]) -> Type:  # fmt: skip
        x, y, s = tensor(lhs), tensor(rhs), tensor(sizes)
        ragged, group = numbers["lhs_ragged_dimensions"], numbers["rhs_group_dimensions"]
        require(len(ragged) == 1, "", "the lhs must have one ragged axis, not {r}", r=ragged)
        require(in_range(ragged, x.rank), "", "the ragged axis {r} is no axis of {x}", r=ragged[0], x=x)
        require(in_range(group, y.rank), "", "group dimensions {g} are not all axes of {y}", g=group, y=y)
        require(s.dtype.is_int and s.rank > 0, "", "group sizes must be integers along an axis, not {s}", s=s)
        used = [*numbers["rhs_batching_dimensions"], *numbers["rhs_contracting_dimensions"]]
        require(not set(group) & set(used), "", "group dimensions {g} of the rhs are used otherwise too", g=group)
        for name, t in (("lhs_batching", x), ("lhs_contracting", x), ("rhs_batching", y), ("rhs_contracting", y)):
            axes = numbers[f"{name}_dimensions"]
            require(in_range(axes, t.rank), "", "{n} dimensions {a} are not all axes of {t}", n=name, a=axes, t=t)
        p = _plan(x.rank, numbers)
        want = [x.shape[d] for d in p.prefix]
        ok = s.rank == 1 or same_shape(s.shape[:-1], want)
        require(ok, "", "group sizes {s} must be a vector, or have the axes {w} in front of the groups", s=s, w=want)
        if p.mode == "free":
            ok = len(group) == 1
            require(ok, "", "with a free ragged axis the rhs must have one group dimension, not {g}", g=group)
            ok = same_dim(s.shape[-1], y.shape[p.group])
            require(ok, "", "{n} group sizes for {y} with groups along {g}", n=s.shape[-1], y=y, g=p.group)
        else:
            require(not group, "", "with a {m} ragged axis the rhs has no group dimension", m=p.mode)
        part, out = _part(y, p.group), tensor(type)
        new = [s.shape[-1]] if p.mode == "contracting" else []
        shape = [*new, *(x.shape[d] for d in (*p.dims[0], *p.free))]
        shape += [n for d, n in enumerate(part.shape) if d not in p.dims[1] and d not in p.dims[3]]
        dot_general.infer(x, part, **p.numbers, precision_config=precision_config, algorithm=None,
                          type=out.with_shape(shape[len(new) :]))  # fmt: skip
        return result_is(out, shape, None, "")

    @staticmethod
    def evaluate(lhs: np.ndarray, rhs: np.ndarray, sizes: np.ndarray, *, precision_config: Any, type: TensorType,  # noqa: A002
                 **numbers: tuple[int, ...]) -> np.ndarray:  # fmt: skip
        p = _plan(lhs.ndim, numbers)
        out = np.zeros(type.shape, type.dtype.np)
        inner = type.with_shape(type.shape[p.mode == "contracting" :])
        more = {**p.numbers, "precision_config": precision_config, "algorithm": None, "type": inner}
        product = dot_general.evaluate
        assert product is not None
        if p.mode == "batching":
            return product(lhs, rhs, **more)
        some = np.minimum(sizes, np.uint64(lhs.shape[p.ragged])) if sizes.dtype == np.uint64 else sizes
        ends = np.cumsum(np.clip(some.astype(np.int64), 0, lhs.shape[p.ragged]), axis=-1)
        ends = np.broadcast_to(ends, (*(lhs.shape[d] for d in p.prefix), ends.shape[-1]))
        for g in range(ends.shape[-1]):
            start = ends[..., g - 1] if g else np.zeros_like(ends[..., 0])
            if p.mode == "free":
                of_group = _inside(start, ends[..., g], inner.shape, p.out_prefix, _ragged_out(p))
                out = np.where(of_group, product(lhs, np.take(rhs, g, p.group), **more), out)
            else:
                left = _inside(start, ends[..., g], lhs.shape, p.prefix, p.ragged)
                right = _inside(start, ends[..., g], rhs.shape, p.rhs_prefix, _opposite(p, p.ragged))
                x, y = (np.where(m, v, v.dtype.type(0)) for m, v in ((left, lhs), (right, rhs)))
                out[g] = product(x, y, **more)
        return out.astype(type.dtype.np, copy=False)

    @staticmethod
    def expand(lhs: Op, rhs: Op, sizes: Op, *, precision_config: Any, type: TensorType,  # noqa: A002
               **numbers: tuple[int, ...]) -> Op:  # fmt: skip
        p = _plan(lhs.tensor.rank, numbers)
        if p.mode == "batching":
            return dot_general(lhs, rhs, **p.numbers, precision_config=precision_config, type=type)
        if not all(x.tensor.is_static for x in (lhs, rhs, sizes)) or not type.is_static:
            raise Unsupported("a ragged_dot of sizes known only at run time cannot be compiled")
        return (_by_rows if p.mode == "free" else _by_sums)(p, lhs, rhs, sizes, precision_config, type)

    sharding = unsharded

    @staticmethod
    def cost(lhs: TensorType, rhs: TensorType, sizes: TensorType, *, out: TensorType, **_: Any) -> tuple[int, int]:
        return 2 * lhs.size * out.shape[-1] if out.rank else 2 * lhs.size, lhs.nbytes + rhs.nbytes + out.nbytes

    @staticmethod
    def _example(d: Any, shapes: Sequence[Any], numbers: Sequence[Any], out: Any, index: Any = i32) -> Any:
        types = (TensorType(d, shapes[0]), TensorType(d, shapes[1]), TensorType(index, shapes[2]))
        return types, {**dict(zip(_NUMBERS, numbers, strict=True)), "type": TensorType(*out)}

    examples = [
        _example(f32, ((11, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0,), (0,)), (f32, (11, 7))),
        _example(f32, ((150, 4), (4, 6, 5), (5,)), ((), (), (1,), (0,), (0,), (2,)), (f32, (150, 6))),
        _example(bf16, ((2, 9, 5), (3, 2, 5, 4), (2, 3)), ((0,), (1,), (2,), (2,), (1,), (0,)), (f32, (2, 9, 4)), i64),
        _example(f32, ((2, 11, 5), (2, 5, 7), (2, 3)), ((0,), (0,), (2,), (1,), (2,), ()), (f32, (3, 2, 11, 7))),
        _example(f64, ((11, 5), (11, 7), (4,)), ((), (), (0,), (0,), (0,), ()), (f64, (4, 5, 7))),
        _example(f32, ((3, 4, 5), (3, 5, 2), (3,)), ((0,), (0,), (2,), (1,), (0,), ()), (f32, (3, 4, 2))),
        _example(i32, ((4, 5), (0, 5, 2), (0,)), ((), (), (1,), (1,), (0,), (0,)), (i32, (4, 2))),
        _example(f32, ((0, 5), (2, 5, 2), (2,)), ((), (), (1,), (1,), (0,), (0,)), (f32, (0, 2))),
    ]


def _ragged_out(p: Plan) -> int:
    """The axis of the result that is ragged (mode "free")."""
    return len(p.dims[0]) + p.free.index(p.ragged)


def _inside(start: np.ndarray, end: np.ndarray, shape: Sequence[int], prefix: Sequence[int], axis: int) -> np.ndarray:
    """Which elements of `shape` are between `start` and `end` along `axis`."""
    at = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    order = np.argsort(prefix, kind="stable")
    sizes = [n if d in prefix else 1 for d, n in enumerate(shape)]
    low, high = (np.transpose(x, order).reshape(sizes) for x in (start, end))
    return np.broadcast_to((at >= low) & (at < high), shape)


# -- in terms of simpler ops --------------------------------------------------------------------


def _between(first: Op | None, start: Op, end: Op, shape: Sequence[int], prefix: Sequence[int], axis: int) -> Op:
    """`_inside` as ops; `first` is the number of the first row along the axis, None for 0."""
    at = iota(iota_dimension=axis, type=TensorType(i64, shape))
    if first is not None:
        at = add(at, spread(first, shape, ()))
    low, high = (spread(x, shape, prefix if x.tensor.rank else ()) for x in (start, end))
    return and_(compare(at, low, comparison_direction="GE"), compare(at, high, comparison_direction="LT"))


def _at(axis: int, rank: int, index: Op) -> list[Op]:
    """Start indices: `index` along one axis, 0 along the others."""
    return [index if d == axis else full(0, i64) for d in range(rank)]


def _one(x: Op, axis: int, index: Op) -> Op:
    """`x[..., index, ...]` along an axis."""
    t = x.tensor
    sizes = tuple(1 if d == axis else n for d, n in enumerate(t.shape))
    cut = dynamic_slice(x, *_at(axis, t.rank, index), slice_sizes=sizes)
    return reshape(cut, type=_part(t, axis))


def _size(sizes: Op, g: Op, most: int) -> Op:
    """How much group `g` has, as i64: at most all, and nothing if its size is negative."""
    one = _one(sizes, sizes.tensor.rank - 1, g)
    if one.dtype is u64:
        one = minimum(one, full(most, u64, one.shape))
    one = one if one.dtype is i64 else convert(one, type=one.tensor.with_dtype(i64))
    return minimum(maximum(one, full(0, i64, one.shape)), full(most, i64, one.shape))


def _by_rows(p: Plan, lhs: Op, rhs: Op, sizes: Op, precision: Any, t: TensorType) -> Op:
    """A walk over the groups, and over blocks of rows where all of the lhs has the same groups.

    Each turn multiplies a block by the matrix of a group, and keeps of the result what is of that group. Then it goes
    on to the next block if the group has rows behind this one, else to the next group.
    """
    rows, axis, groups = lhs.shape[p.ragged], _ragged_out(p), sizes.shape[-1]
    height = min(rows, _BLOCK) if sizes.tensor.rank == 1 else rows
    if not groups or not t.size:
        return full(0, t.dtype, t.shape)
    block = t.with_shape(height if d == axis else n for d, n in enumerate(t.shape))
    cut = tuple(height if d == p.ragged else n for d, n in enumerate(lhs.shape))
    state = (TensorType(i64), TensorType(i64), TensorType(i64, sizes.shape[:-1]), t)

    def more(g: Op, first: Op, *_: Op) -> Op:
        return and_(compare(g, full(groups, i64), comparison_direction="LT"),
                    compare(first, full(rows, i64), comparison_direction="LT"))  # fmt: skip

    def turn(g: Op, first: Op, start: Op, out: Op, x: Op, y: Op, s: Op) -> tuple[Op, ...]:
        end = add(start, _size(s, g, x.shape[p.ragged]))
        place = minimum(first, full(rows - height, i64))
        part = dynamic_slice(x, *_at(p.ragged, len(cut), place), slice_sizes=cut)
        product = dot_general(part, _one(y, p.group, g), **p.numbers, precision_config=precision, type=block)
        before = dynamic_slice(out, *_at(axis, t.rank, place), slice_sizes=block.shape)
        kept = select(_between(place, start, end, block.shape, p.out_prefix, axis), product, before)
        out = dynamic_update_slice(out, kept, *_at(axis, t.rank, place))
        following = add(g, full(1, i64))
        if height == rows:
            return following, first, end, out
        is_block_done = compare(end, add(place, full(height, i64)), comparison_direction="GT")
        return (select(is_block_done, g, following), select(is_block_done, add(first, full(height, i64)), first),
                select(is_block_done, start, end), out)  # fmt: skip

    zero = full(0, i64)
    begin = (zero, zero, full(0, i64, sizes.shape[:-1]), full(0, t.dtype, t.shape))
    others = (lhs, rhs, sizes)
    types = [*state, *(o.type for o in others)]
    return while_(*begin, *others, cond=region(types, more), body=region(types, turn)).results()[3]


def _by_sums(p: Plan, lhs: Op, rhs: Op, sizes: Op, precision: Any, t: TensorType) -> Op:
    """A loop over the groups; each multiplies all, with zeros outside of the group on both sides."""
    groups, inner = sizes.shape[-1], t.with_shape(t.shape[1:])
    if not t.size:
        return full(0, t.dtype, t.shape)
    state = (TensorType(i64), TensorType(i64, sizes.shape[:-1]), t)

    def more(g: Op, *_: Op) -> Op:
        return compare(g, full(groups, i64), comparison_direction="LT")

    def turn(g: Op, start: Op, out: Op, x: Op, y: Op, s: Op) -> tuple[Op, ...]:
        end = add(start, _size(s, g, x.shape[p.ragged]))
        left = _between(None, start, end, x.shape, p.prefix, p.ragged)
        right = _between(None, start, end, y.shape, p.rhs_prefix, _opposite(p, p.ragged))
        product = dot_general(select(left, x, full(0, x.dtype, x.shape)), select(right, y, full(0, y.dtype, y.shape)),
                              **p.numbers, precision_config=precision, type=inner)  # fmt: skip
        out = dynamic_update_slice(out, reshape(product, type=t.with_shape((1, *inner.shape))), *_at(0, t.rank, g))
        return add(g, full(1, i64)), end, out

    others = (lhs, rhs, sizes)
    begin = (full(0, i64), full(0, i64, sizes.shape[:-1]), full(0, t.dtype, t.shape))
    types = [*state, *(o.type for o in others)]
    return while_(*begin, *others, cond=region(types, more), body=region(types, turn)).results()[2]
