"""XLA's options `xla_dump_...` write a program's texts and messages to files."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hilo.formats import hlo_text, protobuf
from hilo.pjrt import compiler
from hilo.pjrt.dump import Dump

PROGRAM = b"""
module @jit_f {
  func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.tanh %x : tensor<3x4xf32>
    %1 = stablehlo.add %0, %x : tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}"""


def options(**overrides: str | bool) -> bytes:
    """A CompileOptionsProto with overrides by name."""
    entries = b""
    for name, value in overrides.items():
        given = protobuf.put_bytes(1, value.encode()) if isinstance(value, str) else b"\x10" + bytes([value])
        entries += protobuf.put_bytes(7, protobuf.put_bytes(1, name.encode()) + protobuf.put_bytes(2, given))
    return entries


def ends(folder: Path) -> list[str]:
    """How the names of the files go on after their number; or nothing."""
    return sorted(p.name.partition(".")[2] for p in folder.iterdir()) if folder.exists() else []


def only(folder: Path, end: str) -> bytes:
    (path,) = folder.glob(f"*{end}")
    return path.read_bytes()


def test_texts(tmp_path: Path) -> None:
    loaded = compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(tmp_path / "new" / "folder")))
    folder = tmp_path / "new" / "folder"
    assert ends(folder) == ["jit_f.before_optimizations.txt", "jit_f.hilo_after_optimizations.txt"]
    before, after = (only(folder, f".{when}_optimizations.txt") for when in ("before", "hilo_after"))
    assert hlo_text.parse(before).functions
    assert b"fusion" not in before
    assert b"kLoop" in after
    compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(tmp_path / "hit")))  # comes from the cache
    assert only(tmp_path / "hit", "hilo_after_optimizations.txt") == after
    compiler.load(loaded.serialize(), options(xla_dump_to=str(tmp_path / "read")))
    assert ends(tmp_path / "read") == ["jit_f.hilo_after_optimizations.txt"]
    assert only(tmp_path / "read", "hilo_after_optimizations.txt") == after


def test_messages(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    loaded = compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(folder), xla_dump_hlo_as_proto=True))
    assert ends(folder) == ["jit_f.before_optimizations.hlo.pb", "jit_f.hilo_after_optimizations.hlo.pb"]
    assert only(folder, "after_optimizations.hlo.pb") == loaded.optimized_program()[1]
    assert hlo_text.parse_message(only(folder, "before_optimizations.hlo.pb")).functions
    both = options(xla_dump_to=str(tmp_path / "both"), xla_dump_hlo_as_proto=True, xla_dump_hlo_as_text=True)
    compiler.compile("mlir", PROGRAM, both)
    assert len(ends(tmp_path / "both")) == 4


def test_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = f"--xla_cpu_enable_fast_math=false --xla_dump_to={tmp_path}/flags --xla_dump_hlo_as_proto"
    monkeypatch.setenv("XLA_FLAGS", flags)
    compiler.compile("mlir", PROGRAM, b"")
    assert len(ends(tmp_path / "flags")) == 2
    assert all(name.endswith(".hlo.pb") for name in ends(tmp_path / "flags"))
    compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(tmp_path / "own")))  # what is nearer counts
    assert len(ends(tmp_path / "flags")) == len(ends(tmp_path / "own")) == 2
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_dump_hlo_module_re=other")
    compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(tmp_path / "none")))
    assert ends(tmp_path / "none") == []


def test_nothing_is_written_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiler.compile("mlir", PROGRAM, options(xla_dump_hlo_as_text=True))
    assert not list(tmp_path.iterdir())


def test_what_fails_is_told_and_harms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        compiler.compile("mlir", PROGRAM, options(xla_dump_to=str(tmp_path / "file" / "folder")))
        Dump({"xla_dump_to": str(tmp_path), "xla_dump_hlo_module_re": "("}).write("f", ("", b""))
    assert [r.levelname for r in caplog.records] == ["WARNING"] * 2
    assert "jit_f is not written to" in caplog.text


def test_constants_of_many_elements_are_left_out(tmp_path: Path) -> None:
    numbers = ", ".join(map(str, range(100)))
    program = f"""
    func.func @main(%x: tensor<100xi32>) -> (tensor<100xi32>, tensor<2xi64>) {{
      %0 = stablehlo.constant dense<[{numbers}]> : tensor<100xi32>
      %1 = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
      %2 = stablehlo.add %x, %0 : tensor<100xi32>
      return %2, %1 : tensor<100xi32>, tensor<2xi64>
    }}"""
    compiler.compile("mlir", program.encode(), options(xla_dump_to=str(tmp_path)))
    for when in ("before", "after"):
        text = only(tmp_path, f"{when}_optimizations.txt")
        assert b"constant({...})" in text
        assert b"constant({3, 4})" in text


def test_names_of_programs_become_names_of_files(tmp_path: Path) -> None:
    program = PROGRAM.replace(b"@jit_f", b'@"../a b/c"')
    compiler.compile("mlir", program, options(xla_dump_to=str(tmp_path)))
    assert ends(tmp_path) == [".._a_b_c.before_optimizations.txt", ".._a_b_c.hilo_after_optimizations.txt"]
