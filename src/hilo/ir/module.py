"""Functions, modules and source locations. Imports only ir.op and ir.types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hilo.ir.op import NO_ATTRS, PARAMETER, Attrs, Op
from hilo.ir.types import Type


class Loc:
    """Where an op came from. `kind`: "file" (file, line, col), "name", "callsite", "fused" or "unknown".

    `str(loc)` is the innermost `file:line:col` (or the name) for error messages; the printer reads the parts.
    """

    __slots__ = ("children", "col", "extra", "file", "kind", "line", "name")

    def __init__(self, kind: str, *, file: str = "", line: int = 0, col: int = 0, name: str = "",
                 children: tuple[Loc, ...] = (), extra: Any = None) -> None:  # fmt: skip
        self.kind = kind
        self.file = file
        self.line = line
        self.col = col
        self.name = name
        self.children = children
        self.extra = extra  # e.g. metadata of a fused location, end of a file range

    def __str__(self) -> str:
        if self.kind == "file":
            return f"{self.file}:{self.line}:{self.col}"
        for c in self.children:
            if text := str(c):
                return text
        return self.name

    def __repr__(self) -> str:
        return f"Loc({self})"


class Function:
    """A function, or a region: params in order, ops in topological order (params are ops and stand in `ops`), results.

    Immutable. Equal by structure (names of functions and locations do not count), so that equal regions merge.
    `attrs` holds discardable attributes; `arg_attrs` and `result_attrs` one `Attrs` per parameter and result.
    """

    __slots__ = ("_key", "arg_attrs", "attrs", "loc", "name", "ops", "params", "result_attrs", "results", "visibility")

    def __init__(self, name: str, params: Iterable[Op], ops: Iterable[Op], results: Iterable[Op], *,
                 attrs: Attrs = NO_ATTRS, arg_attrs: Iterable[Attrs] = (), result_attrs: Iterable[Attrs] = (),
                 visibility: str = "", loc: Any = None) -> None:  # fmt: skip
        self.name = name
        self.params = tuple(params)
        self.ops = tuple(ops)
        self.results = tuple(results)
        self.attrs = attrs
        self.arg_attrs = tuple(arg_attrs)
        self.result_attrs = tuple(result_attrs)
        self.visibility = visibility
        self.loc = loc
        self._key: tuple[Any, ...] | None = None

    @property
    def param_types(self) -> tuple[Type, ...]:
        return tuple(p.type for p in self.params)

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(r.type for r in self.results)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def replace(self, *, name: str | None = None, params: Iterable[Op] | None = None, ops: Iterable[Op] | None = None,
                results: Iterable[Op] | None = None) -> Function:  # fmt: skip
        return Function(
            self.name if name is None else name,
            self.params if params is None else params,
            self.ops if ops is None else ops,
            self.results if results is None else results,
            attrs=self.attrs,
            arg_attrs=self.arg_attrs,
            result_attrs=self.result_attrs,
            visibility=self.visibility,
            loc=self.loc,
        )

    def key(self) -> tuple[Any, ...]:
        """The structure as nested tuples of numbers, kinds, attributes and types; computed once."""
        if self._key is None:
            number = {o: i for i, o in enumerate(self.ops)}
            self._key = (
                tuple((o.kind.full_name, tuple(number[x] for x in o.operands), o.attrs, o.type) for o in self.ops),
                tuple(number[r] for r in self.results),
            )
        return self._key

    def __hash__(self) -> int:
        return hash(self.key())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Function) and self.key() == other.key())

    def __repr__(self) -> str:
        return f"<Function {self.name} {self.param_types} -> {self.result_types}, {len(self.ops)} ops>"


class Module:
    """Functions by name, and discardable attributes. Immutable. `functions` keeps the order of the text."""

    __slots__ = ("attrs", "functions", "loc", "name", "resources")

    def __init__(
        self, functions: dict[str, Function], *, name: str = "", attrs: Attrs = NO_ATTRS, loc: Any = None
    ) -> None:
        self.functions = functions
        self.name = name
        self.attrs = attrs
        self.loc = loc

    def __getitem__(self, name: str) -> Function:
        return self.functions[name]

    def replace(self, functions: dict[str, Function]) -> Module:
        return Module(functions, name=self.name, attrs=self.attrs, loc=self.loc)

    def __repr__(self) -> str:
        return f"<Module{' ' * bool(self.name)}{self.name}: {', '.join(self.functions)}>"


def parameter(index: int, type: Type, loc: Any = None) -> Op:  # noqa: A002
    """Parameter `index` of a function under construction."""
    return Op(PARAMETER, (), Attrs(index=index, type=type), type, loc)


def region(types: Iterable[Type], build: Callable[..., Op | Iterable[Op]], name: str = "region") -> Function:
    """A function of parameters of `types` whose results `build(*params)` gives; collects the ops it needs."""
    params = tuple(parameter(i, t) for i, t in enumerate(types))
    out = build(*params)
    results = (out,) if isinstance(out, Op) else tuple(out)
    return Function(name, params, topological(results, params), results)


def topological(roots: Iterable[Op], params: Iterable[Op] = ()) -> list[Op]:
    """All ops that `roots` need, operands first, after `params`. Iterative: no limit on depth."""
    order: dict[Op, None] = dict.fromkeys(params)
    stack: list[tuple[Op, bool]] = [(r, False) for r in reversed(list(roots))]
    while stack:
        o, ready = stack.pop()
        if o in order:
            continue
        if ready:
            order[o] = None
        else:
            stack.append((o, True))
            stack.extend((x, False) for x in reversed(o.operands) if x not in order)
    return list(order)
