"""HLO as data to XLA's messages (HloModuleProto), as far as people look at them. Imports siblings, protobuf, ir.

Shardings are left out, as the program is for one device. Facts from xla/service/hlo.proto and xla/xla_data.proto.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from hilo.errors import Unsupported
from hilo.formats.hlo_text.control import API_VERSIONS
from hilo.formats.hlo_text.locations import name_and_place
from hilo.formats.hlo_text.messages import (
    ALGORITHM_NUMBERS,
    AS_BYTES,
    AS_NUMBERS,
    CALLEES,
    DOT_DIMENSIONS,
    FFT,
    FIELDS,
    GROUPED,
    PRECISIONS,
    RNG,
    TOKEN_TYPE,
    TRANSPOSE,
    TUPLE_TYPE,
    TYPES,
)
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Shape
from hilo.formats.protobuf import put, put_bytes, put_double, put_float, put_numbers, varint
from hilo.ir.op import Array
from hilo.ir.types import TOKEN, TensorType

MOST_ELEMENTS: Final = 64  # of a constant in a message that is only looked at


def module_proto(m: HloModule, *, elide: int | None = None) -> bytes:
    """The module as an HloModuleProto; constants of more than `elide` elements have no value.

    Raises `Unsupported` for what messages of this kind have no place for.
    """
    w = _Writer(m, elide)
    assert m.entry is not None
    shapes, result = m.attrs["entry_computation_layout"]
    return b"".join((
        put_bytes(1, m.name),
        put_bytes(2, m.entry.name),
        *(put_bytes(3, w.computation(c)) for c in m.computations.values()),
        put_bytes(4, program_shape(shapes, result)),
        put(6, w.numbers[m.entry.name]),
        put_bytes(8, b"".join(put_bytes(1, _alias(*a)) for a in m.attrs.get("input_output_alias", ()))),
        put_bytes(12, _replicated(result)),
        *(put_bytes(14, b"") for _ in shapes),
    ))  # fmt: skip


def module_with_config(m: HloModule) -> bytes:
    """The module as an HloModuleProtoWithConfig, for one replica and one partition, without large constants."""
    layout = program_shape(*m.attrs["entry_computation_layout"])
    unsharded = put_numbers(27, (0,)) + put_numbers(33, (0,))  # shardings are propagated to neither end
    config = put_bytes(1, layout) + put(4, 1) + put(5, 1) + unsharded
    return put_bytes(1, module_proto(m, elide=MOST_ELEMENTS)) + put_bytes(2, config)


def program_shape(shapes: Any, result: Shape, names: Any = None) -> bytes:
    """A ProgramShapeProto; parameters without names are p0, p1 ..."""
    names = names or [f"p{n}" for n in range(len(shapes))]
    parts = [put_bytes(1, shape_proto(s)) for s in shapes]
    return b"".join((*parts, put_bytes(2, shape_proto(result)), *(put_bytes(3, n) for n in names)))


def shape_proto(s: Shape) -> bytes:
    """A ShapeProto, with the layout."""
    if s.is_tuple:
        return put(2, TUPLE_TYPE) + b"".join(put_bytes(4, shape_proto(p)) for p in s.parts)
    t = s.type
    if t is TOKEN:
        return put(2, TOKEN_TYPE)
    if not isinstance(t, TensorType) or t.dtype.name not in TYPES or not t.is_static:
        raise Unsupported(f"XLA's messages have no type {t!r}")
    return _array_proto(t, s.layout.minor_to_major if s.layout is not None else tuple(range(t.rank - 1, -1, -1)))


@lru_cache(1024)  # there are few types, in many places
def _array_proto(t: TensorType, order: tuple[int, ...]) -> bytes:
    sizes = put_numbers(3, t.shape) + put_numbers(6, (0,) * t.rank)
    return put(2, TYPES[t.dtype.name]) + sizes + put_bytes(5, put_numbers(1, order))


def _replicated(result: Shape) -> bytes:
    """The sharding of results that are whole on the one device."""
    return put(1, 2) + b"".join(put_bytes(5, b"") for _ in result.parts) if result.is_tuple else b""


def _alias(output: tuple[int, ...], operand: int, part: tuple[int, ...], kind: str = "") -> bytes:
    number = {"may-alias": 1, "must-alias": 2}.get(kind, 0)
    return put_numbers(1, output) + put(2, operand) + put_numbers(3, part) + put(4, number)


class _Writer:
    """Computations and instructions are numbered: an instruction's number has its computation's in the upper half."""

    def __init__(self, m: HloModule, elide: int | None) -> None:
        self.elide = elide
        self.numbers = {name: n for n, name in enumerate(m.computations, 1)}
        inside = (i for c in m.computations.values() for i in c.instructions if i.opcode == "fusion")
        self.fused = {i.attrs["calls"].name for i in inside}
        self.ids: dict[Instruction, int] = {}

    def computation(self, c: Computation) -> bytes:
        number = self.numbers[c.name]
        self.ids.update((i, number << 32 | n) for n, i in enumerate(c.instructions, 1))
        params = sorted((i for i in c.instructions if i.opcode == "parameter"), key=lambda i: i.attrs["number"])
        assert c.root is not None
        shape = program_shape([p.declared for p in params], c.root.declared, [p.name for p in params])
        return b"".join((
            put_bytes(1, c.name),
            *(put_bytes(2, self.instruction(i)) for i in c.instructions),
            put_bytes(4, shape),
            put(5, number),
            put(6, self.ids[c.root]),
            put(7, int(c.name in self.fused)),
        ))  # fmt: skip

    def instruction(self, i: Instruction) -> bytes:
        own = _SPECIAL.get(i.opcode)
        parts = [put_bytes(1, i.name), put_bytes(2, i.opcode), put_bytes(3, shape_proto(i.declared))]
        for name, value in i.attrs.items():
            if (write := _FIELDS.get(name)) is not None:
                parts.append(write(value))
        if i.opcode == "constant":
            parts.append(self._literal(i["value"], i.declared))
        elif own is not None:
            parts.append(own(i))
        ids = self.ids
        parts += [varint(35 << 3), varint(ids[i]), put_numbers(36, [ids[o] for o in i.operands])]
        if any(name in i.attrs for name in CALLEES):
            parts.append(put_numbers(38, self._called(i)))
        return b"".join(parts)

    def _literal(self, a: Array, shape: Shape) -> bytes:
        """A constant's value; nothing if it is left out."""
        return b"" if self.elide is not None and a.type.size > self.elide else put_bytes(8, _literal(a, shape))

    def _called(self, i: Instruction) -> list[int]:
        found: list[Computation] = []
        for name in CALLEES:
            value = i.attrs.get(name)
            if isinstance(value, Computation):
                found.append(value)
            elif value:
                found += value
        return [self.numbers[c.name] for c in found]


