"""Structured control flow: loops, unrolled or not, and branches. Imports x86.machine, x86.constants.

A loop's carried values have one register each, from before the loop to behind it; so has the induction variable. What a
turn yields is written to these registers at once where nothing reads the old value any more (`Selector.wish`), and
moved there at the end of the turn otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import COLD, FOREVER, GENERAL, HEAD, NO, TAIL, WARM, Address
from hilo.backend.x86.select import parts_of
from hilo.backend.x86.select import registers as registers_of
from hilo.backend.x86.uses import is_constant
from hilo.loop.nodes import Block, Node

if TYPE_CHECKING:
    from hilo.backend.x86.select import Selector

OPPOSITE: Final = {"e": "ne", "ne": "e", "l": "ge", "ge": "l", "g": "le", "le": "g", "b": "ae", "ae": "b", "a": "be",
                   "be": "a", "p": "np", "np": "p", "s": "ns", "ns": "s", "o": "no", "no": "o"}  # fmt: skip


LARGE: Final = 1 << 31  # what fits into no instruction as a positive number


def structure(s: Selector, node: Node) -> Iterator[Iterator]:
    """Select for a structured node."""
    outermost = s.before is None and node not in s.seen.calls  # what calls keeps no constants in registers
    if outermost:
        s.before = []
        s.code.append(s.before)  # type: ignore[arg-type]
    yield from {"for": for_, "while": while_, "if": if_}[node.kind](s, node)
    if outermost:
        s.before = None
        s.held.clear()


# ---- what comes in and what goes on
def entered(s: Selector, node: Node) -> Any:
    """The registers of a carried value that begins as `node`: those of `node` itself if it is not needed any more."""
    value: Any = s.env.get(node)
    if value.__class__ is int:
        s.left[value] -= 1
        if s.dies(value):
            return value
        r = s.new(s.classes[value])
        s.move(r, value)
        return r
    if is_constant(node) and parts_of(node.type) == 1:
        key = constants.recipe(node)
        r = s.new(constants.class_of(key))
        constants.make(s, r, key)
        return r
    if value.__class__ is Address:
        a = s.affine(node)
        r = s.new(GENERAL)
        s.compute(r, a)
        return r
    parts = s.parts(node)
    if all(map(s.dies, parts)) and len(set(parts)) == len(parts):
        return parts if parts[1:] else parts[0]
    fresh = tuple(s.new(s.classes[p]) for p in parts)
    for r, p in zip(fresh, parts, strict=True):
        s.move(r, p)
    return fresh if fresh[1:] else fresh[0]


def registers(values: Sequence[Any]) -> list[int]:
    """All registers of some values."""
    return [r for v in values for r in (v if v.__class__ is tuple else (v,))]


def follow(s: Selector, block: Block, places: Sequence[Any]) -> None:
    """Let what `block` yields be written to its places at once, where that is possible."""
    for y, place in zip(block.yields, places, strict=True):
        if y.level == block.level and y.kind != "param" and y not in s.wish:
            s.wish[y] = place


def hand_on(s: Selector, block: Block, places: Sequence[Any]) -> None:
    """Put what `block` yields into its places, all at once."""
    for y in block.yields:
        s.wish.pop(y, None)
    moves: dict[int, int] = {}
    later: list[tuple[int, Node]] = []
    sums: list[tuple[int, Address]] = []
    for y, place in zip(block.yields, places, strict=True):
        value = s.env.get(y)
        if value.__class__ is Address:
            sums.append((place, s.affine(y)))
        elif value is None and is_constant(y) and place.__class__ is int:
            later.append((place, y))
        else:
            for to, source in zip(registers([place]), s.parts(y), strict=True):
                if to != source:
                    moves[to] = source
    written = set(moves) | {p for p, _ in sums} | {p for p, _ in later}
    for i, (place, a) in enumerate(sums):
        others = [r for j, (_, b) in enumerate(sums) if j != i for r in b[:2]]
        if (set(a[:2]) - {place}) & written or place in others or place in moves.values():
            moves[place] = s.materialize(a)  # reads what is written here, or another one reads this
        else:
            s.compute(place, a)
    parallel(s, moves)
    for place, y in later:
        constants.make(s, place, constants.recipe(y))


def parallel(s: Selector, moves: dict[int, int]) -> None:
    """Move registers, all at once."""
    while moves:
        read = set(moves.values())
        ready = [to for to in moves if to not in read]
        for to in ready:
            s.move(to, moves.pop(to))
        if not ready:  # circles
            to, source = next(iter(moves.items()))
            t = s.new(s.classes[source])
            s.move(t, source)
            moves[to] = t


def begin(s: Selector, params: Sequence[Node], values: Sequence[Any]) -> None:
    for p, v in zip(params, values, strict=True):
        s.give(p, v)


def leave(s: Selector, node: Node, outer: int, places: Sequence[Any]) -> None:
    """Behind a loop: its values are the outer region's."""
    s.region = outer
    for r in registers(places):
        s.home[r] = outer
        s.left[r] = 0
    s.structures[node] = list(places)


def inside(s: Selector, places: Sequence[Any]) -> int:
    """Begin a loop that carries values in `places`; gives the outer region."""
    outer = s.region
    s.regions += 1
    s.region = s.regions
    for r in registers(places):
        s.home[r] = s.region
        s.left[r] = 0
    return outer


# ---- structures
def operand(s: Selector, node: Node) -> tuple[int, int]:
    """An integer as (register, 0), or as (NO, number) if it fits into an instruction."""
    c = node.const
    return (s.use(node), 0) if c is None or not -(1 << 31) <= c < 1 << 31 else (NO, c)


