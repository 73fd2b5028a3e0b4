# ruff: noqa: E501  (programs are quoted as they are printed)
"""The syntax of every op: the pretty form is read and written back as it was, and the generic form reads as the same."""

from __future__ import annotations

import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats.mlir_text import parse, print_function, print_module
from hilo.formats.mlir_text.forms import CHLO_FORMS, STABLEHLO_FORMS
from hilo.formats.mlir_text.names import CHLO, STABLEHLO
from hilo.formats.mlir_text.pretty import PRETTY
from hilo.formats.mlir_text.schema import REGIONS

F, F23, F32, F234 = "tensor<f32>", "tensor<2x3xf32>", "tensor<3x2xf32>", "tensor<2x3x4xf32>"
I, I1, C23, U2 = "tensor<i32>", "tensor<2x3xi1>", "tensor<2x3xcomplex<f32>>", "tensor<2xui64>"
DOT = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
BATCH_DOT = ("#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
             "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>")  # fmt: skip
ALGORITHM = ("<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, "
             "rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>")  # fmt: skip
TOLERANCE = "#stablehlo.result_accuracy<atol = 1.000000e-03, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"

# (parameter types, the op after `%0 = ` or before the first result, result types, generic form or "")
CASES: list[tuple[list[str], str, list[str], str]] = [
    ([F23], f"stablehlo.abs %arg0 : {F23}", [F23], f'"stablehlo.abs"(%arg0) : ({F23}) -> {F23}'),
    ([C23], f"stablehlo.abs %arg0 : ({C23}) -> {F23}", [F23], f'"stablehlo.abs"(%arg0) : ({C23}) -> {F23}'),
    ([F23, F23], f"stablehlo.add %arg0, %arg1 : {F23}", [F23], f'"stablehlo.add"(%arg0, %arg1) : ({F23}, {F23}) -> {F23}'),
    ([F23], f"stablehlo.add %arg0, %arg0 {{mhlo.sharding = \"{{replicated}}\"}} : {F23}", [F23], ""),
    ([F23], f"stablehlo.exponential %arg0 {{result_accuracy = {TOLERANCE}}} : {F23}", [F23],
     f'"stablehlo.exponential"(%arg0) <{{result_accuracy = {TOLERANCE}}}> : ({F23}) -> {F23}'),
    ([F23], f"stablehlo.is_finite %arg0 : ({F23}) -> {I1}", [I1], ""),
    ([C23], f"stablehlo.real %arg0 : ({C23}) -> {F23}", [F23], ""),
    ([F23, F23], f"stablehlo.complex %arg0, %arg1 : {C23}", [C23],
     f'"stablehlo.complex"(%arg0, %arg1) : ({F23}, {F23}) -> {C23}'),
    ([F23, F23], f"stablehlo.compare LT, %arg0, %arg1, FLOAT : ({F23}, {F23}) -> {I1}", [I1],
     f'"stablehlo.compare"(%arg0, %arg1) <{{compare_type = #stablehlo<comparison_type FLOAT>, '
     f'comparison_direction = #stablehlo<comparison_direction LT>}}> : ({F23}, {F23}) -> {I1}'),
    ([F23, F23], f"stablehlo.compare NE, %arg0, %arg1 : ({F23}, {F23}) -> {I1}", [I1], ""),
    ([I1, F23, F23], f"stablehlo.select %arg0, %arg1, %arg2 : {I1}, {F23}", [F23],
     f'"stablehlo.select"(%arg0, %arg1, %arg2) : ({I1}, {F23}, {F23}) -> {F23}'),
    ([F, F23], f"stablehlo.clamp %arg0, %arg1, %arg0 : ({F}, {F23}, {F}) -> {F23}", [F23], ""),
    ([F23], f"stablehlo.clamp %arg0, %arg0, %arg0 : {F23}", [F23], ""),
    ([], "stablehlo.iota dim = 1 : tensor<2x3xi32>", ["tensor<2x3xi32>"],
     '"stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>'),
    ([F23], f"stablehlo.convert %arg0 : ({F23}) -> tensor<2x3xi8>", ["tensor<2x3xi8>"], ""),
    ([F23], f"stablehlo.bitcast_convert %arg0 : ({F23}) -> tensor<2x3xi32>", ["tensor<2x3xi32>"], ""),
    ([F23], f"stablehlo.reshape %arg0 : ({F23}) -> tensor<6xf32>", ["tensor<6xf32>"], ""),
    ([F23], f"stablehlo.transpose %arg0, dims = [1, 0] : ({F23}) -> {F32}", [F32],
     f'"stablehlo.transpose"(%arg0) <{{permutation = array<i64: 1, 0>}}> : ({F23}) -> {F32}'),
    ([F], f"stablehlo.transpose %arg0, dims = [] : ({F}) -> {F}", [F],
     f'"stablehlo.transpose"(%arg0) {{permutation = dense<> : tensor<0xi64>}} : ({F}) -> {F}'),
    ([F], f"stablehlo.broadcast_in_dim %arg0, dims = [] : ({F}) -> {F23}", [F23],
     f'"stablehlo.broadcast_in_dim"(%arg0) <{{broadcast_dimensions = array<i64>}}> : ({F}) -> {F23}'),
    ([F], f"stablehlo.broadcast %arg0, sizes = [2, 3] : ({F}) -> {F23}", [F23], ""),
    ([F23], f"stablehlo.reverse %arg0, dims = [0, 1] : {F23}", [F23], ""),
    ([F23, F23], f"stablehlo.concatenate %arg0, %arg1, dim = 0 : ({F23}, {F23}) -> tensor<4x3xf32>", ["tensor<4x3xf32>"],
     f'"stablehlo.concatenate"(%arg0, %arg1) <{{dimension = 0 : i64}}> : ({F23}, {F23}) -> tensor<4x3xf32>'),
    ([F23], f"stablehlo.slice %arg0 [0:2:2, 1:3] : ({F23}) -> tensor<1x2xf32>", ["tensor<1x2xf32>"],
     f'"stablehlo.slice"(%arg0) <{{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 1>, '
     f"strides = array<i64: 2, 1>}}> : ({F23}) -> tensor<1x2xf32>"),
    ([F], f"stablehlo.slice %arg0 [] : ({F}) -> {F}", [F], ""),
    ([F23, I], f"stablehlo.dynamic_slice %arg0, %arg1, %arg1, sizes = [1, 2] : ({F23}, {I}, {I}) -> tensor<1x2xf32>",
     ["tensor<1x2xf32>"], ""),
    ([F], f"stablehlo.dynamic_slice %arg0, sizes = [] : ({F}) -> {F}", [F], ""),
    ([F23, F23, I], f"stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg2 : ({F23}, {F23}, {I}, {I}) -> {F23}",
     [F23], ""),
    ([F23, F], f"stablehlo.pad %arg0, %arg1, low = [0, -1], high = [1, 0], interior = [0, 1] : ({F23}, {F}) -> tensor<3x4xf32>",
     ["tensor<3x4xf32>"], ""),
    ([F23, F32], f"stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : ({F23}, {F32}) -> tensor<2x2xf32>",
     ["tensor<2x2xf32>"],
     f'"stablehlo.dot_general"(%arg0, %arg1) <{{dot_dimension_numbers = {DOT}}}> : ({F23}, {F32}) -> tensor<2x2xf32>'),
    ([F234, "tensor<2x4x5xf32>"], "stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], "
     f"contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : ({F234}, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>",
     ["tensor<2x3x5xf32>"],
     f'"stablehlo.dot_general"(%arg0, %arg1) <{{dot_dimension_numbers = {BATCH_DOT}, precision_config = '
     f"[#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}}> : ({F234}, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>"),
    (["tensor<2x3xbf16>", "tensor<3x2xbf16>"], "stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], "
     f"algorithm = {ALGORITHM} : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>", ["tensor<2x2xf32>"],
     f'"stablehlo.dot_general"(%arg0, %arg1) <{{algorithm = #stablehlo.dot_algorithm{ALGORITHM}, dot_dimension_numbers = '
     f"{DOT}}}> : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>"),
    ([F23, F32], f"stablehlo.dot %arg0, %arg1 : ({F23}, {F32}) -> tensor<2x2xf32>", ["tensor<2x2xf32>"], ""),
    ([F23, F32], f"stablehlo.dot %arg0, %arg1, precision = [HIGH, HIGH] : ({F23}, {F32}) -> tensor<2x2xf32>",
     ["tensor<2x2xf32>"], ""),
    (["tensor<1x8x8x3xf32>", "tensor<3x3x3x4xf32>"],
     "stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {stride = [2, 1], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 1], reverse = [false, true]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
     "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : "
     "(tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>", ["tensor<1x4x8x4xf32>"],
     '"stablehlo.convolution"(%arg0, %arg1) <{batch_group_count = 1 : i64, dimension_numbers = '
     "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
     "padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, "
     "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, "
     "window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 1>}> : "
     "(tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>"),
    ([C23], f"stablehlo.fft %arg0, type = IFFT, length = [3] : ({C23}) -> {C23}", [C23], ""),
    (["tensor<3x3xf32>"], "stablehlo.cholesky %arg0, lower = true : tensor<3x3xf32>", ["tensor<3x3xf32>"],
     '"stablehlo.cholesky"(%arg0) <{lower = true}> : (tensor<3x3xf32>) -> tensor<3x3xf32>'),
    ([U2], f"stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : ({U2}) -> ({U2}, tensor<4xui32>)",
     [U2, "tensor<4xui32>"], ""),
    ([F, F, "tensor<1xi64>"], f"stablehlo.rng %arg0, %arg1, %arg2, distribution = UNIFORM : ({F}, {F}, tensor<1xi64>) -> "
     "tensor<3xf32>", ["tensor<3xf32>"], ""),
    ([F23], f"stablehlo.reduce_precision %arg0, format = e5m10 : {F23}", [F23],
     f'"stablehlo.reduce_precision"(%arg0) <{{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}}> : ({F23}) -> {F23}'),
    ([F23, I], f"stablehlo.tuple %arg0, %arg1 : tuple<{F23}, {I}>", [f"tuple<{F23}, {I}>"],
     f'"stablehlo.tuple"(%arg0, %arg1) : ({F23}, {I}) -> tuple<{F23}, {I}>'),
    ([f"tuple<{F23}, {I}>"], f"stablehlo.get_tuple_element %arg0[1] : (tuple<{F23}, {I}>) -> {I}", [I],
     f'"stablehlo.get_tuple_element"(%arg0) <{{index = 1 : i32}}> : (tuple<{F23}, {I}>) -> {I}'),
    ([], "stablehlo.create_token : !stablehlo.token", ["!stablehlo.token"], ""),
    (["!stablehlo.token"], "stablehlo.after_all %arg0, %arg0 : !stablehlo.token", ["!stablehlo.token"], ""),
    ([F23, I], f"stablehlo.optimization_barrier %arg0, %arg1 : {F23}, {I}", [F23, I],
     f'"stablehlo.optimization_barrier"(%arg0, %arg1) : ({F23}, {I}) -> ({F23}, {I})'),
    ([], "stablehlo.partition_id : tensor<ui32>", ["tensor<ui32>"], ""),
    (["tensor<?x3xf32>"], "stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>", [I], ""),
    ([F23, I], f"stablehlo.set_dimension_size %arg0, %arg1, dim = 1 : ({F23}, {I}) -> "
     "tensor<2x?xf32, #stablehlo.bounds<?, 3>>", ["tensor<2x?xf32, #stablehlo.bounds<?, 3>>"], ""),
    ([F, "tensor<2xi64>"], f"stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [] : ({F}, tensor<2xi64>) -> tensor<?x?xf32>",
     ["tensor<?x?xf32>"], ""),
    (["tensor<2xi64>"], "stablehlo.dynamic_iota %arg0, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32>", ["tensor<?x?xi32>"], ""),
    ([F23, "tensor<1xindex>"], f"stablehlo.dynamic_reshape %arg0, %arg1 : ({F23}, tensor<1xindex>) -> tensor<?xf32>",
     ["tensor<?xf32>"], ""),
    ([F23, I], f"stablehlo.torch_index_select %arg0, %arg1, dim = 1, batch_dims = 0 : ({F23}, {I}) -> tensor<2xf32>",
     ["tensor<2xf32>"], ""),
    ([F23, F32], f'stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : ({F23}, {F32}) -> tensor<2x2xf32>',
     ["tensor<2x2xf32>"], ""),
    ([F23], f"stablehlo.custom_call @target(%arg0) : ({F23}) -> {F23}", [F23],
     f'"stablehlo.custom_call"(%arg0) <{{call_target_name = "target"}}> : ({F23}) -> {F23}'),
    ([F23], 'stablehlo.custom_call @"a b"(%arg0) {api_version = 4 : i32, backend_config = {n = 2 : i64, t = "x", f = 1.5 : f32}, '
     f"has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = []}} : ({F23}) -> ()", [],
     ""),
    ([F23], f"stablehlo.uniform_quantize %arg0 : ({F23}) -> tensor<2x3x!quant.uniform<i8:f32, 0.5:-128>>",
     ["tensor<2x3x!quant.uniform<i8:f32, 0.5:-128>>"], ""),
    ([F23], f"chlo.erf %arg0 : {F23} -> {F23}", [F23], f'"chlo.erf"(%arg0) : ({F23}) -> {F23}'),
    ([F23, F23], f"chlo.next_after %arg0, %arg1 : {F23}, {F23} -> {F23}", [F23], ""),
    ([F23, F], f"chlo.broadcast_add %arg0, %arg1 : ({F23}, {F}) -> {F23}", [F23], ""),
    ([F23], f"chlo.top_k(%arg0, k = 2) : {F23} -> (tensor<2x2xf32>, tensor<2x2xi32>)", ["tensor<2x2xf32>", "tensor<2x2xi32>"],
     f'"chlo.top_k"(%arg0) <{{k = 2 : i64}}> : ({F23}) -> (tensor<2x2xf32>, tensor<2x2xi32>)'),
    (["tensor<3x3xf32>", "tensor<3x1xf32>"],
     '"stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = '
     "#stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>",
     ["tensor<3x1xf32>"], ""),
    (["tensor<2x3xf32>", "tensor<3xf32>"],
     '"stablehlo.batch_norm_inference"(%arg0, %arg1, %arg1, %arg1, %arg1) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : '
     "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>", [F23], ""),
    (["tensor<5x4xf32>", "tensor<2x1xi32>"],
     '"stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], '
     "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 4>}> : "
     "(tensor<5x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>", ["tensor<2x4xf32>"], ""),
    ([F23], '"stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, '
     "type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : "
     f"({F23}) -> tensor<2x6xf32>", ["tensor<2x6xf32>"], ""),
    ([F23], '"stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : '
     f"({F23}) -> {F23}", [F23], ""),
]  # fmt: skip


