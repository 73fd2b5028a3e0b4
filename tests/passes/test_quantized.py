"""Programs on quantized tensors: interpreted, and as the plain ops that native code runs."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.formats.mlir_text import print_module
from hilo.ir.dtypes import f16, f32, i4, i8, u8
from hilo.ir.quantized import any_quantized, parse, quantized
from hilo.ir.types import TensorType
from hilo.ops.quantized import dequantize, quantize
from hilo.passes.inline import inline
from hilo.passes.quantized import lower_quantized
from hilo.testing import compare

A = "!quant.uniform<i8:f32, 0.1:-30>"
B = "!quant.uniform<i8:f32, 0.25:3>"
W = "!quant.uniform<i8<-127:127>:f32, 0.5>"
AXIS = "!quant.uniform<i8:f32:1, {0.1:-30, 0.2, 0.4:7}>"
ROWS = "!quant.uniform<i8:f32:0, {0.1:-30, 0.2, 0.4:7}>"
BLOCKS = "!quant.uniform<i4:f32:{0:1, 1:2}, {{1.0:1, 2.0}, {3.0, 4.0:-2}}>"

REDUCE = f"""
  %1 = "stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 1>}}> ({{
    ^bb0(%x: tensor<{A}>, %y: tensor<{A}>):
      %s = "stablehlo.maximum"(%x, %y) : (tensor<{A}>, tensor<{A}>) -> tensor<{A}>
      "stablehlo.return"(%s) : (tensor<{A}>) -> ()
  }}) : (tensor<2x3x{A}>, tensor<{A}>) -> tensor<2x{A}>"""
LOOP = f"""
  %n = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4x{A}> cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.sine %x : tensor<4x{A}>
    stablehlo.return %j, %y : tensor<i32>, tensor<4x{A}>
  }}
  %1 = stablehlo.negate %r#1 : tensor<4x{A}>"""
PROGRAMS = {
    "unary": ([f"tensor<5x{A}>"], f"%1 = stablehlo.tanh %a : (tensor<5x{A}>) -> tensor<5x{B}>", f"tensor<5x{B}>"),
    "same": ([f"tensor<5x{A}>"] * 2, f"%1 = stablehlo.multiply %a, %b : tensor<5x{A}>", f"tensor<5x{A}>"),
    "mixed": ([f"tensor<5x{A}>", f"tensor<5x{B}>"],
              f"%1 = stablehlo.add %a, %b : (tensor<5x{A}>, tensor<5x{B}>) -> tensor<5x{B}>", f"tensor<5x{B}>"),
    "along an axis": ([f"tensor<2x3x{AXIS}>"] * 2,
                      f"%1 = stablehlo.add %a, %b : tensor<2x3x{AXIS}>", f"tensor<2x3x{AXIS}>"),
    "requantize": ([f"tensor<2x3x{AXIS}>"],
                   f"%1 = stablehlo.uniform_quantize %a : (tensor<2x3x{AXIS}>) -> tensor<2x3x{W}>", f"tensor<2x3x{W}>"),
    "blocks": (["tensor<2x4xf32>"],
               f"%0 = stablehlo.uniform_quantize %a : (tensor<2x4xf32>) -> tensor<2x4x{BLOCKS}>\n"
               f"%1 = stablehlo.uniform_dequantize %0 : (tensor<2x4x{BLOCKS}>) -> tensor<2x4xf32>", "tensor<2x4xf32>"),
    "compare": ([f"tensor<5x{A}>", f"tensor<5x{B}>"],
                f"%1 = stablehlo.compare LT, %a, %b : (tensor<5x{A}>, tensor<5x{B}>) -> tensor<5xi1>", "tensor<5xi1>"),
    "select": (["tensor<5xi1>", f"tensor<5x{A}>", f"tensor<5x{B}>"],
               f'%1 = "stablehlo.select"(%a, %b, %c) : (tensor<5xi1>, tensor<5x{A}>, tensor<5x{B}>) -> tensor<5x{W}>'
               .replace(W, A), f"tensor<5x{A}>"),
    "transpose": ([f"tensor<2x3x{AXIS}>"],
                  f"%1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3x{AXIS}>) -> tensor<3x2x{ROWS}>",
                  f"tensor<3x2x{ROWS}>"),
    "pad": ([f"tensor<3x{A}>", f"tensor<{A}>"],
            f"%1 = stablehlo.pad %a, %b, low = [1], high = [1], interior = [0] : "
            f"(tensor<3x{A}>, tensor<{A}>) -> tensor<5x{A}>", f"tensor<5x{A}>"),
    "dot": ([f"tensor<4x6x{A}>", f"tensor<6x3x{W}>"],
            f"%1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6x{A}>, tensor<6x3x{W}>) -> "
            "tensor<4x3x!quant.uniform<i32:f32, 0.05>>", "tensor<4x3x!quant.uniform<i32:f32, 0.05>>"),
    "hybrid dot": (["tensor<4x6xf32>", "tensor<6x3x!quant.uniform<i8:f32:1, {0.1, 0.2, 0.4}>>"],
                   "%1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x6xf32>, "
                   "tensor<6x3x!quant.uniform<i8:f32:1, {0.1, 0.2, 0.4}>>) -> tensor<4x3xf32>", "tensor<4x3xf32>"),
    "bits": (["tensor<5xi8>"],
             f"%0 = stablehlo.bitcast_convert %a : (tensor<5xi8>) -> tensor<5x{A}>\n"
             f"%1 = stablehlo.uniform_dequantize %0 : (tensor<5x{A}>) -> tensor<5xf32>", "tensor<5xf32>"),
    "iota": ([], f"%1 = stablehlo.iota dim = 0 : tensor<5x{B}>", f"tensor<5x{B}>"),
    "reduce": ([f"tensor<2x3x{A}>", f"tensor<{A}>"], REDUCE, f"tensor<2x{A}>"),
    "while": ([f"tensor<4x{A}>"], LOOP, f"tensor<4x{A}>"),
}  # fmt: skip


