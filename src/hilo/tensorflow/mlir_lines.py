"""Programs as MLIR text in which some ops are replaced, each on a line of its own, by ops of StableHLO. Imports errors.

`Rewriter` goes through the lines; what becomes of an op is a rule (`open_sizes.py`). Sizes are followed: a vector of
sizes is known by its elements, numbers where they are constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final, TypeAlias

from hilo.errors import Unsupported

Size: TypeAlias = int | str  # a number, or the name of a value of type tensor<i64>
Shape: TypeAlias = tuple[int | None, ...]
Rule: TypeAlias = "Callable[[Rewriter, str, str], None]"  # of an op's line: names of results, and what follows the op

LINE: Final = re.compile(r'\s*(%[^=]+?) = "?((?:arith|shape|tensor|tf)\.\w+)"?(.*)')
DEFINED: Final = re.compile(r"\s*(%[\w$.-]+(?:, %[\w$.-]+)*)(?::\d+)? = ")
NAME: Final = re.compile(r"%[\w$.-]+")
INTEGERS: Final = re.compile(
    r"\s*(%[\w$.-]+) = stablehlo\.constant dense<(-?\d+|\[[-\d, \[\]]*\])> : tensor<([\dx]*)i(?:32|64)>"
)
TENSOR: Final = re.compile(r"tensor<((?:[\d?]+x)*)(\w+)>")
INDEX: Final = re.compile(r"(tensor<(?:[\d?]+x)*)index>")


class Rewriter:
    """Replaces the ops that there are rules for; rules put ops in their place with `emit` and what is built on it."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.element = "f32"  # of the tensor that is looked at
        self.lines: list[str] = []
        self.count = 0
        self.numbers: dict[str, list[int]] = {}  # values of small constants, flat
        self.vectors: dict[str, list[Size]] = {}  # elements of vectors of sizes
        self.scalars: dict[str, Size] = {}
        self.regions: list[tuple[str, str, dict[str, str]]] = []  # opened ones around: prefix, result, names
        self._ends = False  # an opened region, with the next line

    def rewritten(self, text: str) -> str:
        """The text of a module after the rules. `Unsupported` for an op without one."""
        for line in text.splitlines():
            self._line(line)
        return INDEX.sub(r"\1i64>", "\n".join(self.lines)) if self.count else text

    def _line(self, line: str) -> None:
        if line.startswith("  func.func"):  # names begin anew
            self.numbers, self.vectors, self.scalars = {}, {}, {}
        if self.regions:
            line = self._renamed(line)
        stripped = line.lstrip()
        if stripped.startswith("shape.assuming_yield"):
            self._left(stripped)
            return
        if self._ends:  # with a brace
            self._ends = False
            self.regions.pop()
            return
        m = LINE.match(line)
        if m is None:
            if small := INTEGERS.match(line):
                count = prod(int(n) for n in small[3].split("x") if n)
                values = [int(n) for n in re.findall(r"-?\d+", small[2])]
                self.numbers[small[1]] = values * count if "[" not in small[2] else values
            self.lines.append(line)
            return
        name, op, rest = m.groups()
        rule = self.rules.get(op)
        if rule is None:
            raise Unsupported("there is no form for sizes known only at run time", op=op)
        self.count += 1
        rule(self, name, rest)

    # -- regions of shape.assuming, which are opened --------------------------------------------

    def entered(self, result: str) -> None:
        """A region begins whose ops become those of what is around: their names get a prefix."""
        self.regions.append((f"a{self.count}_", result, dict(self.regions[-1][2]) if self.regions else {}))

    def _renamed(self, line: str) -> str:
        prefix, _, names = self.regions[-1]
        m = DEFINED.match(line)
        end = m.end() if m is not None else 0
        body = NAME.sub(lambda n: names.get(n[0], n[0]), line[end:])
        if m is not None:
            names.update((n, f"%{prefix}{n[1:]}") for n in NAME.findall(m[1]))
        return NAME.sub(lambda n: names[n[0]], line[:end]) + body

    def _left(self, line: str) -> None:
        """The end of such a region: its value has the name of the op's result from now on."""
        value, t = parts(r"shape\.assuming_yield (%\S+) : (.*)", line)
        t = INDEX.sub(r"\1i64>", t)
        self.emit(f"stablehlo.convert {value} : {t}", self.regions[-1][1])
        self._ends = True

    # -- values ---------------------------------------------------------------------------------

    def emit(self, op: str, name: str = "") -> str:
        """Add an op; the name of its value."""
        if not name:
            self.count += 1
            name = f"%open{self.count}"
        self.lines.append(f"    {name} = {op}")
        return name

    def scalar(self, size: Size) -> str:
        return self.emit(f"stablehlo.constant dense<{size}> : tensor<i64>") if isinstance(size, int) else size

    def dim(self, x: str, shape: Shape, axis: int) -> Size:
        """A size of `x`, which has elements of `self.element`."""
        n = shape[axis]
        if n is not None:
            return n
        t = tensor_type(shape, self.element)
        size = self.emit(f"stablehlo.get_dimension_size {x}, dim = {axis} : ({t}) -> tensor<i32>")
        return self.emit(f"stablehlo.convert {size} : (tensor<i32>) -> tensor<i64>")

    def dims(self, x: str, t: str) -> tuple[list[Size], Shape]:
        """All sizes of `x`, and which are numbers."""
        shape, self.element = parsed(t)
        return [self.dim(x, shape, i) for i in range(len(shape))], shape

    def binary(self, op: str, a: Size, b: Size) -> Size:
        if isinstance(a, int) and isinstance(b, int):
            return {"add": a + b, "subtract": a - b, "multiply": a * b, "maximum": max(a, b), "minimum": min(a, b),
                    "divide": a // b if b else 0}[op]  # fmt: skip
        if b == 1 and op in ("multiply", "divide"):
            return a
        if a == 1 and op == "multiply":
            return b
        return self.emit(f"stablehlo.{op} {self.scalar(a)}, {self.scalar(b)} : tensor<i64>")

    def vector(self, sizes: Sequence[Size], name: str = "") -> str:
        """A vector of sizes."""
        n = len(sizes)
        if all(isinstance(s, int) for s in sizes):
            listed = f"[{', '.join(map(str, sizes))}]" if n else ""
            made = self.emit(f"stablehlo.constant dense<{listed}> : tensor<{n}xi64>", name)
        else:
            each = [self.emit(f"stablehlo.reshape {self.scalar(s)} : (tensor<i64>) -> tensor<1xi64>") for s in sizes]
            types = ", ".join(["tensor<1xi64>"] * n)
            made = self.emit(f"stablehlo.concatenate {', '.join(each)}, dim = 0 : ({types}) -> tensor<{n}xi64>", name)
        self.vectors[made] = list(sizes)
        return made

    def elements(self, vector: str, t: str) -> list[Size]:
        """The elements of a vector of integers."""
        if vector in self.vectors:
            return self.vectors[vector]
        if vector in self.numbers:
            return list(self.numbers[vector])
        (n,), dtype = parsed(t)
        found: list[Size] = []
        for i in range(n or 0):
            one = self.emit(f"stablehlo.slice {vector} [{i}:{i + 1}] : (tensor<{n}x{dtype}>) -> tensor<1x{dtype}>")
            one = self.emit(f"stablehlo.reshape {one} : (tensor<1x{dtype}>) -> tensor<{dtype}>")
            if dtype not in ("i64", "index"):
                one = self.emit(f"stablehlo.convert {one} : (tensor<{dtype}>) -> tensor<i64>")
            found.append(one)
        return found

    def constant(self, name: str, op: str) -> list[int]:
        """The values of a constant that `op` needs to be one."""
        if name not in self.numbers:
            raise Unsupported("operands that say what it does are known only at run time", op=op)
        return self.numbers[name]

    def sliced(self, x: str, t: str, out: str, starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[int],
               name: str = "") -> str:  # fmt: skip
        n = len(starts)
        ends = [self.vector(v) for v in (starts, limits, list(strides))]
        types = ", ".join([t, *[f"tensor<{n}xi64>"] * 3])
        return self.emit(f"stablehlo.real_dynamic_slice {x}, {', '.join(ends)} : ({types}) -> {out}", name)

    def reshaped(self, x: str, t: str, sizes: Sequence[Size], out: str, name: str = "") -> str:
        shape = self.vector(sizes)
        n = len(sizes)
        return self.emit(f"stablehlo.dynamic_reshape {x}, {shape} : ({t}, tensor<{n}xi64>) -> {out}", name)


def tensor_type(shape: Shape, element: str) -> str:
    return "tensor<" + "".join("?x" if n is None else f"{n}x" for n in shape) + f"{element}>"


def parsed(t: str) -> tuple[Shape, str]:
    """Shape and element type in `tensor<?x3xf32>`."""
    m = TENSOR.fullmatch(t.strip())
    if m is None:
        raise Unsupported(f"sizes of {t} are known only at run time")
    return tuple(None if n == "?" else int(n) for n in m[1].split("x") if n), m[2]


def parts(pattern: str, line: str) -> tuple[str, ...]:
    """The groups of a pattern that the line has. `Unsupported` if it is written in another way."""
    m = re.match(pattern, line)
    if m is None:
        raise Unsupported(f"this form is not known here: {line.strip()[:80]}")
    return m.groups()


def signature(rest: str) -> tuple[list[str], str, list[str], str]:
    """Operands, attributes, types of operands and of the result, of a line in MLIR's generic form."""
    head, _, types = rest.rpartition(" : (")
    before, _, after = types.rpartition(") -> ")
    inputs = [m[0] for m in TENSOR.finditer(before)]
    operands, _, attributes = head.strip().removeprefix("(").partition(")")
    return NAME.findall(operands), attributes, inputs, after
