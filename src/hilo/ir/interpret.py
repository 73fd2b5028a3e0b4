"""The interpreter: runs a program with every op's numpy semantics. The reference for everything else; imports only ir.

Values are numpy arrays of the op's dtype and shape; a tuple value is a Python tuple, a token is `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.ir.dtypes import from_numpy
from hilo.ir.module import Function, Module
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import FutureType, Results, TensorType, Type, any_quantized
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.ir import quantized
else:
    quantized = Later("hilo.ir.quantized")

_MODULE: ContextVar[Module | None] = ContextVar("hilo_interpreted_module", default=None)


def interpret(module: Module, arrays: Iterable[Any], entry: str = "main") -> list[Any]:
    """Run `entry` of `module` on `arrays` (anything numpy takes without a cast) and give its results, which are arrays
    of their own.

    Raises `Error` if there is no such function, or if the arguments' number, a shape or a dtype does not fit.
    """
    if entry not in module.functions:
        raise Error(
            f"there is no function @{entry}; there are: {', '.join('@' + n for n in module.functions) or 'none'}"
        )
    function = module[entry]
    return own(run(function, check_arguments(function, list(arrays)), module))


def own(results: Iterable[Any]) -> list[Any]:
    """Copies: a value may be an argument or a constant of the program itself, or a view of another value."""
    return [np.array(r) if isinstance(r, np.ndarray) else tuple(own(r)) if isinstance(r, tuple) else r for r in results]


def check_arguments(function: Function, arrays: Sequence[Any]) -> list[Any]:
    """The arguments as numpy arrays; one `Error` if they do not fit the function's parameters. Never casts."""
    types = function.param_types
    if len(arrays) != len(types):
        raise Error(f"@{function.name} takes {len(types)} arguments, but got {len(arrays)}")
    return [
        check_argument(f"argument {i} of @{function.name}", a, t)
        for i, (a, t) in enumerate(zip(arrays, types, strict=True))
    ]


def check_argument(what: str, value: Any, t: Type) -> Any:
    """`value` as an array of type `t`; `Error` naming `what` if it is not one. Never casts."""
    if isinstance(t, FutureType) and len(t) == 1:
        t = t[0]  # a future is what it is going to hold
    if not isinstance(t, TensorType):
        return value
    try:
        a = np.asarray(value)
    except Exception as e:  # whatever the object's own methods raise
        raise Error(f"{what} is no array: {type(e).__name__}: {e}") from e
    try:
        got = TensorType(from_numpy(a.dtype), a.shape)
    except KeyError:
        raise Error(f"{what} has element type {a.dtype}, which no tensor has; {t} is wanted") from None
    fits = got.dtype is quantized.stored(t).dtype and got.rank == t.rank
    if not fits or any(isinstance(n, int) and n != m for n, m in zip(t.shape, got.shape, strict=True)):
        raise Error(f"{what} is {got}, but {t} is wanted")
    return a


def run(function: Function, arrays: Sequence[Any], module: Module | None = None) -> list[Any]:
    """The results of `function` on arrays of its parameters' types.

    `module` is where calls find their functions; without it they look in the module that is running. Values are freed
    after their last use. An error carries the op and its location.
    """
    token = _MODULE.set(module) if module is not None else None
    try:
        return prepared(function)(arrays)
    finally:
        if token is not None:
            _MODULE.reset(token)


def prepared(function: Function) -> Callable[[Sequence[Any]], list[Any]]:
    """`run` of one function many times: what is known of the function is worked out once."""
    last: dict[Op, int] = {}
    for i, o in enumerate(function.ops):
        last[o] = i
        for x in o.operands:
            last[x] = i
    keep = set(function.results)
    steps = []
    for i, o in enumerate(function.ops):
        dead = [x for x in {o: None, **dict.fromkeys(o.operands)} if last[x] == i and x not in keep]
        if o.kind is not PARAMETER:
            steps.append((o, _arguments(o), dead))
    params, unused = function.params, [p for p in function.params if function.ops[last[p]] is p and p not in keep]

    def call(arrays: Sequence[Any]) -> list[Any]:
        values: dict[Op, Any] = dict(zip(params, arrays, strict=True))
        for p in unused:
            del values[p]
        with np.errstate(all="ignore"):
            for o, attrs, dead in steps:
                values[o] = _evaluate(o, [values[x] for x in o.operands], attrs)
                for x in dead:
                    del values[x]
        return [values[r] for r in function.results]

    return call


def evaluate(o: Op, operands: Sequence[Any]) -> Any:
    """The value of one op, given the values of its operands."""
    with np.errstate(all="ignore"):
        return _evaluate(o, operands, _arguments(o))


def _arguments(o: Op) -> dict[str, Any]:
    """The attributes that `evaluate` gets."""
    return dict(o.attrs) if o.kind.dotted else o.attrs.own()


def _evaluate(o: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    kind = o.kind
    if kind is GET:
        return operands[0][attrs["index"]]
    if kind.evaluate is None:
        raise Unsupported("this op cannot be evaluated", loc=o.loc, op=kind.full_name)
    try:
        if any_quantized((o.type, *(x.type for x in o.operands))):
            value = quantized.rule_for(kind).evaluate(o, list(operands), attrs)
        else:
            value = kind.evaluate(*operands, **attrs)
    except Error as e:
        raise e.at(o.loc, kind.full_name) from e.__cause__
    except MemoryError:
        raise Error(f"there is not enough memory for {o.type}", loc=o.loc, op=kind.full_name) from None
    except RecursionError:
        raise Error("calls nest too deeply: is a function calling itself?", loc=o.loc, op=kind.full_name) from None
    if isinstance(o.type, Results):
        return tuple(map(_array, value, o.type.types))
    return _array(value, o.type)


def _array(value: Any, t: Type) -> Any:
    """Numpy turns rank-0 arrays into its scalars; a value of the program is always an array."""
    if isinstance(t, TensorType) and not isinstance(value, np.ndarray):
        return np.asarray(value, t.dtype.np)
    return value


def running() -> Module | None:
    """The module that is running."""
    return _MODULE.get()


def callee(name: str) -> Function:
    """The function `name` of the module that is running."""
    module = running()
    if module is None or name not in module.functions:
        raise Error(f"there is no function @{name} to call")
    return module[name]
