# ruff: noqa: E501  (programs are quoted as they are printed)
"""Portable artifacts: what is written reads back as the same program, for every version that can express it."""

from __future__ import annotations

import lzma
import os
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bytecode_samples import PROGRAM

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats import bytecode, mlir_text
from hilo.formats.bytecode.chlo import without_chlo
from hilo.formats.bytecode.opset import CURRENT, DEFAULTS, OPERATIONS, SPLATS
from hilo.formats.mlir_text.names import STABLEHLO
from hilo.ir.dtypes import f32, i1
from hilo.ir.module import Function, Module, parameter, region
from hilo.ir.op import Attrs, Op
from hilo.ir.registry import REGISTRY, lookup
from hilo.ir.types import UNKNOWN, Results, TensorType

SHARED = Path(os.environ.get("HILO_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
CORPUS = SHARED / "conformance" / "stablehlo-dev.tar.xz"
BENCH = SHARED / "bench"
EVERY = 20
VERSIONS = (*(f"0.{i}.0" for i in range(9, 21)), *(f"1.{i}.0" for i in range(CURRENT[1] + 1)))


def same(a: Module, b: Module) -> bool:
    def rest(m: Module) -> object:
        return m.name, m.attrs, [(f.name, f.visibility, f.attrs, f.arg_attrs, f.result_attrs) for f in m.functions.values()]

    return list(a.functions.values()) == list(b.functions.values()) and rest(a) == rest(b)


def program(body: str, arguments: str = "%x: tensor<4xf32>", result: str = "tensor<4xf32>") -> Module:
    return mlir_text.parse(f"func.func @main({arguments}) -> {result} {{\n{body}\n}}")


def structure(f: Function) -> Any:
    """A function without attributes that have the value that they have when left out: an artifact does not keep those."""
    number = {o: i for i, o in enumerate(f.ops)}

    def value(o: Op, name: str, v: Any) -> Any:
        if isinstance(v, Function):
            return structure(v)
        if isinstance(v, tuple) and v and isinstance(v[0], Function):
            return tuple(map(structure, v))
        splat = SPLATS.get(o.name, {}).get(name)
        default = DEFAULTS.get(o.name, {}).get(name, o.kind.attrs.get(name))
        return None if v == default or (splat is not None and set(np.array(v).reshape(-1).tolist()) == {splat}) else v

    ops = []
    for o in f.ops:
        attrs = {k: x for k, v in o.attrs.items() if (x := value(o, k, v)) is not None}
        ops.append((o.kind, tuple(number[x] for x in o.operands), attrs, o.type))
    return ops, [number[r] for r in f.results]


# -- real programs ------------------------------------------------------------------------------


@pytest.mark.skipif(not BENCH.is_dir(), reason="no bench programs: HILO_SHARED does not lead to bench")
def test_bench_programs_round_trip() -> None:
    count, skipped = 0, []
    for path in sorted(BENCH.glob("*.mlir")):
        try:
            m = mlir_text.parse(path.read_text())
            data = bytecode.write(m)
        except Unsupported as e:
            skipped.append(str(e))
            continue
        back = bytecode.parse(data)
        want = without_chlo(m)
        assert [structure(f) for f in back.functions.values()] == [structure(f) for f in want.functions.values()], path.name
        assert bytecode.write(back) == data, path.name
        count += 1
    assert count > 35
    assert all("not supported yet" in e or "chlo." in e for e in skipped), skipped


@pytest.mark.usefixtures("every_op")
@pytest.mark.skipif(not CORPUS.is_file(), reason="no corpus: HILO_SHARED does not lead to conformance/stablehlo-dev.tar.xz")
def test_a_sample_of_the_corpus_round_trips() -> None:
    count, skipped = 0, []
    for name, text in _sample():
        for m in mlir_text.parse_pieces(text, name):
            try:
                data = bytecode.write(m, locations=False)
            except Unsupported as e:
                skipped.append(str(e))
                continue
            back = bytecode.parse(data)
            if "check." not in text:  # numbers without a type get one
                assert same(back, without_chlo(m)), name
            assert bytecode.write(back, locations=False) == data, name
            count += 1
    assert count > 70
    assert all("chlo." in e for e in skipped), skipped


def _sample() -> Iterator[tuple[str, str]]:
    with lzma.open(CORPUS) as packed, tarfile.open(fileobj=packed, mode="r|") as files:  # type: ignore[arg-type]
        for i, item in enumerate(files):
            content = files.extractfile(item) if item.isfile() and item.name.endswith(".mlir") and i % EVERY == 3 else None
            if content is not None:
                text = content.read().decode()
                if "interpreter." not in text and "CHECK" not in text:
                    yield item.name, text


def test_examples_of_every_op_round_trip() -> None:
    """Like the text: both round numbers to the types that attributes have."""
    assert set(STABLEHLO) <= set(OPERATIONS)
    lookup("stablehlo.constant")  # fills the registry
    count = 0
    for kind in [d for d in REGISTRY.values() if d.dialect == "stablehlo" and d.name != "composite"]:
        for types, attrs in kind.examples:
            params = tuple(parameter(i, t) for i, t in enumerate(types))
            o = kind(*params, **attrs)
            results = o.results()
            m = Module({"main": Function("main", params, [*params, *dict.fromkeys((o, *results))], results)})
            text, back = mlir_text.parse(mlir_text.print_module(m)), bytecode.parse(bytecode.write(m))
            assert structure(back["main"]) == structure(text["main"]), kind
            count += 1
    assert count > 500


# -- versions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version(version: str) -> None:
    m = mlir_text.parse(PROGRAM)
    data = bytecode.write(m, version)
    assert f"StableHLO_v{version}".encode() in data[:40]
    assert same(bytecode.parse(data), m)


def test_operations_have_no_gaps() -> None:
    for versions in OPERATIONS.values():
        assert versions[-1].until == CURRENT
        for a, b in pairwise(versions):
            assert (a.until[0], a.until[1] + 1) == b.since[:2] or (a.until, b.since) == ((0, 20, 0), (1, 0, 0))
            assert b.number == a.number + 1


_TAN = program("  %0 = stablehlo.tan %x : tensor<4xf32>\n  return %0 : tensor<4xf32>")
_ACCURATE = program("  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>\n  return %0 : tensor<4xf32>")
_ALGORITHM = program(
    "  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>\n  return %0 : tensor<f32>",
    result="tensor<f32>")  # fmt: skip
_GATHER = program(
    '  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], collapsed_slice_dims = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>',
    "%x: tensor<2x3xf32>, %i: tensor<2x1xi32>", "tensor<2xf32>")  # fmt: skip
_SMALL = program("  return %x : tensor<4xi2>", "%x: tensor<4xi2>", "tensor<4xi2>")
_NARROW = program("  return %x : tensor<4xf8E4M3>", "%x: tensor<4xf8E4M3>", "tensor<4xf8E4M3>")
_CALL = program('  %0 = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {a = 1 : i64}} : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>')  # fmt: skip
_OTHER = program("  %0 = stablehlo.abs %x {sdy.rule = #sdy.x<1>} : tensor<4xf32>\n  return %0 : tensor<4xf32>")
_COMPOSITE = mlir_text.parse("""
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.composite "a.b" %x {decomposition = @f, version = 3 : i32, composite_attributes = {k = 1.5 : f64, s = "t", b = true, n = {i = 2 : i64}}} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
""")


_REGIONS = mlir_text.parse("""func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.composite"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {name = "a.b", decomposition = @f} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
""")
_FUTURE = program("""
  %0 = stablehlo.custom_call @start(%x) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>""")
_ROOT = program("""
  %c = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = "stablehlo.collective_broadcast"(%x, %c) {replica_groups = dense<0> : tensor<1x1xi64>, has_dynamic_root}
    : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>""")
_MESH = mlir_text.parse("""module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>}
      : (tensor<4xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}""")
_SEVERAL = program("""
  %0:2 = "stablehlo.all_gather"(%x, %x) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}
    : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>""")


@pytest.mark.parametrize(("m", "lowest", "op"), [
    (_TAN, "1.4.0", "stablehlo.tan"), (_ACCURATE, "1.9.0", "stablehlo.exponential"),
    (_ALGORITHM, "1.6.0", "stablehlo.dot_general"), (_GATHER, "1.1.0", "stablehlo.gather"), (_SMALL, "1.2.0", "func.func"),
    (_NARROW, "1.7.0", "func.func"), (_CALL, "1.3.0", "stablehlo.custom_call"), (_OTHER, "1.11.0", "stablehlo.abs"),
    (_COMPOSITE, "0.19.0", "stablehlo.composite"), (_REGIONS, "1.14.0", "stablehlo.composite"),
    (_FUTURE, "1.17.0", "stablehlo.custom_call"), (_ROOT, "1.20.0", "stablehlo.collective_broadcast"),
    (_MESH, "1.16.0", "stablehlo.all_gather"), (_SEVERAL, "1.5.0", "stablehlo.all_gather"),
])  # fmt: skip
def test_the_lowest_version(m: Module, lowest: str, op: str) -> None:
    at = VERSIONS.index(lowest)
    for version in VERSIONS[at:]:
        assert same(bytecode.parse(bytecode.write(m, version)), m)
    for version in VERSIONS[:at]:
        with pytest.raises(Error, match=rf"{op}: .* needs StableHLO {lowest} or later; the target is {version}"):
            bytecode.write(m, version)


def test_the_error_is_about_the_newest_op() -> None:
    body = "  %0 = stablehlo.tan %x : tensor<4xf32>\n  %1 = stablehlo.abs %0 {a.b = #c.d<1>} : tensor<4xf32>\n  return %1 : tensor<4xf32>"
    with pytest.raises(Error, match=r"<text>:3:8: stablehlo.abs: .* needs StableHLO 1.11.0"):
        bytecode.write(program(body), "1.0.0")


@pytest.mark.parametrize("version", ["", "1", "1.0", "v1.0.0", "1.0.0.0", "0.8.0", "1.21.0", "9.9.9", "1.-1.0", "newest"])
def test_versions_that_there_are_not(version: str) -> None:
    with pytest.raises(Error, match="version"):
        bytecode.write(_TAN, version)


def test_patch_versions_are_their_minor_version() -> None:
    assert bytecode.write(_TAN, "1.4.7").replace(b"1.4.7", b"1.4.0") == bytecode.write(_TAN, "1.4.0")


# -- what is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "dense<[true, false, true, true, false, false, true, true, true]> : tensor<9xi1>", "dense<true> : tensor<9xi1>",
    "dense<false> : tensor<1xi1>", "dense<> : tensor<0xi1>", "dense<> : tensor<2x0xf32>", "dense<-1> : tensor<3x3xi64>",
    "dense<[-8, 7, -1]> : tensor<3xi4>", "dense<[15, 0]> : tensor<2xui4>", "dense<[-2, 1]> : tensor<2xi2>",
    "dense<[0x7F800001, 0x80000000, 0x00000001]> : tensor<3xf32>", "dense<[0x7E01, 0x8000]> : tensor<2xf16>",
    "dense<(1.0, 0xFFF0000000000000)> : tensor<2xcomplex<f64>>", "dense<[1.5, -0.0]> : tensor<2xf4E2M1FN>",
    "dense<[18446744073709551615, 1]> : tensor<2xui64>", "dense<5> : tensor<ui8>", "dense<[1, -1]> : tensor<2xindex>",
])  # fmt: skip
def test_constants_keep_their_bits(text: str) -> None:
    t = text.rpartition(" : ")[2]
    m = program(f"  %0 = stablehlo.constant {text}\n  return %0 : {t}", "", t)
    for version in ("1.8.0", "current"):
        assert same(bytecode.parse(bytecode.write(m, version)), m)


