"""`hilo run --check`: native code beside the interpreter, with the results of every kernel observable.

Each op of the fused function is judged by itself: the interpreter gets the operands that the native code really used,
so that differences do not add up on the way. An op with exact semantics must agree in every bit, a function within
ULPS, a sum within the rounding of its terms. A fusion, loop or branch that differs is run again natively, op by op and
turn by turn: then either one of its ops is wrong by itself, or the whole gives other bits than its ops do, or the
difference is what roundings grew to, which is right. Imports the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from hilo.ir.dtypes import from_numpy
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import Results, TensorType, has_unknown_sizes
from hilo.ops.regions import sole_op
from hilo.ops.weight import EXPENSIVE, WORK
from hilo.options import Options
from hilo.testing import compare
from hilo.testing.pieces import COMBINING

ULPS: Final = 4  # two functions of up to 2 ulp each
SUM_FACTOR: Final = 4  # 4 * n * eps of the terms' largest magnitude, for sums of n terms
TURNS: Final = 1000  # of a loop that are looked at op by op
# Ops that run functions whose values can be looked at one by one.
WALKED: Final = ("hilo.fusion", "stablehlo.while", "stablehlo.if", "stablehlo.case")

Arrays = Sequence[Any]
Native = Callable[..., list[np.ndarray]]


def check_program(module: Module, arrays: Arrays, *, entry: str = "main", target: str = "host",
                  threads: int | None = None, options: Options | None = None) -> str | None:  # fmt: skip
    """The first op whose native results differ from the interpreter's, with where it is, and by how much; or None."""
    from hilo import pipeline

    shapes = {}
    if entry in module.functions and has_unknown_sizes(module[entry]):  # looked at for these sizes only
        shapes = {i: np.shape(a) for i, a in enumerate(arrays)}
    f = pipeline.optimize(module, entry, Options.from_env() if options is None else options, shapes=shapes)
    return check_function(f, arrays, target=target, threads=threads, options=options)


def check_function(f: Function, arrays: Arrays, *, target: str = "host", threads: int | None = None,
                   options: Options | None = None) -> str | None:  # fmt: skip
    """The same for a function that has gone through the passes."""
    return _Checker(target, threads, options).check(f, arrays)


class _Checker:
    """Compiles functions with all their values as results, each once."""

    def __init__(self, target: str, threads: int | None, options: Options | None) -> None:
        self.options = options
        self.target = target
        self.threads = threads
        self._native: dict[Function, tuple[list[Op], Native]] = {}

    def check(self, f: Function, arrays: Arrays) -> str | None:
        """The first op of `f` that is wrong, described; or None."""
        native = self.observe(f, arrays)
        for o in f.ops:
            if o.kind in (PARAMETER, GET) or any(x not in native for x in o.operands):
                continue
            outs = [g for g in f.ops if g.kind is GET and g.operands[0] is o] if isinstance(o.type, Results) else [o]
            if any(x not in native for x in outs):
                continue
            operands = [native[x] for x in o.operands]
            want = run(single(o), operands)
            for g in outs:
                w = want[g.attrs["index"]] if g.kind is GET else want[0]
                found = difference(o, operands, native[g], w)
                if found:
                    found = self.inside(o, operands, outs, [native[x] for x in outs], found)
                    if found:
                        return found
                    break
        return None

    def observe(self, f: Function, arrays: Arrays) -> dict[Op, np.ndarray]:
        """What native code computes for all tensors of `f`."""
        known = self._native.get(f)
        if known is None:
            from hilo import pipeline

            values = [o for o in f.ops if isinstance(o.type, TensorType) and o.kind is not PARAMETER]
            compiled: Native = lambda *_: []
            if values:
                shown = f.replace(results=values)
                compiled = pipeline.compile_function(shown, target=self.target, threads=self.threads,
                                                     options=self.options)  # fmt: skip
            known = self._native[f] = values, compiled
        values, compiled = known
        native = dict(zip(values, compiled(*arrays), strict=True))
        native.update((p, np.asarray(a)) for p, a in zip(f.params, arrays, strict=True))
        return native

    def inside(self, o: Op, operands: Arrays, outs: list[Op], got: list[np.ndarray], found: str) -> str | None:
        """What is wrong with `o`, whose results `got` differ as `found` says, as precisely as can be told."""
        if o.kind.full_name not in WALKED:
            return describe(o, found)
        wrong, results = self.walk(o, operands)
        if wrong:
            return wrong
        sums = any(x.kind.name in COMBINING for f in _functions(o) for x in f.ops)
        for g, a in zip(outs, got, strict=True):
            w = results[g.attrs["index"] if g.kind is GET else 0]
            ok = compare.close(a, w, ULPS, _loose(operands, w)) if sums else compare.identical(a, w)
            if not ok.all():
                return describe(o, compare.difference(a, w, ok) + ", where its ops, one by one, are right")
        return None

    def walk(self, o: Op, operands: Arrays) -> tuple[str | None, list[np.ndarray]]:
        """Run what `o` runs, natively and op by op: the first op that is wrong, or else the results."""
        name, attrs = o.kind.full_name, o.attrs
        if name == "stablehlo.while":
            return self.loop(o, operands)
        if name == "stablehlo.if":
            f, operands = attrs["true_branch" if operands[0] else "false_branch"], operands[1:]
        elif name == "stablehlo.case":
            branches, index = attrs["branches"], int(operands[0])
            f, operands = branches[index if 0 <= index < len(branches) else -1], operands[1:]
        else:
            f = attrs["body"]
        wrong = self.check(f, operands)
        return wrong, [] if wrong else self.results(f, operands)

    def loop(self, o: Op, operands: Arrays) -> tuple[str | None, list[np.ndarray]]:
        """The same for a loop, turn by turn; after many turns only the results count."""
        cond, body = o.attrs["cond"], o.attrs["body"]
        carried = len(body.results)
        state, captured = list(operands[:carried]), list(operands[carried:])
        for turn in count():
            arrays = [*state, *captured]
            wrong = self.check(cond, arrays) if turn < TURNS else None
            if wrong or not self.results(cond, arrays)[0]:
                return wrong, state
            wrong = self.check(body, arrays) if turn < TURNS else None
            if wrong:
                return wrong, state
            state = self.results(body, arrays)
        raise AssertionError("unreachable")

    def results(self, f: Function, arrays: Arrays) -> list[np.ndarray]:
        """The results of `f` by native code."""
        native = self.observe(f, arrays)
        return [native[r] for r in f.results]


