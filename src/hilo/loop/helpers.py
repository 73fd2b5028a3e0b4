"""Code that a function holds once, or not at all: functions of their own that kernels call and share.

What few elements ever need (`called`) and what a function has held often enough already (`sparing`) is not written out
once more where it is used: LLVM takes more than twice as long for twice the code. Imports the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.nodes import PTR, Func, Node, VType

# Nodes of one piece of code, written out again and again, and of all such code, that a function holds before it calls
# what it would write out once more. What is written out stays quick to compile: LLVM takes about 30 us for a node.
NODES: Final = 512
ALL_NODES: Final = 1024
HEAVY: Final = 16  # nodes from which code is worth a call
Build = Callable[..., Iterable[Node]]  # (builder, *nodes): the values made of them


def sparing(b: Builder, name: str, build: Build, args: Sequence[Node], results: int = 1) -> tuple[Node, ...]:
    """The values of `build(b, *args)`: written out while this function holds little of that code, then by a call."""
    key = _symbol(name, args)
    spent, most = b.written.get(key, (0, 0))
    if most >= HEAVY and (spent >= NODES or sum([s for s, _ in b.written.values()]) >= ALL_NODES):
        return called(b, name, build, args, results)
    before = b.size()
    values = tuple(build(b, *args))
    size = b.size() - before
    b.written[key] = spent + size, max(most, size)
    return values


def called(b: Builder, name: str, build: Build, args: Sequence[Node], results: int = 1) -> tuple[Node, ...]:
    """The values of `build(b, *args)`, which depend on the arguments alone, by a call; written out where `b` makes a
    function that must stand alone (`Func.helpers`).

    `name` stands for `build`. One value is what the function gives; several are left in memory of the caller's.
    """
    helpers = b.func.helpers
    if helpers is None:
        return tuple(build(b, *args))
    key = _symbol(name, args)
    func = helpers.get(key)
    if func is None:
        func = helpers[key] = _function(key, build, [a.type for a in args], results, helpers)
    if results == 1:
        return (b.pure("call", tuple(args), func.ret, callee=key),)
    types: list[VType] = func.attrs["results"]
    places = b.places.get(key)
    if places is None:
        places = b.places[key] = [b.alloca(t.lanes * t.size) for t in types]
    b.call(key, [*args, *places])
    return tuple([b.load(p, t) for p, t in zip(places, types, strict=True)])


def with_helpers(funcs: Iterable[Func]) -> list[Func]:
    """`funcs` and the helpers that any of them calls, each name once."""
    found: dict[str, Func] = {}
    for f in funcs:
        found.setdefault(f.name, f)
        found.update(f.helpers or {})
    return list(found.values())


def _symbol(name: str, args: Sequence[Node]) -> str:
    return "_".join((name.replace(".", "_"), *(repr(a.type) for a in args)))


def _function(key: str, build: Build, types: Sequence[VType], results: int, helpers: dict[str, Func]) -> Func:
    """`build` as a function, which may have `helpers` itself."""
    places = [(f"y{i}", PTR) for i in range(results)] if results > 1 else []
    func = Func(key, [*((f"x{i}", t) for i, t in enumerate(types)), *places], inline="never")
    func.helpers = helpers
    b = Builder(func)
    values = tuple(build(b, *func.params[: len(types)]))
    assert len(values) == results
    if results == 1:
        func.ret = values[0].type
        b.ret(values[0])
        return func
    func.attrs["results"] = [v.type for v in values]
    for place, value in zip(func.params[len(types) :], values, strict=True):
        b.store(place, value)
    b.ret()
    return func