def function(params: list[str], op: str, results: list[str]) -> str:
    shown = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(params))
    names = [f"%0#{i}" for i in range(len(results))] if len(results) > 1 else ["%0"] * len(results)
    left = f"%0:{len(results)} = " if len(results) > 1 else "%0 = " if results else ""
    arrow = "" if not results else f" -> {results[0]}" if len(results) == 1 else f" -> ({', '.join(results)})"
    back = f" {', '.join(names)} : {', '.join(results)}" if results else ""
    return f"func.func @main({shown}){arrow} {{\n  {left}{op}\n  return{back}\n}}\n"


@pytest.mark.usefixtures("every_op")
@pytest.mark.parametrize(("params", "op", "results", "generic"), CASES, ids=[c[1][:45] for c in CASES])
def test_form(params: list[str], op: str, results: list[str], generic: str) -> None:
    text = function(params, op, results)
    f = parse(text)["main"]
    assert print_function(f) == text
    if generic:
        assert parse(function(params, generic, results))["main"] == f


CONSTANTS = [
    ("dense<1.000000e+00>", "tensor<2x3xf32>"), ("dense<[1, -2]>", "tensor<2xi8>"), ("dense<>", "tensor<0x3xf32>"),
    ("dense<[[true, false], [false, false]]>", "tensor<2x2xi1>"), ("dense<0x7FC00000>", "tensor<f32>"),
    ("dense<[0xFF80, 0x7FC1]>", "tensor<2xbf16>"), ("dense<(1.000000e+00,-2.500000e+00)>", "tensor<complex<f64>>"),
    ("dense<[(0.000000e+00,-0.000000e+00), (1.000000e+00,0xFFF0000000000000)]>", "tensor<2xcomplex<f64>>"),
    ("dense<[-8, 7]>", "tensor<2xi4>"), ("dense<[0, 15]>", "tensor<2xui4>"), ("dense<18446744073709551615>", "tensor<ui64>"),
    ("dense<-9223372036854775808>", "tensor<1x1xi64>"), ("dense<1.000000e-01>", "tensor<f64>"), ("dense<2.000000e+00>", "tensor<f8E4M3FN>"),
    ("dense<1.000000e-05>", "tensor<f32>"), ("dense<1.1754944e-38>", "tensor<f32>"), ("dense<0x7F>", "tensor<f8E4M3FN>"),
]  # fmt: skip


