"""What this process may use of the machine: processors and memory, by affinity and by control groups. Imports files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from hilo.files import text


def default_threads(root: str = "/") -> int:
    """Threads for compiled programs: the physical cores this process may use, within its cgroup's CPU limit.

    Two hyperthreads of a core share its vector units, so that a second thread there only disturbs the first.
    """
    return _threads_on(frozenset(_affinity()), root)


@cache
def _threads_on(cpus: frozenset[int], root: str) -> int:
    """Remembered, since it reads a dozen files: what a process may use changes with its affinity, if at all."""
    return max(1, min(_physical_cores(root), allowed_cpus(root)))


def allowed_cpus(root: str = "/") -> int:
    """Logical processors that this process may keep busy: its affinity, within its cgroup's CPU limit (rounded up)."""
    limits = [len(_affinity()), *(-(-quota // period) for quota, period in _cpu_quotas(root))]
    return max(1, min(limits))


def memory_to_keep(root: str = "/") -> int:
    """Bytes of freed memory that the runtime keeps for reuse: an eighth of what the process may use, or what
    HILO_MEMORY_POOL_BYTES says."""
    wish = os.environ.get("HILO_MEMORY_POOL_BYTES", "")
    if wish.isdecimal():
        return int(wish)
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        total = 2 << 30
    return min([total, *_memory_limits(root)]) // 8


def _affinity() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _physical_cores(root: str) -> int:
    """Distinct cores among the allowed processors; a processor whose siblings are unknown counts as a core."""
    cpus = os.path.join(root, "sys/devices/system/cpu")
    return len({text(f"{cpus}/cpu{c}/topology/thread_siblings_list") or str(c) for c in _affinity()})


def _cpu_quotas(root: str) -> Iterator[tuple[int, int]]:
    """(quota, period) of every CPU limit on the way from this process's cgroup to the root (versions 2 and 1)."""
    for folder in _cgroup_folders(root, "cpu"):
        fields = text(f"{folder}/cpu.max").split()
        if not fields:
            fields = [text(f"{folder}/cpu.cfs_quota_us"), text(f"{folder}/cpu.cfs_period_us")]
        if len(fields) == 2 and fields[0].isdecimal() and fields[1].isdecimal() and int(fields[1]) > 0:
            yield int(fields[0]), int(fields[1])


def _memory_limits(root: str) -> Iterator[int]:
    for folder in _cgroup_folders(root, "memory"):
        limit = text(f"{folder}/memory.max") or text(f"{folder}/memory.limit_in_bytes")
        if limit.isdecimal():
            yield int(limit)


def _cgroup_folders(root: str, controller: str) -> Iterator[str]:
    """The cgroup folders of this process for `controller`, innermost first, in each mounted hierarchy."""
    for line in text(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if number == "0" and not controllers:
            mount = os.path.join(root, "sys/fs/cgroup")
        elif controller in controllers.split(","):
            mount = os.path.join(root, "sys/fs/cgroup", controller)
        else:
            continue
        parts = [p for p in path.split("/") if p not in ("", "..")]
        # Inside a container the path may be the host's: what does not exist is skipped, the mount itself remains.
        for depth in range(len(parts), -1, -1):
            yield os.path.join(mount, *parts[:depth])
