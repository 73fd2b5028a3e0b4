"""Exponentials of distances from a row's greatest element: which they are, and that they have the bits of any other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, broadcast, constant, s

from hilo.backend.target import Target
from hilo.ir.dtypes import f32
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import rows_code
from hilo.ops.fusion import fusion
from hilo.ops.rows import analyse, decays

SHAPE = (9, 40)
T = TensorType(f32, SHAPE)


def reduced(x: Op, name: str, start: float) -> Op:
    one = TensorType(f32)
    body = region([one, one], lambda a, b: s(name)(a, b))
    return s("reduce")(x, constant(start, f32), dimensions=(1,), body=body)


def along(r: Op) -> Op:
    return broadcast(r, SHAPE, (0,))


def softmax(x: Op, name: str = "maximum", factor: float = 1.0, of: Callable[[Op], Op] = lambda x: x) -> Op:
    most = along(reduced(x, name, -np.inf if name == "maximum" else np.inf))
    distance = s("subtract")(of(x), most)
    e = s("exponential")(distance if factor == 1 else s("multiply")(distance, constant(factor, f32, SHAPE)))
    return s("divide")(e, along(reduced(e, "add", 0.0)))


def reversed_(x: Op) -> Op:
    return s("reverse")(x, dimensions=(0,))


@pytest.mark.parametrize(
    ("f", "known"),
    [
        (softmax, True),
        (lambda x: softmax(x, factor=0.125), True),
        (lambda x: softmax(x, factor=3.0), True),
        (lambda x: softmax(x, factor=-0.5), False),
        (lambda x: softmax(x, "minimum"), False),
        (lambda x: softmax(x, of=reversed_), False),  # not that row's elements
        (lambda x: softmax(s("multiply")(x, x)), True),
        (lambda x: softmax(x, of=lambda x: s("multiply")(x, x)), False),
    ],
)
def test_which(f: Callable[[Op], Op], known: bool) -> None:
    body = region([T], f)
    assert len(decays(body, analyse(body))) == known


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("factor", [1.0, 0.25, 3.0])
def test_bits(target: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    op = fusion(parameter(0, T), body=region([T], lambda x: softmax(x, factor=factor)), kind="rows")
    rng = np.random.default_rng(1)
    x = rng.normal(size=SHAPE).astype(np.float32)
    x[1] *= 1e30
    x[2] *= 1e-38
    x[3, 5], x[4, 7], x[5], x[6, ::2], x[7] = np.nan, np.inf, -np.inf, -np.inf, -0.0
    x[8] = rng.integers(0, 1 << 32, SHAPE[1], dtype=np.uint32).view(np.float32)
    (got,) = Kernel(op, Target.named(target))(x)
    monkeypatch.setattr(rows_code, "decays", lambda *_: set())
    (want,) = Kernel(op, Target.named(target))(x)
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
