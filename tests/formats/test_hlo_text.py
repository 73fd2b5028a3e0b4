# ruff: noqa: E501  (programs are quoted as they are printed)
"""HLO text: what samples compute, what the IR keeps of them, and that they print and read back the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hlo_samples import SAMPLES, SUM, X

import hilo
from hilo.formats import parse, sniff
from hilo.formats.hlo_text import print_module
from hilo.formats.mlir_text import parse as parse_mlir
from hilo.formats.mlir_text import print_module as print_mlir
from hilo.ir.module import Loc, Module
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ir.verify import verify

Arr = np.ndarray[Any, Any]


def same(a: Arr, b: Arr) -> bool:
    """Equal values (any NaN equals any) of one type and shape; zeros have the same sign."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") and (
        a.dtype.kind != "f" or np.array_equal(np.signbit(a), np.signbit(b))
    )


def ops(m: Module, name: str, function: str = "main") -> list[Op]:
    return [o for o in m[function].ops if o.kind.name == name]


@pytest.mark.parametrize("name", SAMPLES)
def test_sample(name: str) -> None:
    s = SAMPLES[name]
    assert sniff(s.text.encode()) == "hlo_text"
    m = parse(s.text, name)
    verify(m, types=True)
    got = hilo.interpret(m, *s.arguments)
    assert len(got) == len(s.results)
    for k, (a, b) in enumerate(zip(got, s.results, strict=True)):
        assert same(a, b), (k, a, b)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_prints_and_reads_back(name: str) -> None:
    s = SAMPLES[name]
    m = parse(s.text, name)
    text = print_module(m)
    again = parse(text, name)
    verify(again, types=True)
    assert print_module(again) == text
    for a, b in zip(hilo.interpret(again, *s.arguments), s.results, strict=True):
        assert same(a, b)
    with_locations = print_module(m, locations=True)
    assert print_module(parse(with_locations)) == text


@pytest.mark.parametrize("name", ["optimized form", "while of a tuple", "conditional by a predicate", "shape operations"])
def test_sample_compiles(name: str) -> None:
    s = SAMPLES[name]
    for a, b in zip(hilo.compile(s.text)(*s.arguments), s.results, strict=True):
        assert same(np.asarray(a), b)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_read_can_be_written_as_mlir(name: str) -> None:
    m = parse(SAMPLES[name].text, name)
    text = print_mlir(m)
    assert print_mlir(parse_mlir(text)) == text


def test_functions_of_the_module() -> None:
    m = parse(SAMPLES["optimized form"].text)
    assert m.name == "jit_f"
    assert list(m.functions) == ["main", "fused_computation"]  # what a reduce applies is a region
    assert m["main"].visibility == "public"
    (call,) = ops(m, "call")
    assert call.attrs["callee"] == "fused_computation"
    assert call.attrs["mhlo.fusion_kind"] == '"kInput"'
    assert "outer_dimension_partitions" in call.attrs["mhlo.backend_config"]


def test_locations() -> None:
    m = parse(SAMPLES["optimized form"].text, "dump.hlo")
    multiply = ops(m, "multiply", "fused_computation")[0]
    assert (multiply.loc.kind, multiply.loc.name, str(multiply.loc)) == ("name", "jit(f)/mul", "other.py:3:0")
    reduce = ops(m, "reduce", "fused_computation")[0]
    assert str(reduce.loc) == "dump.hlo:26:3"  # it has no metadata
    (add,) = [o for o in reduce.attrs["body"].ops if o.kind.name == "add"]
    assert str(add.loc) == "model.py:7:12"
    text = print_module(m, locations=True)
    assert 'metadata={op_name="jit(f)/mul" source_file="other.py" source_line=3}' in text


