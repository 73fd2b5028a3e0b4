"""What the programs share."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

NAME = jax.default_backend()
X = np.arange(12, dtype=np.float32).reshape(3, 4)
SPD = np.array([[4, 1, 0.5], [1, 5, 2], [0.5, 2, 6]], np.float32)

assert "hilo" in jax.devices()[0].client.platform_version, "this is not hilo"


def close(a: Any, b: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def like(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def error(run: Any, text: str) -> str:
    """What the error says that `run` ends with, which must have `text` in it."""
    try:
        jax.block_until_ready(run())
        said = "nothing"
    except Exception as e:
        said = str(e)
    assert text in said, said
    return said
