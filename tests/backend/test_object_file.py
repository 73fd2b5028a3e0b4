"""Object files and their headers: linked with a program in C, for this machine and for others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from object_runs import Program, tools, whole_numbers

import hilo
from hilo.backend.target import Target
from hilo.errors import Error, Unsupported
from hilo.options import Options
from hilo.stages import STAGES

NAMES = ("host", "x86-avx512", "x86-avx2", "x86-sse2", "scalar", "arm-neon")
RUN = [n for n in NAMES
       if (has := tools(Target.named(n).arch)) and (has[1] or Target.host().includes(Target.named(n)))]  # fmt: skip
ADD = """func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %z = stablehlo.add %x, %y : tensor<3x4xf32>
  return %z : tensor<3x4xf32>
}"""


def layer() -> str:
    """A product with weights, enough for a parallel loop; and another function of these weights."""
    weights = np.random.default_rng(1).integers(-3, 4, (96, 257)).astype(np.float32)
    shown = ", ".join(map(str, weights.tolist()))
    return f"""func.func @main(%x: tensor<300x96xf32>) -> (tensor<300x257xf32>, tensor<96x257xf32>) {{
      %w = stablehlo.constant dense<[{shown}]> : tensor<96x257xf32>
      %z = stablehlo.constant dense<0.0> : tensor<96x257xf32>
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<300x96xf32>, tensor<96x257xf32>) -> tensor<300x257xf32>
      %n = stablehlo.negate %w : tensor<96x257xf32>
      %m = stablehlo.maximum %n, %z : tensor<96x257xf32>
      return %y, %m : tensor<300x257xf32>, tensor<96x257xf32> }}"""


@pytest.mark.parametrize("target", RUN)
def test_constants_are_in_the_object_and_pieces_go_in_any_order(target: str, tmp_path: Path) -> None:
    module = hilo.parse(layer())
    arrays = whole_numbers(module)
    want = hilo.interpret(module, *arrays)
    for backwards in (False, True):
        folder = tmp_path / str(backwards)
        folder.mkdir()
        runs = Program(module, folder, target, backwards=backwards)(arrays, arrays)
        for got in runs:
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)


@pytest.mark.skipif("host" not in RUN, reason="needs a C compiler")
def test_without_rewriting(tmp_path: Path) -> None:
    module = hilo.parse(layer())
    arrays = whole_numbers(module)
    (got,) = Program(module, tmp_path, "host", opt=0)(arrays)
    for g, w in zip(got, hilo.interpret(module, *arrays), strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.skipif("host" not in RUN, reason="needs a C compiler")
def test_several_programs_are_linked_together(tmp_path: Path) -> None:
    for name in ("one-more", "other"):
        text = ADD.replace("@main", f"@{name.replace('-', '_')}")
        code = hilo.inspect(text, "object", entry=name.replace("-", "_"))
        assert isinstance(code, bytes)
        (tmp_path / f"{name}.o").write_bytes(code)
        (tmp_path / f"{name}.h").write_text(str(hilo.inspect(text, "header", entry=name.replace("-", "_"))))
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include "one-more.h"
#include "other.h"
int main(void) {
    _Alignas(64) float x[12], y[12], z[12];
    for (int i = 0; i < 12; i++) x[i] = i, y[i] = 2 * i;
    void *args[HILO_OTHER_ARGS] = {x, y}, *results[HILO_OTHER_RESULTS] = {z}, *again[] = {x, z};
    if (hilo_other_run(args, results, 0)) return 1;
    if (hilo_one_more_run(again, (void *[]){y}, 0)) return 1;
    return y[11] != 44 || HILO_OTHER_ARENA != 0;
}
""")
    compiler, _ = tools(Target.host().arch) or ("", [])
    command = [compiler, "-Wall", "-Wextra", "-Werror", "main.c", "other.o", "one-more.o", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


def test_the_header_says_what_there_is() -> None:
    header = hilo.inspect(ADD.replace("3x4x", "3x5x"), "header", target="arm-neon")
    assert isinstance(header, str)
    assert "int32_t hilo_main(struct hilo_ctx *ctx" in header
    assert "[1] f32[3,5], 60 bytes" in header
    assert "compiled by hilo for arm-neon" in header
    code = hilo.inspect(ADD, "object", target="arm-neon")
    assert isinstance(code, bytes)
    assert b"\0hilo_main\0" in code


def test_what_has_no_object_is_an_error() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.add %x, %x : tensor<?xf32>
      return %y : tensor<?xf32>
    }"""
    for stage in ("object", "header"):
        with pytest.raises(Unsupported, match="run-time sizes"):
            hilo.inspect(text, stage, target="arm-neon")
    with pytest.raises(Error, match="no target 'arm'"):
        hilo.inspect(ADD, "object", target="arm")


def test_stages_of_code_for_another_machine() -> None:
    other = "arm-neon" if Target.host().arch == "x86_64" else "x86-sse2"
    for name, stage in STAGES.items():
        if stage.of == "code":
            assert len(hilo.inspect(ADD, name, target=other, options=Options())) > 100
