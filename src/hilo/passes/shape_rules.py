"""How ops become their plain forms with symbolic sizes, and the result types that need more than the op's own rule.

Imports ir, ops, passes.shapes (as a type). A rule gets the refiner, the op, and its refined operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from hilo.errors import Unsupported
from hilo.ir import dims
from hilo.ir.dims import Number
from hilo.ir.op import Attrs, Op
from hilo.ir.registry import lookup
from hilo.ir.types import Results, TensorType, Type, equations, result_types
from hilo.ops.convolution import windows
from hilo.ops.window_axes import axes

if TYPE_CHECKING:
    from hilo.passes.shapes import Refiner

Rule = Callable[["Refiner", Op, Sequence[Op]], Op]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def add(f: Rule) -> Rule:
        RULES.update({n if "." in n else f"stablehlo.{n}": f for n in names})
        return f

    return add


def made(o: Op, name: str, operands: Sequence[Op], t: Type, **attrs: Any) -> Op:
    """An op whose type is known; its own rule, which asks about numbers, is not consulted."""
    kind = lookup(f"stablehlo.{name}")
    dotted = {k: v for k, v in o.attrs.items() if "." in k}
    if kind.typed and name != "constant":
        attrs["type"] = t
    return Op(kind, tuple(operands), Attrs({**kind.attrs, **attrs, **dotted}), t, o.loc)


def same_kind(o: Op, operands: Sequence[Op], t: Type, **attrs: Any) -> Op:
    """`o` with another type, and some attributes changed."""
    if o.kind.typed:
        attrs["type"] = t
    return Op(o.kind, tuple(operands), o.attrs.replace(**attrs), t, o.loc)


def declared(r: Refiner, o: Op, shape: Sequence[Number]) -> TensorType:
    """The type of `o` with this shape; static sizes that it declares must come out."""
    t = o.tensor
    for got, want in zip(shape, t.shape, strict=True):
        if isinstance(want, int):
            r.equal(got, want)
        elif want.bound is not None:
            fits = dims.apply("le", r.size_is(got), want.bound)
            r.guard(fits, f"{o.kind.full_name}: a size of {{0}} is beyond the bound of {t}", got)
    return TensorType(t.dtype, [want if isinstance(want, int) else r.size_is(got)
                                for got, want in zip(shape, t.shape, strict=True)])  # fmt: skip


def all_declared(r: Refiner, o: Op, shapes: Sequence[Sequence[Number]]) -> Type:
    """The type of `o` with these shapes of its results; static sizes that it declares must come out."""
    types = [t for t in result_types(o.type) if isinstance(t, TensorType)]
    out = []
    for t, shape in zip(types, shapes, strict=True):
        for got, want in zip(shape, t.shape, strict=True):
            if isinstance(want, int):
                r.equal(got, want)
        out.append(t.with_shape([r.size_is(n) for n in shape]))
    return Results(out) if isinstance(o.type, Results) else out[0]


# ---- shapes as operands
@rule("dynamic_reshape", "chlo.dynamic_reshape")
def _dynamic_reshape(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    t = declared(r, o, r.integers(operands[1], "the shape"))
    r.equal(operands[0].tensor.size, t.size)
    return made(o, "reshape", operands[:1], t)


@rule("reshape")
def _reshape(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """The result's type says all but at most one size."""
    shape = list(o.shape)
    unknown = [d for d, n in enumerate(shape) if not isinstance(n, int) and not n.is_known]
    size = operands[0].tensor.size
    if len(unknown) > 1:
        raise Unsupported("a reshape to more than one unknown size")
    if unknown:
        rest = prod(n for d, n in enumerate(shape) if d not in unknown)
        shape[unknown[0]] = dims.floordiv(size, rest)
    t = TensorType(o.dtype, shape)
    r.equal(size, t.size)
    return made(o, "reshape", operands, t)


