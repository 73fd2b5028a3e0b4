"""Bad input on the command line: one line on stderr that says what and where, exit status 2, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Arguments, and what the one line must hold.
BAD = [
    (["run", "cut.mlir", "--random", "0"], "cut.mlir:3:"),
    (["run", "garbage.mlir", "--random", "0"], "garbage.mlir: this is no program"),
    (["run", "empty.mlir", "--random", "0"], "empty.mlir: the file is empty"),
    (["run", "none.mlir", "--random", "0"], "none.mlir: cannot read the file: No such file"),
    (["run", "folder", "--random", "0"], "folder: cannot read the file: Is a directory"),
    (["run", "rows.mlir"], "takes 1 arrays"),
    (["run", "rows.mlir", "none.npy"], "none.npy: No such file"),
    (["run", "rows.mlir", "folder"], "folder: Is a directory"),
    (["run", "rows.mlir", "bad.npy"], "bad.npy: no .npy or .npz file"),
    (["run", "rows.mlir", "empty.npy"], "empty.npy: no .npy or .npz file"),
    (["run", "rows.mlir", "cut.npy"], "cut.npy: no .npy or .npz file"),
    (["run", "rows.mlir", "cut.npz"], "cut.npz: no .npy or .npz file"),
    (["run", "rows.mlir", "objects.npy"], "objects.npy: no .npy or .npz file: it holds Python objects"),
    (["run", "rows.mlir", "f64.npy"], "f64[4,8]"),
    (["run", "rows.mlir", "narrow.npy"], "f32[4,7]"),
    (["run", "rows.mlir", "two.npz"], "takes 1 arguments, got 2"),
    (["run", "rows.mlir", "x.npy", "x.npy"], "takes 1 arguments, got 2"),
    (["run", "rows.mlir", "--interpret", "two.npz"], "takes 1 arguments"),
    (["run", "rows.mlir", "--interpret", "f64.npy"], "f64[4,8]"),
    (["run", "rows.mlir", "--check", "narrow.npy"], "f32[4,7]"),
    (["run", "rows.mlir", "x.npy", "--entry", "other"], "no function @other; there are @main"),
    (["run", "rows.mlir", "x.npy", "--target", "abacus"], "no target 'abacus'"),
    (["run", "rows.mlir", "x.npy", "--threads", "0"], "--threads"),
    (["run", "rows.mlir", "--random", "-1"], "--random"),
    (["run", "rows.mlir", "x.npy", "--save", "nowhere/out.npz"], "nowhere/out.npz: No such file"),
    (["run", "rows.mlir", "x.npy", "--save", "folder"], "folder: Is a directory"),
    (["run", "rows.mlir", "x.npy", "--frobnicate"], "No such option"),
    (["run"], "Missing argument 'FILE'"),
    (["compile", "rows.mlir", "--to", "nothing"], "no phase 'nothing'; there are input, inline"),
    (["compile", "rows.mlir", "--to", "fuse", "--emit", "asm"], "--to and --emit exclude each other"),
    (["compile", "rows.mlir", "--emit", "poetry"], "'poetry' is not one of"),
    (["compile", "rows.mlir", "--elide", "3"], "--elide is for --emit"),
    (["compile", "rows.mlir", "-o", "nowhere/out"], "nowhere/out: No such file"),
    (["compile", "rows.mlir", "-o", "folder"], "folder: Is a directory"),
    (["compile", "rows.mlir", "--entry", "other"], "no function @other"),
    (["compile", "rows.mlir", "--to", "fuse", "--entry", "other"], "no function @other"),
    (["opt", "rows.mlir", "--passes", "simplify,nothing"], "no pass 'nothing'"),
    (["opt", "rows.mlir", "--entry", "other"], "no function @other"),
    (["opt", "cut.mlir"], "cut.mlir:3:"),
    (["translate", "cut.mlir"], "cut.mlir:3:"),
    (["translate", "rows.mlir", "-o", "nowhere/out"], "nowhere/out: No such file"),
    (["bench", "rows.mlir", "--seconds", "-1"], "--seconds"),
    (["bench", "rows.mlir", "--seconds", "nan"], "nan is no number of seconds"),
    (["bench", "rows.mlir", "bad.npy"], "bad.npy: no .npy or .npz file"),
    (["conformance", "nowhere"], "nowhere"),
    (["reduce", "rows.mlir", "--command", "/no/such {}"], "--command: /no/such: there is no such command"),
    (["reduce", "rows.mlir", "--command", "'cut"], "--command: No closing quotation"),
    (["ops", "exponentail"], "no op 'exponentail'; there is exponential"),
    (["nothing"], "No such command 'nothing'"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_one_line_and_status_2(hilo, arguments: list[str], said: str) -> None:
    before = {p: p.stat().st_mtime_ns for p in Path().rglob("*") if "cache" not in p.parts}
    result = hilo(*arguments)
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("hilo: ")
    assert said in lines[0]
    assert {p: p.stat().st_mtime_ns for p in Path().rglob("*") if "cache" not in p.parts} == before


WRONG_PROGRAMS = {  # what is wrong, and what the line holds after the file
    "unknown op": ("%y = stablehlo.frobnicate %x : tensor<4xf32>", "2:6: stablehlo.frobnicate: "),
    "unknown dialect": ('%y = "vendor.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "2:6: vendor.op: "),
    "wrong type": ("%y = stablehlo.add %x, %x : tensor<5xf32>", "2:"),
    "undefined value": ("%y = stablehlo.add %x, %z : tensor<4xf32>", "2:"),
    "broken constraint": (
        "%y = stablehlo.transpose %x, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>", "2:6: stablehlo.transpose: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_PROGRAMS)
def test_wrong_programs_are_shown_where(hilo, what: str) -> None:
    line, said = WRONG_PROGRAMS[what]
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{line}\nreturn %y : tensor<4xf32>\n}}\n"
    Path("wrong.mlir").write_text(text)
    result = hilo("run", "wrong.mlir", "--random", "0")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"hilo: wrong.mlir:{said}"), result.stderr
    assert len(result.stderr.splitlines()) == 1
    if what == "broken constraint":
        assert result.stderr.rstrip().endswith("]"), result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HILO_STOP", "nothing", "HILO_STOP: no pass 'nothing'; there are"),
        ("HILO_STOP", "fuse#7", "HILO_STOP: pass fuse#7 did not run"),
        ("HILO_SKIP", "nothing", "HILO_SKIP: no pass 'nothing'"),
        ("HILO_SKIP", "legalize", "pass legalize cannot be skipped"),
        ("HILO_PRINT", "nothing", "HILO_PRINT: no pass 'nothing'"),
        ("HILO_TIME", "perhaps", "HILO_TIME must be 0 or 1"),
        ("HILO_THREADS", "many", "HILO_THREADS must be a number"),
        ("HILO_TARGET", "abacus", "no target 'abacus'"),
        ("HILO_FAST_MATH", "wrong", "knows no 'wrong'"),
        ("HILO_DUMP", "rows.mlir/inside", "cannot write rows.mlir/inside"),
    ],
)
def test_wrong_variables(hilo, variable: str, value: str, said: str) -> None:
    result = hilo("compile", "rows.mlir", **{variable: value})
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr


def test_no_corpus_is_a_failure(hilo) -> None:
    result = hilo("conformance", HILO_SHARED="nowhere")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_cache_that_cannot_be_written_is_a_warning_in_one_line(hilo) -> None:
    result = hilo("run", "rows.mlir", "x.npy", HILO_CACHE_DIR="rows.mlir/inside")
    assert result.exit_code == 0
    assert "result 0: float32[4]" in result.stdout
    assert result.stderr.startswith("hilo: hilo works without its cache")
    assert len(result.stderr.splitlines()) == 1


def outcome(command: str, cwd: Path) -> tuple[int, str]:
    environment = {**os.environ, "HILO": f"{sys.executable} -m hilo"}
    shell = ["bash", "-c", command]
    done = subprocess.run(shell, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_closed_and_full_outputs_end_without_a_traceback(hilo, tmp_path: Path) -> None:
    status, errors = outcome("set -o pipefail; $HILO ops | true", tmp_path)
    assert status in (0, 1)
    assert "Traceback" not in errors
    status, errors = outcome("$HILO ops >&-", tmp_path)
    assert "Traceback" not in errors
    if os.path.exists("/dev/full"):
        status, errors = outcome("$HILO translate rows.mlir > /dev/full", tmp_path)
        assert status == 2
        assert "No space left" in errors
        assert len(errors.splitlines()) == 1, errors


def test_output_goes_through_links_and_into_pipes_without_replacing_them(tmp_path: Path) -> None:
    from hilo.cli.common import atomic_write

    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(real)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for path in (link, pipe):
        with atomic_write(str(path)) as f:
            f.write(b"text")
    assert link.is_symlink()
    assert real.read_bytes() == os.read(reader, 100) == b"text"
    assert pipe.is_fifo()
    os.close(reader)


def test_a_device_that_is_full_is_one_error() -> None:
    from hilo.cli.common import atomic_write
    from hilo.errors import Error

    with pytest.raises(Error, match="/dev/full: No space left on device"), atomic_write("/dev/full") as f:
        f.write(b"text")
    assert Path("/dev/full").is_char_device()


FOR_EVER = """func.func @main(%x: tensor<512xf32>) -> tensor<512xf32> {
  %r = stablehlo.while(%y = %x) : tensor<512xf32>
    cond { %p = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %p : tensor<i1> }
    do { %z = stablehlo.sine %y : tensor<512xf32>
      stablehlo.return %z : tensor<512xf32> }
  return %r : tensor<512xf32>
}
"""


@pytest.mark.parametrize("options", [[], ["--check"]], ids=["run", "check"])
def test_ctrl_c_ends_native_code_that_runs_for_ever(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "ever.mlir").write_text(FOR_EVER)
    command = [sys.executable, "-m", "hilo", "run", "ever.mlir", "--random", "0", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        with pytest.raises(subprocess.TimeoutExpired):  # time to get into the call; never too little to pass
            process.wait(timeout=3)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (-signal.SIGINT, 1)  # 1: Python was faster
