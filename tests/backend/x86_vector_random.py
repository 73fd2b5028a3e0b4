"""Random functions on vectors, rich in what becomes one instruction: masks of compares, products with negations,
selections of what is computed for them, logic upon logic, lower bits; with loads, stores and loops between.

Bits of floats are never looked at as integers, so that one NaN is as good as another.
"""

from __future__ import annotations

import random

from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType

SCALARS = ("f32", "f64", "i32", "i64", "i8", "i16")
FLOAT_PREDS = ("olt", "ogt", "ole", "oge", "oeq", "une", "uno", "ord")
PREDS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
LOGIC = ("and", "or", "xor")
PLACES = 8  # vectors of a buffer that is read and written
KEPT = 8  # values of a type that are stored in the end
#: What a step does, and how often.
STEPS = {"compute": 35, "mask": 15, "select": 18, "extreme": 7, "convert": 7, "bits": 3, "lane": 3, "move": 3,
         "store": 5, "masked": 4}  # fmt: skip
Pool = dict[VType, list[Node]]


class Writer:
    """Writes `func(x, y, out)`: of x and y it reads 4096 i32; `stored` says what lies in `out` and where."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.lanes = rng.choice((4, 8, 16, 16, 16, 32))
        chosen = rng.sample(SCALARS, rng.choice((2, 3, 3)))
        self.types = [VType(s, self.lanes) for s in chosen]
        self.mask_type = VType("i1", self.lanes)
        self.func = Func(f"z{seed}", [("x", PTR), ("y", PTR), ("out", PTR)])
        self.b = Builder(self.func)
        self.x, self.y, out = self.func.params
        self.pool: Pool = {}
        self.some()
        if rng.random() < 0.5:
            self.loop()
            self.some()
        self.stored: list[tuple[int, VType]] = []
        self.size = 0
        for t, values in self.pool.items():
            for v in values[-KEPT:]:
                self.b.store(self.b.gep(out, self.size), v)
                self.stored.append((self.size, t))
                self.size += t.lanes * t.size
        self.b.ret()

    # ---- structure
    def some(self) -> None:
        for _ in range(self.rng.randrange(4, 18)):
            self.step()

    def loop(self) -> None:
        rng = self.rng
        types = [rng.choice((*self.types, self.mask_type)) for _ in range(rng.randrange(4))]
        outside = self.pool

        def turn(_: Node, *carried: Node) -> list[Node]:
            self.pool = {t: list(v) for t, v in outside.items()}
            for v in carried:
                self.keep(v)
            self.some()
            return [rng.choice(self.pool[t]) for t in types]

        init = [rng.choice(self.pool[t]) if t in self.pool else self.number(t, 0) for t in types]
        results = self.b.for_(0, rng.randrange(1, 4), 1, turn, init, unroll=rng.choice((1, 1, 2)))
        self.pool = outside
        for v in results:
            self.keep(v)

    def keep(self, v: Node) -> None:
        self.pool.setdefault(v.type, []).append(v)

    def step(self) -> None:
        b, rng = self.b, self.rng
        t = rng.choice(self.types)
        place = b.gep(self.y, rng.randrange(PLACES) * t.lanes * t.size)
        (what,) = rng.choices(list(STEPS), list(STEPS.values()))
        if what == "compute":
            self.keep(self.computed(t))
        elif what == "mask":
            self.keep(self.mask())
        elif what == "select":
            c = self.any(self.mask_type) if rng.random() < 0.6 else self.mask()
            values = [self.computed(t) if rng.random() < 0.4 else self.any(t) for _ in range(2)]
            self.keep(b.pure("select", (c, *values), t))
        elif what == "extreme":
            x, y = self.any(t), self.any(t)
            pred = rng.choice(("olt", "ogt") if t.is_float else ("slt", "sgt", "ult", "ugt"))
            self.keep(b.select(b.cmp(pred, x, y), *rng.sample((x, y), 2)))
        elif what == "convert":
            self.keep(self.converted(t))
        elif what == "bits" and not t.is_float:
            self.keep(b.convert(rng.choice(("sext", "zext")), self.any(self.mask_type), t.scalar))
        elif what == "lane":
            self.keep(b.splat(b.lane(self.any(t), rng.randrange(t.lanes)), t.lanes))
        elif what == "move" and t.size > 1 and t.lanes * t.size <= 64:
            lanes = [rng.randrange(2 * t.lanes) for _ in range(t.lanes)]
            self.keep(b.shuffle(self.any(t), self.any(t), lanes))
        elif what == "store":
            b.store(place, self.any(t))
        elif what == "masked":
            b.store(place, self.any(t), mask=self.any(self.mask_type))

    # ---- values
    def number(self, t: VType, value: int) -> Node:
        return self.b.splat(self.b.const(value, t.with_lanes(1)), t.lanes)

    def any(self, t: VType) -> Node:
        """A value of a type: one that there is, mostly; a constant or a loaded one."""
        b, rng = self.b, self.rng
        if t in self.pool and rng.random() < 0.9:
            return rng.choice(self.pool[t][-6:])
        if t.scalar == "i1":
            if rng.random() < 0.5:
                return self.number(t, rng.randrange(2))
            count = b.i64(rng.randrange(t.lanes + 1))
            if rng.random() < 0.5:
                count = b.and_(b.load(b.gep(self.x, 8 * rng.randrange(64)), I64), 31)
            return b.cmp("slt", b.iota(I64.with_lanes(t.lanes)), b.splat(count, t.lanes))
        place = b.gep(rng.choice((self.x, self.y)), rng.randrange(PLACES) * t.lanes * t.size)
        how = rng.random()
        if how < 0.4:
            return self.number(t, rng.choice((0, 1, -1, 2, 3, 5)))
        if how < 0.7:
            return b.load(place, t)
        return b.load(place, t, mask=self.any(self.mask_type)) if how < 0.85 else \
            b.splat(b.load(place, t.with_lanes(1)), t.lanes)  # fmt: skip

    def compared(self) -> Node:
        b, rng = self.b, self.rng
        t = rng.choice(self.types)
        x, y = self.any(t), self.any(t)
        if t.is_float:
            return b.cmp(rng.choice(FLOAT_PREDS), x, y)
        if rng.random() < 0.3:
            return b.cmp(rng.choice(("eq", "ne")), b.and_(x, y) if rng.random() < 0.6 else x, 0)
        return b.cmp(rng.choice(PREDS), x, y)

    def mask(self) -> Node:
        b, rng, how = self.b, self.rng, self.rng.random()
        if how < 0.5:
            return self.compared()
        if how < 0.65:
            return b.not_(self.any(self.mask_type))
        x = self.mask() if rng.random() < 0.4 else self.any(self.mask_type)
        y = b.not_(self.compared()) if rng.random() < 0.4 else self.any(self.mask_type)
        return b.binary(rng.choice(LOGIC), x, y)

    def computed(self, t: VType) -> Node:
        b, rng, how = self.b, self.rng, self.rng.random()
        if t.is_float:
            if how < 0.35:
                return b.fma(*[b.fneg(self.any(t)) if rng.random() < 0.35 else self.any(t) for _ in range(3)])
            if how < 0.55:
                return b.unary(rng.choice(("fneg", "fabs", "sqrt", "rint", "floor", "trunc")), self.any(t))
            return b.binary(rng.choice(("fadd", "fsub", "fmul", "fdiv")), self.any(t), self.any(t))
        if how < 0.45:
            v = b.binary(rng.choice(LOGIC), self.any(t), self.any(t))
            if rng.random() < 0.7:
                v = b.binary(rng.choice(LOGIC), *rng.sample((v, self.any(t)), 2))
            return b.binary(rng.choice(LOGIC), v, b.xor(self.any(t), -1)) if rng.random() < 0.3 else v
        if how < 0.6:
            return b.binary(rng.choice(("shl", "lshr", "ashr")), self.any(t), rng.randrange(t.bits))
        if how < 0.7:
            v, by = self.any(t), rng.randrange(1, t.bits)
            return b.or_(b.shl(v, by), b.lshr(v, t.bits - by))
        return b.binary(rng.choice(("add", "sub", "mul")), self.any(t), self.any(t))

    def converted(self, t: VType) -> Node:
        b, rng = self.b, self.rng
        f = rng.choice(self.types)
        if f is t or (f.is_float and not t.is_float):
            return self.computed(t)
        v = self.any(f)
        if f.is_float:
            return b.convert("fpext" if f.size < t.size else "fptrunc", v, t.scalar)
        if t.is_float:
            return b.convert(rng.choice(("sitofp", "uitofp")), v, t.scalar)
        if f.size < t.size:
            return b.convert(rng.choice(("sext", "zext")), v, t.scalar)
        return b.convert("itrunc", self.computed(f) if rng.random() < 0.6 else v, t.scalar)
