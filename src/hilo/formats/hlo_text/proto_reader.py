"""XLA's messages (HloModuleProto, and what wraps it) to HLO as data, as `reader` gives it for text. Imports siblings.

A message has every field, if only as a default that is not written. So an instruction gets those of its opcode's
attributes that a text would have; fields that belong to other opcodes, or that later versions have, are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text.attributes import iota_groups
from hilo.formats.hlo_text.control import API_VERSIONS
from hilo.formats.hlo_text.messages import (
    ALGORITHM_NUMBERS,
    DOT_DIMENSIONS,
    FFT,
    FIELDS,
    GROUPED,
    ONE_NUMBER,
    PRECISIONS,
    TRANSPOSE,
)
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction
from hilo.formats.hlo_text.proto_values import (
    Message,
    read_frames,
    read_literal,
    read_metadata,
    read_shape,
    read_sharding,
)
from hilo.formats.hlo_text.reader import attributes_of
from hilo.formats.protobuf import double, single
from hilo.ir.module import Loc
from hilo.ir.op import Attrs

_WRAPPERS: Final = 3  # messages in each other: an HloSnapshot holds an HloProto, and that holds a module


def read(data: bytes, filename: str) -> HloModule:
    """The module in a message: an HloModuleProto, or an HloProto, HloModuleProtoWithConfig or HloSnapshot around one.

    Raises `Error` that names the file, and the instruction that is wrong.
    """
    try:
        whole = Message(data)
        found = _unwrapped(whole)
        if found is None and 3 not in whole:
            raise Error("this is no HLO module: it has no computations")
        m, config = found or (whole, Message(b""))
        return _Reader(m, config, filename).module()
    except Error as e:
        if e.loc is None:
            e.loc = filename
        raise
    except RecursionError:
        raise Error("nested too deeply", loc=filename) from None
    except MemoryError:
        raise Error("there is not enough memory for the module", loc=filename) from None


def _unwrapped(m: Message, depth: int = 1) -> tuple[Message, Message] | None:
    """The module in a message, and the configuration that stands beside it (or an empty message)."""
    if depth < _WRAPPERS:
        for inner in _messages(m, 1)[:1]:  # a module's name is hardly ever a message, and then it holds no module
            if (found := _unwrapped(inner, depth + 1)) is not None:
                config = _messages(m, 2)
                return found[0], config[0] if config else found[1]
    return (m, Message(b"")) if any(2 in c for c in _messages(m, 3)) else None


def _messages(m: Message, field: int) -> list[Message]:
    try:
        return m.messages(field)
    except Error:  # a text, or a number
        return []


class _Reader:
    """Computations and instructions that are known so far, by their numbers."""

    def __init__(self, m: Message, config: Message, filename: str) -> None:
        self.m = m
        self.config = config
        self.filename = filename
        self.loc = Loc("name", name=filename)
        self.frames = read_frames(m.message(17))
        self.computations: dict[int, Computation] = {}

    def module(self) -> HloModule:
        made = HloModule(self.m.text(1) or "module", frames=self.frames, loc=self.loc)
        for c in self.m.messages(3):
            found = self._computation(c)
            if found.name in made.computations:
                raise Error(f"computation {found.name} is defined twice")
            if self.computations.setdefault(c.int(5), found) is not found:
                raise Error(f"two computations have the number {c.int(5)}")
            made.computations[found.name] = found
        entry = self.computations.get(self.m.int(6)) or made.computations.get(self.m.text(2))
        made.entry = entry or next(reversed(made.computations.values()))
        made.attrs = self._header()
        return made

    def _header(self) -> dict[str, Any]:
        m = self.m
        attrs: dict[str, Any] = {}
        if 4 in m:
            shapes = m.message(4)
            attrs["entry_computation_layout"] = (tuple(map(read_shape, shapes.messages(1))),
                                                 read_shape(shapes.message(2)))  # fmt: skip
        if aliases := m.message(8).messages(1):
            kinds = {1: "may-alias", 2: "must-alias"}
            attrs["input_output_alias"] = tuple(
                (a.numbers(1), a.int(2), a.numbers(3), kinds.get(a.bits(4), "")) for a in aliases
            )
        if donors := m.message(18).messages(1):
            attrs["buffer_donor"] = tuple((d.int(1), d.numbers(2)) for d in donors)
        if frontend := _dictionary(m.message(19)):
            attrs["frontend_attributes"] = frontend
        for name, field in (("replica_count", 4), ("num_partitions", 5)):
            if (count := self.config.int(field)) > 1:
                attrs[name] = count
        return attrs

    # -- computations ---------------------------------------------------------------------------

    def _computation(self, m: Message) -> Computation:
        c = Computation(m.text(1) or f"computation.{m.int(5)}", loc=self.loc)
        known: dict[int, Instruction] = {}
        for data in m.messages(2):
            i = self._instruction(data, known)
            if known.setdefault(data.int(35), i) is not i:
                raise i.error(f"another instruction has the number {data.int(35)}, too")
            c.instructions.append(i)
        if not c.instructions:
            raise Error(f"computation {c.name} has no instructions")
        c.root = known.get(m.int(6))
        if c.root is None:
            raise Error(f"computation {c.name} has no instruction {m.int(6)}, which is to be its root")
        return c

    def _instruction(self, m: Message, known: dict[int, Instruction]) -> Instruction:
        name = m.text(1) or f"{m.text(2)}.{m.int(35)}"
        i = Instruction(name, m.text(2), None, loc=Loc("name", name=f"{self.filename}: {name}"))
        allowed = attributes_of(i.opcode)
        if allowed is None:
            raise i.error("unknown opcode")
        try:
            if 3 in m:
                i.shape = read_shape(m.message(3))
            for n in m.numbers(36):
                if n not in known:
                    raise Error(f"operand {n} is used but not defined before this point")
                i.operands.append(known[n])
            self._attributes(i, m, allowed)
            self._callees(i, m, allowed)
        except Error as e:
            if e.loc is None:
                e.loc, e.op = i.loc, e.op or i.opcode
            raise
        return i

    def _attributes(self, i: Instruction, m: Message, allowed: tuple[str, ...]) -> None:
        attrs = i.attrs
        own = _OWN.get(i.opcode)
        if own is not None:
            own(i, m)
        for name in allowed:
            if name in FIELDS:
                field, kind = FIELDS[name]
                if field in m or name in _ALWAYS:
                    attrs.setdefault(name, _READ[kind](m, field))
            elif (read := _SPECIAL.get(name)) is not None and (value := read(m)) is not None:
                attrs.setdefault(name, value)
        if i.opcode == "parameter":
            attrs["number"] = m.int(9)
        if i.opcode == "all-to-all" and not attrs["dimensions"]:  # of a tuple
            del attrs["dimensions"]
        for name, field in (("feature_group_count", 50), ("batch_group_count", 58)):
            if not attrs.get(name, 1):
                attrs[name] = max(m.int(field), 1)
        if attrs.get("channel_id", 1) < 1:
            del attrs["channel_id"]
        attrs["metadata"] = read_metadata(m.message(7), self.frames, i.name)
        if sharding := read_sharding(m.message(40)) if 40 in m else "":
            attrs["sharding"] = sharding
        if frontend := _dictionary(m.message(68)):
            attrs["frontend_attributes"] = frontend
        if config := m.text(43):
            attrs["backend_config"] = config

    def _callees(self, i: Instruction, m: Message, allowed: tuple[str, ...]) -> None:
        found = []
        for n in m.numbers(38):
            if n not in self.computations:
                raise Error(f"computation {n} is used but not defined before this point")
            found.append(self.computations[n])
        for names in (("body", "condition"), ("select", "scatter"), ("calls",)):
            if names[0] in allowed:
                break
        else:
            names = ("to_apply",) if "to_apply" in allowed else ()
        if "branch_computations" in allowed:
            i.attrs["branch_computations"] = tuple(found)
        elif "called_computations" in allowed:
            if found:
                i.attrs["called_computations"] = tuple(found)
        elif names and (found or i.opcode not in _MAY_CALL):
            if len(found) != len(names):
                raise Error(f"it calls {len(found)} computations, but has {' and '.join(names)}")
            i.attrs.update(zip(names, found, strict=True))


# Opcodes that call a computation in some forms only.
_MAY_CALL: Final = ("async-update", "async-done", "all-reduce-done")
#: Attributes that a text always has: what is not in the message has its default.
_ALWAYS: Final = frozenset((
    "index", "exponent_bits", "mantissa_bits", "dynamic_slice_sizes", "feature_index", "fft_length", "slice_sizes", "k",
    "largest", "direction", "dimensions",
))  # fmt: skip
_READ: Final[dict[str, Callable[[Message, int], Any]]] = {
    "int": Message.int,
    "flag": lambda m, field: bool(m.bits(field)),
    "text": Message.text,
    "numbers": Message.numbers,
}


def _named(table: dict[str, int], value: int, what: str) -> str:
    """The name of an enum's value."""
    for name, n in table.items():
        if n == value:
            return name
    raise Error(f"there is no {what} {value}")


