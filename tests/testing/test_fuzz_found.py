"""What the fuzzer has found, as small as it made it: each ends in a result that is right, or in `Error`."""

from __future__ import annotations

import random

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.formats import bytecode, hlo_text, mlir_text
from hilo.testing import attack_programs as programs
from hilo.testing import mutate
from hilo.testing.fuzz_worker import Effort, examine

T = "tensor<2xf32>"


def there_and_back(text: str) -> str:
    """HLO text of a program, read and written again."""
    once = hlo_text.print_module(hilo.parse(text))
    again = hlo_text.print_module(hlo_text.parse(once))
    assert hlo_text.print_module(hlo_text.parse(again)) == again
    return again


@pytest.mark.parametrize("shape", ["3", "9", "2x3"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_splats_of_booleans_in_bytecode(shape: str, value: str) -> None:
    t = f"tensor<{shape}xi1>"
    module = hilo.parse(f"func.func @main() -> {t} {{ %0 = stablehlo.constant dense<{value}> : {t} return %0 : {t} }}")
    back = bytecode.parse(bytecode.write(module))
    assert mlir_text.print_module(back) == mlir_text.print_module(module)


def test_a_visibility_that_there_is_not() -> None:
    plain = f"func.func private @f(%a: {T}) -> {T} {{ return %a : {T} }}"
    data = bytecode.write(hilo.parse(plain))
    with pytest.raises(Error, match="'privat3' is no visibility"):
        hilo.parse(data.replace(b"private\0", b"privat3\0"))
    with pytest.raises(Error, match="no visibility"):
        hilo.parse('"func.func"() <{function_type = () -> (), sym_name = "f", sym_visibility = "x"}> ({\n'
                   '"func.return"() : () -> ()\n}) : () -> ()')  # fmt: skip


def test_hlo_text_of_tuples_at_the_entry() -> None:
    t = f"tuple<{T}, tuple<tensor<i32>, {T}>>"
    text = there_and_back(f"func.func @main(%a: {t}, %b: {T}) -> {t} {{ return %a : {t} }}")
    assert "(f32[2], (s32[], f32[2]))" in text.replace("{0}", "")


def test_hlo_text_leaves_out_what_says_something_to_other_tools() -> None:
    there_and_back(f"func.func @main(%a: {T}) {{ sdy.sharding_group %a group_id=3 : {T} return }}")


def test_hlo_text_of_random_numbers_is_stable() -> None:
    types = "(tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<7xf32>"
    text = there_and_back(
        "func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<1xi64>) -> tensor<7xf32> {\n"
        f"%0 = stablehlo.rng %a, %b, %c, distribution = NORMAL : {types}\nreturn %0 : tensor<7xf32> }}"
    )
    assert "constant" not in text


@pytest.mark.parametrize("value", ["-", "9" * 5000, "99999999999999999999"])
def test_numbers_that_only_text_holds(value: str) -> None:
    assert examine(programs.attribute(value).encode(), Effort(optimize=False)) == "read"


def test_text_inside_of_bytecode_is_checked() -> None:
    data = bytecode.write(hilo.parse(programs.attribute("#a.b<c>")))
    assert b"#a.b<c>\0" in data
    with pytest.raises(Error, match=r"the attribute '#a\.b<c\('"):
        hilo.parse(data.replace(b"#a.b<c>\0", b"#a.b<c(\0"))


def test_elements_that_are_no_utf8() -> None:
    items = "1" + "٣" * 30
    with pytest.raises(Error, match="is not a floating-point number"):
        hilo.parse(programs.constant(f"[{items}]", "tensor<1xf32>"))


def test_digits_of_other_scripts_are_no_numbers() -> None:
    with pytest.raises(Error):
        hilo.parse(programs.identity('%0 = "stablehlo.iota"() <{iota_dimension = \u00b2}> : () -> tensor<2xf32>'))


def test_the_shape_that_a_reshape_of_chlo_is_given() -> None:
    with pytest.raises(Error, match="the shape given is \\[32\\]"):
        hilo.parse(f"func.func @main(%a: {T}) -> {T} {{\n%c = stablehlo.constant dense<32> : tensor<1xi32>\n"
                   f"%0 = chlo.dynamic_reshape %a, %c : ({T}, tensor<1xi32>) -> {T}\nreturn %0 : {T}\n}}")  # fmt: skip


def test_axes_that_a_ragged_dot_does_not_have() -> None:
    with pytest.raises(Error, match="lhs_batching dimensions"):
        hilo.parse("""
        func.func @main(%a: tensor<2x9x5xf32>, %b: tensor<3x2x5x4xf32>, %c: tensor<2x3xi64>) -> tensor<2x9x4xf32> {
          %0 = "chlo.ragged_dot"(%a, %b, %c) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
            lhs_batching_dimensions = [8],
            rhs_batching_dimensions = [], lhs_contracting_dimensions = [], rhs_contracting_dimensions = [],
            lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>}>
            : (tensor<2x9x5xf32>, tensor<3x2x5x4xf32>, tensor<2x3xi64>) -> tensor<2x9x4xf32>
          return %0 : tensor<2x9x4xf32> }""")


def test_chains_longer_than_pythons_stack() -> None:
    ones = np.ones(4, np.float32)
    (out,) = hilo.compile(programs.chain(1200, "add {}, %a", "negate {}"))(ones)
    assert np.array_equal(out, hilo.interpret(programs.chain(1200, "add {}, %a", "negate {}"), ones)[0])
    (out,) = hilo.compile(programs.turned(1200))(ones)
    assert np.allclose(out, hilo.interpret(programs.turned(1200), ones)[0], rtol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_branches_are_found_by_halving(count: int) -> None:
    regions = ", ".join(
        f"{{ %c{n} = stablehlo.constant dense<{n}> : tensor<i32>\n%d{n} = stablehlo.add %c{n}, %a : tensor<i32>\n"
        f"stablehlo.return %d{n} : tensor<i32> }}" for n in range(count)
    )  # fmt: skip
    f = hilo.compile(
        f'func.func @main(%a: tensor<i32>, %i: tensor<i32>) -> tensor<i32> {{\n%0 = "stablehlo.case"(%i) ({regions}) : '
        "(tensor<i32>) -> tensor<i32>\nreturn %0 : tensor<i32> }"
    )  # fmt: skip
    for i in (-(1 << 31), -1, *range(count + 2), (1 << 31) - 1):
        wanted = i if 0 <= i < count else count - 1
        assert f(np.int32(100), np.int32(i))[0] == 100 + wanted


def test_formats_of_reduce_precision_have_any_number_that_their_attributes_hold() -> None:
    module = hilo.parse(
        "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        "%0 = stablehlo.reduce_precision %a, format = e2147483647m2147483647 : tensor<2xf32>\n"
        "return %0 : tensor<2xf32> }"
    )
    values = np.array([1.7, np.inf], np.float32)
    assert np.array_equal(hilo.interpret(module, values)[0], hilo.compile(module)(values)[0])


@pytest.mark.parametrize(
    "numbers",
    ["exponent_bits=18446744073709551616, mantissa_bits=0", "exponent_bits=5, mantissa_bits=2147483648"],
)
def test_formats_of_reduce_precision_are_si32(numbers: str) -> None:
    with pytest.raises(hilo.Error, match="which no si32 holds"):
        hilo.parse(
            "HloModule m\n\nENTRY main {\n  a = f32[2] parameter(0)\n"
            f"  ROOT r = f32[2] reduce-precision(a), {numbers}\n}}\n"
        )


def test_inputs_of_which_nothing_is_left_are_inputs() -> None:
    pool = [b"a", b"2x", b"", b"x\ny"]
    made = [mutate.mutated(random.Random(n), "text", pool) for n in range(500)]
    assert b"" in made
    assert len(set(made)) > 100


def test_a_broadcast_to_a_size_that_nothing_says() -> None:
    bounded = "tensor<?xf32, #stablehlo.bounds<9>>"
    text = f"""func.func @main(%a: tensor<f32>) -> {bounded} {{
        %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> {bounded}
        return %0 : {bounded} }}"""
    with pytest.raises(Error, match="a size of the result that nothing says"):
        hilo.compile(text)
