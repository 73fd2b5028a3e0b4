"""What the runtime has ready-made to pack bytes (native/bytes.c) does what the functions of loop IR do."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo import codegen

SHAPES = [(33, 515, 257), (64, 130, 512), (17, 1024, 161), (130, 2, 300)]


def text(m: int, k: int, n: int) -> str:
    return f"""func.func @main(%a: tensor<{m}x{k}xi8>, %b: tensor<{k}x{n}xi8>) -> tensor<{m}x{n}xi32> {{
      %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}xi8>, tensor<{k}x{n}xi8>) -> tensor<{m}x{n}xi32>
      return %c : tensor<{m}x{n}xi32>
    }}"""


@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_bytes(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    m, k, n = shape
    ready = hilo.compile(text(*shape))
    monkeypatch.setattr(codegen, "ready_made", dict)
    own = hilo.compile(text(*shape))
    monkeypatch.undo()
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (k, n)).astype(np.int8)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    for program in (ready, own):
        (c,) = program(a, b)
        assert np.array_equal(c, expected)
    if "dpbusd" in own.text("asm"):  # the way of dot products of unsigned with signed bytes
        assert "@bytes_sum" in ready.text("llvm")
