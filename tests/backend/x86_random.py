"""Random functions of loop IR, from a seed: values of all types, loads and stores, loops, branches, calls.

What is stored does not depend on which of several NaNs an operation gives.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.loop.builder import F32, F64, I1, I8, I16, I32, I64, PTR, Builder, Func, Node, VType

FLOATS = (F32, F64, VType("f32", 16), VType("f64", 8), VType("f32", 8), VType("f32", 4), VType("f64", 16))
INTS = (I64, I32, I16, I8, VType("i32", 16), VType("i64", 8), VType("i64", 16), VType("i32", 8), VType("i8", 16))
BITS = (I1, VType("i1", 16), VType("i1", 8))
BYTES = 4096  # of each buffer
_PREDS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FPREDS = ("oeq", "une", "olt", "ole", "ogt", "oge", "uno", "ord")
_REAL = ("fadd", "fsub", "fmul", "fdiv", "fneg", "fabs", "sqrt", "floor", "copysign", "fadd", "fmul")
_WHOLE = ("add", "sub", "mul", "and", "or", "xor", "add", "add", "mul", "shl", "lshr", "ashr", "div", "smax")
_ACROSS = ("add", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax"), ("fadd", "fmul")
_NUMBERS = (0, 1, -1, 2, 3, 7, 8, 64, 255, -128, 1000, 4096, 2**31 - 1, -(2**31), 12345678901)
_REALS = (0.0, -0.0, 1.0, -1.5, 0.1, 3e38, float("inf"), 1e-40, 2.0)


class Writer:
    """Writes one random function `f(src, ints, floats, n)`: pointers to buffers, and an i64 from 0 to 20."""

    def __init__(self, seed: int, size: int = 60, types: int = 99, helper: Func | None = None) -> None:
        self.rng = rng = random.Random(seed)
        self.func = Func(f"f{seed}", [("src", PTR), ("ints", PTR), ("floats", PTR), ("n", I64)])
        self.b = Builder(self.func)
        self.src, self.ints, self.floats, self.n = self.func.params
        self.values: dict[VType, list[Node]] = {}
        self.budget, self.depth, self.helper = size, 0, helper
        self.fresh = 0  # how many values are being made for one use
        self.types = [*rng.sample(FLOATS, min(types, len(FLOATS))), *rng.sample(INTS, min(types, len(INTS))), *BITS]
        self.keep(self.n)
        while self.budget > 0:
            self.step()
        for t, nodes in list(self.values.items()):
            for v in nodes[-12:]:
                self.store(v, t)

    # ---- values
    def keep(self, v: Node) -> Node:
        self.values.setdefault(v.type, []).append(v)
        return v

    def any(self, t: VType) -> Node:
        """A value of a type: one that there is, or one made for this use alone, or a constant, or a loaded one."""
        if self.fresh < 3 and self.rng.random() < 0.2:
            self.fresh += 1
            v = self.operate(t)
            self.fresh -= 1
            return v
        there = self.values.get(t, ())
        roll = self.rng.random()
        if there and roll < 0.8:
            return self.rng.choice(there[-6:] if roll < 0.5 else there)
        if t.scalar == "i1":
            return self.compare(t.lanes)
        if roll < 0.9:
            return self.b.const(self.rng.choice(_REALS if t.is_float else _NUMBERS), t)
        return self.keep(self.load(t))

    def offset(self, t: VType) -> Node:
        """Bytes into a buffer at which a value of a type lies whole."""
        b = self.b
        if self.rng.random() < 0.2:
            return b.i64(self.rng.randrange(64))
        return b.mul(b.and_(self.any(I64), 63), self.rng.choice((1, 4, 8, 12, 16)))

    def load(self, t: VType) -> Node:
        return self.b.load(self.b.gep(self.src, self.b.add(self.offset(t), self.rng.randrange(1024))), t, align=1)

    def store(self, v: Node, t: VType) -> None:
        b = self.b
        if t.is_float:  # one kind of NaN
            v = b.select(b.cmp("oeq", v, v), v, b.const(float("nan"), t))
        b.store(b.gep(self.floats if t.is_float else self.ints, self.offset(t)), v, align=1)

    def compare(self, lanes: int) -> Node:
        t = self.rng.choice([t for t in self.types if t.lanes == lanes and t.scalar != "i1"] or [VType("i32", lanes)])
        return self.b.cmp(self.rng.choice(_FPREDS if t.is_float else _PREDS), self.any(t), self.any(t))

    def real(self, v: Node) -> Node:
        """`v`, or 0 where it is no number."""
        return self.b.select(self.b.cmp("ord", v, v), v, 0.0)

    # ---- steps
    def step(self) -> None:
        self.budget -= 1
        roll = self.rng.random()
        if roll < 0.06 and self.depth < 4:
            self.loop()
        elif roll < 0.09 and self.depth < 4:
            self.repeat()
        elif roll < 0.15 and self.depth < 4:
            self.branch()
        elif roll < 0.17 and self.helper is not None:
            p = self.helper.params
            self.keep(self.b.call(self.helper.name, [self.any(x.type) for x in p], self.helper.ret))
        elif roll < 0.25:
            t = self.rng.choice(self.types)
            self.store(self.any(t), t)
        elif roll < 0.33:
            self.keep(self.load(self.rng.choice([t for t in self.types if t.scalar != "i1"])))
        else:
            self.keep(self.operate(self.rng.choice(self.types)))

    def operate(self, t: VType) -> Node:
        b, rng = self.b, self.rng
        roll = rng.random()
        if roll < 0.15:
            return b.select(self.any(I1 if rng.random() < 0.3 else t.with_scalar("i1")), self.any(t), self.any(t))
        if roll < 0.25 and t.lanes == 1 and t.scalar != "i1":
            return self.converted(t)
        if roll < 0.3 and t.lanes > 1 and t.scalar != "i1":
            return b.splat(self.any(t.with_lanes(1)), t.lanes)
        if roll < 0.35 and t.lanes == 1:
            wide = [x for x in self.types if x.lanes > 1 and x.scalar == t.scalar and (t.size > 1 or t.scalar == "i1")]
            if wide:
                return self.taken(self.any(rng.choice(wide)))
        if roll < 0.35 and t.lanes > 1:
            return b.insert(self.any(t), self.any(t.with_lanes(1)), rng.randrange(t.lanes))
        if t.scalar == "i1":
            if roll < 0.6:
                return self.compare(t.lanes)
            return b.binary(rng.choice(("and", "or", "xor")), self.any(t), self.any(t))
        if t.is_float:
            if roll < 0.5:
                return b.fma(self.any(t), self.any(t), self.any(t))
            kind = rng.choice(_REAL)
            if kind == "copysign":
                return b.copysign(self.any(t), self.real(self.any(t)))
            x = self.any(t)
            return b.binary(kind, x, self.any(t)) if kind in ("fadd", "fsub", "fmul", "fdiv") else b.unary(kind, x)
        kind = rng.choice(_WHOLE)
        x, y = self.any(t), self.any(t)
        if kind in ("shl", "lshr", "ashr"):
            y = b.const(rng.randrange(t.bits), t) if rng.random() < 0.6 else b.and_(y, t.bits - 1)
        elif kind == "div":
            if t.lanes > 1:
                kind = "add"
            else:
                kind = rng.choice(("udiv", "urem", "sdiv", "srem"))
                small = b.const(rng.choice((1, 2, 3, 7, 8, 10, 48, 100)), t)
                y = small if rng.random() < 0.6 else b.or_(b.and_(y, 15), 1)
        elif kind == "smax":
            return rng.choice((b.smax, b.smin))(x, y)
        elif kind in ("mul", "add") and rng.random() < 0.4:
            y = b.const(rng.choice((2, 3, 4, 5, 8, 9, 12, 64, -4, 1003)), t)
        return b.binary(kind, x, y)

    def taken(self, v: Node) -> Node:
        """A scalar out of a vector."""
        b, rng = self.b, self.rng
        if v.type.scalar == "i1" and rng.random() < 0.5:
            return b.pure("any", (v,), I1)
        if v.type.scalar == "i1" or rng.random() < 0.5:
            return b.lane(v, rng.randrange(v.type.lanes))
        return b.across(rng.choice(_ACROSS[v.type.is_float]), v)

    def converted(self, t: VType) -> Node:
        b, rng = self.b, self.rng
        source = rng.choice([x for x in (*INTS, *FLOATS) if x.lanes == t.lanes and x is not t])
        v = self.any(source)
        if source.is_float and t.is_float:
            return b.convert("fpext" if t.bits > source.bits else "fptrunc", v, t.scalar)
        if source.is_float:
            v = b.select(b.cmp("olt", b.unary("fabs", v), 100.0), v, 0.0)
            return b.convert("fptosi", v, t.scalar)
        if t.is_float:
            return b.convert(rng.choice(("sitofp", "uitofp")), v, t.scalar)
        return b.convert(rng.choice(("sext", "zext")) if t.bits > source.bits else "itrunc", v, t.scalar)

    # ---- structures
    def inside(self, steps: int, wanted: list[VType], extra: tuple[Node, ...] = ()) -> list[Node]:
        """Write a block; gives values of the wanted types."""
        outer = {t: list(vs) for t, vs in self.values.items()}
        self.depth += 1
        for v in extra:
            self.keep(v)
        for _ in range(steps):
            self.step()
        out = [self.any(t) for t in wanted]
        self.depth -= 1
        self.values = outer
        return out

    def carried(self) -> list[VType]:
        return [self.rng.choice(self.types) for _ in range(self.rng.randrange(5))]

    def loop(self) -> None:
        b, rng = self.b, self.rng
        types = self.carried()
        init = [self.any(t) for t in types]
        hi = rng.choice((b.i64(rng.randrange(1, 9)), b.and_(self.any(I64), 7), self.n))
        steps = rng.randrange(1, 8)
        results = b.for_(rng.choice((0, 0, 2)), hi, rng.choice((1, 1, 2, 3)),
                         lambda i, *v: self.inside(steps, types, (i, *v)), init,
                         unroll=rng.choice((1, 1, 2, 4)))  # fmt: skip
        for r in results:
            self.keep(r)

    def repeat(self) -> None:
        b, rng = self.b, self.rng
        types = self.carried()
        init = [b.and_(self.any(I64), 7), *[self.any(t) for t in types]]
        steps = rng.randrange(1, 6)

        def body(k: Node, *v: Node) -> list[Node]:
            return [b.sub(k, 1), *self.inside(steps, types, (k, *v))]

        for r in b.while_(init, lambda k, *v: b.cmp("sgt", k, 0), body):
            self.keep(r)

    def branch(self) -> None:
        rng = self.rng
        types = self.carried()
        first, second = rng.randrange(1, 6), rng.randrange(5)
        block: Callable[[int], Any] = lambda steps: lambda: self.inside(steps, types)
        results = self.b.if_(self.any(I1), block(first), block(second), rare=rng.random() < 0.3)
        for r in results:
            self.keep(r)


def helper(seed: int) -> Func:
    """A function of a few values to call."""
    rng = random.Random(seed)
    t = rng.choice((I64, F32, F64, VType("f32", 16), VType("f64", 16)))
    types = [rng.choice((I64, I32, F32, F64, VType("f32", 16), VType("f64", 16))) for _ in range(rng.randrange(6))]
    f = Func(f"h{seed}", [(f"p{i}", x) for i, x in enumerate((*types, t))], t)
    b = Builder(f)
    values = [p for p in f.params if p.type is t]
    total = values[0]
    for v in values[1:]:
        total = b.fadd(total, v) if t.is_float else b.sub(total, v)
    b.ret(total)
    return f


def buffers(seed: int) -> list[np.ndarray]:
    """The buffers that a function reads and writes."""
    rng = np.random.default_rng(seed)
    reals = rng.standard_normal(BYTES // 8).astype(np.float32)
    src = np.where(rng.random(BYTES // 8) < 0.5, reals.view(np.int32), rng.integers(-9, 9, BYTES // 8)).astype(np.int32)
    return [np.tile(src, 2), np.zeros(BYTES // 4, np.int32), np.zeros(BYTES // 4, np.int32)]
