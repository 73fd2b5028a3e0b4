"""Constants in registers, and in memory behind the code. Imports loop, x86.machine.

A constant is described by a recipe (kind, length, what), equal for equal ones:

  ("number", size, value)           in a general register
  ("zero", 0, 0), ("ones", length, 0)    in a vector register
  ("load", length, label)           a whole vector register from memory
  ("splat", length, label)          one element from memory in all lanes
  ("mask", lanes, bits)             in a mask register

Labels of constants say their bytes: `data` reads them.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hilo.backend.x86.machine import GENERAL, MASK, NO, VECTOR, Draft
from hilo.loop.nodes import VType

if TYPE_CHECKING:
    from hilo.loop.nodes import Node

Recipe = tuple[str, int, Any]
MARK: Final = ".k"
_SPLATS: Final = {1: "vpbroadcastb", 2: "vpbroadcastw", 4: "vbroadcastss", 8: "vbroadcastsd"}
_SCALARS: Final = {4: "vmovss", 8: "vmovsd"}


def label(data: bytes) -> str:
    """The label of a constant in memory."""
    return MARK + data.hex()


def data(name: str) -> bytes:
    """The bytes that a label stands for."""
    return bytes.fromhex(name[len(MARK) :])


def encoded(value: Any, scalar: str) -> bytes:
    """A number as it lies in memory."""
    if scalar[0] == "f":
        if scalar == "f32":
            try:
                return struct.pack("<f", value)
            except OverflowError:  # rounds to infinity
                return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
        return struct.pack("<d", value)
    size = 1 if scalar == "i1" else int(scalar[1:]) // 8
    return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")


def element(node: Node) -> str:
    """The label of a scalar constant, or of the element of a splat."""
    value = (node.args[0] if node.kind == "splat" else node).attrs["value"]
    return _element(value if value else repr(value), node.type.scalar)


@lru_cache(4096)
def _element(value: Any, scalar: str) -> str:
    return label(encoded(float(value) if isinstance(value, str) and scalar[0] == "f" else value, scalar))


def recipe(node: Node, part: int = 0) -> Recipe:
    """How a constant comes into a register; `part`: of a vector that takes several."""
    t = node.type
    if node.kind == "splat" or (t.lanes == 1 and node.kind == "const"):
        value = (node.args[0] if node.kind == "splat" else node).attrs["value"]
        return splat(value if value else repr(value), t)
    values = range(t.lanes) if node.kind == "iota" else node.attrs["value"]
    if t.scalar == "i1":
        return "mask", t.lanes, sum(1 << i for i, v in enumerate(values) if v)
    at = max(1, 64 // t.size)
    return _lanes(tuple(values[part * at : (part + 1) * at]), t.scalar)


def _lanes(values: tuple[Any, ...], scalar: str) -> Recipe:
    content = b"".join(encoded(v, scalar) for v in values)
    content += bytes(max(16 - len(content), 0))
    if not any(content):
        return "zero", 0, 0
    return "load", {16: 0, 32: 1, 64: 2}[len(content)], label(content)


@lru_cache(4096)
def splat(value: Any, t: VType) -> Recipe:
    """How a number, or one in all lanes, comes into a register."""
    number = float(value) if isinstance(value, str) and t.is_float else int(value) if not t.is_float else value
    if t.scalar == "i1" and t.lanes > 1:
        return "mask", t.lanes, (1 << t.lanes) - 1 if number else 0
    if t.lanes == 1 and not t.is_float:
        return "number", t.size, number
    content = encoded(number, t.scalar)
    if not any(content):
        return "zero", 0, 0
    if t.lanes == 1:
        return "scalar", t.size, label(content)
    size = t.lanes * t.size
    length = 0 if size <= 16 else 1 if size == 32 else 2
    return ("ones", length, 0) if all(b == 255 for b in content) else ("splat", length, label(content))


def class_of(key: Recipe) -> int:
    return {"number": GENERAL, "mask": MASK}.get(key[0], VECTOR)


def make(s: Draft, register: int, key: Recipe) -> None:
    """Append the instructions that put a constant into a register."""
    kind, length, what = key
    if kind == "number":
        s.g("mov", 4 if 0 <= what < 1 << 31 else 8, register, imm=what)
    elif kind == "zero":
        s.v("vxorps", 0, register, register, register)
    elif kind == "ones":
        s.v("vpternlogd", length, register, register, register, imm=255)
    elif kind == "load":
        s.v("vmovaps", length, register, NO, what)
    elif kind == "scalar":
        s.v(_SCALARS[length], 0, register, NO, what)
    elif kind == "splat":
        size = (len(what) - len(MARK)) // 2
        s.v(_SPLATS[size] if size < 8 or length else "vmovddup", length, register, NO, what)
    elif what == 0:
        s.v("kxorq", 0, register, register, register)
    elif what == (1 << length) - 1 and length in (8, 16, 32, 64):
        s.v({8: "kxnorb", 16: "kxnorw", 32: "kxnord", 64: "kxnorq"}[length], 0, register, register, register)
    else:
        t = s.new(GENERAL)
        s.g("mov", 4 if what < 1 << 31 else 8, t, imm=what if what < 1 << 63 else what - (1 << 64))
        s.v("kmovq_to", 0, register, NO, t)
