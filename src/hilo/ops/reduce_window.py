"""Reductions of windows: reduce_window, select_and_scatter. Imports ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, c64, f32, f64, i1, i8, i32, i64
from hilo.ir.module import Function, region
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type, result_types
from hilo.ops.checks import (
    accumulates,
    gives,
    one_input,
    one_or_results,
    one_or_tuple,
    reduced,
    same_shape,
    scalars,
    takes,
    tensor,
    tensors,
)
from hilo.ops.compare import compare
from hilo.ops.elementwise_arith import add, maximum, multiply, subtract
from hilo.ops.numeric import narrow
from hilo.ops.reduce import body_of
from hilo.ops.regions import apply, sole_op
from hilo.ops.sharding import axis_names, distinct
from hilo.ops.window_axes import Axis, axes, one_each, pairs, positive, windows_of


@op("reduce_window")
class reduce_window:
    """Combine the elements of each window with `body`, starting from the init values.

    Operands: N inputs of one shape, N rank-0 init values, then what the body captures. Windows of `window_dimensions`
    elements, `window_dilations` apart, move by `window_strides` over the inputs, between whose elements are
    `base_dilations - 1` holes and around which are `padding` (low, high) places; negative padding cuts off. Each init
    value enters exactly once per window; padding and holes hold no elements. Elements combine in row-major order; how
    they are grouped is open, so the body should be associative. Sums of narrower floats than f32 accumulate in it and
    round once. Spec: reduce_window.
    """

    attrs = {"window_strides": None, "base_dilations": None, "window_dilations": None, "padding": None}

    @staticmethod
    def infer(
        *types: Type,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...] | None,
        base_dilations: tuple[int, ...] | None,
        window_dilations: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        body: Function,
    ) -> Type:
        n = reduced(types, body, "C1", "C13")
        xs, inits = tensors(types[:n]), tensors(types[n : 2 * n], "I2", "init value")
        x = xs[0]
        one_input(xs, types, "C13")
        require(all(same_shape(y.shape, x.shape) for y in xs), "C2", "inputs have several shapes: {xs}", xs=xs)
        accumulated = accumulates(body, xs, types[2 * n :], "C13")
        for y, init in zip(xs, inits, strict=True):
            require(init.dtype is y.dtype, "C3", "the init value {i} of {x} has another element type", i=init, x=y)
            require(init.rank == 0, "I2", "the init value {i} of {x} must have rank 0", i=init, x=y)
        one_each("window_dimensions", window_dimensions, x.rank, "C4", x)
        positive("window_dimensions", window_dimensions, "C5")
        for what, values, rules in (
            ("window_strides", window_strides, ("C6", "C7")),
            ("base_dilations", base_dilations, ("C8", "C9")),
            ("window_dilations", window_dilations, ("C10", "C11")),
        ):
            one_each(what, values, x.rank, rules[0], x)
            positive(what, values, rules[1])
        pairs(padding, x.rank, "C12", x)
        moved = axes(window_dimensions, window_strides, padding, base_dilations, window_dilations)
        return one_or_results([TensorType(e.dtype, windows_of(x, moved)) for e in accumulated])

    @staticmethod
    def evaluate(
        *arrays: np.ndarray,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...] | None,
        base_dilations: tuple[int, ...] | None,
        window_dilations: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        body: Function,
    ) -> Any:
        n = len(body.results)
        moved = axes(window_dimensions, window_strides, padding, base_dilations, window_dilations)
        dtypes = [r.dtype for r in body.results]
        captured = arrays[2 * n :]
        held: list[Any] = [d.np for d in dtypes]
        is_sum = sole_op(body, len(captured)) == "add" and dtypes[0].kind in "fc"
        if is_sum:  # in f64, rounded once
            held = [np.complex128 if dtypes[0].is_complex else np.float64]
        xs = [x.astype(d.np, copy=False).astype(h) for x, d, h in zip(arrays, dtypes, held)]
        shape = tuple(a.count(m) for a, m in zip(moved, xs[0].shape, strict=True))
        out = [np.full(shape, i.astype(h)) for i, h in zip(arrays[n : 2 * n], held, strict=True)]

        def combine(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [a[0] + b[0]] if is_sum else apply(body, [*a, *b], captured, a[0].shape)

        scanned = scanned_axis(moved, xs[0].shape)
        if scanned is not None:
            _scan(out, xs, *scanned, combine)
        elif 0 not in shape:
            _windows(out, xs, moved, combine)
        return one_or_tuple([narrow(out[0], dtypes[0])] if is_sum else out)

    @staticmethod
    def sharding(
        *types: TensorType,
        out: Type,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...] | None,
        base_dilations: tuple[int, ...] | None,
        window_dilations: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        body: Function,
    ) -> str:
        n = len(body.results)
        moved = axes(window_dimensions, window_strides, padding, base_dilations, window_dilations)
        each = distinct([*types, types[0]])
        result = "".join(c if a.is_plain else new for c, new, a in zip(each[0], each.pop(), moved, strict=True))
        return f"{','.join([each[0]] * n + each[n:])}->{','.join([result] * n)}"

    @staticmethod
    def cost(*types: TensorType, out: Type, body: Function, **attrs: Any) -> tuple[int, int]:
        n = len(body.results)
        results = tensors(result_types(out))
        moved = axes(attrs["window_dimensions"], attrs["window_strides"], attrs["padding"], attrs["base_dilations"],
                     attrs["window_dilations"])  # fmt: skip
        work = max(len(body.ops) - len(body.params), 1)
        taps = 1 if scanned_axis(moved, types[0].shape) else int(np.prod([a.size for a in moved], dtype=np.int64))
        return results[0].size * taps * work, sum(t.nbytes for t in types[:n]) + sum(t.nbytes for t in results)

    examples = lambda: [
        (
            (TensorType(f32, (1, 6, 5, 3)), TensorType(f32)),
            {
                "window_dimensions": (1, 3, 2, 1),
                "window_strides": (1, 2, 2, 1),
                "padding": ((0, 0), (1, 1), (0, 1), (0, 0)),
                "body": body_of(maximum, f32),
            },
        ),
        (
            (TensorType(bf16, (2, 9)), TensorType(bf16)),
            {"window_dimensions": (1, 9), "padding": ((0, 0), (8, 0)), "body": body_of(add, bf16)},
        ),
        (
            (TensorType(f32, (37,)), TensorType(f32)),
            {"window_dimensions": (37,), "padding": ((0, 36),), "body": body_of(multiply, f32)},
        ),
        (
            (TensorType(i32, (7, 19)), TensorType(i32)),
            {"window_dimensions": (7, 1), "padding": ((6, 0), (0, 0)), "body": body_of(add, i32)},
        ),
        (
            (TensorType(f64, (5,)), TensorType(f64)),
            {  # a body that is not associative, along the last axis
                "window_dimensions": (5,),
                "padding": ((4, 0),),
                "body": body_of(subtract, f64),
            },
        ),
        (
            (TensorType(i8, (5, 4)), TensorType(i8)),
            {
                "window_dimensions": (3, 2),
                "window_strides": (2, 1),
                "base_dilations": (2, 3),
                "window_dilations": (2, 3),
                "padding": ((-1, 3), (2, -2)),
                "body": body_of(add, i8),
            },
        ),
        (
            (TensorType(f32, (8,)), TensorType(i32, (8,)), TensorType(f32), TensorType(i32)),
            {
                "window_dimensions": (3,),
                "padding": ((1, 1),),
                "body": region(scalars((f32, i32, f32, i32)), lambda a, i, b, j: (maximum(a, b), add(i, j))),
            },
        ),
        (
            (TensorType(f32, (4,)), TensorType(f32), TensorType(f32)),
            {  # the last operand is captured
                "window_dimensions": (2,),
                "body": region(scalars((f32, f32, f32)), lambda a, b, c: add(a, maximum(b, c))),
            },
        ),
        ((TensorType(c64, (3,)), TensorType(c64)), {"window_dimensions": (2,), "body": body_of(add, c64)}),
        ((TensorType(f32), TensorType(f32)), {"window_dimensions": (), "body": body_of(add, f32)}),
        (
            (TensorType(i32, (0, 3)), TensorType(i32)),
            {"window_dimensions": (2, 1), "padding": ((2, 1), (0, 0)), "body": body_of(add, i32)},
        ),
        ((TensorType(f32, (3,)), TensorType(f32)), {"window_dimensions": (5,), "body": body_of(add, f32)}),
    ]


def scanned_axis(moved: Sequence[Axis], shape: Sequence[int]) -> tuple[int, int] | None:
    """(axis, direction) if the windows are running reductions along one axis, up to (or from) each element."""
    special = [d for d, (a, n) in enumerate(zip(moved, shape, strict=True)) if not a.is_plain]
    if len(special) != 1 or any(n == 0 for n in shape):
        return None
    direction = moved[special[0]].scans(shape[special[0]])
    return (special[0], direction) if direction else None


def _scan(out: list[np.ndarray], xs: list[np.ndarray], axis: int, direction: int, combine: Any) -> None:
    rows, news = [np.moveaxis(o, axis, 0) for o in out], [np.moveaxis(x, axis, 0) for x in xs]
    state = [r[0].copy() for r in rows]  # the init values
    for i in range(len(news[0]))[::direction]:
        new = [x[i] for x in news]
        state = combine(state, new) if direction > 0 else combine(new, state)
        for r, s in zip(rows, state, strict=True):
            r[i] = s


def _windows(out: list[np.ndarray], xs: list[np.ndarray], moved: Sequence[Axis], combine: Any) -> None:
    """Combine the elements of all windows: first ones, second ones ..."""
    for tap in np.ndindex(*[a.size for a in moved]):
        found = [a.elements(k, m, n) for a, k, m, n in zip(moved, tap, out[0].shape, xs[0].shape, strict=True)]
        to, source = np.ix_(*(f[0] for f in found)), np.ix_(*(f[1] for f in found))
        if all(len(f[0]) for f in found):
            for o, new in zip(out, combine([o[to] for o in out], [x[source] for x in xs]), strict=True):
                o[to] = new


@op("select_and_scatter")
class select_and_scatter:
    """Scatter each source element to the operand element that `select` chooses in its window; `scatter` combines them.

    Operands: operand, source (one element per window), rank-0 init_value. `select(a, b)` says whether `a` is kept
    against `b`; a window's elements are compared in row-major order, padding holds none, and a window without elements
    scatters nothing. Source elements combine with the init value in row-major order. Spec: select_and_scatter.
    """

    attrs = {"window_dimensions": None, "window_strides": None, "padding": None}

    @staticmethod
    def infer(
        operand: Type,
        source: Type,
        init_value: Type,
        *captures: Type,
        window_dimensions: tuple[int, ...] | None,
        window_strides: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        select: Function,
        scatter: Function,
    ) -> Type:
        x, s, init = tensor(operand), tensor(source), tensor(init_value)
        require(x.dtype is s.dtype, "C1", "{x} and {s} have different element types", x=x, s=s)
        require(len(scatter.results) == 1, "C10", "scatter returns {n} values, not one", n=len(scatter.results))
        (r,) = accumulates(scatter, [x], captures, "C10", "scatter")
        e = TensorType(x.dtype)
        takes(select, [e, e, *captures], "C9", "select")
        gives(select, [TensorType(i1)], "C9", "select")
        require(init.dtype is x.dtype, "C3", "the init value {i} of {x} has another element type", i=init, x=x)
        require(init.rank == 0, "I3", "the init value {i} must have rank 0", i=init)
        one_each("window_dimensions", window_dimensions or (), x.rank, "C4", x)
        positive("window_dimensions", window_dimensions, "C5")
        one_each("window_strides", window_strides, x.rank, "C6", x)
        positive("window_strides", window_strides, "C7")
        pairs(padding, x.rank, "C8", x)
        want = windows_of(x, axes(window_dimensions or (), window_strides, padding, None, None))
        require(same_shape(s.shape, want), "C2", "the source {s} must have the shape {w}", s=s, w=want)
        return x.with_dtype(r.dtype)

    @staticmethod
    def evaluate(
        operand: np.ndarray,
        source: np.ndarray,
        init_value: np.ndarray,
        *captured: np.ndarray,
        window_dimensions: tuple[int, ...] | None,
        window_strides: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        select: Function,
        scatter: Function,
    ) -> np.ndarray:
        from hilo.ops.scatter import combine_at

        moved = axes(window_dimensions or (1,) * operand.ndim, window_strides, padding, None, None)
        kept = np.zeros(source.shape, operand.dtype)
        where = np.full(source.shape, -1, np.int64)  # the position of what is kept
        positions = np.arange(operand.size).reshape(operand.shape)
        for tap in np.ndindex(*[a.size for a in moved]):
            found = [a.elements(k, m, n) for a, k, m, n in zip(moved, tap, source.shape, operand.shape, strict=True)]
            if not all(len(f[0]) for f in found):
                continue
            to, at = np.ix_(*(f[0] for f in found)), np.ix_(*(f[1] for f in found))
            old, new = kept[to], operand[at]
            stays = apply(select, [old, new], captured, old.shape)[0] & (where[to] >= 0)
            kept[to] = np.where(stays, old, new)
            where[to] = np.where(stays, where[to], positions[at])
        t = tensors(scatter.result_types)[0].dtype.np
        out = [np.full(operand.size, init_value.astype(t))]
        flat = where.reshape(-1)
        chosen = source.astype(t).reshape(-1)[flat >= 0]
        combine_at(out, flat[flat >= 0], [chosen], scatter, captured)
        return out[0].reshape(operand.shape)

    @staticmethod
    def sharding(
        *types: TensorType,
        out: TensorType,
        window_dimensions: tuple[int, ...] | None,
        window_strides: tuple[int, ...] | None,
        padding: tuple[tuple[int, int], ...] | None,
        **_: Any,
    ) -> str:
        rank = types[0].rank
        moved = axes(window_dimensions or (1,) * rank, window_strides, padding, None, None)
        names = axis_names(3 * rank + sum(t.rank for t in types[3:]))
        x = names[:rank]
        s, r = ("".join(c if a.is_plain else new for c, new, a in zip(x, fresh, moved))
                for fresh in (names[rank:], names[2 * rank :]))  # fmt: skip
        rest = iter(names[3 * rank :])
        captured = ["".join(next(rest) for _ in range(t.rank)) for t in types[3:]]
        return f"{','.join([x, s, '', *captured])}->{r}"

    @staticmethod
    def cost(*types: TensorType, out: TensorType, **attrs: Any) -> tuple[int, int]:
        taps = int(np.prod(attrs["window_dimensions"] or (), dtype=np.int64))
        return types[1].size * (taps + 1), types[0].nbytes + types[1].nbytes + out.nbytes

    examples = lambda: [
        (
            (TensorType(f32, (1, 5, 4, 3)), TensorType(f32, (1, 3, 2, 3)), TensorType(f32)),
            {
                "window_dimensions": (1, 3, 2, 1),
                "window_strides": (1, 2, 2, 1),
                "padding": ((0, 0), (1, 1), (0, 0), (0, 0)),
                "select": region(scalars((f32, f32)), lambda a, b: compare(a, b, comparison_direction="GE")),
                "scatter": body_of(add, f32),
            },
        ),
        (
            (TensorType(i32, (6,)), TensorType(i32, (4,)), TensorType(i32)),
            {
                "window_dimensions": (3,),
                "select": region(scalars((i32, i32)), lambda a, b: compare(a, b, comparison_direction="LT")),
                "scatter": body_of(add, i32),
            },
        ),
        (
            (TensorType(i64), TensorType(i64), TensorType(i64)),
            {
                "window_dimensions": (),
                "select": region(scalars((i64, i64)), lambda a, b: compare(a, b, comparison_direction="GE")),
                "scatter": body_of(add, i64),
            },
        ),
        (
            (TensorType(f32, (0, 2)), TensorType(f32, (0, 2)), TensorType(f32)),
            {
                "window_dimensions": (1, 1),
                "select": region(scalars((f32, f32)), lambda a, b: compare(a, b, comparison_direction="GE")),
                "scatter": body_of(add, f32),
            },
        ),
    ]


