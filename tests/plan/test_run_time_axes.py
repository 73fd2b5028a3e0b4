"""Every axis of the operands of every op, in turn of a size that is known only at run time.

What an op's examples say of static sizes must hold of run-time ones: compiled with `?` in the place of an axis (and of
the axes that go along with it by the op's sharding rule), the results are those of the interpreter.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.ir.module import Function, Module, parameter, topological
from hilo.ir.op import Attrs, Op, OpDef
from hilo.ir.types import UNKNOWN, Results, TensorType
from hilo.testing.pieces import INTERNAL, all_ops

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from registry_runs import Batch  # pyright: ignore[reportMissingImports]

Axes = list[tuple[int, int]]  # (operand, axis)
OPS = {d.full_name: d for d in all_ops()}
# These have no sizes of their own, or take them as operands; the last two are refused.
OTHERS = ("async_start", "composite", "call", "custom_call", "reshape", "rng",
          "rng_bit_generator", "broadcast_in_dim", "set_dimension_size", "scan", "ragged_dot")  # fmt: skip
NAMES = [n for n, d in OPS.items() if d.scalar is None and n not in INTERNAL and d.dialect in ("stablehlo", "chlo")
         and not d.name.startswith(("broadcast_", "dynamic_", "real_dynamic_")) and d.name not in OTHERS]  # fmt: skip


def variants(batch: Batch) -> list[list[Axes]]:
    """For each axis of an operand: it, with what its letter or its size says of others; the likeliest first."""
    e = batch.examples[0]
    types = [p.tensor for p in e.params]
    rule: Any = e.kind.sharding
    operands = [x.type for x in e.op.operands]
    letters = rule if isinstance(rule, str) else rule(*operands, out=e.op.type, **e.op.attrs.own())
    ins = letters.partition("->")[0].split(",")
    found = []
    for i, t in enumerate(types):
        for d, n in enumerate(t.shape):
            alike = [(j, k) for j, u in enumerate(types) for k, m in enumerate(u.shape) if m == n]
            ways = [[(j, k) for j, k in alike if len(ins) == len(types) and ins[j][k : k + 1] == ins[i][d : d + 1]],
                    [(j, k) for j, k in alike if k == d or j == i], [(j, k) for j, k in alike if k == d], alike,
                    [(i, d)]]  # fmt: skip
            found.append([w for w in ways if (i, d) in w])
    return found


def opened(batch: Batch, axes: Axes) -> Module:
    """The program of the example with these axes of parameters unknown, and all of a declared result's."""
    e = batch.examples[0]
    new: dict[Op, Op] = {}
    for i, p in enumerate(e.params):
        shape = [UNKNOWN if (i, d) in axes else n for d, n in enumerate(p.shape)]
        new[p] = parameter(i, p.tensor.with_shape(shape))
    params = list(new.values())
    for o in topological([e.op, *e.results]):
        if o in new:
            continue
        attrs = o.attrs
        if o.kind.typed and "type" in attrs:
            attrs = Attrs(attrs, type=_open(o.type))
        new[o] = o.kind.make([new[x] for x in o.operands], attrs)
    return Module({"main": Function("main", params, new.values(), [new[r] for r in e.results]), **batch.functions})


def _open(t: Any) -> Any:
    if isinstance(t, Results):
        return Results(map(_open, t.types))
    return t.with_shape([UNKNOWN] * t.rank) if isinstance(t, TensorType) else t


def outcome(batch: Batch, axes: Axes, inputs: list[np.ndarray], want: list[np.ndarray]) -> str:
    """ "", "fixed" if the op fixes the size, or what is wrong."""
    try:
        f = hilo.compile(opened(batch, axes), threads=1)
        wrong = batch.differences(inputs, f(*inputs), want)
    except Error as e:
        return str(e)
    if wrong:
        return wrong[0]
    return "" if any(isinstance(t, TensorType) and not t.is_static for t in f.arg_types) else "fixed"


@pytest.mark.parametrize("name", NAMES)
def test_each_axis_at_run_time(name: str) -> None:
    d: OpDef = OPS[name]
    examples = [(t, a) for t, a in d.examples if t and all(isinstance(x, TensorType) for x in t)]
    for types, attrs in examples[:3]:
        batch = Batch([(d, types, attrs)])
        inputs = batch.inputs(0)
        want = batch.expected(inputs)
        done: list[Axes] = []
        for ways in variants(batch):
            if any(w in done for w in ways):
                continue
            problems = []
            for axes in ways:
                problems.append(outcome(batch, axes, inputs, want))
                if not problems[-1]:
                    done.append(axes)
                    break
            assert "" in problems or "fixed" in problems, (types, ways, problems)
