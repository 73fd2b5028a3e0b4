"""Shardy's ops: read, kept, written back as text and bytecode; on one device they change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats import bytecode
from hilo.formats.mlir_text import print_module

MARKED = """module {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {a.b = 1 : i64}
  func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {"y", ?}]> : tensor<8x4xf32>
    sdy.sharding_group %0 group_id=5 : tensor<8x4xf32>
    %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x4xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8x4xf32>
    %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{"x"}, {}]> {a.c = 2 : i64} : tensor<8x4xf32>
    %4 = sdy.data_flow_edge %3 : tensor<8x4xf32>
    %5 = stablehlo.add %4, %0 : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
"""
COMPUTATIONS = """module {
  sdy.mesh @mesh = <["x"=1]>
  func.func @main(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
    %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<8x4xf32>) {
      %cst = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      sdy.return %arg1, %2 : tensor<8x4xf32>, tensor<4xf32>
    } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
    %1 = sdy.named_computation<"double">(%0#0) out_shardings=[<@mesh, [{}, {}]>] (%arg2: tensor<8x4xf32>) {
      %3 = stablehlo.add %arg2, %arg2 : tensor<8x4xf32>
      sdy.return %3 : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1, %0#1 : tensor<8x4xf32>, tensor<4xf32>
  }
}
"""  # noqa: E501


def test_marks_are_kept_and_change_nothing() -> None:
    m = hilo.parse(MARKED)
    assert print_module(m) == MARKED
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(hilo.interpret(m, x)[0], 2 * x)
    np.testing.assert_array_equal(hilo.compile(m)(x)[0], 2 * x)


def test_marks_in_artifacts() -> None:
    text = "".join(line + "\n" for line in MARKED.splitlines() if "barrier" not in line).replace("%2 sh", "%1 sh")
    m = hilo.parse(text)
    back = bytecode.parse(bytecode.write(m, locations=False))
    assert print_module(back) == print_module(m)
    with pytest.raises(Error, match=r"needs StableHLO 1\.11\.0"):
        bytecode.write(m, "1.10.0")


def test_computations() -> None:
    m = hilo.parse(COMPUTATIONS)
    printed = print_module(m)
    assert hilo.parse(printed)["main"] == m["main"]
    assert printed.count("sdy.return") == 2
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    for doubled, total in (hilo.interpret(m, x), hilo.compile(m)(x)):
        np.testing.assert_array_equal(doubled, 2 * x)
        np.testing.assert_array_equal(total, x.sum(0))


def test_parts_of_a_value_are_for_several_devices() -> None:
    text = """module {
      sdy.mesh @mesh = <["x"=4]>
      func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>,
          manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
        ^bb0(%a: tensor<2xf32>):
          "sdy.return"(%a) : (tensor<2xf32>) -> ()
        }) : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }"""
    m = hilo.parse(text)
    printed = print_module(m)
    assert 'in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (' in printed
    assert print_module(hilo.parse(printed)) == printed
    x = np.ones(8, np.float32)
    for run in (lambda: hilo.interpret(m, x), lambda: hilo.compile(m)):
        with pytest.raises(Unsupported, match="for several devices"):
            run()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("%arg1: tensor<8x4xf32>", "%arg1: tensor<8xf32>", "is no part of the operand"),
    ("sdy.return %arg1, %2 : tensor<8x4xf32>, tensor<4xf32>", "sdy.return %2 : tensor<4xf32>", "1 parts for 2 results"),
    ("%3 = stablehlo.add %arg2, %arg2 : tensor<8x4xf32>", "%3 = stablehlo.iota dim = 0 : tensor<4x8xf32>", "returned"),
])  # fmt: skip
def test_what_is_refused(old: str, new: str, message: str) -> None:
    assert old in COMPUTATIONS
    with pytest.raises(Error):
        hilo.parse(COMPUTATIONS.replace(old, new))
