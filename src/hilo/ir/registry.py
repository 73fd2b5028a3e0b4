"""The table of op definitions. ops/ fills it through `@op`; everything else looks ops up here. Imports only ir.op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilo.ir.op import GET, PARAMETER, OpDef

REGISTRY: dict[str, OpDef] = {d.full_name: d for d in (PARAMETER, GET)}  # "stablehlo.add" -> OpDef


def op(name: str, *, dialect: str = "stablehlo", **flags: Any) -> Callable[[type], OpDef]:
    """Class decorator: the class's functions become the pieces of the op `dialect.name` (see `OpDef`)."""

    def make(cls: type) -> OpDef:
        pieces: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            pieces.update({k: v for k, v in vars(base).items() if not k.startswith("__")})
        pieces = {k: v.__func__ if isinstance(v, staticmethod) else v for k, v in pieces.items()}
        d = OpDef(name, **{**pieces, **flags}, dialect=dialect, doc=cls.__doc__, cls=cls)
        assert d.full_name not in REGISTRY, f"{d.full_name} is defined twice"
        REGISTRY[d.full_name] = d
        return d

    return make


def lookup(full_name: str) -> OpDef:
    """The definition of e.g. `stablehlo.add`; KeyError if there is none. Loads ops/ on first use."""
    import hilo.ops  # noqa: F401  # the table fills itself on import

    return REGISTRY[full_name]