def _dictionary(m: Message) -> Attrs:
    return Attrs({e.text(1): e.text(2) for e in m.messages(1)})


def _window(m: Message) -> dict[str, Any] | None:
    dims = m.message(15).messages(1)
    if not dims:
        return None
    return {
        "size": tuple(d.int(1) for d in dims),
        "stride": tuple(d.int(2) for d in dims),
        "pad": tuple((d.int(3), d.int(4)) for d in dims),
        "lhs_dilate": tuple(d.int(6) for d in dims),
        "rhs_dilate": tuple(d.int(5) for d in dims),
        "rhs_reversal": tuple(int(bool(d.bits(7))) for d in dims),
    }


def _labels(m: Message) -> str | None:
    """`b01f_01io->b01f`: where each dimension stands."""
    if 16 not in m:
        return None
    d = m.message(16)

    def side(letters: str, places: tuple[int, int], spatial: tuple[int, ...]) -> str:
        where = dict(zip(places, letters, strict=False)) | {n: str(k) for k, n in enumerate(spatial)}
        if sorted(where) != list(range(2 + len(spatial))) or len(spatial) > 10:
            raise Error("the dimension numbers are not each of the dimensions once")
        return "".join(where[k] for k in range(len(where)))

    lhs = side("bf", (d.int(7), d.int(8)), d.numbers(11))
    rhs = side("io", (d.int(3), d.int(4)), d.numbers(6))
    return f"{lhs}_{rhs}->{side('bf', (d.int(9), d.int(10)), d.numbers(12))}"