@pytest.mark.parametrize("t", [
    "tensor<?x4xf32>", "tensor<?x4xf32, #stablehlo.bounds<5, ?>>", "tuple<tensor<f32>, tuple<>>", "!stablehlo.token",
    "tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>", "tensor<4x!quant.uniform<u8<1:250>:f32, 2.000000e+00:5>>",
    "tensor<2x4x!quant.uniform<i8:f32:0, {5.000000e-01:3, 2.000000e+00}>>", "tensor<3xindex>", "memref<2x?xf32>",
    "!stablehlo.future<tensor<2xf32>, tensor<i1>>", "tensor<2xf8E8M0FNU>", "tensor<complex<f32>>",
])  # fmt: skip
def test_types(t: str) -> None:
    m = program(f"  return %x : {t}", f"%x: {t}", t)
    assert bytecode.parse(bytecode.write(m))["main"].param_types[0] is m["main"].param_types[0]


def test_attributes_that_are_kept_as_text() -> None:
    attrs = 'a.a = 1 : i8, a.b = -3 : i64, a.c = 1.500000e+00 : f32, a.d = true, a.e = ["x", {k = 2 : ui8}], a.f = f32, a.g = tensor<2xf32>, a.h = dense<[1, 2]> : tensor<2xi32>, a.i = "", a.j = {}'
    m = program(f"  %0 = stablehlo.abs %x {{{attrs}, plain = 7 : i32}} : tensor<4xf32>\n  return %0 : tensor<4xf32>")
    for version in VERSIONS:
        assert same(bytecode.parse(bytecode.write(m, version)), m)


