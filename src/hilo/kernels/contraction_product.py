"""Products of dense matrices by the walk over tiles of convolutions: a convolution of single elements. Imports kernels.

For the usual kind of product (rows of A one after the other, B a constant in panels, or few rows and a B that does not
fit well into the second-level cache), whose sums are finished while they are in the first-level cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import DType, f32, f64
from hilo.kernels.contraction_algebra import Contraction, one_stride
from hilo.kernels.contraction_plan import plan as plan_other
from hilo.kernels.contraction_plan import recipe
from hilo.kernels.contraction_sizes import is_static
from hilo.kernels.epilogue import Epilogue
from hilo.kernels.lowered import Lowered
from hilo.kernels.pins import choose, unasked

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.convolution_lower import Operands
    from hilo.kernels.convolution_plan import Plan

ROWS: Final = 28  # of A, from which tiles are used well
FEW_ROWS: Final = 64  # up to which a large B that is no constant is read in long pieces; beyond, it is packed otherwise


def lower_product(c: Contraction, target: Target, epilogue: Epilogue | None, bound: bool,
                  steady: bool) -> Lowered | None:  # fmt: skip
    """The kernel of `c`, if it is one for the walk over tiles; `bound`: B is a constant, `steady`: an argument that a
    call may bring in panels."""
    found = planned(c, target, (epilogue.out if epilogue else c.out).dtype, bound)
    if found is None:
        return None
    from hilo.kernels.convolution_lower import Implicit

    operands, p = found
    return Implicit(operands, p, target, epilogue, (epilogue and epilogue.numbers) or (0, 1), steady).run()


def step_of_k(c: Contraction, target: Target) -> int | None:
    """How much of k the kernel of `c` sums up at a time, if it is one for the walk over tiles."""
    found = planned(c, target, c.out.dtype, False)
    return found[1].inner_step if found is not None else None


def planned(c: Contraction, target: Target, stored: DType, bound: bool) -> tuple[Operands, Plan] | None:
    """The plan of `c`, whose results are of type `stored`."""
    if not is_static(c.sizes):
        return None
    bt, m, n, k = c.sizes
    held = c.lhs.dtype
    lanes = target.lanes(held)
    plain = held in (f32, f64) and c.rhs.dtype is held and c.out.dtype is held and lanes > 1
    fewest = lanes + 1 if bound and target.has_halves else 2 * lanes  # columns
    if not plain or bt != 1 or m < ROWS or n < fewest or k < 16:
        return None
    if not bound and (m > FEW_ROWS or k * n * held.itemsize <= target.l2 // 2):
        return None  # contraction_nest.py reads a B that stays in the second-level cache where it lies
    if one_stride(c.m, "a") != k or one_stride(c.k, "a") != 1:
        return None
    if not bound and (one_stride(c.k, "b") != n or one_stride(c.n, "b") != 1):
        return None
    if not choose("contraction.walk", True, (True, False)):
        return None
    with unasked():
        other = plan_other(c.sizes, recipe(held, held, held, target), target, b_row=n, b_column=1, inner=False,
                           stream=False, bound=bound)  # fmt: skip
    if other.kind != "tile" or other.skinny or other.blocks[0] > 1:
        return None
    from hilo.kernels.convolution_lower import Operands
    from hilo.kernels.convolution_plan import Problem
    from hilo.ops.window_axes import Axis

    operands = Operands(c.lhs, c.rhs, c.out, stored, held, c.k, c.n, bound)
    p = operands.plan(Problem(1, (m,), (m,), (Axis(),), k, n), target)
    return (operands, p) if p is not None else None
