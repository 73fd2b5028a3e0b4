"""The compile side of the PJRT plugin: what `Loaded` says of a program, and that its native part is the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats.bytecode import write
from hilo.pjrt import compiler

TEXT = """
module @jit_f {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<3xi32>) -> (tensor<2x3xf32>, tensor<3xi32>) {
    %0 = stablehlo.add %x, %x : tensor<2x3xf32>
    %1 = stablehlo.negate %y : tensor<3xi32>
    return %0, %1 : tensor<2x3xf32>, tensor<3xi32>
  }
}
"""
X, Y = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, -2, 3], "i4")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("form", ["text", "artifact", "older artifact", "hlo", "message", "configured"])
def test_programs_come_in_every_form(form: str) -> None:
    module = hilo.parse(TEXT)
    if form in ("hlo", "message"):
        from hilo.formats.hlo_text import module_message, print_module

        data = module_message(module) if form == "message" else print_module(module).encode()
        p = compiler.compile("hlo", data, b"")
    elif form == "configured":
        from hilo.formats.hlo_text import emit
        from hilo.formats.hlo_text.proto import module_with_config

        p = compiler.compile("hlo_with_config", module_with_config(emit(module)), b"")
    else:
        data = {"text": TEXT.encode(), "artifact": write(module), "older artifact": write(module, "1.0.0")}[form]
        p = compiler.compile("mlir", data, b"")
    assert p.arguments == [(11, (2, 3), (1, 0)), (4, (3,), (0,))]
    assert p.results == p.arguments
    assert p.argument_kinds == p.result_kinds == ["device", "device"]
    assert (p.donated, p.num_replicas, p.num_partitions, p.device_ids, p.options) == ([], 1, 1, [0], b"")
    assert p.cost > 0
    assert p.name == "jit_f"
    doubled, negated = p.native(X, Y)
    assert (doubled == 2 * X).all()
    assert (negated == -Y).all()


def test_unknown_formats_and_other_content_are_refused() -> None:
    with pytest.raises(Error, match="HLO, as text or as a message, and this is neither"):
        compiler.compile("hlo_with_config", b"\x0a\x03abc", b"")
    with pytest.raises(Unsupported, match="no program format 'onnx'"):
        compiler.compile("onnx", b"", b"")
    with pytest.raises(Error):
        compiler.compile("mlir", b"", b"")
