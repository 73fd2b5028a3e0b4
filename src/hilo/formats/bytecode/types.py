"""Types from their parts, for all dialects' encodings: tensors, quantized elements. Imports its siblings and mlir_text.

A dynamic dimension, and a bound that is absent, is -2**63.
"""

from __future__ import annotations

import re
from typing import Any

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode.entries import EntryReader, parse_type
from hilo.formats.bytecode.values import Element, Struct, Text
from hilo.formats.bytecode.wire import Reader
from hilo.ir.dtypes import DType
from hilo.ir.types import UNKNOWN, Dim, OpaqueType, TensorType, Type, bounded
from hilo.record import record

DYNAMIC = -(1 << 63)
_MAX_RANK = 1024


def tensor(shape: tuple[int, ...], t: Any, encoding: Any, r: Reader) -> Type:
    """The tensor type; element types without a `DType` go through the text, which knows how the IR keeps them."""
    if len(shape) > _MAX_RANK:
        raise r.error(f"a tensor type of more than {_MAX_RANK} dimensions")
    dims: list[int | Dim] = [UNKNOWN if d == DYNAMIC else d for d in shape]
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise r.error("a negative dimension")
    text: str | None = None
    if isinstance(encoding, Struct) and encoding.kind == "type_extensions":
        dims = _bounded(dims, encoding.fields["bounds"], r)
    elif isinstance(encoding, Text):
        text = encoding.text
    elif encoding is not None:
        raise r.error("a tensor type with an encoding that is not known here", Unsupported)
    if isinstance(t, DType):
        return TensorType(t, dims, text)
    if not isinstance(t, OpaqueType):
        raise r.error(f"a tensor of {t!r}")
    spelling = "".join("?x" if isinstance(d, Dim) else f"{d}x" for d in dims)
    whole = parse_type(f"tensor<{spelling}{t.text}{f', {text}' if text else ''}>", r.loc)
    if not isinstance(whole, TensorType):
        raise r.error(f"a tensor of {t!r}")
    return TensorType(whole.dtype, dims, whole.encoding)


def _bounded(dims: list[int | Dim], bounds: tuple[int, ...], r: Reader) -> list[int | Dim]:
    if len(bounds) != len(dims):
        raise r.error(f"{len(bounds)} bounds for {len(dims)} dimensions")
    new: list[int | Dim] = []
    for d, bound in zip(dims, bounds, strict=True):
        if bound != DYNAMIC and (bound < 0 or isinstance(d, int)):
            raise r.error(f"bound {bound} for dimension {d}")
        new.append(d if bound == DYNAMIC else bounded(bound))
    return new


def spelled(t: Any) -> str:
    """The MLIR text of an element type or a type."""
    from hilo.formats.mlir_text.types import print_function_type, print_type

    if isinstance(t, DType):
        return t.mlir
    if isinstance(t, Type):
        return print_type(t)
    return print_function_type(t.operands, t.results)


def parse_types(text: str) -> list[Type]:
    """Types separated by commas."""
    from hilo.formats.mlir_text.cursor import Cursor
    from hilo.formats.mlir_text.lexer import Source
    from hilo.formats.mlir_text.types import parse_type as parse

    c = Cursor(Source(f"{text})", ""))
    return c.comma_list(")", lambda: parse(c))


def buffer(text: str) -> Type | None:
    """The tensor type with the shape and the element type of a plain `memref<...>`; None for any other."""
    try:
        t = parse_types(f"tensor<{text[7:]}")[0]
    except Error:
        return None
    return t if isinstance(t, TensorType) and t.encoding is None else None


# -- quantized element types --------------------------------------------------------------------


@record(frozen=True)
class Quantized:
    """`!quant.uniform<...>`: `axis` None is per tensor, with one scale and zero point."""

    storage: str  # "i8" or "u8"
    expressed: Element
    low: int
    high: int
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


_QUANTIZED = re.compile(
    r"!quant\.uniform<\s*([iu]\d+)\s*(?:<\s*(-?\d+)\s*:\s*(-?\d+)\s*>)?\s*:\s*(\w+)\s*(?::\s*(\d+)\s*)?,\s*(.*)>\s*\Z",
    re.DOTALL,
)


def limits(storage: str) -> tuple[int, int]:
    """The smallest and largest value of `i8`, `u4` ..."""
    bits = int(storage[1:])
    return (0, (1 << bits) - 1) if storage[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def read_quantized(text: str) -> Quantized:
    """The parts of a type's text. Raises `Unsupported` for what has no portable encoding (sub-channel quantization)."""
    m = _QUANTIZED.match(text)
    body = m[6].strip().removeprefix("{").removesuffix("}") if m else "{"
    if m is None or "{" in body or (m[5] is None) != (m[6].strip()[:1] != "{"):
        raise Unsupported(f"the type {text} has no portable encoding")
    low, high = limits(m[1])
    pairs = [item.partition(":") for item in body.split(",")]
    try:
        scales = tuple(float(a) for a, _, _ in pairs)
        zeros = tuple(int(b) if b.strip() else 0 for _, _, b in pairs)
    except ValueError:
        raise Error(f"the type {text} has scales or zero points that are no numbers") from None
    return Quantized(m[1], parse_type(m[4], None), int(m[2]) if m[2] else low, int(m[3]) if m[3] else high,
                     int(m[5]) if m[5] else None, scales, zeros)  # fmt: skip


def print_quantized(q: Quantized) -> str:
    """The text of the type, as MLIR prints it."""
    from hilo.formats.mlir_text.dense import print_float
    from hilo.ir.dtypes import f64

    span = "" if (q.low, q.high) == limits(q.storage) else f"<{q.low}:{q.high}>"
    pairs = zip(q.scales, q.zero_points, strict=True)
    items = ", ".join(print_float(s, f64) + (f":{z}" if z else "") for s, z in pairs)
    head = f"{q.storage}{span}:{spelled(q.expressed)}"
    return f"!quant.uniform<{head}, {items}>" if q.axis is None else f"!quant.uniform<{head}:{q.axis}, {{{items}}}>"


def decode_quantized(r: EntryReader, per_axis: bool) -> OpaqueType:
    """The encoding that VHLO and the quant dialect share. The lowest flag says that the storage is signed."""
    signed, storage, expressed = r.varint() & 1, r.type(), r.type()
    if not isinstance(storage, DType) or not storage.is_int or storage.bits > 32:
        raise r.error(f"a quantized type with the storage type {storage!r}", Unsupported)
    axis: int | None = None
    if per_axis:
        axis, low, high = r.varint(), r.signed(), r.signed()
        scales = tuple([r.double() for _ in range(r.count())])
        zeros = r.signeds()
    else:
        scales, zeros = (r.double(),), (r.signed(),)
        low, high = r.signed(), r.signed()
    if len(zeros) != len(scales):
        raise r.error(f"{len(scales)} scales, but {len(zeros)} zero points")
    name = f"{'i' if signed else 'u'}{storage.bits}"
    return OpaqueType(print_quantized(Quantized(name, expressed, low, high, axis, scales, zeros)))
