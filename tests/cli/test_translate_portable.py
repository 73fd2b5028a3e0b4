"""`hilo translate --to portable`."""

from __future__ import annotations

from pathlib import Path

from hilo.formats import load


def test_there_and_back(hilo) -> None:
    assert hilo("translate", "rows.mlir", "--to", "portable", "--version", "1.0.0", "-o", "rows.bc").exit_code == 0
    assert b"StableHLO_v1.0.0" in Path("rows.bc").read_bytes()[:40]
    assert load("rows.bc")["main"] == load("rows.mlir")["main"]
    assert hilo("translate", "rows.bc").output == hilo("translate", "rows.mlir").output
    assert hilo("run", "rows.bc", "x.npy").exit_code == 0


def test_to_stdout(hilo) -> None:
    result = hilo("translate", "rows.mlir", "--to", "portable")
    assert result.exit_code == 0
    assert result.stdout_bytes.startswith(b"ML\xefR")


def test_errors(hilo) -> None:
    Path("tan.mlir").write_text(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = stablehlo.tan %x : tensor<f32>\n  return %0 : tensor<f32>\n}\n"
    )
    for arguments, message in (
        (("tan.mlir", "--to", "portable", "--version", "1.3.0", "-o", "x"), "tan.mlir:2:8: stablehlo.tan: .*1.4.0"),
        (("tan.mlir", "--to", "portable", "--version", "2.0.0", "-o", "x"), "0.9.0 to 1.20.0"),
        (("tan.mlir", "--to", "portable", "--elide", "3", "-o", "x"), "--elide"),
        (("tan.mlir", "--version", "1.0.0"), "--version"),
        (("tan.mlir", "--to", "portable", "-o", "no/where"), "no/where"),
    ):
        result = hilo("translate", *arguments)
        assert result.exit_code != 0
        assert not Path("x").exists()
        import re

        assert re.search(message, result.output), result.output