def for_(s: Selector, node: Node) -> Iterator[Iterator]:
    lo, hi, step, *init = node.args
    unroll = max(1, node.attrs.get("unroll", 1))
    bound, stride = operand(s, hi), operand(s, step)
    held = [r for r, _ in (bound, stride) if r != NO]
    for r in held:  # they are read as long as the loop runs
        s.left[r] += 1
    places = [entered(s, v) for v in (lo, *init)]
    first, last = lo.const, hi.const
    turns_left = 0 if first is None or last is None else last - first
    ahead = (unroll - 1) * stride[1]
    fits = stride[0] == NO and ahead + stride[1] < LARGE and (bound[0] != NO or bound[1] - ahead >= -LARGE)
    if unroll > 1 and fits:
        limit = (NO, bound[1] - ahead)
        if bound[0] != NO:
            limit = (s.materialize(Address(bound[0], NO, 1, -ahead)), 0)
            s.left[limit[0]] = 1
        yield from turns(s, node, places, limit, stride, unroll, turns_left > ahead)
        s.expect(s.seen.outer(node.blocks[0]), 1)
        turns_left = 0
    yield from turns(s, node, places, bound, stride, 1, turns_left > 0)
    for r in held:
        s.left[r] -= 1


def turns(s: Selector, node: Node, places: Sequence[Any], limit: tuple[int, int], stride: tuple[int, int], copies: int,
          known: bool) -> Iterator[Iterator]:  # fmt: skip
    """A loop with `copies` of the body a turn; `known`: it is entered for sure."""
    (body,) = node.blocks
    iv, *carried = places
    size = node.args[0].type.size
    head, end = s.label(), s.label()
    if not known:
        s.g("cmp", size, iv, limit[0], limit[1] if limit[0] == NO else None)
        s.jump(end, "ge")
    outer = inside(s, places)
    s.left[iv] = FOREVER
    s.code.append((HEAD,))
    s.mark(head)
    current: list[Any] = list(carried)
    outer_uses = s.seen.outer(body) if copies > 1 else {}
    for k in range(copies):
        begin(s, body.params, [Address(iv, NO, 1, k * stride[1]) if k else iv, *current])
        if k == copies - 1:
            follow(s, body, carried)
        yield s.block(body)
        if k < copies - 1:
            current = [taken(s, y) for y in body.yields]
            s.expect(outer_uses, 1)
    hand_on(s, body, carried)
    s.g("add", size, iv, stride[0], stride[1] * copies if stride[0] == NO else None)
    s.g("cmp", size, iv, limit[0], limit[1] if limit[0] == NO else None)
    s.jump(head, "l")
    s.code.append((TAIL,))
    s.mark(end)
    leave(s, node, outer, places)
    s.structures[node] = carried


def taken(s: Selector, node: Node) -> Any:
    """A value that the next copy of a body goes on with: as it is, computed or not."""
    value: Any = s.env.get(node)
    if value.__class__ is Address:
        return s.affine(node)
    parts = s.parts(node)
    return parts if parts[1:] else parts[0]


def while_(s: Selector, node: Node) -> Iterator[Iterator]:
    test, body = node.blocks
    places = [entered(s, v) for v in node.args]
    outer = inside(s, places)
    head, end = s.label(), s.label()
    s.code.append((HEAD,))
    s.mark(head)
    begin(s, test.params, places)
    begin(s, body.params, places)
    for r in registers(places):  # which the loop's results are read from
        s.left[r] += 1
    yield s.block(test)
    s.jump(end, OPPOSITE[s.condition(test.yields[0])])
    for r in registers(places):
        s.left[r] -= 1
    follow(s, body, places)
    yield s.block(body)
    hand_on(s, body, places)
    s.jump(head)
    s.code.append((TAIL,))
    s.mark(end)
    leave(s, node, outer, places)


def if_(s: Selector, node: Node) -> Iterator[Iterator]:
    then, orelse = node.blocks
    condition = s.condition(node.args[0])
    first, second, end = s.label(), s.label(), s.label()
    rare = "rare" in node.attrs
    others = s.seen.outer(orelse)
    places = if_places(s, node, others)
    if rare:
        s.jump(first, condition)
        s.code.append((COLD,))
        s.mark(first)
    else:
        s.jump(second, OPPOSITE[condition])
    s.expect(others, -1)
    if rare:
        kept, s.before, s.held = (s.before, s.held), None, {}
        yield from branch(s, then, places)
        s.before, s.held = kept
    else:
        yield from branch(s, then, places)
    s.expect(others, 1)
    if rare:
        s.jump(end)
        s.code.append((WARM,))
    elif orelse.nodes or orelse.yields:
        s.jump(end)
    s.mark(second)
    yield from branch(s, orelse, places)
    s.mark(end)
    s.structures[node] = places


def if_places(s: Selector, node: Node, others: dict[Node, int]) -> list[Any]:
    """Where the values of a branch go: where they are wanted, if what is there is only read inside of the branches."""
    then = node.blocks[0]
    results = s.seen.results.get(node, {})
    wishes: list[Any] = [s.wish.get(results[i]) if i in results else None for i in range(len(then.yields))]
    inside: dict[int, int] = {}
    if any(w is not None for w in wishes):
        for outer in (others, s.seen.outer(then)):
            for a, count in outer.items():
                for r in registers_of(s.env.get(a)):
                    inside[r] = inside.get(r, 0) + count
    return [w if w.__class__ is int and s.left[w] == inside.get(w, 0) else s.places(y.type)
            for w, y in zip(wishes, then.yields, strict=True)]  # fmt: skip


def branch(s: Selector, block: Block, places: Sequence[Any]) -> Iterator[Iterator]:
    follow(s, block, places)
    yield s.block(block)
    hand_on(s, block, places)
