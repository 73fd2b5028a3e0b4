# ruff: noqa: E501  (programs are quoted as they are printed)
"""Regions: block arguments, what they capture, the reducers' short form; and that printing puts captures back."""

from __future__ import annotations

import numpy as np
import pytest

from hilo.errors import Error
from hilo.formats.mlir_text import parse, print_function
from hilo.ir.module import Function
from hilo.ir.op import Op

WHILE = """
func.func @main(%n: tensor<i32>, %step: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %start = stablehlo.negate %step : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.add %x, %step : tensor<f32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<f32>
}
"""


def find(f: Function, name: str) -> Op:
    return next(o for o in f.ops if o.name == name)


def test_while_takes_captures_as_trailing_operands_of_both_regions() -> None:
    f = parse(WHILE)["main"]
    loop = find(f, "while")
    n, step = f.params
    assert loop.operands[2:] == (n, step)
    cond, body = loop.attrs["cond"], loop.attrs["body"]
    assert [p.type for p in cond.params] == [p.type for p in body.params] == [o.type for o in loop.operands]
    assert [p.attrs["index"] for p in cond.params] == [0, 1, 2, 3] == [p.attrs["index"] for p in body.params]
    assert cond.results[0].operands == (cond.params[0], cond.params[2])
    assert body.results[1].operands == (body.params[1], body.params[3])


def test_captured_constants_are_made_again_inside() -> None:
    f = parse(WHILE)["main"]
    body = find(f, "while").attrs["body"]
    assert body.results[0].operands[1].name == "constant"
    assert body.results[0].operands[1] in body.ops
    assert not any(o.name == "constant" for o in find(f, "while").operands[2:])


def test_captures_are_put_back() -> None:
    f = parse(WHILE)["main"]
    text = print_function(f)
    assert parse(text)["main"] == f
    assert "stablehlo.while(%iterArg0 = %0, %iterArg1 = %2) : tensor<i32>, tensor<f32>" in text
    assert "compare LT, %iterArg0, %arg0 :" in text


def test_two_regions_capture_different_values() -> None:
    f = parse("""
    func.func @main(%p: tensor<i1>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %r = "stablehlo.if"(%p) ({
        %s = stablehlo.sine %a : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }, {
        %s = stablehlo.add %b, %a : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %r : tensor<f32>
    }""")["main"]
    op = find(f, "if")
    assert op.operands == f.params  # the predicate, then a and b in the order of their first use
    yes, no = op.attrs["true_branch"], op.attrs["false_branch"]
    assert len(yes.params) == len(no.params) == 2
    assert no.results[0].operands == (no.params[1], no.params[0])
    assert parse(print_function(f))["main"] == f


NESTED = """
func.func @main(%n: tensor<i32>, %k: tensor<i32>) -> tensor<i32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%i = %z) : tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %t = stablehlo.add %i, %k : tensor<i32>
    %c = stablehlo.compare LT, %t, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %q = "stablehlo.if"(%c) ({
      %u = stablehlo.add %t, %z : tensor<i32>
      stablehlo.return %u : tensor<i32>
    }, {
      stablehlo.return %k : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    stablehlo.return %q : tensor<i32>
  }
  return %r : tensor<i32>
}
"""


def test_nested_regions_capture_through_each_other() -> None:
    from hilo.ir.interpret import run

    f = parse(NESTED)["main"]
    loop = find(f, "while")
    assert loop.operands[1:] == f.params
    inner = find(loop.attrs["body"], "if")
    assert [o.name for o in inner.operands[1:]] == ["add", "parameter"]
    assert parse(print_function(f))["main"] == f
    assert run(f, [np.int32(10), np.int32(11)])[0] == 11


REDUCE = """
func.func @main(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<2xf32> {{
  %r = {reduce}
  return %r : tensor<2xf32>
}}
"""
TYPES = "(tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>"
REDUCES = [
    f"stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [1] : {TYPES}",
    f"""stablehlo.reduce(%x init: %v) across dimensions = [1] : {TYPES}
    reducer(%a: tensor<f32>, %b: tensor<f32>) {{
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}""",
    f""""stablehlo.reduce"(%x, %v) <{{dimensions = array<i64: 1>}}> ({{
    ^bb0(%a: tensor<f32> loc("a"), %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }}) : {TYPES}""",
]


