"""The steps of sorts that the runtime has ready-made (native/sort.c) do what those of loop IR do."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo import codegen

#: Shape, axis, type, how elements are compared.
SORTS = {
    "row": ((4099,), 0, "f32", "TOTALORDER"),
    "short_rows": ((5, 131), 1, "i32", "SIGNED"),
    "wide_digits": ((40_003,), 0, "ui32", "UNSIGNED"),
    "chunks": ((150_001,), 0, "f32", "TOTALORDER"),
    "chunks_of_words": ((140_003,), 0, "i64", "SIGNED"),
    "not_a_number": ((1000,), 0, "f32", "FLOAT"),
}


def text(shape: tuple[int, ...], axis: int, scalar: str, kind: str) -> str:
    t = f"tensor<{'x'.join(map(str, shape))}x{scalar}>"
    return f"""func.func @main(%x: {t}) -> {t} {{
      %y = "stablehlo.sort"(%x) <{{dimension = {axis} : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<{scalar}>, %b: tensor<{scalar}>):
        %c = stablehlo.compare LT, %a, %b, {kind} : (tensor<{scalar}>, tensor<{scalar}>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) : ({t}) -> {t}
      return %y : {t}
    }}"""


@pytest.mark.parametrize("name", SORTS)
def test_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, axis, scalar, _ = SORTS[name]
    ready = hilo.compile(text(*SORTS[name]))
    monkeypatch.setattr(codegen, "ready_made", dict)
    own = hilo.compile(text(*SORTS[name]))
    monkeypatch.undo()
    assert "@radix_" in ready.text("llvm")
    assert " @radix_starts(ptr %p0" in own.text("llvm")
    rng = np.random.default_rng(1)
    dtype = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32, "i64": np.int64}[scalar]
    few = rng.integers(0, 7, shape).astype(dtype)  # all have the same first digits
    many = rng.integers(0, 2**32, shape, np.uint32).astype(np.uint64) * np.uint64(0x1_0000_0001)
    for x in (few, many.view(dtype).reshape(-1)[: few.size].reshape(shape)):
        with np.errstate(invalid="ignore"):
            (a,), (b,) = ready(x), own(x)
        assert a.tobytes() == b.tobytes()
        if dtype is not np.float32:
            assert np.array_equal(a, np.sort(x, axis))
