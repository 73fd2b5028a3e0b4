"""What becomes a fusion of kind "attention", and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.kernels import attention as kernel
from hilo.passes import attention

T, U = "tensor<4x2x64x128xf32>", "tensor<4x2x64xf32>"
Q, K = "tensor<4x2x64x16xf32>", "tensor<4x2x128x16xf32>"
HEADS = "batching_dims = [0, 1] x [0, 1]"
SCORES = f"%s = stablehlo.dot_general %q, %k, {HEADS}, contracting_dims = [3] x [3] : ({Q}, {K}) -> {T}"
SOFTMAX = f"""%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [3] : ({T}, tensor<f32>) -> {U}
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : ({U}) -> {T}
  %d = stablehlo.subtract %s, %mb : {T}
  %e = stablehlo.exponential %d : {T}
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : ({T}, tensor<f32>) -> {U}
  %zb = stablehlo.broadcast_in_dim %z, dims = [0, 1, 2] : ({U}) -> {T}
  %p = stablehlo.divide %e, %zb : {T}"""
VALUES = f"%o = stablehlo.dot_general %p, %v, {HEADS}, contracting_dims = [3] x [2] : ({T}, {K}) -> {Q}"


def program(*lines: str, results: str = f"%o : {Q}", more: str = "") -> str:
    types = results.split(" : ")[1]
    body = "\n  ".join(lines)
    return f"func.func @main(%q: {Q}, %k: {K}, %v: {K}{more}) -> ({types}) {{\n  {body}\n  return {results} }}"


def fusions(f: hilo.Executable) -> int:
    return f.text("fuse").count('kind = "attention"')


def check(text: str, monkeypatch: pytest.MonkeyPatch, count: int) -> hilo.Executable:
    """`count` fusions, and the same bits without them."""
    f = hilo.compile(text)
    assert fusions(f) == count
    monkeypatch.setattr(attention, "SCORES", 1 << 60)
    g = hilo.compile(text)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in f.arg_types]  # type: ignore[attr-defined]
    for x, y in zip(f(*arrays), g(*arrays), strict=True):
        np.testing.assert_array_equal(x.view(np.uint32), y.view(np.uint32))
    return f


def test_scores_that_others_need_are_results(monkeypatch: pytest.MonkeyPatch) -> None:
    results = f"%o, %e, %z, %p : {Q}, {T}, {U}, {T}"
    check(program(SCORES, SOFTMAX, VALUES, results=results), monkeypatch, 1)


def test_products_that_need_the_result_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"%b = stablehlo.tanh %o : {Q}",
        f"%w = stablehlo.dot_general %p, %b, {HEADS}, contracting_dims = [2] x [2] : ({T}, {Q}) -> {K}",
    ]
    check(program(SCORES, SOFTMAX, VALUES, *lines, results=f"%o, %w : {Q}, {K}"), monkeypatch, 1)


def test_columns_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"%w = stablehlo.dot_general %p, %q, {HEADS}, contracting_dims = [2] x [2] : ({T}, {Q}) -> {K}"
    f = check(program(SCORES, SOFTMAX, VALUES, line, results=f"%o, %w : {Q}, {K}"), monkeypatch, 1)
    assert f.memory().temporaries == 0


def test_division_after_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"%ob = stablehlo.broadcast_in_dim %z, dims = [0, 1, 2] : ({U}) -> {Q}",
        f"%r = stablehlo.divide %o, %ob : {Q}",
        f"%r2 = stablehlo.add %r, %q : {Q}",
    ]
    text = program(SCORES, SOFTMAX, VALUES.replace("%p", "%e"), *lines, results=f"%r2 : {Q}")
    f = check(text, monkeypatch, 1)
    assert f.memory().temporaries < 4 * 2 * 64 * 128


def test_what_is_fused_with_a_product_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores are needed elsewhere, so that there is no pattern."""
    lines = [f"%r = stablehlo.add %o, %q : {Q}"]
    f = check(program(SCORES, SOFTMAX, VALUES, *lines, results=f"%r, %s : {Q}, {T}"), monkeypatch, 0)
    assert f.text("fuse").count('kind = "contraction"') == 1


