"""Every op of the registry has all its pieces, and means the same on every path: interpreted, folded, native.

Native code is made with and without fusion, for this machine and for smaller ones, and runs on one and two threads.
Inputs are the edges of the element types (NaN, inf, -0, subnormals, INT_MIN ...) in the examples' shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from registry_runs import Batch

import hilo
from hilo.backend.target import Target
from hilo.ir.op import OpDef
from hilo.kernels import STRATEGIES
from hilo.options import Options
from hilo.plan.build import HANDLERS
from hilo.testing.compare import identical
from hilo.testing.pieces import INTERNAL, OTHERWISE, all_ops, lowerings, missing

OPS = {d.full_name: d for d in all_ops()}
# Exchange with the host and other processes, and what the interpreter alone runs.
QUEUES = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv", "interpreter.run_parallel",
          "interpreter.print", "interpreter.probe")  # fmt: skip
# What has no examples to run: what everybody knows of, and calls of what is not there.
NOT_RUN = ("hilo.parameter", "hilo.get", "stablehlo.custom_call", *QUEUES)
PIECES = ("infer", "evaluate", "sharding", "cost", "examples", "doc")
PATHS: dict[str, dict[str, Any]] = {
    "fused": {},
    "unfused": {"options": {"fuse": False}},
    "llvm": {"options": {"codegen": "llvm"}},
    "quick": {"options": {"opt": 0}},
    "avx2": {"target": "x86-avx2"},
    "sse2": {"target": "x86-sse2"},
    "neon": {"target": "arm-neon"},
}
PATHS = {k: how for k, how in PATHS.items() if Target.host().includes(Target.named(how.get("target", "host")))}
SEEDS = range(4)  # sets of inputs


def without(d: OpDef, *pieces: str) -> OpDef:
    """A copy of the definition that lacks some pieces; the registry does not hear of it."""
    names = [n.removeprefix("_") for n in OpDef.__slots__ if n not in ("__weakref__", "name")]
    have: dict[str, Any] = {name: getattr(d, name) for name in names}
    for piece in pieces:
        have[piece] = [] if piece == "examples" else None
    return OpDef(d.name, **have)


def test_every_op_has_all_its_pieces() -> None:
    lacking = {name: found for name, d in OPS.items() if (found := missing(d))}
    assert not lacking, "\n".join(f"{name} lacks {'; '.join(found)}" for name, found in lacking.items())


@pytest.mark.parametrize("name", OPS)
def test_a_piece_that_is_taken_away_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d = OPS[name]
    optional = {"sharding"} if name in INTERNAL else set()
    if name in ("hilo.parameter", "hilo.get"):
        optional |= {"evaluate", "cost", "examples"}
    if not missing(without(d, "cost")):
        optional.add("cost")  # the default (one operation an element) is right for it
    for piece in PIECES:
        if piece in optional:
            continue
        found = missing(without(d, piece))
        assert len(found) == 1, (name, piece, found)
        assert found[0].startswith(piece), (name, piece, found)
    for table in (HANDLERS, STRATEGIES, OTHERWISE):
        monkeypatch.delitem(table, name, raising=False)
    found = missing(without(d, "scalar", "element", "expand"))
    assert any(f.startswith("lowering") for f in found), (name, found)


def test_a_source_that_is_taken_away_is_named() -> None:
    d = without(OPS["stablehlo.add"])
    d.doc = d.doc.split("Spec:")[0]
    assert missing(d) == ["source: `Spec: name.` in the docstring"]


def test_ops_that_need_a_cost_of_their_own() -> None:
    """What does more than one operation an element may not fall back on the default."""
    names = ("stablehlo.reduce", "stablehlo.dot_general", "stablehlo.scatter", "stablehlo.exponential", "chlo.lgamma")
    for name in names:
        assert any(f.startswith("cost") for f in missing(without(OPS[name], "cost"))), name


@pytest.mark.parametrize("name", [n for n in OPS if n not in NOT_RUN])
def test_examples_on_every_path(name: str) -> None:
    d = OPS[name]
    assert lowerings(d)
    batch = Batch((d, types, attrs) for types, attrs in d.examples)
    module = batch.module()
    inputs = [batch.inputs(seed) for seed in SEEDS]
    wanted = [batch.expected(arrays) for arrays in inputs]
    wrong: list[str] = []
    fused: list[list[np.ndarray]] = []

    def compare(path: str, arrays: list[np.ndarray], got: list[np.ndarray], want: list[np.ndarray]) -> None:
        wrong.extend(f"{path}: {line}" for line in batch.differences(arrays, got, want))

    for path, how in PATHS.items():
        options = Options.from_env(**how.get("options", {}))
        one, two = (
            hilo.compile(module, target=how.get("target", "host"), threads=n, options=options) for n in (1, 2)
        )
        for seed, (arrays, want) in enumerate(zip(inputs, wanted, strict=True)):
            got = one(*arrays)
            compare(path, arrays, got, want)
            if path == "fused":
                fused.append(list(got))
            for a, b in zip(got, fused[seed], strict=True) if path == "llvm" else ():
                assert identical(np.asarray(a), np.asarray(b)).all(), "hilo's own code, LLVM's code"
            for a, b in zip(got, two(*arrays), strict=True):
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), f"{path}: one thread, two threads"
    folded = hilo.compile(module, constants=dict(enumerate(inputs[0])))
    compare("folded", inputs[0], folded(), wanted[0])
    assert not wrong, "\n".join(wrong[:10])
