"""Index algebra: integer expressions over loop variables, kept simple under the variables' known ranges.

An `Index` is `const + sum(coefficient * atom)`. An atom is a loop variable, the lane number of a vector, a run-time
value, or a floor division of another index by a constant; `x % d` is `x - d * (x // d)`, so that splitting an index and
putting it together again cancels by itself. Reshape, transpose, slice, pad and broadcast then cost only addressing.
Indices are 64-bit. Imports ir.dims and the loop IR.

Sizes known only at run time (`ir.dims.Size`) take part: they are added, multiplied with and divided by like numbers,
and a variable knows the size that it stays `below`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Number, Size, lower
from hilo.later import Later
from hilo.loop.builder import I1, I64, Builder
from hilo.loop.nodes import Node

if TYPE_CHECKING:
    from hilo.loop import sizes
else:
    sizes = Later("hilo.loop.sizes")

_SMALL: Final = 1 << 31  # below: a vector's division by a constant is one multiplication and a shift


class Atom:
    """Something with a value in [lo, hi] that is a multiple of `multiple`.

    Either `node` (a scalar variable or a run-time value), or lane numbers 0..lanes-1 (`lanes` > 0; `base` is the
    variable that they count on from and `top` the largest base + lane), or (`Derived`) `inner // divisor`, or `inner *
    factor`, or a run-time `size` itself. `below`: a run-time size that the value (of a base: with its lanes) stays
    below.
    """

    __slots__ = ("base", "below", "divisor", "factor", "hi", "inner", "lanes", "lo", "multiple", "node", "size", "top")

    def __init__(
        self,
        lo: int,
        hi: int,
        *,
        node: Node | None = None,
        multiple: int = 1,
        lanes: int = 0,
        base: Atom | None = None,
        top: int = 0,
        inner: Index | None = None,
        divisor: Number = 1,
        factor: Size | None = None,
        size: Size | None = None,
        below: Size | None = None,
    ) -> None:
        self.lo = lo
        self.hi = hi
        self.node = node
        self.multiple = multiple
        self.lanes = lanes
        self.base = base
        self.top = top
        self.inner = inner
        self.divisor = divisor
        self.factor = factor
        self.size = size
        self.below = below

    @property
    def is_vector(self) -> bool:
        """Whether the value differs from lane to lane."""
        if self.inner is not None:
            return self.inner.is_vector
        return self.lanes > 0 or (self.node is not None and self.node.type.lanes > 1)


class Derived(Atom):
    """What is computed from another index, or a run-time size: equal by structure, where other atoms are themselves."""

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self.size) if self.inner is None else hash((self.inner, self.divisor, self.factor))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Derived):
            return False
        if self.inner is None:
            return self.size is not None and self.size is other.size
        return self.divisor == other.divisor and self.factor is other.factor and self.inner == other.inner


class Index:
    """An immutable integer expression; `lo` and `hi` (inclusive) bound its value. Equal by structure, hashable.

    Takes `+ -` with an Index or a number, `*`, `//` and `%` (floor) with a positive number (`*`: any). A number is an
    int or a run-time size.
    """

    __slots__ = ("_hash", "const", "hi", "lo", "terms")
    const: Final[int]
    terms: Final[dict[Atom, int]]
    lo: Final[int]
    hi: Final[int]

    def __init__(self, const: int, terms: dict[Atom, int], lo: int | None = None, hi: int | None = None) -> None:
        a, b = _interval(const, terms) if terms else (const, const)
        self.const = const  # type: ignore[misc]
        self.terms = terms  # type: ignore[misc]
        self.lo = a if lo is None or lo < a else lo  # type: ignore[misc]
        self.hi = b if hi is None or hi > b else hi  # type: ignore[misc]
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.const, frozenset(self.terms.items()))) if self.terms else hash(self.const)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, int):
            return not self.terms and self.const == other
        return isinstance(other, Index) and self.const == other.const and self.terms == other.terms

    @property
    def value(self) -> int | None:
        """The number that this index is, or None if it varies."""
        return None if self.terms else self.const

    @property
    def is_vector(self) -> bool:
        """Whether the value differs from lane to lane."""
        return bool([a for a in self.terms if a.lanes or a.is_vector])

    @property
    def multiple(self) -> int:
        """A number that divides every value (0 for the constant 0)."""
        m = abs(self.const)
        for a, c in self.terms.items():
            m = gcd(m, c * a.multiple)
        return m

    @property
    def lane_stride(self) -> int | None:
        """What one lane adds to the next: 0 if all are equal, None if they are not equally spaced."""
        stride = 0
        for a, c in self.terms.items():
            if a.lanes:
                stride += c
            elif a.is_vector:
                return None
        return stride

    def first_lane(self) -> Index:
        """The value in lane 0 of an index whose `lane_stride` is a number."""
        return Index(self.const, {a: c for a, c in self.terms.items() if not a.lanes}) if self.terms else self

    # ---- arithmetic
    def __add__(self, other: Index | Number) -> Index:
        if isinstance(other, int):
            return _bounded(self.const + other, self.terms, self.lo + other, self.hi + other) if other else self
        if isinstance(other, Size):
            from hilo.loop.size_index import of_size

            other = of_size(other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        terms = dict(self.terms)
        for a, c in other.terms.items():
            total = terms.get(a, 0) + c
            if total:
                terms[a] = total
            else:
                del terms[a]
        return Index(self.const + other.const, terms, self.lo + other.lo, self.hi + other.hi)

    def __mul__(self, factor: Number) -> Index:
        if isinstance(factor, Size):
            from hilo.loop.size_index import product

            return product(self, factor)
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        lo, hi = self.lo * factor, self.hi * factor
        if factor < 0:
            lo, hi = hi, lo
        return _bounded(self.const * factor, {a: c * factor for a, c in self.terms.items()}, lo, hi)

    def __sub__(self, other: Index | Number) -> Index:
        if isinstance(other, Index) and not other.terms:
            other = other.const
        return self + (-other if isinstance(other, int) else other * -1)

    def __neg__(self) -> Index:
        return self * -1

    def __radd__(self, other: Number) -> Index:
        return self + other

    def __rsub__(self, other: Number) -> Index:
        return self * -1 + other

    def __rmul__(self, factor: Number) -> Index:
        return self * factor

    def __floordiv__(self, d: Number) -> Index:
        if isinstance(d, Size):
            from hilo.loop.size_index import quotient

            return quotient(self, d)
        assert d > 0
        if d == 1:
            return self
        low, high = self.lo // d, self.hi // d
        if low == high:
            return constant(low)
        if len(self.terms) == 1 and not self.const:
            ((a, c),) = self.terms.items()
            if c == 1 and a.multiple == 1 and (a.inner is None or a.factor is not None):  # a plain variable
                return _bounded(0, {Derived(low, high, inner=self, divisor=d): 1}, low, high)
        exact: dict[Atom, int] = {}  # terms that d divides
        rest: dict[Atom, int] = {}
        aligned: dict[Atom, int] = {}  # terms whose value, but not whose coefficient, d divides
        for a, c in self.terms.items():
            (exact if c % d == 0 else aligned if c * a.multiple % d == 0 else rest)[a] = c
        for a, c in list(aligned.items()):  # lanes count on from their base: keep them together where that helps
            if any(x.base is a and rest[x] == c for x in rest):
                lo, hi = _interval(0, {a: c, **rest})
                if lo // d == hi // d:
                    rest[a] = aligned.pop(a)
        out = Index(self.const // d, {a: c // d for a, c in exact.items()})
        for a, c in aligned.items():
            out = out + _divide(Index(0, {a: c}), d)
        out = out + _divide(Index(self.const % d, rest), d)
        return Index(out.const, out.terms, low, high)

    def __mod__(self, d: Number) -> Index:
        return self.split(d)[1]

    def split(self, d: Number) -> tuple[Index, Index]:
        """The quotient and the remainder by a positive number."""
        quotient = self // d
        rest = self - quotient * d
        if isinstance(d, Size):
            return quotient, rest
        assert d > 0
        if self.lo // d == self.hi // d:
            return quotient, rest
        return quotient, Index(rest.const, rest.terms, 0, d - 1)

    def __repr__(self) -> str:
        parts = []
        for a, c in self.terms.items():
            text = f"({a.inner!r})//{a.divisor}" if a.inner is not None else "lane" if a.lanes else f"v{id(a) % 1000}"
            if a.size is not None:
                text = repr(a.size)
            elif a.factor is not None:
                text = f"({a.inner!r})*({a.factor!r})"
            parts.append(text if c == 1 else f"{c}*{text}")
        return " + ".join([*parts, str(self.const)] if self.const or not parts else parts)


def _bounded(const: int, terms: dict[Atom, int], lo: int, hi: int) -> Index:
    """An index whose bounds are known to be no wider than its terms'."""
    x = Index.__new__(Index)
    x.const, x.terms, x.lo, x.hi, x._hash = const, terms, lo, hi, None  # type: ignore[misc]
    return x