@rule("dynamic_broadcast_in_dim", "broadcast_in_dim")
def _broadcast(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """An axis whose size may be 1 at run time, or the result's, is read through `clamped` indices."""
    given = o.shape if o.kind.name == "broadcast_in_dim" else r.integers(operands[1], "the shape")
    places, x = o.attrs["broadcast_dimensions"], operands[0]
    shape = [x.shape[places.index(d)] if not isinstance(n, int) and not n.is_known and d in places else n
             for d, n in enumerate(given)]  # fmt: skip
    t = declared(r, o, shape)
    expanding = o.attrs.get("known_expanding_dimensions") or ()
    whole = o.attrs.get("known_nonexpanding_dimensions") or ()
    unsure = []
    for d, (n, at) in enumerate(zip(x.shape, places, strict=True)):
        m = t.shape[at]
        if n is m or n == m or n == 1:
            continue
        if d in expanding:
            r.equal(n, 1)
        elif d in whole or dims.lower(n) > 1 or m == 1:
            r.equal(n, m)
        else:
            fits = dims.apply("or", dims.apply("eq", n, 1), dims.apply("eq", n, m))
            r.guard(fits, f"axis {d} of {x.tensor} must have size 1 or {m}, but has {{0}} for {{1}}", n, m)
            unsure.append(d)
    if not unsure:
        return made(o, "broadcast_in_dim", [x], t, broadcast_dimensions=places)
    return Op(lookup("hilo.broadcast"), (x,), Attrs(broadcast_dimensions=places, type=t), t, o.loc)


@rule("dynamic_iota")
def _dynamic_iota(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    t = declared(r, o, r.integers(operands[0], "the shape"))
    return made(o, "iota", (), t, iota_dimension=o.attrs["iota_dimension"])


@rule("all_gather", "reduce_scatter")
def _of_one_process(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """What is compiled runs in one process, whose part is the whole; groups of several are refused later."""
    return same_kind(o, operands, all_declared(r, o, [x.shape for x in operands]))


@rule("rng")
def _rng(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    return same_kind(o, operands, declared(r, o, r.sizes(operands[2], "the shape")))


@rule("dynamic_pad")
def _dynamic_pad(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    low, high, inner = (tuple(r.integers(x, "the padding")) for x in operands[2:])
    if any(dims.is_computed(n) for n in (*low, *high, *inner)):
        shape = [n + l + dims.larger(n - 1, 0) * i + h
                 for n, l, h, i in zip(operands[0].shape, low, high, inner, strict=True)]  # fmt: skip
        return same_kind(o, operands, declared(r, o, shape))
    return _padded(r, o, operands[:2], low, high, inner)


@rule("pad")
def _pad(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    return _padded(r, o, operands, *(o.attrs[k] for k in ("edge_padding_low", "edge_padding_high", "interior_padding")))


def _padded(r: Refiner, o: Op, operands: Sequence[Op], low: Sequence[Number], high: Sequence[Number],
            inner: Sequence[Number]) -> Op:  # fmt: skip
    for i in inner:
        r.size_is(i)
    shape = [
        n + l + dims.larger(n - 1, 0) * i + h for n, l, h, i in zip(operands[0].shape, low, high, inner, strict=True)
    ]
    t = declared(r, o, shape)
    return made(o, "pad", operands, t, edge_padding_low=tuple(low), edge_padding_high=tuple(high),
                interior_padding=tuple(inner))  # fmt: skip


@rule("real_dynamic_slice")
def _real_dynamic_slice(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    starts, limits, strides = (tuple(r.integers(x, "a slice")) for x in operands[1:])
    if any(dims.is_computed(n) for n in (*starts, *limits, *strides)):  # only the size must be known before
        shape = [dims.floordiv(e - s + k - 1, k) for s, e, k in zip(starts, limits, strides, strict=True)]
        return same_kind(o, operands, declared(r, o, shape))
    return _sliced(r, o, operands[0], starts, limits, strides)


@rule("set_dimension_size")
def _set_dimension_size(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """The first elements along an axis, as many as there are."""
    x, d = operands[0], o.attrs["dimension"]
    (n,) = r.sizes(operands[1], "the size")
    bound = o.shape[d]
    limits = list(x.shape)
    limits[d] = dims.smaller(dims.larger(n, 0), limits[d])
    if isinstance(bound, int):
        limits[d] = bound
    return _sliced(r, o, x, (0,) * x.tensor.rank, tuple(limits), (1,) * x.tensor.rank)


@rule("slice")
def _slice(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    return _sliced(r, o, operands[0], *(o.attrs[k] for k in ("start_indices", "limit_indices", "strides")))


def _sliced(r: Refiner, o: Op, x: Op, starts: Sequence[Number], limits: Sequence[Number],
            strides: Sequence[Number]) -> Op:  # fmt: skip
    for s, e, k, n in zip(starts, limits, strides, x.shape, strict=True):
        fits = [dims.apply("le", 0, s), dims.apply("le", s, e), dims.apply("le", e, n), dims.apply("lt", 0, k)]
        for holds in fits:
            message = "start {0}, limit {1}, stride {2} along an axis of size {3}"
            r.guard(holds, f"a slice leaves {x.tensor}: {message}", s, e, k, n)
    t = declared(r, o, [dims.floordiv(e - s + k - 1, k) for s, e, k in zip(starts, limits, strides, strict=True)])
    return made(o, "slice", [x], t, start_indices=tuple(starts), limit_indices=tuple(limits), strides=tuple(strides))


@rule("dynamic_gather", "gather")
def _gather(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    a = o.attrs
    sizes = a["slice_sizes"] if o.kind.name == "gather" else tuple(r.sizes(operands[2], "the slice sizes"))
    x, s = operands[0].tensor, operands[1].tensor
    for m, n in zip(sizes, x.shape, strict=True):
        fits = dims.apply("le", m, n)
        r.guard(fits, f"a slice of size {{0}} does not fit an axis of size {{1}} of {x}", m, n)
    dropped = (*a["collapsed_slice_dims"], *a.get("operand_batching_dims", ()))
    for i, j in zip(a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ()), strict=True):
        r.equal(x.shape[i], s.shape[j])
    batch = iter([n for d, n in enumerate(s.shape) if d != a["index_vector_dim"]])
    slices = iter([n for d, n in enumerate(sizes) if d not in dropped])
    t = declared(r, o, [next(slices) if d in a["offset_dims"] else next(batch) for d in range(o.tensor.rank)])
    attrs = {k: v for k, v in a.own().items() if k != "type"}
    return made(o, "gather", operands[:2], t, **{**attrs, "slice_sizes": tuple(sizes)})


@rule("dynamic_slice")
def _dynamic_slice(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    sizes, x = o.attrs["slice_sizes"], operands[0].tensor
    for m, n in zip(sizes, x.shape, strict=True):
        r.guard(dims.apply("le", m, n), f"a slice of size {{0}} does not fit an axis of size {{1}} of {x}", m, n)
    return same_kind(o, operands, TensorType(x.dtype, sizes))


@rule("dynamic_update_slice")
def _dynamic_update_slice(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    x, u = operands[0].tensor, operands[1].tensor
    for m, n in zip(u.shape, x.shape, strict=True):
        r.guard(dims.apply("le", m, n), f"an update of size {{0}} does not fit an axis of size {{1}} of {x}", m, n)
    return same_kind(o, operands, x)


@rule("chlo.top_k")
def _top_k(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    n = operands[0].tensor.shape[-1]
    r.guard(dims.apply("le", o.attrs["k"], n), f"top_k takes {o.attrs['k']} elements of an axis of size {{0}}", n)
    return same_kind(o, operands, _inferred(o, operands))


@rule("get_dimension_size")
def _dimension_size(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    return same_kind(o, operands, o.type)


# ---- types that do not follow from numbers alone
@rule("concatenate")
def _concatenate(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    d = o.attrs["dimension"]
    first = operands[0].tensor
    for x in operands[1:]:
        for k, (m, n) in enumerate(zip(x.shape, first.shape, strict=True)):
            if k != d:
                r.equal(m, n)
    shape = list(first.shape)
    shape[d] = sum(x.shape[d] for x in operands)
    return same_kind(o, operands, declared(r, o, shape))


@rule("convert", "reduce_precision")
def _like_operand(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    return same_kind(o, operands, declared(r, o, operands[0].shape))


@rule("bitcast_convert")
def _bitcast(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    x, t = operands[0].tensor, o.tensor
    a, b = x.dtype.bits, t.dtype.bits
    shape = list(x.shape)
    if a < b:
        r.equal(shape.pop(), b // a)
    elif a > b:
        shape.append(a // b)
    return same_kind(o, operands, declared(r, o, shape))


@rule("dot_general", "dot")
def _dot(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    x, y = (v.tensor for v in operands)
    names = [f"{s}_{k}_dimensions" for k in ("batching", "contracting") for s in ("lhs", "rhs")]
    xb, yb, xc, yc = [o.attrs[n] for n in names] if o.kind.name == "dot_general" else [(), (), (x.rank - 1,), (0,)]
    for i, j in zip((*xb, *xc), (*yb, *yc), strict=True):
        r.equal(x.shape[i], y.shape[j])
    shape = [*(x.shape[i] for i in xb), *(n for i, n in enumerate(x.shape) if i not in (*xb, *xc)),
             *(n for j, n in enumerate(y.shape) if j not in (*yb, *yc))]  # fmt: skip
    return same_kind(o, operands, declared(r, o, shape))


@rule("reduce_window")
def _reduce_window(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Windows are counted by sizes; everything else is as in the op's own rule, on the declared types."""
    names = ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations")
    a = axes(*(o.attrs[k] for k in names))
    n = len(o.attrs["body"].results)
    for x in operands[1:n]:
        for m, k in zip(x.shape, operands[0].shape, strict=True):
            r.equal(m, k)
    shape = [axis.count(m) for axis, m in zip(a, operands[0].shape, strict=True)]
    if not isinstance(o.type, Results):
        return same_kind(o, operands, declared(r, o, shape))
    each = [TensorType(t.dtype, shape) for t in o.type.types if isinstance(t, TensorType)]
    return same_kind(o, operands, Results(each))


@rule("dynamic_conv", "convolution")
def _convolution(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    attrs = {k: v for k, v in o.attrs.items() if k != "type"}
    if o.kind.name == "dynamic_conv":
        flat = r.sizes(operands[2], "the padding")
        attrs["padding"] = tuple(zip(flat[::2], flat[1::2], strict=True))
    x, w = operands[0].tensor, operands[1].tensor
    groups, batches = attrs.get("feature_group_count", 1), attrs.get("batch_group_count", 1)
    d = attrs
    r.equal(x.shape[d["input_feature_dimension"]], w.shape[d["kernel_input_feature_dimension"]] * groups)
    shape: list[Any] = [0] * x.rank
    shape[d["output_batch_dimension"]] = dims.floordiv(x.shape[d["input_batch_dimension"]], batches)
    shape[d["output_feature_dimension"]] = w.shape[d["kernel_output_feature_dimension"]]
    spatial = zip(d["input_spatial_dimensions"], d["output_spatial_dimensions"], strict=True)
    for axis, (i, out) in zip(windows(w, {**lookup("stablehlo.convolution").attrs, **attrs}), spatial, strict=True):
        shape[out] = axis.count(x.shape[i])
    return made(o, "convolution", operands[:2], declared(r, o, shape), **attrs)


@rule("select_and_scatter")
def _select_and_scatter(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """There is one source element for each window."""
    x, source = operands[0].tensor, operands[1].tensor
    a = o.attrs
    moved = axes(a["window_dimensions"] or (1,) * x.rank, a["window_strides"], a["padding"], None, None)
    for axis, n, m in zip(moved, x.shape, source.shape, strict=True):
        r.equal(axis.count(n), m)
    return same_kind(o, operands, x)


@rule("fft")
def _fft(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Lengths are attributes: only other axes may have run-time sizes."""
    x, lengths, kind = operands[0].tensor, list(o.attrs["fft_length"]), o.attrs["fft_type"]
    t = _inferred(o, operands)
    if kind == "IRFFT":
        lengths[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
    for n, m in zip(x.shape[x.rank - len(lengths) :], lengths, strict=True):
        r.equal(n, m)
    return same_kind(o, operands, t)


@rule("scatter")
def _scatter(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Sizes that must agree, by the op's own rule; that updates fit is a guard."""
    with equations() as found:
        t = _inferred(o, operands)
    for a, b in found:
        r.known_equal(a, b)
    return same_kind(o, operands, t)


def _inferred(o: Op, operands: Sequence[Op]) -> Type:
    return o.kind.infer(*[x.type for x in operands], **o.attrs.own())


@rule("select")
def _select(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    p, a, b = operands
    for m, n in zip(a.shape, b.shape, strict=True):
        r.equal(m, n)
    if p.tensor.rank:
        for m, n in zip(p.shape, a.shape, strict=True):
            r.equal(m, n)
    return same_kind(o, operands, declared(r, o, a.shape))


@rule("clamp")
def _clamp(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    lo, x, hi = operands
    for y in (lo, hi):
        for m, n in zip(y.shape, x.shape, strict=False):
            r.equal(m, n)
    return same_kind(o, operands, declared(r, o, x.shape))


