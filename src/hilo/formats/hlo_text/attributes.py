"""Values of attributes in HLO text, by the kinds of `schema.ATTRIBUTES`. Imports its siblings and ir.

    kind        text                             value
    integers    {0,1}                            (0, 1)
    words       {highest,default}                ("highest", "default")
    slices      {[0:3:2], [1:8]}                 ((0, 3, 2), (1, 8, 1))
    padding     1_2x0_-1_1                       ((1, 2, 0), (0, -1, 1))
    groups      {{0,1},{2,3}} or [2,2]<=[4]T(0)  ((0, 1), (2, 3))
    window      {size=3x3 pad=1_1x0_0}           {"size": (3, 3), "pad": ((1, 1), (0, 0))}
    aliases     {{0}: (1, {2})}                  (((0,), 1, (2,), kind), ...)
    dictionary  {k="v", d={e = #f}}              Attrs(k="v", d="{e = #f}")
    config      "text" or {"json": 1}            "text" or '{"json": 1}'
    text        {replicated}                     "{replicated}"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text.lexer import quote
from hilo.formats.hlo_text.locations import parse_metadata
from hilo.formats.hlo_text.shapes import parse_shape, print_shape
from hilo.formats.mlir_text.attr_printer import by_type
from hilo.ir.op import Attrs

if TYPE_CHECKING:
    from hilo.formats.hlo_text.reader import Reader

_MAX_GROUPED: Final = 1 << 20  # devices in all replica groups
_WINDOW: Final = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def integers(r: Reader) -> tuple[int, ...]:
    r.expect("{")
    return tuple(r.comma_list("}", r.integer))


def flag(r: Reader) -> bool:
    token = r.tokens[r.at]
    if token not in ("true", "false", "1", "0"):
        raise r.expected("true or false")
    r.at += 1
    return token in ("true", "1")


def _number(r: Reader) -> float:
    try:
        value = float(r.tokens[r.at])
    except ValueError:
        raise r.expected("a number") from None
    r.at += 1
    return value


def word(r: Reader) -> str:
    token = r.tokens[r.at]
    if not token[:1].isalpha():
        raise r.expected("a word")
    r.at += 1
    return token


def _words(r: Reader) -> tuple[str, ...]:
    r.expect("{")
    return tuple(r.comma_list("}", lambda: word(r)))


def _names(r: Reader) -> tuple[str, ...]:
    r.expect("{")
    return tuple(r.comma_list("}", r.name))


def _slices(r: Reader) -> tuple[tuple[int, int, int], ...]:
    def one() -> tuple[int, int, int]:
        r.expect("[")
        start = r.integer()
        r.expect(":")
        limit = r.integer()
        stride = r.integer() if r.accept(":") else 1
        r.expect("]")
        return start, limit, stride

    r.expect("{")
    return tuple(r.comma_list("}", one))


def _separated(r: Reader, what: str) -> list[list[int]]:
    """`1_2x0_-1` as [[1, 2], [0, -1]]."""
    token = r.tokens[r.at]
    try:
        rows = [[int(n) for n in part.split("_")] for part in token.split("x")]
    except ValueError:
        raise r.expected(what) from None
    if any(abs(n) >= 1 << 63 for row in rows for n in row):
        raise r.error("a number that does not fit 64 bits")
    r.at += 1
    return rows


def _padding(r: Reader) -> tuple[tuple[int, int, int], ...]:
    if r.tokens[r.at] in (",", "", "}") or r.following() in ("=", "("):  # of rank 0: nothing
        return ()
    start = r.at
    rows = _separated(r, "a padding like 1_2x0_0_1")
    if any(len(row) not in (2, 3) for row in rows):
        raise r.error("padding is low_high or low_high_interior for each dimension", start)
    return tuple((row[0], row[1], row[2] if len(row) == 3 else 0) for row in rows)


def _window(r: Reader) -> dict[str, tuple[Any, ...]]:
    fields: dict[str, tuple[Any, ...]] = {}
    r.expect("{")
    while not r.accept("}"):
        start, key = r.at, word(r)
        if key not in _WINDOW or key in fields:
            raise r.error(f"'{key}' is no field of a window, or given twice", start)
        r.expect("=")
        rows = _separated(r, "numbers like 3x3")
        if any(len(row) != 1 + (key == "pad") for row in rows):
            raise r.error(f"{key} has {'two numbers' if key == 'pad' else 'one number'} for each dimension", start)
        fields[key] = tuple(tuple(row) if key == "pad" else row[0] for row in rows)
    ranks = {len(v) for v in fields.values()}
    if len(ranks) > 1:
        raise r.error("the fields of the window have several numbers of dimensions", r.at - 1)
    return fields


def _groups(r: Reader) -> tuple[tuple[int, ...], ...]:
    if r.tokens[r.at] == "[":
        return _iota_groups(r)
    if r.accept("mesh"):
        return _mesh_groups(r)
    r.expect("{")
    return tuple(r.comma_list("}", lambda: integers(r)))


def _iota_groups(r: Reader) -> tuple[tuple[int, ...], ...]:
    """`[groups,size]<=[dims]T(permutation)`: 0, 1, ... in shape `dims`, transposed, cut into groups."""
    start = r.at
    shape = r.integers()
    r.expect("<=")
    dims = r.integers()
    permutation = tuple(range(len(dims)))
    if r.tokens[r.at] == "T":
        r.at += 1
        r.expect("(")
        permutation = tuple(r.comma_list(")", r.integer))
    try:
        return iota_groups(shape, dims, permutation)
    except Error as e:
        raise r.error(e.message, start) from None


def iota_groups(shape: Sequence[int], dims: Sequence[int], permutation: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The groups that `[shape]<=[dims]T(permutation)` stands for. Raises `Error` where they do not fit each other."""
    import numpy as np

    if len(shape) != 2 or min(*shape, *dims, 1) < 0 or prod(shape) != prod(dims) or prod(dims) > _MAX_GROUPED:
        raise Error("the shapes of the replica groups do not fit each other")
    if sorted(permutation) != list(range(len(dims))):
        raise Error("the transposition of the replica groups is no permutation")
    numbers = np.arange(prod(dims)).reshape(dims).transpose(permutation).reshape(shape)
    return tuple(map(tuple, numbers.tolist()))


