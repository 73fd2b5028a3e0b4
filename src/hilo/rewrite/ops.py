"""Every op by its own name, for patterns and templates alike: `from hilo.rewrite.ops import add, and_`.

`add(x, Const(-0.0))` with a variable or a pattern among its operands is a pattern; on ops it makes an op. Names that
Python keeps for itself take a trailing underscore (`and_`, `if_`); ops of other dialects are prefixed (`chlo_erf`,
`hilo_get`). Definitions are looked up when first used, so that importing rules is cheap and knows nothing of ops/.
"""

from __future__ import annotations

from typing import Any

from hilo.rewrite.pattern import Symbol

_DIALECTS = ("chlo", "mhlo", "func", "hilo")
_SYMBOLS: dict[str, Symbol] = {}


def symbol(name: str) -> Symbol:
    """The symbol for a Python-friendly name, e.g. `add`, `and_`, `hilo_get`."""
    found = _SYMBOLS.get(name)
    if found is None:
        plain = name.rstrip("_")
        dialect, _, rest = plain.partition("_")
        full = f"{dialect}.{rest}" if rest and dialect in _DIALECTS else f"stablehlo.{plain}"
        found = _SYMBOLS.setdefault(name, Symbol(full))
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return symbol(name)
