"""The pages that are written from the code are not stale; links between the pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_the_options_page_is_not_stale() -> None:
    done = subprocess.run([sys.executable, "tools/options_page.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: PYTHONPATH=src python tools/options_page.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def blocks_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize(("page", "number"), [("docs/parallel.md", 2), ("docs/dynamic_shapes.md", 1),
                                             ("docs/inspecting.md", 1)])
def test_the_programs_of_pages_run(page: str, number: int) -> None:
    blocks = blocks_of(page)
    assert len(blocks) == number
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_the_programs_of_the_first_page_run_one_after_the_other() -> None:
    blocks = blocks_of("README.md")
    assert len(blocks) == 3
    known: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), known)
    assert known["sums"].tolist() == pytest.approx([21.746254] * 4)
    assert known["f"](np.ones((4, 8), np.float32))[0].tolist() == known["sums"].tolist()
    assert (known["y"] == 2).all()
    assert known["arrays"] == []


def test_commands_of_the_first_page_exist() -> None:
    from click.testing import CliRunner

    from hilo.cli import COMMANDS, main

    lines = re.findall(r"^(?:HILO_\w+=\S+ )?hilo (\w+)(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {name for name, _ in lines} | {"demo"} == set(COMMANDS)
    for name, rest in lines:
        said = CliRunner().invoke(main, [name, "--help"]).output
        for option in re.findall(r"(?<!\S)--[a-z]+", rest.partition("#")[0]):
            assert option in said, f"hilo {name} has no {option}"
