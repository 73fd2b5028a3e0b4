"""Choices of strategies that somebody else may make: a user (pins) or a measurement (`hilo tune`). Imports ir.

A strategy asks `choose("dot_general.tile", its_own_choice, among)` and takes what it gets. Who wins, in this order: the
attribute `hilo.pin` of an op, the pins of the module (`Options.pin`), what was tuned, the strategy. What was asked is
noted in the kernel (`Lowered.choices`), so that nothing else lists which knobs a kernel has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Error
from hilo.ir.module import Function
from hilo.ir.op import Array, Op
from hilo.ir.types import Results
from hilo.record import field, record

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T", bool, int, tuple[int, ...])

ATTRIBUTE: Final = "hilo.pin"


@record(frozen=True)
class Knob:
    """`exact`: every value of it gives the same bits."""

    doc: str
    values: str
    exact: bool


KNOBS: Final[dict[str, Knob]] = {
    "contraction.tile": Knob("rows x columns of the result that stay in registers", "e.g. 8x48", False),
    "contraction.kc": Knob("how much of k is summed up before the next tile", "a number up to k", False),
    "contraction.units": Knob("about how many parallel units there are", "1 to 64", False),
    "contraction.pack": Knob("panels of B that are copied together before use; 0: B is read where it lies",
                             "0, 1, 2, 4", False),
    "contraction.split": Knob("how much of k one unit sums up; the sums of units are added in order",
                              "a number up to k", False),
    "contraction.walk": Knob("the walk over tiles: convolutions, products by bound matrices or of few rows; off: the "
                             "plain kernels",
                             "on, off", False),
    "rows.unroll": Knob("vectors side by side in a reduction or a row region", "1, 2, 4, 8, 16", False),
    "rows.together": Knob("places that a reduction across long rows takes together, in panels; 0: no panels",
                          "0, 2, 4, 8", False),
    "rows.chunk": Knob("elements of a long reduction that one unit does; 0: all", "a number", False),
    "loop.unroll": Knob("vectors side by side in an elementwise loop", "1, 2, 4, 8, 16", True),
    "loop.stream": Knob("stores past the caches", "on, off", True),
    "attention.rows": Knob("rows of the scores that are computed together", "a number", True),
    "attention": Knob("product, softmax, product as one kernel, by blocks of rows", "on, off", True),
}  # fmt: skip


@record(frozen=True)
class Choice:
    """What a kernel asked and got. `among`: further values worth trying; `how`: "", "pinned" or "tuned"."""

    knob: str
    value: Any
    among: tuple[Any, ...]
    how: str = ""

    def __str__(self) -> str:
        return f"{self.knob}={shown(self.value)}{f' ({self.how})' if self.how else ''}"


Lookup = Callable[[Op], Mapping[str, str]]


@record
class _Asked:
    """What holds for the kernel that is being made, and what it has asked so far."""

    pins: Mapping[str, str]
    tuned: Mapping[str, str]
    op: Op
    kind: str  # of the contraction that it is, if it is one
    lenient: bool  # it has several contractions: what does not fit one may fit another
    made: dict[str, Choice] = field(default_factory=dict)


#: Ops whose kernels are contractions: `dot_general.tile` is `contraction.tile` for these alone.
CONTRACTIONS: Final = ("dot_general", "convolution")


def general(knob: str) -> str:
    """The knob that a name for one kind of contraction means."""
    kind, _, rest = knob.partition(".")
    return f"contraction.{rest}" if kind in CONTRACTIONS else knob


_MODULE: ContextVar[Mapping[str, str]] = ContextVar("pins of the module", default={})  # noqa: B039
_TUNED: ContextVar[Lookup | None] = ContextVar("values found by measuring", default=None)
_UNASKED: ContextVar[bool] = ContextVar("plans that are only looked at", default=False)
_MEASURED: ContextVar[Lookup | None] = ContextVar("values being measured", default=None)
_KERNEL: ContextVar[_Asked | None] = ContextVar("the kernel being made", default=None)


def shown(value: Any) -> str:
    """A value as it is written in a pin."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse(text: str, what: str, prefix: str = "") -> dict[str, str]:
    """Pins written as "knob=value, knob=value". A knob without a dot is one of `prefix`. Raises `Error` for another."""
    found: dict[str, str] = {}
    for part in text.replace(";", ",").split(","):
        if not part.strip():
            continue
        name, equals, value = (x.strip() for x in part.partition("="))
        if prefix and "." not in name and name not in KNOBS:
            name = f"{prefix}.{name}"
        if general(name) not in KNOBS:
            own = [k for k in KNOBS if k.startswith(f"{general(prefix + '.')}")] if prefix else []
            raise Error(f"{what}: there is no knob {name!r}; there are {', '.join(own or KNOBS)}")
        if not equals or not value:
            raise Error(f"{what}: {part.strip()!r} gives no value; {name} takes {KNOBS[general(name)].values}")
        found[name] = value
    return found


@contextmanager
def pinned(pins: Mapping[str, str], tuned: Lookup | None = None) -> Iterator[None]:
    """Kernels made in the block follow `pins`, and what `tuned` says of their op."""
    tokens = _MODULE.set(pins), (_TUNED.set(tuned) if tuned is not None else None)
    try:
        yield
    finally:
        _MODULE.reset(tokens[0])
        if tokens[1] is not None:
            _TUNED.reset(tokens[1])


@contextmanager
def measured(tuned: Lookup) -> Iterator[None]:
    """Kernels made in the block take the values that `tuned` gives, instead of those that were kept."""
    token = _MEASURED.set(tuned)
    try:
        yield
    finally:
        _MEASURED.reset(token)


