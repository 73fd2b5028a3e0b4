"""The table of the files in which ops are defined."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

import hilo.ops
from hilo.ir.registry import REGISTRY, lookup


def test_the_table_is_that_of_the_files() -> None:
    for found in iter_modules(hilo.ops.__path__):
        import_module(f"hilo.ops.{found.name}")
    defined = {name: d.cls.__module__ for name, d in REGISTRY.items() if d.cls is not None}
    assert {name: f"hilo.ops.{file}" for name, file in hilo.ops.homes().items()} == defined


def test_asking_for_an_op_loads_its_file_alone() -> None:
    code = """
import sys
from hilo.ir.registry import REGISTRY, lookup
assert "stablehlo.sort" in REGISTRY and "stablehlo.nothing" not in REGISTRY
assert REGISTRY.get("stablehlo.nothing") is None
assert not [m for m in sys.modules if m.startswith("hilo.ops.")]
assert lookup("stablehlo.add").name == "add"
assert "hilo.ops.sort" not in sys.modules and "hilo.ops.fft" not in sys.modules
assert len(REGISTRY) > 150 and "hilo.ops.fft" in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_there_is_not() -> None:
    with pytest.raises(KeyError):
        lookup("stablehlo.nothing")
