"""Programs that check their own results: made into programs of arguments, with what their results must be. Imports ir,
formats.

Test data computes, and hands results with expected values to checks: custom calls `@check.expect_close(got, want)`, or
ops of a dialect `check`, which are read as such calls but are stricter. A checked program is the function with the
checks taken out: its inputs become parameters, the checked values its results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, parameter, topological
from hilo.ir.op import GET, Op
from hilo.testing.probed import without_probes, written
from hilo.testing.slack import summation_slack

CLOSE_ULPS: Final = 3  # expect_close of custom calls
ALMOST: Final = 1e-3  # expect_almost_eq of custom calls
OP_CLOSE_ULPS: Final = 1  # ... and of ops
OP_ALMOST: Final = 1e-4
EQ_ALMOST: Final = 1e-4  # eq, of floats


@dataclass(frozen=True)
class Check:
    """What one result must be: `kind` is the name of the check (eq, expect_eq, expect_close, expect_almost_eq,
    expect_serialized_eq)."""

    kind: str
    want: np.ndarray
    slack: np.ndarray | float = 0.0  # what the order of summation may change (testing/slack.py)
    ulps: int = CLOSE_ULPS  # at most this far
    absolute: float = ALMOST
    least: int = 0  # and at least this far


# ---- from a function with checks to a program of arguments
def entries(module: Module) -> list[str]:
    """Names of the functions that check something."""
    return [name for name, f in module.functions.items() if any(_is_check(o) for o in f.ops)]


def _is_check(o: Op) -> bool:
    return o.kind.name == "custom_call" and o.attrs["call_target_name"].startswith("check.")


def _sides(o: Op) -> tuple[Op, Op]:
    """(what is checked, what it must be); of what a probe has written: the value itself."""
    got, want = o.operands if len(o.operands) == 2 else o.operands * 2
    return (want, got) if o.attrs["call_target_name"] == "check.eq" else (got, want)


# Ops whose later operands are shapes, starts and the like: constants there make the program static.
_SHAPED: Final = ("real_dynamic_slice", "set_dimension_size", "dynamic_reshape", "dynamic_broadcast_in_dim",
                  "dynamic_gather", "dynamic_pad", "dynamic_conv")  # fmt: skip


def given(f: Function) -> list[Op]:
    """The inputs of a function with checks: results of @inputs (or of other functions without parameters, that hold
    data); where there are none, its constants."""
    calls = {o for o in f.ops if o.kind.full_name == "func.call" and not o.operands and o.attrs["callee"] != "expected"}
    wanted = {_sides(o)[1] for o in f.ops if _is_check(o)}
    named = [o for o in calls if o.attrs["callee"] == "inputs"]
    data = set(named) or calls
    found = [o for o in f.ops if _taken_from(o) in data and not _is_several(o) and o not in wanted]
    if found or any(o.attrs.get("callee") == "expected" for o in f.ops):
        return found
    kept = {x for o in f.ops if o.kind.name in _SHAPED for x in o.operands[1:]}
    kept |= {x for o in f.ops if o.kind.name == "dynamic_iota" for x in o.operands}
    constants = [o for o in f.ops if o.kind.name == "constant"]
    return [o for o in constants if o not in wanted and o not in kept]


def _taken_from(o: Op) -> Op:
    return o.operands[0] if o.kind is GET else o


def _is_several(o: Op) -> bool:
    from hilo.ir.types import Results

    return isinstance(o.type, Results)


def with_arguments(module: Module, name: str = "main", *, ops: bool = False
                   ) -> tuple[Module, list[np.ndarray], list[Check]]:  # fmt: skip
    """Function `name` with its inputs as parameters and the values that it checks as results (as `main` of a module);
    the inputs; the checks. `ops`: they were written as ops, with the tolerances of those."""
    f = module[name]
    inputs = given(f)
    checks = [o for o in f.ops if _is_check(o)]
    if not checks:
        raise Error(f"{name} checks no result")
    params = [parameter(i, o.type, o.loc) for i, o in enumerate(inputs)]
    new: dict[Op, Op] = dict(zip(inputs, params, strict=True))
    sides = [_sides(o) for o in checks]
    for o in topological([got for got, _ in sides]):
        if o not in new:
            changed = any(new[x] is not x for x in o.operands if x in new)
            new[o] = o.with_operands([new[x] for x in o.operands]) if changed else o
    results = [new[got] for got, _ in sides]
    function = Function("main", params, topological(results, params), results, loc=f.loc)
    others = {k: without_probes(v) for k, v in module.functions.items() if k != name}
    program = module.replace({**others, "main": without_probes(function)})
    values = _values(module, f, [*inputs, *(want for _, want in sides)])
    arrays, wanted = values[: len(inputs)], values[len(inputs) :]
    read = {o: _probe(o) for o in checks if o.attrs["call_target_name"] == "check.expect_serialized_eq"}
    if read:
        probed = written(module, f, [got for got, _ in sides], list(read.values()))
        found: dict[Op, Any] = dict(zip(read, probed, strict=True))
        wanted = [found.get(o, w) for o, w in zip(checks, wanted, strict=True)]
    slack = summation_slack(program, arrays)
    expected = [_check(o, w, s, ops) for o, w, s in zip(checks, wanted, slack, strict=True)]
    return program, arrays, expected


def _values(module: Module, f: Function, ops: list[Op]) -> list[Any]:
    return run(Function("values", f.params, topological(ops, f.params), ops), [], module)


def _check(o: Op, want: np.ndarray, slack: Any, ops: bool) -> Check:
    kind = o.attrs["call_target_name"].removeprefix("check.")
    if not ops:
        return Check(kind, want, slack, absolute=EQ_ALMOST if kind == "eq" else ALMOST)
    most, least = (int(_setting(o, f"check.{m}_ulp_difference", n)) for m, n in (("max", OP_CLOSE_ULPS), ("min", 0)))
    return Check(kind, want, slack, most, float(_setting(o, "check.tolerance", OP_ALMOST)), least)


def _probe(o: Op) -> tuple[str, int]:
    """The probe's id, and the number of its value."""
    return str(o.attrs["check.probe_id"]).strip('"'), int(_setting(o, "check.iter", 0))


def _setting(o: Op, name: str, default: float) -> str:
    return str(o.attrs.get(name, default)).strip('"').partition(":")[0]


def with_constants(module: Module, program: Module, name: str = "main") -> Module:
    """`program` (see `with_arguments`) without parameters: its inputs are part of the program again."""
    main = program["main"]
    new: dict[Op, Op] = dict(zip(main.params, given(module[name]), strict=True))
    for o in main.ops:
        if o not in new:
            new[o] = o.with_operands([new[x] for x in o.operands]) if o.operands else o
    results = [new[r] for r in main.results]
    return program.replace({**program.functions, "main": Function("main", [], topological(results), results)})
