"""Vectors in memory and lanes that move, by hilo's own generator: the bits of LLVM's code and of the interpreter."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from x86_agree import HERE, HOST, agree, function

from hilo.backend import x86
from hilo.backend.x86.lanes import pieces_of, shuffles
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.interpret import run

pytestmark = pytest.mark.skipif(not HERE, reason="the machine has no AVX-512")

NP = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32,
      "f64": np.float64}  # fmt: skip
NUMBERS = tuple(NP)[1:]


def made(name: str, params: int, body: Callable[..., Any]) -> Func:
    """A function of pointers, written by `body(builder, *pointers)`."""
    f = Func(name, [(f"p{i}", PTR) for i in range(params)])
    b = Builder(f)
    body(b, *f.params)
    b.ret()
    return f


def random(scalar: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if scalar == "i1":
        return rng.integers(0, 2, n).astype(np.bool_)
    if scalar[0] == "f":
        return rng.standard_normal(n).astype(NP[scalar])
    info = np.iinfo(NP[scalar])
    return rng.integers(info.min, info.max, n, NP[scalar], endpoint=True)


def check(f: Func, *arrays: np.ndarray) -> list[np.ndarray]:
    """Run by both generators and by the interpreter; all agree. Gives the arrays afterwards."""
    got = agree(f, *arrays)
    mine = [a.copy() for a in arrays]
    run(f, *mine)
    for a, b in zip(got, mine, strict=True):
        assert a.tobytes() == b.tobytes(), (f.name, a, b)
    return got


# ---- masks and memory
@pytest.mark.parametrize("scalar", NP)
def test_masked_loads_and_stores(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32, 64):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, m: Node, y: Node, z: Node, t: VType = t) -> None:
            mask = b.load(m, t.with_scalar("i1"))
            v = b.load(x, t, mask=mask)
            b.store(y, v)
            b.store(z, b.load(x, t), mask=b.and_(mask, b.load(b.gep(m, t.lanes), t.with_scalar("i1"))))

        f = made(f"masked_{t!r}", 4, body)
        for seed in range(4):
            check(f, random(scalar, lanes, seed), random("i1", 2 * lanes, seed + 9), random(scalar, lanes, 7),
                  random(scalar, lanes, 8))  # fmt: skip


@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_masked_scalars(scalar: str) -> None:
    t = VType(scalar)

    def body(b: Builder, x: Node, m: Node, y: Node) -> None:
        mask = b.load(m, VType("i1"))
        b.store(y, b.load(x, t, mask=mask))
        b.store(b.gep(y, t.size), b.load(x, t), mask=mask)

    for bit in (False, True):
        check(made(f"one_{scalar}", 3, body), random(scalar, 1), np.array([bit]), random(scalar, 2, 5))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32, 64])
def test_masks_of_the_first_lanes(lanes: int) -> None:
    t = VType("i64", lanes)

    def body(b: Builder, n: Node, y: Node) -> None:
        count = b.load(n, I64)
        b.store(y, b.cmp("slt", b.iota(t), b.splat(count, lanes)))
        b.store(b.gep(y, lanes), b.cmp("slt", b.iota(t), b.splat(b.add(count, 3), lanes)))
        b.store(b.gep(y, 2 * lanes), b.cmp("slt", b.iota(t), b.splat(b.i64(lanes // 2), lanes)))

    f = made(f"first_{lanes}", 2, body)
    for n in (-(1 << 63), -300, -1, 0, 1, lanes - 1, lanes, lanes + 1, 127, 128, 255, 256, 257, 1 << 40):
        (_, y) = check(f, np.array([n], np.int64), np.zeros(3 * lanes, np.bool_))
        assert y[:lanes].sum() == min(max(n, 0), lanes)


class Guarded:
    """Bytes at the end of what may be touched: a page follows that must not be."""

    def __init__(self, data: np.ndarray) -> None:
        page = mmap.PAGESIZE
        self.map = mmap.mmap(-1, 2 * page)
        whole = np.frombuffer(self.map, np.uint8)
        address = whole.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        assert protect(address + page, page, 0) == 0
        raw = np.ascontiguousarray(data).view(np.uint8)
        self.bytes = whole[page - raw.size : page]
        self.bytes[:] = raw
        self.address = address + page - raw.size


@pytest.mark.parametrize("scalar", NP)
def test_nothing_behind_the_lanes_is_touched(scalar: str) -> None:
    """Loads, stores and gathers that end where memory ends."""
    for lanes in (2, 4, 8, 16, 32):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, m: Node, o: Node, y: Node, t: VType = t) -> None:
            mask = b.load(m, t.with_scalar("i1"))
            first = b.load(x, t, mask=mask)  # three lanes alone
            gathered = b.gather(x, b.load(o, t.with_scalar("i64")), t)
            b.store(x, first, mask=mask)
            b.store(y, first)
            b.store(b.gep(y, t.lanes * t.size), gathered)

        f = made(f"end_{t!r}", 4, body)
        n = min(3, lanes)
        data = random(scalar, n, lanes)
        rng = np.random.default_rng(1)
        offsets = (rng.integers(0, n, lanes) * data.itemsize).astype(np.int64)
        offsets[-1] = (n - 1) * data.itemsize
        end = Guarded(data)
        out = np.zeros(2 * lanes, data.dtype)
        assert x86.covers(f, HOST)
        call = function([f], x86.compile([f], HOST), f.name)
        call(end.address, np.arange(lanes) < n, offsets, out)
        assert end.bytes.tobytes() == data.tobytes()
        want = np.concatenate([data, np.zeros(lanes - n, data.dtype), data[offsets // data.itemsize]])
        assert out.tobytes() == want.tobytes(), (f.name, out, want)


@pytest.mark.parametrize("scalar", NP)
def test_gathers(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, o: Node, m: Node, y: Node, t: VType = t) -> None:
            offsets = b.load(o, t.with_scalar("i64"))
            mask = b.load(m, t.with_scalar("i1"))
            b.store(y, b.gather(x, offsets, t))
            b.store(b.gep(y, t.lanes * t.size), b.gather(b.gep(x, 3 if t.size == 1 else t.size), offsets, t, mask=mask))

        f = made(f"gather_{t!r}", 4, body)
        source = random(scalar, 64, lanes)
        if scalar == "i1":
            source = np.ones(64, np.bool_)
        offsets = np.random.default_rng(lanes).integers(0, 60, lanes) * source.itemsize
        for start in range(3):  # gathers of bytes begin anywhere
            check(f, source[start:].copy(), offsets, random("i1", lanes, start), np.zeros(2 * lanes, source.dtype))


@pytest.mark.parametrize("scalar", ["i32", "i64", "f32", "f64"])
def test_scatters(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, o: Node, m: Node, y: Node, t: VType = t) -> None:
            offsets = b.load(o, t.with_scalar("i64"))
            b.scatter(y, offsets, b.load(x, t))
            b.scatter(b.gep(y, 64 * t.size), offsets, b.load(x, t), mask=b.load(m, t.with_scalar("i1")))

        f = made(f"scatter_{t!r}", 4, body)
        offsets = np.random.default_rng(lanes).integers(0, 64, lanes) * np.dtype(NP[scalar]).itemsize  # some twice
        check(f, random(scalar, lanes), offsets, random("i1", lanes), np.zeros(128, NP[scalar]))


# ---- lanes
def masks(lanes: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Shuffles of two vectors: usual ones, and some of all kinds."""
    n, out = lanes, []
    every = range(n)
    out += [tuple(every), tuple(reversed(every)), tuple(x ^ 1 for x in every), (0,) * n, (n - 1,) * n]
    out += [tuple(every)[n // 2 :], tuple(every)[: n // 2], tuple(range(0, 2 * n, 2)), tuple(range(1, 2 * n, 2))]
    out += [tuple(x for i in every for x in (i, n + i)), tuple(range(2 * n)), tuple(n + i for i in every)]
    out += [tuple((n if i % 2 else 0) + i for i in every), (0, *range(n, 2 * n - 1))]
    out += [tuple(i // 2 for i in range(2 * n))]
    for per in (2, 4, 8):
        if n % per == 0:
            for half in (0, per // 2):
                low = [(g * per + half + x // 2, x % 2) for g in range(n // per) for x in range(per)]
                out.append(tuple(x + n * odd for x, odd in low))
                out.append(tuple(x + n * (1 - odd) for x, odd in low))
            out.append(tuple(g * per + x for g in reversed(range(n // per)) for x in range(per)))
            out.append(tuple(2 * g * per + x for g in range(n // per) for x in range(per)))
            quads = rng.integers(0, per, per)
            out.append(tuple(int(g * per + q) for g in range(n // per) for q in quads))
    for size in (n, n, max(1, n // 2)):
        out.append(tuple(int(x) for x in rng.integers(0, 2 * n, size)))
        out.append(tuple(int(x) for x in rng.integers(0, n, size)))
    return list(dict.fromkeys(out))


@pytest.mark.parametrize("scalar", NP)
def test_shuffles(scalar: str) -> None:
    rng = np.random.default_rng(3)
    for lanes in (2, 4, 8, 16, 32, 64):
        t = VType(scalar, lanes)
        chosen = [m for m in masks(lanes, rng) if len(m) * t.size <= 128 and len(m) <= 64]
        x = Func("probe", [("x", PTR)])
        b = Builder(x)
        v = b.load(x.params[0], t)
        other = b.fneg(v) if t.is_float else b.xor(v, 1)
        done = [m for m in chosen if shuffles(b.shuffle(v, other, m))]
        for m in set(chosen).difference(done):  # lanes of more than two registers in one, or of bytes all over one
            assert pieces_of(t, t.with_lanes(len(m)), m) is None or (t.size == 1 and lanes > 8), m

        def body(b: Builder, x: Node, y: Node, z: Node, t: VType = t, done: Sequence[Any] = tuple(done)) -> None:
            v, w, at = b.load(x, t), b.load(y, t), 0
            for m in done:
                b.store(b.gep(z, at), b.shuffle(v, w, m))
                at += len(m) * t.size

        data = [random(scalar, lanes, s) for s in (1, 2)]
        out = np.zeros(sum(map(len, done)), NP[scalar])
        _, _, got = check(made(f"shuffle_{t!r}", 3, body), *data, out)
        both = np.concatenate(data)
        assert got.tobytes() == both[[i for m in done for i in m]].tobytes()


@pytest.mark.parametrize("scalar", NP)
def test_one_lane_out_of_vectors_and_into_them(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32, 64):
        t = VType(scalar, lanes)
        places = sorted({0, 1, lanes // 2, lanes // 2 - 1, lanes - 1, lanes * 3 // 4})

        def body(b: Builder, x: Node, s: Node, y: Node, t: VType = t, places: Sequence[int] = tuple(places)) -> None:
            v, one = b.load(x, t), b.load(s, t.with_lanes(1))
            for i, p in enumerate(places):
                b.store(b.gep(y, i * t.size), b.lane(v, p))
                b.store(b.gep(y, (len(places) + i * t.lanes) * t.size), b.insert(v, one, p))

        out = np.zeros(len(places) * (lanes + 1), NP[scalar])
        for seed in (1, 2):
            check(made(f"lane_{t!r}", 3, body), random(scalar, lanes, seed), random(scalar, 1, seed), out)


@pytest.mark.parametrize("scalar", NP)
def test_splats(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32, 64):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, y: Node, t: VType = t) -> None:
            one = b.load(x, t.with_lanes(1))
            b.store(y, b.splat(one, t.lanes))
            b.store(b.gep(y, t.lanes * t.size), b.splat(b.load(b.gep(x, t.size), t.with_lanes(1)), t.lanes))
            b.store(b.gep(y, 2 * t.lanes * t.size), b.splat(b.const(1, t.with_lanes(1)), t.lanes))

        for seed in (1, 2):
            check(made(f"splat_{t!r}", 2, body), random(scalar, 2, seed), np.zeros(3 * lanes, NP[scalar]))


HOWS = {"f": ("fadd", "fmul"), "i": ("add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin")}


@pytest.mark.parametrize("scalar", ["i16", "i32", "i64", "f32", "f64"])
def test_lanes_are_combined_halves_with_halves(scalar: str) -> None:
    for lanes in (2, 4, 8, 16, 32):
        t = VType(scalar, lanes)

        def body(b: Builder, x: Node, y: Node, t: VType = t) -> None:
            for i, how in enumerate(HOWS[t.scalar[0]]):
                b.store(b.gep(y, i * t.size), b.across(how, b.load(x, t)))

        check(made(f"across_{t!r}", 2, body), random(scalar, lanes, 4), np.zeros(9, NP[scalar]))
