"""Buffer assignment: places that are live together never overlap, and dead ones are used again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hilo.plan.assign import ALIGN, assign_buffers
from hilo.plan.program import Buffer, Copy, Program


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 5000)), min_size=1, max_size=40))
def test_live_buffers_do_not_overlap(spans: list[tuple[int, int, int]]) -> None:
    buffers = [Buffer("temp", size) for _, _, size in spans]
    outside = Buffer("argument", 8)
    steps = []
    for now in range(31):
        for b, (x, y, _) in zip(buffers, spans, strict=True):
            if now in (min(x, y), max(x, y)):
                steps.append(Copy(b, outside))
    program = assign_buffers(Program("p", [outside], [], steps, buffers))
    for i, a in enumerate(buffers):
        assert a.offset % ALIGN == 0
        assert a.offset + a.nbytes <= program.arena_size
        for b in buffers[i + 1 :]:
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert apart or not together


def test_dead_places_are_used_again() -> None:
    outside = Buffer("argument", 8)
    buffers = [Buffer("temp", 1000) for _ in range(50)]
    steps = [s for b in buffers for s in (Copy(b, outside), Copy(outside, b))]
    program = assign_buffers(Program("p", [outside], [], steps, buffers))
    assert program.arena_size == 1000