def _groups(m: Message) -> tuple[tuple[int, ...], ...] | None:
    """Replica groups: listed, in a list of devices, or as numbers in order, in some shape, cut into groups."""
    devices = m.message(87)
    iota = m.message(92) if 92 in m else devices.message(2) if 2 in devices else None
    if 93 in m:
        raise Unsupported("replica groups along axes of a mesh are not supported in messages")
    if iota is not None:
        dims = iota.numbers(3)
        order = iota.numbers(4) or tuple(range(len(dims)))
        return iota_groups((iota.int(1), iota.int(2)), dims, order)
    rows = devices.messages(1) or m.messages(49)
    return tuple(g.numbers(1) for g in rows) if rows else ()


def _accuracy(m: Message) -> str | None:
    a = m.message(91)
    if 2 in a:
        limits = a.message(2)
        atol, rtol = (double(limits.bits(f)) for f in (1, 2))
        return f"{{tolerance={{atol={atol!r},rtol={rtol!r},ulps={limits.int(3)}}}}}"
    return "{mode=highest}" if a.bits(1) == 1 else None


#: Attributes that are read in ways of their own; None: it is not there.
_SPECIAL: Final[dict[str, Callable[[Message], Any]]] = {
    "window": _window,
    "dim_labels": _labels,
    "slice": lambda m: tuple((d.int(1), d.int(2), d.int(3)) for d in m.messages(17)),
    "padding": lambda m: tuple((d.int(1), d.int(2), d.int(3)) for d in m.message(21).messages(1)),
    "iota_dimension": lambda m: (m.numbers(14) or (0,))[0],
    "fft_type": lambda m: _named(FFT, m.bits(31), "kind of Fourier transform"),
    "distribution": lambda m: _named({"rng_uniform": 1, "rng_normal": 2}, m.bits(23), "distribution"),
    "epsilon": lambda m: float(str(np.float32(single(m.bits(24))))),
    "outfeed_shape": lambda m: read_shape(m.message(29)) if 29 in m else None,
    "replica_groups": _groups,
    "source_target_pairs": lambda m: tuple((p.int(1), p.int(2)) for p in m.messages(52)),
    "api_version": lambda m: _named(API_VERSIONS, m.bits(77), "API version") if m.bits(77) else None,
    "result_accuracy": _accuracy,
    "output_to_operand_aliasing":
        lambda m: tuple((a.numbers(1), a.int(2), a.numbers(3), "") for a in m.messages(74)) or None,
    "operand_layout_constraints":
        lambda m: tuple(map(read_shape, m.messages(57))) if m.bits(56) else None,
}  # fmt: skip


