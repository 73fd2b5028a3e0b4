"""Writing LLVM IR text: types, numbers, names, and the `Writer` that instructions are appended to."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from math import inf

from hilo.backend.target import Target
from hilo.loop.nodes import Node, VType

SCALARS = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "f32": "float", "f64": "double",
            "ptr": "ptr", "void": "void"}  # fmt: skip


@cache
def type_text(t: VType) -> str:
    scalar = SCALARS[t.scalar]
    return scalar if t.lanes == 1 else f"<{t.lanes} x {scalar}>"


@cache
def suffix(t: VType) -> str:
    """How intrinsics spell a type: f32, v8i32 ..."""
    return t.scalar if t.lanes == 1 else f"v{t.lanes}{t.scalar}"


def symbol(name: str) -> str:
    if name.isascii() and name.replace(".", "_").replace("$", "_").isidentifier():
        return "@" + name
    quoted = "".join(chr(c) if chr(c).isalnum() and c < 128 else f"\\{c:02X}" for c in name.encode())
    return f'@"{quoted}"'


def number(value: int | float | bool, scalar: str) -> str:
    """A scalar constant. Floats are written as the bits of a double, rounded to f32 first where that is the type."""
    if scalar == "i1":
        return "true" if value else "false"
    if scalar[0] == "i":
        return str(int(value))
    value = float(value)
    if scalar == "f32":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = inf if value > 0 else -inf
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class ModuleWriter:
    """What the functions of one module share."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.defined: set[str] = set()
        self.declared: dict[str, str] = {}  # symbol -> its declaration
        self.data: dict[tuple[int, ...], str] = {}  # constant i64s -> their symbol

    def declare(self, name: str, result: str, params: Iterable[str]) -> str:
        if name not in self.declared:
            self.declared[name] = f"declare {result} {symbol(name)}({', '.join(params)})"
        return symbol(name)


class Writer:
    """The text of one function in the making. `names` maps a node to its operand text, `here` is the current block."""

    def __init__(self, module: ModuleWriter) -> None:
        self.module = module
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.shuffled: dict[Node, int] = {}  # how many shuffles one behind the other end in a node
        self.here = "entry"
        self.values = 0
        self.labels = 0

    def new(self) -> str:
        """The name of the next value, which LLVM numbers as they come: it keeps no texts of such names."""
        self.values += 1
        return f"%{self.values - 1}"

    def op(self, text: str) -> str:
        """An instruction line; gives the name of its value."""
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self) -> str:
        self.labels += 1
        return f"b{self.labels}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def arg(self, node: Node) -> str:
        """A node as an operand with its type."""
        return f"{type_text(node.type)} {self.names[node]}"

    def intrinsic(self, name: str, result: str, params: Sequence[str], args: str) -> str:
        return f"call {result} {self.module.declare(name, result, params)}({args})"

    def vector_of(self, node: Node) -> str:
        """A node as a vector operand: a scalar becomes a vector of one lane."""
        if node.type.lanes > 1:
            return self.arg(node)
        t = f"<1 x {type_text(node.type)}>"
        return f"{t} {self.op(f'insertelement {t} poison, {self.arg(node)}, i64 0')}"
