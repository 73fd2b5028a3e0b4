"""Shapes in HLO text, `f32[8,<=4]{1,0:T(8,128)}` and tuples of them, to `Shape` and back. Imports model, schema, ir."""

from __future__ import annotations

import re
from typing import Final

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text import schema
from hilo.formats.hlo_text.model import Layout, Shape, tuple_of
from hilo.formats.mlir_text.cursor import Cursor
from hilo.ir.types import TOKEN, UNKNOWN, Dim, TensorType, TupleType, Type, bounded

_ARRAY: Final = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([^{}:]*)(?::([^{}]*))?\})?")
_TILE: Final = re.compile(r"T((?:\([^()]*\))+)")
_MAX_RANK: Final = 1024


def is_shape(token: str) -> bool:
    """Whether a shape begins with this token."""
    return token == "(" or (token[:1].islower() and _ARRAY.fullmatch(token) is not None)


def parse_shape(c: Cursor, known: dict[str, Shape]) -> Shape:
    """The shape at the cursor; `known` keeps the shapes of array tokens."""
    token = c.tokens[c.at]
    found = known.get(token)
    if found is not None:
        c.at += 1
        return found
    if token == "(":
        with c.nested():
            c.take()
            return tuple_of(c.comma_list(")", lambda: parse_shape(c, known)))
    m = _ARRAY.fullmatch(token)
    if m is None:
        raise c.expected("a shape")
    try:
        shape = known[token] = _array(m)
    except Error as e:
        raise c.error(e.message, kind=type(e)) from None
    c.at += 1
    return shape


def _array(m: re.Match[str]) -> Shape:
    name, dims, axes, properties = m[1], m[2].strip(), m[3], m[4]
    if name == "token" and not dims:
        return Shape(TOKEN)
    dtype = schema.DTYPES.get(name)
    if dtype is None:
        if name in ("opaque", "tf32", "buffer"):
            raise Unsupported(f"values of type {name} are not supported")
        raise Error(f"unknown element type '{name}'")
    shape = [_dim(d.strip()) for d in dims.split(",")] if dims else []
    if len(shape) > _MAX_RANK:
        raise Error(f"a shape of more than {_MAX_RANK} dimensions")
    if axes is None:
        return Shape(TensorType(dtype, shape))
    numbers = [a.strip() for a in axes.split(",")] if axes.strip() else list(map(str, range(len(shape) - 1, -1, -1)))
    order = tuple(int(a) if a.isdecimal() and len(a) < 6 else -1 for a in numbers)
    if sorted(order) != list(range(len(shape))):
        raise Error(f"the layout {{{axes}}} does not list the {len(shape)} dimensions")
    layout = Layout(order, (properties or "").strip())
    return Shape(TensorType(dtype, shape), None if layout.is_default else layout)


def _dim(text: str) -> int | Dim:
    if text == "?":
        return UNKNOWN
    digits = text.removeprefix("<=").strip()
    if not digits.isdecimal() or len(digits) > 19 or int(digits) >= 1 << 63:
        raise Error(f"'{text[:24]}' is no dimension size")
    return bounded(int(digits)) if digits != text else int(digits)


def tiles(layout: Layout | None) -> tuple[tuple[int, ...], ...]:
    """The tiles of a layout, outermost first: `T(8,128)(2,1)` is ((8, 128), (2, 1)). `Error` for a malformed one."""
    m = _TILE.search(layout.properties) if layout is not None else None
    if m is None:
        return ()
    texts = [t.split(",") for t in m[1][1:-1].split(")(")]
    if any("*" in part for t in texts for part in t):
        raise Unsupported("tiles that join dimensions are not supported")
    if not all(part.strip().isdecimal() and int(part) > 0 for t in texts for part in t):
        raise Error(f"malformed tiles '{m[0]}'")
    return tuple(tuple(map(int, t)) for t in texts)


# -- printing -----------------------------------------------------------------------------------


def print_shape(s: Shape) -> str:
    """The text that `parse_shape` reads; row-major layouts are written out, as XLA does."""
    if s.is_tuple:
        return f"({', '.join(map(print_shape, s.parts))})"
    t = s.type
    if t is TOKEN:
        return "token[]"
    if not isinstance(t, TensorType) or t.encoding is not None or t.dtype not in schema.DTYPE_NAMES:
        raise Unsupported(f"HLO text has no type like {t!r}")
    text = f"{schema.DTYPE_NAMES[t.dtype]}[{','.join(map(_print_dim, t.shape))}]"
    if s.layout is None:
        return f"{text}{{{','.join(map(str, range(t.rank - 1, -1, -1)))}}}" if t.rank else text
    axes = ",".join(map(str, s.layout.minor_to_major))
    return f"{text}{{{axes}{':' if s.layout.properties else ''}{s.layout.properties}}}"


def _print_dim(d: int | Dim) -> str:
    return str(d) if isinstance(d, int) else "?" if d.bound is None else f"<={d.bound}"


def leaf_count(t: Type) -> int:
    """How many values that are no tuples a value of type `t` holds."""
    return sum(map(leaf_count, t.types)) if isinstance(t, TupleType) else 1
