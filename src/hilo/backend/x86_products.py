"""Innermost functions of products as x86 assembly: AVX-512, or AVX2 with FMA. Imports loop and backend of hilo.

They come in many sizes, LLVM takes 5 ms for each, and there is nothing to decide: which register holds what follows
from the numbers of rows and vectors. LLVM's assembler takes a tenth of that. `tests/backend/test_x86_products.py` holds
the functions to what LLVM makes of their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hilo.backend.target import Target
from hilo.loop.nodes import SIZES, Func
from hilo.loop.product import GROUP, PARAMS, SEGMENTS_PARAMS, Depthwise, Packing, Product, Turning

if TYPE_CHECKING:
    from hilo.backend.x86_butterflies import Pass
    from hilo.backend.x86_depthwise import Row
    from hilo.backend.x86_panels import Packer, Turner
    from hilo.loop.butterfly import Butterflies

    Kind = Product | Packing | Turning | Depthwise | Butterflies  # what a function may be

# System V: six arguments are in registers, the others on the stack; of the free registers some are kept for the caller.
ARGUMENTS: Final = ("%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9")
FREE: Final = ("%rax", "%r10", "%r11", "%rbx", "%rbp", "%r12", "%r13", "%r14", "%r15")
SCRATCH: Final = 3  # of them are not kept
_FORMS: Final = {  # of scalars: move, broadcast, add, multiply and add
    "f32": ("vmovups", "vbroadcastss", "vaddps", "vfmadd231ps"),
    "f64": ("vmovupd", "vbroadcastsd", "vaddpd", "vfmadd231pd"),
    "i32": ("vmovdqu32", "vpbroadcastd", "vpaddd", "vpdpbusd"),
}
MOVES: Final = {4: "vmovups", 8: "vmovupd"}  # by bytes of an element: masks count elements
_LINE: Final = 64
NAME: Final = "?"  # stands for a function's name, until that is known
MASKS: Final = 7  # registers for them, apart from the one that means none


def assembly(f: Func, target: Target, private: bool = False) -> tuple[str, ...] | None:
    """The lines of `f`, if it is a product that there is code for on `target`; `private`: no other object sees it."""
    lines = _lines(f.attrs["product"], target) if "product" in f.attrs else None
    if lines is None:
        return None
    named = [line.replace(NAME, f.name) if NAME in line else line for line in lines]
    return tuple(named[1:] if private else named)  # the first one says that others see it


def covers(f: Func, target: Target) -> bool:
    """Whether there is code for `f`."""
    return "product" in f.attrs and _lines(f.attrs["product"], target) is not None


@cache
def _lines(p: Kind, target: Target) -> tuple[str, ...] | None:
    """The lines of a function called NAME that all see."""
    made = _writer(NAME, p, target)
    return None if made is None else tuple(made.lines())


def _writer(name: str, p: Kind, target: Target) -> _Writer | Packer | Turner | Row | Pass | None:
    if target.arch != "x86_64" or not target.has_fma:
        return None
    wide = target.has_masks and target.vector_bytes == 64
    if isinstance(p, Packing):
        from hilo.backend.x86_panels import Packer

        whole = p.lanes * SIZES[p.scalar] == target.vector_bytes and p.narrow in ("", "bf16")
        return Packer(name, p) if wide and whole and p.vectors <= MASKS else None
    if isinstance(p, Turning):
        from hilo.backend.x86_panels import Turner

        whole = p.lanes * SIZES[p.scalar] == target.vector_bytes and not p.narrow
        return Turner(name, p) if wide and whole else None
    if not isinstance(p, Product | Depthwise):
        if not wide or 2 * p.lanes * SIZES[p.scalar] != target.vector_bytes:
            return None
        from hilo.backend.x86_butterflies import Pass

        made = Pass(name, p)
        return made if p.fused and made.fits else None
    if not wide and (p.masked or target.vector_bytes != 32):
        return None
    if isinstance(p, Depthwise):
        from hilo.backend.x86_depthwise import Row

        made = Row(name, p, wide)
        return made if made.fits and p.lanes * SIZES[p.scalar] == target.vector_bytes else None
    if p.half and not wide:
        return None
    known = (p.combine == "fma" and p.scalar in ("f32", "f64")) or (p.combine == "dot4" and wide and target.has_dot4)
    widened = not p.narrow or (p.narrow == "bf16" and p.scalar == "f32")
    if not known or not widened or p.lanes * SIZES[p.scalar] != target.vector_bytes:
        return None
    made = (_Segments if p.segments else _Tile)(name, p, wide)
    return made if made.fits else None


def function(name: str, saved: Sequence[str], body: Sequence[str]) -> list[str]:
    """A function that keeps some registers for its caller. The first line is for others to see it."""
    head = [f".globl {name}", ".text", ".p2align 5", f".type {name},@function", f"{name}:"]
    saves, restores = [f"pushq {r}" for r in saved], [f"popq {r}" for r in reversed(saved)]
    return [*head, *saves, *body, *restores, "vzeroupper", "retq", f".size {name}, .-{name}"]


def multiples(stride: str, three: str, five: str, text: list[str], count: int = GROUP) -> list[str]:
    """The forms of x86's addresses that reach `count` places, `stride` apart; fills the registers that they need."""
    if count > 3:
        text.append(f"leaq ({stride},{stride},2), {three}")
    if count > 5:
        text.append(f"leaq ({stride},{stride},4), {five}")
    return ["", f",{stride}", f",{stride},2", f",{three}", f",{stride},4", f",{five}", f",{three},2"]


