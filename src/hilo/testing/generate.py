"""Random valid programs, and random inputs for them: everything that a program may hold, on values that hurt. Imports
ir, ops.

A program is made op by op: ways to make an op (`WAYS`) take values that there are; what the op's own definition refuses
is dropped, and another is tried. The examples of every op in the registry are among the ways, so that a new op takes
part without a word here. Values that are rounded are used less often than exact ones: `testing/agree.py` can then
say of most results what they must be.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.ir.dtypes import i1, i32
from hilo.ir.module import Function, Module, parameter, region, topological
from hilo.ir.op import PARAMETER, Op, OpDef
from hilo.ir.quantized import any_quantized
from hilo.ir.registry import lookup
from hilo.ir.types import Results, TensorType, Type, result_types
from hilo.ops.value_rules import check_values
from hilo.passes.inline import callee_of, calls
from hilo.rewrite.regions import regions
from hilo.testing import generate_others, generate_regions
from hilo.testing.agree import ALGORITHMS, is_exact
from hilo.testing.draw import SHAPES, any_dtype, constant, draw, stablehlo
from hilo.testing.pieces import all_ops

# Examples of these are not taken: random values would make them meaningless, they are no function of their operands,
# need a partner outside, or have a way of their own.
LEFT_OUT: Final = (*ALGORITHMS, "custom_call", "infeed", "outfeed", "send", "recv", "call", "composite", "while",
                   "guards", "fusion", "parameter", "get", "sort", "select_and_scatter", "scatter", "bitcast_convert",
                   "top_k", "polygamma", "zeta", "async_start", "print", "probe", "run_parallel")  # fmt: skip
CLAMPED: Final = 8.0  # the largest term of a sum of floats: how sums overflow depends on their order
LARGEST: Final = 4096  # elements of a value
_TRIES: Final = 60  # for each op


def generate(seed: int, size: int = 20) -> Module:
    """A module of one function @main of about `size` ops. The same seed and size give the same module, always.

    Shapes go from rank 0 to 4, sizes of zero among them; types are all that there are. Regions hold random programs
    too, and so do further functions, which are called. All results are tensors of fixed sizes.
    """
    r = random.Random(f"module {seed} {size}")
    types = [TensorType(any_dtype(r), r.choice(SHAPES)) for _ in range(r.randint(1, 4))]
    params = [parameter(i, t) for i, t in enumerate(types)]
    functions: dict[str, Function] = {}
    scope = Scope(r, params, functions)
    scope.grow(size)
    made = [v for v in scope.values if v.kind is not PARAMETER] or params
    kept = [*r.sample(made, min(len(made), 1 + size // 3)), *made[-2:]]
    results = list(dict.fromkeys(kept))
    main = Function("main", params, topological(results, params), results)
    called = {callee_of(o) for f in (main, *functions.values()) for o in calls(f)}
    return Module({"main": main, **{name: f for name, f in functions.items() if name in called}})


def inputs(module: Module, seed: int, entry: str = "main") -> list[np.ndarray]:
    """Arrays for the parameters of `entry`: zeros of both signs, NaN, infinities, subnormals, the ends of integers."""
    r = random.Random(f"inputs {seed}")
    return [draw(r, t) for t in module[entry].param_types if isinstance(t, TensorType)]


def _is_small(t: Type) -> bool:
    return not isinstance(t, TensorType) or (t.size <= LARGEST and t.rank <= 8)


@cache
def _elementwise() -> tuple[OpDef, ...]:
    return tuple(d for d in all_ops() if d.scalar is not None and d.name not in LEFT_OUT)


@cache
def _examples() -> tuple[tuple[OpDef, Any], ...]:
    """(op, its examples) of ops on tensors of known sizes."""

    def fits(example: Any) -> bool:
        types = [t for t in (*example[0], example[1].get("type")) if t is not None]
        static = all(isinstance(t, TensorType) and t.is_static for t in types)
        return static and not any_quantized(types)

    found = [(d, [e for e in d.examples if fits(e)]) for d in all_ops() if d.name not in LEFT_OUT and not d.effect]
    return tuple((d, tuple(examples)) for d, examples in found if examples)


class Scope:
    """A function, or a region, under construction: the values so far, and ways to make more."""

    def __init__(self, r: random.Random, values: Sequence[Op], functions: dict[str, Function], depth: int = 0,
                 exact: bool = False) -> None:  # fmt: skip
        self.r = r
        self.values = list(values)
        self.functions = functions  # of the module, which calls add to
        self.rounded: set[Op] = set()
        self.depth = depth  # of regions around
        self.exact = exact  # whether ops that round are left out

    def grow(self, count: int) -> None:
        """`count` more values."""
        for _ in range(count):
            for _ in range(_TRIES):
                try:
                    new = self.r.choice(WAYS)(self)
                    if new is not None and all(_is_small(t) for t in result_types(new.type)) and self.keep(new):
                        break
                except (Error, ValueError, IndexError, OverflowError):  # does not fit: try another
                    continue

    def keep(self, o: Op) -> bool:
        """Take the results of an op, and what it was made of, among the values, unless that rounds and must not."""
        seen = set(self.values)
        made = [x for x in topological([o]) if x not in seen and x.kind is not PARAMETER]
        for x in made:
            check_values(x)  # as readers do
        inexact = {x for x in made if not is_exact(x)}
        if inexact and self.exact:
            return False
        for x in made:
            if x in inexact or any(v in self.rounded for v in x.operands):
                self.rounded.add(x)
        for x in o.results():
            if isinstance(x.type, TensorType) and x.type.is_static:
                self.values.append(x)
                if o in self.rounded:
                    self.rounded.add(x)
        return True

    def pick(self, like: TensorType | None = None, kinds: str = "", where: Callable[[Op], bool] | None = None) -> Op:
        """A value, of type `like` or of kinds of elements; rather a new one, rather an exact one. IndexError if there
        is none."""
        found = [v for v in self.values if (like is None or v.type is like)
                 and (not kinds or v.dtype.kind in kinds) and (where is None or where(v))]  # fmt: skip
        if self.r.random() < 0.9:
            found = [v for v in found if v not in self.rounded]
        return self.r.choice(found[-10:])

    def value(self, t: TensorType) -> Op:
        """A value of type `t`: one there is, or a constant."""
        try:
            return self.pick(t)
        except IndexError:
            return constant(draw(self.r, t), t)

    def tame(self, x: Op) -> Op:
        """`x` with floats clamped, so that sums do not overflow."""
        if x.dtype.kind != "f":
            return x
        s = TensorType(x.dtype)
        if x.dtype.format is not None and x.dtype.format.largest < 2 * CLAMPED:
            raise ValueError("sums of such numbers overflow")
        return stablehlo("clamp", constant(-CLAMPED, s), x, constant(CLAMPED, s))

    # ---- ways to make an op
    def elementwise(self) -> Op:
        kind = self.r.choice(_elementwise())
        x = self.pick()
        extra: dict[str, Any] = {}
        attrs = dict(self.r.choice(kind.examples)[1]) if kind.examples else {}
        attrs.pop("type", None)
        if kind.name == "remainder" and x.dtype.kind == "c":
            raise ValueError("it has no defined meaning")
        if attrs.get("compare_type") == "TOTALORDER":  # the sign of a NaN is open
            attrs.pop("compare_type")
        if kind.name == "convert":
            extra = {"type": x.tensor.with_dtype(any_dtype(self.r))}
        if kind.name == "select":
            return kind(self.value(x.tensor.with_dtype(i1)), x, self.value(x.tensor))
        if kind.name == "clamp":
            return kind(self.value(x.tensor), x, self.value(x.tensor))
        arity = len(self.r.choice(kind.examples)[0]) if kind.examples else 1
        return kind(x, *(self.value(x.tensor) for _ in range(arity - 1)), **attrs, **extra)

    def with_constant(self) -> Op:
        x = self.pick()
        operands = [x, constant(draw(self.r, x.tensor), x.tensor)]
        self.r.shuffle(operands)
        names = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor", "remainder")
        if x.dtype.kind == "c":
            names = names[:4]
        return stablehlo(self.r.choice(names), *operands)

    def move(self) -> Op:
        r, x = self.r, self.pick()
        t, rank = x.tensor, x.tensor.rank
        way = r.randrange(6)
        if way == 0:
            return stablehlo("transpose", x, permutation=tuple(r.sample(range(rank), rank)))
        if way == 1:
            fitting = [s for s in SHAPES if int(np.prod(s)) == t.size]
            return stablehlo("reshape", x, type=t.with_shape(r.choice(fitting)))
        if way == 2:
            shape = r.choice(SHAPES)
            dims = tuple(sorted(r.sample(range(len(shape)), rank)))
            return stablehlo("broadcast_in_dim", x, broadcast_dimensions=dims, type=t.with_shape(shape))
        if way == 3:
            low = tuple(r.randint(0, n) for n in t.shape)
            high = tuple(r.randint(a, n) for a, n in zip(low, t.shape, strict=True))
            strides = tuple(r.randint(1, 3) for _ in low)
            return stablehlo("slice", x, start_indices=low, limit_indices=high, strides=strides)
        if way == 4:
            return stablehlo("reverse", x, dimensions=tuple(r.sample(range(rank), r.randint(0, rank))))
        parts = [x, *(self.value(t) for _ in range(r.randint(0, 2)))]
        return stablehlo("concatenate", *parts, dimension=r.randrange(rank))

    def pad(self) -> Op:
        x, r = self.pick(), self.r
        low, high = (tuple(r.randint(-1, 2) for _ in x.shape) for _ in range(2))
        return stablehlo("pad", x, self.value(TensorType(x.dtype)), edge_padding_low=low, edge_padding_high=high,
                         interior_padding=tuple(r.randint(0, 1) for _ in x.shape))  # fmt: skip

    def compare(self) -> Op:
        x, r = self.pick(), self.r
        direction = r.choice(("EQ", "NE") if x.dtype.kind == "c" else ("EQ", "NE", "LT", "LE", "GT", "GE"))
        return stablehlo("compare", x, self.value(x.tensor), comparison_direction=direction)

    def iota(self) -> Op:
        shape = self.r.choice([s for s in SHAPES if s])
        t = TensorType(any_dtype(self.r), shape)
        return stablehlo("iota", iota_dimension=self.r.randrange(len(shape)), type=t)

    def reduce(self) -> Op:
        r, x = self.r, self.pick()
        s = TensorType(x.dtype)
        name = r.choice(("add", "maximum", "minimum", "multiply", "and", "or"))
        init = self.value(s)
        if name in ("add", "multiply"):
            if (x.dtype.kind in "fc" and name == "multiply") or x.dtype.kind == "c":
                raise ValueError("products overflow")
            x, init = self.tame(x), self.tame(init)
        body = region([s, s], lambda a, b: stablehlo(name, a, b))
        dims = tuple(sorted(r.sample(range(x.tensor.rank), r.randint(0, x.tensor.rank))))
        if x.tensor.rank and all(x.shape) and r.random() < 0.3:
            window = tuple(r.randint(1, min(3, n)) for n in x.shape)
            ones = (1,) * x.tensor.rank
            return stablehlo("reduce_window", x, init, window_dimensions=window, body=body,
                             window_strides=tuple(r.randint(1, 2) for _ in window), base_dilations=ones,
                             window_dilations=ones, padding=tuple((r.randint(0, 1), 0) for _ in window))  # fmt: skip
        return stablehlo("reduce", x, init, dimensions=dims, body=body)

    def dot(self) -> Op:
        r = self.r
        x = self.pick(kinds="iuf", where=lambda v: v.tensor.rank > 0)
        k = r.randrange(x.tensor.rank)
        y = self.pick(kinds=x.dtype.kind, where=lambda v: v.dtype is x.dtype and x.shape[k] in v.shape)
        j = y.shape.index(x.shape[k])
        free = [n for i, n in enumerate(x.shape) if i != k] + [n for i, n in enumerate(y.shape) if i != j]
        return stablehlo("dot_general", self.tame(x), self.tame(y), lhs_batching_dimensions=(),
                         rhs_batching_dimensions=(), lhs_contracting_dimensions=(k,), rhs_contracting_dimensions=(j,),
                         type=TensorType(x.dtype, free))  # fmt: skip

    def dynamic_slice(self) -> Op:
        r, x = self.r, self.pick()
        index = TensorType(r.choice((i32, dtypes.i64, dtypes.u8)))
        starts = [self.value(index) for _ in x.shape]
        sizes = tuple(r.randint(0, n) for n in x.shape)
        if r.random() < 0.5:
            return stablehlo("dynamic_slice", x, *starts, slice_sizes=sizes)
        return stablehlo("dynamic_update_slice", x, self.value(x.tensor.with_shape(sizes)), *starts)

    def example(self) -> Op:
        """Any op of the registry, as one of its examples has it, on values that there are."""
        kind, examples = self.r.choice(_examples())
        types, attrs = self.r.choice(examples)
        operands = [self.value(t) for t in types]
        o = kind(*operands, **attrs)
        if any(not is_exact(x) for f in regions(o) for x in f.ops):
            raise ValueError("an example whose regions round")
        if not is_exact(o) and not o.kind.scalar:  # a combination: of tame numbers
            if any(x.dtype.kind == "c" for x in operands):
                raise ValueError("products of infinities")
            o = kind(*map(self.tame, operands), **attrs)
        return o

    # ---- control flow: regions with programs of their own
    def function(self, body: Function) -> Callable[..., Op]:
        """A new function of the module, as what makes an op that calls it, or that is a composite of it."""
        name = f"f{len(self.functions)}"
        self.functions[name] = Function(name, body.params, body.ops, body.results, visibility="private")
        types = body.result_types
        attrs: dict[str, Any] = {"type": types[0] if len(types) == 1 else Results(types)}
        call, composite = lookup("func.call"), lookup("stablehlo.composite")
        if self.r.random() < 0.5:
            return lambda *operands: call(*operands, callee=name, **attrs)
        return lambda *operands: composite(*operands, name="test.f", decomposition=name, **attrs)

    def body(self, types: Sequence[TensorType], results: Sequence[TensorType], size: int = 4, *,
             exact: bool = False) -> Function:  # fmt: skip
        """A region on values of `types` that gives values of types `results`; with `exact`, without rounding."""

        def build(*params: Op) -> list[Op]:
            inner = Scope(self.r, params, self.functions, self.depth + 1, exact or self.exact)
            inner.grow(self.r.randint(1, size))
            return [inner.value(t) for t in results]

        return region(types, build)

    def branch(self) -> Op | None:
        """An `if` or a `case`."""
        if self.depth > 1:
            return None
        r = self.r
        captured = [self.pick() for _ in range(r.randint(1, 3))]
        types = [c.tensor for c in captured]
        results = [r.choice(types) for _ in range(r.randint(1, 2))]
        if r.random() < 0.5:
            pred = self.value(TensorType(i1))
            return stablehlo("if", pred, *captured, true_branch=self.body(types, results),
                             false_branch=self.body(types, results))  # fmt: skip
        branches = tuple(self.body(types, results) for _ in range(r.randint(1, 3)))
        return stablehlo("case", self.value(TensorType(i32)), *captured, branches=branches)

    def loop(self) -> Op | None:
        """A `while` of a few turns."""
        if self.depth > 1:
            return None
        r, counter = self.r, TensorType(i32)
        carried = [self.pick() for _ in range(r.randint(1, 2))]
        captured = [self.pick() for _ in range(r.randint(0, 1))]
        types = [counter, *(v.tensor for v in (*carried, *captured))]
        turns = r.randint(0, 4)
        cond = region(types, lambda i, *_: stablehlo("compare", i, constant(turns, counter), comparison_direction="LT"))
        inner = self.body(types, [v.tensor for v in carried])

        def step(*params: Op) -> list[Op]:
            scope = dict(zip(inner.params, params, strict=True))
            for o in inner.ops:
                if o not in scope:
                    scope[o] = o.with_operands([scope[x] for x in o.operands])
            return [stablehlo("add", params[0], constant(1, counter)), *(scope[v] for v in inner.results)]

        return stablehlo("while", constant(0, counter), *carried, *captured, cond=cond, body=region(types, step))


WAYS: Final[tuple[Callable[[Scope], Op | None], ...]] = (
    *(Scope.elementwise,) * 8, *(Scope.with_constant,) * 4, *(Scope.move,) * 6, *(Scope.pad,) * 2,
    *(Scope.compare,) * 2, *(Scope.iota,) * 2, *(Scope.reduce,) * 2, *(Scope.dot,) * 2, *(Scope.dynamic_slice,) * 2,
    *(Scope.example,) * 5, *(Scope.branch,) * 2, *(Scope.loop,) * 2, *generate_regions.WAYS, *generate_others.WAYS,
)  # fmt: skip
