"""What several ops' `infer` check (dimension numbers, tensors, regions), and one result or several. Imports errors
and ir only.

Symbolic dimensions are compatible with every size: what cannot be known is not refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from hilo.errors import Unsupported, VerifyError, require
from hilo.ir.dtypes import DType
from hilo.ir.module import Function
from hilo.ir.types import Results, TensorType, Type, UnrankedType, compatible, same_dim

if TYPE_CHECKING:
    from hilo.ir.quantized import QuantizedType


def tensors(types: Iterable[Type], rule: str = "I1", what: str = "operand") -> tuple[TensorType, ...]:
    """`types`, known to be tensors afterwards; `VerifyError` (constraint `rule`) for another kind of type."""
    types = tuple(types)
    for i, t in enumerate(types):
        if not isinstance(t, TensorType):
            of = " of known rank" if isinstance(t, UnrankedType) else ""
            raise VerifyError(f"{what} {i} must be a tensor{of}, not {t!r}", rule=rule)
    return types  # type: ignore[return-value]


def tensor(t: Type) -> TensorType:
    """`t`, known to be a tensor afterwards."""
    return tensors((t,))[0]


def static_shape(t: TensorType) -> tuple[int, ...]:
    """The shape of `t`; `Unsupported` if a dim is symbolic."""
    if not t.is_static:
        raise Unsupported(f"{t} has symbolic dimensions, which cannot be evaluated yet")
    return t.shape


def at_most(a: Any, b: Any) -> bool:
    """Whether size `a` may be at most `b`: what is unknown may, as far as its bound allows."""
    most = b if isinstance(b, int) else b.bound
    return not isinstance(a, int) or most is None or a <= most


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
    if a.kind == b.kind == "q":
        p, q = cast("QuantizedType", a), cast("QuantizedType", b)
        return p.expressed is q.expressed and promotable(p.storage, q.storage)
    return a.kind == b.kind and a.bits <= b.bits


def reduced(
    types: Sequence[Type], body: Function, counts: str, rule: str, what: str = "body", others: int = 0
) -> int:
    """How many inputs a reduction has: as many as its region returns values. `others`: operands beside inputs, inits.

    The operands `types` end with what the region captures, so that only their least number is known. `counts` is the
    constraint on the numbers of operands, `rule` the one on the region.
    """
    n = len(body.results)
    require(types, counts, "the op needs an input")
    require(n > 0, rule, "{what} returns no value; it must return one for each input", what=what)
    require(2 * n + others <= len(types), counts if len(body.params) == 2 * n else rule,
            "{what} returns {n} values, one for each input, but there are only {m} operands in all",
            what=what, n=n, m=len(types))  # fmt: skip
    return n


def one_input(inputs: Sequence[Type], types: Sequence[Type], rule: str, what: str = "body") -> None:
    """Refuse a region that returns one value where the operands look like two inputs and two init values."""
    x, y = types[:2]
    if len(inputs) == 1 and len(types) >= 4 and isinstance(x, TensorType) and isinstance(y, TensorType):
        require(not x.rank or not same_shape(x.shape, y.shape), rule,
                "{what} returns one value, but {x} and {y} are two inputs", what=what, x=x, y=y)  # fmt: skip


def accumulates(
    body: Function, inputs: Sequence[TensorType], captures: Sequence[Type], rule: str, what: str = "body"
) -> tuple[TensorType, ...]:
    """Require a region that combines as many accumulated as new elements of `inputs`; gives the types it returns."""
    into = tensors(body.result_types, rule, f"{what}'s result")
    for x, e in zip(inputs, into, strict=True):
        require(e.rank == 0, rule, "{what} returns {e}, but must return a rank-0 tensor", what=what, e=e)
        require(promotable(x.dtype, e.dtype), rule,
                "{what} returns {e}, to which elements of {x} cannot be promoted", what=what, e=e, x=x)  # fmt: skip
    takes(body, [*into, *into, *captures], rule, what)
    return into


def scalar_indices(types: Iterable[Type], rule: str) -> None:
    """Require start indices: rank-0 integers, all of one type."""
    types = tensors(types)
    for t in types:
        require(t.rank == 0 and t.dtype.is_int, rule, "a start index must be a rank-0 integer, not {t}", t=t)
    require(len({t.dtype for t in types}) <= 1, rule, "start indices have several types: {types}", types=types)


def one_or_results(types: Sequence[Type]) -> Type:
    """The type of an op whose results have these types: `Results`, unless there is exactly one."""
    return types[0] if len(types) == 1 else Results(types)


def one_or_tuple(values: Sequence[Any]) -> Any:
    """What `evaluate` returns for these results."""
    return values[0] if len(values) == 1 else tuple(values)
