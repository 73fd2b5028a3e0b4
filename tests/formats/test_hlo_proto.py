"""HLO as XLA's messages: the structure, and that XLA reads the same program in them as in text."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Unsupported
from hilo.formats.hlo_text import emit, write
from hilo.formats.hlo_text.proto import MOST_ELEMENTS, module_proto, module_with_config
from hilo.formats.protobuf import fields, numbers
from hilo.ir.module import Module
from hilo.options import Options
from hilo.pipeline import optimize

PROGRAM = """
func.func @main(%x: tensor<8x4xf32>, %n: tensor<i32>) -> (tensor<8xf32>, tensor<4x8xf32>, tensor<i32>) {
  %c = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %2:2 = stablehlo.while(%i = %n, %v = %n) : tensor<i32>, tensor<i32>
   cond {
    %p = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %v : tensor<i32>, tensor<i32>
  }
  return %0, %1, %2#0 : tensor<8xf32>, tensor<4x8xf32>, tensor<i32>
}
"""


def message(data: Any) -> dict[int, list[Any]]:
    found = defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def instructions(module: bytes) -> dict[str, list[dict[int, list[Any]]]]:
    """All instructions by their opcode."""
    found = defaultdict(list)
    for c in message(module)[3]:
        for i in message(c)[2]:
            m = message(i)
            found[m[2][0].decode()].append(m)
    return found


def test_numbers_of_instructions_and_computations() -> None:
    data = module_proto(emit(hilo.parse(PROGRAM)))
    m = message(data)
    computations = [message(c) for c in m[3]]
    ids = {c[5][0]: c for c in computations}
    assert m[2] == [b"main"]
    assert ids[m[6][0]][1] == [b"main"]
    for c in computations:
        own = [message(i)[35][0] for i in c[2]]
        assert c[6][0] in own
        before: set[int] = set()
        for i in map(message, c[2]):
            assert {n for v in i[36] for n in numbers(v)} <= before  # operands come first
            before.add(i[35][0])
    (loop,) = instructions(data)["while"]
    body, condition = (ids[n] for v in loop[38] for n in numbers(v))
    assert b"compare" in [message(i)[2][0] for i in condition[2]]
    assert b"compare" not in [message(i)[2][0] for i in body[2]]


def test_what_instructions_carry() -> None:
    found = instructions(module_proto(emit(hilo.parse(PROGRAM))))
    assert [numbers(v) for v in found["reduce"][0][14]] == [[1]]
    assert [numbers(v) for v in found["transpose"][0][14]] == [[1, 0]]
    assert found["compare"][0][63] == [b"LT"]
    assert {i[9][0] if i[9] else 0 for i in found["parameter"]} == {0, 1}


def test_one_replica_and_one_partition() -> None:
    m = message(module_with_config(emit(hilo.parse(PROGRAM))))
    config = message(m[2][0])
    assert (config[4], config[5]) == ([1], [1])
    shape = message(config[1][0])
    assert len(shape[1]) == 2
    assert message(shape[2][0])[2] == [13]  # the results are a tuple


@pytest.mark.parametrize("count", [MOST_ELEMENTS, MOST_ELEMENTS + 1])
def test_large_constants_are_left_out_of_what_is_only_looked_at(count: int) -> None:
    values = ", ".join(map(str, range(count)))
    text = f"""func.func @main() -> tensor<{count}xi32> {{
      %c = stablehlo.constant dense<[{values}]> : tensor<{count}xi32>
      return %c : tensor<{count}xi32>
    }}"""
    made = emit(hilo.parse(text))
    (constant,) = instructions(module_proto(made))["constant"]
    assert numbers(message(constant[8][0])[4][0]) == list(range(count))
    (constant,) = instructions(message(module_with_config(made))[1][0])["constant"]
    assert bool(constant[8]) == (count <= MOST_ELEMENTS)


def test_elements_narrower_than_a_byte_have_no_other_bits() -> None:
    text = """func.func @main() -> tensor<3xi4> {
      %c = stablehlo.constant dense<[1, -1, -8]> : tensor<3xi4>
      return %c : tensor<3xi4>
    }"""
    (constant,) = instructions(module_proto(emit(hilo.parse(text))))["constant"]
    assert message(constant[8][0])[21] == [bytes([1, 15, 8])]


def test_types_that_xla_lacks() -> None:
    text = "func.func @main(%x: tensor<2xf6E2M3FN>) -> tensor<2xf6E2M3FN> { return %x : tensor<2xf6E2M3FN> }"
    with pytest.raises(Unsupported, match="no type f6E2M3FN"):
        module_proto(emit(hilo.parse(text)))


def plain(text: str) -> str:
    """HLO as XLA prints it, without what messages leave out."""
    text = re.sub(r", (metadata|sharding)=\{[^}]*\}", "", text)
    return re.sub(r"%?([a-z][\w.-]*)", r"\1", text)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("optimized", [False, True], ids=["written", "optimized"])
def test_xla_reads_what_it_reads_in_text(seed: int, optimized: bool) -> None:
    hlo: Any = pytest.importorskip("jaxlib._hlo", reason="XLA's reader is in jaxlib, which is not installed")
    from hilo.testing.generate import generate

    module = generate(seed, 12)
    program = Module({"main": optimize(module, "main", Options())}) if optimized else module
    try:
        made = emit(program)
        data, text = module_proto(made), write(made)
    except Unsupported:
        pytest.skip("HLO has no form of this program: regions that capture values, quantized ops, f6 types")
    read = hlo.HloModule.from_serialized_hlo_module_proto(data)
    assert plain(read.to_string()) == plain(hlo.hlo_module_from_text(text).to_string())
    assert np.shape(read.spmd_parameters_shardings) == (len(module["main"].params),)
