"""What several ops' `infer` check: dimension numbers, tensors, regions. Imports errors and ir only.

Symbolic dimensions are compatible with every size: what cannot be known is not refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hilo.errors import Unsupported, VerifyError, require
from hilo.ir.dtypes import DType
from hilo.ir.module import Function
from hilo.ir.types import TensorType, Type, compatible


def tensors(types: Iterable[Type]) -> tuple[TensorType, ...]:
    """`types`, known to be tensors afterwards; `VerifyError` for another kind of type."""
    types = tuple(types)
    for i, t in enumerate(types):
        if not isinstance(t, TensorType):
            raise VerifyError(f"operand {i} must be a tensor, not {t!r}")
    return types  # type: ignore[return-value]


def tensor(t: Type) -> TensorType:
    """`t`, known to be a tensor afterwards."""
    return tensors((t,))[0]


def static_shape(t: TensorType) -> tuple[int, ...]:
    """The shape of `t`; `Unsupported` if a dim is symbolic."""
    if not t.is_static:
        raise Unsupported(f"{t} has symbolic dimensions, which cannot be evaluated yet")
    return t.shape


def same_dim(a: Any, b: Any) -> bool:
    """Whether two dims may be equal: an unknown one equals any."""
    return not isinstance(a, int) or not isinstance(b, int) or a == b


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes may be equal."""
    return len(a) == len(b) and all(map(same_dim, a, b))


def unique(dims: Sequence[int]) -> bool:
    return len(set(dims)) == len(dims)


def ascending(dims: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(dims))


def in_range(dims: Iterable[int], rank: int) -> bool:
    """Whether all `dims` name an axis of `rank` axes."""
    return all(0 <= d < rank for d in dims)


def result_is(declared: Type, shape: Sequence[Any], dtype: DType | None, rule: str) -> TensorType:
    """The declared result type of a typed op, checked against the shape (and dtype, unless None) that must come out."""
    t = tensor(declared)
    ok = same_shape(t.shape, shape) and (dtype is None or t.dtype is dtype)
    require(ok, rule, "the result is {e}, but its type says {t}", e=TensorType(dtype or t.dtype, shape), t=t)
    return t


def scalars(dtypes: Iterable[DType]) -> tuple[TensorType, ...]:
    """Rank-0 types of these element types."""
    return tuple(TensorType(d) for d in dtypes)


def takes(function: Function, types: Sequence[Type], rule: str, what: str) -> None:
    """Require that a region has parameters of `types`."""
    got = function.param_types
    ok = len(got) == len(types) and all(map(compatible, got, types))
    require(ok, rule, "{what} takes {got}, but must take {want}", what=what, got=got, want=tuple(types))


def gives(function: Function, types: Sequence[Type], rule: str, what: str) -> None:
    """Require that a region has results of `types`."""
    got = function.result_types
    ok = len(got) == len(types) and all(map(compatible, got, types))
    require(ok, rule, "{what} returns {got}, but must return {want}", what=what, got=got, want=tuple(types))


def promotable(a: DType, b: DType) -> bool:
    """Whether values of element type `a` may be accumulated in element type `b` (same kind, at least as wide)."""
    return a.kind == b.kind and a.bits <= b.bits


def scalar_indices(types: Iterable[Type], rule: str) -> None:
    """Require start indices: rank-0 integers, all of one type."""
    types = tensors(types)
    for t in types:
        require(t.rank == 0 and t.dtype.is_int, rule, "a start index must be a rank-0 integer, not {t}", t=t)
    require(len({t.dtype for t in types}) <= 1, rule, "start indices have several types: {types}", types=types)