def load(move: str, narrow: str, offset: int, pointer: str, to: str, live: str) -> list[str]:
    """Load a vector, or widen one of bf16, `offset` bytes of the wide ones after `pointer`; `live`: its mask."""
    if narrow:
        return [f"vpmovzxwd {offset // 2}({pointer}), {to}{live}", f"vpslld $16, {to}, {to}"]
    return [f"{move} {offset}({pointer}), {to}{live}"]


class _Writer:
    """Writes one function. Sums take the first vector registers, B's vectors the next; the rest hold A's elements."""

    params: tuple[str, ...]
    names: tuple[str, ...]  # of what is kept in free registers

    def __init__(self, name: str, p: Product, wide: bool) -> None:
        self.name, self.p = name, p
        self.step = p.lanes * SIZES[p.scalar]  # bytes of a vector of C
        self.move, self.broadcast, self.add, self.combine = _FORMS[p.scalar]
        registers = [f"%{'zmm' if wide else 'ymm'}{i}" for i in range(32 if wide else 16)]
        held = p.rows * p.vectors
        self.sums = [self.part(i % p.vectors, x) for i, x in enumerate(registers[:held])]
        self.columns = [self.part(j, y) for j, y in enumerate(registers[held : held + p.vectors])]
        self.elements = registers[held + p.vectors :]
        self.in_memory = wide and p.vectors == 1 and p.combine == "fma"  # A's elements are used where they lie
        free = [*self.names, *(f"base{i}" for i in range(1, -(-p.rows // p.group)))]
        room = len(self.columns) == p.vectors and (self.in_memory or bool(self.elements))
        self.fits = room and len(free) <= len(FREE) and p.group <= GROUP
        self.saved = FREE[SCRATCH : len(free)]
        self.r = dict(zip(self.params, ARGUMENTS, strict=False))
        self.r |= dict(zip(free, FREE, strict=False))
        above = 8 * (len(self.saved) + 1)  # the return address
        self.r |= {n: f"{above + 8 * i}(%rsp)" for i, n in enumerate(self.params[len(ARGUMENTS) :])}
        self.text: list[str] = []

    def lines(self) -> list[str]:
        """The whole function."""
        self.write()
        return function(self.name, self.saved, self.text)

    def write(self) -> None:
        """Write what is between the saving of registers and the end."""
        raise NotImplementedError

    def part(self, j: int, register: str) -> str:
        """What vector j takes of a register."""
        return register.replace("zmm", "ymm") if self.p.half and j == self.p.vectors - 1 else register

    def emit(self, *lines: str) -> None:
        self.text += lines

    def label(self, what: str) -> str:
        return f".L{self.name}.{what}"

    def move_to(self, register: str, name: str) -> None:
        """A parameter into a register."""
        self.emit(f"movq {self.r[name]}, {register}")

    def zero(self) -> None:
        """Sums become 0."""
        for i in range(len(self.sums)):
            self.emit(f"vxorps %xmm{i}, %xmm{i}, %xmm{i}")

    def multiples(self, stride: str) -> list[str]:
        """The forms of x86's addresses that reach the rows of A which one address serves."""
        return multiples(stride, self.r["three"], self.r["five"], self.text, min(self.p.rows, self.p.group))

    def turns(self, b: str, ahead: str, a_k: str, bases: Sequence[str], offsets: Sequence[str]) -> None:
        """The loop over k, as many turns as the register "count" says: products of an element of each row of A, found
        from `bases`, which move by `a_k`, and the row of B at `b`."""
        p, count = self.p, self.r["count"]
        turn, done = self.label("turn"), self.label("done")
        self.emit(f"testq {count}, {count}", f"jle {done}", ".p2align 5", f"{turn}:")
        self.emit(*(f"prefetcht1 {_LINE * i}({ahead})" for i in range(p.lines)))
        for j, y in enumerate(self.columns):
            self.load_b(j, b, y)
        for i in range(p.rows):
            at = f"({bases[i // p.group]}{offsets[i % p.group]})"
            if self.in_memory:
                lanes = p.lanes // 2 if p.half else p.lanes
                self.emit(f"{self.combine} {at}{{1to{lanes}}}, {self.columns[0]}, {self.sums[i]}")
                continue
            x = self.elements[i % len(self.elements)]
            self.emit(f"{self.broadcast} {at}, {x}")
            self.emit(*(f"{self.combine} {y}, {self.part(j, x)}, {self.sums[i * p.vectors + j]}"
                        for j, y in enumerate(self.columns)))  # fmt: skip
        self.emit(f"addq {self.r['b_k']}, {b}", f"addq {a_k}, {bases[0]}")
        self.emit(*(f"addq {a_k}, {base}" for base in bases[1:]))
        self.emit(f"addq {self.r['ahead_k']}, {ahead}")
        self.emit(f"decq {count}", f"jne {turn}", f"{done}:")

    def load_b(self, j: int, b: str, to: str) -> None:
        """Vector j of the row of B at `b`."""
        self.emit(*load(self.move, self.p.narrow, self.step * j, b, to, self.mask(j, "{z}")))

    def mask(self, j: int, others: str = "") -> str:
        """Of vector j: the lanes that are there, and what becomes of the others."""
        return f"{{%k1}}{others}" if self.p.masked and j == self.p.vectors - 1 else ""

    def add_row(self, pointer: str, row: int) -> None:
        """Add what is in memory to a row of sums."""
        for j in range(self.p.vectors):
            x = self.sums[row * self.p.vectors + j]
            self.emit(f"{self.add} {self.step * j}({pointer}), {x}, {x}{self.mask(j, '{z}')}")

    def store_row(self, pointer: str, row: int) -> None:
        """Write a row of sums to memory."""
        for j in range(self.p.vectors):
            mask = self.mask(j)
            move = "vmovntps" if self.p.streams and not mask else self.move
            self.emit(f"{move} {self.sums[row * self.p.vectors + j]}, {self.step * j}({pointer}){mask}")

    def each_row(self, pointer: str, stride: str, what: Callable[[str, int], None], second: str = "") -> None:
        """`what(address, row)` for the rows of a tile in memory, each `stride` after the one before; with `second`, the
        first of the second group is where that register says."""
        rows, group = self.p.rows, self.p.group
        offsets = self.multiples(stride)
        for i in range(rows):
            if i and i % group == 0:
                self.emit(*([f"movq {second}, {pointer}"] if second else self.next_group(pointer, stride, pointer)))
            what(pointer + offsets[i % group], i)

    def next_group(self, last: str, stride: str, to: str) -> list[str]:
        """The address of the next group of rows: `GROUP` further."""
        return [f"leaq ({last},{stride},8), {to}", f"subq {stride}, {to}"]

    def fetch_row(self, pointer: str, near: int) -> None:
        """Fetch the lines of a row of C, into the first-level cache (`near` 0) or the second."""
        self.emit(*(f"prefetcht{near} {at}({pointer})" for at in range(0, self.p.vectors * self.step, _LINE)))


class _Tile(_Writer):
    """C = init + A B, see `kernels.microkernel.tile`."""

    params = PARAMS
    names = ("count", "moved", "fetched", "three", "five")

    def write(self) -> None:
        p, r = self.p, self.r
        count, moved, fetched = r["count"], r["moved"], r["fetched"]
        if p.touches:
            self.move_to(fetched, "c")
            self.move_to(moved, "c_row")
            self.each_row(fetched, moved, lambda at, _: self.fetch_row(at, 0))
        if p.masked:
            self.move_to(count, "n")
            self.emit(f"subq ${(p.vectors - 1) * p.lanes}, {count}", f"movq $-1, {moved}")
            self.emit(f"bzhiq {count}, {moved}, {moved}", f"kmovq {moved}, %k1")
        self.zero()
        offsets = self.multiples(r["a_row"])
        bases = [r["a"], *(r[f"base{i}"] for i in range(1, -(-p.rows // p.group)))]
        for last, base in pairwise(bases):
            self.emit(*self.next_group(last, r["a_row"], base))
        self.move_to(count, "k")
        self.move_to(fetched, "ahead")
        self.turns(r["b"], fetched, r["a_k"], bases, offsets)
        alone = self.label("alone")
        self.move_to(moved, "init_row")
        self.move_to(fetched, "init")
        self.emit(f"testq {moved}, {moved}", f"js {alone}")
        self.each_row(fetched, moved, self.add_row)
        self.emit(f"{alone}:")
        self.move_to(moved, "c_row")
        self.each_row(r["c"], moved, self.store_row)


class _Segments(_Writer):
    """C = A B, or C + A B, see `kernels.convolution_tile.tile`."""

    params = SEGMENTS_PARAMS
    names = ("count", "moved", "row_b", "row_a", "left", "three", "five")

    @property
    def two(self) -> bool:
        return self.p.rows > self.p.group

    def write(self) -> None:
        p, r = self.p, self.r
        row_a, row_b, left = r["row_a"], r["row_b"], r["left"]
        self.each("touch", lambda at, _: self.fetch_row(at, 1))
        self.zero()
        offsets = self.multiples(r["a_row"])
        segment, ended = self.label("segment"), self.label("ended")
        self.move_to(left, "segments")
        self.emit(f"testq {left}, {left}", f"jle {ended}", f"{segment}:")
        self.move_to(row_a, "a")
        self.move_to(row_b, "b")
        bases = [row_a]
        if self.two:
            bases.append(r["base1"])
            self.move_to(r["base1"], "a_group")
            self.emit(f"addq {r['a']}, {r['base1']}")
        self.move_to(r["count"], "k")
        self.turns(row_b, r["ahead"], f"${SIZES[p.scalar]}", bases, offsets)
        self.emit(f"addq {r['a_segment']}, {r['a']}", f"addq {r['b_segment']}, {r['b']}")
        self.emit(f"decq {left}", f"jne {segment}", f"{ended}:")
        alone = self.label("alone")
        self.emit(f"cmpq $0, {r['more']}", f"je {alone}")
        self.each("c", self.add_row)
        self.emit(f"{alone}:")
        self.each("c", self.store_row)

    def each(self, tile: str, what: Callable[[str, int], None]) -> None:
        """`what` for the rows of a tile in memory, which parameters of these names lead to."""
        at, stride, second = self.r["count"], self.r["moved"], ""
        self.move_to(at, tile)
        self.move_to(stride, f"{tile}_row")
        if self.two:
            second = self.r["row_b"]
            self.move_to(second, f"{tile}_group")
            self.emit(f"addq {at}, {second}")
        self.each_row(at, stride, what, second)
