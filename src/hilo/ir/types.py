"""Types of the tensor IR. Interned: equal types are one object, compare with `is`. Imports only ir.dtypes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import TYPE_CHECKING, Any, Final

from hilo.ir.dtypes import DType

if TYPE_CHECKING:
    from typing import TypeVar

    _T = TypeVar("_T", bound="Type")

_POOL: weakref.WeakValueDictionary[tuple[Any, ...], Type] = weakref.WeakValueDictionary()


class Dim:
    """A dimension known only at run time, `?` in text; `bound` is its largest value, or None.

    Compared by identity. `UNKNOWN` stands for a plain `?`; bounded ones come from `bounded(n)`. Both say nothing about
    which sizes are equal; `ir.dims.Size`, which passes/shapes.py puts in their place, does (`is_known`).
    """

    __slots__ = ("bound", "name")
    is_known = False

    def __init__(self, name: str = "?", bound: int | None = None) -> None:
        self.name = name
        self.bound = bound

    def __repr__(self) -> str:
        return "?" if self.bound is None else f"?<={self.bound}"

    def __reduce__(self) -> Any:
        return bounded, (self.bound,)


UNKNOWN: Final = Dim()
_BOUNDED: dict[int, Dim] = {}


def bounded(bound: int | None) -> Dim:
    """The symbolic dimension with this bound (None: unbounded)."""
    return UNKNOWN if bound is None else _BOUNDED.setdefault(bound, Dim(bound=bound))


def _intern(cls: type[_T], *key: Any) -> tuple[_T, bool]:
    """The pooled type for `key`, and whether it is new (build, then setdefault: safe in threads)."""
    full = (cls, *key)
    found = _POOL.get(full)
    if found is not None:
        return found, False  # type: ignore[return-value]
    return object.__new__(cls), True


class Type:
    """Base of all types of values."""

    __slots__ = ("__weakref__", "_key")
    _key: tuple[Any, ...]

    def __reduce__(self) -> Any:
        return self._key[0], self._key[1:]

    def _keep(self, key: tuple[Any, ...]) -> Any:
        self._key = key
        return _POOL.setdefault(key, self)


class TensorType(Type):
    """`f32[8,16]`: an element type and a shape of ints and `Dim`s. `encoding` keeps an unknown MLIR encoding's text."""

    __slots__ = ("dtype", "encoding", "is_static", "rank", "shape", "size")
    dtype: DType
    shape: tuple[Any, ...]  # int | Dim; Any, since compiled code only sees ints
    encoding: str | None
    rank: int
    is_static: bool
    size: Any  # number of elements: an int, an `ir.dims.Size` if all symbolic dims are such, else -1

    def __new__(cls, dtype: DType, shape: Iterable[int | Dim] = (), encoding: str | None = None) -> TensorType:
        shape = tuple(shape)
        t, new = _intern(cls, dtype, shape, encoding)
        if not new:
            return t
        t.dtype, t.shape, t.encoding, t.rank = dtype, shape, encoding, len(shape)
        t.is_static = all(isinstance(d, int) for d in shape)
        t.size = prod(shape) if t.is_static or all(isinstance(d, int) or d.is_known for d in shape) else -1  # type: ignore[arg-type]
        return t._keep((cls, dtype, shape, encoding))

    @property
    def nbytes(self) -> Any:
        """Bytes of a dense array of this type (an int, or a `Size`)."""
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Iterable[int | Dim]) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class _Product(Type):
    """Base of types made of other types."""

    __slots__ = ("types",)
    types: tuple[Type, ...]

    def __new__(cls, types: Iterable[Type] = ()) -> Any:
        types = tuple(types)
        t, new = _intern(cls, types)
        if not new:
            return t
        t.types = types
        return t._keep((cls, types))

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[Type]:
        return iter(self.types)

    def __getitem__(self, index: int) -> Type:
        return self.types[index]


