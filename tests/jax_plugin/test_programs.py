"""JAX's features on hilo, under both names (programs/)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_transforms(run: Run, name: dict[str, str]) -> None:
    run("transforms.py", name)


def test_callbacks(run: Run, name: dict[str, str]) -> None:
    done = run("callbacks.py", name)
    assert done.stdout.splitlines() == ["printed 66.0", "in order 66.0"]


def test_foreign_functions(run: Run, name: dict[str, str]) -> None:
    run("foreign.py", name)


def test_exchange(run: Run, name: dict[str, str]) -> None:
    run("exchange.py", name)


def test_analyses(run: Run, name: dict[str, str]) -> None:
    run("analyses.py", name)


def test_weights_that_come_again(run: Run, name: dict[str, str]) -> None:
    run("weights.py", name)


def test_a_process_that_was_killed(run: Run, name: dict[str, str]) -> None:
    run("killed.py", name)
