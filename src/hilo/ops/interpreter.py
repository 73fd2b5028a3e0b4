"""Ops of the dialect `interpreter`, which StableHLO's own tests use: run_parallel, print, probe. Imports ir."""

from __future__ import annotations

from itertools import islice
from typing import Any, NoReturn

import numpy as np

from hilo.errors import Error, Unsupported, require
from hilo.ir import probes
from hilo.ir.dtypes import f32
from hilo.ir.host import HostQueues
from hilo.ir.interpret import callee, run, running
from hilo.ir.module import Module
from hilo.ir.op import Op
from hilo.ir.parallel import interpret_grid
from hilo.ir.process import Grid, Process, current
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type, compatible, result_types
from hilo.ops.checks import one_or_tuple, tensor
from hilo.ops.sharding import passed_through, unsharded

_T = TensorType(f32, (2,))
Programs = tuple[tuple[str, ...], ...]


def _interpreted(*_: Op, **__: Any) -> NoReturn:
    raise Unsupported("only the interpreter runs ops of the dialect `interpreter`")


@op("run_parallel", dialect="interpreter", typed=True, effect=True)
class run_parallel:
    """Run a grid of processes, replicas by partitions, each with a function of the module.

    `programs` has a row of functions' names for each replica. Operands are the arguments of all processes, one process
    after the other, row by row; so are the results. `infeed` names functions that give one tensor each: the entries of
    the infeed, which all processes share. What a process sends to a channel of the host another one can receive.
    """

    attrs = {"infeed": None}

    @staticmethod
    def infer(*types: Type, programs: Programs, infeed: tuple[str, ...] | None, type: Type) -> Type:  # noqa: A002
        ok = isinstance(programs, tuple) and bool(programs) and all(isinstance(row, tuple) for row in programs)
        require(ok and programs[0], "", "`programs` must be rows of functions, not {p}", p=programs)
        n = len(programs[0])
        for row in programs:
            require(len(row) == n, "", "the rows of `programs` must all have {n} functions, not {m}", n=n, m=len(row))
            require(all(_is_name(f) for f in row), "", "`programs` must name functions, not {r}", r=row)
        ok = infeed is None or (isinstance(infeed, tuple) and bool(infeed) and all(map(_is_name, infeed)))
        require(ok, "", "`infeed` must name functions, not {i}; it may be left out", i=infeed)
        return type

    @staticmethod
    def evaluate(*values: Any, programs: Programs, infeed: tuple[str, ...] | None, type: Type) -> Any:  # noqa: A002
        queues = HostQueues(loopback=True)
        for name in infeed or ():
            queues.put_infeed(*run(callee(name), []))
        functions = [callee(name) for row in programs for name in row]
        wanted = sum(len(f.params) for f in functions)
        if wanted != len(values):
            raise Error(f"the programs take {wanted} arguments in all, not {len(values)}")
        rest = iter(values)
        inputs = [list(islice(rest, len(f.params))) for f in functions]
        found = interpret_grid(running(), Grid(len(programs), len(programs[0])), functions, inputs, queues)
        return one_or_tuple([r for results in found for r in results])

    expand = staticmethod(_interpreted)
    sharding = staticmethod(unsharded)
    examples = [((_T, _T), {"programs": (("f", "f"),), "type": Results([_T, _T])})]


def check_programs(module: Module, o: Op) -> list[str]:
    """The functions that a run_parallel of `module` names; `VerifyError` if one is missing, or does not fit."""
    try:
        return _check_programs(module, o)
    except Error as e:
        raise e.at(o.loc, o.kind.full_name) from None


def _check_programs(module: Module, o: Op) -> list[str]:
    infeed = o.attrs.get("infeed") or ()
    programs = [name for row in o.attrs["programs"] for name in row]
    for name in (*programs, *infeed):
        require(name in module.functions, "", "function @{n} is not defined", n=name)
    functions = [module[name] for name in programs]
    for what, got, want in (
        ("arguments", tuple(x.type for x in o.operands), [t for f in functions for t in f.param_types]),
        ("results", result_types(o.type), [t for f in functions for t in f.result_types]),
    ):
        require(len(got) == len(want), "", "there are {n} {w}, but the programs have {m} in all", n=len(got), w=what,
                m=len(want))  # fmt: skip
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            require(compatible(a, b), "", "number {i} of the {w} is {a}, but {b} in its program", i=i, w=what, a=a, b=b)
    for name in infeed:
        f = module[name]
        ok = not f.params and len(f.results) == 1 and isinstance(f.result_types[0], TensorType)
        require(ok, "", "@{n} must take nothing and return one tensor, as an entry of the infeed, not {p} -> {r}",
                n=name, p=f.param_types, r=f.result_types)  # fmt: skip
    return [*programs, *infeed]


def _is_name(value: Any) -> bool:
    return type(value) is str and bool(value)


def _where(process: Process | None) -> str:
    return "" if process is None else f"process {process.id}: "


@op("print", dialect="interpreter", effect=True)
class print_:
    """Print the operand, and give it."""

    @staticmethod
    def infer(x: Type) -> Type:
        return tensor(x)

    @staticmethod
    def evaluate(x: np.ndarray) -> np.ndarray:
        print(f"{_where(current())}{x.dtype}{list(x.shape)} {np.array2string(x, separator=', ')}")
        return x

    expand = staticmethod(_interpreted)
    sharding = staticmethod(passed_through)
    examples = [((_T,), {})]


@op("probe", dialect="interpreter", effect=True)
class probe:
    """Write the operand down under `probe_id` (`hilo.ir.probes`), if there is a place for it; give the operand."""

    @staticmethod
    def infer(x: Type, *, probe_id: str) -> Type:
        return tensor(x)

    @staticmethod
    def evaluate(x: np.ndarray, *, probe_id: str) -> np.ndarray:
        recorder = probes.current()
        if recorder is not None:
            recorder.record(probe_id, x)
        return x

    expand = staticmethod(_interpreted)
    sharding = staticmethod(passed_through)
    examples = [((_T,), {"probe_id": "p"})]
