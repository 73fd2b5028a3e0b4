"""The table of op definitions. ops/ fills it through `@op`, file by file, when an op is asked for; everything else
looks ops up here. Imports only ir.op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hilo.ir.op import GET, PARAMETER, OpDef


class Registry(dict[str, OpDef]):
    """Definitions by full name ("stablehlo.add"). Asking for one op loads the file that defines it; whatever asks for
    all of them, all files."""

    def __missing__(self, name: str) -> OpDef:
        from hilo.ops import load

        load(name)
        if not dict.__contains__(self, name):
            raise KeyError(name)
        return dict.__getitem__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]

    def __contains__(self, name: object) -> bool:
        if dict.__contains__(self, name):
            return True
        from hilo.ops import homes

        return name in homes()

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self._whole())

    def __len__(self) -> int:
        return dict.__len__(self._whole())

    def keys(self) -> Any:
        return dict.keys(self._whole())

    def values(self) -> Any:
        return dict.values(self._whole())

    def items(self) -> Any:
        return dict.items(self._whole())

    def _whole(self) -> Registry:
        from hilo.ops import load_all

        load_all()
        return self


REGISTRY = Registry({d.full_name: d for d in (PARAMETER, GET)})


def op(name: str, *, dialect: str = "stablehlo", **flags: Any) -> Callable[[type], OpDef]:
    """Class decorator: the class's functions become the pieces of the op `dialect.name` (see `OpDef`)."""

    def make(cls: type) -> OpDef:
        pieces: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            pieces.update({k: v for k, v in vars(base).items() if not k.startswith("__")})
        pieces = {k: v.__func__ if isinstance(v, staticmethod) else v for k, v in pieces.items()}
        d = OpDef(name, **{**pieces, **flags}, dialect=dialect, doc=cls.__doc__, cls=cls)
        assert not dict.__contains__(REGISTRY, d.full_name), f"{d.full_name} is defined twice"
        REGISTRY[d.full_name] = d
        return d

    return make


def load_quantized_rules() -> None:
    """Load what the ops mean on quantized tensors."""
    from hilo.ops import load_quantized_rules as load

    load()


def lookup(full_name: str) -> OpDef:
    """The definition of e.g. `stablehlo.add`; KeyError if there is none."""
    return REGISTRY[full_name]
