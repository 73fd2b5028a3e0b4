"""What the functions that select vector instructions share: operands by parts, constants, pieces of registers.

Imports x86.select and its neighbours. A vector of more than 64 bytes lies in several registers, its parts; a mask in
one register whatever its lanes, of which a part of a vector takes its own bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import MASK, NO, VECTOR, Address
from hilo.backend.x86.select import length, parts_of, registers
from hilo.backend.x86.shuffles import Plan, length_of, plan
from hilo.loop.nodes import Node, VType
from hilo.record import replace

if TYPE_CHECKING:
    from hilo.backend.x86.select import Selector

Source = tuple["int | Address | str", bool]  # what may stand last in an instruction, and whether that is one lane

#: Suffixes of instructions by bytes of a lane.
INT: Final = {1: "b", 2: "w", 4: "d", 8: "q"}
PACKED: Final = {4: "ps", 8: "pd"}
SINGLE: Final = {4: "ss", 8: "sd"}
#: Suffixes of instructions on masks, by lanes.
MASKS: Final = {1: "b", 2: "b", 4: "b", 8: "b", 16: "w", 32: "d", 64: "q"}
_BLEND: Final = {1: "vpblendmb", 2: "vpblendmw", 4: "vpblendmd", 8: "vpblendmq"}
_FLOAT_BLEND: Final = {4: "vblendmps", 8: "vblendmpd"}
_MASKED_MOVE: Final = {1: "vmovdqu8", 2: "vmovdqu16", 4: "vmovdqu32", 8: "vmovdqu64"}
_FLOAT_MASKED_MOVE: Final = {4: "vmovups", 8: "vmovupd"}


def blend(t: VType) -> str:
    """The instruction that takes lanes of its last operand where a mask is set, of the other one elsewhere."""
    return _FLOAT_BLEND[t.size] if t.is_float else _BLEND[t.size]


def masked_move(t: VType) -> str:
    """The instruction that moves or loads lanes by a mask."""
    return _FLOAT_MASKED_MOVE[t.size] if t.is_float else _MASKED_MOVE[t.size]


def broadcast_of(t: VType) -> str:
    """The instruction that loads one element for all lanes of a vector."""
    if t.is_float:
        return "vbroadcastss" if t.size == 4 else "vbroadcastsd" if t.lanes > 2 else "vmovddup"
    return "vpbroadcast" + INT[t.size]


def suffix(t: VType) -> str:
    """ps, pd, ss, sd for floats, b, w, d, q for integers."""
    return (PACKED if t.lanes > 1 else SINGLE)[t.size] if t.is_float else INT[t.size]


def part_type(t: VType) -> VType:
    """The type of one part of a vector."""
    n = parts_of(t)
    return t if n == 1 else t.with_lanes(t.lanes // n)


# ---- constants
def known(s: Selector, data: bytes) -> int:
    """A vector register with these bytes, 16, 32 or 64 of them."""
    if not any(data):
        return s.keep(("zero", 0, 0))
    return s.keep(("load", length_of(len(data)), constants.label(data)))


def numbers(values: Sequence[int], size: int) -> bytes:
    """Integers as they lie in memory."""
    return b"".join((v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in values)


def everywhere(s: Selector, value: int, size: int, bytes_: int) -> int:
    """A vector register of `bytes_` bytes with an integer of `size` bytes in all lanes."""
    data = numbers((value,), size)
    if not any(data):
        return s.keep(("zero", 0, 0))
    if all(b == 255 for b in data):
        return s.keep(("ones", length_of(bytes_), 0))
    return s.keep(("splat", length_of(bytes_), constants.label(data)))


def pattern(s: Selector, bits: int, t: VType) -> tuple[int | str, bool]:
    """Bits for every lane of a vector or a scalar of 4 or 8 bytes: in memory, or in a register where they are used
    again and again."""
    if s.before is None:
        return constants.label(bits.to_bytes(t.size, "little")), True
    return everywhere(s, bits, t.size, min(64, max(16, t.lanes * t.size))), False


def bits(s: Selector, value: int, lanes: int) -> int:
    """A mask register with constant bits."""
    return s.keep(("mask", lanes, value))


def zero(s: Selector) -> int:
    return s.keep(("zero", 0, 0))


# ---- operands
def folds(t: VType) -> bool:
    """Whether a vector in memory may be an operand: instructions read 16 bytes at least."""
    return t.lanes == 1 or t.lanes * t.size >= 16


def last(s: Selector, node: Node) -> Source:
    """A value of one part as the last operand of an instruction on its lanes."""
    t = node.type
    if (not folds(t) and node in s.lazy) or (t.size < 4 and node.const is not None):
        return s.use(node), False
    return s.source(node)


def lasts(s: Selector, node: Node) -> Sequence[Source]:
    """The parts of a value as last operands of instructions."""
    t = node.type
    if t.scalar == "i1" or t.lanes * t.size <= 64:
        return (last(s, node),)
    if node in s.lazy and node.kind == "load" and len(node.args) == 1:
        base, index, scale, disp = s.affine(node.args[0])
        return [(Address(base, index, scale, disp + 64 * i), False) for i in range(parts_of(t))]
    if t.size >= 4 and node.const is not None:
        return (last(s, node),) * parts_of(t)
    return [(r, False) for r in parts(s, node)]


def parts(s: Selector, node: Node) -> tuple[int, ...]:
    """The registers of a value, of constants with lanes that differ, too."""
    n = parts_of(node.type)
    if n > 1 and (node.kind == "iota" or node.kind == "const") and node not in s.env:
        return tuple(s.keep(constants.recipe(node, i)) for i in range(n))
    return s.parts(node)


def drop(s: Selector, node: Node) -> None:
    """Count a use that is none."""
    for r in registers(s.env.get(node)):
        s.left[r] -= 1


def is_memory(s: Selector, node: Node) -> bool:
    """Whether a value is better last: it is a constant or a load that waits for its use."""
    return node.const is not None or (node in s.lazy and node.kind == "load")


def value(registers: Sequence[int]) -> int | tuple[int, ...]:
    """A node's value, of its parts."""
    return registers[0] if len(registers) == 1 else tuple(registers)


