"""Custom calls that hilo has ops for: factors and solves of LAPACK, the largest elements.

Compiled code then needs neither the host nor scipy. A target that the user registered stays a call. Imports ir, ops,
custom_calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hilo.custom_calls import registry
from hilo.custom_calls.lapack import letter_of
from hilo.custom_calls.mhlo import FUNCTIONS
from hilo.custom_calls.site import call_site
from hilo.custom_calls.topk import is_largest
from hilo.ir.dtypes import i1, i32
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType, Type, result_types
from hilo.ops.calls import custom_call
from hilo.ops.compare import compare, select
from hilo.ops.complex import real
from hilo.ops.concat_pad import pad
from hilo.ops.convert import convert
from hilo.ops.decompose import full
from hilo.ops.elementwise_arith import add, minimum
from hilo.ops.elementwise_bits import or_
from hilo.ops.linalg import cholesky, triangular_solve
from hilo.ops.reduce import body_of, reduce
from hilo.ops.shape import iota
from hilo.ops.slicing import slice_
from hilo.ops.sort import ordered_by, sort, top_k

Attributes = Mapping[str, Any]
Build = Callable[[Attributes, Sequence[Op], Sequence[TensorType]], Sequence[Op]]


def known_call(op: Op, computation: Callable[[str], Function]) -> Function | None:
    """What a custom call is in ops, as a function of its operands; None for one that stays a call.

    `computation` gives the module's function of a name.
    """
    if op.kind is not custom_call:
        return None
    name = op.attrs["call_target_name"]
    types: list[Any] = [o.type for o in op.operands]
    wanted: tuple[Any, ...] = result_types(op.type)
    if name not in KNOWN or not all(isinstance(t, TensorType) and t.is_static for t in (*types, *wanted)):
        return None
    if not registry.find(name).builtin:
        return None
    if name.removeprefix("mhlo.") in FUNCTIONS:
        function = lookup(f"chlo.{name.removeprefix('mhlo.')}")
        return region(types, function) if len(types) == 1 and types == [*wanted] else None
    site = call_site(name, op.attrs, types, op.type)
    if name == "ApproxTopK":
        return _approx_top_k(op, types, wanted, site.attributes, computation)
    if name in ("TopK", "mhlo.topk"):
        largest = is_largest(site)
        fits = len(types) == 1 and len(wanted) == 2 and wanted[1].dtype.is_int and _fits(types[0], wanted)
        return region(types, lambda x: _top_k(x, largest, wanted)) if fits else None
    build, count = (_potrf, 1) if "potrf" in name else (_trsm, 2)
    if len(types) != count or any(t.rank < 2 for t in (*types, wanted[0])):
        return None
    return region(types, lambda *xs: build(site.attributes, xs, wanted))


def _fits(x: Any, wanted: Sequence[TensorType]) -> bool:
    return x.rank > 0 and all(w.rank == x.rank and w.shape[-1] <= x.shape[-1] for w in wanted)


def _is(attributes: Attributes, name: str, letter: str) -> bool:
    return letter_of(attributes, name) == letter


def _potrf(a: Attributes, xs: Sequence[Op], wanted: Sequence[TensorType]) -> Sequence[Op]:
    """The factor, beside it what was there, and the number of the first pivot that is not positive, or 0."""
    (x,) = xs
    t, lower = x.tensor, _is(a, "uplo", "L")
    n, rank = t.shape[-1], t.rank
    factor = cholesky(x, lower=lower)
    row, column = (iota(iota_dimension=rank - k, type=t.with_dtype(i32)) for k in (2, 1))
    mine = compare(row, column, comparison_direction="GE" if lower else "LE")
    both = select(mine, factor, x)
    pivots = both if not t.dtype.is_complex else real(both)
    on_diagonal = compare(row, column, comparison_direction="EQ")
    wrong = compare(pivots, full(0, pivots.dtype, t.shape), comparison_direction="LE")
    odd = compare(pivots, pivots, comparison_direction="NE")
    far = full(n + 1, i32, t.shape)
    one = add(row, full(1, i32, t.shape))
    numbers = select(on_diagonal, select(or_(wrong, odd), one, far), far)
    first = reduce(numbers, full(n + 1, i32), dimensions=(rank - 2, rank - 1), body=body_of(minimum, i32))
    none = compare(first, full(n + 1, i32, first.shape), comparison_direction="EQ")
    info = select(none, full(0, i32, first.shape), first)
    return both, info if info.type is wanted[1] else convert(info, type=wanted[1])


def _trsm(a: Attributes, xs: Sequence[Op], wanted: Sequence[TensorType]) -> Sequence[Op]:
    transposes = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
    return (triangular_solve(*xs, left_side=_is(a, "side", "L"), lower=_is(a, "uplo", "L"),
                             unit_diagonal=_is(a, "diag", "U"),
                             transpose_a=transposes[letter_of(a, "trans_x")]),)  # fmt: skip


def _top_k(x: Op, largest: bool, wanted: Sequence[TensorType]) -> Sequence[Op]:
    k, t = wanted[0].shape[-1], x.tensor
    if largest:
        both = top_k(x, k=k).results()
    else:
        numbers = iota(iota_dimension=t.rank - 1, type=t.with_dtype(i32))
        order = ordered_by("LT", t.dtype, i32, compare_type="TOTALORDER" if t.dtype.is_float else "NOTYPE")
        both = [_first(v, t.rank - 1, k) for v in sort(x, numbers, is_stable=True, comparator=order).results()]
    return both[0], both[1] if both[1].type is wanted[1] else convert(both[1], type=wanted[1])


def _first(x: Op, axis: int, n: int) -> Op:
    """The first `n` elements along an axis."""
    rank = x.tensor.rank
    limits = tuple(n if d == axis else m for d, m in enumerate(x.shape))
    return slice_(x, start_indices=(0,) * rank, limit_indices=limits, strides=(1,) * rank)


def _approx_top_k(op: Op, types: Sequence[Type], wanted: Sequence[TensorType], attributes: Attributes,
                  computation: Callable[[str], Function]) -> Function | None:  # fmt: skip
    """A whole sort by the function that the call names: the answer is exact, whatever recall is asked for."""
    names = op.attrs.get("called_computations") or ()
    n = len(types) // 2
    if len(names) != 1 or not n or len(types) != 2 * n or len(wanted) != n or "reduction_dim" not in attributes:
        return None
    axis, inputs = int(attributes["reduction_dim"]), [o.tensor for o in op.operands[:n]]
    order = computation(str(names[0]).removeprefix("@"))
    sizes = {(t.shape[axis] if 0 <= axis < t.rank else -1) for t in (*inputs, *wanted)}
    same = all(t.shape == inputs[0].shape for t in inputs) and order.result_types == (TensorType(i1),)
    if -1 in sizes or not same or order.param_types != tuple(TensorType(t.dtype) for t in inputs for _ in "ab"):
        return None

    def build(*xs: Op) -> list[Op]:
        sorted_ = sort(*xs[:n], dimension=axis, is_stable=True, comparator=order).results()
        return [_sized(v, fill, axis, w.shape[axis]) for v, fill, w in zip(sorted_, xs[n:], wanted, strict=True)]

    return region(types, build)


def _sized(x: Op, fill: Op, axis: int, size: int) -> Op:
    have = x.shape[axis]
    if size <= have:
        return _first(x, axis, size)
    high = tuple(size - have if d == axis else 0 for d in range(x.tensor.rank))
    none = (0,) * x.tensor.rank
    return pad(x, fill, edge_padding_low=none, edge_padding_high=high, interior_padding=none)


KNOWN: Final = frozenset((
    "ApproxTopK", "TopK", "mhlo.topk", *(f"mhlo.{name}" for name in FUNCTIONS),
    *(f"lapack_{letter}{name}_ffi" for letter in "sdcz" for name in ("potrf", "trsm")),
))  # fmt: skip
