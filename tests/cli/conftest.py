"""Programs and arrays in files, and running `hilo` on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from clitest import ROWS

from hilo.cli import main

Hilo = Callable[..., Result]


@pytest.fixture
def hilo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hilo:
    """`hilo(*arguments, **environment)` in a directory of its own, with a few files; every exception is a failure."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path / "cache"))
    Path("rows.mlir").write_text(ROWS)
    Path("cut.mlir").write_text(ROWS[:150])
    Path("empty.mlir").write_text("")
    Path("garbage.mlir").write_bytes(np.random.default_rng(0).bytes(3000))
    Path("folder").mkdir()
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    np.save("x.npy", x)
    np.save("f64.npy", x.astype(np.float64))
    np.save("narrow.npy", x[:, :7])
    np.savez("x.npz", x=x)
    np.savez("two.npz", a=x, b=x)
    np.save("objects.npy", np.array([{}], object), allow_pickle=True)
    Path("bad.npy").write_text("abc")
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:100])
    Path("cut.npz").write_bytes(Path("x.npz").read_bytes()[:100])
    Path("empty.npy").write_bytes(b"")

    def run(*arguments: str, **environment: str) -> Result:
        result = CliRunner().invoke(main, list(arguments), env=environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