# ---- pieces of registers
def follow(s: Selector, p: Plan, a: int, b: int, to: int, floats: bool) -> int:
    """Append what a plan says about sources `a` and `b`; gives the register with the result: `to`, or `a` itself."""
    form, name, size = p.form, p.name, p.length
    if form == "same":
        return a
    if form == "one":
        s.v(name, size, to, NO, a)
    elif form == "imm":
        s.v(name, size, to, NO, a, imm=p.imm)
    elif form == "two":
        s.v(name, size, to, a, b)
    elif form == "swapped":
        s.v(name, size, to, b, a)
    elif form == "two_imm":
        s.v(name, size, to, a, b, imm=p.imm)
    elif form == "index":
        s.v(name, size, to, known(s, numbers(p.where, p.size)), a)
    elif form == "bytes":
        s.v(name, size, to, a, known(s, numbers(p.where, 1)))
    elif form == "blend":
        t = VType(("f" if floats and p.size > 2 else "i") + str(8 * p.size))
        s.v(blend(t), size, to, a, b, mask=bits(s, p.imm, (16 << size) // p.size))
    elif form == "table":
        index = known(s, numbers(p.where, p.size))
        made = s.new(VECTOR)
        s.move(made, a, 16 << size)
        s.v(name, size, made, index, b)
        return made
    else:
        both = s.new(VECTOR)
        joined = follow(s, replace(p, form="two_imm" if p.imm else "two"), a, b, both, floats)
        assert p.then is not None
        return follow(s, p.then, joined, joined, to, floats)
    return to


def piece(s: Selector, register: int, at: int, bytes_: int, floats: bool = False) -> int:
    """A register that begins with the bytes from `at` on of another one."""
    if not at:
        return register
    size = 8
    while at % size or bytes_ % size:
        size //= 2
    p = plan(size, 64 // size, tuple(range(at // size, (at + bytes_) // size)), floats)
    assert p is not None
    return follow(s, p, register, register, s.new(VECTOR), floats)


def join(s: Selector, pieces: Sequence[int], bytes_: int, floats: bool = False) -> list[int]:
    """Pieces of `bytes_` bytes each, put together to full registers (or to one that is not full)."""
    pieces = list(pieces)
    while len(pieces) > 1 and bytes_ < 64:
        p = plan(bytes_ if bytes_ <= 8 else 8, max(1, bytes_ // 8), tuple(range(2 * max(1, bytes_ // 8))), floats)
        assert p is not None
        pieces = [follow(s, p, a, b, s.new(VECTOR), floats) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        bytes_ *= 2
    return pieces


# ---- masks
def mask_part(s: Selector, mask: int, lanes: int, part: int, parts: int) -> int:
    """The mask register whose lowest bits are those of a vector's part."""
    if not part:
        return mask
    r = s.new(MASK)
    s.v("kshiftr" + MASKS[lanes], 0, r, NO, mask, imm=part * (lanes // parts))
    return r


def join_masks(s: Selector, masks: Sequence[int], lanes: int) -> int:
    """One mask of several of `lanes` lanes each, 8 at least."""
    masks = list(masks)
    while len(masks) > 1:
        name = {8: "kunpckbw", 16: "kunpckwd", 32: "kunpckdq"}[lanes]
        joined = []
        for low, high in zip(masks[::2], masks[1::2], strict=True):
            r = s.new(MASK)
            s.v(name, 0, r, high, low)
            joined.append(r)
        masks, lanes = joined, 2 * lanes
    return masks[0]


def clean(s: Selector, node: Node) -> int:
    """The mask of an operand, with no bits beyond its lanes."""
    known_clean = is_clean(node, 8)
    r = s.use(node)
    return r if known_clean else cut(s, r, node.type.lanes)


def cut(s: Selector, r: int, lanes: int) -> int:
    """A mask register without the bits beyond `lanes`."""
    out = s.new(MASK)
    if lanes in (8, 16, 32):
        s.v("kmov" + MASKS[lanes], 0, out, NO, r)
    elif lanes < 8:
        s.v("kandb", 0, out, r, bits(s, (1 << lanes) - 1, lanes))
    else:
        return r
    return out


def is_clean(node: Node, depth: int) -> bool:
    """Whether nothing is in a mask's bits beyond its lanes, as far as that is seen at once."""
    kind = node.kind
    if node.type.lanes == 64 or node.const is not None or kind == "const":
        return True
    if kind == "cmp":
        t = node.args[0].type
        return t.scalar != "i1" and t.lanes * t.size >= 16
    if kind == "load":
        return True
    if depth and kind == "and":
        return any(is_clean(a, depth - 1) for a in node.args)
    return depth > 0 and kind == "or" and all(is_clean(a, depth - 1) for a in node.args)


def length_of_part(t: VType) -> int:
    return length(part_type(t))

