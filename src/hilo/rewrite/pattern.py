"""Patterns over ops: variables, constants and ops' names applied to them. Imports only ir.

A pattern only describes; `rewrite.rules` turns it into a plain Python function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.ir.dims import Undecided
from hilo.ir.dtypes import DType
from hilo.ir.op import NO_ATTRS, Array, Attrs, Op, OpDef
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType

#: Ops whose two operands may be swapped without changing a bit of the result (NaN payloads aside).
COMMUTATIVE: Final = frozenset(
    f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
)


class Node:
    """Base of what may stand in a pattern."""

    __slots__ = ()


class Var(Node):
    """Matches any value (or attribute) and binds it to `name`; a second occurrence must be the same one.

    `kinds` restricts a value to tensors of some element kinds: letters of "b" (i1), "i", "u", "f", "c".
    """

    __slots__ = ("kinds", "name")

    def __init__(self, name: str, kinds: str = "") -> None:
        self.name = name
        self.kinds = kinds

    def __repr__(self) -> str:
        return self.name


class Literal(Node):
    """Matches a constant op and binds it."""

    __slots__ = ("var",)
    word = "Literal"

    def __init__(self, var: Var) -> None:
        self.var = var

    def __repr__(self) -> str:
        return f"{self.word}({self.var!r})"


class Splat(Literal):
    """Matches a constant with one value everywhere and binds the constant op."""

    __slots__ = ()
    word = "Splat"


class Const(Node):
    """Matches a constant that is `value` everywhere, bit by bit: `Const(0.0)` is not -0.0.

    A float stands for float types, an int for integers (-1 is all ones in unsigned types), a bool for i1;
    `kinds` names other element kinds. As a template it builds the constant in the type of the matched op.
    """

    __slots__ = ("_bytes", "kinds", "value")

    def __init__(self, value: bool | int | float, kinds: str = "") -> None:
        self.value = value
        self.kinds = kinds or ("b" if isinstance(value, bool) else "iu" if isinstance(value, int) else "f")
        self._bytes: dict[DType, bytes | None] = {}

    def matches(self, op: Op) -> bool:
        """Whether the constant op `op` is this constant."""
        array: Array = op.attrs["value"]
        if not array.is_splat:
            return False
        dtype = op.dtype
        try:
            want = self._bytes[dtype]
        except KeyError:
            want = self._bytes.setdefault(dtype, self._encode(dtype))
        return want is not None and array.data.reshape(-1)[:1].tobytes() == want

    def _encode(self, dtype: DType) -> bytes | None:
        """The bytes of this value in `dtype`; None where it has no exact place there."""
        if dtype.kind not in self.kinds:
            return None
        if not dtype.is_float:
            value = int(self.value) & ((1 << dtype.bits) - 1)
            if dtype.kind == "i" and value >> (dtype.bits - 1):
                value -= 1 << dtype.bits
            return np.asarray(value).astype(dtype.np).tobytes()
        with np.errstate(all="ignore"):
            there = np.asarray(self.value, np.float64).astype(dtype.np)
            back = there.astype(np.float64)
        return there.tobytes() if back.tobytes() == np.float64(self.value).tobytes() else None

    def build(self, type: TensorType) -> Op:  # noqa: A002
        """The constant of `type`."""
        data = self._encode(type.dtype)
        assert data is not None, f"{self} does not exist in {type.dtype}"
        return splat(np.frombuffer(data, type.dtype.np)[0], type)

    def __repr__(self) -> str:
        return repr(self.value)


class Pattern(Node):
    """An op's name applied to patterns. `pattern >> template` is a rule; `.where(guard)` and `.once(...)` narrow it."""

    __slots__ = ("attrs", "guards", "name", "operands", "single_use", "symbol")

    def __init__(self, symbol: Symbol, operands: tuple[Node, ...] | None, attrs: dict[str, Any]) -> None:
        self.symbol = symbol
        self.operands = operands  # None: any number of any operands
        self.attrs = attrs
        self.guards: tuple[Callable[..., bool], ...] = ()
        self.single_use = False
        self.name = ""

    @property
    def asks_nothing(self) -> bool:
        """Whether it matches its op with any operands and attributes, and binds nothing."""
        return self.operands is None and not (self.attrs or self.guards or self.single_use or self.name)

    def _copy(self) -> Pattern:
        new = Pattern(self.symbol, self.operands, self.attrs)
        new.guards, new.single_use, new.name = self.guards, self.single_use, self.name
        return new

    def where(self, guard: Callable[..., bool]) -> Pattern:
        """Matches only if `guard(...)`, a function of bound names (and `op`, the matched root), holds."""
        new = self._copy()
        new.guards = (*self.guards, guard)
        return new

    def once(self) -> Pattern:
        """Matches only a value with a single use: what the rule takes apart is then not computed twice."""
        new = self._copy()
        new.single_use = True
        return new

    def named(self, name: str) -> Pattern:
        """Binds the matched op itself to `name`."""
        new = self._copy()
        new.name = name
        return new

    def __rshift__(self, template: Any) -> Any:
        from hilo.rewrite.rules import Rule, caller

        return Rule([self], template, caller(1))

    def __repr__(self) -> str:
        inside = ["..."] if self.operands is None else [repr(o) for o in self.operands]
        return f"{self.symbol.short}({', '.join([*inside, *(f'{k}={v!r}' for k, v in self.attrs.items())])})"


class Symbol:
    """The name of an op: applied to patterns it makes a pattern, applied to ops an op."""

    __slots__ = ("_kind", "full_name")

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name
        self._kind: OpDef | None = None

    @property
    def kind(self) -> OpDef:
        if self._kind is None:
            self._kind = lookup(self.full_name)
        return self._kind

    @property
    def short(self) -> str:
        return self.full_name.removeprefix("stablehlo.")

    @property
    def any(self) -> Pattern:
        """Matches this op with any operands and attributes."""
        return Pattern(self, None, {})

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        if any(isinstance(x, Node) for x in operands) or any(isinstance(x, Var) for x in attrs.values()):
            return Pattern(self, operands, attrs)
        return self.kind.make(operands, Attrs(attrs) if attrs else NO_ATTRS)

    def __repr__(self) -> str:
        return f"Symbol({self.full_name})"


CONSTANT: Final = Symbol("stablehlo.constant")


def constant(array: Array) -> Op:
    """A constant op."""
    return Op(CONSTANT.kind, (), Attrs(value=array), array.type)


def splat(value: Any, type: TensorType) -> Op:  # noqa: A002
    """A constant of `type` that is `value` (a number that `type` holds exactly) everywhere."""
    if not type.is_static:
        raise Undecided(f"a constant of type {type}")
    array = Array(np.asarray(value, type.dtype.np), type.shape)
    return Op(CONSTANT.kind, (), Attrs(value=array), type)