# -- opcodes with messages of their own -----------------------------------------------------------


def _constant(i: Instruction, m: Message) -> None:
    if 8 not in m:
        i.attrs["value"] = "{...}"  # as in a text that leaves them out; an error for whoever needs them
        return
    try:
        i.attrs["value"] = read_literal(m.message(8), i.declared)
    except (ValueError, OverflowError):  # more dimensions, or elements, than numpy has
        raise i.error("the constant is too large") from None


def _grouped(opcode: str) -> Callable[[Instruction, Message], None]:
    field, names = GROUPED[opcode]

    def read(i: Instruction, m: Message) -> None:
        found = m.message(field)
        for n, name in enumerate(names, 1):
            i.attrs[name] = found.int(n) if name in ONE_NUMBER else found.numbers(n)
        if opcode == "cholesky":
            i.attrs["lower"] = bool(i.attrs["lower"])

    return read


def _precision(i: Instruction, m: Message) -> None:
    config = m.message(51)
    if any(words := config.numbers(1)):
        i.attrs["operand_precision"] = tuple(_named(PRECISIONS, w, "precision") for w in words)
    if i.opcode != "convolution" and (algorithm := config.bits(2)):
        i.attrs["algorithm"] = _named(ALGORITHM_NUMBERS, algorithm, "algorithm of a dot")


_dot_dimensions = _grouped("dot")


def _dot(i: Instruction, m: Message) -> None:
    _dot_dimensions(i, m)
    _precision(i, m)


def _ragged_dot(i: Instruction, m: Message) -> None:
    own = m.message(90)
    dims = own.message(1)
    i.attrs.update((name, dims.numbers(n)) for n, name in enumerate(DOT_DIMENSIONS, 1))
    i.attrs.update(lhs_ragged_dims=own.numbers(2), rhs_group_dims=own.numbers(3))
    _precision(i, m)


def _triangular(i: Instruction, m: Message) -> None:
    o = m.message(59)
    i.attrs.update(left_side=bool(o.bits(1)), lower=bool(o.bits(2)), unit_diagonal=bool(o.bits(3)),
                   transpose_a=_named(TRANSPOSE, o.bits(4), "transposition"))  # fmt: skip


def _rng_bits(i: Instruction, m: Message) -> None:
    i.attrs["algorithm"] = _named({"rng_default": 0, "rng_three_fry": 1, "rng_philox": 2}, m.bits(70), "algorithm")


def _literal_of_call(i: Instruction, m: Message) -> None:
    if 8 in m:
        i.attrs["literal"] = ""


_OWN: Final[dict[str, Callable[[Instruction, Message], None]]] = {
    "constant": _constant,
    "dot": _dot,
    "ragged-dot": _ragged_dot,
    "convolution": _precision,
    "gather": _grouped("gather"),
    "scatter": _grouped("scatter"),
    "cholesky": _grouped("cholesky"),
    "triangular-solve": _triangular,
    "rng-bit-generator": _rng_bits,
    "custom-call": _literal_of_call,
}
