"""Serialized executables: the same program again, or one clear error."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo.backend.target import Target
from hilo.custom_calls.registry import unregister
from hilo.errors import Error, Unsupported
from hilo.pjrt import artifact, compiler

TEXT = b"""
module @jit_g {
  func.func @main(%x: tensor<3x4xf32> {mhlo.layout_mode = "{0,1}", tf.aliasing_output = 0 : i32}, %y: tensor<200xbf16>)
      -> (tensor<3x4xf32> {mhlo.memory_kind = "pinned_host"}, tensor<200xbf16>) {
    %c = stablehlo.constant dense<"0xTABLE"> : tensor<200xbf16>
    %0 = stablehlo.exponential %x : tensor<3x4xf32>
    %1 = stablehlo.add %y, %c : tensor<200xbf16>
    return %0, %1 : tensor<3x4xf32>, tensor<200xbf16>
  }
}
""".replace(b"TABLE", np.arange(200).astype(ml_dtypes.bfloat16).tobytes().hex().encode())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HILO_CACHE_PROGRAMS", "1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with pytest.MonkeyPatch.context() as m:
        m.setenv("HILO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return compiler.compile("mlir", TEXT, b"").serialize()


def arrays() -> list[np.ndarray]:
    return [np.linspace(-1, 2, 12, dtype="f4").reshape(4, 3), np.arange(200).astype(ml_dtypes.bfloat16)]


def told(p: compiler.Loaded) -> dict[str, Any]:
    """All that a program tells about itself."""
    plain = {k: v for k, v in vars(p).items() if k not in ("native", "_artifact")}
    return {**plain, "optimized": p.optimized_program(), "costs": p.cost_analysis(), "memory": p.memory_stats(),
            "code": p.code_size()}  # fmt: skip


@pytest.mark.parametrize("source", ["serialized", "cached"])
def test_it_is_the_same_program(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p = compiler.compile("mlir", TEXT, b"")
    want = p.native(*arrays())

    def refuse(*_: object) -> None:
        raise AssertionError("nothing is parsed")

    monkeypatch.setattr(compiler, "parse", refuse)
    q = compiler.load(p.serialize(), b"") if source == "serialized" else compiler.compile("mlir", TEXT, b"")
    assert told(q) == told(p)
    assert [a.tobytes() for a in q.native(*arrays())] == [a.tobytes() for a in want]
    assert q.serialize() == p.serialize()


def test_options_in_place_of_those_of_the_compilation(data: bytes) -> None:
    other = b"\x1a\x02\x20\x01"  # one replica
    assert compiler.load(data, other).options == other
    with pytest.raises(Unsupported, match="8 replicas"):
        compiler.load(data, b"\x1a\x02\x20\x08")


def test_any_damage_is_found(data: bytes) -> None:
    r = random.Random(3)
    for cut in (0, 5, len(artifact.MAGIC), len(artifact.MAGIC) + 20, len(data) - 1):
        with pytest.raises(Error, match=r"no executable|cut short|damaged"):
            compiler.load(data[:cut], b"")
    for _ in range(60):
        broken = bytearray(data)
        broken[r.randrange(len(data))] ^= 1 << r.randrange(8)
        with pytest.raises(Error, match=r"no executable|damaged|reads 1"):
            compiler.load(bytes(broken), b"")
    with pytest.raises(Error, match="damaged"):
        compiler.load(data + b"\0", b"")


def signed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def test_what_somebody_else_wrote_makes_no_sense(data: bytes) -> None:
    """Bytes with the right checksum are still only data."""
    r = random.Random(4)
    start, body = len(artifact.MAGIC) + 12, data[:-32]
    size = int.from_bytes(body[start - 8 : start], "little")
    refused = 0
    for _ in range(400):
        broken = bytearray(body)
        for _ in range(r.randint(1, 3)):
            broken[r.randrange(start - 8, start + size)] = r.choice(b'0123456789"[]{},:x\0')
        try:
            artifact.read(signed(bytes(broken)), artifact.circumstances())
        except Error:
            refused += 1
    assert refused > 200
    for header in (b"", b"[]", b"{}", b"null", b"[" * 100_000, b'{"made": 3}', b"\xff\xfe"):
        whole = artifact.MAGIC + (artifact.FORMAT).to_bytes(4, "little") + len(header).to_bytes(8, "little") + header
        with pytest.raises(Error, match=r"makes no sense|was made by"):
            compiler.load(signed(whole), b"")


def test_another_version_or_machine(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    later = bytearray(data)
    later[len(artifact.MAGIC)] = 200
    with pytest.raises(Error, match="has the format 200; this hilo reads"):
        compiler.load(bytes(later), b"")
    monkeypatch.setattr(artifact, "circumstances", lambda: {"hilo": "7.0"})
    with pytest.raises(Error, match=r"made by hilo .*, this is 7\.0: compile it again"):
        compiler.load(data, b"")
    monkeypatch.undo()
    monkeypatch.setattr(Target, "host", staticmethod(lambda: Target.named("x86-sse2")))
    with pytest.raises(Error, match=r"for another machine .*this is x86-sse2"):
        artifact.read(data, artifact.circumstances())


def test_calls_of_libraries_are_compiled_again() -> None:
    text = b"""func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.custom_call @test_artifact.c(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }"""
    code = "define i32 @f(ptr %call) {\n ret i32 0\n}"
    hilo.register_custom_call("test_artifact.c", code, convention="llvm")
    try:
        data = compiler.compile("mlir", text, b"").serialize()
        assert text in data
        again = compiler.load(data, b"")
        assert again.serialize() == data
        assert len(again.native(np.zeros((2, 2), "f4"))) == 1
    finally:
        unregister("test_artifact.c")
    with pytest.raises(Unsupported, match=r"test_artifact\.c"):
        compiler.load(data, b"")


def test_calls_of_python_cannot_be_serialized() -> None:
    text = b"""module @jit_h { func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @test_artifact.python(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    } }"""
    hilo.register_custom_call("test_artifact.python", lambda x: x + 1)
    try:
        p = compiler.compile("mlir", text, b"")
        assert p.native(np.zeros(2, "f4"))[0].tolist() == [1, 1]
        with pytest.raises(Unsupported, match="@jit_h calls Python functions of this process"):
            p.serialize()
    finally:
        unregister("test_artifact.python")


def test_the_cache_tells_options_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    real = compiler.parse
    monkeypatch.setattr(compiler, "parse", lambda *a: [seen.append(a), real(*a)][1])
    plain = compiler.compile("mlir", TEXT, b"")
    assert compiler.compile("mlir", TEXT, b"").fingerprint == plain.fingerprint
    assert len(seen) == 1
    fast = b"\x3a\x16\x0a\x0e" + b"hilo_fast_math" + b"\x12\x04\x0a\x02" + b"11"
    with pytest.raises(Error, match="fast_math"):
        compiler.compile("mlir", TEXT, fast)
    fast = b"\x3a\x1a\x0a\x0e" + b"hilo_fast_math" + b"\x12\x08\x0a\x06" + b"finite"
    other = compiler.compile("mlir", TEXT, fast)
    assert other.fingerprint != plain.fingerprint
    assert len(seen) == 2
