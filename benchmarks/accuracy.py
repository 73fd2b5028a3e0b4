"""Errors of hilo and XLA against the float64 interpreter, module by module: `python -m benchmarks accuracy`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.modules import Case
from benchmarks.peers import PEERS

FLOOR = 1e-6  # of the largest magnitude of a result


@dataclass(frozen=True)
class Accuracy:
    """Largest error over all results, as a part of each result's largest magnitude; `exact` speaks of the integers."""

    name: str
    hilo: float
    xla: float | None
    exact: bool

    @property
    def ok(self) -> bool:
        bound = FLOOR if self.xla is None else 2 * self.xla + FLOOR
        return self.exact and self.hilo <= bound


def measure(case: Case, threads: int, with_xla: bool = True) -> Accuracy:
    """Run a case three ways on the same inputs."""
    import hilo
    from hilo.testing.widen import wide_array, widen

    arrays = case.inputs()
    module = hilo.parse(case.text)
    want = hilo.interpret(widen(module), *map(wide_array, arrays))
    got = hilo.compile(module, threads=threads)(*arrays)
    theirs = None
    if with_xla:
        call, read = PEERS["xla"](case, threads)(arrays)
        call()
        theirs = read()
    exact, ours, xla = True, 0.0, 0.0
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.dtype.kind in "biu":
            exact &= bool(np.array_equal(g, w))
            continue
        ours = max(ours, relative_error(g, w))
        if theirs is not None:
            xla = max(xla, relative_error(theirs[k], w))
    return Accuracy(case.name, ours, xla if theirs is not None else None, exact)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error as a part of the largest finite magnitude; infinite where only one is NaN or inf."""
    if not want.size:
        return 0.0
    g = got.astype(want.dtype)
    same = (g == want) | ((g != g) & (want != want))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(g - want))
    error = np.where(np.isnan(error), np.inf, error)
    scale = np.abs(want[np.isfinite(want)]).max(initial=0) or 1.0
    return float(error.max() / scale)
