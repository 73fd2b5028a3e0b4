"""The programs of docs/tensorflow.md run, one after the other, and draw the page's pictures."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

PAGE = Path(__file__).parents[2] / "docs" / "tensorflow.md"


def test_the_programs_run(tmp_path, capsys):
    known: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for n, block in enumerate(blocks):
        file = tmp_path / f"block{n}.py"  # AutoGraph reads sources
        file.write_text(block)
        exec(compile(block, str(file), "exec"), known)
    printed = capsys.readouterr().out
    assert "Prediction accuracy after training" in printed
    assert "fusion(" in printed
    if importlib.util.find_spec("mnist") is not None:
        assert float(known["accuracy"]) >= 0.85
    pictures = {"tensorflow_memory.svg": known["after"], "tensorflow_memory_before.svg": known["before"]}
    if shutil.which("dot"):
        pictures["tensorflow_graph.svg"] = subprocess.run(
            ["dot", "-Tsvg"], input=known["graph"], capture_output=True, text=True, check=True).stdout
    for name, text in pictures.items():
        assert text.rstrip().endswith("</svg>")
        assert (PAGE.parent / name).exists()
