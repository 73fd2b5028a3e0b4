"""Building programs in Python with the ops' own constructors. Imports ops and ir.

    >>> from hilo import build
    >>> f = build.function("main", [build.f32(2, 3)], lambda x: build.add(x, build.constant(1.0, build.f32(2, 3))))
    >>> module = build.module(f)

Every op of the registry is a function here, by its name: `add`, `dot_general`, `chlo_erf`; what Python keeps for itself
takes a trailing underscore (`and_`, `if_`). Attributes are named as the op's page says; lists and arrays are taken
for tuples and dense elements. An op is verified when it is made: a mistake is an `Error` that names the rule of the
specification, and the line of Python. An op of several results gives a tuple of them.

Element types are functions too, from sizes to types: `f32()` is rank 0, `i8(2, 3)` a matrix; `None` is a size known
only at run time.

Regions are Python functions on values. They may use values from outside, which become captures. Those of `reduce`,
`reduce_window`, `map`, `sort`, `scatter` and `select_and_scatter` get their parameters from the operands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.ir.module import Function, Loc, Module, parameter
from hilo.ir.op import GET, PARAMETER, Array, Attrs, Op, OpDef
from hilo.ir.registry import REGISTRY, lookup
from hilo.ir.types import UNKNOWN, Results, TensorType, Type
from hilo.ir.verify import verify

Body = Callable[..., Any]
_DIALECTS = ("chlo", "mhlo", "hilo")


# ---- functions and modules
def function(name: str, types: Iterable[Type], body: Body, *, private: bool = False) -> Function:
    """The function @`name` of parameters of `types`, whose results `body(*params)` gives (a value, or several).

    Raises `Error` if the body gives something else than values, or uses a value that belongs to another function.
    """
    if not isinstance(name, str) or not name:
        raise Error(f"the name of a function is a text that is not empty, not {name!r}", loc=_line())
    types = tuple(types) if isinstance(types, Iterable) else (types,)
    for i, t in enumerate(types):
        if not isinstance(t, Type):
            raise Error(f"the type of parameter {i} of @{name} is {t!r}, which is no type", loc=_line())
    traced = _Traced(body, types, _line())
    if traced.captures:
        raise Error(f"@{name} uses {next(iter(traced.captures))!r}, a value of another function", loc=traced.loc)
    return traced.close(name, (), visibility="private" if private else "")


def module(*functions: Function, name: str = "") -> Module:
    """A module of these functions. Raises `Error` if two have one name, or if a call does not fit what it calls."""
    table: dict[str, Function] = {}
    for f in functions:
        if not isinstance(f, Function):
            raise Error(f"a module is made of functions, not of {f!r}", loc=_line())
        if f.name in table:
            raise Error(f"there are two functions @{f.name}")
        table[f.name] = f
    made = Module(table, name=name)
    verify(made)
    return made


def call(callee: Function, *operands: Op) -> Any:
    """A call of a function: its result, or a tuple of them. The module must hold the function too."""
    got, want = tuple(o.type for o in operands), callee.param_types
    if got != want:
        raise Error(f"@{callee.name} takes {want}, but is called with {got}", loc=_line())
    out = callee.result_types
    return _make(lookup("func.call"), operands,
                 {"callee": callee.name, "type": out[0] if len(out) == 1 else Results(out)}, _line())  # fmt: skip


# ---- values and types
def tensor(dtype: dtypes.DType | str, *sizes: int | None) -> TensorType:
    """The type of tensors of these sizes; None is a size known only at run time."""
    try:
        element = dtypes.dtype(dtype) if isinstance(dtype, str) else dtype
    except KeyError:
        raise Error(f"there is no element type {dtype!r}; there are: {', '.join(t.name for t in dtypes.ALL)}") from None
    for n in sizes:
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0):
            raise Error(f"a size must be a number of 0 or more, or None, not {n!r}")
    return TensorType(element, [UNKNOWN if n is None else int(n) for n in sizes])


def constant(value: Any, type: TensorType | None = None) -> Op:  # noqa: A002
    """A constant: an array, or a number everywhere in a tensor of `type`. Raises `Error` if the type cannot hold it."""
    if type is None and not isinstance(value, (np.ndarray, np.generic)):
        raise Error("a constant of numbers needs a type, like constant(1.0, f32(2))", loc=_line())
    array = np.asarray(value)
    if type is not None:
        array = _fitted(array, type)
        if array.ndim and array.shape != type.shape:
            raise Error(f"an array of shape {array.shape} is no constant of {type}", loc=_line())
    try:
        return _make(lookup("stablehlo.constant"), (), {"value": Array(array, None if type is None else type.shape)},
                     _line())  # fmt: skip
    except (KeyError, ValueError) as e:
        text = f"no tensor has elements of {array.dtype}" if isinstance(e, KeyError) else str(e)
        raise Error(f"constant: {text}", loc=_line()) from None


def _fitted(array: np.ndarray, t: TensorType) -> np.ndarray:
    """`array` with elements of `t`'s type. Integers must be in its range; floats are rounded."""
    if not t.is_static:
        raise Error(f"a constant needs fixed sizes, not {t}", loc=_line())
    if array.dtype.kind in "fc" and t.dtype.kind in "biu":
        raise Error(f"a constant of {t} cannot be made of {array.dtype}", loc=_line())
    with np.errstate(all="ignore"):
        try:
            made = array.astype(t.dtype.np)
        except (OverflowError, ValueError, TypeError):
            made = None
    if made is None or (t.dtype.is_int and (made.astype(object) != array.astype(object)).any()):
        raise Error(f"{array} does not fit into {t.dtype}", loc=_line())
    return made


