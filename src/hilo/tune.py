"""`hilo tune`: other values of the kernels' knobs, measured in the program itself. Imports pipeline and below.

A variant of the program gives one knob of every kernel another value, and runs in turns with the best program so far;
each step takes its own time (plan/profile.py), so that one variant tries something in all kernels at once, where they
are used. A kernel keeps what made it faster, if it alone gives the results that it should. Values go to
`runtime.tuned`, and later compilations use them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.example_arrays import random_array
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType
from hilo.kernels import pins
from hilo.options import Options
from hilo.pipeline import compile_function, compile_module
from hilo.runtime.tuned import Tuned

if TYPE_CHECKING:
    from hilo.plan.profile import StepTime
    from hilo.runtime.executable import Executable

LEAST_GAIN: Final = 0.03  # of a kernel's time: less is no gain
LEAST_SHARE: Final = 0.002  # of the program's time that a kernel must have to be worth trying
ROUNDS: Final = (5, 200)  # calls of each of two programs, at least and at most
SEARCH: Final = 0.8  # of the time, before what was found is confirmed
ROUND_SECONDS: Final = 0.6  # for the calls of a variant
TOLERANCE: Final = 1e-4  # of the largest magnitude: what other orders of summing may change in f32
_EPS: Final = {"f64": 1e-12, "c128": 1e-12, "bf16": 0.05, "f16": 0.02}

Values = dict[str, str]  # of knobs


@dataclass
class Kernel:
    """One kernel of the program, which several steps may run. `times` are those of the best values so far."""

    key: str
    name: str
    op: str
    choices: tuple[pins.Choice, ...]
    before: float = 0.0  # seconds of one call of the program, with the strategies' own values
    after: float = 0.0
    values: Values = field(default_factory=dict)
    tried: int = 0
    source: Op | None = None

    @property
    def gain(self) -> float:
        return self.before / self.after if self.after else 1.0


@dataclass
class Report:
    """What tuning found: kernels (most gain first), variants that were tried and refused, seconds that it took."""

    kernels: list[Kernel]
    variants: int
    refused: list[str]
    seconds: float
    finished: bool

    @property
    def before(self) -> float:
        return sum(k.before for k in self.kernels)

    @property
    def after(self) -> float:
        return sum(k.after for k in self.kernels)


def tune(module: Module, args: Sequence[Any], store: Tuned | None, *, entry: str = "main", threads: int | None = None,
         constants: Mapping[int, Any] | None = None, options: Options, seconds: float = 30.0, same_bits: bool = False,
         progress: Callable[[float, str], None] = lambda done, what: None) -> Report:  # fmt: skip
    """Search for at most about `seconds` (compiling counts); keep what was found in `store`.

    `same_bits`: only knobs whose values never change a bit of the results. Otherwise results are compared within the
    bound that another order of summing allows. `constants`: as of `hilo.compile`. `progress(part done, what is tried)`.
    """
    return _Tuner(module, args, store, entry, threads, constants or {}, options, seconds, same_bits, progress).run()


class _Tuner:
    def __init__(self, module: Module, args: Sequence[Any], store: Tuned | None, entry: str, threads: int | None,
                 constants: Mapping[int, Any], options: Options, seconds: float, same_bits: bool,
                 progress: Callable[[float, str], None]) -> None:  # fmt: skip
        self.module, self.args, self.store = module, args, store
        self.constants = constants
        self.entry, self.threads, self.same_bits, self.progress = entry, threads, same_bits, progress
        self.options = options.replace(profile=True, tuned=False, time=False, dump="", print=())
        self.start = time.perf_counter()
        self.seconds = seconds
        self.kernels: dict[str, Kernel] = {}
        self.keys: dict[Op, str] = {}
        self.refused: list[str] = []

    def run(self) -> Report:
        base = self.compile({})
        self.best: tuple[Executable, dict[str, Values]] = base, {}
        for t in self.steps(base, np.minimum(self.counted(base), self.counted(base))):
            k = self.kernels.setdefault(self.key(t), Kernel(self.key(t), t.name, t.op, t.choices))
            k.before = k.after = k.before + t.seconds
            k.source = t.source
        variants, finished = 0, True
        for knob, position in self.plan():
            if self.spent() >= self.seconds * SEARCH:
                finished = False
                break
            self.progress(min(1.0, self.spent() / self.seconds), knob)
            variants += self.attempt(knob, position)
        if any(k.values for k in self.kernels.values()):
            self.confirm(base)
        if self.store is not None:
            for k in self.kernels.values():
                if k.values or self.store.get(k.key):
                    self.store.put(k.key, k.values)
        self.progress(1.0, "done")
        kernels = sorted(self.kernels.values(), key=lambda k: k.after - k.before)
        return Report(kernels, variants, self.refused, self.spent(), finished)

    def spent(self) -> float:
        return time.perf_counter() - self.start

    def plan(self) -> Iterator[tuple[str, int]]:
        """Which value of which knob is tried next: first ones first, for all kernels at once."""
        names: dict[str, int] = {}
        for k in self.worthwhile():
            for c in k.choices:
                if not self.same_bits or pins.KNOBS[pins.general(c.knob)].exact:
                    names[c.knob] = max(names.get(c.knob, 0), len(c.among))
        for position in range(max(names.values(), default=0)):
            for knob, count in names.items():
                if position < count:
                    yield knob, position

    def worthwhile(self) -> list[Kernel]:
        total = sum(k.after for k in self.kernels.values())
        return [k for k in self.kernels.values() if k.choices and k.after >= LEAST_SHARE * total]

    def attempt(self, knob: str, position: int) -> bool:
        """Try value number `position` of a knob in every kernel that has it."""
        tried: dict[str, Values] = {}
        for k in self.worthwhile():
            for c in k.choices:
                if c.knob == knob and position < len(c.among):
                    tried[k.key] = {**k.values, knob: pins.shown(c.among[position])}
        if not tried:
            return False
        best = self.found()
        try:
            other = self.compile({**best, **tried})
        except Error as e:
            self.refused.append(f"{knob}: {e.message}")
            return False
        if self.best[1] != best:
            self.best = self.compile(best), best
        ours, theirs = self.race(self.best[0], other, ROUND_SECONDS)
        for key, values in tried.items():
            k = self.kernels[key]
            k.tried += 1
            if key in theirs and theirs[key] < ours[key] * (1 - LEAST_GAIN):
                k.values, k.after = values, theirs[key] * k.after / ours[key]
        return True

    def found(self) -> dict[str, Values]:
        return {k.key: k.values for k in self.kernels.values() if k.values}

    def confirm(self, base: Executable) -> None:
        """Once more, with all that was found together: what is wrong, or no gain, is dropped."""
        for k in self.kernels.values():
            if k.values and not self.is_right(k):
                self.refused.append(f"{k.name} {k.values}: the results differ by more than roundings")
                k.values = {}
        found = self.found()
        ours, theirs = self.race(base, self.compile(found), 3 * ROUND_SECONDS)
        for k in self.kernels.values():
            k.before = k.after = ours.get(k.key, k.before)
            if k.key in found and theirs.get(k.key, k.before) < k.before * (1 - LEAST_GAIN):
                k.after = theirs[k.key]
            else:
                k.values = {}

    def is_right(self, k: Kernel) -> bool:
        """Whether a kernel alone, on random arrays, gives with its new values what it gives with its own."""
        assert k.source is not None
        f = alone(k.source)
        rng = np.random.default_rng(0)
        arrays = [random_array(t, rng) for t in f.param_types if isinstance(t, TensorType)]
        results = []
        for values in ({}, k.values):
            with pins.measured(lambda op, values=values: values):
                options = self.options.replace(profile=False)
                results.append(compile_function(f, threads=self.threads, options=options)(*arrays))
        return all(close(a, b, self.same_bits) for a, b in zip(*results, strict=True))

    def race(self, a: Executable, b: Executable, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
        """Seconds of each kernel in one call of two programs that run in turns: the least that each step took."""
        least, most = ROUNDS
        programs = (a, b)
        for f in programs:
            f(*self.args)
        end = time.perf_counter() + seconds
        best = [self.counted(f) for f in programs]
        for n in range(1, most):
            if n >= least and time.perf_counter() > end:
                break
            best = [np.minimum(c, self.counted(f)) for c, f in zip(best, programs, strict=True)]
        first, second = (self.by_kernel(self.steps(f, c)) for f, c in zip(programs, best, strict=True))
        return first, second

    def steps(self, f: Executable, counters: np.ndarray) -> list[StepTime]:
        """The steps that are kernels, and ran."""
        return [t for t in f.profile(counters) if t.source is not None and t.runs]

    def counted(self, f: Executable) -> np.ndarray:
        f.take_counters()
        f(*self.args)
        return f.take_counters()

    def by_kernel(self, steps: Sequence[StepTime]) -> dict[str, float]:
        found: dict[str, float] = {}
        for t in steps:
            found[self.key(t)] = found.get(self.key(t), 0.0) + t.seconds
        return found

    def key(self, t: StepTime) -> str:
        assert t.source is not None
        key = self.keys.get(t.source)
        if key is None:
            key = self.keys[t.source] = pins.content(t.source)
        return key

    def compile(self, values: Mapping[str, Values]) -> Executable:
        with pins.measured(lambda op: values.get(pins.content(op), {}) if values else {}):
            return compile_module(self.module, entry=self.entry, threads=self.threads, constants=self.constants,
                                  options=self.options)  # fmt: skip


def alone(op: Op) -> Function:
    """A function of one op, of which constants among the operands stay constants."""
    params: dict[Op, Op] = {}
    constants: list[Op] = []
    for o in dict.fromkeys(op.operands):
        if o.kind.full_name == "stablehlo.constant":
            constants.append(o)
        else:
            params[o] = parameter(len(params), o.type, o.loc)
    inner = op.with_operands(params.get(o, o) for o in op.operands)
    results = inner.results()
    gets = results if isinstance(op.type, Results) else ()
    return Function("kernel", params.values(), [*params.values(), *constants, inner, *gets], results, loc=op.loc)


def close(want: np.ndarray, got: np.ndarray, same_bits: bool) -> bool:
    """Whether results agree: in every bit, or within the bound of another order of summing."""
    if want.tobytes() == got.tobytes():
        return True
    if same_bits or want.dtype.kind in "biu":
        return False
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = want.astype(wide), got.astype(wide)
    odd = ~np.isfinite(a)
    if not np.array_equal(a[odd], b[odd], equal_nan=True) or not np.isfinite(b[~odd]).all():
        return False
    bound = _EPS.get(_name(want.dtype), TOLERANCE) * max(float(np.abs(a[~odd]).max(initial=0.0)), 1e-30)
    return bool((np.abs(a[~odd] - b[~odd]) <= bound).all())


def _name(dtype: np.dtype) -> str:
    from hilo.ir.dtypes import from_numpy

    return from_numpy(dtype).name

