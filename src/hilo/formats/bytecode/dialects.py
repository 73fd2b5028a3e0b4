"""How the builtin, VHLO, StableHLO, CHLO and quant dialects encode attributes and types: reading.

`ATTRS` and `TYPES` give a decoder for each dialect and number. Imports its siblings and ir.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.errors import Unsupported
from hilo.formats.bytecode import sdy, tables
from hilo.formats.bytecode.entries import Codes, Decode, EntryReader, complex_of, element
from hilo.formats.bytecode.types import DYNAMIC, decode_quantized, spelled, tensor
from hilo.formats.bytecode.values import (
    UNIT,
    Dense,
    DenseArray,
    Enum,
    Float,
    FunctionType,
    Integer,
    Struct,
    Symbol,
    Text,
)
from hilo.ir.dtypes import DType
from hilo.ir.module import Loc
from hilo.ir.op import Attrs, Opaque
from hilo.ir.types import TOKEN, FutureType, OpaqueType, TensorType, TupleType, Type

# -- what dialects share ------------------------------------------------------------------------


def enum(kind: str) -> Decode:
    values = tables.ENUM_VALUES[kind]

    def decode(r: EntryReader) -> Enum:
        number = r.varint()
        if number not in values:
            raise r.error(f"value {number} of the enum {kind}")
        return Enum(kind, values[number])

    return decode


_FIELDS: Final[dict[str, Decode]] = {
    "i": EntryReader.signed,
    "I": EntryReader.signeds,
    "v": EntryReader.varint,
    "d": EntryReader.double,
    "a": EntryReader.attr,
    "A": EntryReader.attrs,
    "t": EntryReader.type,
    "s": EntryReader.string,
    "b": lambda r: bool(r.byte()),
    "o": lambda r: r.attr() if r.byte() else None,
    "O": lambda r: r.attr() if r.varint() else None,
    "q": EntryReader.optional,
}


def struct(kind: str, fields: dict[str, str]) -> Decode:
    return lambda r: Struct(kind, Attrs({name: _FIELDS[letter](r) for name, letter in fields.items()}))


def _integer(r: EntryReader) -> Integer | bool:
    t = r.type()
    bits = t.bits if isinstance(t, DType) and t.kind in "biu" else _odd_width(t)
    if bits is None:
        raise r.error(f"an integer of type {spelled(t)}")
    value = r.wide(bits)
    if isinstance(t, DType) and t.kind == "b":
        return bool(value)
    is_signed = not (isinstance(t, DType) and t.kind == "u")
    return Integer(value - (1 << bits) if is_signed and value >> (bits - 1) else value, t)


def _odd_width(t: Any) -> int | None:
    """The width of `index` and of integer types that tensors do not have."""
    text = t.text if isinstance(t, OpaqueType) else ""
    digits = text.lstrip("isu")
    if text == "index":
        return 64
    return int(digits) if text[:1] in ("i", "s", "u") and digits.isdecimal() and 0 < len(digits) < 5 else None


def _float(r: EntryReader) -> Float:
    t = r.type()
    if not isinstance(t, DType) or not t.is_float:
        raise r.error(f"a number of type {spelled(t)}", Unsupported)
    return Float(r.wide(t.bits), t)


def _dense(r: EntryReader) -> Dense:
    return Dense(r.type(), r.blob())


def _types(r: EntryReader) -> tuple[Type, ...]:
    return tuple([_as_type(t, r) for t in r.types()])


def _as_type(t: Any, r: EntryReader) -> Type:
    """A type that values may have."""
    if isinstance(t, DType):
        return OpaqueType(t.mlir)
    if not isinstance(t, Type):
        raise r.error("a function type where values' types are expected", Unsupported)
    return t


def _tensor(r: EntryReader) -> Type:
    return tensor(r.signeds(), r.type(), None, r)


def _encoded_tensor(r: EntryReader) -> Type:
    encoding = r.attr()
    return tensor(r.signeds(), r.type(), encoding, r)


def _unranked(r: EntryReader) -> Type:
    raise r.error("tensors of unknown rank (tensor<*x...>) are not supported", Unsupported)


def _future(r: EntryReader) -> Type:
    types = r.types()
    if not types or not all(isinstance(t, TensorType) for t in types):
        raise r.error("the types of a future must be tensors")
    return FutureType(types)


def _buffer(r: EntryReader) -> Type:
    dims = "".join("?x" if d == DYNAMIC else f"{d}x" for d in r.signeds())
    return OpaqueType(f"memref<{dims}{spelled(r.type())}>")


def _memref(r: EntryReader) -> Type:
    """A buffer with the map of its layout, which is the identity where the text leaves it out."""
    t, layout = _buffer(r), r.attr()
    if not isinstance(layout, Text):
        raise r.error("the layout of a memref in an encoding that is not known here", Unsupported)
    dims, _, results = layout.text.removeprefix("affine_map<").removesuffix(">").partition(" -> ")
    assert isinstance(t, OpaqueType)
    return t if dims == results else OpaqueType(f"{t.text[:-1]}, {layout.text}>")


def _scalar(name: str) -> Decode:
    t = TOKEN if name == "!stablehlo.token" else element(OpaqueType(name))
    return lambda r: t


_TYPE_FORMS: Final[dict[str, Decode]] = {
    "complex": lambda r: complex_of(r.type(), r),
    "function": lambda r: FunctionType(_types(r), _types(r)),
    "tensor": _tensor,
    "encoded": _encoded_tensor,
    "tuple": lambda r: TupleType(_types(r)),
    "unranked": _unranked,
}

# -- builtin ------------------------------------------------------------------------------------


def _symbol(r: EntryReader) -> Symbol:
    root = r.text_attr()
    parts = [x.name if isinstance(x, Symbol) else str(x) for x in r.attrs()]
    return Symbol("::@".join([root, *parts]))


def _dictionary(r: EntryReader) -> Attrs:
    return Attrs({r.text_attr(): r.attr() for _ in range(r.count())})


def _typed_string(r: EntryReader) -> str:
    text = r.string()
    r.type()
    return text


def _locs(r: EntryReader) -> tuple[Loc, ...]:
    return tuple([r.loc_attr() for _ in range(r.count())])


def _fused(r: EntryReader) -> Loc:
    from hilo.formats.bytecode.attributes import text

    children, metadata = _locs(r), r.attr()
    return Loc("fused", children=children, extra=Opaque(text(metadata)))


def _range(r: EntryReader) -> Loc:
    file, numbers = r.text_attr(), [r.varint() for _ in range(r.count())]
    if len(numbers) > 4:
        raise r.error(f"a file location of {len(numbers)} numbers")
    line, col = [*numbers[:2], 0, 0][:2]
    end = (line, numbers[2]) if len(numbers) == 3 else (numbers[2], numbers[3]) if len(numbers) == 4 else None
    return Loc("file", file=file, line=line, col=col, extra=end)


def _resource(r: EntryReader) -> Dense:
    t, index = r.type(), r.varint()
    resources = r.table.file.resources
    if index >= len(resources) or resources[index][1] is None:
        raise r.error("the file holds no data for a dense resource", Unsupported)
    return Dense(t, resources[index][1] or b"")


def _dense_array(r: EntryReader) -> DenseArray:
    t, n, data = r.type(), r.varint(), r.blob()
    if not isinstance(t, DType) or t.bits not in (1, 8, 16, 32, 64) or n * t.itemsize != len(data):
        raise r.error(f"a dense array of {n} elements of type {spelled(t)} in {len(data)} bytes")
    import numpy as np

    return DenseArray(t, tuple(np.frombuffer(data, t.np).tolist()))


def _integer_type(r: EntryReader) -> DType | Type:
    n = r.varint()
    if n & 3 == 3 or not 0 < n >> 2 < 1 << 24:
        raise r.error("an integer type of an unknown kind")
    return element(OpaqueType(f"{('i', 'si', 'ui')[n & 3]}{n >> 2}"))


_BUILTIN_ATTRS: Final[Codes] = {
    0: EntryReader.attrs,
    1: _dictionary,
    2: EntryReader.string,
    3: _typed_string,
    4: lambda r: Symbol(r.text_attr()),
    5: _symbol,
    6: EntryReader.type,
    7: lambda r: UNIT,
    8: _integer,
    9: _float,
    10: lambda r: Loc("callsite", children=(r.loc_attr(), r.loc_attr())),
    11: lambda r: Loc("file", file=r.text_attr(), line=r.varint(), col=r.varint()),
    12: lambda r: Loc("fused", children=_locs(r)),
    13: _fused,
    14: lambda r: _name_loc(r.text_attr(), r.loc_attr()),
    15: lambda r: Loc("unknown"),
    16: _resource,
    17: _dense_array,
    18: _dense,
    22: _range,
}


def _name_loc(name: str, child: Loc) -> Loc:
    return Loc("name", name=name, children=() if child.kind == "unknown" else (child,))


_BUILTIN_TYPES: Final[Codes] = {
    0: _integer_type,
    1: _scalar("index"),
    2: _TYPE_FORMS["function"],
    **{code: _scalar(name) for code, name in tables.BUILTIN_FLOATS.items()},
    9: _TYPE_FORMS["complex"],
    10: _memref,
    12: _scalar("none"),
    13: _tensor,
    14: _encoded_tensor,
    15: _TYPE_FORMS["tuple"],
    18: _unranked,
}

# -- VHLO, StableHLO ----------------------------------------------------------------------------


def _vhlo_dictionary(r: EntryReader) -> Attrs:
    return Attrs({r.text_attr(): r.attr() for _ in range(r.count())})


_VHLO_ATTRS: Final[Codes] = {
    1: EntryReader.attrs,
    2: lambda r: bool(r.varint()),
    6: _vhlo_dictionary,
    8: _float,
    9: _integer,
    14: EntryReader.string,
    15: _dense,
    17: EntryReader.type,
    **{code: enum(kind) for code, kind in tables.VHLO_ENUMS.items()},
    **{code: struct(*s) for code, s in tables.VHLO_STRUCTS.items()},
}
_VHLO_TYPES: Final[Codes] = {
    **{code: _scalar(name) for code, name in tables.VHLO_SCALARS.items()},
    1: _TYPE_FORMS["complex"],
    8: _TYPE_FORMS["function"],
    20: _tensor,
    21: _encoded_tensor,
    23: _TYPE_FORMS["tuple"],
    24: lambda r: decode_quantized(r, per_axis=False),
    25: _unranked,
    30: lambda r: decode_quantized(r, per_axis=True),
    41: _buffer,
    42: _future,
}

ATTRS: Final[dict[str, Codes]] = {
    "builtin": _BUILTIN_ATTRS,
    "vhlo": _VHLO_ATTRS,
    "stablehlo": {
        **{code: enum(kind) for code, kind in tables.STABLEHLO_ENUMS.items()},
        **{code: struct(*s) for code, s in tables.STABLEHLO_STRUCTS.items()},
    },
    "chlo": {code: enum(kind) for code, kind in tables.CHLO_ENUMS.items()},
    "sdy": sdy.ATTRS,
}
TYPES: Final[dict[str, Codes]] = {
    "builtin": _BUILTIN_TYPES,
    "vhlo": _VHLO_TYPES,
    "stablehlo": {0: _scalar("!stablehlo.token"), 1: _future},
    "quant": {4: lambda r: decode_quantized(r, per_axis=False), 5: lambda r: decode_quantized(r, per_axis=True)},
}
