"""The modules to time, their inputs, and what work they do. Imports numpy and ml_dtypes only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

OWN = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class Case:
    """A module's text, and one entry {shape, dtype, kind, scale, hi} per argument; flops and bytes of one call."""

    name: str
    text: str
    args: tuple[dict[str, Any], ...]
    flops: float
    bytes: float

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """The same arrays for every peer."""
        return [_array(a, np.random.Generator(np.random.SFC64([seed, i]))) for i, a in enumerate(self.args)]


def shared() -> Path:
    """Where the shared data is: HILO_SHARED, or ../shared beside the checkout."""
    return Path(os.environ.get("HILO_SHARED", Path(__file__).parents[2] / "shared"))


def cases(names: Iterable[str] = ()) -> list[Case]:
    """The cases called `names` (prefixes count), or all; from the shared data if it is there, and our own."""
    wanted = tuple(names)
    found = []
    for folder in (shared() / "bench", OWN):
        manifest = folder / "manifest.json"
        if not manifest.exists():
            continue
        for e in json.loads(manifest.read_text()):
            if not wanted or any(e["name"].startswith(n) for n in wanted):
                text = (folder / e["file"]).read_text()
                found.append(Case(e["name"], text, tuple(e["args"]), e.get("flops") or 0, e.get("bytes") or 0))
    return found


def _array(a: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    shape, scale, name = tuple(a["shape"]), a["scale"], a["dtype"]
    match a["kind"]:
        case "const":
            v: Any = np.full(shape, scale)
        case "int":
            v = rng.integers(0, a["hi"], shape)
        case "uniform":
            v = rng.random(shape, dtype=np.float32) * scale
        case "abs":
            v = np.abs(rng.standard_normal(shape, dtype=np.float32)) * np.float32(scale)
        case "one":
            v = np.float32(1) + np.float32(scale) * rng.random(shape, dtype=np.float32)
        case "spd":
            m = rng.standard_normal(shape).astype(np.float32)
            v = m @ m.T / shape[0] + np.eye(shape[0])
        case "tril":
            v = np.tril(rng.standard_normal(shape) * 0.02) + np.eye(shape[0]) * 2
        case _ if name == "complex64":
            v = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        case _:
            v = rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)
    if name == "bfloat16":
        import ml_dtypes

        return np.asarray(v).astype(ml_dtypes.bfloat16)
    return np.asarray(np.asarray(v).astype(name), order="C")
