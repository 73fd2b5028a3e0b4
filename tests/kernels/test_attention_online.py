"""Softmax that is normalized as its blocks come (`fast_math` "online"): close to the interpreter, where allowed."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.backend.target import Target
from hilo.kernels import attention_online
from hilo.options import Options
from hilo.passes import attention

STRICT = Options(cache=False)
ONLINE = Options(cache=False, fast_math=frozenset({"online"}))
TARGETS = [t for t in ("host", "x86-avx2", "x86-sse2") if Target.host().includes(Target.named(t))]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 256 elements are long, and blocks small."""
    monkeypatch.setattr(attention, "ROW", 1 << 10)
    monkeypatch.setattr(attention_online, "COLUMNS", 96)
    monkeypatch.setattr(attention_online, "ROWS", 32)


def tensor(*shape: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def program(b: int, s: int, t: int, d: int, w: int, *, low: str = "0xFF800000", guard: bool = False,
            normalized: str = "%8", results: str = "%9") -> str:  # fmt: skip
    """softmax(q k^T / 8 + mask) v."""
    q, k, v, x, r, o, m = (tensor(*n) for n in ((b, s, d), (b, t, d), (b, t, w), (b, s, t), (b, s), (b, s, w), (s, t)))
    types = {"%9": o, "%8": x, "%0": x}
    taken = results.split(", ")
    reduces = f"across dimensions = [2] : ({x}, tensor<f32>) -> {r}"
    return f"""func.func @main(%q: {q}, %k: {k}, %v: {v}, %m: {m}) -> ({", ".join(types[n] for n in taken)}) {{
      %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : ({q}, {k}) -> {x}
      %c = stablehlo.constant dense<0.125> : {x}
      %a = stablehlo.multiply %0, %c : {x}
      %mb = stablehlo.broadcast_in_dim %m, dims = [1, 2] : ({m}) -> {x}
      %1 = stablehlo.add %a, %mb : {x}
      %low = stablehlo.constant dense<{low}> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum {reduces}
      %lows = stablehlo.constant dense<{low}> : {r}
      %2 = stablehlo.maximum {"%lows" if guard else "%r"}, %r : {r}
      %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : ({r}) -> {x}
      %4 = stablehlo.subtract %1, %3 : {x}
      %5 = stablehlo.exponential %4 : {x}
      %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add {reduces}
      %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : ({r}) -> {x}
      %8 = stablehlo.divide %5, %7 : {x}
      %9 = stablehlo.dot_general {normalized}, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : ({x}, {v}) -> {o}
      return {results} : {", ".join(types[n] for n in taken)} }}"""


def inputs(b: int, s: int, t: int, d: int, w: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal(n).astype(np.float32) for n in ((b, s, d), (b, t, d), (b, t, w)))
    return [q * 3, k * 3, v, np.zeros((s, t), np.float32)]


def is_online(f: object) -> bool:
    return 'kind = "online"' in f.text("fuse")  # type: ignore[attr-defined]


def check(sizes: tuple[int, int, int, int, int], arrays: list[np.ndarray], target: str = "host", **how: object) -> None:
    text = program(*sizes, **how)  # type: ignore[arg-type]
    (want,) = hilo.interpret(text, *arrays)
    results = []
    for threads in (1, 2):
        f = hilo.compile(text, target=target, threads=threads, options=ONLINE)
        assert is_online(f)
        results.append(np.asarray(f(*arrays)[0]))
    np.testing.assert_array_equal(results[0].view(np.uint32), results[1].view(np.uint32))
    np.testing.assert_allclose(results[0], want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 64, 288, 16, 24),  # whole blocks
        (1, 77, 301, 17, 13),  # neither rows nor columns nor vectors are whole
        (3, 33, 500, 8, 1),
        (1, 40, 2001, 5, 7),
    ],
    ids=str,
)
def test_close_to_the_interpreter(sizes: tuple[int, int, int, int, int], target: str) -> None:
    check(sizes, inputs(*sizes), target)


@pytest.mark.parametrize(("low", "guard"), [("0xFF800000", True), ("-1.0e30", False), ("-3.40282347E+38", True)])
def test_forms_of_the_greatest(low: str, guard: bool) -> None:
    sizes = (2, 40, 300, 8, 9)
    check(sizes, inputs(*sizes), low=low, guard=guard)


def test_masks_that_hide_blocks_or_all() -> None:
    sizes = (2, 70, 400, 8, 9)
    arrays = inputs(*sizes)
    rows, columns = np.indices(arrays[3].shape)
    arrays[3][columns > rows * 6] = -np.inf  # the last blocks hold nothing
    check(sizes, arrays)
    arrays[3][columns < 200] = -np.inf  # nor do the first ones; some rows have nothing at all: NaN
    assert np.isinf(arrays[3][:20]).all()
    check(sizes, arrays)


def test_what_is_not_finite_spoils_its_row() -> None:
    sizes = (1, 40, 400, 8, 9)
    for value in (np.nan, np.inf):
        for column in (0, 150, 399):
            arrays = inputs(*sizes)
            arrays[3][7, column] = value
            check(sizes, arrays)


def test_greatest_scores_late_and_early() -> None:
    """What was summed up before must become smaller, by much."""
    sizes = (1, 40, 400, 8, 9)
    slope = np.linspace(-150, 150, 400, dtype=np.float32)
    for mask in (slope, -slope):
        arrays = inputs(*sizes)
        arrays[3] += mask
        check(sizes, arrays)


def test_only_where_allowed_and_a_softmax() -> None:
    sizes = (2, 64, 300, 16, 24)
    assert not is_online(hilo.compile(program(*sizes), options=STRICT))
    assert not is_online(hilo.compile(program(*sizes, normalized="%5"), options=ONLINE))
    assert not is_online(hilo.compile(program(*sizes, low="0.0"), options=ONLINE))
    for shown in ("%9, %8", "%9, %0"):
        assert not is_online(hilo.compile(program(*sizes, results=shown), options=ONLINE))
    wide = program(*sizes).replace("f32", "f64").replace("0xFF800000", "0xFFF0000000000000")
    assert not is_online(hilo.compile(wide, options=ONLINE))


def test_rows_that_fit_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (2, 64, 300, 16, 24)
    monkeypatch.setattr(attention, "ROW", 1 << 15)
    arrays = inputs(*sizes)
    fast, strict = (hilo.compile(program(*sizes), options=o) for o in (ONLINE, STRICT))
    assert not is_online(fast)
    np.testing.assert_array_equal(fast(*arrays)[0], strict(*arrays)[0])


def test_no_scores_in_memory() -> None:
    assert hilo.compile(program(2, 64, 4000, 16, 24), options=ONLINE).memory().temporaries == 0