def test_stack_frames() -> None:
    m = parse("""HloModule m
FileNames
1 "a.py"
2 "b.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=5 end_column=9}
2 {file_name_id=2 function_name_id=1 line=8 end_line=8 column=1 end_column=4}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=2 parent_frame_id=4}
ENTRY e { x = f32[] parameter(0)
  y = f32[] negate(x), metadata={stack_frame_id=2}
  ROOT z = f32[] negate(y), metadata={op_name="n" stack_frame_id=3} }
""")
    first, second = ops(m, "negate")
    assert [str(c) for c in first.loc.children] == ["b.py:8:1", "a.py:3:5"]
    assert first.loc.kind == "callsite"
    assert str(second.loc) == "b.py:8:1"  # a frame that leads back to itself ends somewhere


def test_signature_of_the_entry_is_kept() -> None:
    text = SAMPLES["nested tuples in the signature"].text
    m = parse(text)
    assert [repr(t) for t in m["main"].param_types] == ["f32[2]", "i32[]", "f32[3]", "f32[2,3]"]
    assert len(m["main"].results) == 3
    printed = print_module(m)
    assert text.splitlines()[0].split(", ", 1)[1] == printed.splitlines()[0].split(", ", 1)[1]
    assert "ROOT tuple" in printed


def test_layouts_of_parameters_and_results_are_kept() -> None:
    layout = "{(f32[2,3]{0,1:T(8,128)}, s32[])->(f32[2,3]{0,1}, s32[])}"
    m = parse(f"""HloModule m, entry_computation_layout={layout}
ENTRY e {{ x = f32[2,3]{{0,1:T(8,128)}} parameter(0)
  y = s32[] parameter(1)
  ROOT t = (f32[2,3]{{0,1}}, s32[]) tuple(x, y) }}
""")
    assert f"entry_computation_layout={layout}" in print_module(m)
    other = Module({"main": m["main"].replace(results=m["main"].results[:1])}, attrs=m.attrs)
    assert "->f32[2,3]{1,0}}" in print_module(other)  # what does not fit any more is left out


def test_aliases_and_donors() -> None:
    m = parse("""HloModule m, input_output_alias={ {1}: (0, {0}, may-alias), {0}: (1, {}, must-alias) }, buffer_donor={ (0, {1}) }
ENTRY e { p = (f32[2], f32[2]) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = f32[2] parameter(1)
  ROOT t = (f32[2], f32[2]) tuple(b, a) }
""")
    assert [dict(a) for a in m["main"].arg_attrs] == [
        {"tf.aliasing_output": "1 : i32"}, {"jax.buffer_donor": "true"},
        {"tf.aliasing_output": "0 : i32", "hlo.must_alias": "true"},
    ]  # fmt: skip
    text = print_module(m)
    assert "input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {0}, may-alias) }" in text
    assert "buffer_donor={ (0, {1}) }" in text


def test_sharding_and_attributes() -> None:
    m = parse("""HloModule m, replica_count=1, num_partitions=4, frontend_attributes={mesh={m = #sdy.mesh<["x"=4]>}}
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}, frontend_attributes={a="1",b="q\\"q"}
  y = f32[8] add(x, x), sharding={devices=[2,2]<=[4] last_tile_dim_replicate}
  ROOT t = (f32[8], f32[8]) tuple(y, x), sharding={{replicated}, {devices=[4]0,1,2,3}}
}
""")
    f = m["main"]
    assert m.attrs["mhlo.num_partitions"] == "4 : i32"
    assert f.arg_attrs[0]["mhlo.sharding"] == '"{devices=[4]<=[4]}"'
    assert [a["mhlo.sharding"] for a in f.result_attrs] == ['"{replicated}"', '"{devices=[4]0,1,2,3}"']
    assert ops(m, "add")[0].attrs["mhlo.sharding"] == '"{devices=[2,2]<=[4] last_tile_dim_replicate}"'
    text = print_module(m)
    assert 'num_partitions=4, frontend_attributes={mesh="{m = #sdy.mesh<[\\"x\\"=4]>}"}' in text
    assert "ROOT tuple.3 = (f32[8]{0}, f32[8]{0}) tuple(add.2, parameter.1), sharding={{replicated}, {devices=[4]0,1,2,3}}" in text
    assert "parameter(0), sharding={devices=[4]<=[4]}" in text


