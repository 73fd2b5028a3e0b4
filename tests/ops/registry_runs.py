"""Programs out of the examples of ops, with inputs at the edges of their types, and what results may differ by.

Examples are put together, many in one program, as compiling costs less by the op then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

import numpy as np
from support import edges

from hilo.ir.dtypes import DType, from_numpy
from hilo.ir.interpret import interpret
from hilo.ir.module import Function, Module, parameter, region, topological
from hilo.ir.op import Op, OpDef
from hilo.ir.registry import lookup
from hilo.ir.types import TOKEN, FutureType, TensorType, TupleType, Type
from hilo.ops.weight import EXPENSIVE, WORK
from hilo.testing import compare
from hilo.testing.pieces import COMBINING

ULPS = 2  # numerics.md: functions that are not exact
SUM_FACTOR = 4  # numerics.md: 4 * n * eps * (sum of the magnitudes of n terms)
LOOPS = ("while",)  # run for as long as their inputs say


# Ops of many steps, whose errors depend on the condition of the problem: they get a good one, and a bound for it.
ALGORITHMS = ("batch_norm_inference", "batch_norm_training", "batch_norm_grad", "cholesky", "triangular_solve", "fft",
              "rng", "einsum", "unary_einsum")  # fmt: skip


@dataclass
class Example:
    """One example of one op: `params` are its arguments in the program of the batch, `results` its tensors there."""

    kind: OpDef
    op: Op
    params: list[Op]
    results: list[Op]

    @property
    def name(self) -> str:
        types = ", ".join(str(x.type) for x in self.op.operands)
        return f"{self.kind.full_name}({types}) -> {self.op.type}"


class Batch:
    """A program of many examples."""

    def __init__(self, examples: Iterable[tuple[OpDef, Sequence[Type], dict[str, Any]]]) -> None:
        self.examples: list[Example] = []
        self.functions: dict[str, Function] = {}
        numbers = count()
        for kind, types, attrs in examples:
            params: list[Op] = []
            operands = [_operand(t, params, numbers) for t in types]
            o = kind(*operands, **self._with_callee(kind, types, attrs))
            self.examples.append(Example(kind, o, params, [r for x in o.results() for r in _tensors(x)]))
        self.params = [p for e in self.examples for p in e.params]
        self.results = [r for e in self.examples for r in e.results]

    def _with_callee(self, kind: OpDef, types: Sequence[Type], attrs: dict[str, Any]) -> dict[str, Any]:
        """For calls: a function of the wanted type, that doubles what it gets."""
        key = next((k for k in ("callee", "decomposition") if k in attrs), None)
        if key is None:
            return attrs
        name = f"{attrs[key]}{len(self.functions)}"
        params = [parameter(i, t) for i, t in enumerate(types)]
        results = [lookup("stablehlo.add")(p, p) for p in params]
        self.functions[name] = Function(name, params, topological(results, params), results)
        return {**attrs, key: name}

    def module(self) -> Module:
        ops = topological([e.op for e in self.examples] + self.results, self.params)
        return Module({"main": Function("main", self.params, ops, self.results), **self.functions})

    def inputs(self, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [values(e.kind, p.tensor, rng) for e in self.examples for p in e.params]

    def expected(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return interpret(self.module(), arrays)

    def differences(self, arrays: list[np.ndarray], got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> list[str]:
        """A line for every example whose results are wrong."""
        found = []
        inputs, outs = iter(arrays), iter(zip(got, want, strict=True))
        for e in self.examples:
            operands = [next(inputs) for _ in e.params]
            for _ in e.results:
                g, w = next(outs)
                g = np.asarray(g)
                if g.shape != w.shape or g.dtype != w.dtype:
                    found.append(f"{e.name}: {g.dtype}{g.shape} instead of {w.dtype}{w.shape}")
                    continue
                ok = agrees(e, g, w, operands)
                if not ok.all():
                    found.append(f"{e.name}: {compare.difference(g, w, ok)}, inputs {operands!r:.400}")
        return found


def _operand(t: Type, params: list[Op], numbers: Any) -> Op:
    """A value of type `t` made of parameters."""
    if isinstance(t, TensorType):
        params.append(parameter(next(numbers), t))
        return params[-1]
    if isinstance(t, TupleType):
        return lookup("stablehlo.tuple")(*(_operand(x, params, numbers) for x in t))
    if isinstance(t, FutureType):
        (held,) = t
        start = region([held], lambda x: lookup("stablehlo.collective_permute")(x, source_target_pairs=((0, 0),)))
        return lookup("stablehlo.async_start")(_operand(held, params, numbers), body=start)
    assert t is TOKEN, t
    return lookup("stablehlo.create_token")()


def _tensors(x: Op) -> list[Op]:
    """The tensors in a value."""
    if isinstance(x.type, TensorType):
        return [x]
    if isinstance(x.type, TupleType):
        get = lookup("stablehlo.get_tuple_element")
        return [r for i in range(len(x.type)) for r in _tensors(get(x, index=i))]
    return []


def values(kind: OpDef, t: TensorType, rng: np.random.Generator) -> np.ndarray:
    """An array of edges of its element type; tame ones for sums, whose bound is about rounding, and for loops."""
    n = prod(t.shape)
    if kind.name in ALGORITHMS and t.dtype.kind in "fc":
        return _well_conditioned(t, rng)
    if kind.name in LOOPS and t.dtype.is_int:
        return rng.integers(0, 5, t.shape).astype(t.dtype.np)
    stored = from_numpy(np.dtype(t.dtype.np))  # of quantized numbers, the integers
    pool = edges(stored, int(rng.integers(1 << 30)))
    if is_sum(kind) and t.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            pool = pool[~(compare.magnitudes(pool) > 300.0)]
    name = kind.name.removeprefix("broadcast_")
    if t.dtype.kind == "c" and name in ("multiply", "power"):
        pool = pool[_moderate(pool.real) & _moderate(pool.imag)]
    if kind.name == "sort" and t.dtype.kind in "fc":  # what is neither less nor greater has no place of its own
        pool = pool[~np.any([np.isnan(p) | ((p == 0) & np.signbit(p)) for p in compare.parts(pool)], axis=0)]
    return np.asarray(rng.choice(pool, n)).reshape(t.shape)


def _well_conditioned(t: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Numbers of one size and sign; a heavy diagonal where they may be a matrix."""
    x = rng.uniform(1.0, 2.0, t.shape)
    if t.rank >= 2 and t.shape[-1] == t.shape[-2]:
        x = x + 4.0 * t.shape[-1] * np.eye(t.shape[-1])
    return np.asarray(x).astype(t.dtype.np)


