"""Every stage of a compilation by its name: of programs, of executables, of those that come from the cache."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.options import Options
from hilo.stages import NAMES, OTHER_NAMES, STAGES, named

TEXT = """
module @rows {
  func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %x : tensor<4x8xf32>
    %n = stablehlo.negate %e : tensor<4x8xf32>
    %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %s : tensor<4xf32>
  }
  func.func @twice(%x: tensor<2xi32>) -> tensor<2xi32> {
    %y = stablehlo.add %x, %x : tensor<2xi32>
    return %y : tensor<2xi32>
  }
}
"""
HOLDS = {
    "stablehlo": "stablehlo.exponential",
    "hlo": "HloModule rows",
    "optimized": "hilo.fusion",
    "optimized_hlo": "kind=k",
    "optimized_hlo_dot": "digraph",
    "llvm": "define",
    "asm": "ret",
    "c": "int32_t",
    "header": "int32_t hilo_main(",
    "memory": "temporaries",
    "memory.svg": "<svg",
    "memory_before.svg": "<svg",
}


def test_the_table_is_complete() -> None:
    assert set(HOLDS) == {name for name, s in STAGES.items() if not s.binary}
    assert set(OTHER_NAMES.values()) <= set(STAGES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("stage", NAMES)
def test_stages_of_programs_and_executables(stage: str) -> None:
    shown = hilo.inspect(TEXT, stage)
    executable = hilo.compile(TEXT)
    assert hilo.inspect(executable, stage) == executable.inspect(stage)
    if STAGES[named(stage)].of != "code":  # code has addresses, or names, that follow the process
        assert executable.inspect(stage) == shown
    if stage == "object":
        assert isinstance(shown, bytes)
        assert shown.startswith(b"\x7fELF")
    elif isinstance(shown, bytes):
        x = np.arange(32, dtype=np.float32).reshape(4, 8) / 32
        (again,), (expected,) = hilo.interpret(shown, x), hilo.interpret(TEXT, x)
        assert np.allclose(again, expected)
        with pytest.raises(Error, match="is no text"):
            executable.text(stage)
    else:
        assert HOLDS[named(stage)] in shown
        assert executable.text(stage) == executable.inspect(stage)


def test_fusions_of_the_optimized_hlo_are_kernels() -> None:
    text = hilo.inspect(TEXT, "optimized_hlo")
    assert isinstance(text, str)
    assert text.count("fusion(") == 1
    assert "exponential(" in text.partition("ENTRY")[0]
    assert "exponential(" not in text.partition("ENTRY")[2]


def test_another_entry() -> None:
    for stage in ("hlo", "optimized_hlo", "dot", "optimized"):
        shown = hilo.inspect(TEXT, stage, entry="twice")
        assert isinstance(shown, str)
        assert "exponential" not in shown.partition("ENTRY")[2]
        assert "add" in shown
    assert hilo.parse(hilo.inspect(TEXT, "hlo", entry="twice"))["main"].param_types[0].shape == (2,)  # type: ignore
    with pytest.raises(Error, match="no function @thrice"):
        hilo.inspect(TEXT, "hlo", entry="thrice")


def test_source_stages_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from hilo import pipeline

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(pipeline, "compile_module", refuse)
    for name, stage in STAGES.items():
        if stage.of != "code":
            assert hilo.inspect(TEXT, name)
    monkeypatch.setattr(pipeline, "optimize", refuse)
    for name, stage in STAGES.items():
        if stage.of == "source":
            assert hilo.inspect(TEXT, name)


def test_executables_that_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))
    options = Options(cache=True)
    made = [hilo.compile(TEXT, options=options) for _ in range(2)]
    assert made[0].inspect("hlo_serialized") == made[1].inspect("hlo_serialized")
    assert made[1].text("dot").startswith("digraph")


def test_large_constants_are_left_out_on_demand() -> None:
    values = ", ".join(map(str, range(100)))
    text = f"""func.func @main(%x: tensor<100xi32>) -> tensor<100xi32> {{
      %c = stablehlo.constant dense<[{values}]> : tensor<100xi32>
      %y = stablehlo.add %x, %c : tensor<100xi32>
      return %y : tensor<100xi32>
    }}"""
    for name, stage in STAGES.items():
        if stage.of != "code" and name != "optimized_hlo_dot":
            whole, short = hilo.inspect(text, name), hilo.inspect(text, name, elide=10)
            assert len(short) < len(whole) - (90 if stage.binary else 200), name
    for name in ("hlo", "stablehlo", "hlo_serialized"):
        with pytest.raises(Error, match=r"left out|elided|\.\.\.|dense"):
            hilo.parse(hilo.inspect(text, name, elide=10))


def test_bound_arguments_are_in_the_optimized_program() -> None:
    e = hilo.compile(TEXT, constants={0: np.ones((4, 8), np.float32)})
    assert "parameter" in e.text("hlo").partition("ENTRY")[2]
    assert "parameter" not in e.text("optimized_hlo").partition("ENTRY")[2]


COMPUTED = """
func.func @main(%x: tensor<4xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %m = stablehlo.maximum %n, %one : tensor<1xi32>
  %k = stablehlo.multiply %m, %m : tensor<1xi32>
  %s = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %i = stablehlo.convert %t : (tensor<f32>) -> tensor<i32>
  %j = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
  %a = stablehlo.add %j, %k : tensor<1xi32>
  %r = stablehlo.dynamic_broadcast_in_dim %t, %a, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_programs_that_compute_sizes_are_several() -> None:
    assert str(hilo.inspect(COMPUTED, "dot")).count("digraph") > 1
    assert str(hilo.inspect(COMPUTED, "stablehlo")).count("func.func @main") == 1
    assert hilo.compile(COMPUTED).inspect("stablehlo") == hilo.inspect(COMPUTED, "stablehlo")
    with pytest.raises(Unsupported):
        hilo.inspect(COMPUTED, "optimized_hlo_serialized")


def test_the_picture_of_memory_is_svg() -> None:
    assert ElementTree.fromstring(str(hilo.inspect(TEXT, "memory-svg"))).tag.endswith("svg")


@pytest.mark.parametrize("stage", ["poetry", "", "fuse#9"])
def test_unknown_stages(stage: str) -> None:
    with pytest.raises(Error, match="there is no stage"):
        hilo.inspect(TEXT, stage)
    with pytest.raises(Error):
        hilo.compile(TEXT).inspect(stage)


def test_wrong_arguments() -> None:
    with pytest.raises(Error, match="stage should be"):
        hilo.inspect(TEXT, 3)  # type: ignore[arg-type]
    with pytest.raises(Error, match="elide should be"):
        hilo.inspect(TEXT, "hlo", elide="x")  # type: ignore[arg-type]
