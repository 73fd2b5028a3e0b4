"""MLIR bytecode as others write it, and as it is when damaged or hostile: a module, or one error."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from bytecode_samples import ARTIFACTS, PROGRAM, artifact
from hypothesis import given, settings
from hypothesis import strategies as st

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats import bytecode, mlir_text
from hilo.formats.bytecode import container
from hilo.formats.bytecode.wire import Reader, Sink, varint


@pytest.mark.parametrize("name", ARTIFACTS)
def test_what_jaxlib_writes(name: str) -> None:
    m, want = hilo.parse(artifact(name)), mlir_text.parse(PROGRAM)
    for f in want.functions.values():
        assert m[f.name] == f
        assert (m[f.name].arg_attrs, m[f.name].result_attrs) == (f.arg_attrs, f.result_attrs)
        assert m[f.name].visibility == f.visibility
    assert list(m.functions) == list(want.functions)
    assert m.attrs == want.attrs
    assert m.name == want.name
    assert mlir_text.print_module(m) == mlir_text.print_module(want)


def test_locations_are_kept() -> None:
    m = hilo.parse(artifact("bytecode 6"))
    assert [str(o.loc) for o in m["other"].ops if o.name == "slice"] == ["-:26:10"]


# -- numbers ------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_varints(n: int) -> None:
    data = varint(n)
    r = Reader(data, 0, len(data), "")
    assert r.varint() == n
    assert not r.left
    assert len(data) == min(max(1, -(-n.bit_length() // 7)), 9)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([1, 4, 8, 16, 32, 64]))
def test_signed_and_wide_numbers(n: int, bits: int) -> None:
    s = Sink()
    s.signed(n)
    s.wide(n, bits)
    r = Reader(bytes(s), 0, len(s), "")
    assert r.signed() == n
    assert r.wide(bits) == n & ((1 << bits) - 1)
    assert not r.left


@given(st.floats(allow_nan=False))
def test_doubles(x: float) -> None:
    s = Sink()
    s.double(x)
    assert repr(Reader(bytes(s), 0, len(s), "").double()) == repr(x)


# -- damage -------------------------------------------------------------------------------------


def survives(data: bytes) -> bool:
    """Whether reading gives a module; anything but that or an `Error` fails the test."""
    try:
        mlir_text.print_module(bytecode.parse(data, "damaged"))
    except Error as e:
        return not str(e)  # an error says something
    return True


@pytest.mark.parametrize("name", ["bytecode 0", "portable 1.17.0"])
def test_every_truncation_is_an_error(name: str) -> None:
    data = artifact(name)
    assert not any(survives(data[:n]) for n in range(len(data)))


def test_single_bytes_that_are_wrong() -> None:
    rng = random.Random(5)
    for name in ("bytecode 6", "portable 1.17.0", "portable 0.9.0"):
        data = artifact(name)
        for i in range(0, len(data), 2):
            survives(data[:i] + bytes((rng.randrange(256),)) + data[i + 1 :])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(ARTIFACTS)), st.lists(st.tuples(st.integers(0, 1 << 16), st.binary(max_size=6),
                                                              st.integers(0, 6)), min_size=1, max_size=5))  # fmt: skip
def test_edits(name: str, edits: list[tuple[int, bytes, int]]) -> None:
    data = artifact(name)
    for at, new, removed in edits:
        at %= len(data)
        data = data[:at] + new + data[at + removed :]
    survives(data)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "no MLIR bytecode"),
    (b"ML\xefR", "ends early"),
    (b"ML\xefR\x0fx\0", "version 7"),
    (b"ML\xefR\x0dno end", "ends early"),
    (b"ML\xefR\x0dx\0", "string section"),
    (b"ML\xefR\x0dx\0\x63\x01", "not known"),
    (b"ML\xefR\x0dx\0\x00\x01\x00\x01", "second string section"),
])  # fmt: skip
def test_files_that_are_none(data: bytes, message: str) -> None:
    with pytest.raises(Error, match=message):
        bytecode.parse(data)


# -- hostile files ------------------------------------------------------------------------------


def file_of(attrs: Sequence[bytes], types: Sequence[bytes] = ()) -> bytes:
    """A file of bytecode 4 whose module has the attribute `x`, number 3; `attrs` are numbers 3 and following."""
    strings = Sink()
    names = [b"builtin\0", b"module\0", b"x\0"]
    strings.varint(len(names))
    for n in reversed(names):
        strings.varint(len(n))
    for n in names:
        strings += n
    dialects = Sink()
    for n in (1, 0, 1, 0, 1, 1):  # one dialect, "builtin" without a version; one op, in dialect 0, one, "module"
        dialects.varint(n)
    entries = [varint(15), varint(2) + varint(2), varint(1) + varint(1) + varint(1) + varint(3), *attrs]
    offsets = Sink()
    offsets.varint(len(entries))
    offsets.varint(len(types))
    for group in (entries, types):
        if group:
            offsets.varint(0)
            offsets.varint(len(group))
            for e in group:
                offsets.flagged(len(e), True)
    ir = Sink()
    for n in (1 << 1, 0):  # one op, the first name
        ir.varint(n)
    ir.append(1 | 16)
    for n in (0, 2, 1 << 1 | 1):  # location, attributes, one isolated region
        ir.varint(n)
    body = Sink()
    for n in (1, 0, 0):  # one block, no values, no ops
        body.varint(n)
    ir.section(container.IR, body)
    out = Sink(container.MAGIC)
    out.varint(4)
    out += b"test\0"
    out.section(container.STRING, strings)
    out.section(container.DIALECT, dialects)
    out.section(container.OFFSETS, offsets)
    out.section(container.DATA, b"".join([*entries, *types]))
    out.section(container.IR, ir)
    return bytes(out)


def array(*items: int) -> bytes:
    return varint(0) + varint(len(items)) + b"".join(map(varint, items))


I64 = varint(0) + varint(64 << 2)


def test_the_file_around_hostile_attributes() -> None:
    m = bytecode.parse(file_of([array(4, 5), varint(2) + varint(2), varint(7)]))
    assert dict(m.attrs) == {"x": '["x", unit]'}


@pytest.mark.parametrize(("attrs", "message"), [
    ([array(3)], "part of itself"),
    ([array(4), array(3)], "part of itself"),
    ([array(9)], "attribute 9 of 4"),
    ([varint(0) + varint(1 << 60)], "announced"),
    ([varint(2) + varint(1 << 40)], "string"),
    ([varint(99)], "attribute code 99"),
    ([varint(7) + b"\x01"], "left over"),
    ([b"\x00"], "ends early"),
    ([array(i + 4) for i in range(200)] + [array()], "nested"),
    ([array(*[i + 4] * 8) for i in range(40)] + [array()], "million"),
])  # fmt: skip
def test_attributes_that_lead_nowhere(attrs: list[bytes], message: str) -> None:
    with pytest.raises(Error, match=message):
        bytecode.parse(file_of(attrs))


def dense(shape: Sequence[int], data: bytes) -> list[bytes]:
    """Types 0 (i64) and 1 (a tensor of it): an attribute of dense elements."""
    t = Sink()
    t.varint(13)
    t.signeds(tuple(shape))
    t.varint(0)
    return [varint(18) + varint(1) + varint(len(data)) + data, bytes(t)]


@pytest.mark.parametrize(("shape", "data"), [
    ([1 << 40], b"\1" + bytes(7)), ([1 << 62, 1 << 62], b"\1" + bytes(7)), ([1 << 40, 0], b""), ([3], bytes(16)),
    ([-5], bytes(8)), ([1] * 100, bytes(8)), ([1] * 2000, bytes(8)),
])  # fmt: skip
def test_dense_elements_of_absurd_shapes(shape: list[int], data: bytes) -> None:
    attr, t = dense(shape, data)
    try:
        text = str(bytecode.parse(file_of([attr], [I64, t])).attrs["x"])
    except Error:
        return
    assert len(text) < 1000


def test_call_chains_of_locations_are_cut() -> None:
    loc = [varint(10) + varint(i + 4) + varint(0) for i in range(300)] + [varint(15)]
    m = bytecode.parse(file_of(loc))
    assert str(m.attrs["x"]).count("callsite") < 100


def test_unknown_operations() -> None:
    data = artifact("portable 1.17.0").replace(b"exponential_v2\0", b"exponential_v9\0")
    with pytest.raises(Error, match=r"exponential_v9 is no operation that is known here"):
        bytecode.parse(data)
    data = artifact("bytecode 6").replace(b"exponential\0", b"experiments\0")
    with pytest.raises(Error, match=r"stablehlo.experiments: unknown op"):
        bytecode.parse(data)


def test_errors_name_the_file_and_the_op() -> None:
    m = mlir_text.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    data = bytecode.write(m, locations=False)
    with pytest.raises(Error, match=r"^bad\.bc"):
        bytecode.parse(data[:-1], "bad.bc")


def test_resources_of_another_kind_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="dense resource"):
        bytecode.parse(file_of([varint(16) + varint(0) + varint(0)], [I64]))