# ---- ops with regions
def region(types: Iterable[Type], body: Body) -> Function:
    """A region of parameters of `types` that captures nothing, for an op's attribute."""
    return function("region", types, body)


def if_(pred: Op, then: Body, otherwise: Body) -> Any:
    """`stablehlo.if`: the branches take nothing and may use any value."""
    return _branching("if", pred, [then, otherwise], lambda fs: {"true_branch": fs[0], "false_branch": fs[1]})


def case(index: Op, *branches: Body) -> Any:
    """`stablehlo.case`: branches as those of `if_`."""
    return _branching("case", index, branches, lambda fs: {"branches": tuple(fs)})


def _branching(name: str, pred: Op, bodies: Sequence[Body], attrs: Callable[[list[Function]], dict[str, Any]]) -> Any:
    loc = _line()
    functions, captures = _closed([_Traced(b, (), loc) for b in bodies])
    return _make(lookup(f"stablehlo.{name}"), (pred, *captures), attrs(functions), loc)


def while_(cond: Body, body: Body, *init: Op) -> Any:
    """`stablehlo.while`: `body` of the carried values gives their next ones for as long as `cond` of them is true."""
    loc = _line()
    _check_operands("while", init, loc)
    types = tuple(o.type for o in init)
    (test, step), captures = _closed([_Traced(cond, types, loc), _Traced(body, types, loc)])
    return _make(lookup("stablehlo.while"), (*init, *captures), {"cond": test, "body": step}, loc)


def _scalars(name: str, operands: Sequence[Op]) -> list[Type]:
    """The parameters of a region that works on elements."""
    n = {"map": len(operands), "scatter": (len(operands) - 1) // 2, "select_and_scatter": 1}.get(name)
    n = n if n is not None else len(operands) if name == "sort" else len(operands) // 2
    each: list[Type] = [x.tensor.with_shape(()) for x in operands[:n]]
    if name == "sort":
        return [t for t in each for _ in range(2)]
    return each if name == "map" else [*each, *each]


_BODIES = ("body", "comparator", "update_computation", "select", "scatter")
_ON_ELEMENTS = ("reduce", "reduce_window", "map", "sort", "scatter", "select_and_scatter")


# ---- making ops
def _make(kind: OpDef, operands: Sequence[Any], attrs: dict[str, Any], loc: Loc | None) -> Any:
    """A verified op, written down as made in the innermost region: its result, or the tuple of them."""
    from hilo.ops.value_rules import check_values

    _check_operands(kind.name, operands, loc)
    given = {k: _attribute(v) for k, v in attrs.items()}
    bodies = {k: v for k, v in given.items() if callable(v) and not isinstance(v, Function)}
    for k in _BODIES if kind.name in _ON_ELEMENTS else ():
        if k in given and not callable(given[k]) and not isinstance(given[k], Function):
            raise Error(f"{k} is {given[k]!r}, which is no function", loc=loc, op=kind.full_name)
    if bodies:
        if kind.name not in _ON_ELEMENTS:
            raise Error("a region of this op is made by `region`", loc=loc, op=kind.full_name)
        traced = [_Traced(b, tuple(_scalars(kind.name, operands)), loc) for b in bodies.values()]
        functions, captures = _closed(traced)
        given.update(zip(bodies, functions, strict=True))
        operands = (*operands, *captures)
    made = kind.make(operands, Attrs(given), loc)
    try:
        check_values(made)
    except Error as e:
        raise e.at(loc, kind.full_name) from None
    results = made.results()
    record = _MADE.get()
    if record is not None:
        record.update(dict.fromkeys((made, *results)))
    return results if isinstance(made.type, Results) else made


def _check_operands(name: str, operands: Sequence[Any], loc: Loc | None) -> None:
    for i, o in enumerate(operands):
        if not isinstance(o, Op):
            raise Error(f"operand {i} of {name} is {o!r}, which is no value; constant(...) makes one", loc=loc)


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_attribute, value)) if isinstance(value, (list, tuple)) else value