def _metadata(loc: Any) -> bytes:
    name, place = name_and_place(loc)
    parts = put_bytes(2, name) if name else b""
    parts = parts if place is None else parts + put_bytes(3, place.file) + put(4, place.line)
    return put_bytes(7, parts) if parts else b""


def _rows(field: int, inner: Callable[..., bytes]) -> Callable[[Any], bytes]:
    """A repeated message, one for each of the values."""
    return lambda rows: b"".join(put_bytes(field, inner(*row)) for row in rows)


def _three(a: int, b: int, c: int) -> bytes:
    return put(1, a) + put(2, b) + put(3, c)


def _window(w: dict[str, Any]) -> bytes:
    size = w.get("size", ())
    ones, none = (1,) * len(size), ((0, 0),) * len(size)
    fields = (w.get("stride", ones), w.get("pad", none), w.get("rhs_dilate", ones), w.get("lhs_dilate", ones),
              w.get("rhs_reversal", (0,) * len(size)))  # fmt: skip
    dims = []
    for n, stride, (low, high), window_dilation, base_dilation, reversal in zip(size, *fields, strict=True):
        dims.append(put(1, n) + put(2, stride) + put(3, low) + put(4, high) + put(5, window_dilation)
                    + put(6, base_dilation) + put(7, int(reversal)))  # fmt: skip
    return put_bytes(15, b"".join(put_bytes(1, d) for d in dims))


def _labels(text: str) -> bytes:
    lhs, _, rest = text.partition("_")
    rhs, _, out = rest.partition("->")

    def spatial(side: str) -> list[int]:
        return [side.index(d) for d in sorted(c for c in side if c.isdecimal())]

    return put_bytes(16, b"".join((
        put(7, lhs.index("b")), put(8, lhs.index("f")), put_numbers(11, spatial(lhs)), put(3, rhs.index("i")),
        put(4, rhs.index("o")), put_numbers(6, spatial(rhs)), put(9, out.index("b")), put(10, out.index("f")),
        put_numbers(12, spatial(out)),
    )))  # fmt: skip


def _dictionary(d: Any) -> bytes:
    return put_bytes(68, b"".join(put_bytes(1, put_bytes(1, k) + put_bytes(2, str(v))) for k, v in d.items()))


_WRITE: Final[dict[str, Callable[[int], Callable[[Any], bytes]]]] = {
    "int": lambda field: lambda v: put(field, int(v)),
    "flag": lambda field: lambda v: put(field, int(v)),
    "text": lambda field: lambda v: put_bytes(field, v),
    "numbers": lambda field: lambda v: put_numbers(field, v),
}

