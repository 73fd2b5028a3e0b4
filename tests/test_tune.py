"""Tuning: what is found is kept, used by later compilations, and right; damaged files are no error."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo import tune as tuning
from hilo.backend.target import Target
from hilo.kernels import pins
from hilo.options import Options
from hilo.runtime.stores import tuned_of
from hilo.runtime.tuned import Tuned
from hilo.tune import close, tune

TEXT = """func.func @main(%a: tensor<50x700xf32>, %b: tensor<700x300xf32>) -> (tensor<50x300xf32>, tensor<50x700xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<50x700xf32>, tensor<700x300xf32>) -> tensor<50x300xf32>
  %1 = stablehlo.tanh %a : tensor<50x700xf32>
  return %0, %1 : tensor<50x300xf32>, tensor<50x700xf32>
}"""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache_dir=str(tmp_path / "cache"), threads=1)


@pytest.fixture
def args() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in ((50, 700), (700, 300))]


@pytest.fixture
def favourite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times as if kernels with kc=256 took half as long as others, and the same on every run."""
    monkeypatch.setattr(tuning, "ROUNDS", (1, 1))

    def times(self: object, steps: list) -> dict[str, float]:
        return {self.key(t): 0.5 if any(c.how and c.value == 256 for c in t.choices) else 1.0  # type: ignore[attr-defined]
                for t in steps}  # fmt: skip

    monkeypatch.setattr(tuning._Tuner, "by_kernel", times)


@pytest.mark.usefixtures("favourite")
def test_what_is_found_is_kept_and_used(options: Options, args: list[np.ndarray]) -> None:
    module = hilo.parse(TEXT)
    store = tuned_of(options, Target.host())
    assert store.is_empty
    want = hilo.compile(module, options=options)(*args)
    seen: list[tuple[float, str]] = []
    report = tune(module, args, store, options=options, seconds=60, progress=lambda *what: seen.append(what))
    assert report.finished
    assert not report.refused
    better = [k for k in report.kernels if k.values]
    assert [k.values for k in better] == [{"dot_general.kc": "256"}]
    assert better[0].gain == 2
    assert report.after < report.before
    assert seen[-1] == (1.0, "done")
    assert seen == sorted(seen, key=lambda s: s[0])

    profiled = hilo.compile(module, options=options.replace(profile=True))
    got = profiled(*args)
    chosen = {str(c) for t in profiled.profile() for c in t.choices if c.how}
    assert chosen == {"dot_general.kc=256 (tuned)"}
    np.testing.assert_allclose(got[0], want[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(got[1], want[1])
    off = hilo.compile(module, options=options.replace(profile=True, tuned=False))
    assert not any(c.how for t in off.profile() for c in t.choices)
    other = hilo.compile(TEXT.replace("tanh", "sine"), options=options.replace(profile=True))  # the same kernel there
    assert {c.how for t in other.profile() for c in t.choices} == {"", "tuned"}

    for file in Path(options.cache_dir, "tuned").rglob("*.entry"):
        file.write_bytes(file.read_bytes()[:-5])
    damaged = hilo.compile(module, options=options.replace(profile=True))
    assert not any(c.how for t in damaged.profile() for c in t.choices)


@pytest.mark.usefixtures("favourite")
def test_the_same_bits_or_nothing(options: Options, args: list[np.ndarray]) -> None:
    store = tuned_of(options, Target.host())
    report = tune(hilo.parse(TEXT), args, store, options=options, seconds=60, same_bits=True)
    assert not any(k.values for k in report.kernels)
    assert store.is_empty
    assert report.variants > 0  # of loops


@pytest.mark.usefixtures("favourite")
def test_a_kernel_that_is_wrong_is_dropped(options: Options, args: list[np.ndarray],
                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(tuning, "close", lambda want, got, same_bits: False)
    report = tune(hilo.parse(TEXT), args, None, options=options, seconds=60)
    assert not any(k.values for k in report.kernels)
    assert any("differ by more than roundings" in line for line in report.refused)


def test_no_time_is_no_search(options: Options, args: list[np.ndarray]) -> None:
    report = tune(hilo.parse(TEXT), args, None, options=options, seconds=0)
    assert report.variants == 0
    assert not report.finished


def test_real_times(options: Options, args: list[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ROUND_SECONDS", 0.01)
    report = tune(hilo.parse(TEXT), args, None, options=options, seconds=2)
    assert all(k.before > 0 and k.after > 0 for k in report.kernels)


def test_close() -> None:
    a = np.array([1.0, -2.0, np.nan, np.inf], np.float32)
    assert close(a, a.copy(), True)
    near = a * np.float32(1 + 1e-6)
    assert close(a, near, False)
    assert not close(a, near, True)
    assert not close(a, np.array([1.0, -2.0, 0.0, np.inf], np.float32), False)
    assert not close(a, np.array([1.0, -2.0, np.nan, -np.inf], np.float32), False)
    assert not close(np.array([1.0], np.float32), np.array([np.nan], np.float32), False)
    assert not close(np.array([1, 2]), np.array([1, 3]), False)
    assert close(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), True)
    b = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert close(b, (b.astype(np.float32) * 1.01).astype(ml_dtypes.bfloat16), False)


def test_other_machines_and_other_kernels_have_values_of_their_own(tmp_path: Path) -> None:
    here, there = (Tuned(str(tmp_path), cpu=cpu) for cpu in ("a", "b"))
    assert here.is_empty
    assert here.get("k") == {}
    here.put("k", {"loop.unroll": "2"})
    assert here.get("k") == {"loop.unroll": "2"}
    assert not here.is_empty
    assert here.get("other") == there.get("k") == {}
    here.put("k", {})
    assert here.get("k") == {}


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b'{"a": 3}'])
def test_what_is_no_values_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    from hilo.runtime.cache import Cache

    store = Tuned(str(tmp_path), cpu="a")
    store.put("k", {})
    monkeypatch.setattr(Cache, "get", lambda self, key: data)
    assert store.get("k") == {}


def test_constants_of_a_kernel_stay_constants() -> None:
    text = """func.func @main(%a: tensor<50x40xf32>) -> tensor<50x30xf32> {
      %b = stablehlo.constant dense<0.5> : tensor<40x30xf32>
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<50x40xf32>, tensor<40x30xf32>) -> tensor<50x30xf32>
      return %0 : tensor<50x30xf32>
    }"""
    (step,) = (t for t in hilo.compile(text, options=Options(profile=True, tuned=False)).profile()
               if t.op.startswith("dot"))  # fmt: skip
    assert step.source is not None
    f = tuning.alone(step.source)
    assert len(f.params) == 1
    assert pins.content(next(o for o in f.ops if o.name == "dot_general")) == pins.content(step.source)
