"""Attention by blocks of rows: the same bits as three kernels one after the other; what does not fit stays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo.passes import attention

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]
NAMES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16"}


def tensor(shape: tuple[int, ...], name: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{name}>"


def program(q: tuple[int, ...], k: tuple[int, ...], batch: tuple[int, ...], name: str, extra: str = "") -> str:
    """softmax(q k^T * 0.25) v; `batch` are the batch axes of q, k and v, whose last axis is contracted or kept."""
    rows, columns = (next(n for i, n in enumerate(s) if i not in batch) for s in (q, k))
    sizes = tuple(q[i] for i in batch)
    s, r = (*sizes, rows, columns), (*sizes, rows)
    x, y, t, u, o = (tensor(shape, name) for shape in (q, k, s, r, (*sizes, rows, k[-1])))
    own, dims = list(batch), list(range(len(r)))
    back = next(i for i in range(len(k)) if i not in batch)
    products = (
        f"batching_dims = {own} x {own}, contracting_dims = [{len(q) - 1}] x [{len(k) - 1}]",
        f"batching_dims = {list(range(len(sizes)))} x {own}, contracting_dims = [{len(r)}] x [{back}]",
    )
    reduces = f"({t}, tensor<{name}>) -> {u}"
    return f"""func.func @main(%q: {x}, %k: {y}, %v: {y}) -> {o} {{
      %0 = stablehlo.dot_general %q, %k, {products[0]} : ({x}, {y}) -> {t}
      %c = stablehlo.constant dense<0.25> : {t}
      %1 = stablehlo.multiply %0, %c : {t}
      {extra}
      %low = stablehlo.constant dense<-1.0e30> : tensor<{name}>
      %zero = stablehlo.constant dense<0.0> : tensor<{name}>
      %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum across dimensions = [{len(r)}] : {reduces}
      %3 = stablehlo.broadcast_in_dim %2, dims = {dims} : ({u}) -> {t}
      %4 = stablehlo.subtract %1, %3 : {t}
      %5 = stablehlo.exponential %4 : {t}
      %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [{len(r)}] : {reduces}
      %7 = stablehlo.broadcast_in_dim %6, dims = {dims} : ({u}) -> {t}
      %8 = stablehlo.divide %5, %7 : {t}
      %9 = stablehlo.dot_general %8, %v, {products[1]} : ({t}, {y}) -> {o}
      return %9 : {o} }}"""


def both(text: str, monkeypatch: pytest.MonkeyPatch, arrays: list[np.ndarray], **more: object) -> str:
    """Compile with and without blocks, compare bits; gives the table of kernels."""
    blocks = hilo.compile(text, **more)  # type: ignore[arg-type]
    monkeypatch.setattr(attention, "SCORES", 1 << 60)
    whole = hilo.compile(text, **more)  # type: ignore[arg-type]
    for x, y in zip(blocks(*arrays), whole(*arrays), strict=True):
        np.testing.assert_array_equal(x.view(np.uint8), y.view(np.uint8))
    return blocks.text("kernels")


def values(text_shapes: list[tuple[int, ...]], dtype: np.typing.DTypeLike) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(dtype) for s in text_shapes]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("q", "k", "batch"),
    [
        ((2, 3, 100, 16), (2, 3, 700, 16), (0, 1)),
        ((211, 3, 20), (530, 3, 20), (1,)),  # heads between
        ((1, 1009, 8), (1, 300, 8), (0,)),
        ((600, 33), (451, 33), ()),
    ],
)
def test_layouts(
    target: str, q: tuple[int, ...], k: tuple[int, ...], batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = both(program(q, k, batch, "f32"), monkeypatch, values([q, k, k], np.float32), target=target)
    assert len(table.splitlines()) == 2, table


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16], ids=["f64", "bf16"])
def test_types(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = (2, 300, 16), (2, 1000, 16)
    table = both(program(q, k, (0,), NAMES[np.dtype(dtype).name]), monkeypatch, values([q, k, k], dtype))
    assert len(table.splitlines()) == 2, table


@pytest.mark.parametrize("threads", [1, 2])
def test_long_rows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = (70, 8), (8192, 8)
    both(program(q, k, (), "f32"), monkeypatch, values([q, k, k], np.float32), threads=threads)


def test_masks_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    t = "tensor<600x500x{}>"
    extra = f"""%i = stablehlo.iota dim = 0 : {t.format("i32")}
      %j = stablehlo.iota dim = 1 : {t.format("i32")}
      %m = stablehlo.compare GE, %i, %j : ({t.format("i32")}, {t.format("i32")}) -> {t.format("i1")}
      %low2 = stablehlo.constant dense<-1.0e9> : {t.format("f32")}
      %masked = stablehlo.select %m, %1, %low2 : {t.format("i1")}, {t.format("f32")}"""
    text = program((600, 8), (500, 8), (), "f32", extra)
    head, tail = text.split("%masked =")
    tail = tail.replace("reduce(%1 ", "reduce(%masked ").replace("subtract %1,", "subtract %masked,")
    text = head + "%masked =" + tail
    table = both(text, monkeypatch, values([(600, 8), (500, 8), (500, 8)], np.float32))
    assert len(table.splitlines()) == 2


def test_no_memory_for_scores() -> None:
    f = hilo.compile(program((2, 600, 16), (2, 500, 16), (0,), "f32"))
    assert f.memory().temporaries < 100_000