def test_captured_values_and_nested_regions() -> None:
    m = program("""
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.case"(%i) ({
      %2 = stablehlo.add %x, %x : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %3 = stablehlo.multiply %1, %x : tensor<4xf32>
    stablehlo.return %3 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>""", "%x: tensor<4xf32>, %p: tensor<i1>, %i: tensor<i32>")  # fmt: skip
    for version in ("0.9.0", "0.13.0", "current"):
        assert same(bytecode.parse(bytecode.write(m, version)), m)


def test_functions_without_a_body_and_meshes() -> None:
    m = mlir_text.parse("""module @m attributes {a.b = 1 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func private @host(tensor<2xf32>) -> tensor<2xf32>
      func.func @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<2xf32>, tensor<2xf32> {u}) attributes {k.l = "v"} {
        %0 = call @host(%x) : (tensor<2xf32>) -> tensor<2xf32>
        return %0, %x : tensor<2xf32>, tensor<2xf32>
      }
    }""")  # fmt: skip
    assert same(bytecode.parse(bytecode.write(m)), m)


def test_locations() -> None:
    text = """func.func @main(%x: tensor<f32> loc("x")) -> tensor<f32> {
      %0 = stablehlo.abs %x : tensor<f32> loc(callsite("f"("a.py":1:2) at fused<"m">["b.py":3:4, unknown]))
      %1 = stablehlo.abs %0 : tensor<f32> loc("c.py":5:6 to 7:8)
      %2 = stablehlo.abs %1 : tensor<f32> loc("c.py":5:6 to :9)
      return %2 : tensor<f32>
    } loc("main")"""
    m = mlir_text.parse(text)
    back = bytecode.parse(bytecode.write(m))
    assert mlir_text.print_function(back["main"], locations=True) == mlir_text.print_function(m["main"], locations=True)
    old = mlir_text.print_function(bytecode.parse(bytecode.write(m, "1.8.0"))["main"], locations=True)
    assert old.count('loc("c.py":5:6)') == 2
    assert " to " not in old
    without = bytecode.parse(bytecode.write(m, locations=False))
    assert {o.loc.kind for o in without["main"].ops} == {"unknown"}


