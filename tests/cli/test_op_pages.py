"""Every op has its page in docs/ops/, written from the registry, and none is stale."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from hilo.cli.op_pages import constraints, page, signature
from hilo.testing.pieces import all_ops

ROOT = Path(__file__).parents[2]
OPS = {d.full_name: d for d in all_ops()}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("op_pages_tool", ROOT / "tools" / "op_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_is_stale(tool: ModuleType) -> None:
    assert not tool.stale(), "run: PYTHONPATH=src python tools/op_pages.py"


def test_what_is_stale_is_named(tool: ModuleType, tmp_path: Path) -> None:
    pages = tool.pages()
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    assert not tool.stale(tmp_path)
    (tmp_path / "stablehlo.add.md").write_text(pages["stablehlo.add.md"] + "more")
    (tmp_path / "stablehlo.sine.md").unlink()
    (tmp_path / "stablehlo.nothing.md").write_text("")
    assert tool.stale(tmp_path) == ["stablehlo.add.md", "stablehlo.nothing.md", "stablehlo.sine.md"]


@pytest.mark.parametrize("name", OPS)
def test_pages_say_all_there_is_to_know(name: str) -> None:
    text = page(OPS[name])
    for part in ("# " + name, "## Signature", "## Cost"):
        assert part in text
    if name not in ("hilo.parameter", "hilo.get"):
        assert "## Native code" in text
        assert "## Examples" in text


def test_signature_and_constraints() -> None:
    assert signature(OPS["stablehlo.transpose"]) == "stablehlo.transpose(x, *, permutation)"
    assert signature(OPS["stablehlo.exponential"]) == "stablehlo.exponential(x, *, result_accuracy='DEFAULT')"
    rules = [rule for rule, _ in constraints(OPS["stablehlo.dot_general"].infer)]
    assert {"C1", "C2", "C11", "C13", "C21"} <= set(rules)
    assert rules.index("C2") < rules.index("C11")
