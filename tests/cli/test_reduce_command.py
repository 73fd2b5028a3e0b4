"""`hilo reduce`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from clitest import ROWS

from hilo.ir.registry import lookup

Hilo = Callable[..., Result]


@pytest.fixture
def broken_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup("stablehlo.exponential"), "scalar", lookup("stablehlo.log").scalar)


def test_a_wrong_op(hilo: Hilo, broken_exponential: None) -> None:
    result = hilo("reduce", "rows.mlir", "x.npy", "-o", "small.mlir")
    assert result.exit_code == 0, result.output
    assert "looking for: check: " in result.output
    assert "wrote small.mlir" in result.output
    text = Path("small.mlir").read_text()
    assert "stablehlo.exponential" in text
    assert "stablehlo.reduce" not in text
    again = hilo("run", "small.mlir", "--check")
    assert again.exit_code == 2
    assert "differ" in again.output


def test_arrays_are_kept_where_values_matter(hilo: Hilo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong sign shows on values that are not 0."""
    Path("sign.mlir").write_text(ROWS.replace("stablehlo.exponential", "stablehlo.abs"))
    monkeypatch.setattr(lookup("stablehlo.abs"), "scalar", lambda b, out, x: x)
    assert hilo("reduce", "sign.mlir", "x.npy", "-o", "small.mlir").exit_code == 0
    with np.load("small.mlir.npz") as kept:
        assert [kept[name].shape for name in kept.files] == [(4, 8)]
    assert hilo("run", "small.mlir", "small.mlir.npz", "--check").exit_code == 2


def test_a_command(hilo: Hilo) -> None:
    """Fails for as long as the program has a reduction."""
    Path("judge.py").write_text("import sys\nsys.exit('stablehlo.reduce' in open(sys.argv[1]).read())\n")
    result = hilo("reduce", "rows.mlir", "--command", f"{sys.executable} judge.py {{}}")
    assert result.exit_code == 0, result.output
    text = Path("rows.mlir.reduced.mlir").read_text()
    assert "stablehlo.reduce" in text
    assert "stablehlo.exponential" not in text
    assert not [p for p in os.listdir() if p.startswith(".")]


def test_the_reduced_program_on_stdout(hilo: Hilo, broken_exponential: None) -> None:
    result = hilo("reduce", "rows.mlir", "--random", "0", "--way", "check", "-o", "-")
    assert "stablehlo.exponential" in result.output
    assert "wrote" not in result.output


def test_ways_are_listed(hilo: Hilo) -> None:
    assert "skip cse" in hilo("reduce", "rows.mlir", "--way", "list").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rows.mlir", "--random", "0", "--way", "native"), "there is nothing to reduce"),
        (("rows.mlir", "--random", "0", "--error", "lost"), "does not fail as given"),
        (("rows.mlir", "--random", "0", "--way", "up"), "no way 'up'"),
        (("rows.mlir", "--error", "x", "--command", "y"), "not both"),
        (("rows.mlir", "--command", " "), "there is no command"),
        (("rows.mlir",), "--random SEED"),
        (("lost.mlir", "--random", "0"), "lost.mlir"),
        (("rows.mlir", "--random", "0", "--entry", "lost"), "no function @lost"),
    ],
)
def test_mistakes(hilo: Hilo, arguments: tuple[str, ...], words: str) -> None:
    result = hilo("reduce", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.splitlines()) <= 2
    assert not list(Path().glob("*reduced*"))
    assert Path("rows.mlir").read_text() == ROWS
