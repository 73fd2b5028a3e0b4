"""Copying panels of B as x86 assembly with AVX-512; see `backend.x86_products`. Imports loop and backend of hilo."""

from __future__ import annotations

from itertools import pairwise

from hilo.backend.x86_products import ARGUMENTS, FREE, MOVES, SCRATCH, function, load
from hilo.loop.nodes import SIZES
from hilo.loop.product import Packing, Turning


class Packer:
    """Panels of B, copied; see `kernels.convolution_tile.pack`."""

    def __init__(self, name: str, p: Packing) -> None:
        self.name, self.p = name, p

    def lines(self) -> list[str]:
        """The whole function."""
        p, name = self.p, self.name
        step, move = p.lanes * SIZES[p.scalar], MOVES[SIZES[p.scalar]]
        to, source, b_k, b_segment, segments, k = ARGUMENTS
        read, row, rows, written, panels = FREE[:5]
        saved = FREE[SCRATCH:5]
        above = 8 * (len(saved) + 1)
        live, count, to_panel, source_panel = (f"{above + 8 * i}(%rsp)" for i in range(4))
        text = [f"movq {live}, {read}", f"xorl {_low(row)}, {_low(row)}"]
        for j in range(p.vectors):  # masks, of no lane where none is there
            text += [f"movq $-1, {rows}", f"bzhiq {read}, {rows}, {rows}", f"kmovq {rows}, %k{j + 1}",
                     f"subq ${p.lanes}, {read}", f"cmovsq {row}, {read}"]  # fmt: skip
        copies = []
        for j in range(p.vectors):
            copies += load(move, p.narrow, step * j, read, f"%zmm{j}", f"{{%k{j + 1}}}{{z}}")
            copies.append(f"{move} %zmm{j}, {step * j}({written})")
        at = f".L{name}"
        text += [
            f"testq {k}, {k}", f"jle {at}.end", f"testq {segments}, {segments}", f"jle {at}.end", f"cmpq $0, {count}",
            f"jle {at}.end",
            f"{at}.segment:", f"movq {source}, {row}", f"movq {k}, {rows}",
            f"{at}.row:", f"movq {row}, {read}", f"movq {to}, {written}", f"movq {count}, {panels}",
            f"{at}.panel:", *copies, f"addq {source_panel}, {read}", f"addq {to_panel}, {written}",
            f"decq {panels}", f"jne {at}.panel",
            f"addq {b_k}, {row}", f"addq ${step * p.vectors}, {to}", f"decq {rows}", f"jne {at}.row",
            f"addq {b_segment}, {source}", f"decq {segments}", f"jne {at}.segment", f"{at}.end:",
        ]  # fmt: skip
        return function(name, saved, text)


class Turner:
    """A panel of B that has k contiguous, copied square by square; see `kernels.contraction_panels.turn`."""

    def __init__(self, name: str, p: Turning) -> None:
        self.name, self.p = name, p

    def lines(self) -> list[str]:
        """The whole function."""
        lanes, size, at = self.p.lanes, SIZES[self.p.scalar], f".L{self.name}"
        panel, width, source, b_col, k, live = ARGUMENTS
        x, first, rest, done, columns, rows, vectors, step, ahead = FREE[:9]
        saved = FREE[SCRATCH:9]
        places = [f"{-8 * (i + 1)}(%rsp)" for i in range(lanes)]  # of the columns; nobody else writes below the stack
        text = [
            f"movq {8 * (len(saved) + 1)}(%rsp), {vectors}", f"testq {k}, {k}", f"jle {at}.end",
            f"testq {vectors}, {vectors}", f"jle {at}.end",
            f"movl ${lanes}, {_low(rows)}", f"cmpq {rows}, {k}", f"cmovlq {k}, {rows}",  # of a square
            f"movq $-1, {x}", f"bzhiq {rows}, {x}, {x}", f"kmovq {x}, %k1",
            f"movq {live}, {columns}", f"imulq ${lanes}, {b_col}, {step}",
            f"{at}.vector:", f"movq {columns}, {rest}", f"xorl {_low(first)}, {_low(first)}",
        ]  # fmt: skip
        for place in places:  # the last column stands for those that are not there
            text += [f"movq {first}, {place}", f"leaq ({first},{b_col}), {x}", f"decq {rest}", f"cmovgq {x}, {first}"]
        text += [
            f"xorl {_low(done)}, {_low(done)}",
            f"{at}.square:", f"leaq {-lanes}({k}), {first}", f"cmpq {done}, {first}", f"cmovgq {done}, {first}",
            f"xorl {_low(x)}, {_low(x)}", f"testq {first}, {first}", f"cmovsq {x}, {first}",
            f"leaq ({source},{first},{size}), {rest}", f"imulq {width}, {first}", f"addq {panel}, {first}",
            f"leaq ({rest},{step}), {ahead}",
        ]  # fmt: skip
        for i, place in enumerate(places):  # the next vector's columns may come from far
            text += [f"movq {place}, {x}", f"{MOVES[size]} ({rest},{x}), %zmm{i}{{%k1}}{{z}}",
                     f"prefetcht0 ({ahead},{x})"]  # fmt: skip
        text += self.rounds()
        for i, row in enumerate(self.banks()[-1], 1):
            text += [f"vmovups {row}, ({first})", f"addq {width}, {first}", f"cmpq ${i}, {rows}", f"jle {at}.next"]
        text += [
            f"{at}.next:", f"addq ${lanes}, {done}", f"cmpq {k}, {done}", f"jl {at}.square",
            f"addq ${lanes * size}, {panel}", f"addq {step}, {source}", f"subq ${lanes}, {columns}",
            f"decq {vectors}", f"jne {at}.vector", f"{at}.end:",
        ]  # fmt: skip
        return function(self.name, saved, text)

    def banks(self) -> list[list[str]]:
        """The registers that hold the square before each round, and after the last."""
        lanes = self.p.lanes
        return [[f"%zmm{16 * (i % 2) + l}" for l in range(lanes)] for i in range(lanes.bit_length())]

    def rounds(self) -> list[str]:
        """Exchange rows and lanes, within blocks of 16 bytes and then of blocks, as `contraction_panels.transposed`."""
        lanes = self.p.lanes
        e = 16 // SIZES[self.p.scalar]  # lanes of a block
        kind = "ps" if e == 4 else "pd"
        text = []
        for i, (old, new) in enumerate(pairwise(self.banks())):
            for l in range(lanes // 2):
                if i < e.bit_length() - 1:  # within: rows l and l + e/2 of each e become 2l and 2l + 1
                    q, r = divmod(l, e // 2)
                    x, y, low, high = (q * e + n for n in (r, r + e // 2, 2 * r, 2 * r + 1))
                    ways = f"vunpckl{kind} ", f"vunpckh{kind} "
                else:  # across: even and odd blocks of two rows
                    q, r = divmod(l, e)
                    x, y, low, high = 2 * q * e + r, (2 * q + 1) * e + r, q * e + r, lanes // 2 + q * e + r
                    ways = "vshuff32x4 $0x88, ", "vshuff32x4 $0xdd, "
                text += [f"{way}{old[y]}, {old[x]}, {new[to]}" for way, to in zip(ways, (low, high), strict=True)]
        return text


def _low(register: str) -> str:
    """The lower half of a 64-bit register."""
    return f"{register}d" if register[2].isdigit() else register.replace("%r", "%e")
