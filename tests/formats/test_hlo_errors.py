# ruff: noqa: E501  (programs are quoted as they are printed)
"""Malformed HLO text: one `Error` with file:line:col and the operation, whatever is wrong; and never anything else."""

from __future__ import annotations

import re

import pytest
from hlo_samples import SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text import parse, print_module
from hilo.formats.hlo_text.lexer import HloSource, quote, unquote
from hilo.formats.mlir_text import parse as parse_mlir

HEAD = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  "
TAIL = "\n}\n"

BODIES = [
    ("ROOT y = f32[2] add(x)", "4:8: stablehlo.add: "),
    ("ROOT y = f32[2] add(x, z)", "4:26: add: instruction z is used but not defined before this point"),
    ("ROOT y = f32[3] add(x, x)", "4:8: add: the result type is f32[2] by the op's rules, but f32[3] is declared"),
    ("ROOT y = f32[2] frobnicate(x)", "4:19: unknown opcode 'frobnicate'"),
    ("ROOT y = f32[2] add(x, x), dimensions={0}", "4:30: add: 'dimensions' is no attribute of this instruction; it has result_accuracy"),
    ("ROOT y = f32[2] constant({...})", "4:8: constant: the constant's elements are left out of the text"),
    ("ROOT y = f32[2] constant({1, 2, 3})", "4:8: constant: the nesting of the literal does not fit"),
    ("ROOT y = f32[2] constant({1, z})", "4:8: constant: 'z' is not a floating-point number"),
    ("ROOT y = f32[2] constant(1)", "4:8: constant: the literal of an array needs braces"),
    ("ROOT y = (f32[], f32[]) constant((1))", "4:8: constant: 1 literals for a tuple of 2"),
    ("ROOT y = f32[0,3] constant({1})", "4:8: constant: elements in the literal of a f32[0,3]"),
    ("ROOT y = bf16[] constant(nan(0x80))", "4:8: constant: the payload of nan(0x80) does not fit bf16"),
    ("ROOT y = q7[2] constant({1, 2})", "4:12: unknown element type 'q7'"),
    ("ROOT y = f32[2]{1} negate(x)", "4:12: the layout {1} does not list the 1 dimensions"),
    ("ROOT y = f32[<=99999999999999999999] copy(x)", "4:12: '<=99999999999999999999' is no dimension size"),
    ("ROOT y = f32[2] reduce(x, x), dimensions={0}, to_apply=sum", "4:58: reduce: computation sum is used but not defined"),
    ("ROOT y = f32[2] get-tuple-element(x), index=0", "4:8: get-tuple-element: there is no part 0 of a value of type f32[2]"),
    ("ROOT y = f32[1] slice(x), slice={[0:1}", "4:40: slice: expected ']', found '}'"),
    ("ROOT y = f32[2,?] broadcast(x), dimensions={0}", "4:8: broadcast: the result f32[2,?] must be static"),
    ("ROOT y = f32[2] broadcast(x)", "4:8: broadcast: the attribute 'dimensions' is missing"),
    ("ROOT y = s32[2] iota(), iota_dimension=one", "4:42: iota: expected an integer, found 'one'"),
    ("ROOT y = f32[2] parameter(0)", "4:8: parameter: parameter 0 is defined twice"),
    ("ROOT y = f32[2] parameter(2)", "there are 2 parameters, but no parameter 1"),
    ("x = f32[2] negate(x)", "4:3: instruction x is defined twice"),
    ("ROOT y = f32[4] bitcast(x)", "4:8: bitcast: f32[2] and f32[4] do not have the same number of bytes in memory"),
    ("ROOT y = f32[2]{0:T(*,2)} bitcast(x)", "4:8: bitcast: tiles that join dimensions are not supported"),
    ("ROOT y = (f32[2], f32[2]) add(x, x)", "add: the op has 1 results by its rules, but 2 are declared"),
    ("t = (f32[2]) tuple(x)\n  ROOT y = f32[2] add(t, t)", "5:8: add: operand 0 is a tuple"),
    ("ROOT y = f32[2] all-reduce(x), replica_groups=[3]<=[4]", "4:49: all-reduce: the shapes of the replica groups do not fit"),
    ("ROOT y = f32[2] all-reduce(x), replica_groups=mesh['a'=2] {'b'}", "all-reduce: the axes are not axes of the mesh"),
    ('ROOT y = f32[2] custom-call(x), custom_call_target="a', "4:54: a string that starts here is not closed"),
    ("ROOT y = custom-call(x), custom_call_target=\"a\"", "4:8: custom-call: the shape of the result is missing"),
    ("ROOT y = f32[2] add(x, x), metadata={op_name=\"a\" 3}", "4:52: add: expected a field, found '3'"),
    ("ROOT y = f32[2] while(x), condition=e, body=e", "4:39: while: computation e is used but not defined"),
    ("ROOT y = f32[2] convolution(x, x), dim_labels=bf_io->bff", "dim_labels: 'bff' must have b, f and the digits from 0 on"),
    ("ROOT y = f32[2] pad(x, x), padding=1x1_2", "4:38: pad: padding is low_high or low_high_interior"),
    ("ROOT y = f32[2] sqrt(x), result_accuracy={mode=best}", "4:8: sqrt: malformed result_accuracy {mode=best}"),
    ("ROOT y = f32[2] copy(x)\n  ROOT z = f32[2] copy(x)", "5:3: a second ROOT instruction"),
    ("ROOT y = f32[2] copy(x) ]", "4:27: expected a name, found ']'"),
    ("ROOT y = (f32[2], f32[2]) async-done(x)", "async-done: there is no part 1 of a value of type f32[2]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_errors_say_where_and_what(body: str, message: str) -> None:
    with pytest.raises(Error) as e:
        parse(HEAD + body + TAIL, "a.hlo")
    assert str(e.value).startswith("a.hlo:")
    assert message in str(e.value)


@pytest.mark.parametrize(("body", "message"), [
    ("ROOT y = u64[2] rng-get-and-update-state(), delta=1", "rng-get-and-update-state: StableHLO has no such operation"),
    ("ROOT y = f32[2] stochastic-convert(x, x)", "stochastic-convert: StableHLO has no such operation"),
    ('ROOT y = opaque[] custom-call(x), custom_call_target="a"', "values of type opaque are not supported"),
    ("ROOT y = (f32[1], s32[1]) topk(x), k=1, largest=false", "topk of the smallest elements is not supported"),
])  # fmt: skip
def test_unsupported(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(message)):
        parse(HEAD + body + TAIL)


@pytest.mark.parametrize(("text", "message"), [
    ("HloModule", "1:10: expected a name"),
    ("HloModule m, foo=1", "1:14: unknown attribute 'foo' of the module"),
    ("HloModule m\nENTRY e { }", "2:11: a computation without instructions"),
    ("HloModule m, entry_computation_layout={(f32[])->f32[]}\nENTRY e { ROOT x = s32[] parameter(0) }", "1:1: entry_computation_layout does not"),
    ("HloModule m\ne { ROOT x = s32[] parameter(0) }\ne { ROOT x = s32[] parameter(0) }", "3:1: computation e is defined twice"),
    ("HloModule m, input_output_alias={ {1}: (0, {}) }\nENTRY e { ROOT x = s32[] parameter(0) }", "1:1: an alias or donor names part [1]"),
    ("HloModule m\nENTRY e { ROOT x = s32[] parameter(0) } junk", "expected '{', found the end"),
    (b"HloModule \xff", "not UTF-8 text: byte 10 is 0xff"),
])  # fmt: skip
def test_errors_of_modules(text: str | bytes, message: str) -> None:
    with pytest.raises(Error, match=re.escape(message)):
        parse(text, "a.hlo")


@pytest.mark.parametrize(("body", "message"), [
    ("%0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>", "HLO text has no form"),
    ('%0 = "stablehlo.custom_call"(%n) <{call_target_name = "a"}> : (tensor<1xi64>) -> tensor<2x!quant.uniform<i8:f32, 1.0>>', "HLO text has no type"),
])  # fmt: skip
@pytest.mark.usefixtures("every_op")
def test_what_cannot_be_printed(body: str, message: str) -> None:
    m = parse_mlir(f"func.func @main(%n: tensor<1xi64>) {{\n  {body}\n  return\n}}", "a.mlir")
    with pytest.raises(Unsupported, match=message):
        print_module(m)


def test_deep_nesting() -> None:
    text = "HloModule m\nc0 { ROOT x = s32[] parameter(0) }\np { y = s32[] parameter(0)\n ROOT q = pred[] constant(false) }\n"
    for k in range(1, 80):
        text += f"c{k} {{ x = s32[] parameter(0)\n ROOT w = s32[] while(x), condition=p, body=c{k - 1} }}\n"
    with pytest.raises(Error, match="nested more than 64 levels deep"):
        parse(text)
    with pytest.raises(Error, match="nested"):
        parse("HloModule m\nENTRY e { x = " + "(" * 5000)
    with pytest.raises(Error, match="nested"):
        parse(HEAD + "ROOT y = " + "f32[2] negate(" * 5000)


def test_what_is_used_twice_is_made_once() -> None:
    text = "HloModule m\np { y = s32[] parameter(0)\n ROOT q = pred[] constant(false) }\nc0 { ROOT x = s32[] parameter(0) }\n"
    for k in range(1, 60):
        text += f"c{k} {{ x = s32[] parameter(0)\n v = s32[] while(x), condition=p, body=c{k - 1}\n ROOT w = s32[] while(v), condition=p, body=c{k - 1} }}\n"
    m = parse(text)
    assert len(m["main"].ops) == 3


@given(st.text())
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_strings(text: str) -> None:
    assert unquote(quote(text)) == text


# -- mutations ----------------------------------------------------------------------------------

SEEDS = [s.text for s in SAMPLES.values()]
TOKENS = sorted({t for text in SEEDS for t in HloSource(text, "").tokens if t})


def never_fails_otherwise(text: str) -> None:
    """Parsing gives a module, which prints and parses to the same text, or an `Error` with a place."""
    try:
        module = parse(text)
        printed = print_module(module)
    except Error as e:
        assert re.match(r"\S+:\d+:\d+: ", str(e)), str(e)  # noqa: PT017
    else:
        assert print_module(parse(printed)) == printed


EDIT = st.tuples(st.floats(0, 1), st.integers(0, 6), st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(SEEDS), st.floats(0, 1))
def test_truncated(seed: str, part: float) -> None:
    never_fails_otherwise(seed[: int(len(seed) * part)])


@settings(max_examples=800, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(SEEDS), st.lists(EDIT, min_size=1, max_size=3))
def test_mutated(seed: str, edits: list[tuple[float, int, str]]) -> None:
    text = seed
    for part, cut, new in edits:
        at = int(len(text) * part)
        text = text[:at] + new + text[at + cut :]
    never_fails_otherwise(text)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(SEEDS), st.integers(0, 10**6), st.sampled_from(TOKENS))
def test_another_token(seed: str, number: int, new: str) -> None:
    source = HloSource(seed, "")
    k = number % len(source.tokens)
    at = source.starts[k]
    never_fails_otherwise(seed[:at] + new + seed[at + len(source.tokens[k]) :])


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_token_soup(tokens: list[str]) -> None:
    never_fails_otherwise(HEAD + " ".join(tokens))
