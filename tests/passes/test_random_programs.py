"""Random programs on nasty values: simplified and not, they give the same bits. Finds what rules do to each other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir.dtypes import bf16, f32, i1, i8, i32, u8
from hilo.ir.interpret import run
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.ir.verify import verify
from hilo.passes.cse import cse
from hilo.passes.dce import dce
from hilo.passes.legalize import legalize
from hilo.passes.simplify import simplify
from hilo.rewrite import Const, RuleSet, Var, rewrite
from hilo.rewrite.ops import symbol
from hilo.rewrite.pattern import constant

SHAPES = [(), (3,), (2, 3), (1, 3), (3, 1), (2, 1, 3), (3, 2), (0, 3)]
UNARY = ["negate", "abs", "not", "sign", "floor", "sqrt", "exponential", "real", "imag", "is_finite", "popcnt"]
COMMON = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or"]
BINARY = [*COMMON, *COMMON, "xor", "remainder", "shift_left", "power"]
FLOATS = [*[0.0, -0.0] * 4, 1.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, -8.0]
INTS = [0, 1, -1, 2, 127, -128, 5]


def draw(r: random.Random, t: TensorType) -> np.ndarray:
    pool = np.array([False, True]) if t.dtype is i1 else np.array(INTS if t.dtype.is_int else FLOATS)
    with np.errstate(all="ignore"):
        pool = pool.astype(t.dtype.np)
    if r.random() < 0.7:
        return np.full(t.shape, pool[r.randrange(len(pool))])
    return np.array([pool[r.randrange(len(pool))] for _ in range(t.size)], t.dtype.np).reshape(t.shape)


class Program:
    """A random function: values so far, and ways to make another."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        dtypes = self.r.sample([f32, f32, f32, bf16, bf16, i32, i8, u8, i1], 2)
        types = [TensorType(self.r.choice(dtypes), self.r.choice(SHAPES)) for _ in range(4)]
        self.params = [parameter(i, t) for i, t in enumerate(types)]
        self.ops = list(self.params)
        while len(self.ops) < 40:
            try:
                new = self.make()
            except (Error, ValueError, IndexError):  # does not fit: try another
                continue
            self.ops += [o for o in new if o not in self.ops]
        results = self.r.sample(self.ops[4:], 14) + self.ops[-2:]
        self.function = Function("main", self.params, self.ops, results)

    def pick(self, like: Op | None = None) -> Op:
        found = [o for o in self.ops if like is None or o.type is like.type]
        return self.r.choice(found[-8:])

    def make(self) -> list[Op]:
        r, x = self.r, self.pick()
        t = x.tensor
        rank = t.rank
        kind = r.randrange(15)
        if kind == 0:
            return [symbol(r.choice(UNARY))(x)]
        if kind <= 2:
            return [symbol(r.choice(BINARY))(*r.sample([x, self.pick(x)], 2))]
        if kind in (3, 13, 14):
            c = constant(Array(draw(r, t)))
            return [c, symbol(r.choice(COMMON))(*r.sample([x, c], 2))]
        if kind == 4:
            return [symbol("transpose")(x, permutation=tuple(r.sample(range(rank), rank)))]
        if kind == 5:
            return [symbol("reshape")(x, type=t.with_shape(r.choice([s for s in SHAPES if int(np.prod(s)) == t.size])))]
        if kind == 6:
            shape = r.choice(SHAPES)
            return [
                symbol("broadcast_in_dim")(
                    x, broadcast_dimensions=tuple(r.sample(range(len(shape)), rank)), type=t.with_shape(shape)
                )
            ]
        if kind == 7:
            lo = tuple(r.randint(0, n) for n in t.shape)
            hi = tuple(r.randint(a, n) for a, n in zip(lo, t.shape))
            return [symbol("slice")(x, start_indices=lo, limit_indices=hi, strides=tuple(r.randint(1, 2) for _ in lo))]
        if kind == 8:
            parts = [x, self.pick(x), self.pick(x)][: r.randint(1, 3)]
            return [symbol("concatenate")(*parts, dimension=r.randrange(rank))]
        if kind == 9:
            c = symbol("compare")(x, self.pick(x), comparison_direction=r.choice(["EQ", "NE", "LT", "LE", "GT", "GE"]))
            return [c, symbol("select")(r.choice([c, symbol("not")(c)]), x, self.pick(x))] if r.random() < 0.5 else [c]
        if kind == 10:
            to = r.choice([f32, bf16, i32, i8, u8, i1])
            return [symbol("convert")(x, type=t.with_dtype(to))]
        if kind == 11:
            s = TensorType(t.dtype)
            init = constant(Array(draw(r, s)))
            name = r.choice(["maximum", "minimum", "or", "add"] if not t.dtype.is_float else ["maximum", "minimum"])
            body = region([s, s], lambda a, b: symbol(name)(a, b))
            return [
                init,
                symbol("reduce")(x, init, dimensions=tuple(r.sample(range(rank), r.randint(0, rank))), body=body),
            ]
        low = tuple(r.randint(-1, 1) for _ in t.shape)
        value = constant(Array(draw(r, TensorType(t.dtype))))
        return [
            value,
            symbol("pad")(
                x, value, edge_padding_low=low, edge_padding_high=low[::-1], interior_padding=(r.randint(0, 1),) * rank
            ),
        ]

    def arrays(self) -> list[np.ndarray]:
        return [draw(self.r, p.tensor) for p in self.params]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | (a != a) & (b != b)).all())


def close_over(f: Function) -> Function:
    """`f` with the ops that its generator made but did not keep in order put in their place."""
    from hilo.ir.module import topological

    return f.replace(ops=topological([*f.ops], f.params))


@pytest.mark.parametrize("block", range(10))
def test_simplified_programs_give_the_same_bits(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        program = Program(seed)
        f = close_over(program.function)
        verify(f, types=True)
        g = simplify(legalize(f))
        verify(g, types=True)
        assert g.result_types == f.result_types
        for one_pass in (cse, dce):
            assert one_pass(g) is g, seed
        for _ in range(2):
            arrays = program.arrays()
            for i, (a, b) in enumerate(zip(run(f, arrays), run(g, arrays))):
                assert same(a, b), f"seed {seed}, result {i}: {f.results[i]!r}\n{a}\n{b}"


def test_a_wrong_rule_would_be_found() -> None:
    wrong = RuleSet("wrong", [symbol("add")(Var("x"), Const(0.0)) >> Var("x")])
    found = 0
    for seed in range(400):
        program = Program(seed)
        f = close_over(program.function)
        g = rewrite(f, wrong)
        arrays = program.arrays()
        found += not all(map(same, run(f, arrays), run(g, arrays)))
    assert found


def test_the_generator_makes_what_rules_want() -> None:
    """If programs hardly changed, the test above would say little."""
    smaller = sum(
        len(simplify(close_over(Program(seed).function)).ops) < 0.8 * len(dce(close_over(Program(seed).function)).ops)
        for seed in range(20)
    )
    assert smaller >= 5
