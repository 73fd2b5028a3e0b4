"""Passes of Fourier transforms as x86 assembly: AVX-512. Imports loop and backend of hilo.

The sums and products are those of `loop.butterfly`, in the order in which that asks for them; here they become
instructions, whose registers are given out one after the other: nothing is spilled, or there is no code.
`tests/backend/test_x86_butterflies.py` holds the functions to what LLVM makes of their bodies.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Final

from hilo.loop.butterfly import ROOT, Butterflies, Butterfly
from hilo.loop.nodes import SIZES

REGISTERS: Final = 32
_REACH: Final = 4  # elements that one address reaches, by 0, 1, 2 and 3 times what they are apart
_SAVED: Final = ("%rbx", "%rbp", "%r12", "%r13")
_TABLE, _SOURCE, _TO, _TURNS, _INNER, _READ_TURN = "%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9"
_READ, _READ3, _WRITE, _WRITE3, _AT, _HERE, _THERE = "%rax", "%r10", "%r11", "%rbx", "%rbp", "%r12", "%r13"
_Part = tuple[float, float]  # what a constant vector holds, again and again
_Value = int  # the number of a value


class _Registers(Exception):
    """There are too few."""


def _taken(free: list[int]) -> int:
    """A free register, which is so no longer."""
    if not free:
        raise _Registers
    return free.pop()


class Pass:
    """The function of one pass."""

    def __init__(self, name: str, p: Butterflies) -> None:
        self.name, self.p = name, p
        self.suffix = "ps" if p.scalar == "f32" else "pd"
        self.size = SIZES[p.scalar]
        self.count = 0  # of values
        #: How it begins, operands, result, does it take the last operand's place, how it ends.
        self.code: list[tuple[str, tuple[_Value, ...], _Value | None, bool, str]] = []
        self.constants: dict[_Part, _Value] = {}

    @property
    def fits(self) -> bool:
        """Whether there are enough registers."""
        return self._body is not None

    @cached_property
    def _body(self) -> list[str] | None:
        """What one butterfly does; None if there are too few registers."""
        self._transform()
        try:
            return self._allocated()
        except _Registers:
            return None

    def lines(self) -> list[str]:
        """The whole function, if it `fits`."""
        from hilo.backend.x86_products import function

        body = self._body or []
        p, at, above = self.p, f".L{self.name}", 8 * (len(_SAVED) + 1)
        read, write_turn, write = (f"{above + 8 * i}(%rsp)" for i in range(3))
        step = 2 * p.lanes * self.size
        text = [
            f"testq {_TURNS}, {_TURNS}", f"jle {at}.end", f"testq {_INNER}, {_INNER}", f"jle {at}.end",
            *self._constants(), f"movq {read}, {_READ}", f"leaq ({_READ},{_READ},2), {_READ3}",
            f"movq {write}, {_WRITE}", f"leaq ({_WRITE},{_WRITE},2), {_WRITE3}", ".p2align 5",
            f"{at}.turn:", "xorl %ebp, %ebp",
            f"{at}.one:", f"leaq ({_SOURCE},{_AT}), {_HERE}", f"leaq ({_TO},{_AT}), {_THERE}", *body,
            f"addq ${step}, {_AT}", f"cmpq {_INNER}, {_AT}", f"jl {at}.one",
            f"addq {_READ_TURN}, {_SOURCE}", f"addq {write_turn}, {_TO}",
            f"addq ${(p.radix - 1) * ROOT * self.size}, {_TABLE}", f"decq {_TURNS}", f"jne {at}.turn", f"{at}.end:",
        ]  # fmt: skip
        return function(self.name, _SAVED, text)

    def _transform(self) -> None:
        """Record what one butterfly does."""
        p = self.p
        xs = [self._new(f"vmovu{self.suffix} {self._element(k, _HERE, _READ, _READ3)}, ") for k in range(p.radix)]
        move = f"vmovnt{self.suffix}" if p.streams else f"vmovu{self.suffix}"
        for k, x in enumerate(Butterfly(self, 1 if p.inverse else -1).transform(xs)):
            place = self._element(k, _THERE, _WRITE, _WRITE3)
            self._effect(f"{move} ", self._by_root(x, k - 1) if p.turned and k else x, place)

    def _element(self, k: int, base: str, step: str, three: str) -> str:
        """The address of element k; those before were asked for."""
        if k and k % _REACH == 0:
            self._effect(f"leaq ({base},{step},{_REACH}), {base}")
        return (f"({base})", f"({base},{step})", f"({base},{step},2)", f"({base},{three})")[k % _REACH]

    def _by_root(self, x: _Value, k: int) -> _Value:
        """x times root k of the table."""
        at, single = k * ROOT * self.size, self.size == 4
        pair = self._new(f"{'vbroadcastsd' if single else 'vbroadcastf64x2'} {at + self.size}({_TABLE}), ")
        product = self._new(f"vmul{self.suffix} ", self._swapped(x), pair)
        real = f"{at}({_TABLE}){{1to{64 // self.size}}}"
        return self._new(f"vfmadd231{self.suffix} {real}, ", x, onto=product)

    # ---- the arithmetic
    def constant(self, w: complex) -> tuple[_Part, _Part]:
        return (w.real, w.real), (-w.imag, w.imag)

    def add(self, x: _Value, y: _Value) -> _Value:
        return self._new(f"vadd{self.suffix} ", y, x)

    def sub(self, x: _Value, y: _Value) -> _Value:
        return self._new(f"vsub{self.suffix} ", y, x)

    def add_turned(self, x: _Value, y: _Value, sign: int) -> _Value:
        return self._multiply_add(self._swapped(y), (-sign, sign), x)

    def turned(self, x: _Value, sign: int) -> _Value:
        return self._multiply(self._swapped(x), (-sign, sign))

    def multiply(self, x: _Value, w: tuple[_Part, _Part]) -> _Value:
        return self._multiply_add(x, w[0], self._multiply(self._swapped(x), w[1]))

    def multiply_real(self, x: _Value, c: float, y: _Value | None) -> _Value:
        return self._multiply(x, (c, c)) if y is None else self._multiply_add(x, (c, c), y)

    def _swapped(self, x: _Value) -> _Value:
        return self._new(f"vpermil{self.suffix} ${177 if self.size == 4 else 0x55}, ", x)

    def _multiply(self, x: _Value, c: _Part) -> _Value:
        return self._new(f"vmul{self.suffix} ", x, self._held(c))

    def _multiply_add(self, x: _Value, c: _Part, y: _Value) -> _Value:
        """c x + y. A negative c is a positive one whose products are subtracted."""
        way = "vfnmadd" if c[0] < 0 else "vfmadd"
        held = self._held((abs(c[0]), c[1] if c[0] > 0 else -c[1]))
        return self._new(f"{way}231{self.suffix} ", x, held, onto=y)

    # ---- registers
    def _held(self, c: _Part) -> _Value:
        """A constant, which keeps its register: values below 0."""
        c = float(c[0]), float(c[1])
        return self.constants.setdefault(c, -1 - len(self.constants))

    def _new(self, head: str, *operands: _Value, onto: _Value | None = None) -> _Value:
        """An instruction that gives a value: `head`, then the operands and the result; `onto`: added to that value, in
        its place."""
        result, self.count = self.count, self.count + 1
        self.code.append((head, operands if onto is None else (*operands, onto), result, onto is not None, ""))
        return result

    def _effect(self, head: str, operand: _Value | None = None, place: str = "") -> None:
        """One that gives none: `head`, then the operand and the `place` that it goes to."""
        self.code.append((head, () if operand is None else (operand,), None, False, place))

    def _allocated(self) -> list[str]:
        """The instructions with registers. Raises `_Registers`."""
        last = {x: i for i, (_, operands, _, _, _) in enumerate(self.code) for x in operands if x >= 0}
        free = list(range(REGISTERS - len(self.constants) - 1, -1, -1))
        held = {c: REGISTERS + c for c in self.constants.values()}
        names = [f"%zmm{i}" for i in range(REGISTERS)]
        text = []
        for i, (head, operands, result, in_place, place) in enumerate(self.code):
            registers = [names[held[x]] for x in operands]
            ended = [x for x in operands if last.get(x) == i]
            if len(ended) > 1:
                ended = [*dict.fromkeys(ended)]
            if in_place:
                summand = operands[-1]
                if summand in ended:
                    ended.remove(summand)
                    to = held.pop(summand)
                else:  # what is added to is needed once more
                    to = _taken(free)
                    text.append(f"vmovaps {names[held[summand]]}, {names[to]}")
                    registers[-1] = names[to]
                held[result] = to  # type: ignore[index]
            for x in ended:
                free.append(held.pop(x))
            if result is not None and not in_place:
                to = held[result] = _taken(free)
                registers.append(names[to])
            elif place:
                registers.append(place)
            text.append(head + ", ".join(registers))
        return text

    def _constants(self) -> list[str]:
        """Put the constants into their registers."""
        text = []
        for parts, c in self.constants.items():
            to = f"%xmm{REGISTERS + c}"
            if self.size == 4:
                (bits,) = struct.unpack("<q", struct.pack("<2f", *parts))
                text += [f"movabsq ${bits}, %rax", f"vmovq %rax, {to}", f"vpbroadcastq {to}, {to.replace('x', 'z', 1)}"]
                continue
            low, high = struct.unpack("<2q", struct.pack("<2d", *parts))
            text += [f"movabsq ${low}, %rax", f"vmovq %rax, {to}", f"movabsq ${high}, %rax",
                     f"vpinsrq $1, %rax, {to}, {to}", f"vshuff64x2 $0, {to.replace('x', 'z', 1)}, "
                     f"{to.replace('x', 'z', 1)}, {to.replace('x', 'z', 1)}"]  # fmt: skip
        return text