def test_chlo_becomes_stablehlo() -> None:
    m = program("  %0 = chlo.broadcast_add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>")
    assert [o.kind.full_name for o in bytecode.parse(bytecode.write(m))["main"].ops] == ["hilo.parameter", "stablehlo.add"]


@pytest.mark.parametrize("name", ["conj", "is_inf", "is_neg_inf", "is_pos_inf", "square", "tan"])
def test_simple_ops_of_chlo_keep_their_bits(name: str) -> None:
    kind = lookup(f"chlo.{name}")
    rng = np.random.default_rng(3)
    for types, attrs in kind.examples:
        m = Module({"main": region(types, lambda *x, attrs=attrs: kind(*x, **attrs), "main")})
        back = bytecode.parse(bytecode.write(m))
        assert not any(o.kind.dialect == "chlo" for o in back["main"].ops)
        for t in types:
            special = np.array([np.inf, -np.inf, np.nan, -0.0, 1.5, 3e38, 0.0, -2.0])
            with np.errstate(all="ignore"):
                x = rng.choice(special, t.shape) if t.dtype.kind in "fc" else rng.integers(0, 100, t.shape)
                x = np.asarray(x + 1j * rng.choice(special, t.shape) if t.dtype.kind == "c" else x).astype(t.dtype.np)
                want, got = hilo.interpret(m, x)[0], hilo.interpret(back, x)[0]
            nan = want != want
            assert np.array_equal(nan, got != got)
            assert np.where(nan, 0, want).astype(want.dtype).tobytes() == np.where(nan, 0, got).astype(want.dtype).tobytes()


def test_what_no_version_has() -> None:
    f = region([TensorType(f32, (UNKNOWN,))], lambda x: lookup("chlo.digamma")(x), "main")
    with pytest.raises(Unsupported, match=r"chlo\.digamma: .*portable"):
        bytecode.write(Module({"main": f}))


def test_files_are_found_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(bytecode.write(_TAN))
    assert same(hilo.load(tmp_path / "program"), _TAN)


def test_ops_that_break_what_stablehlo_does_not_check_are_read() -> None:
    """Artifacts hold them; they are found out when they run, at the latest."""
    t = TensorType(f32, ())
    x = parameter(0, t)
    attrs = Attrs(rng_algorithm="PHILOX", type=Results([t, t]))
    rng = Op(lookup("stablehlo.rng_bit_generator"), (x,), attrs, Results([t, t]))
    signed = Attrs(comparison_direction="EQ", compare_type="SIGNED")
    same_as = Op(lookup("stablehlo.compare"), (x, x), signed, TensorType(i1, ()))
    state, bits = rng.results()
    f = Function("main", [x], [x, rng, state, bits, same_as], [bits, same_as])
    m = bytecode.parse(bytecode.write(Module({"main": f})))
    assert m["main"] == f
    for run in (lambda: hilo.interpret(m, np.float32(1)), lambda: hilo.compile(m)):
        with pytest.raises(Error, match=r"rng_bit_generator: .*\[I2\]"):
            run()
    with pytest.raises(Error, match=r"\[I2\]"):
        mlir_text.parse(mlir_text.print_module(m))