def single(o: Op) -> Function:
    """A function of one op."""
    params = [parameter(i, x.type) for i, x in enumerate(o.operands)]
    inner = o.with_operands(params)
    results = inner.results()
    gets = results if isinstance(o.type, Results) else ()
    return Function(o.name, params, [*params, inner, *gets], results)


def difference(o: Op, operands: Arrays, got: np.ndarray, want: np.ndarray) -> str:
    """How `got` differs from `want` beyond what `o` may, or "" if it does not."""
    ok = _agrees(o, operands, got, want)
    return "" if ok.all() else compare.difference(got, want, ok)


def _agrees(o: Op, operands: Arrays, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if from_numpy(want.dtype).kind in "biu":
        return compare.equal(got, want)
    if o.kind.name in COMBINING:
        body = o.attrs.get("body")
        if body is not None and sole_op(body) in ("maximum", "minimum"):
            return compare.identical(got, want)
        return compare.close(got, want, ULPS, _loose(operands, want))
    if want.dtype.kind == "c":
        with np.errstate(all="ignore"):
            unit = np.spacing(np.maximum(np.abs(np.real(want)), np.abs(np.imag(want)))).astype(np.float64)
            if o.kind.name == "power":  # exp(y log(x)): the exponent's rounding counts as much as the exponent
                x, y = (np.asarray(a, np.complex128) for a in operands)
                unit = unit * (1.0 + np.abs(y * np.log(x)))
        return compare.close(got, want, ULPS, ULPS * np.nan_to_num(unit, nan=0.0, posinf=0.0))
    ops = [x for f in _functions(o) for x in f.ops] or [o]
    exact = all(WORK.get(x.kind.name, 1.0) < EXPENSIVE and x.kind.name not in COMBINING for x in ops)
    return compare.identical(got, want) if exact else compare.close(got, want, ULPS)


def _loose(operands: Arrays, want: np.ndarray) -> float:
    """The rounding of sums of as many terms as there are operand elements for each result."""
    sizes = [compare.magnitudes(np.asarray(x)) for x in operands]
    largest = max([1.0, *(float(np.max(s[np.isfinite(s)], initial=0.0)) for s in sizes)])
    terms = max(sum(s.size for s in sizes) / max(want.size, 1), 1.0)
    return SUM_FACTOR * terms * compare.epsilon(from_numpy(want.dtype)) * largest**2


def describe(o: Op, found: str) -> str:
    """An op, where it came from, and what differs."""
    where = f" at {o.loc}" if o.loc is not None and str(o.loc) else ""
    return f"{o.kind.full_name} -> {o.type!r}{where}: {found}"


def _functions(o: Op) -> list[Function]:
    """The regions of an op."""
    values = [v for a in o.attrs.values() for v in (a if isinstance(a, tuple) else (a,))]
    return [v for v in values if isinstance(v, Function)]
