"""Rows of sums of depthwise convolutions as x86 assembly: AVX-512, or AVX2 with FMA. Imports loop and backend of hilo.

A row's tiles are straight code that follows from the window alone; see `backend.x86_products`. The functions do what
`kernels.convolution_depthwise.sums_of_row` says, with the same bits.
"""

from __future__ import annotations

from typing import Final

from hilo.backend.x86_products import ARGUMENTS, MOVES, function, multiples
from hilo.loop.nodes import SIZES
from hilo.loop.product import DEPTHWISE_PARAMS, GROUP, Depthwise

_COMBINE: Final = {"f32": "vfmadd231ps", "f64": "vfmadd231pd"}
_COUNT, _WEIGHTS, _WEIGHT, _THREE, _FIVE = "%rax", "%r10", "%r11", "%rbx", "%rbp"
_BASES: tuple[str, ...] = ("%rdi", "%rcx", "%r12", "%r13", "%r14", "%r15")  # the first two were x and w
_SAVED: Final = ("%rbx", "%rbp", "%r12", "%r13", "%r14", "%r15")
_FRAME: Final = 24  # bytes for x, w and the position
_X, _W, _AT = "(%rsp)", "8(%rsp)", "16(%rsp)"


class Row:
    """Writes one function."""

    def __init__(self, name: str, p: Depthwise, wide: bool) -> None:
        self.name, self.p = name, p
        registers = [f"%{'zmm' if wide else 'ymm'}{i}" for i in range(32 if wide else 16)]
        self.sums, rest = registers[: p.positions], registers[p.positions :]
        self.weights, self.elements = rest[: p.taps], rest[p.taps :]
        self.move, self.combine = MOVES[SIZES[p.scalar]], _COMBINE[p.scalar]
        self.live = "{%k1}{z}" if p.masked else ""
        above = _FRAME + 8 * (len(_SAVED) + 1)
        self.r = dict(zip(DEPTHWISE_PARAMS, ARGUMENTS, strict=False))
        stacked = DEPTHWISE_PARAMS[len(ARGUMENTS) :]
        self.r |= {n: f"{above + 8 * i}(%rsp)" for i, n in enumerate(stacked)}
        self.text: list[str] = []
        self.tiles = 0
        self.fits = bool(self.elements) and all(len(groups(p.users(*t))) <= len(_BASES) for t in self.ranges())

    def ranges(self) -> list[tuple[int, int]]:
        """The columns that lie in lhs, of those that tiles see."""
        p = self.p
        if p.tiles == 1:
            return [(p.low, p.end)]
        return [*([(p.low, p.reach)] if p.low else []), (0, p.reach), *([(0, p.end)] if p.tiles == 3 else [])]

    def emit(self, *lines: str) -> None:
        self.text += lines

    def lines(self) -> list[str]:
        """The whole function."""
        p, r, at = self.p, self.r, f".L{self.name}"
        self.emit(f"subq ${_FRAME}, %rsp", f"movq {r['x']}, {_X}", f"movq {r['w']}, {_W}", f"movq $0, {_AT}")
        if p.masked:
            self.emit(f"movq {r['live']}, {_COUNT}", f"movq $-1, {_WEIGHT}")
            self.emit(f"bzhiq {_COUNT}, {_WEIGHT}, {_WEIGHT}", f"kmovq {_WEIGHT}, %k1")
        self.offsets = multiples(r["x_column"], _THREE, _FIVE, self.text)
        if p.tiles == 1:
            self.tile(p.low, p.end)
        else:
            if p.low:
                self.tile(p.low, p.reach)
                self.emit(f"movq ${p.positions}, {_AT}")
            self.emit(f"{at}.middle:", f"movq {_AT}, {_COUNT}", f"addq ${p.positions - 1}, {_COUNT}")
            self.emit(f"cmpq {r['inner']}, {_COUNT}", f"jge {at}.last")
            self.tile(0, p.reach)
            self.emit(f"addq ${p.positions}, {_AT}", f"jmp {at}.middle", f"{at}.last:")
            if p.tiles == 3:
                self.emit(f"movq {r['width']}, {_COUNT}", f"subq ${p.positions}, {_COUNT}", f"movq {_COUNT}, {_AT}")
                self.tile(0, p.end)
        self.emit(f"addq ${_FRAME}, %rsp")
        return function(self.name, _SAVED, self.text)

    def tile(self, lo: int, hi: int) -> None:
        """The positions from the one on the stack on, whose windows have columns lo..hi of those that they see."""
        p, r, at = self.p, self.r, f".L{self.name}.{self.tiles}"
        self.tiles += 1
        column, users = r["x_column"], p.users(lo, hi)
        bases = dict(zip(groups(users), _BASES, strict=False))
        first, *others = bases
        base = bases[first]
        self.emit(f"movq {_AT}, {base}", f"imulq ${p.stride}, {base}", f"subq ${p.low - first * GROUP}, {base}")
        self.emit(f"imulq {column}, {base}", f"addq {_X}, {base}")
        for last, g in zip([first, *others], others, strict=False):
            self.emit(f"imulq ${(g - last) * GROUP}, {column}, {bases[g]}", f"addq {bases[last]}, {bases[g]}")
        self.fetch(bases, at)
        for i in range(p.positions):
            self.emit(f"vxorps %xmm{i}, %xmm{i}, %xmm{i}")
        self.emit(f"movq {r['rows']}, {_COUNT}", f"movq {_W}, {_WEIGHTS}")
        self.emit(f"testq {_COUNT}, {_COUNT}", f"jle {at}.done", ".p2align 4", f"{at}.turn:")
        self.emit(f"movq {_WEIGHTS}, {_WEIGHT}")
        for i, y in enumerate(self.weights):
            self.emit(*([f"addq {r['w_column']}, {_WEIGHT}"] if i else []), f"{self.move} ({_WEIGHT}), {y}{self.live}")
        for i, (c, seen) in enumerate(users.items()):
            x = self.elements[i % len(self.elements)]
            self.emit(f"{self.move} ({bases[c // GROUP]}{self.offsets[c % GROUP]}), {x}{self.live}")
            self.emit(*(f"{self.combine} {self.weights[k]}, {x}, {self.sums[s]}" for s, k in seen))
        self.emit(f"addq {r['w_row']}, {_WEIGHTS}", *(f"addq {r['x_row']}, {b}" for b in bases.values()))
        self.emit(f"decq {_COUNT}", f"jne {at}.turn", f"{at}.done:")
        self.emit(f"movq {_AT}, {_COUNT}", f"movq {r['to_column']}, {_WEIGHT}", f"imulq {_WEIGHT}, {_COUNT}")
        self.emit(f"addq {r['to']}, {_COUNT}")
        for i, x in enumerate(self.sums):
            self.emit(*([f"addq {_WEIGHT}, {_COUNT}"] if i else []))
            self.emit(f"{self.move} {x}, ({_COUNT}){self.live.removesuffix('{z}')}")

    def fetch(self, bases: dict[int, str], at: str) -> None:
        """Fetch what the windows below will see."""
        p, r = self.p, self.r
        self.emit(f"movq {r['fresh']}, {_COUNT}", f"movq {r['ahead']}, {_WEIGHTS}")
        self.emit(f"testq {_COUNT}, {_COUNT}", f"jle {at}.fetched", f"{at}.fetch:")
        for g, base in bases.items():
            self.emit(f"leaq ({base},{_WEIGHTS}), {_WEIGHT}")
            for c in range(g * GROUP, min((g + 1) * GROUP, p.positions * p.stride)):
                self.emit(f"prefetcht0 ({_WEIGHT}{self.offsets[c - g * GROUP]})")
        self.emit(f"addq {r['x_row']}, {_WEIGHTS}", f"decq {_COUNT}", f"jne {at}.fetch", f"{at}.fetched:")


def groups(users: dict[int, list[tuple[int, int]]]) -> list[int]:
    """Of columns that are reached from one address."""
    return sorted({c // GROUP for c in users})
