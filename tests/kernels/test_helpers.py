"""Functions that kernels call instead of holding their code once more: the same bits, on every target, and in C."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from kernel_runs import Kernel

import hilo
from hilo.backend import llvm
from hilo.backend.target import Target
from hilo.ir.dtypes import DType, c64, f32, f64
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.kernels import lower
from hilo.loop import interpret, math
from hilo.loop.builder import F32, PTR, Builder, Func
from hilo.loop.element import Elem
from hilo.loop.helpers import NODES, called, sparing, with_helpers
from hilo.ops.fusion import fusion

MANY = 40
TARGETS = ("x86-avx512", "x86-avx2", "x86-sse2", "scalar")


def chain(name: str, count: int, dtype: DType, n: int = 37) -> Op:
    """`count` times the op `name`, one on the other, as one kernel."""
    t = TensorType(dtype, (n,))

    def body(x: Op) -> Op:
        for _ in range(count):
            x = lookup(name)(x)
        return x

    return fusion(parameter(0, t), body=region([t], body), kind="loop")


def numbers(dtype: DType, n: int = 37) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = rng.normal(size=n) * 2.0 ** rng.integers(-6, 6, n)
    x[:4] = 1e30, -3e5, np.inf, 0.0
    return (x + 1j * rng.normal(size=n)).astype(dtype.np) if dtype.is_complex else x.astype(dtype.np)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype"), [
    ("stablehlo.sine", f32), ("stablehlo.cosine", f64), ("stablehlo.tanh", f32), ("stablehlo.tan", f32),
    ("stablehlo.exponential", c64), ("stablehlo.tanh", c64),
])  # fmt: skip
def test_called_or_written_out_the_bits_are_the_same(name, dtype, target, monkeypatch):
    many = Kernel(chain(name, MANY, dtype), Target.named(target))
    assert many.lowered.phases[0].helpers
    x = numbers(dtype)
    (got,) = many(x)
    once = Kernel(chain(name, 1, dtype), Target.named(target))
    for _ in range(MANY):
        (x,) = once(x)
    np.testing.assert_array_equal(got, x)
    monkeypatch.setattr("hilo.loop.helpers.NODES", 10**9)
    monkeypatch.setattr("hilo.loop.helpers.ALL_NODES", 10**9)
    (written,) = Kernel(chain(name, MANY, dtype), Target.named(target))(numbers(dtype))
    np.testing.assert_array_equal(got, written)


def text_of(name: str, count: int, dtype: DType) -> str:
    (phase,) = lower(chain(name, count, dtype), Target.named("x86-avx512")).phases
    return llvm.emit([phase.func], Target.named("x86-avx512"))


def test_few_uses_are_written_out():
    for name in ("stablehlo.tanh", "stablehlo.exponential", "stablehlo.log", "stablehlo.logistic"):
        assert "@exps" not in text_of(name, 4, f32)
    text = text_of("stablehlo.sine", 4, f32)
    assert "call <16 x float> @trig_sin" not in text
    assert "call void @trig_far" in text  # for huge arguments, which there hardly ever are


def test_many_uses_are_calls():
    few, many = (text_of("stablehlo.sine", n, f32) for n in (20, 200))
    assert many.count("\n") - few.count("\n") < 2 * 180 * 2  # of two bodies, a line for each
    assert many.count("call <16 x float> @trig_sin_f32x16") > 2 * 180
    assert "@trig_sin" not in text_of("stablehlo.sqrt", 600, f32)  # one instruction is no function


def test_many_functions_are_calls_too():
    """Each is written out a few times, all together not."""
    names = ("sine", "cosine", "tan", "tanh", "log", "logistic", "cbrt", "log_plus_one", "exponential_minus_one")
    t = TensorType(f32, (32,))

    def body(x: Op) -> Op:
        for i in range(45):
            x = lookup(f"stablehlo.{names[i % len(names)]}")(x)
        return x

    op = fusion(parameter(0, t), body=region([t], body), kind="loop")
    (phase,) = lower(op, Target.named("x86-avx512")).phases
    assert llvm.emit([phase.func], Target.named("x86-avx512")).count("\n") < 1600
    assert len(phase.helpers) >= 8


@pytest.mark.parametrize(("name", "dtype"), [("stablehlo.sine", f32), ("stablehlo.exponential", c64)])
def test_in_c(name, dtype, tmp_path: Path):
    compile_c = import_module("backend_runs").compile_c
    target = Target.named("scalar")
    kernel = Kernel(chain(name, MANY, dtype), target)
    (phase,) = kernel.lowered.phases
    funcs = with_helpers([phase.func])
    assert len(funcs) > 1
    x = numbers(dtype)
    out = np.empty_like(x)
    bufs = np.array([x.ctypes.data, out.ctypes.data], np.uint64)
    compile_c(funcs, tmp_path)(phase.func.name)(bufs.ctypes.data, 0, phase.units)
    np.testing.assert_array_equal(out, kernel(x)[0])


def test_what_must_stand_alone_calls_nothing():
    func = Func("alone", [("x", F32)], F32)
    b = Builder(func)
    x = func.params[0]
    for _ in range(NODES):
        x = math.sine(b, Elem(f32, x)).re
    b.ret(x)
    assert func.helpers is None
    assert "call float @" not in llvm.emit([func], Target.named("scalar")).replace("@llvm.", "")


def test_equal_calls_are_one_and_several_values_come_by_memory():
    func = Func("f", [("x", F32), ("out", PTR)])
    func.helpers = {}
    b = Builder(func)
    x, out = func.params
    first, second = (called(b, "double", lambda b, x: [b.fadd(x, x)], [x])[0] for _ in range(2))
    assert first is second
    low, high = called(b, "parts", lambda b, x: [b.floor(x), b.ceil(x)], [first], 2)
    for i, v in enumerate((first, low, high)):
        b.store(b.gep(out, 4 * i), v)
    b.ret()
    found = np.zeros(3, np.float32)
    interpret.run(func, np.float32(1.3), found, funcs=with_helpers([func])[1:])
    np.testing.assert_array_equal(found, np.array([2.6, 2.0, 3.0], np.float32))


def test_small_code_is_never_called():
    func = Func("f", [("x", F32)], F32)
    func.helpers = {}
    b = Builder(func)
    x = func.params[0]
    for _ in range(2 * NODES):
        (x,) = sparing(b, "next", lambda b, x: [b.fadd(x, 1.0)], [x])
    assert not func.helpers


def test_kernels_with_helpers_inside_of_loops():
    """Small kernels of a loop become part of the entry, which calls their helpers."""
    text = f"""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %n = stablehlo.constant dense<3> : tensor<i32>
      %r:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<3xf32>
        cond {{
          %z = stablehlo.constant dense<0> : tensor<i32>
          %c = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{
          %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.subtract %i, %one : tensor<i32>
          %w0 = stablehlo.sine %v : tensor<3xf32>
          {" ".join(f"%w{k} = stablehlo.cosine %w{k - 1} : tensor<3xf32>" for k in range(1, 12))}
          stablehlo.return %j, %w11 : tensor<i32>, tensor<3xf32>
        }}
      return %r#1 : tensor<3xf32>
    }}"""
    x = np.array([1e9, 0.5, -7.0], np.float32)
    (got,) = hilo.compile(text)(x)
    (want,) = hilo.interpret(hilo.parse(text), x)
    np.testing.assert_allclose(got, want, rtol=1e-5)
