"""Modules from one file: as if Python had found them itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = """
import importlib, inspect, sys, pack
for n in range({count}):
    m = importlib.import_module(f"pack.inner.m{{n}}")
own = type(m.__spec__.loader).__module__ == "hilo.bundle"
print(own, m.value(), m.__file__, m.__cached__, m.__spec__.origin, m.__name__, m.__package__)
print(inspect.getsource(m.value))
print(type(pack.inner.__spec__.loader).__module__ == "hilo.bundle", pack.inner.__path__, pack.inner.__file__)
"""


class Package:
    """A package with modules of its own, imported by processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.folder = folder / "pack"
        (self.folder / "inner").mkdir(parents=True)
        start = "import sys\nfrom hilo import bundle\nbundle.install(sys.modules[__name__])\n"
        (self.folder / "__init__.py").write_text(start)
        (self.folder / "inner" / "__init__.py").write_text("")
        for n in range(12):
            more = f"if __name__ == '__main__':\n    print('main', {n})\n"
            self.module(n).write_text(f"def value():\n    return {n}\n\n{more}")

    def module(self, n: int) -> Path:
        return self.folder / "inner" / f"m{n}.py"

    @property
    def file(self) -> Path:
        found = list((self.folder / "__pycache__").glob("modules.*"))
        return found[0] if found else Path()

    def run(self, *args: str, count: int = 12, **env: str) -> list[str]:
        """What a process prints that imports `count` modules: lines about the last one, and about the package in it."""
        args = args or ("-c", SHOW.format(count=count))
        env = {**{k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")},
               "PYTHONPATH": os.pathsep.join((str(self.root), *sys.path)), **env}  # fmt: skip
        done = subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def pack(tmp_path: Path) -> Package:
    return Package(tmp_path)


def test_modules_are_those_that_python_finds(pack: Package) -> None:
    first, second = pack.run(), pack.run()
    assert [line.split()[0] for line in (first[0], first[-1])] == ["False", "False"]
    assert [line.split()[0] for line in (second[0], second[-1])] == ["True", "True"]
    for a, b in zip(first, second, strict=True):
        assert a.removeprefix("False") == b.removeprefix("True")
    assert pack.run("-m", "pack.inner.m3") == ["main 3"]


def test_changed_and_absent_sources(pack: Package) -> None:
    pack.run()
    pack.module(11).write_text("def value():\n    return 'another'\n")
    assert pack.run()[0].startswith("False another")
    (pack.folder / "inner" / "m10.py").unlink()
    with pytest.raises(AssertionError, match=r"No module named 'pack\.inner\.m10'"):
        pack.run()


def test_files_that_are_none(pack: Package) -> None:
    pack.run()
    whole = pack.file.read_bytes()
    other_python = whole.replace(b"%08x" % sys.hexversion, b"%08x" % (sys.hexversion - 1))
    for data in (b"", b"nonsense", whole[:10], whole[:40], whole.replace(b"modules 2", b"modules 1"), other_python):
        pack.file.write_bytes(data)
        assert pack.run()[0].startswith("False 11")
        assert pack.file.read_bytes() != data
        assert pack.run()[0].startswith("True 11")


def test_the_file_is_written_when_that_pays(pack: Package) -> None:
    pack.run(PYTHONDONTWRITEBYTECODE="1")
    assert not (pack.folder / "__pycache__").exists()
    pack.run(count=3)
    assert pack.file == Path()
    pack.run(count=9)
    before = pack.file.read_bytes()
    assert pack.run()[0].startswith("False 11")
    assert pack.file.read_bytes() == before
    assert pack.run(count=9)[0].startswith("True 8")


def test_what_is_true_stays_in_the_file(pack: Package) -> None:
    pack.run(count=9)
    for n in range(12, 24):
        pack.module(n).write_text(f"def value():\n    return {n}\n")
    pack.module(8).unlink()
    script = "import importlib, sys\nfor n in range(9, 24): importlib.import_module(f'pack.inner.m{n}')"
    pack.run("-c", script)
    data = pack.file.read_bytes()
    assert b"pack.inner.m23" in data
    assert b"pack.inner.m7" in data
    assert b"pack.inner.m8" not in data
    assert pack.run("-c", f"{script}\nprint(sys.modules['pack.inner.m20'].__loader__)")[0].startswith("<hilo.bundle.")


def test_bytecode_elsewhere(pack: Package, tmp_path: Path) -> None:
    first, second = (pack.run(PYTHONPYCACHEPREFIX=str(tmp_path / "elsewhere")) for _ in range(2))
    assert second[0].startswith("True 11")
    assert str(tmp_path / "elsewhere") in second[0]
    assert first[0].removeprefix("False") == second[0].removeprefix("True")
    assert not (pack.folder / "__pycache__").exists()
