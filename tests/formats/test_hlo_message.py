"""Reading HLO as XLA's messages: what is written comes back, in every wrapper and layout; damage is one clear error."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats import sniff
from hilo.formats.hlo_text import emit, module_message, parse, parse_message, print_module
from hilo.formats.hlo_text.proto import module_with_config
from hilo.formats.hlo_text.proto_values import Message, _varints, read_sharding
from hilo.formats.protobuf import fields, put, put_bytes, put_numbers, varint
from hilo.testing.generate import inputs
from hilo.testing.mutate_message import changed, joined

PROGRAM = """
module @scaled {
  func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xi32>) {
    %c = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %n = stablehlo.constant dense<[-1, 300]> : tensor<2xi32>
    %y = stablehlo.multiply %x, %c : tensor<2x3xf32>
    return %y, %n : tensor<2x3xf32>, tensor<2xi32>
  }
}
"""


@pytest.fixture(scope="module")
def message() -> bytes:
    return module_message(hilo.parse(PROGRAM))


def with_field(data: bytes, number: int, value: bytes | int) -> bytes:
    """The message with one field replaced, or added at its end."""
    kept = [(n, v) for n, v in fields(data) if n != number]
    return joined([*kept, (number, value)])


def edited(data: bytes, opcode: str, number: int, value: bytes | int) -> bytes:
    """The module with a field of all instructions of an opcode replaced."""
    module = []
    for n, v in fields(data):
        if n == 3:
            assert isinstance(v, bytes)
            v = joined([
                (k, with_field(i, number, value) if k == 2 and isinstance(i, bytes) and opcode.encode() in i else i)
                for k, i in fields(v)
            ])  # fmt: skip
        module.append((n, v))
    return joined(module)


def test_every_program_comes_back() -> None:
    """What text says and what messages say is the same program."""
    from hilo.testing.fuzz_seeds import programs

    read = 0
    for m in programs()[::7]:
        try:
            data, text = module_message(m), print_module(m)
        except Unsupported:
            continue
        assert sniff(data) == "hlo_proto"
        again = hilo.parse(data)
        assert print_module(again) == print_module(parse(text)).replace("HloModule module,", f"HloModule {again.name},")
        assert module_message(parse_message(module_message(again))) == module_message(again)
        read += 1
    assert read > 150


def test_it_computes_the_same(message: bytes) -> None:
    module = hilo.parse(PROGRAM)
    arrays = inputs(module, 0)
    for a, b in zip(hilo.compile(message)(*arrays), hilo.interpret(module, *arrays), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("wrapper", ["none", "HloProto", "with config", "HloSnapshot"])
def test_wrappers(wrapper: str, message: bytes, tmp_path: Path) -> None:
    proto = put_bytes(1, message) + put_bytes(3, put_bytes(1, b"\x08\x01"))
    data = {
        "none": message,
        "HloProto": proto,
        "with config": module_with_config(emit(hilo.parse(PROGRAM))),
        "HloSnapshot": put_bytes(1, proto) + put_bytes(2, b""),
    }[wrapper]
    path = tmp_path / "program.pb"
    path.write_bytes(data)
    module = hilo.load(path)
    assert module.name == "scaled"
    assert [p.type for p in module["main"].params] == [hilo.parse(PROGRAM)["main"].params[0].type]


@pytest.mark.parametrize("text", ["\n\n  func.func", "\nmodule {", "\n" + "x" * 10 + "\n", "\n\r\n\n\n", "\n"])
def test_texts_that_begin_with_a_line_are_texts(text: str) -> None:
    assert sniff(text.encode()) != "hlo_proto"


def test_replicas_of_the_configuration(message: bytes) -> None:
    module = parse_message(put_bytes(1, message) + put_bytes(2, put(4, 2) + put(5, 3)))
    assert str(module.attrs["mhlo.num_replicas"]) == "2 : i32"
    assert str(module.attrs["mhlo.num_partitions"]) == "3 : i32"


def test_literals_lie_in_the_order_of_their_layout() -> None:
    """The first axis is the minor one: columns stand one after the other."""
    text = "func.func @main() -> tensor<2x3xf32> { %c = stablehlo.constant dense<[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]> " \
           ": tensor<2x3xf32> return %c : tensor<2x3xf32> }"  # fmt: skip
    rows = np.array([[1, 2, 3], [4, 5, 6]], "<f4")
    shape = put(2, 11) + put_numbers(3, (2, 3)) + put_bytes(5, put_numbers(1, (0, 1)))
    literal = put_bytes(1, shape) + put_bytes(8, rows.T.tobytes())
    (found,) = hilo.interpret(edited(module_message(hilo.parse(text)), "constant", 8, literal))
    assert found.tolist() == rows.tolist()


@pytest.mark.parametrize("dtype", ["f8E5M2", "f8E4M3", "f8E3M4", "bf16", "f64"])
def test_infinities_keep_their_sign(dtype: str) -> None:
    t = f"tensor<2x{dtype}>"
    text = f"func.func @main() -> {t} {{ %c = stablehlo.constant dense<[1.0, -1.0]> : {t} return %c : {t} }}"
    written = print_module(hilo.parse(text)).replace("1.0", "inf")
    for again in (parse(written), parse_message(module_message(parse(written)))):
        (found,) = hilo.interpret(again)
        assert found.astype(np.float64).tolist() == [np.inf, -np.inf]


def test_names_of_places(message: bytes) -> None:
    whole = edited(message, "multiply", 7, put_bytes(2, "there/mul"))
    ops = {o.name: o for o in parse_message(whole)["main"].ops}
    assert str(ops["multiply"].loc) == "there/mul"


def test_numbers_of_packed_fields() -> None:
    values = [0, 1, 127, 128, 300, 1 << 32, (1 << 64) - 1, 5]
    assert _varints(b"".join(map(varint, values))).tolist() == values
    assert _varints(7).tolist() == [7]
    assert _varints(b"").size == 0
    for broken in (b"\x80", b"\x01\xff", b"\x80" * 10 + b"\x01"):
        with pytest.raises(Error, match="literal"):
            _varints(broken)


def test_places() -> None:
    frames = (put_bytes(1, "a.py") + put_bytes(1, "b.py") + put_bytes(3, put(1, 1) + put(3, 7) + put(4, 2))
              + put_bytes(3, put(1, 2) + put(3, 9)) + put_bytes(4, put(1, 1) + put(2, 2))
              + put_bytes(4, put(1, 2)))  # fmt: skip
    data = edited(module_message(hilo.parse(PROGRAM)), "multiply", 7, put_bytes(2, "mul") + put(15, 1))
    loc = next(o for o in parse_message(with_field(data, 17, frames))["main"].ops if o.name == "multiply").loc
    assert str(loc) == "a.py:7:2"
    circle = put_bytes(1, "a.py") + put_bytes(3, put(1, 1)) + put_bytes(4, put(1, 1) + put(2, 1))
    assert parse_message(with_field(data, 17, circle)) is not None


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (b"", "{replicated}"),
        (put(1, 1) + put_numbers(4, (3,)), "{maximal device=3}"),
        (put(1, 3) + put_numbers(3, (2, 2)) + put_numbers(4, (0, 1, 2, 3)), "{devices=[2,2]0,1,2,3}"),
        (put(1, 3) + put_numbers(3, (2, 1, 2)) + put(6, 1) + put_numbers(9, (4,)) + put_numbers(10, (0,)),
         "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"),
        (put(1, 3) + put_numbers(3, (4,)) + put_numbers(9, (2, 2)) + put_numbers(10, (1, 0)),
         "{devices=[4]<=[2,2]T(1,0)}"),
        (put(1, 2) + put_bytes(5, b"") + put_bytes(5, put(1, 4)), "{{replicated}, {manual}}"),
    ],
)  # fmt: skip
def test_shardings(sharding: bytes, text: str) -> None:
    assert read_sharding(Message(sharding)) == text


# -- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "number", "value", "says"),
    [
        ("multiply", 2, b"multiplied", "multiply.*unknown opcode"),
        ("multiply", 36, put_numbers(1, (99,))[2:], "operand 99 is used but not defined"),
        ("multiply", 3, put(2, 99), "no element type 99"),
        ("multiply", 3, put(2, 34), "type buffer are not supported"),
        ("multiply", 3, put(2, 11) + put_numbers(3, (-2,)), "-2 is no dimension size"),
        ("multiply", 3, put(2, 11) + put_numbers(3, (2, 3)) + put_bytes(5, put_numbers(1, (0, 0))), "layout"),
        ("multiply", 3, put(2, 11) + put_numbers(3, (3, 2)), r"\[3,2\] is declared"),
        ("constant", 8, b"", r"literal|no element type"),
        ("parameter", 9, 5, "no parameter 0"),
        ("tuple", 35, 1 << 32 | 1, "another instruction has the number"),
    ],
)  # fmt: skip
def test_wrong_fields_are_named(message: bytes, opcode: str, number: int, value: bytes | int, says: str) -> None:
    with pytest.raises(Error, match=says):
        parse_message(edited(message, opcode, number, value), "x.pb")


def test_errors_name_the_file_and_the_instruction(message: bytes) -> None:
    with pytest.raises(Error, match=r"x\.pb: multiply\.\d+: .*sine"):
        parse_message(edited(message, "multiply", 2, b"sine"), "x.pb")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no HLO module"),
        (put_bytes(1, "name"), "no HLO module"),
        (put_bytes(1, "name") + put_bytes(3, b"\xff"), "no protocol buffer message"),
        (put_bytes(1, "name") + put_bytes(3, put_bytes(1, "c")), "computation c has no instructions"),
    ],
)
def test_what_is_no_module(data: bytes, says: str) -> None:
    with pytest.raises(Error, match=f"x.pb: .*{says}"):
        parse_message(data, "x.pb")


def test_constants_that_are_left_out() -> None:
    text = "func.func @main() -> tensor<3xi64> { %c = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi64> " \
           "return %c : tensor<3xi64> }"  # fmt: skip
    short = hilo.inspect(text, "hlo_serialized", elide=2)
    assert isinstance(short, bytes)
    with pytest.raises(Error, match="left out"):
        parse_message(short)


def test_damaged_messages_end_in_one_error(message: bytes) -> None:
    """A few of the inputs that `hilo fuzz` tries by the thousand."""
    pool = [message, module_message(hilo.parse(PROGRAM.replace("multiply", "add")))]
    r = random.Random(1)
    refused = 0
    for _ in range(1500):
        data = message
        for _ in range(r.choice((1, 1, 2))):
            data = changed(r, data, pool)
        try:
            parse_message(data)
        except Error:
            refused += 1
    assert 100 < refused < 1500


def test_cut_messages_end_in_one_error(message: bytes) -> None:
    for n in range(0, len(message), 3):
        try:
            parse_message(message[:n])
        except Error:
            continue