def _mesh_groups(r: Reader) -> tuple[tuple[int, ...], ...]:
    """`['x'=2,'y'=4] {'y'}` after `mesh`: the groups along axes of a mesh whose devices are numbered in order."""
    import numpy as np

    start = r.at
    sizes: dict[str, int] = {}

    def axis() -> None:
        name = r.string()
        r.expect("=")
        sizes[name] = r.integer()

    r.expect("[")
    r.comma_list("]", axis)
    if r.tokens[r.at] != "{":
        raise r.error("a mesh with an order of devices of its own is not supported", kind=Unsupported)
    r.expect("{")
    chosen = r.comma_list("}", r.string)
    if len(set(chosen)) != len(chosen) or not sizes.keys() >= set(chosen):
        raise r.error("the axes are not axes of the mesh", start)
    if min(sizes.values(), default=1) < 1 or prod(sizes.values()) > _MAX_GROUPED:
        raise r.error("the sizes of the mesh are not positive, or too large", start)
    names = list(sizes)
    order = [names.index(n) for n in (*(n for n in names if n not in chosen), *chosen)]
    numbers = np.arange(prod(sizes.values())).reshape(tuple(sizes.values())).transpose(order)
    return tuple(map(tuple, numbers.reshape(-1, prod(sizes[n] for n in chosen)).tolist()))


def aliases(r: Reader) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...], str], ...]:
    """`{ {output}: (operand, {part}[, kind]), ... }`"""

    def one() -> tuple[tuple[int, ...], int, tuple[int, ...], str]:
        output = integers(r)
        r.expect(":")
        r.expect("(")
        operand = r.integer()
        part = integers(r) if r.accept(",") else ()
        kind = word(r) if r.accept(",") else ""
        r.expect(")")
        return output, operand, part, kind

    r.expect("{")
    return tuple(r.comma_list("}", one))


