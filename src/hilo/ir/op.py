"""Ops, attributes and op definitions: the one node class of the tensor IR. Imports only ir.types, ir.quantized."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error, VerifyError
from hilo.ir.dtypes import DType, from_numpy
from hilo.ir.types import QUANTIZED, Results, TensorType, Type, any_quantized, result_types
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.ir import quantized
else:
    quantized = Later("hilo.ir.quantized")


class Array:
    """An immutable, hashable array attribute, compared by dtype, shape, *bytes*: 0.0 and -0.0 differ, NaN equals NaN.

    A splat (one value everywhere) keeps only that value; `data` is then a broadcast view without memory of its own.
    """

    __slots__ = ("_hash", "data", "is_splat")
    data: np.ndarray
    is_splat: bool

    def __init__(self, data: Any, shape: Iterable[int] | None = None) -> None:
        a = np.asarray(data)
        if shape is not None:
            a = np.broadcast_to(a, tuple(shape))
        self.is_splat = a.size == 1 or (a.size > 1 and not any(a.strides))
        if not self.is_splat:
            a = np.ascontiguousarray(a)
        if a.flags.writeable:
            a = a.copy() if a is data else a
            a.flags.writeable = False
        self.data = a
        self._hash: int | None = None

    @property
    def scalar(self) -> Any:
        """The one value of a splat, as a numpy scalar."""
        return self.data.flat[0]

    @property
    def type(self) -> TensorType:
        return TensorType(from_numpy(self.data.dtype), self.data.shape)

    def _bytes(self) -> bytes:
        return self.data.reshape(-1)[:1].tobytes() if self.is_splat else self.data.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.data.dtype.str, self.data.shape, self._bytes()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Array) or self.data.shape != other.data.shape or self.data.dtype != other.data.dtype:
            return False
        if self.is_splat != other.is_splat:
            return self.data.tobytes() == other.data.tobytes()
        return self._bytes() == other._bytes()

    def __repr__(self) -> str:
        return f"Array({self.scalar!r}, {self.data.shape})" if self.is_splat else f"Array({self.type!r})"


class Opaque(str):
    """An attribute kept as its MLIR text (attributes of other dialects)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Opaque({str.__repr__(self)})"


class Attrs(Mapping[str, Any]):
    """An op's attributes: an immutable, hashable mapping in insertion order."""

    __slots__ = ("_d", "_hash")

    def __init__(self, items: Mapping[str, Any] | None = None, **more: Any) -> None:
        self._d: dict[str, Any] = {**(items or {}), **more}
        self._hash: int | None = None

    def __getitem__(self, key: str) -> Any:
        return self._d[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._d)

    def __len__(self) -> int:
        return len(self._d)

    def get(self, key: str, default: Any = None) -> Any:
        return self._d.get(key, default)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._d.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and (self is other or self._d == other._d)

    def replace(self, **changes: Any) -> Attrs:
        return Attrs(self._d, **changes)

    def own(self) -> dict[str, Any]:
        """The attributes that belong to the op itself: all but the discardable ones, whose names have a dot."""
        return {k: v for k, v in self._d.items() if "." not in k} if self._d else {}

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{k}={v!r}" for k, v in self._d.items()) + "}"


NO_ATTRS: Final = Attrs()


class Op:
    """One operation, which is also the value that it yields. Never changed once made; compared by identity.

    An op with zero or several results has a `Results` type; `get(op, index=i)` takes one out.
    """

    __slots__ = ("__weakref__", "attrs", "kind", "loc", "operands", "type")
    kind: Final[OpDef]
    operands: Final[tuple[Op, ...]]
    attrs: Final[Attrs]
    type: Final[Type]
    loc: Final[Any]

    def __init__(self, kind: OpDef, operands: tuple[Op, ...], attrs: Attrs, type: Type, loc: Any = None) -> None:  # noqa: A002
        self.kind = kind  # type: ignore[misc]
        self.operands = operands  # type: ignore[misc]
        self.attrs = attrs  # type: ignore[misc]
        self.type = type  # type: ignore[misc]
        self.loc = loc  # type: ignore[misc]

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def tensor(self) -> TensorType:
        """This value's type, known to be a tensor type."""
        assert isinstance(self.type, TensorType), self
        return self.type

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def with_operands(self, operands: Iterable[Op]) -> Op:
        """The same operation on other operands of the same types."""
        return Op(self.kind, tuple(operands), self.attrs, self.type, self.loc)

    def with_attrs(self, **changes: Any) -> Op:
        """The same operation with some attributes changed; its type is inferred anew."""
        return self.kind.make(self.operands, self.attrs.replace(**changes), self.loc)

    def results(self) -> tuple[Op, ...]:
        """The values this op yields: itself, or a `get` for each of several results."""
        if not isinstance(self.type, Results):
            return (self,)
        return tuple(Op(GET, (self,), Attrs(index=i), t, self.loc) for i, t in enumerate(self.type.types))

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.type!r}>"


