"""The walk that the runtime has ready-made (native/walk.c) does what the one of loop IR does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hilo
from hilo import codegen
from hilo.ir.types import TensorType
from hilo.kernels.convolution_walk import HEAD, MOST_ROWS, PLACES, REGION
from hilo.loop.nodes import Deferred

SOURCE = Path(__file__).parents[2] / "src/hilo/runtime/native/walk.c"

#: lhs [b, h, w, f], rhs [h, w, i, o], result, window
CONVOLUTIONS = {
    "padded": ((2, 13, 11, 16), (3, 3, 16, 37), (2, 13, 11, 37), "pad = [[1, 1], [1, 1]]"),
    "strided": ((1, 15, 14, 24), (3, 5, 24, 40), (1, 7, 5, 40), "stride = [2, 3], pad = [[0, 1], [2, 1]]"),
    "holes": ((1, 12, 17, 19), (3, 3, 19, 33), (1, 10, 13, 33), "pad = [[1, 1], [0, 0]], rhs_dilate = [2, 2]"),
    "spread": ((1, 9, 8, 32), (3, 3, 32, 48), (1, 18, 15, 48), "pad = [[2, 1], [1, 1]], lhs_dilate = [2, 2]"),
    "deep": ((1, 7, 7, 300), (3, 3, 300, 70), (1, 7, 7, 70), "pad = [[1, 1], [1, 1]]"),
}


def convolution(x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], window: str) -> str:
    x_type, w_type, t = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (x, w, out))
    return f"""func.func @main(%x: {x_type}, %w: {w_type}) -> {t} {{
      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{{window}}} {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}}
        : ({x_type}, {w_type}) -> {t}
      return %y : {t}
    }}"""


def product(m: int, k: int, n: int) -> str:
    return f"""func.func @main(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
      %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
      return %c : tensor<{m}x{n}xf32>
    }}"""


TEXTS = {name: convolution(*c) for name, c in CONVOLUTIONS.items()} | {"product": product(37, 1100, 700)}


@pytest.mark.parametrize("name", TEXTS)
def test_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = hilo.compile(TEXTS[name])
    monkeypatch.setattr(codegen, "ready_made", dict)
    own = hilo.compile(TEXTS[name])
    assert "define void @conv_walk(" in own.text("llvm")
    monkeypatch.undo()
    assert "define void @conv_walk(" not in ready.text("llvm")
    assert "@conv_walk" in ready.text("llvm")
    rng = np.random.default_rng(1)
    shapes = [t.shape for t in hilo.parse(TEXTS[name]).functions["main"].param_types if isinstance(t, TensorType)]
    inputs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    for x, y in zip(ready(*inputs), own(*inputs), strict=True):
        assert x.tobytes() == y.tobytes()


def test_tables_have_the_same_words() -> None:
    source = SOURCE.read_text()
    for struct, names in (("places", (*PLACES, "tiles")), ("head", HEAD), ("region", REGION)):
        (body,) = re.findall(rf"struct {struct} {{(.*?)}};", source, re.DOTALL)
        assert tuple(w for w in re.findall(r"\*?(\w+)(?:\[GROUPS\])?[,;]", body)) == names
    assert f"MOST_ROWS = {MOST_ROWS}," in source


def test_deferred() -> None:
    written = []
    f = Deferred("f", [], lambda f: written.append(f))
    assert not written
    assert f.body is f.body
    assert [w.body for w in written] == [f.body]
