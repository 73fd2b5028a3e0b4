"""dynamic_conv: a convolution whose padding is an operand. Imports ir, ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import f32, i32, i64
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type
from hilo.ops.checks import in_range, same_dim, tensor
from hilo.ops.concat_pad import pad
from hilo.ops.constant import constant
from hilo.ops.convolution import canonical_dimensions, convolution, windows
from hilo.ops.decompose import full
from hilo.ops.dynamic_shape import as_declared, dynamic_pad, int_tuple, known
from hilo.ops.elementwise_arith import add
from hilo.ops.shape import reshape
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import slice_


@op("dynamic_conv", typed=True)
class dynamic_conv:
    """`convolution` whose padding, (low, high) for each spatial axis, is the third operand.

    Padding that is known only at run time counts as zeros of the lhs. Spec: dynamic_conv.
    """

    attrs = {k: v for k, v in convolution.attrs.items() if k != "padding"}

    @staticmethod
    def infer(lhs: Type, rhs: Type, padding: Type, *, type: Type, **attrs: Any) -> Type:  # noqa: A002
        x, w, p, t = tensor(lhs), tensor(rhs), tensor(padding), tensor(type)
        spatial = attrs.get("output_spatial_dimensions", ())
        if t.rank != x.rank or not in_range(spatial, t.rank):
            return convolution.infer(x, w, padding=None, type=t, **attrs)  # says what is wrong
        unknown = [Dim() if d in spatial else n for d, n in enumerate(t.shape)]
        moved = attrs.get("input_spatial_dimensions", ())
        source = [Dim() if d in moved else n for d, n in enumerate(x.shape)]
        convolution.infer(x.with_shape(source), w, padding=None, type=t.with_shape(unknown), **attrs)
        ok = p.dtype.is_int and p.rank == 2 and same_dim(p.shape[0], x.rank - 2) and same_dim(p.shape[1], 2)
        require(ok, "C4", "padding must be {n} pairs of integers, not {p}", n=x.rank - 2, p=p)
        return t

    @staticmethod
    def evaluate(lhs: np.ndarray, rhs: np.ndarray, padding: np.ndarray, *, type: TensorType,  # noqa: A002
                 **attrs: Any) -> np.ndarray:  # fmt: skip
        assert convolution.evaluate is not None
        pads = np.reshape(int_tuple(padding), (-1, 2)).astype(np.int64)
        moved = windows(TensorType(f32, rhs.shape), {**attrs, "padding": None})
        if type.is_static:  # the number of windows says what the high padding is good for
            for d, (a, i, o) in enumerate(zip(moved, attrs["input_spatial_dimensions"],
                                              attrs["output_spatial_dimensions"], strict=True)):  # fmt: skip
                pads[d, 1] = (type.shape[o] - 1) * a.stride + a.reach - pads[d, 0] - a.spread(lhs.shape[i])
        pairs = tuple((int(p), int(q)) for p, q in pads)
        return convolution.evaluate(lhs, rhs, padding=pairs, type=type, **attrs)

    @staticmethod
    def expand(lhs: Op, rhs: Op, padding: Op, *, type: TensorType, **attrs: Any) -> Op | None:  # noqa: A002
        if not type.is_static or not lhs.tensor.is_static or not rhs.tensor.is_static:
            return None
        found = known(padding)
        if found is not None:
            ints = int_tuple(found)
            pairs = tuple(zip(ints[::2], ints[1::2], strict=True))
            static = as_declared(lambda: convolution(lhs, rhs, padding=pairs, type=type, **attrs), type)
            if static is not None:
                return static
        moved = windows(rhs.tensor, {**attrs, "padding": None})
        shape, base = list(lhs.shape), [0] * lhs.tensor.rank
        low = full(0, padding.dtype, (lhs.tensor.rank,))
        for d, (a, i, o) in enumerate(zip(moved, attrs["input_spatial_dimensions"], attrs["output_spatial_dimensions"],
                                          strict=True)):  # fmt: skip
            shape[i], base[i] = max(0, (type.shape[o] - 1) * a.stride + a.reach), a.base - 1
            here = slice_(padding, start_indices=(d, 0), limit_indices=(d + 1, 1), strides=(1, 1))
            one = reshape(here, type=TensorType(padding.dtype, (1,)))
            one = pad(one, full(0, padding.dtype), edge_padding_low=(i,), interior_padding=(0,),
                      edge_padding_high=(lhs.tensor.rank - 1 - i,))  # fmt: skip
            low = add(low, one)
        interior = _vector(base, padding)
        padded = dynamic_pad(lhs, full(0, lhs.dtype), low, _vector([0] * lhs.tensor.rank, padding), interior,
                             type=lhs.tensor.with_shape(shape))  # fmt: skip
        return convolution(padded, rhs, type=type, **{**attrs, "lhs_dilation": None})

    sharding = staticmethod(unsharded)
    examples = [
        ((TensorType(i32, (1, 4, 5, 2)), TensorType(i32, (3, 2, 2, 3)), TensorType(i64, (2, 2))),
         {**canonical_dimensions(4), "window_strides": (2, 1), "lhs_dilation": (2, 1),
          "type": TensorType(i32, (1, 4, 6, 3))}),
    ]  # fmt: skip

    @staticmethod
    def cost(lhs: TensorType, rhs: TensorType, padding: TensorType, *, out: TensorType, **attrs: Any) -> Any:
        assert convolution.cost is not None
        return convolution.cost(lhs, rhs, out=out, **attrs)


def _vector(values: Sequence[int], like: Op) -> Op:
    return constant(value=Array(np.asarray(values).astype(like.dtype.np)))
