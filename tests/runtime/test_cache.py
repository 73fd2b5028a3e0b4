"""The cache of compiled code: what is found again, what is a miss and why, and that nothing makes it fail."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from hilo.runtime import cache as cache_module
from hilo.runtime.cache import Cache, Key
from hilo.runtime.stores import default_directory

AROUND = {"cpu": "znver5", "features": "+avx2,+fma", "llvm": "22.1.0", "options": "O1"}


def key(text: str = "define i32 @entry", **changes: str) -> Key:
    return Key.of(text, **{**AROUND, **changes})


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("v*/*.entry"))


def test_put_and_get(tmp_path):
    c = Cache(tmp_path)
    assert c.get(key()) is None
    c.put(key(), b"code\n\0more")
    assert c.get(key()) == b"code\n\0more"
    assert Cache(tmp_path).get(key()) == b"code\n\0more"  # another process
    c.put(key("empty"), b"")
    assert c.get(key("empty")) == b""
    c.put(key(), b"new")
    assert c.get(key()) == b"new"
    assert len(entries(tmp_path)) == 2


@pytest.mark.parametrize("change", [{"text": "other"}, *({name: "other"} for name in AROUND), {"extra": "x"}])
def test_every_part_of_the_key_counts(tmp_path, change):
    c = Cache(tmp_path)
    c.put(key(), b"code")
    assert c.get(key(**change)) is None


def test_bytes_and_text_are_one():
    assert Key.of("text") == Key.of(b"text")
    assert Key.of("text", a="1", b="2").name == Key.of("text", b="2", a="1").name
    assert Key.of("text", a="1", b="").name != Key.of("text", a="", b="1").name


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda raw: raw[:-1], id="truncated"),
        pytest.param(lambda raw: b"", id="empty"),
        pytest.param(lambda raw: raw[:20], id="header only"),
        pytest.param(lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), id="one bit"),
        pytest.param(lambda raw: raw + b"x", id="longer"),
        pytest.param(lambda raw: os.urandom(len(raw)), id="noise"),
        pytest.param(lambda raw: raw.replace(b"znver5", b"znver4"), id="another key"),
        pytest.param(lambda raw: b"hilo cache\n[]\n", id="header that is no object"),
    ],
)
def test_damaged_entries_are_misses_and_replaced(tmp_path, capsys, damage):
    c = Cache(tmp_path, explain=True)
    c.put(key(), b"code" * 100)
    (path,) = entries(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert c.get(key()) is None
    assert "damaged" in capsys.readouterr().err
    assert entries(tmp_path) == []
    c.put(key(), b"again")
    assert c.get(key()) == b"again"


def test_explanations(tmp_path, capsys):
    c = Cache(tmp_path, explain=True)

    def why(k: Key) -> str:
        assert c.get(k) is None
        return capsys.readouterr().err.partition(": miss ")[2].partition(": ")[2].strip()

    assert why(key()) == "new text"
    c.put(key(), b"code")
    assert c.get(key()) == b"code"
    assert capsys.readouterr().err == ""
    assert why(key("other")) == "new text"
    assert why(key(cpu="skylake")) == "other cpu: was znver5, is skylake"
    assert why(key(llvm="21.0")) == "other llvm: was 22.1.0, is 21.0"
    assert why(key(features="+avx2,+avx512f")) == "other features: now also +avx512f, no longer +fma"
    assert why(key(cpu="a", llvm="b")) == "other cpu: was znver5, is a; other llvm: was 22.1.0, is b"
    c.put(key(cpu="a"), b"code")
    assert why(key(cpu="a", llvm="b")) == "other llvm: was 22.1.0, is b"  # the nearest relative
    off = Cache(tmp_path, enabled=False, explain=True)
    off.put(key(), b"x")
    assert off.get(key()) is None
    assert "switched off" in capsys.readouterr().err
    assert c.get(key()) == b"code"


def test_the_least_recently_used_go_first(tmp_path, capsys):
    c = Cache(tmp_path, limit=10_000, explain=True)
    for i in range(5):
        c.put(key(str(i)), bytes(1500))
        (path,) = (p for p in entries(tmp_path) if p.name == key(str(i)).name)
        os.utime(path, (time.time() - 1000 + i,) * 2)
    assert c.get(key("0")) is not None  # used now
    c.put(key("5"), bytes(1500))
    c.put(key("6"), bytes(1500))
    assert sum(p.stat().st_size for p in entries(tmp_path)) <= 10_000
    assert c.get(key("1")) is None
    assert "evicted" in capsys.readouterr().err
    assert c.get(key("0")) is not None
    assert c.get(key("6")) is not None
    c.put(key("huge"), bytes(20_000))
    assert c.get(key("huge")) is None
    assert c.get(key("6")) is not None


def test_the_size_is_bounded_across_instances(tmp_path):
    for i in range(30):
        Cache(tmp_path, limit=10_000).put(key(str(i)), bytes(1500))
        assert sum(p.stat().st_size for p in entries(tmp_path)) <= 10_000
    assert Cache(tmp_path).get(key("29")) is not None


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    c = Cache(tmp_path)
    c.put(key(), b"code")
    old, fresh = c.directory / "a.tmp", c.directory / "b.tmp"
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(old, (time.time() - 10_000,) * 2)
    Cache(tmp_path).put(key("b"), b"code")
    assert not old.exists()
    assert fresh.exists()


def test_unusable_directories_warn_once_and_never_fail(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.warns(RuntimeWarning, match="works without its cache"):
        c = Cache(blocked / "cache")
    c.put(key(), b"code")  # warnings are errors here: no second one
    assert c.get(key()) is None


def test_a_full_disk_warns_once(tmp_path, monkeypatch):
    c = Cache(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_module.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        c.put(key(), b"code")
    c.put(key(), b"code")  # warnings are errors here: no second one
    assert list(c.directory.iterdir()) == []


def test_code_that_others_may_write_is_not_run(tmp_path):
    c = Cache(tmp_path)
    c.put(key(), b"code")
    assert stat.S_IMODE(c.directory.stat().st_mode) == 0o700
    c.directory.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="anybody may write"):
        assert Cache(tmp_path).get(key()) is None


def test_default_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == str(tmp_path / "hilo")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the XDG specification
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_directory() == str(tmp_path / "home" / ".cache" / "hilo")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert default_directory() is None
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert Cache().get(key()) is None


WRITER = """
import sys
from hilo.runtime.cache import Cache, Key
cache = Cache(sys.argv[1], limit=200_000)
for i in range(300):
    key = Key.of(str(i % 40))
    expected = bytes([i % 40]) * 10_000
    data = cache.get(key)
    assert data in (None, expected)
    cache.put(key, expected)