#: Attributes that are the same field whatever the opcode.
_FIELDS: Final[dict[str, Callable[[Any], bytes]]] = {
    **{name: _WRITE[kind](field) for name, (field, kind) in FIELDS.items()},
    "metadata": _metadata, "iota_dimension": lambda v: put_numbers(14, (v,)), "window": _window, "dim_labels": _labels,
    "slice": _rows(17, _three), "padding": lambda v: put_bytes(21, _rows(1, _three)(v)),
    "distribution": lambda v: put(23, RNG[v]), "epsilon": lambda v: put_float(24, v),
    "outfeed_shape": lambda v: put_bytes(29, shape_proto(v)), "fft_type": lambda v: put(31, FFT[v]),
    "replica_groups": _rows(49, lambda *ids: put_numbers(1, ids)),
    "source_target_pairs": _rows(52, lambda a, b: put(1, a) + put(2, b)), "frontend_attributes": _dictionary,
    "api_version": lambda v: put(77, API_VERSIONS[v]), "result_accuracy": lambda v: put_bytes(91, _accuracy(v)),
    "output_to_operand_aliasing": _rows(74, lambda o, n, p, *_: put_numbers(1, o) + put(2, n) + put_numbers(3, p)),
    "operand_layout_constraints": lambda v: put(56, 1) + b"".join(put_bytes(57, shape_proto(s)) for s in v),
}  # fmt: skip


def _grouped(opcode: str) -> Callable[[Instruction], bytes]:
    """A message whose fields 1, 2 ... are attributes: a list, or one number."""
    field, names = GROUPED[opcode]

    def write(i: Instruction) -> bytes:
        parts = []
        for n, name in enumerate(names, 1):
            value = i.get(name) or ()
            parts.append(put_numbers(n, value) if isinstance(value, tuple | list) else put(n, int(value)))
        return put_bytes(field, b"".join(parts))

    return write


def _precision(i: Instruction) -> bytes:
    words = [PRECISIONS.get(w, 0) for w in i.get("operand_precision") or ()]
    return put_bytes(51, put_numbers(1, words) + put(2, ALGORITHM_NUMBERS.get(i.get("algorithm", ""), 0)))


_dot_dims = _grouped("dot")


def _ragged(i: Instruction) -> bytes:
    dims = put_bytes(1, b"".join(put_numbers(n, i.get(name) or ()) for n, name in enumerate(DOT_DIMENSIONS, 1)))
    own = put_numbers(2, i["lhs_ragged_dims"]) + put_numbers(3, i["rhs_group_dims"])
    return put_bytes(90, dims + own) + _precision(i)


def _accuracy(text: str) -> bytes:
    """`{mode=highest}` or `{tolerance={atol=1,rtol=2,ulps=3}}`"""
    found = {name: float(value) for name, value in re.findall(r"(atol|rtol|ulps)=([-+.\deE]+)", text)}
    if not found:
        return put(1, int("highest" in text))
    limits = put_double(1, found.get("atol", 0.0)) + put_double(2, found.get("rtol", 0.0))
    return put_bytes(2, limits + put(3, int(found.get("ulps", 0))))


def _convolution(i: Instruction) -> bytes:
    groups = [put(field, 1) for name, field in (("feature_group_count", 50), ("batch_group_count", 58))
              if name not in i.attrs]  # fmt: skip
    return b"".join((*groups, put_bytes(15, b"") if "window" not in i.attrs else b"", _precision(i)))


def _triangular(i: Instruction) -> bytes:
    options = put(1, int(i["left_side"])) + put(2, int(i["lower"])) + put(3, int(i["unit_diagonal"]))
    return put_bytes(59, options + put(4, TRANSPOSE[i["transpose_a"]]))


_SPECIAL: Final[dict[str, Callable[[Instruction], bytes]]] = {
    "dot": lambda i: _dot_dims(i) + _precision(i),
    "ragged-dot": _ragged,
    "convolution": _convolution,
    "gather": _grouped("gather"),
    "scatter": _grouped("scatter"),
    "cholesky": _grouped("cholesky"),
    "triangular-solve": _triangular,
    "rng-bit-generator": lambda i: put(70, RNG[i["algorithm"]]),
}  # fmt: skip


def _literal(a: Array, shape: Shape) -> bytes:
    """An array as a LiteralProto."""
    t = a.type
    name = t.dtype.name
    values = np.ascontiguousarray(a.data)
    if t.dtype.is_narrow:
        values = values.view(np.uint8) & np.uint8((1 << t.dtype.bits) - 1)
    whole = put_bytes(1, shape_proto(shape))
    if name in AS_BYTES:
        return whole + put_bytes(AS_BYTES[name], values.tobytes())
    return whole + put_bytes(AS_NUMBERS[name], b"".join(map(varint, values.ravel().tolist())))
