"""Grids of processes: turns, meetings, errors, and that nothing waits for ever."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hilo.errors import Error, VerifyError
from hilo.ir.process import LIMIT, Grid, Process, current


def meets(p: Process, *group: tuple[int, int], op: str = "op", value: Any = None) -> list[Any]:
    return p.meet(op, 0, group, p.id if value is None else value)


def test_each_process_knows_where_it_is():
    def main(p: Process) -> Any:
        assert current() is p
        return p.id, p.number

    grid = Grid(2, 3)
    assert grid.run(main) == [((r, q), r * 3 + q) for r in range(2) for q in range(3)]
    assert current() is None


def test_turns_are_deterministic():
    seen: list[int] = []

    def main(p: Process) -> None:
        for _ in range(3):
            seen.append(p.number)
            meets(p, (0, 0), (0, 1), (0, 2))

    runs = []
    for _ in range(3):
        seen.clear()
        Grid(1, 3).run(main)
        runs.append(list(seen))
    assert sorted(runs[0]) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert runs[0] == runs[1] == runs[2]


def test_meetings_of_one_group_do_not_mix():
    """A process that is quick may come to the next meeting before others have left the last."""

    def main(p: Process) -> list[Any]:
        return [meets(p, (1, 0), (0, 0), value=(p.replica, k)) for k in range(4)]

    for got in Grid(2, 1).run(main):
        assert got == [[(1, k), (0, k)] for k in range(4)]


def test_the_first_error_ends_all():
    ended = []

    def main(p: Process) -> None:
        if p.number == 2:
            raise VerifyError("no", rule="C1", loc="a.mlir:1:2", op="op")
        try:
            meets(p, *((0, k) for k in range(4)))
        finally:
            ended.append(p.number)

    with pytest.raises(VerifyError, match=r"^a.mlir:1:2: op: process \(0, 2\): no \[C1\]$"):
        Grid(1, 4).run(main)
    assert set(ended) <= {0, 1, 3}
    assert 0 in ended


def test_an_error_of_python_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Grid(2, 1).run(lambda p: 1 // p.replica and meets(p, (0, 0), (1, 0)))


def test_processes_that_wait_for_ever_are_named():
    def main(p: Process) -> None:
        if p.number < 2:
            meets(p, (0, 0), (0, 1), (0, 2), op=f"op{p.number}")

    with pytest.raises(Error) as e:
        Grid(1, 3).run(main)
    assert e.value.message == ("process (0, 0) would wait for ever in op0 for (0, 1), (0, 2); "
                               "(0, 1) waits in op1 for (0, 0), (0, 2), (0, 2) has ended")  # fmt: skip


def test_a_long_list_of_processes_is_shortened():
    def main(p: Process) -> None:
        if p.number == 0:
            meets(p, *((0, k) for k in range(30)))

    with pytest.raises(Error, match=r"\(0, 8\) and 21 more; .*\(0, 8\) has ended, and 21 more$"):
        Grid(1, 30).run(main)


def test_one_process_alone_may_wait_for_the_outside():
    end = time.monotonic() + 0.02

    def main(p: Process) -> str:
        p.wait(lambda: time.monotonic() > end, lambda: "for a while", until=end + 10)
        return "done"

    assert Grid(1, 1).run(main) == ["done"]
    with pytest.raises(Error, match="would wait for ever in vain"):
        Grid(1, 1).run(lambda p: p.wait(lambda: False, lambda: "in vain", until=time.monotonic() + 0.01))


def test_others_run_while_one_waits_for_the_outside():
    done: list[int] = []

    def main(p: Process) -> None:
        if p.number == 0:
            p.wait(lambda: done == [1], lambda: "", until=time.monotonic() + 10)
        else:
            done.append(p.number)

    Grid(2, 1).run(main)


def test_grids_nest():
    def main(p: Process) -> Any:
        inner = Grid(1, 2).run(lambda q: meets(q, (0, 1), (0, 0), value=10 * p.replica + q.partition))
        assert current() is p
        return meets(p, (0, 0), (1, 0), value=inner[0])

    assert Grid(2, 1).run(main) == [[[1, 0], [11, 10]]] * 2


def test_sizes_of_grids():
    for replicas, partitions in ((0, 1), (1, -1), (True, 1), (1.0, 1)):
        with pytest.raises(Error, match="must be a positive integer"):
            Grid(replicas, partitions)  # type: ignore[arg-type]
    with pytest.raises(Error, match=f"at most {LIMIT}"):
        Grid(LIMIT, 2)


def test_an_interrupt_ends_all():
    def main(p: Process) -> None:
        if p.number == 0:
            meets(p, (0, 0), (0, 1))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Grid(1, 2).run(main)
