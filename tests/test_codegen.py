"""Who makes the code of which function: hilo's own generator, or LLVM."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import hilo
from hilo import codegen
from hilo.backend import x86
from hilo.backend.target import Target
from hilo.codegen import Code
from hilo.errors import Error
from hilo.loop.nodes import Func
from hilo.options import Options

OWN = Options(codegen="auto", cache=False)
LLVM = Options(codegen="llvm", cache=False)
HOST = Target.host()
pytestmark = pytest.mark.skipif(not (HOST.has_masks and HOST.arch == "x86_64"), reason="no machine of the generator's")

TEXT = """func.func @main(%x: tensor<40x30xf32>, %y: tensor<30x50xf32>) -> (tensor<40x30xf32>, tensor<40x50xf32>) {
  %0 = stablehlo.exponential %x : tensor<40x30xf32>
  %1 = stablehlo.dot_general %0, %y, contracting_dims = [1] x [0]
      : (tensor<40x30xf32>, tensor<30x50xf32>) -> tensor<40x50xf32>
  return %0, %1 : tensor<40x30xf32>, tensor<40x50xf32>
}"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Code]:
    """The code of all programs that are compiled."""
    found: list[Code] = []

    def noted(*args: object, **kwargs: object) -> Code:
        found.append(Code(*args, **kwargs))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(codegen, "Code", noted)
    return found


def names(funcs: list[Func]) -> set[str]:
    return {f.name for f in funcs}


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in ((40, 30), (30, 50))]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_all_by_one_or_the_other(made: list[Code]) -> None:
    own, llvm = (hilo.compile(TEXT, options=o) for o in (OWN, LLVM))
    assert "entry" in names(made[0].own)
    assert not made[0].groups
    assert len(made[0].objects) == 1
    assert not made[1].own
    assert "entry" in names(made[1].groups[-1])
    assert same(own(*arrays()), llvm(*arrays()))


@pytest.mark.parametrize("refused", ["entry", "exponential", "dot_general"])
def test_functions_of_both_call_each_other(
    refused: str, made: list[Code], monkeypatch: pytest.MonkeyPatch
) -> None:
    covers: Callable[[Func, Target], bool] = x86.covers
    monkeypatch.setattr(x86, "covers", lambda f, target: refused not in f.name and covers(f, target))
    mixed = hilo.compile(TEXT, options=OWN)
    assert all(refused in f.name for g in made[0].groups for f in g)
    assert made[0].groups
    assert made[0].own
    assert same(mixed(*arrays()), hilo.compile(TEXT, options=LLVM)(*arrays()))
    for form, word in (("llvm", "define"), ("asm", "ret")):
        text = mixed.text(form)
        assert all(name in text for name in ("entry", "k0_exponential", "k1_dot_general"))
        assert word in text


@pytest.mark.parametrize("error", [AssertionError, OverflowError, Error])
def test_what_the_generator_fails_at_is_llvms(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, made: list[Code]
) -> None:
    def fails(*_: object) -> bytes:
        raise error("on purpose")

    monkeypatch.setattr(x86, "compile", fails)
    with pytest.warns(RuntimeWarning, match="generator failed, LLVM .* on purpose"):
        own = hilo.compile(TEXT, options=OWN)
    assert (len(made[0].own), bool(made[0].groups)) == (0, True)
    assert same(own(*arrays()), hilo.compile(TEXT, options=LLVM)(*arrays()))


def test_the_table_says_who_made_what(capsys: pytest.CaptureFixture[str]) -> None:
    hilo.compile(TEXT, options=OWN.replace(time=True))
    lines = {line.split()[0]: line for line in capsys.readouterr().err.splitlines()}
    assert "functions by hilo" in lines["code"]
    assert "KB of code" in lines["load"]
    assert not lines.keys() & {"emit", "parse", "select", "cache"}


def test_run_time_sizes_have_two_symbols(made: list[Code]) -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.tanh %x : tensor<?xf32>
      return %y : tensor<?xf32>
    }"""
    f = hilo.compile(text, options=OWN)
    assert names(made[0].own) >= {"entry", "shapes"}
    x = np.linspace(-3, 3, 101, dtype=np.float32)
    assert same(f(x), hilo.compile(text, options=LLVM)(x))


def test_other_machines_are_llvms(made: list[Code]) -> None:
    for target in ("x86-avx2", "x86-sse2"):
        hilo.compile(TEXT, options=OWN, target=target)
    hilo.compile(TEXT, options=OWN.replace(opt=0))
    assert not any(c.own for c in made)
    hilo.compile(TEXT, options=OWN, target="x86-avx512")
    assert made[-1].own


def test_what_becomes_one_with_llvm_ir_is_llvms(made: list[Code]) -> None:
    module = """define i32 @twice(ptr %call) {
      ret i32 0
    }"""
    hilo.register_custom_call("test_codegen.nothing", module, convention="llvm")
    text = """func.func @main(%x: tensor<40x30xf32>) -> (tensor<40x30xf32>, tensor<4xf32>) {
      %0 = stablehlo.exponential %x : tensor<40x30xf32>
      %1 = stablehlo.custom_call @test_codegen.nothing(%0) {has_side_effect = true}
          : (tensor<40x30xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<40x30xf32>, tensor<4xf32>
    }"""
    f = hilo.compile(text, options=OWN)
    assert names(made[0].groups[-1]) == {"entry"}
    assert names(made[0].own) == {"k0_exponential"}
    x = arrays()[0]
    np.testing.assert_allclose(f(x)[0], np.exp(x), rtol=1e-6)


def test_a_first_compilation_loads_no_llvm() -> None:
    script = f"""
import sys, hilo
from hilo.options import Options
hilo.compile({TEXT!r}, options=Options(codegen="auto", cache=False))
print("libllvmlite" in open("/proc/self/maps").read(), "llvmlite" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
