"""Every kind of node that makes a value, for many lane counts, by hilo's own generator: numpy's bits, and LLVM's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_nodes import CASES, Case, N, function, same_bits
from x86_agree import HERE, HOST
from x86_agree import function as loaded

from hilo.backend import cpu, llvm, x86

pytestmark = pytest.mark.skipif(not HERE, reason="the machine has no AVX-512")

# What goes to LLVM, by lanes.
DOTS = {"dot2", "dot4", "sdot4", "udot4", "dot_bf16"}


def missing(lanes: int) -> set[str]:
    return DOTS if lanes not in (4, 8, 16) else set()


def outcome(call: Any, case: Case, arrays: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    out = np.full(N, 0x55, np.uint8).repeat(like.itemsize).view(like.dtype)
    call(*arrays, out)
    return out


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
def test_every_value_node_gives_numpys_bits_and_llvms(lanes: int) -> None:
    funcs = {c.name: function(c, lanes) for c in CASES}
    assert {n for n, f in funcs.items() if not x86.covers(f, HOST)} == missing(lanes)
    made = [f for f in funcs.values() if x86.covers(f, HOST)]
    own = x86.compile(made, HOST)
    other = cpu.compile(llvm.emit(made, HOST), HOST)
    wrong = []
    for case in CASES:
        if case.name in missing(lanes):
            continue
        with np.errstate(all="ignore"):
            arrays = [np.ascontiguousarray(a) for a in case.arrays()]
            expected = np.ascontiguousarray(case.reference(*arrays))
        name = f"{case.name}_{lanes}"
        got = outcome(loaded(made, own, name), case, arrays, expected)
        if not same_bits(got, expected):
            wrong.append(case.name)
        elif got.tobytes() != outcome(loaded(made, other, name), case, arrays, expected).tobytes():
            wrong.append(f"{case.name} beside LLVM")
    assert wrong == []
