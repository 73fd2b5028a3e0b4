"""Threads and memory from affinity and control groups, on made-up file systems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hilo.runtime import machine


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 processors, two to a core, all allowed, without control groups."""
    monkeypatch.setattr(machine, "_affinity", lambda: set(range(8)))
    for cpu in range(8):
        write(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 4},{cpu % 4 + 4}\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_cores_and_affinity(root, monkeypatch):
    assert machine.allowed_cpus(str(root)) == 8
    assert machine.default_threads(str(root)) == 4
    monkeypatch.setattr(machine, "_affinity", lambda: {1, 5, 6})
    assert machine.allowed_cpus(str(root)) == 3
    assert machine.default_threads(str(root)) == 2
    monkeypatch.setattr(machine, "_affinity", lambda: {100, 101})  # unknown siblings
    assert machine.default_threads(str(root)) == 2


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("150000 100000", 2), ("max 100000", 8), ("50000 100000", 1), ("300000 100000", 3), ("nonsense", 8), ("", 8)],
)
def test_cgroup_2(root, text, cpus):
    write(root, "proc/self/cgroup", "0::/a/b\n")
    write(root, "sys/fs/cgroup/a/cpu.max", text)
    assert machine.allowed_cpus(str(root)) == cpus
    assert machine.default_threads(str(root)) == min(4, cpus)


def test_the_tightest_limit_on_the_way_holds(root):
    write(root, "proc/self/cgroup", "0::/a/b\n")
    write(root, "sys/fs/cgroup/a/b/cpu.max", "600000 100000")
    write(root, "sys/fs/cgroup/a/cpu.max", "200000 100000")
    assert machine.allowed_cpus(str(root)) == 2


def test_inside_a_container_the_mount_itself_counts(root):
    write(root, "proc/self/cgroup", "0::/../../host/path\n")
    write(root, "sys/fs/cgroup/cpu.max", "100000 100000")
    assert machine.allowed_cpus(str(root)) == 1


def test_cgroup_1(root):
    write(root, "proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/x\n3:memory:/x\n")
    write(root, "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "250000\n")
    write(root, "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n")
    assert machine.allowed_cpus(str(root)) == 3
    write(root, "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n")
    assert machine.allowed_cpus(str(root)) == 8
    write(root, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "8000000\n")
    assert machine.memory_to_keep(str(root)) == 1000000


def test_memory_to_keep(root, monkeypatch):
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.memory_to_keep(str(root)) == total // 8
    write(root, "proc/self/cgroup", "0::/a\n")
    write(root, "sys/fs/cgroup/a/memory.max", "16000000\n")
    assert machine.memory_to_keep(str(root)) == 2000000
    monkeypatch.setenv("HILO_MEMORY_POOL_BYTES", "12345")
    assert machine.memory_to_keep(str(root)) == 12345


def test_here():
    assert 1 <= machine.default_threads() <= machine.allowed_cpus()
