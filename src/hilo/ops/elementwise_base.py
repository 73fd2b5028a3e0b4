"""What the elementwise ops share: shape inference, examples, sharding.

Imports errors and ir; the lowerings load lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import cycle
from typing import Any, Final

from hilo.errors import require
from hilo.ir.dtypes import COMMON, DType
from hilo.ir.types import TensorType, Type, compatible
from hilo.ops.checks import tensors
from hilo.ops.sharding import axis_names

ACCURACY: Final = {"result_accuracy": "DEFAULT"}  # kept; all of hilo's functions are at least that accurate
KINDS: Final = {"b": "boolean", "i": "signed integer", "u": "unsigned integer", "f": "float", "c": "complex"}
_SHAPES: Final = ((7,), (), (2, 3), (0, 4), (17,), (1,))


def merge(*types: TensorType) -> TensorType:
    """One type for compatible types: what one of them knows of a dimension, the result knows."""
    first = types[0]
    if all(t is first for t in types):
        return first
    shape = [next((d for d in dims if isinstance(d, int)), dims[0]) for dims in zip(*(t.shape for t in types))]
    return TensorType(first.dtype, shape)


def check_kinds(t: TensorType, kinds: str) -> None:
    """Require that the elements of `t` are of one of these kinds (letters as in `DType.kind`)."""
    require(t.dtype.kind in kinds, "I1", "takes {kinds} elements, not {t}",
            kinds=" or ".join(KINDS[k] for k in kinds), t=t)  # fmt: skip


def same_types(types: tuple[Type, ...], kinds: str, rule: str = "C1") -> TensorType:
    """Require tensors of one type with elements of these kinds; gives that type."""
    ts = tensors(types)
    check_kinds(ts[0], kinds)
    if not all(compatible(ts[0], t) for t in ts):
        require(False, rule, "operands must have one type, not {types}{hint}", types=ts, hint=_hint(ts))
    return merge(*ts)


def _hint(types: Sequence[TensorType]) -> str:
    """What makes the operands' types equal."""
    shapes = [t.shape for t in types]
    if any(t.dtype is not types[0].dtype for t in types):
        return "; stablehlo.convert changes element types"
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    if all(len(set(dims) - {1}) <= 1 for dims in zip(*padded, strict=True)):
        return "; ops do not broadcast: use stablehlo.broadcast_in_dim, or the chlo.broadcast_ form of the op"
    return ""


def unary(kinds: str) -> Callable[..., Type]:
    """`infer` of an op of one operand whose result has the operand's type."""

    def infer(x: Type) -> Type:
        return same_types((x,), kinds)

    return infer


def unary_function(kinds: str) -> Callable[..., Type]:
    """`unary` with the attribute result_accuracy."""

    def infer(x: Type, *, result_accuracy: str = "DEFAULT") -> Type:
        return same_types((x,), kinds)

    return infer


def binary(kinds: str) -> Callable[..., Type]:
    """`infer` of an op of two operands of one type, which is also the result's."""

    def infer(x: Type, y: Type) -> Type:
        return same_types((x, y), kinds)

    return infer


@cache
def lowering(room: str, name: str) -> Callable[..., Any]:
    return getattr(import_module(f"hilo.loop.{room}"), name)


def arith(name: str) -> Callable[..., Any]:
    """The `scalar` piece that is `hilo.loop.arith.<name>(b, *elems)`."""

    def scalar(b: Any, out: TensorType, *xs: Any, **_: Any) -> Any:
        return lowering("arith", name)(b, *xs)

    return scalar


def math(name: str) -> Callable[..., Any]:
    """The `scalar` piece that is `hilo.loop.math.<name>(b, *elems)`."""

    def scalar(b: Any, out: TensorType, *xs: Any, **_: Any) -> Any:
        return lowering("math", name)(b, *xs)

    return scalar


def pointwise(*types: TensorType, out: TensorType | None = None, **_: Any) -> str:
    """The sharding rule of an elementwise op: equal axes correspond, rank-0 operands are replicated."""
    names = axis_names(max(t.rank for t in types))
    return ",".join(names[: t.rank] for t in types) + "->" + names


def flops(n: float) -> Callable[..., tuple[float, float]]:
    """`cost` of an op that takes about `n` operations per element."""

    def cost(*types: TensorType, out: TensorType, **_: Any) -> tuple[float, float]:
        return n * out.size, float(sum(t.nbytes for t in (*types, out)))

    return cost


def of_kinds(kinds: str) -> list[DType]:
    return [d for d in COMMON if d.kind in kinds]


Examples = list[tuple[tuple[TensorType, ...], dict[str, Any]]]


def examples(kinds: str, operands: int = 1, **attrs: Any) -> Callable[[], Examples]:
    """Makes every compiled element type of these kinds once, over shapes: rank 0, no elements, whole and ragged
    vectors."""
    return lambda: [((TensorType(d, s),) * operands, attrs) for d, s in zip(of_kinds(kinds), cycle(_SHAPES))]