class OpDef:
    """All there is to know of one kind of op; a class statement under `@op(name)` in ops/ fills it in.

    infer(*types, **attrs) -> Type        verify (numbered like the spec) and give the result type
    evaluate(*arrays, **attrs)            reference semantics in numpy: an array, or a tuple for `Results`
    scalar(b, out, *elems, **attrs)       elementwise ops: loop IR for one element from elements at the same index
    element(b, out, index, *operands, **attrs)   index-moving ops: one element at `index`; operands are closures
    sharding, cost, examples, doc         see ops/registry.py
    typed: the op carries its result type as the attribute `type` (it cannot be inferred); so does every op on quantized
        tensors, whose infer and evaluate see floats or stored integers instead (ir/quantized.py)
    dotted: evaluate gets the attributes with a dot in their names, too
    effect: it must stay even if nothing uses it;  dialect: "stablehlo", "chlo", "mhlo", "func" or "hilo" (internal)
    """

    __slots__ = ("__weakref__", "_examples", "attrs", "cls", "cost", "dialect", "doc", "dotted", "effect", "element",
                 "evaluate", "expand", "full_name", "infer", "name", "scalar", "sharding", "typed")  # fmt: skip

    def __init__(self, name: str, **pieces: Any) -> None:
        self.name: str = name
        self.infer: Callable[..., Type] = pieces["infer"]
        self.evaluate: Callable[..., Any] | None = pieces.get("evaluate")
        self.scalar: Callable[..., Any] | None = pieces.get("scalar")
        self.element: Callable[..., Any] | None = pieces.get("element")
        self.expand: Callable[..., Op | tuple[Op, ...] | None] | None = pieces.get("expand")
        self.sharding: Any = pieces.get("sharding")
        self.cost: Callable[..., Any] | None = pieces.get("cost")
        self._examples: list[Any] | Callable[[], list[Any]] = pieces.get("examples", [])
        self.attrs: dict[str, Any] = pieces.get("attrs", {})
        self.typed: bool = pieces.get("typed", False)
        self.dotted: bool = pieces.get("dotted", False)
        self.effect: bool = pieces.get("effect", False)
        self.dialect: str = pieces.get("dialect", "stablehlo")
        self.full_name: str = f"{self.dialect}.{name}"
        self.doc: str = pieces.get("doc") or ""
        self.cls: Any = pieces.get("cls")

    @property
    def examples(self) -> list[Any]:
        """Pairs of operand types and attributes. Few processes look at them: a definition may give a function that
        makes them."""
        if callable(self._examples):
            self._examples = self._examples()
        return self._examples

    @examples.setter
    def examples(self, examples: list[Any]) -> None:
        self._examples = examples

    def __repr__(self) -> str:
        return f"OpDef({self.full_name})"

    def __reduce__(self) -> Any:
        from hilo.ir import registry

        return registry.lookup, (self.full_name,)

    def make(self, operands: Iterable[Op], attrs: Attrs = NO_ATTRS, loc: Any = None) -> Op:
        """A verified op of this kind. Raises `VerifyError` with the op's name and `loc`."""
        operands = tuple(operands)
        if self.attrs and any(k not in attrs for k in self.attrs):
            attrs = Attrs({**self.attrs, **attrs})
        try:
            own = attrs._d if not any("." in k for k in attrs) else attrs.own()
            types = tuple([o.type for o in operands])
            if QUANTIZED and any_quantized((*types, *filter(None, [own.get("type")]))):
                t = quantized.rule_for(self).infer(self, types, dict(own))
            else:
                t = self.infer(*types, **own)
        except Error as e:
            raise e.at(loc, self.full_name) from None
        except TypeError as e:  # wrong number of operands, or a missing or unknown attribute
            text = _misfit(self.infer, len(operands), attrs.own(), e)
            raise VerifyError(text, loc=loc, op=self.full_name) from e
        return Op(self, operands, attrs, t, loc)

    def __call__(self, *operands: Op, loc: Any = None, **attrs: Any) -> Op:
        return self.make(operands, Attrs(attrs) if attrs else NO_ATTRS, loc)


def _misfit(infer: Callable[..., Type], operands: int, attrs: Mapping[str, Any], error: TypeError) -> str:
    """What of the number of operands or the names of attributes `infer` does not take, or else of their kinds."""
    from difflib import get_close_matches
    from inspect import Parameter, signature

    taken: dict[Any, list[Parameter]] = {}
    for p in signature(infer).parameters.values():
        taken.setdefault(p.kind, []).append(p)
    positional = taken.get(Parameter.POSITIONAL_OR_KEYWORD, [])
    least = sum(p.default is p.empty for p in positional)
    most = None if Parameter.VAR_POSITIONAL in taken else len(positional)
    if operands < least or (most is not None and operands > most):
        return f"the op takes {least if most == least else f'at least {least}'} operands, not {operands}"
    names = {p.name: p for p in taken.get(Parameter.KEYWORD_ONLY, [])}
    unknown = [k for k in attrs if k not in names]
    if Parameter.VAR_KEYWORD in taken:  # but not those of operands
        unknown = [p.name for p in positional if p.name in attrs]
    if unknown:
        near = get_close_matches(unknown[0], names, 1)
        return f"the op has no attribute '{unknown[0]}'" + (f"; is '{near[0]}' meant?" if near else "")
    missing = [k for k, p in names.items() if p.default is p.empty and k not in attrs]
    if missing:
        return "the result type is missing" if missing[0] == "type" else f"attribute '{missing[0]}' is missing"
    return f"an operand or an attribute is of the wrong kind: {error}"


def _infer_parameter(*, index: int, type: Type, **_: Any) -> Type:  # noqa: A002
    return type


def _infer_get(source: Type, *, index: int) -> Type:
    return result_types(source)[index]


PARAMETER: Final = OpDef(
    "parameter", infer=_infer_parameter, typed=True, dialect="hilo", doc="A parameter of a function."
)
GET: Final = OpDef("get", infer=_infer_get, dialect="hilo", doc="One result of an op with several results.")
