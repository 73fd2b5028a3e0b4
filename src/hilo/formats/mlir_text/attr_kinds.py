"""Whether an attribute's value is of the kind that the schema wants. Imports the schema and ir."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hilo.formats.mlir_text import schema
from hilo.ir.op import Array, Attrs, Opaque


class Spread(dict[str, Any]):
    """Several attributes in one: the fields of `#stablehlo.gather<...>` and its kind."""


def misfit(name: str, value: Any) -> str:
    """What attribute `name` must be if `value` is not that, else an empty string."""
    how = schema.HOW.get(name, "struct" if name in schema.HOLDERS else "")
    kind, _, enum_kind = how.partition(" ")
    if kind in ("enum", "enums"):
        values = value if kind == "enums" and isinstance(value, tuple) else (value,)
        ok = all(isinstance(v, str) and v in schema.ENUMS[enum_kind] for v in values)
        what = f"{'a list of' if kind == 'enums' else 'a'} {enum_kind}"
        return "" if ok and (kind == "enum" or value is values) else what
    if name == "backend_config" and isinstance(value, Attrs):
        return ""  # of a typed FFI call
    what, test = _FITS.get(kind, ("", None))
    return "" if test is None or test(value) else what


def _is_int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _tuple_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, tuple) and all(map(test, v))


def _nested_ints(v: Any) -> bool:
    """Integers in tuples of any depth: the op's constraints say how many dimensions there must be."""
    return all(map(_nested_ints, v)) if isinstance(v, tuple) else _is_int(v)


_INTS = _tuple_of(_is_int)
_BOOLS = _tuple_of(lambda v: isinstance(v, bool))
_FITS: Final[dict[str, tuple[str, Callable[[Any], bool] | None]]] = {
    "i32": ("an integer", _is_int),
    "i64": ("an integer", _is_int),
    "f32": ("a number", lambda v: isinstance(v, float)),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "unit": ("without a value", lambda v: isinstance(v, bool)),
    "string": ("a string", lambda v: isinstance(v, str)),
    "symbol": ("a symbol", lambda v: type(v) is str),
    "symbols": ("a list of symbols", _tuple_of(lambda v: type(v) is str)),
    "i64s": ("an array of integers", _INTS),
    "bools": ("an array of booleans", _BOOLS),
    "dense": ("dense integers", lambda v: isinstance(v, Opaque) or _nested_ints(v)),
    "layouts": ("a list of dense integers", _tuple_of(_INTS)),
    "tilings": ("a list of lists of dense integers", _tuple_of(_tuple_of(_INTS))),
    "value": ("a number or dense numbers", lambda v: isinstance(v, Array)),
    "list": ("a list or a dictionary", lambda v: isinstance(v, tuple | Attrs)),
    "channel_handle": ("a channel handle", lambda v: isinstance(v, tuple) and len(v) == 2 and _INTS(v)),
    "dot_algorithm": ("a dot algorithm", lambda v: isinstance(v, tuple) and len(v) == 7),
    "result_accuracy": ("a result accuracy", lambda v: isinstance(v, str) and v.split(" ")[0] in _ACCURACIES),
    "struct": ("a struct of dimension numbers", lambda v: isinstance(v, Spread)),
}
_ACCURACIES = schema.ENUMS["result_accuracy_mode"]