@pytest.mark.parametrize(("literal", "t"), CONSTANTS)
def test_constant(literal: str, t: str) -> None:
    text = function([], f"stablehlo.constant {literal} : {t}", [t])
    f = parse(text)["main"]
    printed = print_function(f)
    assert parse(printed)["main"] == f
    assert printed == text
    assert parse(function([], f'"stablehlo.constant"() <{{value = {literal} : {t}}}> : () -> {t}', [t]))["main"] == f


def test_every_op_of_the_specification_can_be_written() -> None:
    """Each has a form of its own, regions by name, or only the generic form; none is forgotten."""
    words = """all_gather all_to_all async_done batch_norm_grad batch_norm_inference batch_norm_training
        collective_broadcast collective_permute cross-replica-sum dynamic_conv dynamic_gather gather infeed outfeed recv return send
        triangular_solve constant_like ragged_dot"""
    generic_only = words.split()
    forms = {*STABLEHLO_FORMS, *CHLO_FORMS, *REGIONS, *(n.partition(".")[2] for n in PRETTY), *generic_only}
    assert not (STABLEHLO | CHLO) - forms
    assert len(STABLEHLO) == 118
    assert len(CHLO - {"dynamic_reshape"}) == 51  # that one is of older versions


@pytest.mark.parametrize("dialect", ["mhlo", "stablehlo"])
def test_mhlo_ops_are_those_of_stablehlo(dialect: str) -> None:
    text = f"func.func @f(%x: {F23}) -> {F23} {{\n  %y = {dialect}.add %x, %x : {F23}\n  func.return %y : {F23}\n}}"
    assert parse(text)["f"].ops[1].kind.full_name == "stablehlo.add"