class _Traced:
    """A body that was run on parameters: its results, the ops made on the way, the values from outside it used."""

    def __init__(self, body: Body, types: tuple[Type, ...], loc: Loc | None) -> None:
        self.params = [parameter(i, t, loc) for i, t in enumerate(types)]
        self.loc = loc
        with _recording() as made:
            out = body(*self.params)
        self.results = (out,) if isinstance(out, Op) else tuple(out) if isinstance(out, Iterable) else (out,)
        _check_operands("the function's results", self.results, loc)
        inside = {*self.params, *made}
        self.captures: dict[Op, None] = {}
        self.order: dict[Op, None] = {}
        stack = [(o, False) for o in (*self.results, *(o for o in made if o.kind.effect))]
        while stack:
            o, ready = stack.pop()
            if ready:
                self.order[o] = None
            elif o in inside or o.kind.name == "constant" or (o.kind is GET and o.operands[0] in inside):
                if o not in self.order and o.kind is not PARAMETER:
                    stack += [(o, True), *((x, False) for x in reversed(o.operands))]
            else:
                self.captures[o] = None

    def close(self, name: str, captures: Iterable[Op], visibility: str = "") -> Function:
        """The function, with parameters for `captures` (and no others) behind its own."""
        params = list(self.params)
        new: dict[Op, Op] = {p: p for p in params}
        for c in captures:
            new[c] = parameter(len(params), c.type, c.loc)
            params.append(new[c])
        for o in self.order:
            new[o] = o.with_operands([new[x] for x in o.operands])
        ops = [*params, *(new[o] for o in self.order)]
        return Function(name, params, ops, [new[r] for r in self.results], visibility=visibility, loc=self.loc)


def _closed(regions: Sequence[_Traced]) -> tuple[list[Function], list[Op]]:
    """The regions of one op, which all take the captures of all; the captures."""
    captures = list(dict.fromkeys(c for r in regions for c in r.captures))
    return [r.close("region", captures) for r in regions], captures


_MADE: ContextVar[dict[Op, None] | None] = ContextVar("hilo_build_made", default=None)


@contextmanager
def _recording() -> Iterator[dict[Op, None]]:
    """The ops made in the block."""
    made: dict[Op, None] = {}
    token = _MADE.set(made)
    try:
        yield made
    finally:
        _MADE.reset(token)


def _line() -> Loc | None:
    """The line of the program that uses this module."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return Loc("file", file=frame.f_code.co_filename, line=frame.f_lineno, col=1) if frame is not None else None


# ---- names: element types and ops
def _kind(name: str) -> OpDef | None:
    lookup("stablehlo.add")
    plain = name.rstrip("_")
    dialect, _, rest = plain.partition("_")
    full = f"{dialect}.{rest}" if rest and dialect in _DIALECTS else f"stablehlo.{plain}"
    return REGISTRY.get(full)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if any(t.name == name for t in dtypes.ALL):
        return partial(tensor, name)
    kind = _kind(name)
    if kind is None:
        from difflib import get_close_matches

        near = get_close_matches(name, [d.name for d in REGISTRY.values()], 1)
        raise AttributeError(f"there is no op or element type {name!r}" + (f"; is {near[0]!r} meant?" if near else ""))

    def make(*operands: Op, **attrs: Any) -> Any:
        return _make(kind, operands, attrs, _line())

    make.__name__ = make.__qualname__ = name
    make.__doc__ = kind.doc
    return make


def __dir__() -> list[str]:
    lookup("stablehlo.add")
    ops = [d.name if d.dialect == "stablehlo" else f"{d.dialect}_{d.name}" for d in REGISTRY.values()]
    return sorted({*globals(), *(t.name for t in dtypes.ALL), *ops})