def _dictionary(r: Reader) -> Attrs:
    items: dict[str, Any] = {}

    def one() -> None:
        start = r.at
        key = r.string() if r.tokens[r.at][:1] == '"' else word(r)
        if key in items:
            raise r.error(f"'{key}' is given twice", start)
        r.expect("=")
        items[key] = r.balanced() if r.tokens[r.at] == "{" else r.string()

    r.expect("{")
    r.comma_list("}", one)
    return Attrs(items)


def config(r: Reader) -> str:
    return r.string() if r.tokens[r.at][:1] in ("'", '"') else r.balanced()


def text(r: Reader) -> str:
    """Any bracketed piece, or one token, as it is."""
    return r.balanced() if r.tokens[r.at] in ("{", "(", "[") else r.take()


def _shapes(r: Reader) -> tuple[Any, ...]:
    r.expect("{")
    return tuple(r.comma_list("}", lambda: parse_shape(r, r.shapes)))


def _labels(r: Reader) -> str:
    token = r.tokens[r.at]
    if "->" not in token or "_" not in token:
        raise r.expected("dimension labels like b01f_01io->b01f")
    r.at += 1
    return token


PARSE: Final[dict[str, Callable[[Reader], Any]]] = {
    "integers": integers,
    "integer": lambda r: r.integer(),
    "number": _number,
    "flag": flag,
    "word": word,
    "string": lambda r: r.string(),
    "words": _words,
    "names": _names,
    "computation": lambda r: r.callee(),
    "computations": lambda r: r.callees(),
    "window": _window,
    "labels": _labels,
    "padding": _padding,
    "slices": _slices,
    "groups": _groups,
    "shape": lambda r: parse_shape(r, r.shapes),
    "shapes": _shapes,
    "aliases": aliases,
    "dictionary": _dictionary,
    "metadata": parse_metadata,
    "config": config,
    "text": text,
}


# -- printing -----------------------------------------------------------------------------------


def _braces(items: Any, separator: str = ",") -> str:
    return f"{{{separator.join(map(str, items))}}}"


def _print_window(w: dict[str, tuple[Any, ...]]) -> str:
    fields = []
    for key, values in w.items():
        shown = (f"{v[0]}_{v[1]}" if key == "pad" else str(int(v)) for v in values)
        fields.append(f"{key}={'x'.join(shown)}")
    return _braces(fields, " ")


def _print_padding(p: tuple[tuple[int, int, int], ...]) -> str:
    return "x".join(f"{low}_{high}_{inner}" if inner else f"{low}_{high}" for low, high, inner in p)


def _print_dictionary(d: Attrs) -> str:
    def key(k: str) -> str:
        plain = k.replace("_", "a").replace(".", "a").replace("-", "a")
        return k if plain.isascii() and plain.isalnum() and not k[0].isdecimal() and k[0] not in ".-" else quote(k)

    return _braces(f"{key(k)}={quote(by_type(v) if isinstance(v, Attrs) else str(v))}" for k, v in d.items())


def print_alias(output: tuple[int, ...], operand: int, part: tuple[int, ...], kind: str = "") -> str:
    return f"{_braces(output)}: ({operand}, {_braces(part)}{', ' if kind else ''}{kind})"


PRINT: Final[dict[str, Callable[[Any], str]]] = {
    "integers": _braces,
    "integer": str,
    "number": lambda v: repr(float(v)),
    "flag": lambda v: "true" if v else "false",
    "word": str,
    "string": quote,
    "words": _braces,
    "computation": str,
    "computations": lambda v: _braces(v, ", "),
    "window": _print_window,
    "labels": str,
    "padding": _print_padding,
    "slices": lambda v: _braces((f"[{a}:{b}:{c}]" if c != 1 else f"[{a}:{b}]" for a, b, c in v), ", "),
    "groups": lambda v: _braces(map(_braces, v)),
    "shape": print_shape,
    "shapes": lambda v: _braces(map(print_shape, v), ", "),
    "aliases": lambda v: _braces((print_alias(*a) for a in v), ", "),
    "dictionary": _print_dictionary,
    "metadata": str,
    "config": quote,
    "text": str,
}
