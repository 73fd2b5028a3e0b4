"""The edges of programs: layouts, kinds of memory, donation, tuples, and what cannot cross them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilo.errors import Error, Unsupported
from hilo.formats.protobuf import put, put_bytes, put_numbers
from hilo.ir.dtypes import ALL
from hilo.ir.quantized import quantized
from hilo.pjrt import compiler
from hilo.pjrt.element_types import CODES, code


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))


def program(argument: str = "", result: str = "") -> bytes:
    argument, result = (f" {{{a}}}" if a else "" for a in (argument, result))
    return f"""
      func.func @main(%x: tensor<2x3x4xf32>{argument}) -> (tensor<4x3xf32>{result}) {{
        %0 = stablehlo.slice %x [1:2, 0:3, 0:4] : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
        %1 = stablehlo.reshape %0 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
        %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
        return %2 : tensor<4x3xf32>
      }}""".encode()


X = np.arange(24, dtype="f4").reshape(2, 3, 4)
WANT = X[1].T


def in_memory(a: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """`a` as native code takes it: a dense array whose dims stand in the order of memory."""
    return np.ascontiguousarray(a.transpose(order[::-1]))


@pytest.mark.parametrize("argument", [(2, 1, 0), (0, 1, 2), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("result", [(1, 0), (0, 1)])
def test_every_layout(argument: tuple[int, ...], result: tuple[int, ...]) -> None:
    said = [f'mhlo.layout_mode = "{{{",".join(map(str, order))}}}"' for order in (argument, result)]
    p = compiler.compile("mlir", program(*said), b"")
    assert p.arguments == [(11, (2, 3, 4), argument)]
    assert p.results == [(11, (4, 3), result)]
    (y,) = p.native(in_memory(X, argument))
    assert (y == in_memory(WANT, result)).all()


def test_layouts_of_the_options_and_of_the_program() -> None:
    def shape(*order: int) -> bytes:
        return put(2, 11) + put_bytes(5, put_numbers(1, order))

    options = put_bytes(1, shape(0, 1, 2)) + put_bytes(3, put_bytes(2, shape(0, 1)))
    p = compiler.compile("mlir", program(), options)
    assert (p.arguments[0][2], p.results[0][2]) == ((0, 1, 2), (0, 1))
    assert (p.native(in_memory(X, (0, 1, 2)))[0] == in_memory(WANT, (0, 1))).all()
    for mode in ("default", "auto"):  # leaves it to the options
        q = compiler.compile("mlir", program(f'mhlo.layout_mode = "{mode}"'), options)
        assert q.arguments == p.arguments
    q = compiler.compile("mlir", program('mhlo.layout_mode = "{1,2,0}"'), options)
    assert q.arguments[0][2] == (1, 2, 0)
    with pytest.raises(Error, match="2 argument layouts, but @main has 1 arguments"):
        compiler.compile("mlir", program(), put_bytes(1, shape(0, 1, 2)) * 2)


def test_layouts_and_tuples_of_hlo() -> None:
    text = b"""HloModule m, entry_computation_layout={(f32[2,3]{0,1}, (s32[2]{0}))->(s32[2]{0}, f32[2,3]{0,1})}
