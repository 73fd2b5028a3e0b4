"""Which pass, and which of its rules, makes a program fail. Imports the pipeline, lazily.

Optional passes are stopped after the first, the second ... (`Options.stop`): the first stop at which the program fails
names the pass. Of its rules those that fired are tried one by one on the program as it was before the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module
from hilo.options import Options
from hilo.testing import compare


@dataclass(frozen=True)
class Culprit:
    """What makes a program fail. `label`: the pass ("cse#2"), "" if none of the optional ones; `rules`: those whose
    results differ by themselves; `fired`: all that fired in the pass; `detail`: the first op that is wrong, if known.
    """

    label: str
    rules: tuple[str, ...] = ()
    fired: tuple[str, ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        if not self.label:
            text = "it fails without any optional pass: look at inline, legalize, schedule, kernels and code generation"
        else:
            text = f"it fails from pass {self.label} on"
            if self.rules:
                text += f"; wrong by itself: {', '.join(self.rules)}"
            elif self.fired:
                text += f"; rules that fired: {', '.join(self.fired)}"
        return text + (f"; {self.detail}" if self.detail else "")


def bisect(module: Module, arrays: Sequence[Any], fails: Callable[[Options], bool], *, entry: str = "main",
           options: Options | None = None) -> Culprit | None:  # fmt: skip
    """The pass that makes `fails(options)` hold; None if it does not hold with all passes.

    `fails` is asked with `options` (None: from the environment) and a `stop` at every pass in turn.
    """
    from hilo import pipeline
    from hilo.trace import Trace

    options = Options.from_env() if options is None else options
    if not fails(options):
        return None
    trace = Trace(options)
    with suppress(Exception):  # the states up to the pass that fails are there
        pipeline.optimize(module, entry, options, trace)
    before: Any = None
    for state in trace.states:
        required = state.name in pipeline.REQUIRED
        if state.name != "input" and (not required or before is None) and fails(options.replace(stop=state.label)):
            if required:
                return Culprit("", detail=_first_wrong(module, arrays, entry, options))
            wrong = _wrong_rules(before, state.rules, arrays, options)
            return Culprit(state.label, wrong, tuple(state.rules), _first_wrong(module, arrays, entry, options))
        if isinstance(state.program, Function):
            before = state.program
    return Culprit(_failed_pass(trace), detail=_first_wrong(module, arrays, entry, options))


def _failed_pass(trace: Any) -> str:
    """The pass after the last state, if the trace ended early."""
    from hilo import pipeline

    done = trace.states[-1].name if trace.states else "input"
    left = pipeline.PASSES[pipeline.PASSES.index(done) + 1 :] if done in pipeline.PASSES else ()
    return next((name for name in left if name not in pipeline.REQUIRED), "")


def _wrong_rules(f: Function | None, fired: dict[str, int], arrays: Sequence[Any], options: Options
                 ) -> tuple[str, ...]:  # fmt: skip
    """Which of the rules that fired change what the interpreter computes, each applied alone."""
    if f is None or not fired:
        return ()
    from hilo.passes.simplify import rules_for
    from hilo.rewrite import RuleSet, rewrite

    want = list(map(np.asarray, run(f, arrays)))
    found = []
    for rule in rules_for(options.fast_math, options.fold_elements):
        if repr(rule) not in fired:
            continue
        try:
            got = map(np.asarray, run(rewrite(f, RuleSet("one", [rule])), arrays))
            same = all(g.dtype == w.dtype and g.shape == w.shape and compare.identical(g, w).all()
                       for g, w in zip(got, want, strict=True))  # fmt: skip
        except Error:
            same = False
        if not same:
            found.append(repr(rule))
    return tuple(found)


def _first_wrong(module: Module, arrays: Sequence[Any], entry: str, options: Options) -> str:
    """The first op whose native result is wrong, as `check` tells; "" if there is none, or it cannot run."""
    from hilo.testing.check import check_program

    try:
        wrong = check_program(module, arrays, entry=entry, options=options)
    except Exception:
        return ""
    return f"first wrong op: {wrong}" if wrong else ""
