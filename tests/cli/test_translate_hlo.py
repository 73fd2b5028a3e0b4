"""`hilo translate --to hlo`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hilo as library
from hilo.formats import load


def test_there_and_back(hilo) -> None:
    assert hilo("translate", "rows.mlir", "--to", "hlo", "-o", "rows.hlo").exit_code == 0
    assert Path("rows.hlo").read_text().startswith("HloModule ")
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    a, b = library.interpret(load("rows.hlo"), x), library.interpret(load("rows.mlir"), x)
    assert a[0].tobytes() == b[0].tobytes()
    assert hilo("translate", "rows.hlo").output.startswith("module")
    assert hilo("run", "rows.hlo", "x.npy").exit_code == 0


def test_locations_and_elided_constants(hilo) -> None:
    assert 'metadata={source_file="rows.mlir"' in hilo("translate", "rows.mlir", "--to", "hlo", "--locations").output
    Path("k.hlo").write_text("HloModule k\nENTRY e { ROOT c = s32[3] constant({1, 2, 3}) }\n")
    assert "constant({...})" in hilo("translate", "k.hlo", "--to", "hlo", "--elide", "2").output
