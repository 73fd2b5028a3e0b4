"""The pages that are written from the code are not stale; links between the pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_the_programs_of_the_page_on_processes_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "parallel.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/parallel.md", "exec"), {})