ENTRY e {
  p = f32[2,3]{0,1} parameter(0)
  t = (s32[2]{0}) parameter(1)
  g = s32[2]{0} get-tuple-element(t), index=0
  ROOT r = (s32[2]{0}, f32[2,3]{0,1}) tuple(g, p)
}"""
    p = compiler.compile("hlo", text, b"")
    assert p.arguments == [(11, (2, 3), (0, 1)), (4, (2,), (0,))]
    assert p.results == [(4, (2,), (0,)), (11, (2, 3), (0, 1))]
    a, b = np.arange(6, dtype="f4").reshape(3, 2), np.array([7, 8], "i4")
    (y, x) = p.native(a, b)
    assert (y == b).all()
    assert (x == a).all()


def test_tuples_of_stablehlo_are_taken_apart() -> None:
    text = b"""func.func @main(%t: tuple<tensor<2xf32>, tuple<tensor<i32>>>, %x: tensor<2xf32>)
        -> (tuple<tuple<tensor<i32>>, tensor<2xf32>>) {
      %0 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<2xf32>, tuple<tensor<i32>>>) -> tensor<2xf32>
      %1 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tuple<tensor<i32>>>) -> tuple<tensor<i32>>
      %2 = stablehlo.subtract %x, %0 : tensor<2xf32>
      %3 = stablehlo.tuple %1, %2 : tuple<tuple<tensor<i32>>, tensor<2xf32>>
      return %3 : tuple<tuple<tensor<i32>>, tensor<2xf32>>
    }"""
    p = compiler.compile("mlir", text, b"")
    assert [a[:2] for a in p.arguments] == [(11, (2,)), (4, ()), (11, (2,))]
    assert [a[:2] for a in p.results] == [(4, ()), (11, (2,))]
    n, d = p.native(np.array([1, 2], "f4"), np.int32(5), np.array([10, 20], "f4"))
    assert n == 5
    assert d.tolist() == [9, 18]


def test_kinds_of_memory_are_reported() -> None:
    p = compiler.compile("mlir", program('mhlo.memory_kind = "pinned_host"', 'mhlo.memory_kind = "unpinned_host"'), b"")
    assert (p.argument_kinds, p.result_kinds) == (["pinned_host"], ["unpinned_host"])
    with pytest.raises(Unsupported, match="no memory of kind 'vmem'"):
        compiler.compile("mlir", program('mhlo.memory_kind = "vmem"'), b"")


def test_donation() -> None:
    text = """
      func.func @main(%x: tensor<8xf32> {A}, %y: tensor<8xf32> {B}, %z: tensor<4xi32> {C}) -> tensor<8xf32> {
        %0 = stablehlo.add %x, %y : tensor<8xf32>
        return %0 : tensor<8xf32>
      }"""

    def donated(a: str = "", b: str = "", c: str = "") -> list[int]:
        places = zip("ABC", (a, b, c), strict=True)
        t = text
        for letter, attribute in places:
            t = t.replace(f"{{{letter}}}", f"{{{attribute}}}" if attribute else "")
        p = compiler.compile("mlir", t.encode(), b"")
        x = np.ones(8, "f4")
        assert p.native(x, x, np.zeros(4, "i4"))[0].tolist() == [2] * 8
        return p.donated

    alias, donor = "tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"
    assert donated() == []
    assert donated(alias) == [0]
    assert donated("", donor) == [1]
    assert donated(donor, alias) == [1]  # there is one result
    assert donated("", "", donor) == []  # no result can take it
    assert donated(alias, "", donor) == [0]


def test_shardings_of_one_device_say_nothing() -> None:
    text = b"""module @jit_f {
      sdy.mesh @empty_mesh = <[]>
      sdy.mesh @maximal = <[], device_ids=[0]>
      func.func public @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>,
          mhlo.sharding = "{replicated}"}) -> (tensor<2xf32> {mhlo.sharding = "{maximal device=0}"}) {
        %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = sdy.sharding_constraint %0 <@empty_mesh, [{}]> : tensor<2xf32>
        %2 = stablehlo.custom_call @annotate_device_placement(%1) {has_side_effect = true}
          : (tensor<2xf32>) -> tensor<2xf32>
        return %2 : tensor<2xf32>
      }
    }"""
    p = compiler.compile("mlir", text, b"")
    assert p.native(np.array([1, 2], "f4"))[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }", "sizes are not known"),
        ("func.func @f() { return }\nfunc.func @g() { return }", "no function @main; there are @f, @g"),
        (program('mhlo.layout_mode = "{1,0}"').decode(), "cannot have the layout \\{1,0\\}"),
        (program('mhlo.layout_mode = "{2,1,0:T(8,128)}"').decode(), "no layout '{2,1,0:T\\(8,128\\)}'"),
        (program('mhlo.layout_mode = "fast"').decode(), "no layout 'fast'"),
        ("func.func @main() { %0 = stablehlo.custom_call @nowhere() : () -> tensor<f32>\n return }", "'nowhere'"),
    ],
)  # fmt: skip
def test_what_cannot_be(text: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        compiler.compile("mlir", text.encode(), b"")


def test_the_only_public_function_is_the_entry() -> None:
    text = """func.func private @h() { return }
      func.func @start(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"""
    p = compiler.compile("mlir", text.encode(), b"")
    assert p.native(np.float32(3))[0] == 3
    assert p.name == "start"


def test_sizes_that_the_program_computes() -> None:
    text = b"""func.func @main(%n: tensor<1xi32>) -> tensor<f32> {
      %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }"""
    with pytest.raises(Unsupported, match="run time"):
        compiler.compile("mlir", text, b"")


def test_every_element_type_has_a_number() -> None:
    assert {t.name for t in ALL} == set(CODES)
    assert len(set(CODES.values())) == len(CODES)
    by_name = {t.name: t for t in ALL}
    assert code(by_name["f32"], "x") == 11
    q = quantized(by_name["i8"], by_name["f32"], (0.5,))
    assert code(q, "x") == CODES["i8"]


@pytest.mark.parametrize("t", ALL, ids=lambda t: t.name)
def test_values_of_every_type_go_through(t: object) -> None:
    mlir, np_type = t.mlir, t.np  # type: ignore[attr-defined]
    text = f"func.func @main(%x: tensor<3x{mlir}>) -> tensor<3x{mlir}> {{ return %x : tensor<3x{mlir}> }}"
    p = compiler.compile("mlir", text.encode(), b"")
    assert p.arguments == p.results == [(CODES[t.name], (3,), (0,))]  # type: ignore[attr-defined]
    x = np.array([1, 0, 1]).astype(np_type)
    assert p.native(x)[0].tobytes() == x.tobytes()
    assert p.optimized_program()[1]
