# ruff: noqa: E501  (programs are quoted as they are printed)
"""Files are recognized by their content, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilo.errors import Error
from hilo.formats import load, parse, sniff

PROGRAM = "// a comment\n\nmodule @m {\n  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n    return %x : tensor<2xf32>\n  }\n}\n"


@pytest.mark.parametrize(("data", "kind"), [
    (b"ML\xefR\x06rest", "bytecode"),
    (b"HloModule jit_f, entry_computation_layout={}", "hlo_text"),
    (b"// c\n  module {}", "mlir_text"),
    (b"#loc = loc(unknown)\nmodule {}", "mlir_text"),
    (b'"builtin.module"() ({}) : () -> ()', "mlir_text"),
    (b"func.func @f() { return }", "mlir_text"),
    (b"", "unknown"),
    (b"\x7fELF", "unknown"),
])  # fmt: skip
def test_sniff(data: bytes, kind: str) -> None:
    assert sniff(data) == kind


def test_load(tmp_path: Path) -> None:
    file = tmp_path / "program.bin"
    file.write_text(PROGRAM)
    assert load(file).name == "m"
    assert parse(PROGRAM).name == parse(PROGRAM.encode()).name == "m"


@pytest.mark.parametrize(("data", "kind", "message"), [
    (b"ML\xefR", Error, "bytecode"), (b"HloModule x", Error, "a computation"), (b" \n", Error, "empty"),
    (b"\x7fELF\0\0", Error, "no program"), (b"hello", Error, "expected a function"),
])  # fmt: skip
def test_load_refuses(tmp_path: Path, data: bytes, kind: type[Error], message: str) -> None:
    file = tmp_path / "p.mlir"
    file.write_bytes(data)
    with pytest.raises(kind, match=message):
        load(file)
    with pytest.raises(Error, match="cannot read"):
        load(tmp_path / "missing")
