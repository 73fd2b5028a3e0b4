"""The machine's limits: kept in the cache, the better figure counts, damage is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilo.runtime import limits
from hilo.runtime.cache import Cache
from hilo.runtime.limits import Limits, known, measure


def test_limits_are_measured_once_and_the_better_ones_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Limits(100.0, 10.0, 20.0), Limits(90.0, 11.0, 5.0)]
    monkeypatch.setattr(limits, "measure", lambda threads: found.pop(0))
    cache = Cache(tmp_path)
    assert known(2, cache) == known(2, cache) == Limits(100.0, 10.0, 20.0)
    assert known(2, cache, again=True) == Limits(100.0, 11.0, 20.0)
    assert known(2, Cache(tmp_path)) == Limits(100.0, 11.0, 20.0)
    assert not found


@pytest.mark.parametrize("data", [b"[]", b"null", b"{", b'{"fma": 1}', b'{"fma": "x", "copy": 1, "read": 1}', b"3"])
def test_what_is_no_limits_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(limits, "measure", lambda threads: Limits(1.0, 2.0, 3.0))
    monkeypatch.setattr(Cache, "get", lambda self, key: data)
    assert known(1, Cache(tmp_path)) == Limits(1.0, 2.0, 3.0)


def test_measuring_gives_positive_figures() -> None:
    found = measure(1, megabytes=2, rounds=1)
    assert min(found.fma, found.copy, found.read) > 0
    assert found.best_ms(found.fma * 1e9, 0, 0) == pytest.approx(1000)
    assert found.best_ms(0, found.copy * 1e9 / 2, found.copy * 1e9 / 2) == pytest.approx(1000)


SIZES = [(0, 0), (10, 0), (0, 10), (1 << 20, 3 << 20), (3 << 20, 1 << 20), (77, 77)]


@pytest.mark.parametrize(("read", "written"), SIZES)
def test_work_at_the_limit(read: int, written: int) -> None:
    """Any numbers of bytes and flops, by one thread and by more."""
    for threads in (1, 3):
        limits.moving(read, written, threads)(3)
        limits.multiplying(read * 1e-3, threads)(2)
