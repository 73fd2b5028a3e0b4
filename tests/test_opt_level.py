"""-O0: plain code by the shortest way, with the same meaning; HILO_TIME says where code generation's time goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.backend import cpu
from hilo.backend.target import Target
from hilo.errors import Error
from hilo.options import Options

QUICK = Options(opt=0)
TEXT = """func.func @main(%a: tensor<20x30xf32>, %b: tensor<30x40xf32>)
    -> (tensor<20x40xf32>, tensor<20x30xf32>, tensor<20xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<20x30xf32>, tensor<30x40xf32>) -> tensor<20x40xf32>
  %1 = stablehlo.tanh %a : tensor<20x30xf32>
  %2 = stablehlo.add %1, %a : tensor<20x30xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<20x30xf32>, tensor<f32>) -> tensor<20xf32>
  return %0, %2, %3 : tensor<20x40xf32>, tensor<20x30xf32>, tensor<20xf32>
}"""


def test_elementwise_values_have_the_same_bits_and_sums_are_near() -> None:
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype(np.float32) for s in ((20, 30), (30, 40))]
    plain, best = hilo.compile(TEXT, options=QUICK)(*args), hilo.compile(TEXT, options=Options())(*args)
    np.testing.assert_allclose(plain[0], best[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(plain[1], best[1])
    np.testing.assert_allclose(plain[2], best[2], rtol=1e-5, atol=1e-5)


def test_every_op_is_a_kernel_and_nothing_is_rewritten() -> None:
    f = hilo.compile(TEXT, options=QUICK.replace(profile=True))
    assert [t.op.split()[0] for t in f.profile()] == ["dot_general", "tanh", "add", "reduce"]
    assert " x float>" not in f.text("llvm")  # no vectors
    with pytest.raises(Error, match="no pass 'fuse' ran"):
        f.text("fuse")


def test_control_flow_and_other_types() -> None:
    text = """func.func @main(%n: tensor<i32>, %x: tensor<5xbf16>) -> (tensor<i32>, tensor<5xbf16>) {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<5xbf16> cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %z = stablehlo.multiply %y, %y : tensor<5xbf16>
        stablehlo.return %j, %z : tensor<i32>, tensor<5xbf16>
      }
      return %r#0, %r#1 : tensor<i32>, tensor<5xbf16>
    }"""
    import ml_dtypes

    x = np.array([1, -2, 0.5, np.nan, np.inf], ml_dtypes.bfloat16)
    expected = hilo.interpret(text, np.int32(3), x)
    for want, got in zip(expected, hilo.compile(text, options=QUICK)(np.int32(3), x), strict=True):
        assert want.tobytes() == got.tobytes()


def test_only_two_levels() -> None:
    with pytest.raises(Error, match=r"opt \(HILO_OPT\) must be 0 or 1, not 2"):
        Options(opt=2)
    assert Options.from_env({"HILO_OPT": "0"}).opt == 0
    assert QUICK.code_key() != Options().code_key()


def test_the_table_says_where_code_generation_goes(capsys: pytest.CaptureFixture[str]) -> None:
    hilo.compile(TEXT, options=Options(time=True, cache=False, codegen="llvm"))
    lines = {line.split()[0]: line for line in capsys.readouterr().err.splitlines()}
    assert "code" not in lines
    assert "2 kernels, 2 different" in lines["kernels"]
    assert "functions in" in lines["emit"]
    assert "KB of text" in lines["emit"]
    assert lines["parse"].endswith("modules by LLVM")
    assert lines["select"].endswith(" 0 modules from the cache")
    assert "KB of code" in lines["load"]


def test_equal_kernels_are_compiled_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"  %{i + 1} = stablehlo.dot_general %{i}, %w, contracting_dims = [1] x [0] : "
             "(tensor<20x20xf32>, tensor<20x20xf32>) -> tensor<20x20xf32>" for i in range(12)]  # fmt: skip
    text = "func.func @main(%0: tensor<20x20xf32>, %w: tensor<20x20xf32>) -> tensor<20x20xf32> {\n" + "\n".join(lines)
    hilo.compile(text + "\n  return %12 : tensor<20x20xf32>\n}", options=Options(time=True))
    assert "12 kernels, 1 different" in capsys.readouterr().err


@pytest.mark.skipif(Target.host().arch != "x86_64", reason="LLVM's quick ways are used on x86-64 alone")
@pytest.mark.parametrize(
    ("kind", "shape", "level"), [("add", "7x", 0), ("exponential", "", 0), ("add", "5000x", 1), ("tan", "1000x", 1)]
)
def test_programs_that_are_over_at_once_are_made_quickly(
    kind: str, shape: str, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[int] = []
    plain = cpu.compile

    def noted(text: str, target: Target, opt: int, *args: Any) -> bytes:
        levels.append(opt)
        return plain(text, target, opt, *args)

    monkeypatch.setattr(cpu, "compile", noted)
    t = f"tensor<{shape}f32>"
    operands = "%x, %x" if kind == "add" else "%x"
    text = f"""func.func @main(%x: {t}) -> {t} {{
      %r = "stablehlo.{kind}"({operands}) : ({", ".join([t] * operands.count("%"))}) -> {t}
      return %r : {t}
    }}"""
    hilo.compile(text, threads=1, options=Options(cache=False, codegen="llvm"))
    assert max(levels) == level