def module(name: str) -> hilo.Module:
    params, body, result = PROGRAMS[name]
    shown = ", ".join(f"%{v}: {t}" for v, t in zip("abc", params))
    return hilo.parse(f"func.func @main({shown}) -> {result} {{\n{body}\nreturn %1 : {result}\n}}")


def inputs(m: hilo.Module, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for p in m["main"].params:
        t = p.tensor
        if t.dtype.is_float:
            out.append((rng.standard_normal(t.shape) * 5).astype(t.dtype.np))
        elif t.dtype.kind == "b":
            out.append(rng.integers(0, 2, t.shape).astype(bool))
        else:
            out.append(np.asarray(rng.integers(-128, 128, t.shape)).astype(t.dtype.np))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted_and_native(name: str) -> None:
    m = module(name)
    executable = hilo.compile(m)
    for seed in range(3):
        arrays = inputs(m, seed)
        (want,) = hilo.interpret(m, *arrays)
        for got in (executable(*arrays), hilo.compile(m, constants=dict(enumerate(arrays)))()):
            ok = compare.identical(got[0], want) if "dot" not in name else compare.near(got[0], want, 1e-4)
            assert got[0].dtype == want.dtype
            assert ok.all(), compare.difference(got[0], want, ok)


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_round_trip_and_lowering(name: str) -> None:
    m = module(name)
    assert hilo.parse(print_module(m))["main"] == m["main"]
    plain = lower_quantized(inline(m, "main"))
    assert not any_quantized(o.type for o in plain.ops)
    assert lower_quantized(plain) is plain


def test_rounding_and_ends() -> None:
    t = TensorType(parse("!quant.uniform<i8<-100:100>:f32, 0.5:10>"), (9,))
    x = np.array([0.0, 0.25, 0.75, -0.25, 45.0, 45.5, -55.0, -1e9, np.inf], np.float32)
    assert quantize(x, t).tolist() == [10, 10, 12, 10, 100, 100, -100, -100, 100]  # ties to even
    assert dequantize(np.array([10, 100, -100], np.int8), TensorType(t.dtype, (3,))).tolist() == [0.0, 45.0, -55.0]
    assert quantize(np.array([np.nan], np.float32), TensorType(t.dtype, (1,))).tolist() == [0]
    wide = TensorType(parse("!quant.uniform<i8:f32, 1.0:-128>"), (1,))
    assert dequantize(np.array([127], np.int8), wide).tolist() == [255.0]  # the difference does not wrap


def test_types_are_interned_and_spelled() -> None:
    for text in (A, W, AXIS, BLOCKS, "!quant.uniform<u8:f16, 0.5:128>", "!quant.uniform<i4:bf16, 1.5e-05>"):
        t = parse(text)
        assert t.mlir == text.replace("<u8", "<u8")
        assert parse(t.mlir) is t
        assert parse(text.replace(", ", " ,")) is t
    assert parse("!quant.uniform<i8:f32, 1.000000e-01:-30>") is parse(A)
    assert quantized(u8, f16, [0.5], [128]) is parse("!quant.uniform<u8:f16, 0.5:128>")
    assert parse(BLOCKS).storage is i4
    assert parse(A).expressed is f32
    assert parse(A).storage is i8


@pytest.mark.parametrize(
    "text",
    [
        "!quant.uniform<i8:f32, -0.1>",
        "!quant.uniform<i8:f32, 0.1:200>",
        "!quant.uniform<i8:i32, 0.1>",
        "!quant.uniform<f32:f32, 0.1>",
        "!quant.uniform<i8<-129:3>:f32, 0.1>",
        "!quant.uniform<i8:f32:0, 0.1>",
        "!quant.uniform<i8:f32, {0.1}>",
        "!quant.uniform<i8:f32:0, {0.1, }>",
        "!quant.uniform<i8:f32:0, {0.1",
        "!quant.uniform<i8:f32, 0.1:1:2>",
        "!quant.uniform<i8:f32:{0:1}, {{0.1}, {0.1, 0.2}}>",
        "!quant.uniform<i8:f32, 1.0e400>",
        "!quant.uniform<i8:f32:-1, {0.1}>",
        "!quant.any<i8>",
    ],
)
def test_types_that_are_wrong(text: str) -> None:
    with pytest.raises(Error):
        parse(text)


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        (f"stablehlo.and %a, %a : tensor<2x3x{A}>", "I1"),
        (f"stablehlo.abs %a : (tensor<2x3x{A}>) -> tensor<2x3xf32>", "C1"),
        (f"stablehlo.abs %a : (tensor<2x3x{A}>) -> tensor<2x3x!quant.uniform<i32:f32, 0.1>>", "C1"),
        (f"stablehlo.uniform_dequantize %a : (tensor<2x3x{A}>) -> tensor<2x3xf64>", "C2"),
        (f"stablehlo.add %a, %a : (tensor<2x3x{A}>, tensor<2x3x{A}>) -> tensor<2x3x{AXIS}>", "C5"),
        (f"stablehlo.reshape %a : (tensor<2x3x{A}>) -> tensor<6x{B}>", "C1"),
        (f"stablehlo.add %a, %a : (tensor<2x3x{A}>, tensor<2x3x{A}>) -> tensor<2x4x{A}>", "C1"),
        (f"stablehlo.uniform_quantize %a : (tensor<2x3x{A}>) -> tensor<2x3xf32>", "O1"),
    ],
)
def test_ops_that_are_wrong(op: str, rule: str) -> None:
    with pytest.raises(Error, match=rf"\[{rule}\]"):
        hilo.parse(f"func.func @main(%a: tensor<2x3x{A}>) {{\n%0 = {op}\nreturn\n}}")


