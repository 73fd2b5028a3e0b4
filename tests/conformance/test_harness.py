"""The conformance harness itself: it must notice what is wrong, and say what it skips."""

from __future__ import annotations

import numpy as np
import pytest

from hilo.errors import Error
from hilo.formats import mlir_text
from hilo.ir.interpret import interpret
from hilo.testing import checked, conformance
from hilo.testing.runners import RUNNERS, Runner

PROGRAM = """
module @m {
  func.func public @main() -> tensor<2xf32> {
    %0:2 = call @inputs() : () -> (tensor<2xf32>, tensor<f32>)
    %1 = call @expected() : () -> tensor<2xf32>
    %2 = stablehlo.broadcast_in_dim %0#1, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %3 = call @twice(%2) : (tensor<2xf32>) -> tensor<2xf32>
    %4 = stablehlo.add %0#0, %3 : tensor<2xf32>
    stablehlo.custom_call @check.CHECK(%4, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
    return %4 : tensor<2xf32>
  }
  func.func private @inputs() -> (tensor<2xf32>, tensor<f32>) {
    %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = stablehlo.constant dense<4.0> : tensor<f32>
    return %a, %b : tensor<2xf32>, tensor<f32>
  }
  func.func private @expected() -> tensor<2xf32> {
    %a = stablehlo.constant dense<EXPECTED> : tensor<2xf32>
    return %a : tensor<2xf32>
  }
  func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
INTERPRETER = RUNNERS["interpreter"]
CONSTANTS = Runner("constants", interpret, constants=True)


def program(expected="[9.0, 10.0]", check="expect_close"):
    return PROGRAM.replace("EXPECTED", expected).replace("CHECK", check)


def test_main_takes_its_inputs_as_arguments():
    module, inputs, checks = checked.with_arguments(mlir_text.parse(program()))
    assert [str(t) for t in module["main"].param_types] == ["f32[2]", "f32[]"]
    assert [x.tolist() for x in inputs] == [[1, 2], 4]
    assert [(c.kind, c.want.tolist()) for c in checks] == [("expect_close", [9, 10])]
    assert interpret(module, [np.array([5, 5], np.float32), np.asarray(1, np.float32)])[0].tolist() == [7, 7]


def test_and_as_constants():
    module = mlir_text.parse(program())
    arguments, _, _ = checked.with_arguments(module)
    constants = checked.with_constants(module, arguments)
    assert constants["main"].param_types == ()
    assert interpret(constants, [])[0].tolist() == [9, 10]


@pytest.mark.parametrize(
    ("check", "expected", "status"),
    [
        ("expect_close", "[9.0, 10.0]", "pass"),
        ("expect_close", "[9.0000019, 10.0]", "pass"),
        ("expect_close", "[9.00001, 10.0]", "pass"),
        ("expect_close", "[9.0001, 10.0]", "fail"),
        ("expect_eq", "[9.0, 10.0]", "pass"),
        ("expect_eq", "[9.000001, 10.0]", "fail"),
        ("expect_almost_eq", "[9.0009, 10.0]", "pass"),
        ("expect_almost_eq", "[9.0011, 10.0]", "fail"),
        ("expect_odd", "[9.0, 10.0]", "fail"),
        ("expect_eq", "[0x7FC00000, 10.0]", "fail"),
    ],
)
def test_checks(check, expected, status):
    """9.00001 instead of 9 passes, with a remark: the program in f64 gives 9, and it is near."""
    for way in (INTERPRETER, CONSTANTS):
        (record,) = conformance.run_module("p", program(expected, check), [way])
        assert record.status == status, record
        assert bool(record.reason) == (status == "fail" or expected == "[9.00001, 10.0]")


def test_what_no_result_can_be_is_skipped():
    """`expect_eq` of NaN: nothing is equal to NaN. Where the other elements are wrong, it fails all the same."""
    text = program("[0x7FC00000, 10.0]", "expect_eq")
    for got, status in (([np.nan, 10.0], "skip"), ([np.nan, 11.0], "fail"), ([9.0, 10.0], "fail")):
        fixed = Runner("fixed", lambda module, inputs, got=got: [np.array(got, np.float32)])
        (record,) = conformance.run_module("p", text, [fixed])
        assert record.status == status, record


def test_a_wrong_result_fails():
    wrong = Runner("wrong", lambda module, inputs: [x + 1 for x in interpret(module, inputs)])
    shape = Runner("shape", lambda module, inputs: [x[:1] for x in interpret(module, inputs)])
    broken = Runner("broken", lambda module, inputs: 1 // 0)
    for way, reason in (
        (wrong, "2 of 2 elements differ"),
        (shape, r"a result of float32[1]"),
        (broken, "ZeroDivisionError"),
    ):
        (record,) = conformance.run_module("p", program(), [way])
        assert record.status == "fail"
        assert reason in record.reason


def test_what_is_missing_is_read_from_the_program():
    assert conformance.missing(program()) == ""
    assert conformance.ops_of(program()) == ("stablehlo.add", "stablehlo.broadcast_in_dim")
    assert conformance.missing(program().replace("stablehlo.add", "stablehlo.frobnicate")) == "op stablehlo.frobnicate"
    assert conformance.missing(program().replace("tensor<f32>", "tensor<f8E3M4>")) == ""
    assert conformance.missing(program().replace("tensor<f32>", "tensor<f7E3M3>")) == "type f7E3M3"
    assert conformance.missing(program().replace("tensor<f32>", "tensor<?xf32>")) == ""
    assert conformance.missing(program().replace("custom_call @check", "custom_call @other")) == ""
    assert "stablehlo.custom_call" in conformance.ops_of(program().replace("custom_call @check", "custom_call @other"))


def test_a_report(tmp_path):
    (tmp_path / "a.mlir").write_text(program())
    (tmp_path / "b.mlir").write_text(program("[1.0, 1.0]") + "\n// -----\n" + program())
    (tmp_path / "c.mlir").write_text(program().replace("stablehlo.add", "stablehlo.frobnicate"))
    (tmp_path / "d.mlir").write_text("module { func.func @main( }")
    seen: list[str] = []
    report = conformance.run(tmp_path, runners=[INTERPRETER], on_file=seen.append)
    assert seen == ["a.mlir", "b.mlir", "c.mlir", "d.mlir"]
    assert report.counts() == {"interpreter": {"pass": 2, "fail": 2, "skip": 1}}
    assert report.by_op()["stablehlo.add"]["interpreter"] == {"pass": 2, "fail": 1}
    assert report.skipped() == {"op stablehlo.frobnicate": 1}
    assert not report.ok
    text = report.table(by_op=True)
    assert "4 files" in text
    assert "2/4 (1 skipped)" in text
    assert "FAIL b.mlir#0 (interpreter): 2 of 2 elements differ" in text
    assert conformance.run(tmp_path / "a.mlir", runners=[INTERPRETER]).ok
    assert conformance.run(tmp_path, runners={"interpreter": INTERPRETER}, limit=1).files == 1


def test_no_corpus_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HILO_SHARED", str(tmp_path))
    with pytest.raises(Error, match="no conformance corpus"):
        conformance.run()
    with pytest.raises(Error, match=r"no \.mlir files"):
        conformance.run(tmp_path)
    with pytest.raises(Error, match="no file or folder"):
        conformance.run(tmp_path / "x.mlir")
    broken = tmp_path / "conformance" / "stablehlo-dev.tar.xz"
    broken.parent.mkdir()
    broken.write_bytes(b"not an archive")
    with pytest.raises(Error, match="not a readable archive"):
        conformance.run()


def test_a_program_of_several_processes_needs_no_check():
    """The interpreter alone runs it; an error is a failure."""
    text = """module {
      func.func @f(%t: !stablehlo.token) -> tensor<2xf32> {
        %x:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
        return %x#0 : tensor<2xf32>
      }
      func.func @feed() -> tensor<2xf32> {
        %c = stablehlo.constant dense<1.0> : tensor<2xf32>
        return %c : tensor<2xf32>
      }
      func.func @main() {
        %t = stablehlo.create_token : !stablehlo.token
        %r = "interpreter.run_parallel"(%t) {programs = [[@f]], infeed = [@feed]} : (!stablehlo.token) -> tensor<2xf32>
        return
      }
    }"""
    ways = [RUNNERS["interpreter"], RUNNERS["native"]]
    found = conformance.run_module("p", text, ways)
    assert [r.status for r in found] == ["pass", "skip"]
    assert found[1].reason == conformance.ALONE
    (failed,) = conformance.run_module("p", text.replace(", infeed = [@feed]", ""), ways[:1])
    assert failed.status == "fail"
    assert "the infeed is empty" in failed.reason
    (plain,) = conformance.run_module("p", "func.func @main() { return }", ways[:1])
    assert (plain.status, plain.reason) == ("skip", "a check: it has none")