def test_resources() -> None:
    text = function([], "stablehlo.constant dense_resource<w> : tensor<2xf32>", ["tensor<2xf32>"])
    blob = '{-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}'
    value = parse(text + blob)["main"].ops[0].attrs["value"]
    assert value.data.tolist() == [1.0, 2.0]


def test_aliases_may_follow_their_uses() -> None:
    text = "func.func @f(%x: !t) -> !t {\n  %y = stablehlo.abs %x {a.b = #n} : !t loc(#l)\n  return %y : !t\n}\n"
    f = parse(text + '!t = tensor<2xf32>\n#n = {k = #m}\n#m = 7 : i32\n#l = loc("name"(#file))\n#file = loc("f.py":3:4)')["f"]
    assert str(f.params[0].type) == "f32[2]"
    assert f.ops[1].attrs["a.b"] == "{k = 7 : i32}"
    assert str(f.ops[1].loc) == "f.py:3:4"


def test_declarations_call_the_host() -> None:
    text = "module {\n  func.func private @ext(tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>)\n}\n"
    m = parse(text)
    assert m["ext"].ops[1].attrs["call_target_name"] == "ext"
    assert print_module(m) == text


def test_elided_constants_are_only_on_request() -> None:
    f = parse(function([], "stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>", ["tensor<3xi32>"]))["main"]
    assert "dense<...>" in print_function(f, elide=2)
    assert "dense<[1, 2, 3]>" in print_function(f, elide=3)