def test_scores_used_twice_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    check(program(SCORES, SOFTMAX, VALUES, results=f"%o, %s : {Q}, {T}"), monkeypatch, 0)


def test_weights_stay() -> None:
    x, w = "tensor<256x384xf32>", "tensor<384x384xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}, %u: {w}) -> {x} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
        : ({x}, tensor<f32>) -> tensor<256xf32>
      %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<256xf32>) -> {x}
      %3 = stablehlo.subtract %0, %2 : {x}
      %4 = stablehlo.dot_general %3, %u, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
      return %4 : {x} }}"""
    assert fusions(hilo.compile(text)) == 0


def test_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.Attention, "by_blocks", lambda self: None)
    f = check(program(SCORES, SOFTMAX, VALUES, results=f"%p, %o : {T}, {Q}"), monkeypatch, 1)
    assert f.memory().peak > 0


def test_run_time_batches() -> None:
    shape = """%n = stablehlo.get_dimension_size %q, dim = 0 : (tensor<?x2x64x16xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %rest = stablehlo.constant dense<[2, 64, 128]> : tensor<3xi32>
  %shape = stablehlo.concatenate %n1, %rest, dim = 0 : (tensor<1xi32>, tensor<3xi32>) -> tensor<4xi32>"""
    text = program(SCORES, shape, SOFTMAX, VALUES).replace("4x2x", "?x2x")
    for x in "mz":
        static = f"broadcast_in_dim %{x}, dims = [0, 1, 2] : (tensor<?x2x64xf32>)"
        text = text.replace(static, f"dynamic_broadcast_in_dim %{x}, %shape, dims = [0, 1, 2] "
                                    ": (tensor<?x2x64xf32>, tensor<4xi32>)")  # fmt: skip
    f = hilo.compile(text)
    assert fusions(f) == 0
    rng = np.random.default_rng(1)
    for n in (1, 3):
        q, k, v = (rng.standard_normal((n, 2, s, 16)).astype(np.float32) for s in (64, 128, 128))
        s = np.einsum("bhqd,bhkd->bhqk", q, k)
        p = np.exp(s - s.max(-1, keepdims=True))
        expected = np.einsum("bhqk,bhkd->bhqd", p / p.sum(-1, keepdims=True), v)
        np.testing.assert_allclose(f(q, k, v)[0], expected, rtol=2e-5, atol=2e-5)


def test_two_patterns_that_lead_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one's product needs the first one's result, and gives what a third product of the first one needs."""
    second = "\n".join((SCORES, SOFTMAX, VALUES)).replace("%q,", "%o,").replace("%s", "%ss")
    for name in ("m", "mb", "d", "e", "z", "zb", "p", "o", "low", "zero"):
        for end in (" ", ",", ")"):
            second = second.replace(f"%{name}{end}", f"%{name}2{end}")
    second = second.replace("dot_general %o2,", "dot_general %o,")
    line = f"%w = stablehlo.dot_general %p, %o2, {HEADS}, contracting_dims = [2] x [2] : ({T}, {Q}) -> {K}"
    check(program(SCORES, SOFTMAX, VALUES, second, line, results=f"%w : {K}"), monkeypatch, 2)


def test_masked_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of which nothing is left are NaN, as the program says."""
    mask = [
        f"%no = stablehlo.constant dense<0xFF800000> : {T}",
        "%i = stablehlo.iota dim = 2 : tensor<4x2x64x128xi32>",
        "%c = stablehlo.constant dense<60> : tensor<4x2x64x128xi32>",
        "%keep = stablehlo.compare LT, %i, %c : (tensor<4x2x64x128xi32>, tensor<4x2x64x128xi32>) -> "
        "tensor<4x2x64x128xi1>",
        f"%s = stablehlo.select %keep, %s0, %no : tensor<4x2x64x128xi1>, {T}",
    ]
    f = check(program(SCORES.replace("%s", "%s0"), *mask, SOFTMAX, VALUES), monkeypatch, 1)
    rng = np.random.default_rng(0)
    (out,) = f(*[rng.standard_normal(t.shape).astype(np.float32) for t in f.arg_types])  # type: ignore[attr-defined]
    assert np.isnan(out[:, :, 60:]).all()
    assert np.isfinite(out[:, :, :60]).all()