def test_frontend_attributes_of_instructions() -> None:
    m = parse("""HloModule m
ENTRY e { x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x), frontend_attributes={a="1",b="q\\"q"} }
""")
    assert ops(m, "negate")[0].attrs["mhlo.frontend_attributes"] == '{a = "1", b = "q\\22q"}'
    assert 'frontend_attributes={a="1",b="q\\"q"}' in print_module(m)


def test_custom_call() -> None:
    line = ('custom-call(x, y), custom_call_target="lib.work", api_version=API_VERSION_TYPED_FFI, '
            "custom_call_has_side_effect=true, called_computations={%sum}, "
            "operand_layout_constraints={f32[2,3]{0,1}, f32[]}, output_to_operand_aliasing={{1}: (0, {})}")  # fmt: skip
    m = parse("HloModule m" + SUM + f"""
ENTRY e {{ x = f32[2,3] parameter(0)
  y = f32[] parameter(1)
  ROOT c = (f32[], f32[2,3]{{0,1}}) {line}, backend_config={{n = 3 : i64, s = "t"}} }}
""")
    (call,) = ops(m, "custom_call")
    assert call.attrs["call_target_name"] == "lib.work"
    assert call.attrs["api_version"] == 4
    assert dict(call.attrs["backend_config"]) == {"n": 3, "s": "t"}
    assert call.attrs["operand_layouts"] == ((0, 1), ())
    assert call.attrs["result_layouts"] == ((), (0, 1))
    assert call.attrs["called_computations"] == ("sum",)
    text = print_module(m)
    assert "operand_layout_constraints={f32[2,3]{0,1}, f32[]}, output_to_operand_aliasing={{1}: (0, {})}" in text
    assert print_module(parse(text)) == text


def test_custom_call_as_jax_writes_it() -> None:
    m = stablehlo("""func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.custom_call @work(%x) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}""")
    text = print_module(m)
    assert 'api_version=API_VERSION_TYPED_FFI, backend_config="{uplo = 76 : ui8}"' in text
    (call,) = ops(parse(text), "custom_call")
    assert dict(call.attrs["backend_config"]) == {"uplo": "76 : ui8"}


def test_composite() -> None:
    m = parse("""HloModule m
impl { x = f32[] parameter(0)
  ROOT y = f32[] add(x, x) }
ENTRY e { x = f32[] parameter(0)
  ROOT c = f32[] call(x), to_apply=impl, is_composite=true, frontend_attributes={composite.attributes="{n = 2 : i64}",composite.name="my.op",composite.version="3"} }
""")
    (c,) = ops(m, "composite")
    assert (c.attrs["name"], c.attrs["version"], dict(c.attrs["composite_attributes"])) == ("my.op", 3, {"n": 2})
    text = print_module(m)
    assert "is_composite=true" in text
    assert print_module(parse(text)) == text
    assert hilo.interpret(m, np.float32(2))[0] == 4


def test_bounded_dimensions() -> None:
    m = parse("""HloModule m
ENTRY e { x = f32[<=4,2] parameter(0)
  n = s32[] constant(3)
  ROOT y = f32[<=4,2] add(x, x) }
""")
    t = m["main"].results[0].type
    assert isinstance(t, TensorType)
    assert (t.shape[0].bound, t.shape[1]) == (4, 2)
    assert "f32[<=4,2]{1,0} add" in print_module(m)


