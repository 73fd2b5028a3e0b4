"""Random ops with regions of any kind: reductions, windows, scatters, sorts, maps. Imports ir, ops.

What the specification leaves open is kept out, so that all ways to run a program must agree: reductions combine by
functions that are associative, written in roundabout ways; comparators order keys. Where the order is fixed (scatters,
windows, reductions of one element) a region is any random program. Regions compute exactly, and may capture any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.ir import dtypes
from hilo.ir.dtypes import DType, i1, i32, i64
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.testing.draw import any_dtype, constant, stablehlo

if TYPE_CHECKING:
    from hilo.testing.generate import Scope

Combine = Callable[[Op, Op], Op]
ONE: Final = (1,)


# ---- associative functions of two values, and detours to them
def combination(scope: Scope, d: DType) -> Combine:
    """A random function of two values of type `d`, as a region may have it. Combined in any grouping, values give the
    same result."""
    if scope.r.random() < 0.15:
        return scope.r.choice((lambda a, b: a, lambda a, b: b))
    plain = _plain(scope, d)
    return plain if scope.r.random() < 0.3 else scope.r.choice(DETOURS)(scope, d, plain)


def _plain(scope: Scope, d: DType) -> Combine:
    """One op, commutative too."""
    names = {"f": ("maximum", "minimum"), "b": ("and", "or", "xor", "add")}
    name = scope.r.choice(names.get(d.kind, ("add", "multiply", "maximum", "minimum", "and", "or", "xor")))
    if d.is_complex:
        raise ValueError("complex numbers combine with rounding")
    return lambda a, b: stablehlo(name, a, b)


def _less(a: Op, b: Op) -> Op:
    return stablehlo("compare", a, b, comparison_direction="LT")


def _swap(scope: Scope, d: DType, f: Combine) -> Combine:
    return lambda a, b: f(b, a)


def _branch(scope: Scope, d: DType, f: Combine) -> Combine:
    s = TensorType(d)
    return lambda a, b: stablehlo("if", _less(a, b), a, b, true_branch=region([s, s], f),
                                  false_branch=region([s, s], lambda x, y: f(y, x)))  # fmt: skip


def _case(scope: Scope, d: DType, f: Combine) -> Combine:
    s = TensorType(d)
    branches = tuple(region([s, s], g) for g in (f, lambda x, y: f(y, x), f))
    return lambda a, b: stablehlo("case", stablehlo("convert", _less(a, b), type=TensorType(i32)), a, b,
                                  branches=branches)  # fmt: skip


def _as_tensors(scope: Scope, d: DType, f: Combine) -> Combine:
    def g(a: Op, b: Op) -> Op:
        one = TensorType(d, ONE)
        x, y = (stablehlo("reshape", v, type=one) for v in (a, b))
        both = stablehlo("concatenate", x, y, dimension=0)
        last = stablehlo("slice", both, start_indices=ONE, limit_indices=(2,), strides=ONE)
        return stablehlo("reshape", f(x, last), type=TensorType(d))

    return g


def _reduced(scope: Scope, d: DType, f: Combine) -> Combine:
    """Reduced once more: the second value alone, beginning with the first."""
    body = region([TensorType(d)] * 2, f)
    return lambda a, b: stablehlo("reduce", stablehlo("reshape", b, type=TensorType(d, ONE)), a, dimensions=(0,),
                                  body=body)  # fmt: skip


def _mapped(scope: Scope, d: DType, f: Combine) -> Combine:
    body = region([TensorType(d)] * 2, f)
    return lambda a, b: stablehlo("map", a, b, dimensions=(), body=body)


def _turns(scope: Scope, d: DType, f: Combine) -> Combine:
    """In a loop of one turn."""
    s, counter = TensorType(d), TensorType(i32)
    cond = region([counter, s, s], lambda i, *_: _less(i, constant(1, counter)))
    body = region([counter, s, s], lambda i, a, b: (stablehlo("add", i, constant(1, counter)), f(a, b)))

    def g(a: Op, b: Op) -> Op:
        return stablehlo("while", constant(0, counter), a, b, cond=cond, body=body).results()[1]

    return g


def _bits(scope: Scope, d: DType, f: Combine) -> Combine:
    """With bits turned, and turned back."""
    if not d.is_int:
        raise ValueError("bits of integers only")
    other = dtypes.dtype(f"{'u' if d.kind == 'i' else 'i'}{d.bits}")

    def turned(x: Op, to: DType) -> Op:
        return stablehlo("bitcast_convert", stablehlo("not", x), type=TensorType(to))

    return lambda a, b: turned(turned(f(a, b), other), d)


def _called(scope: Scope, d: DType, f: Combine) -> Combine:
    callee = scope.function(region([TensorType(d)] * 2, f))
    return lambda a, b: callee(a, b)


DETOURS: Final = (_swap, _branch, _case, _as_tensors, _reduced, _mapped, _turns, _bits, _called)


# ---- ways to make an op
def _inputs(scope: Scope, count: int, where: Callable[[Op], bool]) -> list[Op]:
    """Values of one shape, of any element types."""
    x = scope.pick(where=where)
    return [x, *(scope.value(x.tensor.with_dtype(any_dtype(scope.r))) for _ in range(count - 1))]


def _several(scope: Scope) -> int:
    return scope.r.choice((1, 1, 1, 2, 3))


def _scalars(values: Sequence[Op]) -> list[TensorType]:
    return [TensorType(v.dtype) for v in values]


def _any_region(scope: Scope, params: Sequence[TensorType], results: Sequence[TensorType],
                exact: bool = True) -> tuple[Function, list[Op]]:  # fmt: skip
    """A random region that computes exactly, and what it captures."""
    captured = [scope.pick() for _ in range(scope.r.choice((0, 0, 1, 2)))]
    body = scope.body([*params, *(c.tensor for c in captured)], results, exact=exact)
    return body, captured


def _combining(scope: Scope, values: Sequence[Op]) -> tuple[Function, list[Op]]:
    """A region that combines each of several values by an associative function, and what it captures."""
    combine = [combination(scope, v.dtype) for v in values]
    captured: list[Op] = []
    if scope.r.random() < 0.3 and values[0].dtype.kind in "iub":
        captured = [scope.value(TensorType(values[0].dtype))]
        first = _plain(scope, values[0].dtype)
        combine[0] = first
    n = len(values)

    def build(*params: Op) -> list[Op]:
        out = [f(a, b) for f, a, b in zip(combine, params[:n], params[n : 2 * n], strict=True)]
        return [combine[0](out[0], c) for c in params[2 * n :]] + out[len(captured) :]

    s = _scalars(values)
    return region([*s, *s, *_scalars(captured)], build), captured


def reduce(scope: Scope) -> Op | None:
    """Several values at once; of single elements by any region."""
    if scope.depth > 2:
        return None
    r = scope.r
    xs = _inputs(scope, _several(scope), lambda v: True)
    dims = tuple(r.sample(range(xs[0].tensor.rank), r.randint(0, xs[0].tensor.rank)))
    inits = [scope.value(s) for s in _scalars(xs)]
    single = int(np.prod([xs[0].shape[d] for d in dims])) <= 1
    s = _scalars(xs)
    body, captured = _any_region(scope, [*s, *s], s) if single and r.random() < 0.5 else _combining(scope, xs)
    return stablehlo("reduce", *xs, *inits, *captured, dimensions=dims, body=body)


def reduce_window(scope: Scope) -> Op | None:
    """By any region: elements of a window combine in order."""
    if scope.depth > 2:
        return None
    r = scope.r
    xs = _inputs(scope, _several(scope), lambda v: v.tensor.size <= 200)
    inits, s = [scope.value(t) for t in _scalars(xs)], _scalars(xs)
    body, captured = _any_region(scope, [*s, *s], s) if r.random() < 0.6 else _combining(scope, xs)
    shape = xs[0].shape
    if shape and r.random() < 0.3:  # a running reduction
        d = r.randrange(len(shape))
        size = tuple(max(n, 1) if k == d else 1 for k, n in enumerate(shape))
        ends = [(n - 1, 0) for n in size]
        pads = tuple(p if r.random() < 0.5 else p[::-1] for p in ends)
        return stablehlo("reduce_window", *xs, *inits, *captured, window_dimensions=size, padding=pads, body=body)
    numbers: dict[str, Any] = {
        name: tuple(r.choice((1, 1, 2, 3)) for _ in shape)
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    }
    pads = tuple((r.randint(-1, 2), r.randint(-1, 2)) for _ in shape)
    return stablehlo("reduce_window", *xs, *inits, *captured, **numbers, padding=pads, body=body)


def select_and_scatter(scope: Scope) -> Op | None:
    """Any choice, any combination."""
    if scope.depth > 2:
        return None
    r, x = scope.r, scope.pick(where=lambda v: v.tensor.size <= 100)
    size, strides = (tuple(r.choice((1, 2, 3)) for _ in x.shape) for _ in range(2))
    pads = tuple((r.randint(-1, 1), r.randint(0, 2)) for _ in x.shape)
    counts = [max(0, (n + a + b - m) // k + 1) if n + a + b >= m else 0
              for n, m, k, (a, b) in zip(x.shape, size, strides, pads, strict=True)]  # fmt: skip
    source, s = scope.value(x.tensor.with_shape(counts)), TensorType(x.dtype)
    captured = [scope.pick() for _ in range(r.choice((0, 0, 1)))]
    types = [s, s, *(c.tensor for c in captured)]
    select, scatter = scope.body(types, [TensorType(i1)], exact=True), scope.body(types, [s], exact=True)
    return stablehlo("select_and_scatter", x, source, scope.value(s), *captured, window_dimensions=size,
                     window_strides=strides, padding=pads, select=select, scatter=scatter)  # fmt: skip


def _indices(scope: Scope, shape: Sequence[int]) -> Op:
    """Index vectors, most of them small numbers."""
    t = TensorType(scope.r.choice((i32, i64, dtypes.u8, dtypes.i16)), shape)
    if scope.r.random() < 0.2:
        return scope.value(t)
    small = [scope.r.randint(-1, 4) for _ in range(t.size)]
    return constant(np.array(small, np.int64).reshape(t.shape), t)


def _index_dims(scope: Scope, x: Op) -> tuple[list[int], list[int], list[int], list[int]]:
    """Which axes of `x` are batching, indexed, and left out of windows; the sizes of the index batch."""
    r, rank = scope.r, x.tensor.rank
    axes = r.sample(range(rank), rank)
    batching = sorted(axes[: r.choice((0, 0, 1))]) if rank else []
    others = [d for d in axes if d not in batching]
    indexed = others[: r.randint(0, len(others))]
    hidden = sorted(r.sample(others, r.randint(0, len(others))))
    return batching, indexed, hidden, [r.randint(0, 4) for _ in range(r.randint(0, 2))]


def scatter(scope: Scope) -> Op | None:
    """Any dimension numbers; any region, since updates are applied in order."""
    if scope.depth > 2:
        return None
    r = scope.r
    xs = _inputs(scope, r.choice((1, 1, 2)), lambda v: v.tensor.rank <= 3)
    x = xs[0]
    batching, indexed, hidden, batch = _index_dims(scope, x)
    kept = [d for d in range(x.tensor.rank) if d not in hidden and d not in batching]
    places = sorted(r.sample(range(len(batch) + len(batching)), len(batching)))  # of batching axes among the batch's
    for p, d in zip(places, batching, strict=True):
        batch.insert(p, x.shape[d])
    vector = r.randint(0, len(batch))
    indices = _indices(scope, [*batch[:vector], len(indexed), *batch[vector:]])
    windows = sorted(r.sample(range(len(batch) + len(kept)), len(kept)))
    sizes, rest = iter([r.randint(0, x.shape[d]) for d in kept]), iter(batch)
    shape = [next(sizes) if d in windows else next(rest) for d in range(len(batch) + len(kept))]
    updates = [scope.value(v.tensor.with_shape(shape)) for v in xs]
    s = _scalars(xs)
    body, captured = _any_region(scope, [*s, *s], s) if r.random() < 0.6 else _combining(scope, xs)
    return stablehlo("scatter", *xs, indices, *updates, *captured, update_window_dims=tuple(windows),
                     inserted_window_dims=tuple(hidden), input_batching_dims=tuple(batching),
                     scatter_indices_batching_dims=tuple(p + (p >= vector) for p in places),
                     scatter_dims_to_operand_dims=tuple(indexed), index_vector_dim=vector, indices_are_sorted=False,
                     unique_indices=False, update_computation=body)  # fmt: skip


def sort(scope: Scope) -> Op | None:
    """By keys that any region computes; of several operands, the second one's where the first ones' are equal."""
    if scope.depth > 2:
        return None
    r = scope.r
    xs = _inputs(scope, r.choice((1, 2, 2, 3)), lambda v: v.tensor.rank > 0)
    captured = [scope.pick() for _ in range(r.choice((0, 0, 1)))]
    extra = [c.tensor for c in captured]
    direction = r.choice(("LT", "GT"))
    keys = []
    for x in xs[: r.randint(1, 2)]:
        kind = i32 if x.dtype.kind not in "iu" or r.random() < 0.3 else x.dtype
        keys.append(scope.body([TensorType(x.dtype), *extra], [TensorType(kind)], exact=True))

    def build(*params: Op) -> Op:
        from hilo.rewrite.bodies import instantiate

        shared = params[2 * len(xs) :]
        less: Op | None = None
        for k in reversed(range(len(keys))):
            a, b = (instantiate(keys[k], [params[2 * k + j], *shared])[1][0] for j in (0, 1))
            first = stablehlo("compare", a, b, comparison_direction=direction)
            if less is not None:
                equal = stablehlo("compare", a, b, comparison_direction="EQ")
                first = stablehlo("or", first, stablehlo("and", equal, less))
            less = first
        assert less is not None
        return less

    comparator = region([t for x in xs for t in [TensorType(x.dtype)] * 2] + extra, build)
    return stablehlo("sort", *xs, *captured, dimension=r.randrange(xs[0].tensor.rank), is_stable=True,
                     comparator=comparator)  # fmt: skip


def map_(scope: Scope) -> Op | None:
    """Any region on each element."""
    if scope.depth > 2:
        return None
    xs = _inputs(scope, _several(scope), lambda v: True)
    if not xs[0].tensor.rank:  # what it captured would be more inputs
        xs = xs[:1]
        body, captured = scope.body(_scalars(xs), [TensorType(any_dtype(scope.r))], exact=True), []
    else:
        body, captured = _any_region(scope, _scalars(xs), [TensorType(any_dtype(scope.r))], exact=False)
    return stablehlo("map", *xs, *captured, dimensions=tuple(range(xs[0].tensor.rank)), body=body)


def gather(scope: Scope) -> Op:
    """Any dimension numbers."""
    r, x = scope.r, scope.pick(where=lambda v: v.tensor.rank <= 3)
    batching, indexed, hidden, batch = _index_dims(scope, x)
    places = sorted(r.sample(range(len(batch) + len(batching)), len(batching)))
    for p, d in zip(places, batching, strict=True):
        batch.insert(p, x.shape[d])
    vector = r.randint(0, len(batch))
    indices = _indices(scope, [*batch[:vector], len(indexed), *batch[vector:]])
    kept = [d for d in range(x.tensor.rank) if d not in hidden and d not in batching]
    sizes = tuple(min(1, n) if d in hidden or d in batching else r.randint(0, n) for d, n in enumerate(x.shape))
    offsets = sorted(r.sample(range(len(batch) + len(kept)), len(kept)))
    return stablehlo("gather", x, indices, offset_dims=tuple(offsets), collapsed_slice_dims=tuple(hidden),
                     operand_batching_dims=tuple(batching),
                     start_indices_batching_dims=tuple(p + (p >= vector) for p in places),
                     start_index_map=tuple(indexed), index_vector_dim=vector, slice_sizes=sizes,
                     indices_are_sorted=False)  # fmt: skip


WAYS: Final[tuple[Callable[[Scope], Op | None], ...]] = (
    reduce, reduce_window, select_and_scatter, scatter, sort, map_, gather,
)  # fmt: skip
