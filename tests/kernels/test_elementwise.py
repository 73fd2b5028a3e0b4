"""Fused loops against the interpreter: random bodies, every way of walking operands, edges."""

from __future__ import annotations

import random

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, aligned, broadcast, check, compare, constant, fused, random_array, s, unaligned

from hilo import kernels
from hilo.backend.target import Target
from hilo.ir.dtypes import COMMON, DType, bf16, c64, f16, f32, f64, i1, i8, i32, i64, u8
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter, region, topological
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ops.fusion import fusion


class Grower:
    """Grows a random function of elementwise and index-moving ops that gives a tensor of a wanted type."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.params: list[Op] = []
        self.pool: dict[TensorType, list[Op]] = {}

    def grow(self, t: TensorType, depth: int) -> Op:
        old = self.pool.setdefault(t, [])
        if old and self.rng.random() < 0.25:
            return self.rng.choice(old)
        o = self._leaf(t) if depth == 0 else self._op(t, depth - 1)
        assert o.type is t
        old.append(o)
        return o

    def _leaf(self, t: TensorType) -> Op:
        choice = self.rng.random()
        if choice < 0.15:
            return constant(self.rng.randint(0, 1), t.dtype, t.shape)
        if choice < 0.3 and t.rank and t.dtype is not i1:
            return s("iota")(iota_dimension=self.rng.randrange(t.rank), type=t)
        p = parameter(len(self.params), t)
        self.params.append(p)
        return p

    def _op(self, t: TensorType, depth: int) -> Op:
        rng = self.rng
        moves = ["arithmetic", "arithmetic", "select", "reshape", "convert", "dynamic_slice"]
        if t.rank:
            moves += ["broadcast", "transpose", "slice", "reverse", "pad", "concatenate"]
        return getattr(self, "_" + rng.choice(moves))(t, depth)

    def _arithmetic(self, t: TensorType, depth: int) -> Op:
        names = ["and", "or", "xor"] if t.dtype is i1 else ["add", "subtract", "maximum", "minimum"]
        return s(self.rng.choice(names))(self.grow(t, depth), self.grow(t, depth))

    def _select(self, t: TensorType, depth: int) -> Op:
        shape = t.shape if self.rng.random() < 0.7 else ()
        pred = self.grow(TensorType(i1, shape), depth)
        return s("select")(pred, self.grow(t, depth), self.grow(t, depth))

    def _convert(self, t: TensorType, depth: int) -> Op:
        d = self.rng.choice([f32, i32, bf16, f64, i8, u8])
        x = self.grow(t.with_dtype(d), depth)
        if t.dtype is i1:
            zero = constant(0, d, t.shape)
            return s("compare")(x, zero, comparison_direction=self.rng.choice(["LT", "GE", "EQ"]))
        return s("convert")(x, type=t)

    def _reshape(self, t: TensorType, depth: int) -> Op:
        shape = [n for n in t.shape if n != 1]
        if len(shape) > 1 and self.rng.random() < 0.5:
            at = self.rng.randrange(len(shape) - 1)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif shape and shape[-1] % 2 == 0 and shape[-1]:
            shape[-1:] = [shape[-1] // 2, 2]
        return s("reshape")(self.grow(t.with_shape(shape), depth), type=t)

    def _broadcast(self, t: TensorType, depth: int) -> Op:
        dims = [d for d in range(t.rank) if self.rng.random() < 0.6]
        shape = [t.shape[d] if self.rng.random() < 0.8 else 1 for d in dims]
        return broadcast(self.grow(t.with_shape(shape), depth), t.shape, dims)

    def _transpose(self, t: TensorType, depth: int) -> Op:
        permutation = list(range(t.rank))
        self.rng.shuffle(permutation)
        shape = [0] * t.rank
        for d, p in enumerate(permutation):
            shape[p] = t.shape[d]
        return s("transpose")(self.grow(t.with_shape(shape), depth), permutation=tuple(permutation))

    def _slice(self, t: TensorType, depth: int) -> Op:
        start = tuple(self.rng.randint(0, 3) for _ in t.shape)
        stride = tuple(self.rng.choice([1, 1, 2, 3]) for _ in t.shape)
        limit = tuple(b + (n - 1) * k + 1 if n else b for b, n, k in zip(start, t.shape, stride, strict=True))
        shape = [n + self.rng.randint(0, 2) for n in limit]
        x = self.grow(t.with_shape(shape), depth)
        return s("slice")(x, start_indices=start, limit_indices=limit, strides=stride)

    def _dynamic_slice(self, t: TensorType, depth: int) -> Op:
        x = self.grow(t.with_shape([n + self.rng.randint(0, 3) for n in t.shape]), depth)
        starts = [self.grow(TensorType(i32), 0) for _ in t.shape]
        return s("dynamic_slice")(x, *starts, slice_sizes=t.shape)

    def _reverse(self, t: TensorType, depth: int) -> Op:
        dims = tuple(d for d in range(t.rank) if self.rng.random() < 0.5)
        return s("reverse")(self.grow(t, depth), dimensions=dims)

    def _pad(self, t: TensorType, depth: int) -> Op:
        low = tuple(self.rng.randint(-2, min(2, n)) for n in t.shape)
        shape = [max(n - max(b, 0) - 1, 0) - min(b, 0) for n, b in zip(t.shape, low, strict=True)]
        high = tuple(n - m - b for n, m, b in zip(t.shape, shape, low, strict=True))
        x, value = self.grow(t.with_shape(shape), depth), self.grow(t.with_shape(()), 0)
        return s("pad")(x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=(0,) * t.rank)

    def _concatenate(self, t: TensorType, depth: int) -> Op:
        d = self.rng.randrange(t.rank)
        at = self.rng.randint(0, t.shape[d])
        parts = [self.grow(t.with_shape([*t.shape[:d], n, *t.shape[d + 1 :]]), depth) for n in (at, t.shape[d] - at)]
        return s("concatenate")(*parts, dimension=d)


SHAPES = [(), (5,), (67,), (1, 33), (3, 40), (4, 1, 19), (2, 3, 16), (7, 2, 3), (0, 4), (1, 1), (2, 130)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(40))
def test_random_fusions(seed: int, target: str) -> None:
    grower = Grower(seed)
    rng = grower.rng
    shape = rng.choice(SHAPES)
    results = [
        grower.grow(TensorType(rng.choice([f32, i32, bf16, f64, i1, i8]), shape), 4)
        for _ in range(rng.choice([1, 1, 2]))
    ]
    types = [p.tensor for p in grower.params]

    def rebuild(*new: Op) -> list[Op]:
        made = dict(zip(grower.params, new, strict=True))
        for o in topological(results):
            made.setdefault(o, o.with_operands(made[x] for x in o.operands))
        return [made[r] for r in results]

    op = fusion(*[parameter(i, t) for i, t in enumerate(types)], body=region(types, rebuild), kind="loop")
    check(op, target, seed=seed, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", COMMON, ids=str)
def test_every_type_is_loaded_and_stored(dtype: DType, target: str) -> None:
    t = TensorType(dtype, (3, 47))
    turned = TensorType(dtype, (47, 3))
    check(fused([t, t], lambda x, y: s("select")(constant(1, i1), x, y)), target, tolerance=0)
    check(fused([turned], lambda x: s("transpose")(x, permutation=(1, 0))), target, tolerance=0)
    check(fused([t], lambda x: s("reverse")(x, dimensions=(0, 1))), target, tolerance=0)
    row = TensorType(dtype, (47,))
    column = TensorType(dtype, (3,))
    op = fused(
        [row, column, TensorType(i1, (3, 47))],
        lambda x, y, p: s("select")(p, broadcast(x, t.shape, [1]), broadcast(y, t.shape, [0])),
    )
    check(op, target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
def test_large_loops_in_units(target: str) -> None:
    """More than one unit: without outer loops, with some, and a few long rows."""
    for shape in [(100_003,), (130, 257), (2, 60_001), (3, 5, 4099)]:
        t = TensorType(f32, shape)
        check(fused([t, t], lambda x, y: s("add")(s("multiply")(x, y), y)), target)
        row = TensorType(f32, shape[-1:])
        kernel = check(fused([t, row], lambda x, y: s("add")(x, broadcast(y, x.shape, [len(x.shape) - 1]))), target)
        assert kernel.lowered.phases[0].units > 1


@pytest.mark.parametrize("target", TARGETS)
def test_few_elements_with_much_to_do_are_a_few_units(target: str) -> None:
    """Also where the last dim is short, or odd; few elements with little to do are one."""
    for shape in [(7841,), (31, 257), (16_001,), (2, 3, 1301), (8003, 2)]:
        t = TensorType(f32, shape)
        kernel = check(fused([t, t], lambda x, y: s("divide")(s("tanh")(x), s("logistic")(y))), target)
        assert kernel.lowered.phases[0].units > 1
        assert check(fused([t], s("negate")), target).lowered.phases[0].units == 1

    def sines(x: Op) -> Op:
        for _ in range(200):
            x = s("sine")(x)
        return x

    few = fused([TensorType(f32, (37,))], sines)  # hardly more than a vector, however much there is to do with it
    assert kernels.lower(few, Target.named(target)).phases[0].units == 1


def test_streaming_stores_are_fenced() -> None:
    target = Target.named("x86-avx512")
    t = TensorType(f32, (target.l3 // 8 + 16,))
    kernel = Kernel(fused([t], lambda x: s("negate")(x)), target)
    assert "!nontemporal" in kernel.text
    assert "fence" in kernel.text
    x = random_array(np.random.default_rng(0), t)
    compare(kernel(x)[0], -x, 0)


@pytest.mark.parametrize("target", TARGETS)
def test_in_place(target: str) -> None:
    """A result may take the place of the operands that the kernel names."""
    t = TensorType(f32, (5, 1003))
    op = fused([t, t], lambda x, y: s("subtract")(x, s("reverse")(y, dimensions=(1,))))
    kernel = Kernel(op, Target.named(target))
    assert kernel.lowered.in_place == ((0, 0),)
    rng = np.random.default_rng(1)
    x, y = random_array(rng, t), random_array(rng, t)
    want = evaluate(op, [x, y])
    place = aligned(t.shape, t.dtype.np)
    place[...] = x
    kernel.run([place, y, place])
    compare(place, want, 0)


def test_scalars_cost_no_loop() -> None:
    t = TensorType(f32)
    kernel = check(fused([t, t], lambda x, y: s("add")(s("multiply")(x, y), y)), "x86-avx512")
    assert "phi" not in kernel.text
    assert "<" not in kernel.text.split("define", 1)[1].split("attributes")[0]


def test_an_operand_twice_is_read_once() -> None:
    t = TensorType(i64, (9,))
    x = parameter(0, t)
    op = s("add")(x, x)
    kernel = check(op, "x86-avx2", arrays=[unaligned(np.arange(9)), unaligned(np.arange(9))])
    assert len(kernel.op.operands) == 2


def test_nothing_to_do_for_no_elements() -> None:
    op = fused([TensorType(f16, (0, 3))], lambda x: s("negate")(x))
    assert kernels.lower(op, Target.named("x86-avx2")).phases == []


def test_a_value_used_twice_is_computed_once() -> None:
    """Sixty steps, each using the one before twice: code grows with the steps, not with their power set."""

    def build(x: Op) -> Op:
        for _ in range(60):
            x = s("add")(s("multiply")(x, x), x)
        return x

    kernel = check(fused([TensorType(c64, (7,))], build), "x86-avx512", arrays=[np.full(7, 1e-20, np.complex64)])
    assert kernel.text.count("fadd") < 20_000
