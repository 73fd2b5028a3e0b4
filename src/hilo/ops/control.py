"""Control flow: while, if, case. Regions are closed; what they capture comes in as trailing operands. Imports ir.

The value of several results is a `Results`; an op with exactly one result has that result's type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import f32, i1, i32
from hilo.ir.interpret import prepared, run
from hilo.ir.module import Function, region
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import gives, one_or_results, one_or_tuple, takes, tensor
from hilo.ops.constant import constant
from hilo.ops.sharding import passed_through, unsharded


def merged(a: Type, b: Type) -> Type:
    """Of two compatible types the one that promises less: symbolic where they differ."""
    if a is b or not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a
    return a.with_shape(
        n if isinstance(n, int) and n == m else (m if isinstance(n, int) else n)
        for n, m in zip(a.shape, b.shape, strict=True)
    )


_F32S = (TensorType(f32, (2,)), TensorType(f32, (2,)))


def _no() -> Op:
    return constant(value=Array(np.False_))


@op("while")
class while_:
    """Repeat `body` on the carried values for as long as `cond` gives true; the results are the last carried values.

    Operands: the carried values, then what the regions capture (which does not change). `cond` and `body` take all
    operands; `cond` gives a rank-0 i1, `body` the carried values. Spec: while.
    """

    @staticmethod
    def infer(*types: Type, cond: Function, body: Function) -> Type:
        takes(cond, types, "C1", "cond")
        gives(cond, [TensorType(i1)], "C1", "cond")
        takes(body, types, "C2", "body")
        n = len(body.results)
        require(n <= len(types), "C2", "body returns {n} values, but only {m} are carried", n=n, m=len(types))
        gives(body, types[:n], "C2", "body")
        return one_or_results(types[:n])

    @staticmethod
    def evaluate(*arrays: Any, cond: Function, body: Function) -> Any:
        n = len(body.results)
        carried, captured = list(arrays[:n]), arrays[n:]
        test, step = prepared(cond), prepared(body)
        while test([*carried, *captured])[0]:
            carried = step([*carried, *captured])
        return one_or_tuple(carried)

    sharding = passed_through
    examples = lambda: [
        (
            (TensorType(i1), TensorType(f32, (2,)), TensorType(f32, (2,))),
            {
                "cond": region([TensorType(i1), *_F32S], lambda more, x, y: more),
                "body": region([TensorType(i1), *_F32S], lambda more, x, y: (_no(), y, x)),
            },
        ),
        (
            (TensorType(i1), TensorType(f32, (2,)), TensorType(f32, (2,))),
            {  # y is captured
                "cond": region([TensorType(i1), *_F32S], lambda more, x, y: more),
                "body": region([TensorType(i1), *_F32S], lambda more, x, y: (_no(), y)),
            },
        ),
    ]


@op("if")
class if_:
    """The results of `true_branch` if the predicate (rank-0 i1) holds, else of `false_branch`.

    Operands: the predicate, then what the branches capture; both branches take all captures. Spec: if.
    """

    @staticmethod
    def infer(pred: Type, *captures: Type, true_branch: Function, false_branch: Function) -> Type:
        p = tensor(pred)
        require(p.dtype is i1 and p.rank == 0, "I1", "the predicate must be a rank-0 i1, not {p}", p=p)
        takes(true_branch, captures, "C1", "true_branch")
        takes(false_branch, captures, "C1", "false_branch")
        gives(false_branch, true_branch.result_types, "C2", "false_branch")
        pairs = zip(true_branch.result_types, false_branch.result_types, strict=True)
        return one_or_results([merged(a, b) for a, b in pairs])

    @staticmethod
    def evaluate(pred: np.ndarray, *captures: Any, true_branch: Function, false_branch: Function) -> Any:
        return one_or_tuple(run(true_branch if pred else false_branch, captures))

    sharding = unsharded
    examples = lambda: [
        (
            (TensorType(i1), *_F32S),
            {
                "true_branch": region(_F32S, lambda x, y: (x, y)),
                "false_branch": region(_F32S, lambda x, y: (y, x)),
            },
        ),
        ((TensorType(i1),), {"true_branch": region([], _no), "false_branch": region([], _no)}),
        ((TensorType(i1),), {"true_branch": region([], list), "false_branch": region([], list)}),
    ]


@op("case")
class case:
    """The results of `branches[index]`, or of the last branch if the index (rank-0 i32) is out of range.

    Operands: the index, then what the branches capture; every branch takes all captures. Spec: case.
    """

    @staticmethod
    def infer(index: Type, *captures: Type, branches: tuple[Function, ...]) -> Type:
        t = tensor(index)
        require(t.dtype is i32 and t.rank == 0, "I1", "the index must be a rank-0 i32, not {t}", t=t)
        require(len(branches) > 0, "C1", "there is no branch")
        results = branches[0].result_types
        for k, branch in enumerate(branches):
            takes(branch, captures, "C2", f"branch {k}")
            gives(branch, results, "C3", f"branch {k}")
            results = tuple(map(merged, results, branch.result_types))
        return one_or_results(results)

    @staticmethod
    def evaluate(index: np.ndarray, *captures: Any, branches: tuple[Function, ...]) -> Any:
        k = int(index)
        return one_or_tuple(run(branches[k if 0 <= k < len(branches) else -1], captures))

    sharding = unsharded
    examples = lambda: [
        ((TensorType(i32), *_F32S), {"branches": (region(_F32S, lambda x, y: x), region(_F32S, lambda x, y: y))}),
        ((TensorType(i32),), {"branches": (region([], _no),)}),
    ]
