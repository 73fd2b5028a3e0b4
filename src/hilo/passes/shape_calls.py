"""Custom calls by which JAX writes ops whose sizes are operands, as plain ops of run-time sizes.

Imports ir, ops, passes.shape_rules. A rule gets the refiner, the call, and its refined operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hilo.custom_calls.decode import decode
from hilo.custom_calls.shape_operands import shape_operands
from hilo.errors import Unsupported
from hilo.ir import dims
from hilo.ir.dims import Number
from hilo.ir.dtypes import i32
from hilo.ir.module import Function
from hilo.ir.op import Attrs, Op
from hilo.ir.registry import lookup
from hilo.ir.types import Results, Type, result_types
from hilo.ops.shape import iota
from hilo.ops.sort import descending
from hilo.ops.window_axes import axes
from hilo.passes.shape_rules import Rule, all_declared, made

if TYPE_CHECKING:
    from hilo.passes.shapes import Refiner


def reduce_window(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Operands: inputs, inits, then sizes, strides, dilations (base, window) and padding of the windows."""
    n = (len(operands) - 5) // 2
    if n < 1 or len(operands) != 2 * n + 5 or len(result_types(o.type)) != n:
        raise Unsupported("a dynamic_reduce_window takes inputs, as many inits, and five operands for its windows")
    x = operands[0]
    size, strides, base, dilation, padding = (r.sizes(v, "a window") for v in operands[2 * n :])
    pads = tuple(zip(padding[::2], padding[1::2], strict=True))
    for other in operands[1:n]:
        for a, b in zip(other.shape, x.shape, strict=True):
            r.equal(a, b)
    for k in size:
        r.size_is(k)
    for k in (*strides, *base, *dilation):
        r.guard(dims.apply("lt", 0, k), f"{k} of a window must be positive, but is {{0}}", k)
    moved = axes(size, strides, pads, base, dilation)
    t = all_declared(r, o, [[a.count(m) for a, m in zip(moved, x.shape, strict=True)]] * n)
    return made(o, "reduce_window", operands[: 2 * n], t, window_dimensions=tuple(size), window_strides=tuple(strides),
                base_dilations=tuple(base), window_dilations=tuple(dilation), padding=pads,
                body=r.called(o))  # fmt: skip


def rng_bit_generator(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Operands: the state, the shape."""
    t = all_declared(r, o, [operands[0].shape, r.sizes(operands[1], "the shape")])
    return made(o, "rng_bit_generator", operands[:1], t, rng_algorithm=o.attrs.get("rng_algorithm", "DEFAULT"))


def top_k(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Operands: a tensor, k."""
    x = operands[0]
    (k,) = r.sizes(operands[1], "k")
    last = x.tensor.rank - 1
    where = iota(iota_dimension=last, type=x.tensor.with_dtype(i32))
    return _first(r, o, (x, where), last, k, descending(x.dtype))


def approx_top_k(r: Refiner, o: Op, operands: Sequence[Op]) -> Op:
    """Operands: inputs, inits (not needed: the answer is exact), k; perhaps the results' shapes, which follow from it.
    The function says what comes first."""
    shapes = shape_operands(o.attrs)
    operands = [x for i, x in enumerate(operands) if i not in shapes]
    n = (len(operands) - 1) // 2
    (k,) = r.sizes(operands[-1], "k")
    xs = operands[:n]
    rank = xs[0].tensor.rank
    config: Any = decode(o.attrs.get("backend_config") or o.attrs.get("mhlo.backend_config") or ())
    d = int(config.get("reduction_dim", -1)) % rank if isinstance(config, dict) else rank - 1
    return _first(r, o, xs, d, k, r.called(o))


def _first(r: Refiner, o: Op, xs: Sequence[Op], d: int, k: Number, comparator: Function) -> Op:
    """The first `k` along axis `d` of `xs`, sorted together."""
    rank, n = xs[0].tensor.rank, xs[0].shape[d]
    for x in xs[1:]:
        for a, b in zip(x.shape, xs[0].shape, strict=True):
            r.equal(a, b)
    r.size_is(k)
    r.guard(dims.apply("le", k, n), "top_k takes {0} elements of an axis of size {1}", k, n)
    sort, cut = lookup("stablehlo.sort"), lookup("stablehlo.slice")
    types = [x.tensor for x in xs]
    whole: Type = Results(types) if len(xs) > 1 else types[0]
    attrs = Attrs(sort.attrs, dimension=d, is_stable=True, comparator=comparator)
    parts = []
    for x in Op(sort, tuple(xs), attrs, whole, o.loc).results():
        limits = tuple(k if i == d else m for i, m in enumerate(x.shape))
        how = Attrs(start_indices=(0,) * rank, limit_indices=limits, strides=(1,) * rank)
        parts.append(Op(cut, (x,), how, x.tensor.with_shape(limits), o.loc))
    t = all_declared(r, o, [p.shape for p in parts])
    if not isinstance(t, Results):
        return parts[0]
    return Op(lookup("stablehlo.optimization_barrier"), tuple(parts), Attrs(), t, o.loc)


CALLS: Final[dict[str, Rule]] = {
    "stablehlo.dynamic_reduce_window": reduce_window,
    "stablehlo.dynamic_rng_bit_generator": rng_bit_generator,
    "stablehlo.dynamic_top_k": top_k,
    "stablehlo.dynamic_approx_top_k": approx_top_k,
}