"""


def test_processes_at_once(tmp_path):
    """Writers and pruners of one directory never see half an entry and never fail."""
    command = [sys.executable, "-W", "error", "-c", WRITER, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("rubbish", [b"[" * 100_000, b'{"size": ' + b"9" * 10_000 + b"}", b"\xff\x80"])
def test_a_header_that_no_reader_takes_is_a_miss(tmp_path: Path, rubbish: bytes) -> None:
    cache = Cache(tmp_path)
    cache.put(key(), b"code")
    (path,) = entries(tmp_path)
    path.write_bytes(b"hilo cache\n" + rubbish + b"\ncode")
    assert cache.get(key()) is None
    assert cache.get(key(cpu="other")) is None


def test_what_is_no_plain_file_is_a_miss_that_waits_for_nobody(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    cache = Cache(tmp_path, explain=True)
    cache.put(key(), b"code")
    (path,) = entries(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert cache.get(key()) is None
    assert "no plain file" in capsys.readouterr().err
    assert cache.get(key(cpu="other")) is None  # explained by looking at the first
    cache.put(key(), b"code")
    assert cache.get(key()) == b"code"


def test_a_directory_that_cannot_be_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(RuntimeWarning, match="works without its cache"):
        cache = Cache(tmp_path / "a\0b")
    cache.put(key(), b"code")
    assert cache.get(key()) is None
    monkeypatch.chdir(tmp_path)
    cache = Cache("~no-such-user/x")  # as shells do: a name like any other
    cache.put(key(), b"code")
    assert cache.get(key()) == b"code"
