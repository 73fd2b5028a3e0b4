"""Making a failing program small, and finding the pass that makes it fail. Imports the pipeline, lazily.

A failure is a predicate on a program and its arrays. Ops are replaced by parameters that hold the values which the
interpreter computes for them, by zeros, or by one of their operands; control flow by what it runs; results go. What
still fails is kept, until nothing smaller does. Shapes and element types stay as they are.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, parameter, topological
from hilo.ir.op import GET, PARAMETER, Array, Op
from hilo.ir.quantized import any_quantized, stored
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.options import Options
from hilo.rewrite.bodies import instantiate
from hilo.rewrite.regions import regions, with_regions
from hilo.testing.agree import WAYS, agree

Arrays = list[np.ndarray]
Fails = Callable[[Module, Arrays], bool]
PATIENCE: Final = 20.0  # seconds for one try: a loop may have lost its end
_CONTROL: Final = ("stablehlo.if", "stablehlo.case", "stablehlo.while")


def failing_way(module: Module, arrays: Sequence[Any], entry: str = "main", ways: Iterable[str] = WAYS
                ) -> tuple[str, str]:  # fmt: skip
    """The first way to run a program that does not agree with the interpreter, and what it says; ("", "") if none."""
    found = agree(module, arrays, entry=entry, ways=ways)
    return (found.partition(": ")[0], found) if found else ("", "")


def fails_in(way: str, found: str, entry: str = "main", options: Options | None = None) -> Fails:
    """The predicate "this way still gives wrong results" or, where `found` tells of an error, "still raises one"."""
    error = found.startswith(f"{way}: error: ")
    ways = ["native", way] if way == "check" else [way]  # a smaller program may be one that `native` can judge

    def fails(module: Module, arrays: Arrays) -> bool:
        again = agree(module, arrays, entry=entry, ways=ways, options=options)
        return again is not None and again.partition(": ")[2].startswith("error: ") == error

    return fails


def raises(text: str, entry: str = "main", options: Options | None = None) -> Fails:
    """The predicate "to compile and run the program raises an error that holds `text`"."""

    def fails(module: Module, arrays: Arrays) -> bool:
        from hilo.pipeline import compile_module

        try:
            compile_module(module, entry=entry, options=options)(*arrays)
        except Exception as e:
            return text in f"{type(e).__name__}: {e}"
        return False

    return fails


def reduce(module: Module, arrays: Sequence[Any], fails: Fails, *, entry: str = "main", seconds: float = 60.0
           ) -> tuple[Module, Arrays]:  # fmt: skip
    """A smaller program, and its arrays, for which `fails` still holds.

    It has one function, `entry`, where that fails alone (calls inlined). Stops after `seconds`, with the smallest so
    far. Raises `Error` if the program does not fail to begin with. `fails` may raise: that counts as not failing.
    """
    from hilo.passes.inline import inline

    start = list(map(np.asarray, arrays))
    reducer = _Reducer(module, entry, fails, time.monotonic() + seconds)
    if not reducer.holds(module, start):
        raise Error("the program does not fail as given: there is nothing to reduce")
    reducer.arrays, reducer.function = start, module[entry]
    try:
        flat = inline(module, entry)
    except Error:
        return module, start
    if not reducer.accept(flat, start, alone=True):
        reducer.accept(flat, start)
    reducer.run()
    return reducer.module(reducer.function), reducer.arrays


class _Reducer:
    """The smallest failing function so far, and attempts to make it smaller."""

    def __init__(self, module: Module, entry: str, fails: Fails, end: float) -> None:
        self.whole = module
        self.entry = entry
        self.fails = fails
        self.end = end
        self.function = module[entry]
        self.arrays: Arrays = []

    def module(self, f: Function) -> Module:
        return self.whole.replace({**self.whole.functions, self.entry: f})

    def holds(self, module: Module, arrays: Arrays) -> bool:
        if time.monotonic() > self.end:
            return False
        try:
            with limited(PATIENCE):
                return self.fails(module, arrays)
        except Exception:  # not the failure that is looked for
            return False

    def accept(self, f: Function, arrays: Arrays, alone: bool = False) -> bool:
        """Go on with `f` if it fails."""
        whole = self.whole
        if alone:
            self.whole = Module({}, name=whole.name)
        if self.holds(self.module(f), arrays):
            self.function, self.arrays = f, arrays
            return True
        self.whole = whole
        return False

    def run(self) -> None:
        steps = (self.results, self.operands, self.to_parameters, self.control, self.to_operands, self.to_zeros,
                 self.bodies, self.unused)  # fmt: skip
        changed = True
        while changed and time.monotonic() < self.end:
            changed = False
            for step in steps:
                changed |= step()

    # ---- steps: each gives whether it made the program smaller
    def results(self) -> bool:
        """Leave results out."""
        keep = list(range(len(self.function.results)))

        def without(chunk: Sequence[int]) -> bool:
            rest = [k for k in keep if k not in chunk]
            results = [self.function.results[k] for k in rest]
            if not rest or not self.accept(*rebuilt(self.function, self.arrays, {}, {}, results)):
                return False
            keep[:] = range(len(rest))
            return True

        return _in_chunks(lambda: list(keep), without)

    def operands(self) -> bool:
        """Give operands of a result in its place."""
        for k, r in enumerate(self.function.results):
            source = r.operands[0] if r.kind is GET else r
            for x in source.operands:
                results = [*self.function.results[:k], x, *self.function.results[k + 1 :]]
                if _is_computed(x) and self.accept(*rebuilt(self.function, self.arrays, {}, {}, results)):
                    return True
        return False

    def to_parameters(self) -> bool:
        """Make parameters of ops: what leads to them goes."""

        def candidates() -> list[Op]:
            return [o for o in self.function.ops if _is_computed(o)]

        def replace(chunk: Sequence[Op]) -> bool:
            values = self.values(chunk)
            return self.accept(*rebuilt(self.function, self.arrays, {}, dict(zip(chunk, values, strict=True))))

        return _in_chunks(candidates, replace)

    def control(self) -> bool:
        """Put what an op of control flow runs (of a loop: one turn) in its place."""
        changed = False
        for o in [o for o in self.function.ops if o.kind.full_name in _CONTROL]:
            for body in regions(o):
                operands = o.operands[len(o.operands) - len(body.params) :]
                if len(body.results) != len(o.results()) or body is o.attrs.get("cond") or o not in self.function.ops:
                    continue
                _, results = instantiate(body, operands)
                gets = {g: results[g.attrs["index"]] for g in self.function.ops if g.operands == (o,) and g.kind is GET}
                if self.accept(*rebuilt(self.function, self.arrays, gets or {o: results[0]}, {})):
                    changed = True
                    break
        return changed

    def to_operands(self) -> bool:
        """Put an operand of the same type in the place of an op."""
        return self.one_by_one(lambda o: (x for x in o.operands if x.type is o.type))

    def to_zeros(self) -> bool:
        """Put zeros in the place of ops and parameters."""
        return self.one_by_one(_zeros, parameters=True)

    def one_by_one(self, others: Callable[[Op], Iterable[Op]], parameters: bool = False) -> bool:
        changed = False
        for o in reversed(self.function.ops):
            if o in self.function.ops and (_is_computed(o) or (parameters and o.kind is PARAMETER)):
                changed |= any(self.accept(*rebuilt(self.function, self.arrays, {o: x}, {})) for x in others(o))
        return changed

    def bodies(self) -> bool:
        """Make regions smaller."""
        for at, o in enumerate(self.function.ops):
            for old in _bodies(o):
                for new in smaller(old):
                    changed = with_regions(o, lambda f, old=old, new=new: new if f is old else f)
                    ops = list(self.function.ops)
                    ops[at] = changed
                    f = _rewired(self.function, {o: changed}, ops)
                    if self.accept(f, self.arrays):
                        return True
        return False

    def unused(self) -> bool:
        """Dead code, with results and captures of control flow that nothing reads."""
        from hilo.passes.dce import dce

        f, arrays = rebuilt(dce(self.function), self.arrays, {}, {})
        return len(f.ops) < len(self.function.ops) and self.accept(f, arrays)

    def values(self, ops: Sequence[Op]) -> list[Any]:
        """What the interpreter computes for these ops; zeros where it cannot."""
        try:
            with limited(PATIENCE):
                f = self.function
                return run(f.replace(ops=topological(ops, f.params), results=ops), self.arrays, self.module(f))
        except Exception:
            sizes = [[n if isinstance(n, int) else 1 for n in o.shape] for o in ops]
            return [np.zeros(n, stored(o.tensor).dtype.np) for o, n in zip(ops, sizes, strict=True)]


def smaller(f: Function) -> Iterator[Function]:
    """Regions of the same type as `f` with one op less, or with a smaller region in one op."""
    for o in reversed(f.ops):
        if _is_computed(o):
            same = [x for x in (*o.operands, *f.params) if x.type is o.type]
            for x in dict.fromkeys([*same, *_zeros(o)]):
                rest = [p for p in f.ops if p is not o and p.kind is not PARAMETER]
                yield _rewired(f, {o: x}, [*f.params, *([] if x in f.ops else [x]), *rest])
        for old in _bodies(o):
            for new in smaller(old):
                changed = with_regions(o, lambda g, old=old, new=new: new if g is old else g)
                yield _rewired(f, {o: changed}, [changed if p is o else p for p in f.ops])


def _bodies(o: Op) -> Iterator[Function]:
    """The regions of an op that may be any program: what is started asynchronously is one op."""
    return regions(o) if o.kind.full_name != "stablehlo.async_start" else iter(())


def rebuilt(f: Function, arrays: Sequence[Any], swaps: Mapping[Op, Op], given: Mapping[Op, Any],
            results: Sequence[Op] | None = None) -> tuple[Function, Arrays]:  # fmt: skip
    """`f` with ops replaced by others (`swaps`) or by new parameters with these arrays (`given`), with its arrays:
    without dead ops, and without parameters that nothing reads."""
    new: dict[Op, Op] = {o: parameter(0, o.type, o.loc) for o in given}
    values = dict(zip(f.params, map(np.asarray, arrays), strict=True))
    values |= {new[o]: np.asarray(a) for o, a in given.items()}
    g = _rewired(f.replace(results=f.results if results is None else results), {**swaps, **new}, None)
    needed = set(g.ops)
    params = [p for p in values if p in needed]
    numbered: dict[Op, Op] = {p: parameter(i, p.type, p.loc) for i, p in enumerate(params)}
    h = _rewired(g, numbered, None)
    kept = list(numbered.values())
    return Function(f.name, kept, topological(h.results, kept), h.results, loc=f.loc), [values[p] for p in params]


def _rewired(f: Function, swaps: Mapping[Op, Op], ops: Iterable[Op] | None) -> Function:
    """`f` with the users of some ops reading others; `ops`: where those that are new stand (None: only what results
    need is kept)."""
    new: dict[Op, Op] = {}
    roots = [swaps.get(r, r) for r in f.results]
    order = _needed(roots, swaps) if ops is None else list(ops)
    for o in order:
        operands = [new.get(swaps.get(x, x), swaps.get(x, x)) for x in o.operands]
        new[o] = o if all(a is b for a, b in zip(operands, o.operands, strict=True)) else o.with_operands(operands)
    return Function(f.name, f.params, [new[o] for o in order], [new.get(r, r) for r in roots], loc=f.loc)


def _needed(roots: Iterable[Op], swaps: Mapping[Op, Op]) -> list[Op]:
    """All ops that `roots` need when `swaps` are read for what they replace, operands first."""
    order: dict[Op, None] = {}
    stack = [(r, False) for r in roots]
    while stack:
        o, ready = stack.pop()
        if ready:
            order[o] = None
        elif o not in order:
            stack.append((o, True))
            stack += [(swaps.get(x, x), False) for x in o.operands if swaps.get(x, x) not in order]
    return list(order)


def _is_computed(o: Op) -> bool:
    return isinstance(o.type, TensorType) and o.kind is not PARAMETER and o.kind.name != "constant"


def _zeros(o: Op) -> list[Op]:
    t = o.type
    if not isinstance(t, TensorType) or not t.is_static or any_quantized((t,)):
        return []
    return [lookup("stablehlo.constant")(value=Array(np.zeros((), t.dtype.np), t.shape))]


def _in_chunks(candidates: Callable[[], list[Any]], attempt: Callable[[Sequence[Any]], bool]) -> bool:
    """Delta debugging: `attempt` on halves of the candidates, quarters, ... single ones, until none succeeds."""
    changed = False
    size = len(candidates())
    while size:
        items, at = candidates(), 0
        size = min(size, len(items))
        while size and at < len(items):
            if attempt(items[at : at + size]):
                changed = True
                items = candidates()
            else:
                at += size
        size //= 2
    return changed


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in Python code that takes longer, where that can be done (in the main thread)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError(f"longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