@contextmanager
def kernel_of(op: Op) -> Iterator[dict[str, Choice]]:
    """What the kernel of `op` asks while the block makes it. Kernels made on the way are part of it."""
    outer, lookup = _KERNEL.get(), _MEASURED.get() or _TUNED.get()
    if outer is not None:
        yield outer.made
        return
    kinds = [k for k in map(_contraction, _ops(op)) if k]
    asked = _Asked(of_op(op), {} if lookup is None else lookup(op), op, kinds[0] if kinds else "", len(kinds) > 1)
    token = _KERNEL.set(asked)
    try:
        yield asked.made
    finally:
        _KERNEL.reset(token)


def of_op(op: Op) -> dict[str, str]:
    """The pins in the attributes of an op, or of the ops of a fusion."""
    found: dict[str, str] = {}
    for o in _ops(op):
        text = o.attrs.get(ATTRIBUTE)
        if text is not None:
            what = f"{ATTRIBUTE} of {o.kind.full_name}"
            found.update(parse(str(text).strip().strip('"'), what, _contraction(o) or _PREFIXES.get(o.name, o.name)))
    return found


def _ops(op: Op) -> tuple[Op, ...]:
    """An op, and those in it if it is a fusion."""
    body = op.attrs.get("body")
    return (op, *body.ops) if op.kind.full_name == "hilo.fusion" and isinstance(body, Function) else (op,)


def _contraction(o: Op) -> str:
    """The kind of contraction that an op is, or nothing."""
    name = "dot_general" if o.name == "dot" else o.name
    return name if name in CONTRACTIONS else ""


_PREFIXES: Final = {"reduce": "rows"}  # an op's own knobs, where they are not called as it is


def choose(knob: str, chosen: T, among: Iterable[T], *, least: int = 0, most: int | None = None,
           step: int = 1) -> T:  # fmt: skip
    """The value of `knob` for the kernel that is being made: `chosen`, unless it is pinned or tuned.

    `among`: values worth trying. A pin may name one of these or, with `most`, any multiple of `step` from `least` to
    `most`. Raises `Error` for another; what was tuned is left aside then.
    """
    asked = _KERNEL.get()
    if _UNASKED.get():
        return chosen
    options = tuple(dict.fromkeys(among))
    own = knob.replace("contraction", asked.kind) if asked and asked.kind else knob
    value, how = chosen, ""
    module = _MODULE.get()
    for source, name in ((asked.pins if asked else {}, "pinned"), (module, "pinned"),
                         (asked.tuned if asked else {}, "tuned")):  # fmt: skip
        text = source.get(own, source.get(knob))
        if text is None:
            continue
        read = _read(text, chosen, options, least, most, step)
        if read is not None:
            value, how = read, name
            break
        if name == "pinned" and not (asked and asked.lenient):
            values = ", ".join(map(shown, dict.fromkeys((chosen, *options))))
            multiples = f" in steps of {step}" if step > 1 else ""
            numbers = f", or a number from {least} to {most}{multiples}" if most is not None else ""
            raise Error(f"pin {own}={text}: this kernel has no such choice; there are {values}{numbers}",
                        loc=asked.op.loc if asked else None, op=asked.op.kind.full_name if asked else None)
    if asked is not None:
        asked.made[own] = Choice(own, value, tuple(x for x in options if x != value), how)
    return value


@contextmanager
def unasked() -> Iterator[None]:
    """What strategies choose in the block is their own choice, and not noted: a plan that is only looked at."""
    token = _UNASKED.set(True)
    try:
        yield
    finally:
        _UNASKED.reset(token)


def _read(text: str, like: Any, options: tuple[Any, ...], least: int, most: int | None, step: int) -> Any:
    """The value that `text` names, or None."""
    for x in (like, *options):
        if shown(x) == text:
            return x
    if isinstance(like, int) and not isinstance(like, bool) and most is not None and text.isdecimal():
        return int(text) if least <= int(text) <= most and int(text) % step == 0 else None
    return None


# ---- what a kernel is, whatever program it is in
def content(op: Op) -> str:
    """A hash of what the kernel of `op` follows from: kind, attributes, types, which operands are equal or constant."""
    first = {o: i for i, o in reversed(list(enumerate(op.operands)))}
    operands = [(repr(o.type), first[o], o.name == "constant") for o in op.operands]
    from hashlib import sha256

    return sha256(f"{operands} {_op_text(op, {})}".encode()).hexdigest()


def _op_text(op: Op, numbers: Mapping[Op, int]) -> str:
    names = ",".join(str(numbers.get(o, "-")) for o in op.operands)
    attrs = ",".join(f"{k}={_value_text(v)}" for k, v in sorted(op.attrs.items()) if k != ATTRIBUTE)
    types = op.type.types if isinstance(op.type, Results) else (op.type,)
    return f"{op.kind.full_name}({names}){{{attrs}}}:{','.join(map(repr, types))}"


def _value_text(value: Any) -> str:
    if isinstance(value, Function):
        numbers = {o: i for i, o in enumerate(dict.fromkeys((*value.params, *value.ops)))}
        lines = [_op_text(o, numbers) for o in numbers]
        return "{" + ";".join([*lines, *(str(numbers[r]) for r in value.results)]) + "}"
    if isinstance(value, Array):
        from hashlib import sha256

        return f"{value.type!r}:{sha256(value.data.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({','.join(map(_value_text, value))})"
    return repr(value)
