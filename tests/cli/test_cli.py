"""The commands doing what they are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clitest import ROWS

import hilo as package
from hilo.cli import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(hilo, command: str) -> None:
    result = hilo(command, "--help")
    assert result.exit_code == 0
    assert f"hilo {command}" in result.output.split("Usage:")[1].split("\n", 1)[1]


def test_help_lists_all_commands(hilo) -> None:
    output = hilo("--help").output
    assert all(f"  {c}" in output for c in COMMANDS)
    assert package.__version__ in hilo("--version").output


def test_run_prints_and_saves(hilo) -> None:
    x = np.load("x.npy")
    want = np.exp(x.astype(np.float64)).sum(1)
    for source in ("x.npy", "x.npz"):
        for how in ([], ["--interpret"], ["--threads", "1"], ["--target", "x86-sse2"]):
            result = hilo("run", "rows.mlir", source, "--save", "out.npz", *how)
            assert result.exit_code == 0
            assert "result 0: float32[4]" in result.output
            with np.load("out.npz") as saved:
                np.testing.assert_allclose(saved["result0"], want, rtol=1e-6)
    assert Path("out.npz").stat().st_mode & 0o444 == 0o444 & ~_umask()


def _umask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_random_arrays_depend_on_the_seed_alone(hilo) -> None:
    first, again, other = (hilo("run", "rows.mlir", "--random", seed).output for seed in "001")
    assert first == again != other


def test_run_times_and_checks(hilo) -> None:
    assert "us median" in hilo("run", "rows.mlir", "x.npy", "--time").output
    result = hilo("run", "rows.mlir", "x.npy", "--check")
    assert result.exit_code == 0
    assert "agrees" in result.output


def test_compile_shows_every_phase(hilo) -> None:
    assert "arena" in hilo("compile", "rows.mlir").output or "temporaries" in hilo("compile", "rows.mlir").output
    phases = hilo("compile", "rows.mlir", "--to", "list").output.split()
    assert phases[0] == "input"
    for phase in phases:
        result = hilo("compile", "rows.mlir", "--to", phase)
        assert result.exit_code == 0, result.output
        assert result.output.strip()
    assert "hilo.fusion" in hilo("compile", "rows.mlir", "--to", "fuse").output
    assert "define" in hilo("compile", "rows.mlir", "--to", "codegen").output


@pytest.mark.parametrize(
    ("form", "holds"), [("llvm", "define"), ("asm", "ret"), ("c", "int32_t entry"), ("memory", "arguments"),
                        ("memory-svg", "<svg"), ("dot", "digraph"), ("hlo", "HloModule"), ("stablehlo", "func.func"),
                        ("optimized_hlo", "fusion("), ("optimized", "hilo.fusion")]
)  # fmt: skip
def test_emit(hilo, form: str, holds: str) -> None:
    result = hilo("compile", "rows.mlir", "--emit", form)
    assert result.exit_code == 0, result.output
    assert holds in result.output
    hilo("compile", "rows.mlir", "--emit", form, "-o", "out")
    assert Path("out").read_text().rstrip("\n") == result.output.rstrip("\n")


@pytest.mark.parametrize("form", ["hlo_serialized", "optimized_hlo_serialized"])
def test_emit_messages(hilo, form: str) -> None:
    x = np.load("x.npy")
    assert hilo("compile", "rows.mlir", "--emit", form, "-o", "out.pb").exit_code == 0
    want = package.interpret(package.load("rows.mlir"), x)[0]
    np.testing.assert_allclose(package.interpret(package.load("out.pb"), x)[0], want, rtol=1e-6)
    assert hilo("compile", "rows.mlir", "--emit", form).stdout_bytes == Path("out.pb").read_bytes()
    assert hilo("translate", "out.pb", "-o", "out.mlir").exit_code == 0
    assert hilo("translate", "out.mlir", "--to", "hlo_serialized", "-o", "again.pb").exit_code == 0
    np.testing.assert_allclose(package.interpret(package.load("again.pb"), x)[0], want, rtol=1e-6)


def test_what_opt_and_translate_print_is_a_program(hilo) -> None:
    x = np.load("x.npy")
    want = package.interpret(package.load("rows.mlir"), x)[0]
    for command in (["opt"], ["opt", "--passes", "inline,simplify,cse"], ["translate"], ["translate", "--locations"]):
        result = hilo(command[0], "rows.mlir", *command[1:], "-o", "out.mlir")
        assert result.exit_code == 0, result.output
        np.testing.assert_array_equal(package.interpret(package.load("out.mlir"), x)[0], want)


def test_bench(hilo) -> None:
    result = hilo("bench", "rows.mlir", "--seconds", "0", "--explain")
    assert result.exit_code == 0
    assert "call, median" in result.output
    assert "k0_" in result.output


def test_ops(hilo) -> None:
    assert "stablehlo.dot_general" in hilo("ops").output
    for name in ("dot_general", "stablehlo.dot_general"):
        assert "C13" in hilo("ops", name).output


# ---- looking inside, by variables
def test_dump_writes_every_state(hilo) -> None:
    assert hilo("compile", "rows.mlir", HILO_DUMP="states").exit_code == 0
    names = [p.name.split(".", 1)[1] for p in sorted(Path("states").iterdir())]
    assert names[:2] == ["input.mlir", "inline.mlir"]
    assert names[-2:] == ["plan.txt", "codegen.txt"]
    assert package.load("states/000.input.mlir").functions.keys() == {"main"}


def test_print_and_time(hilo) -> None:
    result = hilo("compile", "rows.mlir", HILO_PRINT="simplify,fuse", HILO_TIME="1")
    assert result.stderr.count("// ---- after") == 2
    assert "total" in result.stderr
    assert hilo("compile", "rows.mlir", HILO_PRINT="all").stderr.count("// ---- after") > 5


def test_verify(hilo) -> None:
    assert hilo("run", "rows.mlir", "x.npy", "--check", HILO_VERIFY="1").exit_code == 0


@pytest.mark.parametrize("stop", ["inline", "legalize", "simplify", "cse", "fuse", "schedule"])
def test_a_program_stopped_anywhere_is_right(hilo, stop: str) -> None:
    """Only what native code needs runs after the stop, so that a wrong result can be hunted pass by pass."""
    want = hilo("run", "rows.mlir", "x.npy").output
    assert hilo("run", "rows.mlir", "x.npy", HILO_STOP=stop).output == want
    fused = "hilo.fusion" in hilo("compile", "rows.mlir", "--to", "schedule", HILO_STOP=stop).output
    assert fused == (stop in ("fuse", "schedule"))


def test_a_program_without_optional_passes_is_right(hilo) -> None:
    want = hilo("run", "rows.mlir", "x.npy").output
    assert hilo("run", "rows.mlir", "x.npy", HILO_SKIP="simplify,fuse").output == want
    assert hilo("run", "rows.mlir", "x.npy", HILO_SKIP="layout").output == want  # which few programs go through
    assert "hilo.fusion" not in hilo("compile", "rows.mlir", "--to", "schedule", HILO_SKIP="fuse").output


def test_opt_stops_and_prints_the_state(hilo) -> None:
    Path("twice.mlir").write_text(ROWS.replace("exponential %x", "add %x, %zeros").replace(
        "%e =", "%zeros = stablehlo.constant dense<-0.0> : tensor<4x8xf32>\n  %e ="))  # fmt: skip
    assert "dense<-0" in hilo("opt", "twice.mlir", HILO_STOP="inline").output
    assert "dense<-0" not in hilo("opt", "twice.mlir").output


def test_run_simulates_a_grid(hilo, tmp_path: Path) -> None:
    Path("gather.mlir").write_text("""func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
      %y = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}
          : (tensor<2xf32>) -> tensor<4xf32>
      %z = interpreter.probe %y, probe_id = "y" : tensor<4xf32>
      return %z : tensor<4xf32>
    }""")
    for k in range(2):
        np.save(f"{k}.npy", np.full((2,), k, np.float32))
    grid = ["--interpret", "--replicas", "2", "--save", "out.npz", "--probes", str(tmp_path)]
    result = hilo("run", "gather.mlir", "0.npy", "1.npy", *grid)
    assert "process (1, 0): result 0: float32[4]  [1., 1., 0., 0.]" in result.output, result.output
    with np.load("out.npz") as saved:
        assert saved["process1_result0"].tolist() == [1, 1, 0, 0]
    assert np.load(tmp_path / "probe2.npy").tolist() == [1, 1, 0, 0]
    assert "[1., 1., 1., 1.]" in hilo("run", "gather.mlir", "1.npy", *grid).output
    assert hilo("run", "gather.mlir", "--random", "1", *grid, "--partitions", "2").output.count("process (") == 4
    wrong = hilo("run", "gather.mlir", "0.npy", "1.npy", "1.npy", *grid)
    assert (wrong.exit_code, "give 2, or the same 1 for all, not 3" in wrong.output + str(wrong.exception)) == (2, True)
    wrong = hilo("run", "gather.mlir", "0.npy", "--partitions", "2")
    assert (wrong.exit_code, "go with --interpret" in wrong.output + str(wrong.exception)) == (2, True)
