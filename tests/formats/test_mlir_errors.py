# ruff: noqa: E501  (programs are quoted as they are printed)
"""Malformed text: one `Error` with file:line:col and the op, whatever is wrong; and never anything else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilo.errors import Error, Unsupported
from hilo.formats.mlir_text import parse, print_module
from hilo.formats.mlir_text.lexer import Source

HEAD = "func.func @f(%x: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {\n  "
TAIL = "\n  return %0 : tensor<2xf32>\n}\n"
T = "tensor<2xf32>"

BODIES = [
    (f"%0 = stablehlo.add %x : {T}", "2:25: stablehlo.add: 1 operands, but the op has 2"),
    (f"%0 = stablehlo.add %x, %y : {T}", "2:26: stablehlo.add: value %y is used but not defined"),
    (f"%0 = stablehlo.add %x, %i : {T}", "2:8: stablehlo.add: operand 1 is of type tensor<i32>, but tensor<2xf32>"),
    (f"%0 = stablehlo.transpose %x, dims = [1] : ({T}) -> {T}", "2:8: stablehlo.transpose: "),
    (f"%0 = stablehlo.transpose %x, dim = [0] : ({T}) -> {T}", "2:32: stablehlo.transpose: expected 'dims = ...', found 'dim'"),
    (f"%0 = stablehlo.nonsense %x : {T}", "2:8: stablehlo.nonsense: unknown op"),
    (f'%0 = "other.add"(%x) : ({T}) -> {T}', "2:8: other.add: unknown op"),
    (f"%0 = stablehlo.abs %x : ({T}) -> tensor<3xf32>", "2:8: stablehlo.abs: the result type is tensor<2xf32> by the op's rules"),
    (f"%0 = stablehlo.abs %x {{a = 1, a = 2}} : {T}", "2:33: stablehlo.abs: attribute 'a' is given twice"),
    (f"%0:2 = stablehlo.abs %x : {T}", "2:10: stablehlo.abs: the op has 1 results, but 2 are named"),
    ("%0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>", "2:27: stablehlo.constant: the nesting of the literal"),
    ("%0 = stablehlo.constant dense<[1.0, abc]> : tensor<2xf32>", "2:27: stablehlo.constant: 'abc' is not a floating-point number"),
    ('%0 = stablehlo.constant dense<"0xABC"> : tensor<2xf32>', "2:27: stablehlo.constant: a hex string needs an even number"),
    ('%0 = stablehlo.constant dense<"0xAABBCCDDEE"> : tensor<2xf32>', "2:27: stablehlo.constant: 5 bytes of data for 2 elements"),
    ("%0 = stablehlo.constant dense<300> : tensor<2xi8>", "2:27: stablehlo.constant: the integer 300 is out of the range of i8"),
    ("%0 = stablehlo.constant dense<1.5> : tensor<2xi32>", "2:27: stablehlo.constant: '1.5' is not an integer"),
    ("%0 = stablehlo.constant dense<1> : tensor<2xq7>", "2:38: stablehlo.constant: 'q7' is not an element type"),
    ("%0 = stablehlo.constant dense<1> : tensor<99999999999999999999xi8>", "dimension size 99999999999999999999 does not fit"),
    ("%0 = stablehlo.constant dense_resource<w> : tensor<2xf32>", "2:27: stablehlo.constant: the file holds no data for dense_r"),
    (f"%0 = stablehlo.compare XX, %x, %x : ({T}, {T}) -> tensor<2xi1>", "2:26: stablehlo.compare: expected one of EQ, NE, GE"),
    (f"%0 = call @g(%x) : ({T}) -> {T}", "2:8: func.call: function @g is not defined"),
    (f"%0 = call @f(%x) : ({T}) -> {T}", "2:8: func.call: @f has type (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>, but is called"),
    (f"%0 = call @f(%x, %i) : ({T}, tensor<i32>) -> {T}", "2:8: func.call: recursive calls are not allowed: @f -> @f"),
    (f"%0 = stablehlo.abs %x : {T}\n  %0 = stablehlo.abs %x : {T}", "3:3: stablehlo.abs: value %0 is defined twice"),
    (f'%0 = stablehlo.abs %x : {T} loc("abc)', "2:45: a string that starts here is not closed"),
    (f"%0 = stablehlo.abs %x : {T} loc(#nowhere)", "2:45: stablehlo.abs: location alias #nowhere is not defined"),
    ('%0 = "stablehlo.slice"(%x) <{start_indices = 5 : i64}> : (tensor<2xf32>) -> tensor<2xf32>',
     "2:32: stablehlo.slice: attribute 'start_indices' must be an array of integers"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_errors_say_where_and_what(body: str, message: str) -> None:
    with pytest.raises(Error) as e:
        parse(HEAD + body + TAIL, "a.mlir")
    assert str(e.value).startswith("a.mlir:")
    assert message in str(e.value)


@pytest.mark.parametrize(("text", "kind", "message"), [
    ("", Error, "f:1:1: expected a module or a function"),
    ("hello", Error, "f:1:1: expected a function"),
    ("module {", Error, "f:1:9: expected the '}' that closes the module"),
    ("module { module {} }", Unsupported, "f:1:10: modules inside modules"),
    ("module {} module {}", Error, "f:1:11: a second module"),
    ("module {} x", Error, "f:1:11: expected the end of the text"),
    ("func.func @f() { return }\nfunc.func @f() { return }", Error, "f:2:1: function @f is defined twice"),
    ("func.func @f() {\n^bb0:\n return }", Unsupported, "f:2:1: functions of several blocks"),
    ("func.func @f(tensor<2xf32>) { return }", Error, "f:1:1: the parameters of a function with a body need names"),
    ("func.func @f() -> tensor<*xf99>", Error, "f:1:19: 'f99' is not an element type"),
    (b"module { \xff", Error, "f: not UTF-8 text"),
    ("module {} {-# dialect_resources: { builtin: { a: \"0xZZ\" } } #-}", Error, "f:1:50: resource a is no hex string"),
])  # fmt: skip
def test_files(text: str | bytes, kind: type[Error], message: str) -> None:
    with pytest.raises(kind) as e:
        parse(text, "f")
    assert message in str(e.value)


@pytest.mark.parametrize("text", [
    "module attributes {a = " + "[" * 5000,
    "module attributes {a = " + "[" * 5000 + "]" * 5000 + "} {}",
    "func.func @f(%x: " + "tuple<" * 5000,
    "func.func @f() { return } loc(" + "callsite(" * 5000,
    HEAD + '%0 = "stablehlo.if"(%i) ({ ' * 3000,
    "module attributes {" + "tensor<" * 20000,
    "module attributes {a = " + '\\"' * 20000 + '"',
    "#a = #a\nmodule attributes {x = #a} {}",
    "#l = loc(#l)\nfunc.func @f() { return } loc(#l)",
    "".join(f"#a{i} = [#a{i + 1}, #a{i + 1}]\n" for i in range(64)) + "#a64 = 1\nmodule attributes {x = #a0} {}",
    "!a = tuple<!a>\nfunc.func @f(%x: !a) { return }",
])  # fmt: skip
def test_depth_is_bounded(text: str) -> None:
    try:
        parse(text)
    except Error as e:
        assert re.match(r"<text>:\d+:\d+: ", str(e))  # noqa: PT017


def test_a_splat_takes_no_memory() -> None:
    text = "func.func @f() -> tensor<99999999999xf32> {\n  %0 = stablehlo.constant dense<1.0> : tensor<99999999999xf32>\n"
    value = parse(text + "  return %0 : tensor<99999999999xf32>\n}")["f"].ops[0].attrs["value"]
    assert value.is_splat
    assert value.data.strides == (0,)


SEED = """module @m attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.x = "a"}, %arg1: tensor<i32>) -> (tensor<2xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<[[1.0, 0x7FC00000, -2.5e-3], [0.0, 1.0, 2.0]]> : tensor<2x3xf32> loc(#loc1)
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.add %arg0, %c : tensor<2x3xf32> loc("x"(callsite("f":1:2 at #loc1)))
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %2:2 = stablehlo.while(%i = %arg1, %y = %1) : tensor<i32>, tensor<2xf32>
    cond {
      %d = "stablehlo.constant"() <{value = dense<"0x05000000"> : tensor<i32>}> : () -> tensor<i32>
      %p = stablehlo.compare LT, %i, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.slice %0 [0:2, 1:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
      %t = stablehlo.reshape %s : (tensor<2x1xf32>) -> tensor<2xf32>
      stablehlo.return %i, %t : tensor<i32>, tensor<2xf32>
    }
    %3 = call @g(%2#1) : (tensor<2xf32>) -> tensor<2xf32>
    return %3 : tensor<2xf32>
  }
  func.func private @g(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
#loc1 = loc("file.py":3:4 to :9)
"""
TOKENS = sorted({t for t in Source(SEED, "").tokens if t})


def never_fails_otherwise(text: str) -> None:
    """Parsing gives a module, which prints and parses to the same, or an `Error` with a place."""
    try:
        module = parse(text)
    except Error as e:
        assert re.match(r"\S+:\d+:\d+: ", str(e)), str(e)  # noqa: PT017
    else:
        assert list(parse(print_module(module)).functions.values()) == list(module.functions.values())


def test_the_seed_is_valid() -> None:
    assert list(parse(SEED).functions) == ["main", "g"]


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.integers(0, len(SEED)))
def test_truncated(length: int) -> None:
    never_fails_otherwise(SEED[:length])


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, len(SEED)), st.integers(0, 6), st.one_of(st.sampled_from(TOKENS), st.text(max_size=3))),
                min_size=1, max_size=3))  # fmt: skip
def test_mutated(edits: list[tuple[int, int, str]]) -> None:
    text = SEED
    for at, cut, new in edits:
        text = text[:at] + new + text[at + cut :]
    never_fails_otherwise(text)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_token_soup(tokens: list[str]) -> None:
    never_fails_otherwise("func.func @f(%a: tensor<2xf32>) {\n" + " ".join(tokens))