def _interval(const: int, terms: dict[Atom, int]) -> tuple[int, int]:
    """The bounds of a sum; a lane and its base with one coefficient count as one value."""
    lo = hi = const
    for a, c in terms.items():
        low, high = a.lo, a.hi
        if a.base is not None and terms.get(a.base) == c:
            low, high = 0, a.top - a.base.hi
        if c > 0:
            lo += c * low
            hi += c * high
        else:
            lo += c * high
            hi += c * low
    return lo, hi


def _divide(x: Index, d: int) -> Index:
    """x // d where no single term of x is a multiple of d."""
    if x.lo // d == x.hi // d:
        return constant(x.lo // d)
    # Terms in multiples of g, and a remainder that stays inside [0, g): the remainder cannot change the quotient.
    for g in sorted({gcd(c * a.multiple, d) for a, c in x.terms.items()}, reverse=True):
        if g == 1:
            break
        coarse = {a: c for a, c in x.terms.items() if c * a.multiple % g == 0}
        fine = Index(x.const, {a: c for a, c in x.terms.items() if a not in coarse})
        k = fine.lo // g
        if k != fine.hi // g:
            continue
        if all(c % g == 0 for c in coarse.values()):
            return Index(k, {a: c // g for a, c in coarse.items()}) // (d // g)
        x = Index(k * g, coarse)
        if x.lo // d == x.hi // d:
            return constant(x.lo // d)
        break
    if x.const == 0 and len(x.terms) == 1:
        (a, c), *_ = x.terms.items()
        if c == 1 and a.inner is not None and a.factor is None and isinstance(a.divisor, int):  # (y // a) // d
            return a.inner // (a.divisor * d)
    m = x.multiple
    one = Derived(x.lo // d, x.hi // d, inner=x, divisor=d, multiple=m // d if m % d == 0 and m else 1)
    return Index(0, {one: 1})


def is_inside(x: Index, n: Number) -> bool:
    """Whether x is surely in [0, n)."""
    if isinstance(n, int):
        return x.lo >= 0 and x.hi < n
    from hilo.loop.size_index import largest

    return x.lo >= 0 and lower(n - 1 - largest(x)) >= 0


# ---- making indices
def constant(value: int) -> Index:
    """The index that is always `value`."""
    return _bounded(value, {}, value, value)


ZERO: Final = constant(0)


def loop_var(node: Node, lo: int, hi: Number, multiple: int = 1) -> Index:
    """A scalar i64 loop variable with values in [lo, hi), all multiples of `multiple`."""
    if node.const is not None or hi - lo == 1:
        return constant(lo if node.const is None else node.const)
    if isinstance(hi, Size):
        top = max(lo, (hi.hi - 1) // multiple * multiple)
        return Index(0, {Atom(lo, top, node=node, multiple=multiple, below=hi): 1})
    return Index(0, {Atom(lo, max(lo, (hi - 1) // multiple * multiple), node=node, multiple=multiple): 1})


def vector_var(node: Node, lanes: int, lo: int, hi: int, multiple: int = 1, top: int | None = None,
               below: Size | None = None) -> Index:  # fmt: skip
    """`node + lane` for the lanes of a vector; node's values in [lo, hi) are multiples of `multiple`.

    `top` bounds the sum (exclusive) where the last vector is masked: values of lanes beyond it do not matter. So does
    `below`, a run-time size.
    """
    if lanes == 1:
        return loop_var(node, lo, hi if below is None else below, multiple)
    if node.const is not None:
        last = lanes - 1 if top is None else min(lanes, top - node.const) - 1
        return lane_numbers(lanes, last + 1) + node.const
    base = Atom(lo, max(lo, (hi - 1) // multiple * multiple), node=node, multiple=multiple, below=below)
    last = base.hi + lanes - 1
    top = last if top is None else min(last, top - 1)
    lane = Atom(0, lanes - 1, lanes=lanes, base=base, top=top)
    return Index(0, {base: 1, lane: 1})


def lane_numbers(lanes: int, count: int | None = None) -> Index:
    """0, 1 ... in the lanes of a vector, of which the first `count` matter."""
    return Index(0, {Atom(0, (count or lanes) - 1, lanes=lanes): 1}) if lanes > 1 else ZERO


def from_node(b: Builder, node: Node, lo: int, hi: Number) -> Index:
    """An index known only at run time (e.g. loaded): an integer node whose value the caller keeps in [lo, hi)."""
    if isinstance(hi, Size):
        if node.type.scalar != "i64":
            node = b.convert("sext", node, "i64")
        return Index(0, {Atom(lo, max(lo, hi.hi - 1), node=node, below=hi): 1})
    if hi - lo == 1:
        return constant(lo)
    if node.const is not None and node.type.scalar == "i64":
        return constant(node.const)
    if node.type.scalar != "i64":
        node = b.convert("sext", node, "i64")
    return Index(0, {Atom(lo, hi - 1, node=node): 1})


# ---- shapes
def linear(indices: Iterable[Index], shape: Sequence[int]) -> Index:
    """The row-major position of `indices` in `shape`."""
    out = ZERO
    for ix, n in zip(indices, shape, strict=True):
        out = out * n + ix if out is not ZERO else ix
    return out


def delinear(position: Index, shape: Sequence[int]) -> list[Index]:
    """The indices at the row-major `position` in `shape` (inverse of `linear`)."""
    out: list[Index] = []
    for n in reversed(shape[1:]):
        n = max(n, 1) if isinstance(n, int) else n
        position, rest = position.split(n)
        out.append(rest)
    if shape:
        out.append(position)
    return out[::-1]


# ---- making loop IR
def node(b: Builder, ix: Index) -> Node:
    """The i64 value of `ix`: a scalar, or a vector if it differs from lane to lane."""
    scalar = b.i64(ix.const)
    vector: Node | None = None
    for a, c in ix.terms.items():
        n = a.node
        if n is None or a.lanes:
            n = atom(b, a)
        if c != 1:
            n = b.mul(n, c)
        if n.type.lanes > 1:
            vector = n if vector is None else b.add(vector, n)
        else:
            scalar = b.add(scalar, n)
    return scalar if vector is None else b.add(vector, scalar)


def atom(b: Builder, a: Atom) -> Node:
    """The i64 value of an atom: a vector if it differs from lane to lane."""
    if a.lanes:
        return b.iota(I64.with_lanes(a.lanes))
    if a.size is not None:
        return sizes.node(b, a.size)
    if a.inner is None:
        assert a.node is not None
        return a.node
    if a.factor is not None:
        return b.mul(node(b, a.inner), sizes.node(b, a.factor))
    d = a.divisor
    if isinstance(d, Size):
        return _floor(b, node(b, a.inner), b.smax(sizes.node(b, d), 1), a.inner.lo < 0)
    if d & (d - 1) == 0:
        return b.binary("ashr", node(b, a.inner), d.bit_length() - 1)
    shift = max(0, -(a.inner.lo // d))  # bring negative values to the right of zero: floor, not truncation
    x = node(b, a.inner + shift * d)
    if x.type.lanes > 1 and a.inner.hi + shift * d < _SMALL:
        s = 31 + d.bit_length()
        q = b.lshr(b.mul(x, (1 << s) // d + 1), s)
    else:
        q = b.binary("udiv", x, d)
    return b.sub(q, shift)


def _floor(b: Builder, x: Node, d: Node, negative: bool) -> Node:
    """x // d for a positive d; `negative`: x may be so."""
    if not negative:
        return b.binary("udiv", x, d)
    q = b.binary("sdiv", x, d)
    return b.sub(q, b.convert("zext", b.cmp("slt", b.sub(x, b.mul(q, d)), 0), "i64"))


def in_range(b: Builder, ix: Index, lo: Number, hi: Number) -> Node:
    """Whether lo <= ix < hi, as i1 (per lane if `ix` differs from lane to lane); constant where that is known."""
    if isinstance(lo, Size) or isinstance(hi, Size):
        from hilo.loop.size_index import in_size_range

        return in_size_range(b, ix, lo, hi)
    if ix.lo >= lo and ix.hi < hi:
        return b.const(1, I1)
    if ix.hi < lo or ix.lo >= hi:
        return b.const(0, I1)
    if ix.lo >= lo:
        return b.cmp("slt", node(b, ix), hi)
    if ix.hi < hi:
        return b.cmp("sge", node(b, ix), lo)
    return b.cmp("ult", node(b, ix - lo), hi - lo)