def test_the_three_forms_of_reduce_are_the_same() -> None:
    short, long, generic = (parse(REDUCE.format(reduce=r))["main"] for r in REDUCES)
    assert short == long == generic
    assert "applies stablehlo.add across dimensions = [1]" in print_function(generic)


def test_a_reducer_of_two_inputs_pairs_its_arguments() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>, %i: tensor<4xi32>, %v: tensor<f32>, %w: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
      %r:2 = stablehlo.reduce(%x init: %v), (%i init: %w) across dimensions = [0] : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
       reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
        %s = stablehlo.maximum %a, %b : tensor<f32>
        %t = stablehlo.subtract %c, %d : tensor<i32>
        stablehlo.return %s, %t : tensor<f32>, tensor<i32>
      }
      return %r#0, %r#1 : tensor<f32>, tensor<i32>
    }"""
    f = parse(text)["main"]
    body = find(f, "reduce").attrs["body"]
    assert [str(p.type) for p in body.params] == ["f32[]", "i32[]", "f32[]", "i32[]"]
    assert body.results[1].operands == (body.params[1], body.params[3])
    assert parse(print_function(f))["main"] == f


def test_a_reducer_may_capture() -> None:
    text = REDUCE.format(reduce=REDUCES[1].replace("stablehlo.add %a, %b", "stablehlo.add %v, %b"))
    f = parse(text)["main"]
    assert find(f, "reduce").operands == (*f.params, f.params[1])
    assert parse(print_function(f))["main"] == f


@pytest.mark.usefixtures("every_op")
@pytest.mark.parametrize("op", [
    '''%0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<i32>, %arg7: tensor<i32>):
    %1 = stablehlo.compare LT, %arg4, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)''',
    '''%0 = "stablehlo.case"(%arg3) ({
    stablehlo.return %arg0 : tensor<4xf32>
  }, {
    %1 = stablehlo.negate %arg0 : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>''',
    '''%0 = "stablehlo.select_and_scatter"(%arg0, %arg0, %arg2) <{window_dimensions = array<i64: 1>, window_strides = array<i64: 1>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %1 = stablehlo.compare GE, %arg4, %arg5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
    %1 = stablehlo.add %arg6, %arg7 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>''',
    '''%0 = "stablehlo.map"(%arg0) <{dimensions = array<i64: 0>}> ({
  ^bb0(%arg4: tensor<f32>):
    %1 = stablehlo.add %arg4, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>''',
    '''%0 = "stablehlo.reduce_window"(%arg0, %arg2) <{padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 2>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %1 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>''',
    '''%0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %1 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>''',
    '''%0:2 = chlo.scan(%arg0) inits(%arg2) dimension=0 {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %1 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)''',
])  # fmt: skip
def test_ops_with_regions_round_trip(op: str) -> None:
    head = "%arg0: tensor<4xf32>, %arg1: tensor<4xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>"
    result = "%0#0" if op.startswith("%0:2") else "%0"
    f = parse(f"func.func @main({head}) -> tensor<4xf32> {{\n  {op}\n  return {result} : tensor<4xf32>\n}}")["main"]
    assert parse(print_function(f))["main"] == f


@pytest.mark.parametrize(("old", "new", "message"), [
    ("%y = stablehlo.add %x, %step", "%y = stablehlo.add %x, %r#1", "<text>:12:28: stablehlo.add: value %r#1 is used but not defined"),
    ("%j, %y : tensor<i32>, tensor<f32>\n  }\n", "%j, %y : tensor<i32>, tensor<i32>\n  }\n", "<text>:13:22: stablehlo.return: operand 1"),
    ("stablehlo.return %c : tensor<i1>\n", "", "<text>:9:7: stablehlo.while: expected an op or the block's return"),
    ("%r#0, %r#1", "%j, %r#1", "<text>:15:10: func.return: value %j is used but not defined"),
])  # fmt: skip
def test_scopes(old: str, new: str, message: str) -> None:
    assert old in WHILE
    with pytest.raises(Error) as e:
        parse(WHILE.replace(old, new))
    assert message in str(e.value)
