"""Random programs without the sizes of their arguments: compiled for any, they give what they gave."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.ir.types import has_unknown_sizes
from hilo.ir.verify import verify
from hilo.passes.inline import inline
from hilo.testing import compare
from hilo.testing.agree import kinds
from hilo.testing.generate import generate, inputs
from hilo.testing.unsized import unsized


@pytest.mark.parametrize("seed", [*range(24), 72, 115])  # the last ones hold tuples
def test_programs_without_sizes_agree(seed: int) -> None:
    module = generate(seed, 8)
    found, arrays = unsized(module), inputs(module, seed)
    if found is None:
        assert not any(a.ndim for a in arrays)
        return
    verify(found, types=True)
    want = hilo.interpret(module, *arrays)
    exact = [k == "exact" for k in kinds(inline(module, "main"))]
    for got in (hilo.interpret(found, *arrays), hilo.compile(found)(*arrays)):
        for g, w, is_exact in zip(map(np.asarray, got), map(np.asarray, want), exact, strict=True):
            assert g.shape == w.shape
            assert not is_exact or compare.identical(g, w).all()


def test_other_sizes_are_served_or_refused() -> None:
    module = unsized(hilo.parse("""func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %r = stablehlo.add %x, %y : tensor<4x3xf32>
      return %r : tensor<4x3xf32>
    }"""))
    assert module is not None
    assert has_unknown_sizes(module["main"])
    f = hilo.compile(module)
    for n in (0, 1, 7):
        x = np.ones((n, 3), np.float32)
        assert np.array_equal(f(x, x)[0], x + x)
    with pytest.raises(hilo.Error):
        f(np.ones((2, 3), np.float32), np.ones((3, 3), np.float32))