def test_meshes_are_kept() -> None:
    text = 'module @m attributes {a.b = 1 : i32} {\n  sdy.mesh @mesh = <["x"=2, "y"=4]>\n  func.func @f() {\n    return\n  }\n}\n'
    assert print_module(parse(text)) == text


def test_tensors_of_unknown_rank_are_kept_but_not_compiled():
    text = """module {
  func.func @main(%arg0: tensor<*xf32>) -> tensor<*xf32> {
    %0 = chlo.broadcast_add %arg0, %arg0 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    return %0 : tensor<*xf32>
  }
}
"""
    module = parse(text)
    assert print_module(module) == text
    with pytest.raises(Unsupported, match=r"values of type tensor<\*xf32> cannot be compiled"):
        hilo.compile(module)
    with pytest.raises(Error, match="must be a tensor of known rank"):
        parse(text.replace("chlo.broadcast_add", "stablehlo.add").replace("(tensor<*xf32>, tensor<*xf32>) ->", ""))


def test_layouts_that_xla_writes_on_results_say_nothing():
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
      %y = stablehlo.transpose %x, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>,
          xla_shape = "f32[3,2]{0,1}"} : (tensor<2x3xf32>) -> tensor<3x2xf32>
      return %y : tensor<3x2xf32>
    }"""
    (y,) = hilo.parse(text)["main"].results
    assert set(y.attrs.own()) == {"permutation"}
