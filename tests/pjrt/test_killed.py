"""A process that is killed while it writes to the cache loses nothing and damages nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import hilo
from hilo.runtime.cache import Cache, Key

SOURCES = Path(hilo.__file__).parents[1]
ENTRIES = 40
ROUNDS = 12
SIZE = 300_000

WRITER = f"""
import sys
from hilo.runtime.cache import Cache, Key
cache, first = Cache(sys.argv[1]), int(sys.argv[2])
print("writes", flush=True)
while True:
    for i in range({ENTRIES}):
        i = (i + first) % {ENTRIES}
        cache.put(Key.of(str(i), what="test"), bytes([i]) * {SIZE})
"""

COMPILER = """
import sys
import hilo.pjrt.compiler as compiler
print("compiles", flush=True)
for i in range(1000):
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{" + (
        f"%c = stablehlo.constant dense<{i}.5> : tensor<4xf32> %0 = stablehlo.add %x, %c : tensor<4xf32> "
        "return %0 : tensor<4xf32> }")
    compiler.compile("mlir", text.encode(), b"")
    if len(sys.argv) > 1:
        print(len(compiler.compile("mlir", text.encode(), b"").serialize()))
        if i == int(sys.argv[1]):
            break
"""


def begin(program: str, directory: Path, *arguments: object) -> subprocess.Popen[str]:
    """A child that has started its work."""
    env = {**os.environ, "PYTHONPATH": str(SOURCES), "HILO_CACHE": "1", "HILO_CACHE_DIR": str(directory)}
    child = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], env=env, stdout=subprocess.PIPE,
                             text=True)  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline()
    return child


def kill_after(child: subprocess.Popen[str], seconds: float) -> None:
    with pytest.raises(subprocess.TimeoutExpired):  # it does not end by itself
        child.wait(seconds)
    child.kill()
    child.communicate()


def test_killed_writers(tmp_path: Path) -> None:
    chance = random.Random(0)
    cache = Cache(tmp_path)
    complete = 0
    for round_ in range(ROUNDS):
        kill_after(begin(WRITER, tmp_path, tmp_path, round_ * 7), chance.random() * 0.03)
        found = {i: cache.get(Key.of(str(i), what="test")) for i in range(ENTRIES)}
        assert all(data in (None, bytes([i]) * SIZE) for i, data in found.items())
        now = sum(data is not None for data in found.values())
        assert now >= complete, "entries are lost"
        complete = now
    assert complete > 0
    for i in range(ENTRIES):
        cache.put(Key.of(str(i), what="test"), bytes([i]) * SIZE)
        assert cache.get(Key.of(str(i), what="test")) == bytes([i]) * SIZE
    assert sum(p.suffix == ".entry" for p in cache.directory.iterdir()) == ENTRIES


def test_killed_compilers(tmp_path: Path) -> None:
    for seconds in (0.02, 0.1):
        kill_after(begin(COMPILER, tmp_path), seconds)
    done = begin(COMPILER, tmp_path, 5)
    sizes, _ = done.communicate()
    assert done.returncode == 0
    assert len(set(sizes.split())) <= 2
