"""Kernels of convolutions in the layout [b, 0, f]x[0, i, o]->[b, 0, f], which legalizing makes. Imports ops, kernels.

A convolution is a product of matrices whose A (windows by taps and input features) lies in lhs: tiles of C stay in
registers over all taps that lie inside. Depthwise ones have their own (convolution_depthwise.py). Where neither
pays (few products, integers, complex numbers), convolution_direct.py does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.op import Op
from hilo.kernels.contraction_algebra import Dim
from hilo.kernels.convolution_lower import Implicit, Operands
from hilo.kernels.convolution_plan import Plan
from hilo.kernels.convolution_regions import Problem
from hilo.kernels.epilogue import Epilogue
from hilo.kernels.lowered import Lowered, constant_of, is_steady
from hilo.kernels.pins import choose
from hilo.ops.convolution import is_canonical, windows
from hilo.ops.window_axes import Axis

if TYPE_CHECKING:
    from hilo.backend.target import Target

SMALL: Final = 1 << 15  # products below which a kernel of its own is as good


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `convolution`."""
    return lower_convolution(op, target)


def lower_convolution(op: Op, target: Target, epilogue: Epilogue | None = None) -> Lowered:
    """The kernel of a `convolution`, with what follows it; `bufs` are those of `contraction.lower_contraction`.

    The weights may be read in a layout of the kernel's own if they are constant (`Lowered.arranged`) or an argument
    (`Lowered.kept`).
    """
    if op.tensor.size == 0:
        return Lowered([])
    if not is_canonical(op.attrs.own(), op.tensor.rank):
        raise Unsupported("only the layout that legalizing makes has a kernel", op=op.kind.full_name, loc=op.loc)
    found = planned(op, target, epilogue)
    if found is None:
        from hilo.kernels import convolution_depthwise

        tiles = convolution_depthwise.lower(op, target, epilogue)
        if tiles is not None:
            return tiles
    if found is None or not choose("contraction.walk", True, (True, False)):
        from hilo.kernels import convolution_direct

        return convolution_direct.lower(op, target, epilogue)
    numbers = (epilogue and epilogue.numbers) or (0, 1)
    return Implicit(*found, target, epilogue, numbers, is_steady(op.operands[1])).run()


def planned(op: Op, target: Target, epilogue: Epilogue | None = None) -> tuple[Operands, Plan] | None:
    """How the kernel of `op` multiplies matrices, if it does."""
    x, w, t = op.operands[0].tensor, op.operands[1].tensor, op.tensor
    held = held_in(op)
    lanes = target.lanes(held)
    if not t.dtype.is_float or not x.dtype.is_float or lanes == 1:
        return None
    moved = windows(w, op.attrs) or (Axis(),)
    spatial, places = x.shape[1:-1] or (1,), t.shape[1:-1] or (1,)
    groups = op.attrs["feature_group_count"]
    turned = tuple(op.attrs["window_reversal"] or ())
    p = Problem(x.shape[0], spatial, places, moved, w.shape[-2], w.shape[-1], groups, turned)
    if p.rows * p.depth * p.outputs < SMALL or p.outputs // groups < lanes:
        return None
    k, n = p.depth, p.outputs
    stored = (epilogue.out if epilogue else t).dtype
    bound = constant_of(op.operands[1]) is not None
    operands = Operands(x, w, t, stored, held, (Dim(k, 0, n),), (Dim(n, 0, 1),), bound)
    found = operands.plan(p, target)
    return None if found is None else (operands, found)


def held_in(op: Op) -> DType:
    """The type that sums are held in."""
    return f64 if f64 in (op.dtype, op.operands[0].dtype) else f32
