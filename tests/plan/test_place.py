"""Placement: results are free memory until they are written, and never while they, or what they replace, are read."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import hilo
from hilo.plan.assign import assign_buffers
from hilo.plan.place import least_size, place
from hilo.plan.program import ALIGN, Buffer, Copy, Program, Room


def alive(first: int, last: int, nbytes: int) -> Buffer:
    return Buffer("temp", nbytes, first=first, last=last)


def rounded(b: Buffer) -> int:
    return -(-b.nbytes // ALIGN) * ALIGN


SPANS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9), st.integers(1, 3000)), min_size=1, max_size=30)
ROOMS = st.lists(st.tuples(st.integers(1, 4000), st.integers(-1, 10), st.integers(5, 40)), max_size=4)


@settings(deadline=None)  # a busy machine is no error
@given(SPANS, ROOMS)
def test_nothing_overlaps_and_rooms_are_left_in_time(
    spans: list[tuple[int, int, int]], rooms: list[tuple[int, int, int]]
) -> None:
    buffers = [alive(first, first + length, n) for first, length, n in spans]
    places = [Room(Buffer("result", n, i), n, start, end) for i, (n, start, end) in enumerate(rooms)]
    size = place(buffers, rounded, places, lambda b: b.nbytes)
    assert size >= least_size(buffers, lambda b: b.nbytes, places)
    for i, a in enumerate(buffers):
        assert a.offset % ALIGN == 0
        room = next((r for r in places if r.result is a.inside), None)
        if room is None:
            assert a.offset + a.nbytes <= size
        else:
            assert a.offset + a.nbytes <= room.size
            assert room.start < a.first
            assert a.last < room.end
        for b in buffers[:i]:
            if a.inside is b.inside and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset


def test_the_largest_go_first_and_many_small_ones_behind() -> None:
    buffers = [alive(t, t + 1, 100 + t % 7) for t in range(5000)] + [alive(0, 5000, 1 << 20)]
    size = place(buffers, rounded)
    assert (1 << 20) + 2 * 128 <= size <= (1 << 20) + 8 * 128


def test_a_result_is_free_until_it_is_written() -> None:
    x, early, late = Buffer("argument", 640), Buffer("temp", 640), Buffer("temp", 640)
    r = Buffer("result", 640)
    steps = [Copy(early, x), Copy(late, early), Copy(r, late)]
    program = assign_buffers(Program("p", [x], [r], list(steps), [early, late]), in_place=False)
    assert early.inside is r  # dead before the result is written
    assert late.inside is None
    assert program.arena_size == 640


def test_a_chain_in_place_works_in_the_result() -> None:
    x, t = Buffer("argument", 640), Buffer("temp", 640)
    r = Buffer("result", 640)
    program = assign_buffers(Program("p", [x], [r], [Copy(t, x), Copy(r, t)], [t]))
    assert t.root() is r
    assert program.arena_size == 0


def test_what_replaces_an_argument_is_no_room_while_that_is_read() -> None:
    """The result lies over %x, which is read after the first steps have made their temporaries."""
    n = 4096
    t = f"tensor<{n}xf32>"
    text = f"""func.func @main(%x: {t} {{tf.aliasing_output = 0 : i32}}) -> {t} {{
        %0 = stablehlo.reverse %x, dims = [0] : {t}
        %1 = "stablehlo.sort"(%0) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }}) {{dimension = 0 : i64}} : ({t}) -> {t}
        %2 = stablehlo.reverse %1, dims = [0] : {t}
        %3 = stablehlo.add %2, %x : {t}
        return %3 : {t} }}"""
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    f = hilo.compile(text)
    want = np.sort(x)[::-1] + x
    np.testing.assert_array_equal(f(x)[0], want)
    np.testing.assert_array_equal(f.consume([x.copy()])[0], want)
