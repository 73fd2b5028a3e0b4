"""Shape refinement: what sizes become, and what must hold of them."""

from __future__ import annotations

import pytest

from hilo.errors import VerifyError
from hilo.formats import mlir_text
from hilo.ir.dims import Guard
from hilo.ir.module import Function
from hilo.passes.example_sizes import example_sizes
from hilo.passes.inline import inline
from hilo.passes.shapes import ComputedSize, refine


def function(text: str) -> Function:
    return inline(mlir_text.parse(text), "main")


def refined(text: str) -> tuple[Function, tuple[Guard, ...]]:
    f = refine(function(text))
    (checks,) = (o for o in f.ops if o.kind.name == "guards")
    return f, checks.attrs["guards"]


def kinds(f: Function) -> list[str]:
    return [o.kind.full_name for o in f.ops]


def test_sizes_as_integer_arguments_become_shapes() -> None:
    f, guards = refined("""func.func @main(%n: tensor<i64>, %x: tensor<?x4xf32>) -> tensor<?x4xf32> {
        %m = stablehlo.convert %n : (tensor<i64>) -> tensor<i32>
        %0 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
        %four = stablehlo.constant dense<4> : tensor<1xi32>
        %s = stablehlo.concatenate %0, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %one = stablehlo.constant dense<1.0> : tensor<f32>
        %b = stablehlo.dynamic_broadcast_in_dim %one, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
        %r = stablehlo.add %x, %b : tensor<?x4xf32>
        return %r : tensor<?x4xf32> }""")
    assert "stablehlo.broadcast_in_dim" in kinds(f)
    assert "stablehlo.dynamic_broadcast_in_dim" not in kinds(f)
    assert repr(f.result_types) == "(f32[n1_0,4],)"  # the integer must be the size
    assert [repr(g.condition) for g in guards] == ["eq(n1_0, v0_0)"]


def test_division_as_frameworks_write_it() -> None:
    """floor(n / 2), with the correction for negative numbers."""
    f, _ = refined("""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %q = stablehlo.divide %n, %two : tensor<i32>
        %rem = stablehlo.remainder %n, %two : tensor<i32>
        %a = stablehlo.compare NE, %rem, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %b = stablehlo.compare LT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %c = stablehlo.and %a, %b : tensor<i1>
        %less = stablehlo.subtract %q, %one : tensor<i32>
        %f = stablehlo.select %c, %less, %q : tensor<i1>, tensor<i32>
        %s = stablehlo.reshape %f : (tensor<i32>) -> tensor<1xi32>
        %v = stablehlo.constant dense<1.0> : tensor<f32>
        %r = stablehlo.dynamic_broadcast_in_dim %v, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
        return %r : tensor<?xf32> }""")
    assert repr(f.result_types) == "(f32[floordiv(n0_0, 2)],)"


def test_static_sizes_spread() -> None:
    f, guards = refined("""func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<6xf32>) -> tensor<?xf32> {
        %0 = stablehlo.add %x, %y : tensor<?xf32>
        %1 = stablehlo.add %0, %z : (tensor<?xf32>, tensor<6xf32>) -> tensor<?xf32>
        return %1 : tensor<?xf32> }""")
    assert repr(f.param_types) == "(f32[6], f32[6], f32[6])"
    assert len(guards) == 2


def test_sizes_that_can_never_agree() -> None:
    with pytest.raises(VerifyError, match="can never be equal"):
        refined("""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
            %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
            %z = stablehlo.constant dense<0.0> : tensor<f32>
            %1 = stablehlo.pad %0, %z, low = [1], high = [0], interior = [0]
                : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
            %2 = stablehlo.add %0, %1 : tensor<?xf32>
            return %2 : tensor<?xf32> }""")  # fmt: skip


def test_shape_assertions_are_read() -> None:
    f, (guard,) = refined("""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        %ok = stablehlo.compare GE, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.custom_call @shape_assertion(%ok, %n)
            {error_message = "\\22{0}\\22 is few", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
        return %x : tensor<?xf32> }""")
    assert guard.message == '"{0}" is few'
    assert "stablehlo.custom_call" not in kinds(f)


def test_a_size_out_of_a_loop_is_known_too_late() -> None:
    with pytest.raises(ComputedSize, match="a size depends on values") as e:
        refined("""func.func @main(%x: tensor<?xf32>, %k: tensor<i32>) -> tensor<?xf32> {
            %one = stablehlo.constant dense<1> : tensor<i32>
            %v = stablehlo.constant dense<1.0> : tensor<f32>
            %n = stablehlo.while(%a = %one) : tensor<i32>
              cond { %c = stablehlo.compare LT, %a, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
                stablehlo.return %c : tensor<i1> }
              do { %b = stablehlo.add %a, %a : tensor<i32>
                stablehlo.return %b : tensor<i32> }
            %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
            %r = stablehlo.dynamic_broadcast_in_dim %v, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
            return %r : tensor<?xf32> }""")
    assert [o.name for o in e.value.causes] == ["while"]


def test_example_sizes_fit_together() -> None:
    text = """func.func @main(%n: tensor<i64>, %x: tensor<?x2xf32>, %y: tensor<?xf32>) -> tensor<?x2xf32> {
        %m = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
        %two = stablehlo.constant dense<2> : tensor<1xi64>
        %s = stablehlo.concatenate %m, %two, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
        %0 = stablehlo.dynamic_reshape %y, %s : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x2xf32>
        %1 = stablehlo.add %0, %x : tensor<?x2xf32>
        return %1 : tensor<?x2xf32> }"""
    (_, n), (x, _), (y, _) = example_sizes(function(text), 7)
    assert n is not None
    assert (int(n), x.shape, y.shape) == (7, (7, 2), (14,))


@pytest.mark.parametrize("op", ["power", "multiply"])
def test_integers_that_grow_without_end_are_not_followed(op: str) -> None:
    steps = "\n".join(f"%v{i + 1} = stablehlo.{op} %v{i}, %v{i} : tensor<i64>" for i in range(100))
    f, _ = refined(f"""func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<i64>) {{
        %v0 = stablehlo.constant dense<9> : tensor<i64>
        {steps}
        return %x, %v100 : tensor<?xf32>, tensor<i64> }}""")
    assert len(f.results) == 2
