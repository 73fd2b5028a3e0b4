"""Ops of the dialect `interpreter`: programs of several processes, prints and probes, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported, VerifyError
from hilo.formats import mlir_text

MODULE = """module {
  func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
    %y = stablehlo.add %x, %x : tensor<2xi64>
    return %y : tensor<2xi64>
  }
  func.func @g() -> (tensor<ui32>, tensor<2xi64>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %t = stablehlo.create_token : !stablehlo.token
    %i:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<2xi64>, !stablehlo.token)
    return %p, %i#0 : tensor<ui32>, tensor<2xi64>
  }
  func.func @feed() -> tensor<2xi64> {
    %c = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
    return %c : tensor<2xi64>
  }
  func.func @pair() -> (tensor<i64>, tensor<i64>) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    return %c, %c : tensor<i64>, tensor<i64>
  }
  func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<ui32>, tensor<2xi64>) {
    %r:3 = "interpreter.run_parallel"(%x) {ATTRIBUTES} : (tensor<2xi64>) -> (tensor<2xi64>, tensor<ui32>, tensor<2xi64>)
    return %r#0, %r#1, %r#2 : tensor<2xi64>, tensor<ui32>, tensor<2xi64>
  }
}"""
GOOD = "programs = [[@f, @g]], infeed = [@feed]"
X = np.array([1, 2])


def test_programs_of_two_processes():
    text = MODULE.replace("ATTRIBUTES", GOOD)
    a, p, b = hilo.interpret(text, X)
    assert (a.tolist(), int(p), b.tolist()) == ([2, 4], 1, [3, 4])
    module = hilo.parse(text)
    printed = mlir_text.print_module(module)
    assert "infeed = [@feed]" in printed
    assert "programs = [[@f, @g]]" in printed
    assert hilo.parse(printed)["main"] == module["main"]
    with pytest.raises(Unsupported, match="only the interpreter"):
        hilo.compile(text)


@pytest.mark.parametrize(("attributes", "words"), [
    ("programs = []", "`programs` must be rows of functions"),
    ("programs = [[]]", "`programs` must be rows of functions"),
    ("programs = [@f]", "`programs` must be rows of functions"),
    ('programs = [["f"], [1]]', "`programs` must name functions"),
    ("programs = [[@f], [@g, @g]]", "must all have 1 functions, not 2"),
    ("infeed = [@feed]", "attribute 'programs' is missing"),
    ("programs = [[@f, @h]]", "function @h is not defined"),
    ("programs = [[@f, @f]]", "there are 1 arguments, but the programs have 2 in all"),
    ("programs = [[@f]]", "there are 3 results, but the programs have 1 in all"),
    ("programs = [[@g, @f]]", r"number 0 of the results is i64\[2\], but u32\[\] in its program"),
    ("programs = [[@f, @g]], infeed = []", "`infeed` must name functions"),
    ("programs = [[@f, @g]], infeed = [@h]", "function @h is not defined"),
    ("programs = [[@f, @g]], infeed = [@pair]", "@pair must take nothing and return one tensor"),
    ("programs = [[@f, @g]], infeed = [@f]", "@f must take nothing and return one tensor"),
])  # fmt: skip
def test_what_is_wrong(attributes, words):
    with pytest.raises(Error, match=words) as e:
        hilo.parse(MODULE.replace("ATTRIBUTES", attributes))
    assert str(e.value.loc).startswith("<text>:21") or ":21:" in str(e.value)


def test_a_program_that_runs_itself():
    text = """module { func.func @main() { "interpreter.run_parallel"() {programs = [[@main]]} : () -> () return } }"""
    with pytest.raises(Error, match="recursive"):
        hilo.parse(text)


def test_an_infeed_that_is_too_short():
    with pytest.raises(Error, match=r"\(0, 1\) would wait for ever in stablehlo.infeed, as the infeed is empty"):
        hilo.interpret(MODULE.replace("ATTRIBUTES", "programs = [[@f, @g]]"), X)


PROBED = """
func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %0 = stablehlo.constant dense<0> : tensor<i64>
  %2 = stablehlo.constant dense<2> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %r:2 = stablehlo.while(%i = %0, %s = %x) : tensor<i64>, tensor<2xi64>
  cond {
    %c = stablehlo.compare LT, %i, %2 : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %t = stablehlo.add %s, %s : tensor<2xi64>
    %p = interpreter.probe %t, probe_id = "a/b, c" : tensor<2xi64>
    %q = interpreter.print %p : tensor<2xi64>
    %j = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %j, %q : tensor<i64>, tensor<2xi64>
  }
  return %r#1 : tensor<2xi64>
}
"""


def test_probes(tmp_path, capsys):
    for probes in (hilo.Probes(), hilo.Probes(tmp_path)):
        assert hilo.interpret(PROBED, X, probes=probes)[0].tolist() == [4, 8]
        assert [v.tolist() for v in probes.values["a/b, c"]] == [[2, 4], [4, 8]]
        assert probes.value("a/b, c", 1).tolist() == [4, 8]
        with pytest.raises(Error, match="has 2 values"):
            probes.value("a/b, c", 2)
        with pytest.raises(Error, match="has 0 values"):
            probes.value("d")
    assert np.load(tmp_path / "probe2.npy").tolist() == [4, 8]
    index = (tmp_path / "index.csv").read_text().splitlines()
    assert index == [f'"a/b, c",tensor<2xi64>,{tmp_path}/probe{k}.npy' for k in (1, 2)]
    assert capsys.readouterr().out == 2 * "int64[2] [2, 4]\nint64[2] [4, 8]\n"
    assert hilo.interpret(PROBED, X)[0].tolist() == [4, 8]
    printed = mlir_text.print_module(hilo.parse(PROBED))
    assert 'interpreter.probe %5, probe_id = "a/b, c" : tensor<2xi64>' in printed, printed
    assert hilo.parse(printed)["main"] == hilo.parse(PROBED)["main"]


def test_probes_that_cannot_be_written(tmp_path):
    with pytest.raises(Error, match="there is no directory"):
        hilo.Probes(tmp_path / "missing")
    probes = hilo.Probes(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(Error, match="a probe cannot be written"):
        hilo.interpret(PROBED, X, probes=probes)


def test_probes_and_prints_take_tensors():
    for text in ("interpreter.print %t : !stablehlo.token", 'interpreter.probe %t, probe_id = "a" : !stablehlo.token'):
        with pytest.raises(VerifyError, match="must be a tensor"):
            hilo.parse(f"func.func @main(%t: !stablehlo.token) {{ %r = {text} return }}")
