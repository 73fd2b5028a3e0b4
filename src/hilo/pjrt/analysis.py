"""What clients ask about a program's costs and memory, by XLA's and PJRT's names. Imports ops.weight, plan.report;
siblings and passes when a program that was not compiled is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hilo.ir.types import TensorType, result_types
from hilo.ops.weight import EXPENSIVE, cost, weight

if TYPE_CHECKING:
    from hilo.ir.module import Function
    from hilo.plan.report import MemoryReport

_NO_WORK: Final = frozenset(("constant", "parameter", "get"))


def costs_of(program: bytes) -> dict[str, float]:
    """Of a program that was not compiled (StableHLO as text or bytecode): as `costs`, op by op."""
    from hilo.passes.inline import inline
    from hilo.pjrt.boundary import prepare
    from hilo.pjrt.compiler import parse
    from hilo.pjrt.request import Request

    module, f, _ = prepare(parse("mlir", program), Request())
    return costs(inline(module, f.name))


def costs(f: Function, nanoseconds: float | None = None) -> dict[str, float]:
    """Of a function without calls: operations ("flops"), functions like exp ("transcendentals", which do not count as
    flops), bytes read and written by its ops, which are kernels once it is scheduled, and estimated seconds of a call
    if they are known. The bodies of loops count once."""
    flops = transcendentals = moved = 0.0
    stack: list[Any] = [f]
    while stack:
        for o in stack.pop().ops:
            if o.name in _NO_WORK:
                continue
            regions = [x for v in o.attrs.values() for x in (v if isinstance(v, tuple) else (v,)) if hasattr(x, "ops")]
            if o.name in ("fusion", "while", "if", "case"):
                stack += regions
            else:
                if o.kind.scalar is not None and weight(o) >= EXPENSIVE:
                    transcendentals += o.tensor.size
                else:
                    flops += o.tensor.size if o.kind.scalar is not None else cost(o)[0]
    for o in f.ops:
        if o.name not in _NO_WORK:
            tensors = [t for x in o.operands for t in result_types(x.type)] + list(result_types(o.type))
            moved += sum(t.nbytes for t in tensors if isinstance(t, TensorType))
    return {
        "flops": flops,
        "transcendentals": transcendentals,
        "bytes accessed": moved,
        **({} if nanoseconds is None else {"optimal_seconds": nanoseconds * 1e-9}),
        **_by_operand(f),
    }


def _by_operand(f: Function) -> dict[str, float]:
    """Bytes of each argument and of the results, and how often they are used."""
    found: dict[str, float] = {}
    uses = dict.fromkeys(f.params, 0)
    for o in f.ops:
        for x in o.operands:
            if x in uses:
                uses[x] += 1
    for i, p in enumerate(f.params):
        found[f"bytes accessed{i}{{}}"] = float(p.tensor.nbytes * uses[p])
        found[f"utilization{i}{{}}"] = float(uses[p])
    found["bytes accessedout{}"] = float(sum(r.tensor.nbytes for r in f.results))
    return found


def memory(report: MemoryReport) -> dict[str, int]:
    """Bytes of arguments, results, the results that lie in arguments, temporaries and code."""
    aliased = sum(r.nbytes for r in (report.program.results if report.program else []) for pair in report.aliases
                  if pair[0] == r.index)  # fmt: skip
    return {
        "generated_code_size_in_bytes": report.code + report.constants,
        "argument_size_in_bytes": report.arguments,
        "output_size_in_bytes": report.results,
        "alias_size_in_bytes": aliased,
        "temp_size_in_bytes": report.temporaries,
        "host_generated_code_size_in_bytes": 0,
        "host_argument_size_in_bytes": 0,
        "host_output_size_in_bytes": 0,
        "host_alias_size_in_bytes": 0,
        "host_temp_size_in_bytes": 0,
        "peak_memory_in_bytes": report.arguments + report.results + report.temporaries - aliased,
        "total_size_in_bytes": report.peak - aliased,
    }
