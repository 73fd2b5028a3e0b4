"""The loops over elements that stand for ops whose regions kernels cannot compute, one per op (`LOOPS`). Imports ir,
ops, rewrite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hilo.ir.dtypes import i64
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.ops.gather import FAR, batch_position
from hilo.ops.reduce import mapped
from hilo.ops.reduce_window import scanned_axis
from hilo.ops.window_axes import Axis, axes
from hilo.passes.element_writer import Writer
from hilo.rewrite.ops import select


def _types(op: Op) -> list[TensorType]:
    """The types of the results."""
    return [t for t in result_types(op.type) if isinstance(t, TensorType)]


def _is_empty(x: Op) -> bool:
    return any(n == 0 for n in x.shape)


def _map(w: Writer, op: Op) -> list[Op]:
    body = op.attrs["body"]
    n = mapped([o.tensor.rank if isinstance(o.type, TensorType) else -1 for o in op.operands], body)
    xs, captured = [w.flat(x) for x in op.operands[:n]], op.operands[n:]

    def step(i: Op, outs: Sequence[Op]) -> list[Op]:
        (value,) = w.inline(body, [*(w.at(x, i) for x in xs), *captured])
        return [w.put(outs[0], value, i)]

    start = w.full(w.zero(op.dtype), op.tensor)
    (done,) = [start] if _is_empty(op) else w.loop(w.sizes(xs[0])[0], [start], step)
    return [w.shaped(done, op.tensor)]


def _reduce(w: Writer, op: Op) -> list[Op]:
    body, dims, types = op.attrs["body"], op.attrs["dimensions"], _types(op)
    n = len(types)
    x, captured = op.operands[0], op.operands[2 * n :]
    order = (*(d for d in range(x.tensor.rank) if d not in dims), *sorted(dims))
    outs = [w.full(w.convert(i, t.dtype), t) for i, t in zip(op.operands[n : 2 * n], types, strict=True)]
    xs = [w.flat(w.transpose(w.convert(v, t.dtype), order)) for v, t in zip(op.operands[:n], types, strict=True)]
    sizes = w.sizes(x)
    terms = w.product([sizes[d] for d in dims])

    def step(i: Op, outs: Sequence[Op]) -> list[Op]:
        k = w.divide(i, terms)
        values = w.inline(body, [*(w.at(o, k) for o in outs), *(w.at(v, i) for v in xs), *captured])
        return [w.put(o, v, k) for o, v in zip(outs, values, strict=True)]

    done = outs if _is_empty(x) else w.loop(w.product(sizes), outs, step)
    return [w.shaped(o, t) for o, t in zip(done, types, strict=True)]


def _reduce_window(w: Writer, op: Op) -> list[Op]:
    a, body, types = op.attrs, op.attrs["body"], _types(op)
    n = len(types)
    moved = axes(a["window_dimensions"], a["window_strides"], a["padding"], a["base_dilations"], a["window_dilations"])
    x, captured = op.operands[0], op.operands[2 * n :]
    scanned = scanned_axis(moved, x.shape)
    backwards = scanned is not None and scanned[1] < 0
    outs = [w.full(w.convert(i, t.dtype), t) for i, t in zip(op.operands[n : 2 * n], types, strict=True)]
    if _is_empty(x) or types[0].size == 0:
        return [w.shaped(o, t) for o, t in zip(outs, types, strict=True)]
    xs = [w.flat(w.convert(v, t.dtype)) for v, t in zip(op.operands[:n], types, strict=True)]
    shape, windows, taps = w.sizes(x), w.sizes(w.shaped(outs[0], types[0])), [w.number(m.size) for m in moved]
    each = w.product(taps)

    def step(i: Op, outs: Sequence[Op]) -> list[Op]:
        k, tap = w.divide(i, each), w.remainder(i, each)
        if backwards:  # a running reduction from the end begins there
            tap = w.subtract(w.subtract(each, 1), tap)
        place, inside = _place(w, moved, shape, w.delinear(k, windows), w.delinear(tap, taps))
        old, new = [w.at(o, k) for o in outs], [w.at(v, place) for v in xs]
        pairs = [*new, *old] if backwards else [*old, *new]
        values = w.where(inside, lambda: w.inline(body, [*pairs, *captured]), lambda: old)
        return [w.put(o, v, k) for o, v in zip(outs, values, strict=True)]

    done = w.loop(w.multiply(w.product(windows), each), outs, step)
    return [w.shaped(o, t) for o, t in zip(done, types, strict=True)]


def _place(w: Writer, moved: Sequence[Axis], shape: Sequence[Op], window: Sequence[Op],
           tap: Sequence[Op]) -> tuple[Op, Op]:  # fmt: skip
    """Where an element of a window is in the flat array, and whether it is there at all."""
    place, inside = w.number(0), w.truth()
    for axis, n, p, k in zip(moved, shape, window, tap, strict=True):
        if not axis.is_plain:
            p = w.subtract(w.plus(w.multiply(p, axis.stride), w.multiply(k, axis.dilation)), axis.low)
            inside = w.both(inside, w.within(p, w.plus(w.multiply(w.subtract(n, 1), axis.base), 1)))
            if axis.base > 1:
                inside = w.both(inside, w.equal(w.remainder(p, axis.base), 0))
                p = w.divide(p, axis.base)
        place = w.plus(w.multiply(place, n), p)
    return place, inside


def _scatter(w: Writer, op: Op) -> list[Op]:
    a, body, types = op.attrs, op.attrs["update_computation"], _types(op)
    n = len(types)
    x, s, u, captured = op.operands[0], op.operands[n], op.operands[n + 1], op.operands[2 * n + 1 :]
    outs = [w.flat(w.convert(v, t.dtype)) for v, t in zip(op.operands[:n], types, strict=True)]
    updates = [w.flat(w.convert(v, t.dtype)) for v, t in zip(op.operands[n + 1 : 2 * n + 1], types, strict=True)]
    vector, to, indices = a["index_vector_dim"], a["scatter_dims_to_operand_dims"], w.flat(s)
    hidden = {*a["inserted_window_dims"], *a["input_batching_dims"]}
    window = dict(zip([d for d in range(x.tensor.rank) if d not in hidden], a["update_window_dims"], strict=True))
    batch = [d for d in range(u.tensor.rank) if d not in a["update_window_dims"]]
    of_batch = dict(zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True))
    shape, indices_shape, updates_shape = w.sizes(x), w.sizes(s), w.sizes(u)

    def step(i: Op, outs: Sequence[Op]) -> list[Op]:
        at = w.delinear(i, updates_shape)

        def component(k: int) -> Op:
            rest = iter([at[d] for d in batch])
            where = [w.number(k) if d == vector else next(rest) for d in range(len(indices_shape))]
            return w.clamped(w.at(indices, w.linear(where, indices_shape)), FAR)

        place, inside = w.number(0), w.truth()
        for d, m in enumerate(shape):
            p = at[window[d]] if d in window else w.number(0)
            if d in to:
                p = w.plus(p, component(to.index(d)))
            elif d in of_batch:
                p = at[batch[batch_position(of_batch[d], vector)]]
            inside = w.both(inside, w.within(p, m))
            place = w.plus(w.multiply(place, m), p)
        old, new = [w.at(o, place) for o in outs], [w.at(v, i) for v in updates]
        values = w.where(inside, lambda: w.inline(body, [*old, *new, *captured]), lambda: old)
        return [w.put(o, v, place) for o, v in zip(outs, values, strict=True)]

    done = outs if _is_empty(x) or _is_empty(u) else w.loop(w.product(updates_shape), outs, step)
    return [w.shaped(o, t) for o, t in zip(done, types, strict=True)]


def _select_and_scatter(w: Writer, op: Op) -> list[Op]:
    a, t = op.attrs, op.tensor
    x, source, init, *captured = op.operands
    moved = axes(a["window_dimensions"] or (1,) * t.rank, a["window_strides"], a["padding"], None, None)
    out = w.full(w.convert(init, t.dtype), t)
    if _is_empty(x) or _is_empty(source):
        return [w.shaped(out, t)]
    values, sources = w.flat(x), w.flat(w.convert(source, t.dtype))
    shape, windows, taps = w.sizes(x), w.sizes(source), [w.number(m.size) for m in moved]
    nowhere = w.number(-1)

    def step(i: Op, outs: Sequence[Op]) -> list[Op]:
        window = w.delinear(i, windows)

        def look(tap: Op, best: Sequence[Op]) -> list[Op]:
            where, old = best
            place, inside = _place(w, moved, shape, window, w.delinear(tap, taps))
            new = w.at(values, place)

            def compare() -> Sequence[Op]:
                return w.where(w.less(nowhere, where), lambda: w.inline(a["select"], [old, new, *captured]),
                               lambda: [w.truth(False)])  # fmt: skip

            (stays,) = w.where(inside, compare, lambda: [w.truth()])
            return [w.add(select(stays, where, place)), w.add(select(stays, old, new))]

        where, _ = w.loop(w.product(taps), [nowhere, w.zero(x.dtype)], look)
        old, new = w.at(outs[0], where), w.at(sources, i)
        scatter: Function = a["scatter"]
        (value,) = w.where(w.less(nowhere, where), lambda: w.inline(scatter, [old, new, *captured]), lambda: [old])
        return [w.put(outs[0], value, where)]

    (done,) = w.loop(w.product(windows), [out], step)
    return [w.shaped(done, t)]


def _sort(w: Writer, op: Op) -> list[Op]:
    """A stable merge sort: runs of 1, 2, 4 ... elements merge from one set of arrays to another."""
    comparator: Function = op.attrs["comparator"]
    k = len(comparator.params) - len(op.operands)
    inputs, captured = op.operands[:k], op.operands[k:]
    if _is_empty(inputs[0]):
        return list(inputs)
    rank = inputs[0].tensor.rank
    axis = op.attrs["dimension"] % rank
    order = (*(d for d in range(rank) if d != axis), axis)
    turned = [w.transpose(x, order) for x in inputs]
    xs, n = [w.flat(x) for x in turned], w.sizes(inputs[0])[axis]

    def merged(width: Op, now: Sequence[Op], spare: Sequence[Op]) -> list[Op]:
        """Neighbouring runs of `width` elements of `now`, merged into `spare`."""

        def step(i: Op, carried: Sequence[Op]) -> list[Op]:
            row = w.multiply(w.divide(i, n), n)
            done = w.remainder(w.subtract(i, row), w.multiply(width, 2))  # of this pair of runs
            start, stop = w.subtract(i, done), w.plus(row, n)
            middle = w.least(w.plus(start, width), stop)
            end, begins = w.least(w.plus(middle, width), stop), w.equal(done, 0)
            left, right = (w.add(select(begins, a, b)) for a, b in zip((start, middle), carried[:2], strict=True))
            x, y = ([w.at(v, p) for v in now] for p in (left, right))
            both = w.both(w.less(left, middle), w.less(right, end))
            pairs = [e for pair in zip(y, x, strict=True) for e in pair]
            (takes,) = w.where(both, lambda: w.inline(comparator, [*pairs, *captured]), lambda: [w.less(right, end)])
            outs = [w.put(o, w.add(select(takes, q, p)), i) for o, p, q in zip(carried[2:], x, y, strict=True)]
            one = w.convert(takes, i64)
            return [w.plus(left, w.subtract(1, one)), w.plus(right, one), *outs]

        return w.loop(w.sizes(now[0])[0], [w.number(0), w.number(0), *spare], step)[2:]

    def turn(carried: Sequence[Op]) -> list[Op]:
        width, now, spare = carried[0], carried[1 : k + 1], carried[k + 1 :]
        return [w.multiply(width, 2), *merged(width, now, spare), *now]

    done = w.repeat([w.number(1), *xs, *xs], lambda carried: w.less(carried[0], n), turn)[1 : k + 1]
    back = [order.index(d) for d in range(rank)]
    return [w.transpose(w.shaped(v, x.tensor), back) for v, x in zip(done, turned, strict=True)]


LOOPS: Final[dict[str, Callable[[Writer, Op], list[Op]]]] = {
    "stablehlo.map": _map,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": _sort,
}
