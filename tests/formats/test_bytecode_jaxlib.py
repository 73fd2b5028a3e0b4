"""Against jaxlib, where it is installed: it reads what is written here, and what it writes is read here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from bytecode_samples import PROGRAM

from hilo.formats import bytecode, mlir_text

ir: Any = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib, the judge, is not installed")
stablehlo: Any = pytest.importorskip("jaxlib.mlir.dialects.stablehlo", reason="jaxlib, the judge, is not installed")
mlir: Any = pytest.importorskip("jax._src.interpreters.mlir", reason="jaxlib, the judge, is not installed")

VERSIONS = ("0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.15.0", "1.0.0", "1.5.0", "1.9.0", "1.12.0", "1.15.0")


@pytest.fixture
def context() -> Iterator[Any]:
    with mlir.make_ir_context() as c:
        yield c


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("version", VERSIONS)
def test_portable_artifacts(version: str) -> None:
    m = mlir_text.parse(PROGRAM)
    ours = bytecode.write(m, version)
    theirs = stablehlo.serialize_portable_artifact_str(PROGRAM, version)
    assert bytecode.parse(theirs)["main"] == m["main"]
    for artifact in (ours, theirs):
        text = str(ir.Module.parse(stablehlo.deserialize_portable_artifact_str(artifact)))
        assert mlir_text.parse(text)["main"] == m["main"]


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("version", range(7))
def test_plain_bytecode(version: int) -> None:
    data = io.BytesIO()
    ir.Module.parse(PROGRAM).operation.write_bytecode(data, desired_version=version)
    assert bytecode.parse(data.getvalue())["main"] == mlir_text.parse(PROGRAM)["main"]


def test_locations_and_other_dialects(context: Any) -> None:
    text = """module {
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<2xf32> {
        %0 = stablehlo.abs %x {a.b = unit} : tensor<2xf32> loc(callsite("f"("a.py":1:2) at "b.py":3:4))
        return %0 : tensor<2xf32>
      }
    }"""
    data = bytecode.write(mlir_text.parse(text), "1.15.0")
    m = stablehlo.deserialize_portable_artifact(context, data)
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>' in str(m)
    located = m.operation.get_asm(enable_debug_info=True)
    assert all(text in located for text in ('"a.py":1:2', '"b.py":3:4', "callsite("))


SHARDED = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["a"=4], device_ids=[3, 2, 1, 0]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(1)2}]>},
                %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}], replicated={"x"}>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.custom_call @f(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, jk]) {i=8, j=4, k=2}, custom>}
    : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""  # noqa: E501


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("version", [4, 6])
def test_shardy(version: int) -> None:
    data = io.BytesIO()
    m = ir.Module.parse(SHARDED)
    m.operation.write_bytecode(data, desired_version=version)
    got, want = bytecode.parse(data.getvalue()), mlir_text.parse(str(m))
    assert got.attrs == want.attrs
    assert got["main"] == want["main"]
    assert got["main"].arg_attrs == want["main"].arg_attrs


@pytest.mark.usefixtures("context")
def test_quantized_types() -> None:
    text = """
    func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01:3, 2.000000e+00}>> {
      %c = "stablehlo.constant"() <{value = dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>}>
        : () -> tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01:3, 2.000000e+00}>>
      return %c : tensor<2x2x!quant.uniform<i8:f32:1, {5.000000e-01:3, 2.000000e+00}>>
    }"""
    m = mlir_text.parse(text)
    plain = stablehlo.deserialize_portable_artifact_str(bytecode.write(m, "1.15.0"))
    assert bytecode.parse(plain)["main"] == m["main"]
