"""Graphs of programs: the text is what Graphviz reads, and says what the program is."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import hilo
from hilo.formats.dot import COLORS, kind_of, print_function, quote
from hilo.ir.module import Function
from hilo.options import Options
from hilo.pipeline import optimize
from hilo.testing.generate import generate

LOOP = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %n: tensor<i32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %f0 = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4x8xf32>
   cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %t = stablehlo.tanh %d : tensor<4x8xf32> loc("act/tanh"("model.py":7:3))
    %s = stablehlo.sine %t : tensor<4x8xf32>
    stablehlo.return %j, %s : tensor<i32>, tensor<4x8xf32>
  }
  %sum = stablehlo.reduce(%r#1 init: %f0) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %r#1, %sum : tensor<4x8xf32>, tensor<4xf32>
}
"""

STRING = r'"(?:[^"\\]|\\.)*"'
TOKEN = re.compile(rf'\s*(?:({STRING})|([A-Za-z_][\w.]*|-?[\d.]+)|(->|[{{}}\[\];=,]))', re.DOTALL)


def parsed(text: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, dict[str, str]]], dict[str, list[str]]]:
    """Nodes with attributes, edges, and the nodes in each cluster (those in clusters in it, too). A small reader of
    the language as it is used here: an assertion fails for anything else."""
    tokens, at = [], 0
    while at < len(text.rstrip()):
        m = TOKEN.match(text, at)
        assert m, text[at : at + 40]
        tokens.append(m[0].strip())
        at = m.end()
    nodes: dict[str, dict[str, str]] = {}
    edges: list[tuple[str, str, dict[str, str]]] = []
    clusters: dict[str, list[str]] = {}
    stack: list[str] = []
    it = iter(tokens)
    assert next(it) == "digraph"
    assert next(it)[0] == '"'
    assert next(it) == "{"
    stack.append("")
    for token in it:
        if token == "}":
            stack.pop()
            continue
        assert stack, "text behind the graph"
        if token == "subgraph":
            name = next(it)
            assert name.startswith("cluster_")
            assert name not in clusters
            clusters[name] = []
            stack.append(name)
            assert next(it) == "{"
            continue
        target = None
        following = next(it)
        if following == "->":
            target, following = next(it), next(it)
        attrs: dict[str, str] = {}
        assert following == "["
        while following != "]":
            key, equals, value, following = next(it), next(it), next(it), next(it)
            assert equals == "="
            assert following in ",]"
            attrs[key] = unquoted(value)
        assert next(it) == ";"
        if target is not None:
            edges.append((token, target, attrs))
        elif token in ("graph", "node", "edge"):
            if token == "graph" and stack[-1]:
                clusters[f"{stack[-1]} label"] = [attrs["label"]]
        else:
            assert token not in nodes
            nodes[token] = attrs
            for c in stack[1:]:
                clusters[c].append(token)
    assert not stack
    assert all(a in nodes and b in nodes for a, b, _ in edges)
    return nodes, edges, clusters


def unquoted(text: str) -> str:
    if text[:1] != '"':
        return text
    plain = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text[1:-1], flags=re.DOTALL)
    return plain.replace("&amp;", "&")


def optimized(text: str) -> Function:
    return optimize(hilo.parse(text), "main", Options())


def test_loops_and_fusions_are_boxes() -> None:
    nodes, edges, clusters = parsed(print_function(optimized(LOOP)))
    label = {n: a["label"].split("\n")[0] for n, a in nodes.items()}
    inside = {clusters[f"{c} label"][0]: {label[n] for n in members} for c, members in clusters.items()
              if not c.endswith("label")}  # fmt: skip
    assert {"while", "condition", "body"} <= inside.keys()
    assert {"dot_general", "tanh", "sine"} <= inside["body"] <= inside["while"]
    assert inside["contraction fusion"] >= {"dot_general", "tanh"}
    assert "compare" in inside["condition"]
    assert "reduce" not in inside["while"]
    (tanh,) = (n for n in nodes if label[n] == "tanh")
    (dot,) = (n for n in nodes if label[n] == "dot_general")
    assert (dot, tanh) in [(a, b) for a, b, _ in edges]
    assert "f32[4,8]" in nodes[tanh]["label"]
    assert "act/tanh\nmodel.py:7" in nodes[tanh]["tooltip"]
    (loop,) = (n for n in nodes if label[n] == "while")
    assert any(a == loop and attrs.get("label") == "1" for a, _, attrs in edges)  # which of its results