@pytest.mark.parametrize("groups", ["{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)", "mesh['a'=2,'b'=2] {'a'}"])
@pytest.mark.usefixtures("every_op")
def test_replica_groups(groups: str) -> None:
    m = parse("HloModule m" + SUM + f"""
ENTRY e {{ x = f32[2] parameter(0)
  s = f32[2] all-reduce-start(x), channel_id=5, replica_groups={groups}, use_global_device_ids=true, to_apply=sum
  ROOT d = f32[2] all-reduce-done(s) }}
""")
    (o,) = ops(m, "all_reduce")
    assert o.attrs["replica_groups"] == ((0, 2), (1, 3))
    assert o.attrs["channel_handle"] == (5, 1)
    assert "all-reduce(parameter.4), to_apply=sum, replica_groups={{0,2},{1,3}}, channel_id=5, use_global_device_ids=true" in print_module(m)


@pytest.mark.usefixtures("every_op")
def test_collectives_and_the_host() -> None:
    m = parse("HloModule m" + SUM + """
ENTRY e {
  x = f32[2,4] parameter(0)
  g = f32[4,4] all-gather(x), replica_groups={{0,1}}, dimensions={0}
  r = f32[1,4] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
  a = f32[2,4] all-to-all(x), replica_groups={{0,1}}, dimensions={1}
  e = (f32[2,4], f32[2,4]) all-to-all(x, a), replica_groups={{0,1}}
  p = f32[2,4] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,0}}
  b = f32[2,4] collective-broadcast(x), replica_groups={{0,1}}
  t = token[] after-all()
  i = ((f32[3], s32[]), token[]) infeed(t), infeed_config="in"
  it = token[] get-tuple-element(i), index=1
  d = (f32[3], s32[]) get-tuple-element(i), index=0
  o = token[] outfeed(d, it), outfeed_shape=(f32[3], s32[]), outfeed_config="out"
  s = (f32[2,4], u32[], token[]) send(x, o), channel_id=7, is_host_transfer=true
  sd = token[] send-done(s), channel_id=7, is_host_transfer=true
  v = (f32[], u32[], token[]) recv(sd), channel_id=8
  vd = (f32[], token[]) recv-done(v), channel_id=8
  y = f32[] get-tuple-element(vd), index=0
  ROOT out = (f32[4,4], f32[1,4], f32[2,4], (f32[2,4], f32[2,4]), f32[2,4], f32[2,4], f32[]) tuple(g, r, a, e, p, b, y)
}
""")
    text = print_module(m)
    assert print_module(parse(text)) == text
    for op in ("all-gather(", "reduce-scatter(", "all-to-all(", "collective-permute(", "collective-broadcast(", "infeed(",
               "outfeed(", "send(", "send-done(", "recv(", "recv-done("):  # fmt: skip
        assert op in text


# -- printing programs that were not HLO --------------------------------------------------------


def stablehlo(body: str) -> Module:
    return parse(f"module {{\n{body}\n}}")


def test_captures_of_loops_and_branches() -> None:
    m = stablehlo("""
func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
         %y = stablehlo.add %v, %x : tensor<2xf32>
         stablehlo.return %j, %y : tensor<i32>, tensor<2xf32> }
  %p = stablehlo.compare GT, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %b = "stablehlo.if"(%p) ({ %y = stablehlo.add %x, %w#1 : tensor<2xf32>
    stablehlo.return %y : tensor<2xf32> }, { stablehlo.return %x : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  return %w#1, %b : tensor<2xf32>, tensor<2xf32>
}""")
    again = parse(print_module(m))
    for n in (0, 1, 3):
        arguments = [np.int32(n), np.array([1, 2], np.float32)]
        for a, b in zip(hilo.interpret(again, *arguments), hilo.interpret(m, *arguments), strict=True):
            assert same(a, b)


def test_broadcast_of_axes_of_size_one() -> None:
    m = stablehlo("""
func.func @main(%x: tensor<2x1xf32>) -> tensor<3x2x4xf32> {
  %y = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<3x2x4xf32>
  return %y : tensor<3x2x4xf32>
}""")
    text = print_module(m)
    assert "reshape(" in text
    assert "dimensions={1}" in text
    x = np.array([[1], [2]], np.float32)
    assert same(hilo.interpret(parse(text), x)[0], hilo.interpret(m, x)[0])


