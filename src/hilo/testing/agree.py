"""One program, many ways to run it: all must agree. Imports the pipeline, lazily.

The interpreter is right. Beside it run native code (on one and on two threads, all of it made by LLVM, for smaller
machines, without fusion, as quick code, with each optional pass left out), the program with its inputs as constants,
and the passes' result in the interpreter.

How much a result may differ follows from how it comes about. One that is made by exact ops alone has the same bits
everywhere. One that is a function of such values, or a sum of them, is within ULPS, or the rounding of its terms. What
is computed from rounded values cannot be bounded by looking at results; `testing/check.py` then judges op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.dtypes import from_numpy
from hilo.ir.interpret import interpret, run
from hilo.ir.module import Function, Module
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType, result_types
from hilo.ops.regions import apply, sole_op
from hilo.ops.weight import EXPENSIVE, WORK
from hilo.options import Options
from hilo.rewrite.regions import regions
from hilo.testing import compare
from hilo.testing.check import ULPS, check_program
from hilo.testing.pieces import COMBINING
from hilo.testing.slack import FACTOR, MOVES, summation_slack

#: Optional passes, and what fusion is without them: each is left out once.
SKIPPED: Final = ("simplify", "rules", "hoist", "cse", "dce", "fuse")
#: Names of the ways, in the order in which `agree` goes through them.
WAYS: Final = ("passes", "native", "llvm", "constants", *(f"skip {name}" for name in SKIPPED), "unfused", "quick",
               "x86-avx2", "x86-sse2", "arm-neon", "check")  # fmt: skip

# Ops of many roundings, whose errors depend on the condition of the problem.
ALGORITHMS: Final = ("batch_norm_inference", "batch_norm_training", "batch_norm_grad", "cholesky", "triangular_solve",
                     "fft", "einsum", "unary_einsum", "rng")  # fmt: skip
# What combines elements in an order that is fixed.
IN_ORDER: Final = ("scatter", "select_and_scatter", "reduce_window")
EXTREMES: Final = (0.0, -0.0, 1.0, -2.0, 3.0, 0.5, np.inf, -np.inf, np.nan)
# What computes nothing, or one exact operation on each part, of complex numbers.
_COMPLEX_EXACT: Final = ("add", "subtract", "negate", "real", "imag", "complex", "conj", "select", "compare",
                         "concatenate", "pad", "gather", "dynamic_slice", "dynamic_update_slice", "reverse", "constant",
                         "parameter", "get", "tuple", "get_tuple_element", "optimization_barrier", "convert",
                         *MOVES)  # fmt: skip


def agree(module: Module, arrays: Sequence[Any], *, entry: str = "main", ways: Iterable[str] = WAYS,
          options: Options | None = None) -> str | None:  # fmt: skip
    """Run `entry` of `module` on `arrays` in all `ways`: the first that gives other results than the interpreter, as
    `way: result k (op): how it differs`, or that fails (`way: error: what`); None if they agree.

    `options` (None: from the environment) hold for all ways, but for what makes the way.

    Raises `Error` if the interpreter itself cannot run the program. Ways that this machine cannot run are left out.
    """
    judge = _Judge(module, arrays, entry, Options.from_env() if options is None else options)
    for way in ways:
        try:
            found = judge.differs(way)
        except Error as e:
            found = f"error: {e}"
        except Exception as e:  # a defect of hilo: what runs this must see it and go on
            found = f"error: {type(e).__name__}: {e}"
        if found:
            return f"{way}: {found}"
    return None


class _Judge:
    """What a program must give, and how closely."""

    def __init__(self, module: Module, arrays: Sequence[Any], entry: str, options: Options) -> None:
        from hilo.passes.inline import inline

        self.options = options
        self.arrays = [np.asarray(a) for a in arrays]
        self.entry = entry
        self.module = module
        self.want = [np.asarray(x) for x in interpret(module, self.arrays, entry)]
        self.function = inline(module, entry)
        self.kinds = kinds(self.function)
        alone = Module({"main": self.function.replace(name="main")})
        sums = "sum" in self.kinds
        self.slack = summation_slack(alone, self.arrays) if sums else [0.0] * len(self.want)

    def differs(self, way: str) -> str:
        """How what `way` gives differs from what it must, or ""."""
        from hilo import pipeline
        from hilo.backend.target import Target

        options = self.options
        if way == "passes":
            return self._compare(run(pipeline.optimize(self.module, self.entry, options), self.arrays))
        if way == "check":
            if "open" not in self.kinds:
                return ""
            return check_program(self.module, self.arrays, entry=self.entry, options=options) or ""
        if way == "llvm":
            return self._by_llvm(options)
        if way == "constants":
            f = self._compile(options, constants=dict(enumerate(self.arrays)))
            return self._compare(f())
        if way.startswith(("x86-", "arm-")):
            if not Target.host().includes(Target.named(way)):
                return ""
            return self._threads(lambda n: self._compile(options, target=way, threads=n))
        if way.startswith("skip "):
            options = options.replace(skip=(way.removeprefix("skip "),))
        elif way == "unfused":
            options = options.replace(fuse=False)
        elif way == "quick":
            options = options.replace(opt=0)
        elif way != "native":
            raise Error(f"there is no way {way!r}; there are: {', '.join(WAYS)}")
        return self._threads(lambda n: self._compile(options, threads=n))

    def _compile(self, options: Options, **how: Any) -> Any:
        from hilo.pipeline import compile_module

        return compile_module(self.module, entry=self.entry, options=options, **how)

    def _threads(self, compiled: Callable[[int], Any]) -> str:
        """One thread and two: the same bits, and the right ones."""
        one, two = (list(compiled(n)(*self.arrays)) for n in (1, 2))
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            if np.asarray(a).tobytes() != np.asarray(b).tobytes():
                return f"result {k} is not the same on one and on two threads"
        return self._compare(one)

    def _by_llvm(self, options: Options) -> str:
        """Code that LLVM makes and code that hilo makes as far as it can: the same bits, and the right ones."""
        made = [self._compile(options.replace(codegen=c), threads=1) for c in ("auto", "llvm")]
        own, other = (list(f(*self.arrays)) for f in made)
        for k, (a, b) in enumerate(zip(map(np.asarray, own), map(np.asarray, other), strict=True)):
            same = compare.identical(a, b)
            if not same.all():
                return f"result {k} is not the same by LLVM: {compare.difference(a, b, same)}"
        return self._compare(other)

    def _compare(self, results: Sequence[Any]) -> str:
        for k, (got, want) in enumerate(zip(map(np.asarray, results), self.want, strict=True)):
            if got.dtype != want.dtype or got.shape != want.shape:
                return f"result {k} is {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
            ok = self._agrees(k, got, want)
            if not ok.all():
                return f"result {k} ({self.function.results[k]!r}): {compare.difference(got, want, ok)}"
        return ""

    def _agrees(self, k: int, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        kind = self.kinds[k]
        if kind == "open":
            return np.ones(got.shape, np.bool_)
        if kind == "exact":
            return compare.identical(got, want)
        if kind == "function":
            return compare.close(got, want, ULPS)
        slack = np.broadcast_to(self.slack[k], got.shape)
        with np.errstate(all="ignore"):  # what overflows, or not, on the way
            large = slack > FACTOR * compare.epsilon(from_numpy(want.dtype)) * _largest(want.dtype)
        return compare.close(got, want, 1, np.nan_to_num(slack, nan=0.0)) | np.asarray(large & np.isfinite(slack))


def _largest(t: np.dtype) -> float:
    part = from_numpy(t).part.format
    return part.largest if part is not None else np.inf


# ---- how results come about
def kinds(f: Function) -> list[str]:
    """For each result of `f`: "exact", "function" (of exact values), "sum" (of such), or "open"."""
    known: dict[Op, str] = {}
    for o in f.ops:
        before = {known[x] for x in o.operands}
        if before <= {"exact"}:
            known[o] = "exact" if is_exact(o) else _rounded(o)
        elif o.kind.name in MOVES and len(before) == 1:
            known[o] = before.pop()
        else:
            known[o] = "open"
    return [known[r] for r in f.results]


def _rounded(o: Op) -> str:
    """What an op is that is not exact."""
    name = o.kind.name
    if not isinstance(o.type, TensorType) or o.dtype.kind != "f" or name in ALGORITHMS or any(regions(o)):
        sole = name in ("reduce", "reduce_window") and isinstance(o.type, TensorType) and o.dtype.kind == "f"
        return "sum" if sole and sole_op(o.attrs["body"], len(o.operands) - 2) == "add" else "open"
    if o.attrs.get("algorithm") is not None:
        return "open"  # operands split into narrow parts, which subnormals need not survive
    if name in COMBINING:
        return "sum" if name in ("dot", "dot_general", "convolution") else "open"
    return "function"


def is_exact(o: Op) -> bool:
    """Whether the results of an op are determined to the bit (a NaN is a NaN) by the values of its operands."""
    name = o.kind.name.removeprefix("broadcast_")
    types = [t for v in (o, *o.operands) for t in result_types(v.type) if isinstance(t, TensorType)]
    if name in ALGORITHMS:
        return False
    bodies = list(regions(o))
    if any(t.dtype.kind == "c" for t in types) and name not in _COMPLEX_EXACT and not bodies:
        return False
    within = all(is_exact(x) for f in bodies for x in f.ops)
    rounds = any(t.dtype.kind in "fc" for t in result_types(o.type) if isinstance(t, TensorType))
    if name not in COMBINING or not rounds:
        return within and WORK.get(name, 1.0) < EXPENSIVE
    if name in IN_ORDER and not any(sole_op(f) in ("add", "multiply") for f in bodies):
        return within
    return within and len(bodies) == 1 and (_takes_one(o) or is_extremum(bodies[0]))


def _takes_one(o: Op) -> bool:
    """Whether a reduction combines at most one element with each init value, so that the order is no matter."""
    return o.kind.name == "reduce" and prod(o.operands[0].shape[d] for d in o.attrs["dimensions"]) <= 1


@lru_cache(maxsize=1024)
def is_extremum(body: Function) -> bool:
    """Whether a region of two floats gives the larger one (or always the smaller one), however it is written."""
    if len(body.params) != 2 or len(body.results) != 1 or body.results[0].dtype.kind != "f":
        return False
    t = body.results[0].dtype.np
    if any(p.type is not body.results[0].type for p in body.params):
        return False
    with np.errstate(all="ignore"):
        x, y = (v.reshape(-1).astype(t) for v in np.meshgrid(EXTREMES, EXTREMES))
    try:
        (got,) = apply(body, [x, y], [], x.shape)
    except Error:  # a call of a function that is not here
        return False
    for name in ("maximum", "minimum"):
        extremum = lookup(f"stablehlo.{name}").evaluate
        assert extremum is not None
        if compare.identical(got, extremum(x, y)).all():
            return True
    return False
