"""check.expect_serialized_eq: what probes have written, against values of the program."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hilo.errors import Error
from hilo.formats.mlir_text import parse
from hilo.ir import probes
from hilo.testing import conformance
from hilo.testing.probed import without_probes
from hilo.testing.runners import RUNNERS

PROGRAM = """
func.func @main() {{
  %x = stablehlo.constant dense<[{x}]> : tensor<1x{t}>
  %s = stablehlo.add %x, %x : tensor<1x{t}>
  %p = interpreter.probe %s, probe_id = "a/b" : tensor<1x{t}>
  check.expect_serialized_eq {checked}, probe_id = "a/b"{more} : tensor<1x{t}>
  func.return
}}"""
LOOP = """
func.func @main() {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %i = stablehlo.while(%a = %z) : tensor<i32>
    cond {
      %c = stablehlo.compare LT, %a, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %a, %one : tensor<i32>
      %p = interpreter.probe %n, probe_id = "p" : tensor<i32>
      stablehlo.return %p : tensor<i32>
    }
  check.expect_eq_const %i, dense<2> : tensor<i32>
  check.expect_serialized_eq %one, probe_id = "p", iter = 0 : tensor<i32>
  "check.expect_serialized_eq"(%two) {probe_id = "p", iter = 1 : ui32} : (tensor<i32>) -> ()
  func.return
}"""


def statuses(text: str) -> set[tuple[str, str]]:
    return {(r.status, r.reason) for r in conformance.run_module("m", text, RUNNERS.values())}


@pytest.mark.parametrize("t", ["i1", "i4", "ui8", "i64", "bf16", "f8E5M2", "f64", "complex<f32>"])
def test_what_a_probe_wrote_is_read_back(t: str):
    x = {"c": "(1.0, 2.0)", "i1": "true"}.get(t if t == "i1" else t[0], "1" if t[0] in "iu" else "1.5")
    assert statuses(PROGRAM.format(x=x, t=t, checked="%p", more="")) == {("pass", "")}
    wrong = conformance.run_module("m", PROGRAM.format(x=x, t=t, checked="%x", more=""), RUNNERS.values())
    assert all(r.status == ("pass" if t == "i1" else "fail") for r in wrong)


def test_a_value_that_was_not_written():
    ((status, reason),) = statuses(PROGRAM.format(x="1.0", t="f32", checked="%p", more=", iter = 1"))
    assert status == "fail"
    assert "has written 1 values" in reason


def test_turns_of_a_loop():
    assert statuses(LOOP) == {("pass", "")}
    assert {s for s, _ in statuses(LOOP.replace("iter = 0", "iter = 1"))} == {"fail"}


def test_several_processes_are_the_interpreters():
    text = """
    func.func @one(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
    func.func @main() {
      %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %r:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@one, @one]]}
        : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      check.expect_eq_const %r#1, dense<[1.0, 2.0]> : tensor<2xf32>
      func.return
    }"""
    found = conformance.run_module("m", text, RUNNERS.values())
    assert {r.runner: r.status for r in found} == {n: "pass" if n == "interpreter" else "skip" for n in RUNNERS}


def test_probes_are_taken_out():
    f = parse(LOOP)["main"]
    plain = without_probes(f)
    assert "interpreter.probe" not in str(plain.key())
    assert without_probes(plain) is plain


@pytest.mark.parametrize("value", [
    np.ones((2, 3), np.float32), np.array(1.5, ml_dtypes.bfloat16), np.array([1 + 2j], np.complex64),
    np.zeros((0, 2), np.bool_), np.array([-1, 3], ml_dtypes.int4),
])  # fmt: skip
def test_files_of_probes(tmp_path: Path, value: np.ndarray):
    with pytest.raises(Error, match="0 values"):
        probes.read(tmp_path, "x")
    p = probes.Probes(tmp_path)
    p.record("x", value * 0)
    p.record('an, "id"', value)
    p.record("x", value)
    for probe_id, turn in (("x", 1), ('an, "id"', 0)):
        got = probes.read(tmp_path, probe_id, turn)
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)
    with pytest.raises(Error, match="no number 2"):
        probes.read(tmp_path, "x", 2)
