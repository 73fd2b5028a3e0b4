"""Programs that take the time of their steps: in loops, branches, with run-time sizes, in stages; others take none."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.options import Options
from hilo.plan.profile import StepTime

PROFILE = Options(profile=True)
LOOP = """func.func @main(%n: tensor<i32>, %x: tensor<300x200xf32>) -> (tensor<i32>, tensor<300x200xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<300x200xf32> cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.tanh %y : tensor<300x200xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<300x200xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<300x200xf32>
}"""
BRANCH = """func.func @main(%p: tensor<i1>, %x: tensor<40x30xf32>) -> tensor<40x30xf32> {
  %r = "stablehlo.if"(%p) ({
    %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
        : (tensor<40x30xf32>, tensor<40x30xf32>) -> tensor<40x40xf32>
    %b = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
        : (tensor<40x40xf32>, tensor<40x30xf32>) -> tensor<40x30xf32>
    stablehlo.return %b : tensor<40x30xf32>
  }, {
    %s = stablehlo.sine %x : tensor<40x30xf32>
    stablehlo.return %s : tensor<40x30xf32>
  }) : (tensor<i1>) -> tensor<40x30xf32>
  return %r : tensor<40x30xf32>
}"""
DYNAMIC = """func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.exponential %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}"""
DOT = """func.func @main(%a: tensor<20x30xf64>, %b: tensor<30x40xf64>) -> tensor<20x40xf64> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<20x30xf64>, tensor<30x40xf64>) -> tensor<20x40xf64>
  return %0 : tensor<20x40xf64>
}"""


def steps(f: hilo.Executable) -> dict[str, StepTime]:
    return {t.op.split()[0]: t for t in f.profile()}


def test_steps_in_loops_count_their_runs() -> None:
    x = np.ones((300, 200), np.float32)
    plain, f = hilo.compile(LOOP), hilo.compile(LOOP, options=PROFILE)
    for want, got in zip(plain(np.int32(5), x), f(np.int32(5), x), strict=True):
        np.testing.assert_array_equal(got, want)
    tanh = steps(f)["tanh"]
    assert tanh.runs == 5
    assert 0 < tanh.seconds < 5
    assert (tanh.flops, tanh.read, tanh.written) == (16 * 60000.0, 240000.0, 240000.0)
    assert tanh.strategy == "elementwise loop"
    assert tanh.reason.startswith("bound by ")
    assert any(t.runs == 6 for t in f.profile())  # the condition
    f(np.int32(2), x)
    assert steps(f)["tanh"].runs == 7


def test_a_branch_that_is_not_taken_takes_no_time() -> None:
    f = hilo.compile(BRANCH, options=PROFILE)
    x = np.ones((40, 30), np.float32)
    f(np.array(False), x)
    assert {t.op.split()[0]: t.runs for t in f.profile()} == {"dot_general": 0, "sine": 1}
    assert [t.seconds for t in f.profile() if not t.runs] == [0.0, 0.0]
    taken = f.take_counters()
    assert taken.shape == (3, 2)
    assert taken.dtype == np.int64
    assert not f.take_counters().any()
    f(np.array(True), x)
    assert steps(f)["dot_general"].runs == 1
    assert [t.runs for t in f.profile(taken)] == [0, 0, 1]
    assert [t.number for t in f.profile()] == [0, 1, 2]


def test_a_contraction_says_what_it_costs_and_what_it_chose() -> None:
    f = hilo.compile(DOT, options=PROFILE)
    f(np.ones((20, 30)), np.ones((30, 40)))
    (t,) = f.profile()
    assert t.flops == 2 * 20 * 30 * 40
    assert (t.read, t.written) == (8 * (20 * 30 + 30 * 40), 8 * 20 * 40)
    assert t.wide
    assert t.strategy.startswith("product, tiles ")
    assert "dot_general.tile" in {c.knob for c in t.choices}


def test_run_time_sizes() -> None:
    f = hilo.compile(DYNAMIC, options=PROFILE)
    for n in (3, 0, 70):
        (got,) = f(np.zeros((n, 8), np.float32))
        np.testing.assert_array_equal(got, np.ones((n, 8), np.float32))
    (t,) = f.profile()
    assert t.runs == 3


STAGES = """func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %e = stablehlo.exponential %x : tensor<?xf32>
  %i = stablehlo.convert %e : (tensor<?xf32>) -> tensor<?xi32>
  %c = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
  %c1 = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_iota %c1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %r : tensor<?xi32>
}"""


def test_stages_are_one_list_of_steps() -> None:
    f = hilo.compile(STAGES, options=PROFILE)
    for _ in range(2):
        (got,) = f(np.zeros(4, np.float32))
        np.testing.assert_array_equal(got, np.arange(4))
    times = f.profile()
    assert [t.number for t in times] == list(range(len(times)))
    assert {t.runs for t in times} == {2}
    assert times[-1].op.startswith("iota")
    assert len(f.take_counters()) == len(times) > 1


def test_a_long_program_is_timed_in_all_its_parts() -> None:
    lines = [f"  %{i + 1} = stablehlo.dot_general %{i}, %{i}, contracting_dims = [1] x [0] : "
             "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>" for i in range(300)]  # fmt: skip
    text = "func.func @main(%0: tensor<2x2xf32>) -> tensor<2x2xf32> {\n" + "\n".join(lines)
    f = hilo.compile(text + "\n  return %300 : tensor<2x2xf32>\n}", options=PROFILE)
    f(np.eye(2, dtype=np.float32))
    assert [t.runs for t in f.profile()] == [1] * 300


def test_custom_calls_are_steps() -> None:
    hilo.register_custom_call("profile_twice", lambda x: x + x)
    f = hilo.compile(
        "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        '  %0 = stablehlo.custom_call @profile_twice(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
        "  return %0 : tensor<3xf32>\n}",
        options=PROFILE,
    )
    f(np.ones(3, np.float32))
    (t,) = f.profile()
    assert (t.name, t.runs, t.strategy) == ("call profile_twice", 1, "custom call")


def test_other_programs_have_no_profile_and_no_clock() -> None:
    f = hilo.compile(LOOP)
    assert "clock_gettime" not in f.text("llvm")
    assert "clock_gettime" in hilo.compile(LOOP, options=PROFILE).text("llvm")
    with pytest.raises(Error, match=r"@main was not compiled with profile=True \(HILO_PROFILE=1\)"):
        f.profile()
    with pytest.raises(Error, match="profile=True"):
        f.take_counters()
    assert PROFILE.code_key() != Options().code_key()
