"""Weights that come again are packed once: the same bits, memory that goes with its buffer or its executable."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from pjrt_client import Host, a_host

M, K, N = 70, 300, 128
WEIGHTS = K * N * 4  # bytes, which panels take, too


def text(m: int = M, *, donated: bool = False) -> str:
    mark = " {tf.aliasing_output = 0 : i32}" if donated else ""
    t = [f"tensor<{s}xf32>" for s in (f"{m}x{K}", f"{K}x{N}", f"{m}x{N}")]
    return f"""module @kept {{ func.func public @main(%x: {t[0]}, %w: {t[1]}{mark}) -> ({t[1]}, {t[2]}) {{
      %one = stablehlo.constant dense<1.0> : {t[1]}
      %v = stablehlo.add %w, %one : {t[1]}
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({t[0]}, {t[1]}) -> {t[2]}
      return %v, %y : {t[1]}, {t[2]} }} }}"""


@pytest.fixture
def host() -> Iterator[Host]:
    with a_host() as h:
        yield h


def arrays(seed: int = 0, m: int = M) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, K)).astype(np.float32), rng.standard_normal((K, N)).astype(np.float32)


def held(host: Host) -> int:
    return host.api.device_memory_stats(device=host.device).bytes_in_use


def call(host: Host, loaded: int, x: int, w: int) -> np.ndarray:
    v, y = host.run(loaded, [x, w])
    got = host.get(y)
    host.free(v, y)
    return got


def test_the_same_bits_whether_packed_before_or_not(host: Host) -> None:
    loaded = host.compile(text())
    a, b = arrays()
    x, w = host.put(a), host.put(b)
    first = call(host, loaded, x, w)
    np.testing.assert_allclose(first, a @ b, rtol=1e-4, atol=1e-4)
    before = held(host)
    for _ in range(6):
        np.testing.assert_array_equal(call(host, loaded, x, w), first)
    assert held(host) == before + WEIGHTS  # packed once
    others = [host.put(arrays(seed)[1]) for seed in (1, 2)]
    for seed, other in zip((1, 2), others, strict=True):
        for _ in range(5):
            np.testing.assert_allclose(call(host, loaded, x, other), a @ arrays(seed)[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(call(host, loaded, x, w), first)
    host.free(x, w, *others)
    assert held(host) == 0


def test_fresh_weights_are_never_packed_for_later(host: Host) -> None:
    loaded = host.compile(text())
    a, b = arrays()
    x = host.put(a)
    for i in range(8):
        w = host.put(b + i)
        before = held(host)
        np.testing.assert_allclose(call(host, loaded, x, w), a @ (b + i), rtol=1e-3, atol=1e-3)
        assert held(host) == before
        host.free(w)


@pytest.mark.parametrize("end", ["free", "delete", "executable"])
def test_packed_weights_go_with_their_buffer_or_their_executable(host: Host, end: str) -> None:
    loaded = host.compile(text())
    x, w = map(host.put, arrays())
    empty = held(host)
    for _ in range(5):
        call(host, loaded, x, w)
    assert held(host) == empty + WEIGHTS
    if end == "executable":
        host.api.loaded_executable_destroy(executable=loaded)
        assert held(host) == empty
        return
    if end == "delete":
        host.api.buffer_delete(buffer=w)
    else:
        host.free(w)
    assert held(host) == empty - WEIGHTS


def test_weights_that_are_updated_in_place_are_packed_anew(host: Host) -> None:
    """Donated memory keeps its block while its contents change."""
    product, step = host.compile(text()), host.compile(text(donated=True))
    a, b = arrays()
    x, w = host.put(a), host.put(b)
    for turn in range(3):
        for _ in range(5):
            np.testing.assert_allclose(call(host, product, x, w), a @ (b + turn), rtol=1e-3, atol=1e-3)
        w, y = host.run(step, [x, w])
        host.free(y)


def test_executables_share_panels_and_the_later_one_gets_its_own_in_time(host: Host) -> None:
    one, same, other = host.compile(text()), host.compile(text()), host.compile(text(40))
    a, b = arrays()
    x, few, w = host.put(a), host.put(a[:40]), host.put(b)
    want, want_few = call(host, one, x, w), call(host, other, few, w)
    empty = held(host)
    for _ in range(5):
        np.testing.assert_array_equal(call(host, one, x, w), want)
        np.testing.assert_array_equal(call(host, same, x, w), want)
        assert held(host) <= empty + WEIGHTS
    for _ in range(40):
        np.testing.assert_array_equal(call(host, other, few, w), want_few)
        assert held(host) <= empty + WEIGHTS * 5 // 4
    for loaded in (one, other):
        host.api.loaded_executable_destroy(executable=loaded)
    assert held(host) == empty
    np.testing.assert_array_equal(call(host, same, x, w), want)


def test_the_option_turns_it_off(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_PACK_ONCE", "0")
    loaded = host.compile(text())
    x, w = map(host.put, arrays())
    empty = held(host)
    for _ in range(6):
        call(host, loaded, x, w)
    assert held(host) == empty


def test_memory_that_others_may_change_is_not_packed_for_later(host: Host) -> None:
    loaded = host.compile(text())
    a, b = arrays()
    x = host.put(a)
    w = host.begin_put(b, "ZERO_COPY").buffer  # a promise not to change it
    view = host.api.client_create_view_of_device_buffer(
        client=host.client, device_buffer_ptr=b.ctypes.data, dims=b.shape, num_dims=2, element_type=11,
        device=host.device).buffer  # fmt: skip
    for buffer, more in ((view, 0), (w, WEIGHTS)):
        empty = held(host)
        for _ in range(6):
            call(host, loaded, x, buffer)
        assert held(host) == empty + more


def test_eight_threads(host: Host) -> None:
    loaded = host.compile(text())
    inputs = [arrays(seed) for seed in range(4)]
    pairs = [(host.put(a), host.put(b)) for a, b in inputs]
    want = [call(host, loaded, x, w) for x, w in pairs]
    wrong: list[int] = []

    def work(first: int) -> None:
        for i in range(first, first + 24):
            if not np.array_equal(call(host, loaded, *pairs[i % 4]), want[i % 4]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    for x, w in pairs:
        host.free(x, w)
    assert held(host) == 0
