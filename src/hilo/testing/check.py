"""`hilo run --check`: native code beside the interpreter, with every fusion's results observable. Imports the
pipeline.

Each op of the fused function is judged by itself: the interpreter gets the operands that the native code really used,
so that differences do not add up on the way. Ops with exact semantics must agree in every bit; others within a bound
that grows with the number of terms that they sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import Results, TensorType
from hilo.options import Options
from hilo.testing import compare

ULPS = 4  # two functions of up to 2 ulp each
SUM_FACTOR = 4  # 4 * n * eps of the largest magnitude, for sums of n terms


def check_program(module: Module, arrays: Sequence[Any], *, entry: str = "main", target: str = "host",
                  threads: int | None = None, options: Options | None = None) -> str | None:  # fmt: skip
    """The first op whose native results differ from the interpreter's, where it is, and by how much; or None."""
    from hilo import pipeline

    options = Options.from_env() if options is None else options
    f = pipeline.optimize(module, entry, options)
    return check_function(f, arrays, target=target, threads=threads)


def check_function(
    f: Function, arrays: Sequence[Any], *, target: str = "host", threads: int | None = None
) -> str | None:
    """The same for a fused and scheduled function; a fusion that differs is looked into, op by op."""
    values = [o for o in f.ops if isinstance(o.type, TensorType) and o.kind is not PARAMETER]
    native = dict(zip(values, observe(f, values, arrays, target, threads), strict=True))
    native.update({p: np.asarray(a) for p, a in zip(f.params, arrays, strict=True)})
    for o in f.ops:
        if o.kind in (PARAMETER, GET) or any(x not in native for x in o.operands):
            continue
        outs = [g for g in f.ops if g.kind is GET and g.operands[0] is o] if isinstance(o.type, Results) else [o]
        if not outs or any(x not in native for x in outs):
            continue
        want = run(single(o), [native[x] for x in o.operands])
        for g in outs:
            w = want[g.attrs["index"]] if g.kind is GET else want[0]
            found = difference(o, native[g], w)
            if found:
                return _inside(o, [native[x] for x in o.operands], target, threads) or describe(o, found)
    return None


def observe(
    f: Function, values: Sequence[Op], arrays: Sequence[Any], target: str, threads: int | None
) -> list[np.ndarray]:
    """What native code computes for `values` of `f`."""
    from hilo import pipeline

    if not values:
        return []
    shown = f.replace(results=values)
    return pipeline.compile_function(shown, target=target, threads=threads)(*arrays)


def single(o: Op) -> Function:
    """A function of one op."""
    params = [parameter(i, x.type) for i, x in enumerate(o.operands)]
    inner = o.with_operands(params)
    results = inner.results()
    gets = results if isinstance(o.type, Results) else ()
    return Function(o.name, params, [*params, inner, *gets], results)


def difference(o: Op, got: np.ndarray, want: np.ndarray) -> str:
    """How `got` differs from `want` beyond what `o` may, or "" if it does not."""
    if want.dtype.kind in "biu":
        ok = compare.equal(got, want)
    else:
        terms = sum(x.tensor.size for x in o.operands if isinstance(x.type, TensorType)) / max(want.size, 1)
        magnitude = np.max(np.abs(want[np.isfinite(want)].astype(np.complex128)), initial=0.0)
        slack = SUM_FACTOR * max(terms, 1.0) * compare.epsilon(o_dtype(want)) * magnitude
        ok = compare.close(got, want, ULPS, slack)
    return "" if ok.all() else compare.difference(got, want, ok)


def o_dtype(a: np.ndarray) -> Any:
    from hilo.ir.dtypes import from_numpy

    return from_numpy(a.dtype)


def describe(o: Op, found: str) -> str:
    """An op, where it came from, and what differs."""
    where = f" at {o.loc}" if o.loc is not None and str(o.loc) else ""
    return f"{o.kind.full_name} -> {o.type!r}{where}: {found}"


def _inside(o: Op, operands: list[np.ndarray], target: str, threads: int | None) -> str | None:
    """For a fusion: the op of its body that differs when each is a kernel of its own; None if none does then."""
    body = o.attrs.get("body")
    if o.kind.full_name != "hilo.fusion" or not isinstance(body, Function):
        return None
    return check_function(body, operands, target=target, threads=threads)
