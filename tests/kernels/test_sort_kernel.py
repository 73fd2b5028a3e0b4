"""The sort kernel against the interpreter and numpy; wrong comparators; bits that must survive."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, check, s

from hilo.backend.target import Target
from hilo.ir.dtypes import bf16, dtype, f32, i32
from hilo.ir.module import parameter, region
from hilo.ir.op import Array, Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType


def sort(types: list[TensorType], less, dimension: int = -1) -> Op:
    elements = [TensorType(t.dtype) for t in types for _ in range(2)]
    return s("sort")(*(parameter(i, t) for i, t in enumerate(types)), dimension=dimension,
                     comparator=region(elements, less))  # fmt: skip


def lt(a, b, *_):
    return s("compare")(a, b, comparison_direction="LT")


@pytest.mark.parametrize("target", TARGETS)
def test_examples(target):
    kind = lookup("stablehlo.sort")
    for types, attrs in kind.examples:
        check(kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs), target, tolerance=0)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 17, 31, 64, 100, 513, 3000])
@pytest.mark.parametrize(("name", "shape", "d"), [("f32", (3, 1), 1), ("i8", (2, 1, 3), 1), ("f64", (1,), 0)])
def test_lengths(name, shape, d, n):
    t = TensorType(dtype(name), [*shape[:d], n, *shape[d + 1 :]])
    check(sort([t, t.with_dtype(i32)], lt, d), TARGETS[n % 3], tolerance=0)


@pytest.mark.parametrize("make", [lambda a, b: s("constant")(value=Array(np.asarray(True))),
                                  lambda a, b: s("compare")(a, b, comparison_direction="NE")])  # fmt: skip
@pytest.mark.parametrize("n", [5, 8, 33, 1000])
def test_wrong_comparators_give_a_permutation(make, n):
    x = np.random.default_rng(n).integers(0, 50, n).astype(np.float32)
    (got,) = Kernel(sort([TensorType(f32, (n,))], make), Target.named("x86-avx2"))(x)
    np.testing.assert_array_equal(np.sort(got), np.sort(x))


def test_payloads_survive():
    bits = np.array([0x7FA1, 0x7F81, 0x3F80, 0xFF91, 0x0001, 0x8001], np.uint16)
    op = sort([TensorType(bf16, (6,)), TensorType(i32, (6,))], lambda a, b, c, d: lt(c, d))
    got, _ = Kernel(op, Target.named("x86-avx512"))(bits.view(bf16.np), np.arange(6, 0, -1, dtype=np.int32))
    np.testing.assert_array_equal(got.view(np.uint16), bits[::-1])
