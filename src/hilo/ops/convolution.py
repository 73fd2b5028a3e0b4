"""Convolution. Imports ir; `expand` brings it to one layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.errors import VerifyError, require
from hilo.ir.dtypes import bf16, c64, f32, f64, i1, i8, i32, u8
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type
from hilo.later import Later
from hilo.ops.checks import in_range, result_is, same_dim, tensor, unique
from hilo.ops.dot import dot_general
from hilo.ops.numeric import narrow
from hilo.ops.sharding import axis_names
from hilo.ops.window_axes import Axis, axes, one_each, pairs, positive

if TYPE_CHECKING:
    from hilo.ops import shape
else:
    shape = Later("hilo.ops.shape")

DIMENSIONS = (
    "input_batch_dimension", "input_spatial_dimensions", "input_feature_dimension",
    "kernel_spatial_dimensions", "kernel_input_feature_dimension", "kernel_output_feature_dimension",
    "output_batch_dimension", "output_spatial_dimensions", "output_feature_dimension",
)  # fmt: skip


@op("convolution", typed=True)
class convolution:
    """Sum of products of windows of lhs with rhs, over window positions and input features.

    Operands: lhs (batch, spatial and feature axes, as the dimension numbers say), rhs (spatial, input feature, output
    feature axes). Windows are those of reduce_window: `window_strides`, `padding` (negative padding cuts off),
    `lhs_dilation` (holes between lhs elements), `rhs_dilation` (between window positions); `window_reversal` turns rhs
    around. Features (or batches) fall into `feature_group_count` (`batch_group_count`) groups that do not mix. The
    result's element type may be wider than the operands'. Padding and holes are left out of the sums, so that an
    infinite weight does not make NaN there. Integers wrap around in the result's type; f16 and bf16 accumulate in f32
    and round once. Spec: convolution.
    """

    attrs = {
        "window_strides": None,
        "padding": None,
        "lhs_dilation": None,
        "rhs_dilation": None,
        "window_reversal": None,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision_config": None,
    }

    @staticmethod
    def infer(
        lhs: Type,
        rhs: Type,
        *,
        type: Type,  # noqa: A002
        **attrs: Any,
    ) -> Type:
        x, w = tensor(lhs), tensor(rhs)
        d = checked_dimensions(x, w, attrs)
        n = x.rank - 2
        for what, rules in (("window_strides", ("C2", "C3")), ("lhs_dilation", ("C5", "C6")),
                            ("rhs_dilation", ("C7", "C8"))):  # fmt: skip
            one_each(what, attrs[what], n, rules[0], x)
            positive(what, attrs[what], rules[1])
        pairs(attrs["padding"], n, "C4", x)
        one_each("window_reversal", attrs["window_reversal"], n, "C9", x)
        groups, batches = attrs["feature_group_count"], attrs["batch_group_count"]
        require(groups > 0, "C21", "feature_group_count {g} must be positive", g=groups)
        require(batches > 0, "C22", "batch_group_count {g} must be positive", g=batches)
        ok = groups == 1 or batches == 1
        require(ok, "C23", "only one of the group counts {a}, {b} may exceed 1", a=groups, b=batches)
        _divides(batches, x, d["input_batch_dimension"], "C10")
        _divides(groups, x, d["input_feature_dimension"], "C11")
        _divides(batches, w, d["kernel_output_feature_dimension"], "C15")
        _divides(groups, w, d["kernel_output_feature_dimension"], "C16")
        features, mine = x.shape[d["input_feature_dimension"]], w.shape[d["kernel_input_feature_dimension"]]
        ok = not isinstance(features, int) or same_dim(features // groups, mine)
        require(ok, "C14", "the kernel {w} takes {m} input features, but a group of {x} has {n}", w=w, m=mine, x=x,
                n=features // groups if isinstance(features, int) else features)  # fmt: skip
        precision = attrs["precision_config"]
        require(precision is None or len(precision) <= 2, "C24", "precision_config {p} needs two entries", p=precision)
        require(x.dtype is w.dtype, "C27", "{x} and {w} have different element types", x=x, w=w)
        t = tensor(type)
        require(t.rank == x.rank, "C26", "the result {t} must have rank {r}", t=t, r=x.rank)
        shape: list[Any] = [0] * x.rank
        batch = x.shape[d["input_batch_dimension"]]
        shape[d["output_batch_dimension"]] = batch // batches if isinstance(batch, int) else Dim()
        shape[d["output_feature_dimension"]] = w.shape[d["kernel_output_feature_dimension"]]
        spatial = zip(d["input_spatial_dimensions"], d["output_spatial_dimensions"], strict=True)
        for a, (i, o) in zip(windows(w, attrs), spatial, strict=True):
            shape[o] = a.count(x.shape[i]) if isinstance(a.size, int) else Dim()
        t = result_is(type, shape, None, "C25")
        require(t.dtype.kind == x.dtype.kind, "C27", "the result {t} has another kind of elements than {x}", t=t, x=x)
        return t

    @staticmethod
    def evaluate(lhs: np.ndarray, rhs: np.ndarray, *, type: TensorType, **attrs: Any) -> np.ndarray:  # noqa: A002
        dtype = type.dtype
        wide: Any = {"f": np.float64, "c": np.complex128, "i": np.int64, "u": np.uint64, "b": np.int64}[dtype.kind]
        x = np.transpose(lhs, _input_order(attrs)).astype(wide)
        w = np.transpose(rhs, _kernel_order(attrs)).astype(wide)
        x, groups = _fold_batch_groups(x, attrs)
        moved = windows(TensorType(f32, rhs.shape), attrs)
        reversal = attrs["window_reversal"] or (False,) * len(moved)
        count = [a.count(n) for a, n in zip(moved, x.shape[1:-1], strict=True)]
        inputs, outputs = w.shape[-2], w.shape[-1] // groups
        out = np.zeros((x.shape[0], *count, groups, outputs), wide)
        x = x.reshape(*x.shape[:-1], groups, inputs)
        for tap in np.ndindex(*w.shape[:-2]):
            found = [a.elements(k, m, n) for a, k, m, n in zip(moved, tap, count, x.shape[1:-2], strict=True)]
            at = tuple(a.size - 1 - k if r else k for a, k, r in zip(moved, tap, reversal, strict=True))
            weights = np.moveaxis(w[at].reshape(inputs, groups, outputs), 1, 0)
            chosen = x[(slice(None), *np.ix_(*(f[1] for f in found)))] if found else x
            places = chosen.shape[:-2]
            part = np.matmul(np.moveaxis(chosen, -2, 0).reshape(groups, prod(places), inputs), weights)
            to = (slice(None), *np.ix_(*(f[0] for f in found))) if found else ()
            out[to] += np.moveaxis(part.reshape(groups, *places, outputs), 0, -2)
        flat = out.reshape(x.shape[0], *count, w.shape[-1])
        if dtype.kind in "fc":
            result = narrow(flat, dtype)
        else:
            result = flat != 0 if dtype.kind == "b" else flat.astype(dtype.np)
        return np.ascontiguousarray(np.transpose(result, np.argsort(_output_order(attrs))))

    @staticmethod
    def expand(lhs: Op, rhs: Op, *, type: TensorType, **attrs: Any) -> Op | None:  # noqa: A002
        """The same as [b, 0, f]x[0, i, o]->[b, 0, f] without batch groups; None if it is that."""
        before = _without_reverse(rhs, attrs)
        if before is not None:
            return convolution(lhs, before[0], type=type, **{**attrs, "window_reversal": before[1]})
        moved = windows(rhs.tensor, attrs)
        pointwise = all(a == Axis(a.size) and a.size == n for a, n in
                        zip(moved, (lhs.shape[d] for d in attrs["input_spatial_dimensions"]), strict=True))  # fmt: skip
        if attrs["feature_group_count"] == attrs["batch_group_count"] == 1 and type.dtype.kind != "b":
            if all(a.is_plain for a in moved):
                return _as_dot(lhs, rhs, type, attrs, ())
            if pointwise and not any(attrs["window_reversal"] or ()):
                return _as_dot(lhs, rhs, type, attrs, attrs["input_spatial_dimensions"])
        static = lhs.tensor.is_static and rhs.tensor.is_static
        size = [rhs.shape[d] for d in attrs["kernel_spatial_dimensions"]]
        turned = tuple(d for d, r in enumerate(attrs["window_reversal"] or ()) if r and size[d] != 1)
        if is_canonical(attrs, lhs.tensor.rank) and (static or not turned):
            return None
        x = _transposed(lhs, _input_order(attrs))
        w = _transposed(rhs, _kernel_order(attrs))
        if turned and not static:
            w = shape.reverse(w, dimensions=turned)
        groups = attrs["feature_group_count"]
        if attrs["batch_group_count"] > 1:  # groups of batches side by side are groups of features
            groups = attrs["batch_group_count"]
            n, *spatial, c = x.shape
            split = shape.reshape(x, type=TensorType(x.dtype, (groups, n // groups, *spatial, c)))
            moved_in = shape.transpose(split, permutation=(*range(1, split.tensor.rank - 1), 0, split.tensor.rank - 1))
            x = shape.reshape(moved_in, type=TensorType(x.dtype, (n // groups, *spatial, groups * c)))
        order = _output_order(attrs)
        kept = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "precision_config")
        window = {k: attrs[k] for k in kept}
        if turned and static:
            window["window_reversal"] = attrs["window_reversal"]
        out = convolution(x, w, feature_group_count=groups, type=type.with_shape(type.shape[d] for d in order),
                          **window, **canonical_dimensions(x.tensor.rank))  # fmt: skip
        return _transposed(out, np.argsort(order).tolist())

    @staticmethod
    def sharding(lhs: TensorType, rhs: TensorType, *, out: TensorType, **attrs: Any) -> str:
        """Batches and output features go together; input features are summed; windows reach over spatial axes."""
        names = iter(axis_names(3 * lhs.rank))
        x, w, r = ([next(names) for _ in range(lhs.rank)] for _ in range(3))
        if attrs["batch_group_count"] == 1:
            r[attrs["output_batch_dimension"]] = x[attrs["input_batch_dimension"]]
            if attrs["feature_group_count"] == 1:
                w[attrs["kernel_input_feature_dimension"]] = x[attrs["input_feature_dimension"]]
                r[attrs["output_feature_dimension"]] = w[attrs["kernel_output_feature_dimension"]]
        for a, i, o in zip(windows(rhs, attrs), attrs["input_spatial_dimensions"], attrs["output_spatial_dimensions"]):
            if a.is_plain:
                r[o] = x[i]
        return f"{''.join(x)},{''.join(w)}->{''.join(r)}"

    @staticmethod
    def cost(lhs: TensorType, rhs: TensorType, *, out: TensorType, **attrs: Any) -> tuple[int, int]:
        terms = rhs.size // max(rhs.shape[attrs["kernel_output_feature_dimension"]], 1)
        return 2 * out.size * terms, lhs.nbytes + rhs.nbytes + out.nbytes


def canonical_dimensions(rank: int) -> dict[str, Any]:
    """The dimension numbers [b, 0, f]x[0, i, o]->[b, 0, f]."""
    s = tuple(range(rank - 2))
    inner = tuple(d + 1 for d in s)
    return dict(zip(DIMENSIONS, (0, inner, rank - 1, s, rank - 2, rank - 1, 0, inner, rank - 1), strict=True))


def is_canonical(attrs: dict[str, Any], rank: int) -> bool:
    """Whether a convolution has those dimension numbers and no batch groups. Windows may be turned around."""
    own = all(attrs[k] == v for k, v in canonical_dimensions(rank).items())
    return own and attrs["batch_group_count"] == 1


def windows(rhs: TensorType, attrs: Any) -> tuple[Axis, ...]:
    """How windows move along the spatial axes."""
    size = [rhs.shape[d] for d in attrs["kernel_spatial_dimensions"]]
    return axes(size, attrs["window_strides"], attrs["padding"], attrs["lhs_dilation"], attrs["rhs_dilation"])


def checked_dimensions(x: TensorType, w: TensorType, attrs: dict[str, Any]) -> dict[str, Any]:
    """The dimension numbers, known to be valid afterwards."""
    require(x.rank == w.rank, "C1", "{x} and {w} must have one rank", x=x, w=w)
    require(x.rank >= 2, "C13", "{x} must have an axis for the batch and one for the features", x=x)
    for side, t, rules, fields in (
        ("input", x, ("C12", "C13"), DIMENSIONS[:3]),
        ("kernel", w, ("C17", "C18"), DIMENSIONS[3:6]),
        ("output", x, ("C19", "C20"), DIMENSIONS[6:]),
    ):
        dims: list[int] = []
        for f in fields:
            if f not in attrs:
                raise VerifyError(f"attribute '{f}' is missing")
            dims += attrs[f] if isinstance(attrs[f], tuple) else (attrs[f],)
        one_each(f"{side}_spatial_dimensions", attrs[f"{side}_spatial_dimensions"], t.rank - 2, rules[0], t)
        ok = unique(dims) and in_range(dims, t.rank)
        require(ok, rules[1], "{s} dimensions {d} must be all axes of a tensor of rank {r}", s=side, d=dims, r=t.rank)
    return attrs


def _divides(groups: int, t: TensorType, d: int, rule: str) -> None:
    n = t.shape[d]
    ok = not isinstance(n, int) or n % groups == 0
    require(ok, rule, "axis {d} of {t} does not fall into {g} groups", d=d, t=t, g=groups)


def _input_order(attrs: Any) -> list[int]:
    return [attrs["input_batch_dimension"], *attrs["input_spatial_dimensions"], attrs["input_feature_dimension"]]


def _kernel_order(attrs: Any) -> list[int]:
    return [*attrs["kernel_spatial_dimensions"], attrs["kernel_input_feature_dimension"],
            attrs["kernel_output_feature_dimension"]]  # fmt: skip


def _output_order(attrs: Any) -> list[int]:
    return [attrs["output_batch_dimension"], *attrs["output_spatial_dimensions"], attrs["output_feature_dimension"]]


def _fold_batch_groups(x: np.ndarray, attrs: Any) -> tuple[np.ndarray, int]:
    """The lhs with batch groups side by side as feature groups, and the number of groups."""
    groups = attrs["batch_group_count"]
    if groups == 1:
        return x, attrs["feature_group_count"]
    n, *spatial, c = x.shape
    split = np.moveaxis(x.reshape(groups, n // groups, *spatial, c), 0, -2)
    return split.reshape(n // groups, *spatial, groups * c), groups


def _without_reverse(rhs: Op, attrs: Any) -> tuple[Op, tuple[bool, ...]] | None:
    """If `rhs` is turned around along spatial axes alone: what it was before, and the window reversal for that."""
    spatial = attrs["kernel_spatial_dimensions"]
    if rhs.kind.full_name != "stablehlo.reverse" or not {*rhs.attrs["dimensions"]} <= {*spatial}:
        return None
    own = attrs["window_reversal"] or (False,) * len(spatial)
    return rhs.operands[0], tuple(r != (d in rhs.attrs["dimensions"]) for r, d in zip(own, spatial, strict=True))


def _transposed(x: Op, order: Sequence[int]) -> Op:
    return x if list(order) == sorted(order) else shape.transpose(x, permutation=tuple(order))


def _as_dot(lhs: Op, rhs: Op, t: TensorType, attrs: Any, contracted: tuple[int, ...]) -> Op:
    """Windows of one element, or one window that is all of lhs: a contraction over features (and `contracted`)."""
    spatial = attrs["kernel_spatial_dimensions"]
    x_dims = (*contracted, attrs["input_feature_dimension"])
    w_dims = ((*spatial,) if contracted else ()) + (attrs["kernel_input_feature_dimension"],)
    kept = [d for d in range(lhs.tensor.rank) if d not in x_dims]
    w = rhs
    if not contracted:  # drop the kernel's axes of size 1
        dims = [d for d in range(rhs.tensor.rank) if d not in spatial]
        w = shape.reshape(rhs, type=TensorType(rhs.dtype, [rhs.shape[d] for d in dims]))
        w_dims = (dims.index(attrs["kernel_input_feature_dimension"]),)
    o = rhs.shape[attrs["kernel_output_feature_dimension"]]
    product = dot_general(lhs, w, lhs_contracting_dimensions=x_dims, rhs_contracting_dimensions=w_dims,
                          precision_config=attrs["precision_config"],
                          type=t.with_shape([*(lhs.shape[d] for d in kept), o]))  # fmt: skip
    where = {attrs["input_batch_dimension"]: attrs["output_batch_dimension"]}
    where.update(zip(attrs["input_spatial_dimensions"], attrs["output_spatial_dimensions"], strict=True))
    if contracted:
        full = [1] * t.rank
        full[attrs["output_batch_dimension"]], full[attrs["output_feature_dimension"]] = product.shape
        first = attrs["output_batch_dimension"] < attrs["output_feature_dimension"]
        turned = product if first else shape.transpose(product, permutation=(1, 0))
        return shape.reshape(turned, type=t.with_shape(full))
    places = [*(where[d] for d in kept), attrs["output_feature_dimension"]]
    return _transposed(product, np.argsort(places).tolist())


def _example(x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], dtype: Any = f32, result: Any = None,
             **attrs: Any) -> tuple[Any, Any]:  # fmt: skip
    types = (TensorType(dtype, x), TensorType(dtype, w))
    return types, {**canonical_dimensions(len(x)), "type": TensorType(result or dtype, out), **attrs}


convolution.examples += [
    _example((2, 5, 6, 3), (3, 3, 3, 4), (2, 5, 6, 4), padding=((1, 1), (1, 1))),
    _example((1, 9, 20), (4, 20, 33), (1, 5, 33), dtype=bf16, window_strides=(2,), padding=((3, 0),)),
    _example((1, 7, 6), (2, 3, 8), (1, 5, 8), dtype=i8, result=i32, feature_group_count=2, rhs_dilation=(2,)),
    _example((2, 6, 18), (3, 1, 18), (2, 8, 18), dtype=f64, feature_group_count=18, padding=((2, 2),)),
    _example((1, 4, 4, 2), (3, 2, 2, 3), (1, 6, 6, 3), lhs_dilation=(2, 3), padding=((0, 1), (0, -3))),
    _example((4, 5, 2), (3, 2, 6), (2, 3, 6), batch_group_count=2, window_reversal=(True,)),
    _example((1, 6, 2), (1, 2, 3), (1, 6, 3), dtype=u8),
    _example((2, 3), (3, 4), (2, 4), dtype=c64),
    _example((1, 5, 2), (2, 2, 2), (1, 4, 2), dtype=i1),
    _example((1, 0, 2), (2, 2, 3), (1, 1, 3), padding=((1, 1),)),
    _example((1, 3, 0), (2, 0, 3), (1, 2, 3)),
    (
        (TensorType(f32, (2, 3, 6, 5)), TensorType(f32, (4, 3, 2, 2))),
        {
            **dict(zip(DIMENSIONS, (0, (2, 3), 1, (2, 3), 1, 0, 0, (2, 3), 1), strict=True)),
            "window_strides": (2, 1),
            "type": TensorType(f32, (2, 4, 3, 4)),
        },
    ),
]
