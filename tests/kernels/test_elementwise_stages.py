"""Long chains in stages: where they are cut, and that they give the bits of one stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, random_array, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, f32, f64
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import elementwise_stages
from hilo.kernels.elementwise_stages import cuts
from hilo.ops.fusion import fusion

add, multiply, tanh, exponential, log_plus_one = map(s, ("add", "multiply", "tanh", "exponential", "log_plus_one"))


def gelu(x: Op, y: Op) -> Op:
    v = add(multiply(x, y), y)
    inner = multiply(add(v, multiply(multiply(v, v), v)), x)
    return multiply(multiply(v, add(tanh(inner), y)), x)


def mish(x: Op, y: Op) -> Op:
    """Three long functions, one behind the other."""
    return multiply(x, tanh(log_plus_one(exponential(multiply(y, add(x, multiply(y, add(x, y))))))))


def turned(x: Op, y: Op) -> Op:
    """What the first stage gives is read in another order, too."""
    v = multiply(add(multiply(x, y), x), add(y, multiply(x, x)))
    return add(tanh(v), s("reverse")(v, dimensions=(x.tensor.rank - 1,)))


def crowd(x: Op, y: Op) -> Op:
    """Too many values are taken by what follows the long function."""
    values = [add(x, y), multiply(x, y), s("subtract")(x, y), s("maximum")(x, y)]
    total = tanh(add(add(values[0], values[1]), add(values[2], values[3])))
    for v in values:
        total = multiply(total, v)
    return total


def body_of(f: Callable[[Op, Op], Op], shape: tuple[int, ...], dtype: DType = f32) -> Op:
    t = TensorType(dtype, shape)
    body = region([t, t], f)
    return fusion(*(parameter(i, t) for i in range(2)), body=body, kind="loop")


@pytest.mark.parametrize(
    ("f", "dtype", "count"),
    [(gelu, f32, [2]), (gelu, f64, [2]), (gelu, bf16, []), (mish, f32, [1, 1]), (turned, f32, [2]), (crowd, f32, [])],
)
def test_where_chains_are_cut(f: Callable[[Op, Op], Op], dtype: DType, count: list[int]) -> None:
    found = cuts(body_of(f, (40, 1000), dtype).attrs["body"])
    assert [len(passed) for passed in found] == count


def test_not_into_many() -> None:
    def chain(x: Op, y: Op) -> Op:
        for _ in range(10):
            x = tanh(add(x, multiply(y, x)))
        return x

    assert cuts(body_of(chain, (40, 1000)).attrs["body"]) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("f", [gelu, mish, turned])
@pytest.mark.parametrize("shape", [(1 << 15,), (20_003,), (70, 391), (3, 7, 1024), (2000, 9)])
def test_bits(f: Callable[[Op, Op], Op], shape: tuple[int, ...], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op, machine = body_of(f, shape), Target.named(target)
    rng = np.random.default_rng(0)
    arrays = [random_array(rng, TensorType(f32, shape)) for _ in range(2)]
    staged = Kernel(op, machine)
    monkeypatch.setattr(elementwise_stages, "cuts", lambda _: [])
    whole = Kernel(op, machine)
    assert staged.text != whole.text
    for got, want in zip(staged(*arrays), whole(*arrays), strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