class Results(_Product):
    """What an op with zero or several results has as its type; its values are taken out with `get`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.types))})"


class TupleType(_Product):
    """StableHLO's `tuple<...>`, a value of the program (unlike `Results`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tuple<{', '.join(map(repr, self.types))}>"


class FutureType(_Product):
    """StableHLO's `!stablehlo.future<...>`: tensors that an asynchronous op is going to give."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"future<{', '.join(map(repr, self.types))}>"


class OpaqueType(Type):
    """A type kept as text: `!stablehlo.token` ("token") and types of dialects hilo does not know."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> OpaqueType:
        t, new = _intern(cls, text)
        if not new:
            return t
        t.text = text
        return t._keep((cls, text))

    def __repr__(self) -> str:
        return self.text


class UnrankedType(OpaqueType):
    """A tensor of which not even the rank is known, `tensor<*xf32>`. Calls and CHLO's ops take it; nothing runs it."""

    __slots__ = ("dtype",)
    dtype: DType

    def __new__(cls, dtype: DType) -> UnrankedType:
        t, new = _intern(cls, dtype)
        if new:
            t.text, t.dtype = f"tensor<*x{dtype.mlir}>", dtype
            return t._keep((cls, dtype))
        return t

    def with_dtype(self, dtype: DType) -> UnrankedType:
        return UnrankedType(dtype)


TOKEN: Final = OpaqueType("!stablehlo.token")


def result_types(t: Type) -> tuple[Type, ...]:
    """The types of an op's results, given the op's type."""
    return t.types if isinstance(t, Results) else (t,)


def has_unknown_sizes(f: Any) -> bool:
    """Whether the type of an op of the function `f`, or in a region, has a size that is known only at run time."""
    fine: set[Type] = set()
    for o in f.ops:
        t = o.type
        if t not in fine:
            if any(isinstance(x, TensorType) and not x.is_static for x in result_types(t)):
                return True
            fine.add(t)
        if holds_unknown_sizes(o):
            return True
    return False


def holds_unknown_sizes(o: Any) -> bool:
    """Whether a region of the op `o` has a size that is known only at run time."""
    values = [x for v in o.attrs.values() for x in (v if isinstance(v, tuple) else (v,))]
    return any(has_unknown_sizes(x) for x in values if hasattr(x, "ops"))


def same_dim(a: Any, b: Any) -> bool:
    """Whether two dims may be equal: an unknown one equals any that is within its bound."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a is not b and (found := _EQUATIONS.get()) is not None:
        found.append((a, b))
    if isinstance(a, int):
        return b.bound is None or a <= b.bound
    return not isinstance(b, int) or a.bound is None or b <= a.bound


_EQUATIONS: ContextVar[list[tuple[Any, Any]] | None] = ContextVar("hilo_equations", default=None)


@contextmanager
def equations() -> Iterator[list[tuple[Any, Any]]]:
    """Write down which dims `same_dim` takes to be equal inside of the `with` block."""
    found: list[tuple[Any, Any]] = []
    token = _EQUATIONS.set(found)
    try:
        yield found
    finally:
        _EQUATIONS.reset(token)


def compatible(a: Type, b: Type) -> bool:
    """Whether values of `a` may stand where `b` is declared: equal, or equal up to symbolic dims and encodings."""
    if a is b:
        return True
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return (
            a.dtype is b.dtype
            and a.rank == b.rank
            and all(map(same_dim, a.shape, b.shape))
        )
    if isinstance(a, _Product) and type(a) is type(b):
        return len(a) == len(b) and all(map(compatible, a, b))  # type: ignore[arg-type]
    return False


#: All quantized element types that there are, by what they are: made by ir/quantized.py, which few programs need.
QUANTIZED: Final[dict[tuple[Any, ...], DType]] = {}


def any_quantized(types: Iterable[Type]) -> bool:
    """Whether there is a quantized tensor among types (of values, or of several results)."""
    return bool(QUANTIZED) and any(
        isinstance(x, TensorType) and x.dtype.kind == "q" for t in types for x in result_types(t)
    )
