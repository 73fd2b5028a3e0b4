"""The programs of docs/custom_calls.md run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runtime_entries import c_compiler

import hilo
from hilo import custom_calls
from hilo.custom_calls import registry

PAGE = (Path(__file__).parents[2] / "docs" / "custom_calls.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_python() -> None:
    assert len(blocks("python")) == 2
    for block in blocks("python"):
        exec(compile(block, "docs/custom_calls.md", "exec"), {})
    for name in ("my.clip", "my.answer"):
        registry.unregister(name)


def test_c(tmp_path: Path) -> None:
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler")
    (code,) = blocks("c")
    (tmp_path / "mine.c").write_text(code)
    library = tmp_path / "libmine.so"
    flags = ["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{custom_calls.include()}"]
    subprocess.run([compiler, *flags, str(tmp_path / "mine.c"), "-o", str(library)], check=True)
    hilo.register_custom_call("my.halve", (library, "halve"), convention="c")
    program = """func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %y = stablehlo.custom_call @my.halve(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32> }"""
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert hilo.compile(program)(x)[0].tolist() == (x / 2).tolist()
    registry.unregister("my.halve")


def test_conventions_are_listed() -> None:
    for convention in registry.CONVENTIONS:
        assert f'| `"{convention}"` |' in PAGE