@pytest.mark.parametrize("name", ["erfc", "erf_inv", "lgamma", "digamma", "atan"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_functions_are_written_as_arithmetic(name: str, dtype: str) -> None:
    t = f"tensor<8x{dtype}>"
    m = stablehlo(f"func.func @main(%x: {t}) -> {t} {{ %y = chlo.{name} %x : {t} -> {t}\n return %y : {t} }}")
    x = np.array([0.25, -0.75, 1.5, -0.0, np.inf, np.nan, 5.25, 0.99], dtype=f"float{dtype[1:]}")
    want, got = hilo.interpret(m, x)[0], hilo.interpret(parse(print_module(m)), x)[0]
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(x.dtype).eps)


def test_rare_opcodes() -> None:
    """Complex sinh needs memory of its own: its loop IR is no arithmetic, so that it stays what it is."""
    t = "tensor<2xcomplex<f32>>"
    m = stablehlo(f"func.func @main(%x: {t}) -> {t} {{ %y = chlo.sinh %x : {t} -> {t}\n return %y : {t} }}")
    assert " sinh(" in print_module(m)
    assert ops(parse(print_module(m)), "sinh")


def test_splats_are_broadcast_scalars() -> None:
    m = stablehlo("""
func.func @main() -> tensor<1000x1000xf32> {
  %y = stablehlo.constant dense<2.5> : tensor<1000x1000xf32>
  return %y : tensor<1000x1000xf32>
}""")
    assert "constant(2.5)" in print_module(m)
    assert len(print_module(m)) < 400


def test_no_results_and_many_functions() -> None:
    m = stablehlo("""
func.func @main() { return }
func.func private @f32(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
func.func private @"odd name"(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = func.call @f32(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}""")
    again = parse(print_module(m))
    assert list(again.functions) == ["main", "_f32", "odd_name"]
    assert again["main"].results == ()


def test_elided_constants(tmp_path: Path) -> None:
    m = parse("HloModule m\nENTRY e { ROOT c = f32[3] constant({1, 2, 3}) }")
    assert "constant({...})" in print_module(m, elide=2)
    with pytest.raises(hilo.Error, match="dump it whole"):
        parse(print_module(m, elide=2))


def test_payloads_of_nans() -> None:
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFC12345], np.uint32)
    text = "HloModule m\nENTRY e { ROOT c = f32[4] constant({nan, -nan, nan(0x1), -nan(0x412345)}) }"
    m = parse(text)
    value = m["main"].results[0].attrs["value"].data
    assert value.view(np.uint32).tolist() == bits.tolist()
    assert "constant({nan, -nan, nan(0x1), -nan(0x412345)})" in print_module(m)


def test_ends_of_ranges() -> None:
    data = np.array([np.finfo(np.float32).max, np.finfo(np.float32).tiny, 1e-45], np.float32)
    m = parse("HloModule m\nENTRY e { ROOT c = f32[3] constant({3.4028234663852886e+38, 1.17549435e-38, 1e-45}) }")
    assert m["main"].results[0].attrs["value"].data.tobytes() == data.tobytes()
    assert "3.4028234663852886e+38" in print_module(m)  # XLA's parser refuses what rounds to more


def test_library_files(tmp_path: Path) -> None:
    path = tmp_path / "p.hlo"
    path.write_text("// a dump\n" + SAMPLES["shape operations"].text)
    assert isinstance(hilo.load(path), Module)
    assert isinstance(hilo.load(path)["main"].loc, Loc)
    assert same(hilo.interpret(hilo.load(path), X, np.float32(9))[2], X.T)


def test_meshes_with_attributes() -> None:
    """Newer JAX writes attributes behind a mesh."""
    mesh = 'sdy.mesh @mesh = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}'
    m = stablehlo(f"{mesh}\nfunc.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ return %x : tensor<2xf32> }}")
    assert mesh in print_mlir(m)
    assert print_module(m).startswith("HloModule module, entry_computation_layout={(f32[2]{0})->f32[2]{0}}")