def _moderate(x: np.ndarray) -> np.ndarray:
    """Parts for complex products, of which one may overflow in f64 where it does not in the reference's long double,
    and powers, where the argument of exp loses all digits of large imaginary parts."""
    with np.errstate(all="ignore"):
        return (x == 0) | ((np.abs(x) > 1e-18) & (np.abs(x) < 1e18))


def is_sum(kind: OpDef) -> bool:
    return kind.name in COMBINING


def agrees(e: Example, got: np.ndarray, want: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Where a result is right: every bit, but for functions (ULPS) and sums (SUM_FACTOR)."""
    if want.dtype.kind in "biu":
        return compare.equal(got, want)
    if e.kind.name in ALGORITHMS:
        scale = float(np.max(compare.magnitudes(want), initial=1.0))
        bound = 16.0 * max(x.size for x in operands) * compare.epsilon(from_numpy(want.dtype)) * scale
        return compare.close(got, want, 1, bound)
    if is_sum(e.kind):
        return compare.close(got, want, 1, _sum_slack(e, operands, from_numpy(want.dtype)))
    if want.dtype.kind == "c":
        return _complex_agrees(e, got, want, operands)
    name = e.kind.name.removeprefix("broadcast_")
    if WORK.get(name, 1.0) < EXPENSIVE:
        return compare.identical(got, want)
    return compare.close(got, want, ULPS)


def _sum_slack(e: Example, operands: Sequence[np.ndarray], dtype: DType) -> float:
    """For sums of up to n terms, each at most as large as the largest operand, or product of two operands."""
    sizes = [compare.magnitudes(x) for x in operands]
    largest = [float(np.max(s[np.isfinite(s)], initial=0.0)) for s in sizes]
    term = largest[0] * largest[1] if "dot" in e.kind.name else max(largest)
    n = max(x.size for x in operands) + 1
    return SUM_FACTOR * n * compare.epsilon(dtype) * n * term


def _complex_agrees(e: Example, got: np.ndarray, want: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Complex numbers: ULPS of the larger part, and of c128 twice that for what takes several roundings of f64.

    power is exp(y log x), whose rounding grows with |y log x|; atan2 is a logarithm of a number of magnitude near 1.
    """
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        unit = np.where(np.isfinite(size), np.spacing(size), 0.0).astype(np.float64)
        if e.kind.name == "power":
            x, y = (v.astype(np.complex128) for v in operands)
            unit = unit * (1.0 + np.nan_to_num(np.abs(y * np.log(x)), nan=0.0, posinf=0.0))
        elif e.kind.name.endswith("atan2"):
            unit = np.maximum(unit, compare.epsilon(from_numpy(want.dtype)))
    count = 2 * ULPS if want.dtype == np.complex128 else ULPS
    return compare.close(got, want, ULPS, count * unit)
