"""Attributes of other dialects, kept as MLIR text, as Python values with their types. Imports ir.

Numbers become numpy scalars of the type that is written (without one: int64, float64), `array<>` and `dense<>` numpy
arrays, lists tuples, dictionaries dicts, strings str, `unit` and booleans bool. What is none of these stays text.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.ir.op import Array, Attrs, Opaque
from hilo.ir.types import Type

_TOKEN: Final = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|([A-Za-z_][\w.$]*)|(.))', re.S
)
_ESCAPE: Final = re.compile(rb'\\([0-9A-Fa-f]{2}|[nt"\\])')
_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_INTEGER: Final = re.compile(r"(si|ui|i)(\d+)")


def decode(value: Any) -> Any:
    """An attribute as a value for Python functions and for XLA's FFI."""
    if isinstance(value, Opaque):
        try:
            return _Reader(value).whole()
        except (_Unknown, ValueError, OverflowError, KeyError):
            return str(value)
    if isinstance(value, Attrs):
        return {k: decode(v) for k, v in value.items()}
    if isinstance(value, Array):
        return value.data
    if isinstance(value, tuple):
        return tuple(map(decode, value))
    if isinstance(value, bool | str | Type | np.generic):
        return value
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    return value


class _Unknown(Exception):
    """An attribute that is not one of the kinds above."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> tuple[str, str]:
        """Kind ("string", "number", "word", "mark", "end") and text of the next token."""
        m = _TOKEN.match(self.text, self.at)
        if m is None:
            return "end", ""
        kind = ("string", "number", "word", "mark")[(m.lastindex or 1) - 1]
        return kind, m.group(m.lastindex or 1)

    def next(self) -> tuple[str, str]:
        kind, token = self.peek()
        m = _TOKEN.match(self.text, self.at)
        if m is not None:
            self.at = m.end()
        return kind, token

    def skip(self, mark: str) -> bool:
        if self.peek()[1] != mark:
            return False
        self.next()
        return True

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise _Unknown

    def whole(self) -> Any:
        value = self.value()
        if self.peek()[0] != "end":
            raise _Unknown
        return value

    def value(self) -> Any:
        kind, token = self.next()
        if kind == "string":
            return unescape(token[1:-1])
        if kind == "number":
            return self.number(token)
        if token in ("true", "false"):
            return token == "true"
        if token == "unit":
            return True
        if token == "[":
            return tuple(self.items("]", self.value))
        if token == "{":
            return dict(self.items("}", self.entry))
        if token == "array":
            return self.array()
        if token == "dense":
            return self.dense()
        raise _Unknown

    def items(self, end: str, one: Any) -> list[Any]:
        out: list[Any] = []
        while not self.skip(end):
            if out:
                self.expect(",")
            out.append(one())
        return out

    def entry(self) -> tuple[str, Any]:
        kind, token = self.next()
        if kind not in ("word", "string"):
            raise _Unknown
        name = unescape(token[1:-1]) if kind == "string" else token
        return name, self.value() if self.skip("=") else True

    def number(self, token: str) -> Any:
        if self.skip(":"):
            return element(token, self.type_name())
        return element(token, "i64" if re.fullmatch(r"[-+]?\d+|0x.*", token) else "f64")

    def type_name(self) -> str:
        kind, token = self.next()
        if kind != "word":
            raise _Unknown
        return token

    def array(self) -> Any:
        self.expect("<")
        name = self.type_name()
        items = self.items(">", lambda: element(self.next()[1], name)) if self.skip(":") else self.items(">", None)
        return np.array(items, numpy_type(name))

    def dense(self) -> Any:
        self.expect("<")
        start = self.at
        depth = 1
        while depth:
            kind, token = self.next()
            if kind == "end":
                raise _Unknown
            depth += (token == "<") - (token == ">")
        inside = self.text[start : self.at - 1]
        self.expect(":")
        self.expect_word("tensor")
        self.expect("<")
        m = re.compile(r"\s*((?:\d+x)*)([A-Za-z]\w*)\s*>").match(self.text, self.at)
        if m is None:
            raise _Unknown
        self.at = m.end()
        shape, name = tuple(int(n) for n in m.group(1).split("x")[:-1]), m.group(2)
        tokens = [t for _, t in _tokens(inside) if t not in "[],"]
        data = np.array([element(t, name) for t in tokens], numpy_type(name))
        return np.ascontiguousarray(np.broadcast_to(data, shape)) if data.size == 1 else data.reshape(shape)

    def expect_word(self, word: str) -> None:
        if self.next()[1] != word:
            raise _Unknown


def _tokens(text: str) -> list[tuple[str, str]]:
    r, out = _Reader(text), []
    while (t := r.next())[0] != "end":
        out.append(t)
    return out


def unescape(text: str) -> str:
    """The characters of a quoted MLIR string."""
    data = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1]) or bytes([int(m[1], 16)]), text.encode())
    return data.decode(errors="surrogateescape")


def numpy_type(name: str) -> np.dtype:
    """The numpy type of an MLIR element type."""
    if name == "index":
        return np.dtype(np.int64)
    m = _INTEGER.fullmatch(name)
    if m is not None:
        name = ("ui" if m[1] == "ui" else "i") + m[2]
    found = dtypes.dtype(name.replace("ui", "u", 1) if name.startswith("ui") else name)
    return found.np


def element(token: str, name: str) -> Any:
    """A number as it is written, as a numpy scalar. Floats may be written as their bits, in hexadecimal."""
    t = numpy_type(name)
    if token in ("true", "false"):
        return np.array(token == "true").astype(t)[()]
    if t.kind in "iub":
        n = int(token, 0)
        if t.kind == "u" and n < 0:
            raise Error(f"{token} is no {name}")
        if t.kind == "i" and n >= 1 << (8 * t.itemsize - 1):
            n -= 1 << (8 * t.itemsize)
        return np.array(n).astype(t)[()]
    if token.startswith("0x"):
        return np.array(int(token, 16)).astype(f"u{t.itemsize}").view(t)[()]
    return np.array(float(token)).astype(t)[()]