def test_scales_must_fit_the_shape() -> None:
    with pytest.raises(Error, match="C13"):
        hilo.parse(f"func.func @main(%a: tensor<2x4x{AXIS}>) {{\nreturn\n}}")
    with pytest.raises(Error, match="C12"):
        hilo.parse(f"func.func @main(%a: tensor<3x{AXIS}>) {{\nreturn\n}}")


@pytest.mark.parametrize(("q", "rest"), [(A, ""), (AXIS, "x3")])
def test_sizes_known_at_run_time(q: str, rest: str) -> None:
    t, s = f"tensor<?{rest}xf32>", f"tensor<?{rest}x{q}>"
    m = hilo.parse(
        f"func.func @main(%a: {t}) -> {t} {{\n"
        f"%0 = stablehlo.uniform_quantize %a : ({t}) -> {s}\n"
        f"%1 = stablehlo.add %0, %0 : ({s}, {s}) -> {s}\n"
        f"%2 = stablehlo.uniform_dequantize %1 : ({s}) -> {t}\nreturn %2 : {t}\n}}"
    )
    executable = hilo.compile(m)
    for n in (1, 4, 9):
        x = np.random.default_rng(n).standard_normal((n, 3) if rest else (n,)).astype(np.float32)
        (got,), (want,) = executable(x), hilo.interpret(m, x)
        assert compare.identical(got, want).all()


def test_a_process_that_nobody_sends_to_gets_quantized_zeros():
    """Those are zero points, interpreted and in native code."""
    text = f"""
    func.func @main(%a: tensor<2x{A}>, %b: tensor<2x{B}>)
        -> (tensor<2x{A}>, tensor<2x{A}>, tensor<2x{B}>, tensor<2x{A}>) {{
      %0 = "stablehlo.collective_permute"(%a) {{source_target_pairs = dense<> : tensor<0x2xi64>}}
          : (tensor<2x{A}>) -> tensor<2x{A}>
      %1:2 = "stablehlo.collective_broadcast"(%a, %b) {{replica_groups = dense<[[1]]> : tensor<1x1xi64>}}
          : (tensor<2x{A}>, tensor<2x{B}>) -> (tensor<2x{A}>, tensor<2x{B}>)
      %2 = "stablehlo.collective_permute"(%a) {{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}}
          : (tensor<2x{A}>) -> tensor<2x{A}>
      return %0, %1#0, %1#1, %2 : tensor<2x{A}>, tensor<2x{A}>, tensor<2x{B}>, tensor<2x{A}>
    }}"""
    x = np.array([127, -128], np.int8)
    for run in (lambda *xs: hilo.interpret(text, *xs), hilo.compile(text)):
        assert [r.tolist() for r in run(x, x)] == [[-30, -30], [-30, -30], [3, 3], [127, -128]]