def test_kinds_have_colours() -> None:
    nodes, _, _ = parsed(print_function(optimized(LOOP)))
    for name, kind in (("dot_general", "contraction"), ("tanh", "elementwise"), ("reduce", "reduction"),
                       ("while", "control flow"), ("parameter 0", "parameter"), ("result 1", "result")):  # fmt: skip
        (fill,) = {a["fillcolor"] for a in nodes.values() if a["label"].split("\n")[0] == name}
        assert fill == COLORS[kind][0], name


def test_every_op_has_a_kind() -> None:
    from hilo.testing.fuzz_seeds import programs

    found = {kind_of(o) for m in programs() for o in m["main"].ops if o.name != "get"}
    assert found | {"result"} == set(COLORS)


def test_constants_are_short() -> None:
    text = """func.func @main(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<3xi32>, tensor<f32>) {
      %big = stablehlo.iota dim = 0 : tensor<4096xf32>
      %half = stablehlo.constant dense<0.5> : tensor<4096xf32>
      %few = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>
      %one = stablehlo.constant dense<2.5> : tensor<f32>
      %0 = stablehlo.multiply %x, %half : tensor<4096xf32>
      %1 = stablehlo.subtract %0, %big : tensor<4096xf32>
      return %1, %few, %one : tensor<4096xf32>, tensor<3xi32>, tensor<f32>
    }"""
    graph = print_function(optimized(text))
    labels = [a["label"] for a in parsed(graph)[0].values()]
    assert any(label.startswith("multiply\noperand 1 = 0.5\n") for label in labels)
    assert "constant\n1, -2, 3\ni32[3]" in labels
    assert "constant\n2.5\nf32[]" in labels  # a result has a node of its own
    assert len(graph) < 5000


@pytest.mark.parametrize("seed", range(24))
def test_any_program_is_a_graph(seed: int) -> None:
    module = generate(seed, 5 + 2 * seed)
    for f in (module["main"], optimize(module, "main", Options())):
        text = print_function(f)
        assert text == print_function(f)
        nodes, edges, _ = parsed(text)
        assert sum(a["label"].startswith("parameter ") for a in nodes.values()) == len(f.params)
        reached = {b for _, b, _ in edges}
        ends = [n for n, a in nodes.items() if re.match(r"result( \d+)?\n", a["label"])]
        assert len(ends) >= len(f.results)
        assert reached >= set(ends)


STRANGE = ['a"b', "back\\slash \\N \\G", "line\nbreak", "<b>&amp;</b> & <", "\0\x1b[31m", "\ud800", "{|}", "é💥", "%s"]


@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_any_name_is_quoted(name: str) -> None:
    shown = re.sub("[\0\x1b\ud800]", "\ufffd", name)
    assert unquoted(quote(name)) == shown
    f = optimized(LOOP)
    nodes, _, _ = parsed(print_function(Function(name, f.params, f.ops, f.results)))
    assert nodes


needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="dot, of Graphviz, is not installed")


def drawn(text: str) -> ElementTree.Element:
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, timeout=60, check=True)
    assert not done.stderr
    return ElementTree.fromstring(done.stdout)


@needs_dot
def test_graphviz_draws_it() -> None:
    svg = drawn(print_function(optimized(LOOP)))
    texts = {"".join(t.itertext()) for t in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert {"tanh", "dot_general", "while", "body", "f32[4,8]"} <= texts
    assert len([g for g in svg.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "cluster"]) >= 4


@needs_dot
@pytest.mark.parametrize("name", [s for s in STRANGE if "\n" not in s], ids=ascii)
def test_graphviz_shows_names_as_they_are(name: str) -> None:
    f = optimized(LOOP)
    svg = drawn(print_function(Function(name, f.params, f.ops, f.results)))
    texts = ["".join(t.itertext()) for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    shown = re.sub("[\0\x1b\ud800]", "\ufffd", name)
    assert any(t.startswith(f"{shown}: 3 parameters") for t in texts)


@needs_dot
@pytest.mark.parametrize("seed", [3, 11, 17])
def test_graphviz_draws_random_programs(seed: int) -> None:
    drawn(print_function(optimize(generate(seed, 40), "main", Options())))
