"""`hilo conformance --junit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from click.testing import Result

Hilo = Callable[..., Result]
_CHECKED = """func.func @main() {{
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.add %x, %x : tensor<2xi32>
  check.expect_eq_const %y, dense<[2, {last}]> : tensor<2xi32>
  func.return
}}"""


def test_results_are_written_when_some_fail_too(hilo: Hilo) -> None:
    Path("folder/good.mlir").write_text(_CHECKED.format(last=4))
    Path("folder/bad.mlir").write_text(_CHECKED.format(last=5))
    result = hilo("conformance", "folder", "--junit", "out.xml", "--runner", "native", "--runner", "interpreter")
    assert result.exit_code == 2
    root = ET.parse("out.xml").getroot()
    assert root.get("tests") == "4"
    assert root.get("failures") == "2"
    assert {s.get("name") for s in root} == {"native", "interpreter"}


def test_a_file_that_cannot_be_written(hilo: Hilo) -> None:
    Path("folder/good.mlir").write_text(_CHECKED.format(last=4))
    result = hilo("conformance", "folder", "--junit", "lost/out.xml", "--runner", "interpreter")
    assert result.exit_code == 2
    assert "lost/out.xml" in result.output
