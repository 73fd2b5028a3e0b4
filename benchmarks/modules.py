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

#: How many of a module's arguments change from call to call; the rest are weights, which may be bound.
DATA = {
    "resnet50_b1": 1, "mobilenet_v2_b1": 1, "bert_base_b1_s128": 1, "gpt2_decode_kv256": 26,
    "transformer_block_77x384": 1, "conv3x3_c64_56": 1, "conv3x3_c128_28": 1, "conv3x3_c512_7": 1,
    "dwconv3x3_c144_56": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A module's text, and one entry {shape, dtype, kind, scale, hi} per argument; flops and bytes of one call."""

    name: str
    text: str
    args: tuple[dict[str, Any], ...]
    flops: float
    bytes: float

    @property
    def data(self) -> int:
        """How many arguments change from call to call: the first ones; the others are weights."""
        return DATA.get(self.name, len(self.args))

    def moved(self) -> tuple[float, float]:
        """Bytes read and bytes written, at the least: what the manifest says, or all arguments; and the results."""
        import hilo
        from hilo.ir.types import TensorType

        main = hilo.parse(self.text).functions["main"]
        read, written = (sum(t.nbytes for t in types if isinstance(t, TensorType))
                         for types in (main.param_types, main.result_types))  # fmt: skip
        return (self.bytes - written if self.bytes else read), written

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
