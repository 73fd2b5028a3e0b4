"""LLVM IR text for constants, lanes and arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from hilo.backend.llvm_text import SCALARS, Writer, number, suffix, type_text
from hilo.loop.nodes import Node, VType

_HOW = {"itrunc": "trunc"}
# Shuffles one behind the other until LLVM is kept from looking further back. It looks for one shuffle in place of many
# along all ways through a register transposition, finds none, and takes longer than for all else in such a kernel.
CHAIN = 2
_PLAIN = {"fadd", "fsub", "fmul", "fdiv", "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor",
          "shl", "lshr", "ashr"}  # fmt: skip
_INTRINSIC = {"fma": "fma", "fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint",
              "trunc": "trunc", "copysign": "copysign", "ctpop": "ctpop", "bswap": "bswap"}  # fmt: skip


class Values(Writer):
    """The instructions that make values from values; a method `_kind` for each kind of node, or `plain`."""

    # ---- constants and lanes
    def _const(self, node: Node) -> str:
        value, t = node.attrs["value"], node.type
        if not isinstance(value, tuple):
            return number(value, t.scalar)
        scalar = SCALARS[t.scalar]
        return "<" + ", ".join(f"{scalar} {number(v, t.scalar)}" for v in value) + ">"

    def _iota(self, node: Node) -> str:
        scalar = SCALARS[node.type.scalar]
        return "<" + ", ".join(f"{scalar} {number(i, node.type.scalar)}" for i in range(node.type.lanes)) + ">"

    def _splat(self, node: Node) -> str:
        (a,) = node.args
        if a.const is not None:
            return f"splat ({self.arg(a)})"
        t = type_text(node.type)
        v = self.op(f"insertelement {t} poison, {self.arg(a)}, i64 0")
        return self.op(f"shufflevector {t} {v}, {t} poison, <{node.type.lanes} x i32> zeroinitializer")

    def _lane(self, node: Node) -> str:
        return self.op(f"extractelement {self.arg(node.args[0])}, i64 {node.attrs['index']}")

    def _any(self, node: Node) -> str:
        (mask,) = node.args
        bits = self.op(f"bitcast {self.arg(mask)} to i{mask.type.lanes}")
        return self.op(f"icmp ne i{mask.type.lanes} {bits}, 0")

    def _insert(self, node: Node) -> str:
        v, a = node.args
        return self.op(f"insertelement {self.arg(v)}, {self.arg(a)}, i64 {node.attrs['index']}")

    def _shuffle(self, node: Node) -> str:
        a, b = (self.vector_of(x) for x in node.args)
        mask = node.attrs["mask"]
        if len(mask) == 1:
            lanes = node.args[0].type.lanes
            return self.op(f"extractelement {a if mask[0] < lanes else b}, i64 {mask[0] % lanes}")
        lanes_text = ", ".join(f"i32 {m}" for m in mask)
        name = self.op(f"shufflevector {a}, {b}, <{len(mask)} x i32> <{lanes_text}>")
        depth = 1 + max(self.shuffled.get(x, 0) for x in node.args)
        bytes_ = node.type.lanes * node.type.size
        if depth < CHAIN or not node.type.is_float or bytes_ > self.module.target.vector_bytes:
            self.shuffled[node] = depth
            return name
        return self.call_intrinsic("arithmetic.fence", node.type, (name,))

    def _across(self, node: Node) -> str:
        (v,), how, t = node.args, node.attrs["how"], node.args[0].type
        if self.module.target.arch == "x86_64" and self.module.target.has_masks:
            from hilo.backend.x86_lanes import across

            code, operands = across(how, t)
            if code:
                part, one = type_text(t.with_lanes(16 // t.size)), type_text(node.type)
                values = f"{{ {part}, {part} }}" if t.is_float else f"{{ {one}, {part}, {part} }}"
                taken = self.arg(v)
                if t.lanes * t.size == 64:
                    low = ", ".join(f"i32 {i}" for i in range(t.lanes // 2))
                    low = self.op(f"shufflevector {taken}, {type_text(t)} poison, <{t.lanes // 2} x i32> <{low}>")
                    taken += f", {type_text(t.with_lanes(t.lanes // 2))} {low}"
                made = self.op(f'call {values} asm "{code}", "{operands}"({taken})')
                first = self.op(f"extractvalue {values} {made}, 0")
                return self.op(f"extractelement {part} {first}, i64 0") if t.is_float else first
        name, n = self.names[v], t.lanes
        while n > 1:
            whole, half = type_text(t.with_lanes(n)), type_text(t.with_lanes(n // 2))
            parts = []
            for start in (0, n // 2):
                lanes = ", ".join(f"i32 {start + i}" for i in range(n // 2))
                parts.append(self.op(f"shufflevector {whole} {name}, {whole} poison, <{n // 2} x i32> <{lanes}>")
                             if n > 2 else self.op(f"extractelement {whole} {name}, i64 {start}"))
            n //= 2
            if how in _PLAIN:
                name = self.op(f"{how} {half} {parts[0]}, {parts[1]}")
            else:
                name = self.call_intrinsic(how, t.with_lanes(n), parts)
        return name

    # ---- arithmetic
    def plain(self, node: Node) -> str:
        kind, t = node.kind, node.type
        args = node.args
        if kind in _PLAIN:
            return self.op(f"{kind} {self.arg(args[0])}, {self.names[args[1]]}")
        if kind == "bswap" and t.bits == 8:
            return self.names[args[0]]
        name = _INTRINSIC[kind]
        return self.call_intrinsic(name, t, [self.names[a] for a in args])

    def call_intrinsic(self, name: str, t: VType, operands: Sequence[str]) -> str:
        """`llvm.name` of operands that are all of the type it gives."""
        text = type_text(t)
        args = ", ".join(f"{text} {a}" for a in operands)
        return self.op(self.intrinsic(f"llvm.{name}.{suffix(t)}", text, [text] * len(operands), args))

    def _fneg(self, node: Node) -> str:
        return self.op(f"fneg {self.arg(node.args[0])}")

    def _bits_count(self, node: Node) -> str:
        t = type_text(node.type)
        name = f"llvm.{node.kind}.{suffix(node.type)}"
        return self.op(self.intrinsic(name, t, (t, "i1"), f"{self.arg(node.args[0])}, i1 false"))

    _ctlz = _cttz = _bits_count

    def _cmp(self, node: Node) -> str:
        a, b = node.args
        if node.type.lanes > 1 and a.kind == "iota" and b.const is not None and node.attrs["pred"] == "slt":
            return self.opaque_mask(min(max(b.const, 0), node.type.lanes), node.type.lanes)
        return self.op(f"{'fcmp' if a.type.is_float else 'icmp'} {node.attrs['pred']} {self.arg(a)}, {self.names[b]}")

    def opaque_mask(self, on: int, lanes: int) -> str:
        """The mask of the first `on` lanes, as a value that LLVM knows nothing about.

        Knowing that some lanes of a masked operation are off, LLVM narrows what feeds it, and then fails to select
        instructions for some of that (a gather, widened from 32 to 64 bits): it aborts the process."""
        bits = max(lanes, 8)
        value = (1 << on) - 1
        value -= (1 << bits) if value >> (bits - 1) else 0
        v = self.op(f'call i{bits} asm "", "=r,0"(i{bits} {value})')
        if bits > lanes:
            v = self.op(f"trunc i{bits} {v} to i{lanes}")
        return self.op(f"bitcast i{lanes} {v} to <{lanes} x i1>")

    def _select(self, node: Node) -> str:
        return self.op("select " + ", ".join(self.arg(a) for a in node.args))

    def _convert(self, node: Node) -> str:
        how = node.attrs["how"]
        return self.op(f"{_HOW.get(how, how)} {self.arg(node.args[0])} to {type_text(node.type)}")

    def _rounding(self, node: Node) -> str:
        a, t = self.names[node.args[0]], node.type
        if self.module.target.has_rounding:
            return self.call_intrinsic(_INTRINSIC[node.kind], t, (a,))
        return self.soft_rounding(node.kind, a, t)

    _floor = _ceil = _rint = _trunc = _rounding

    def soft_rounding(self, kind: str, x: str, t: VType) -> str:
        """Rounding by adding and subtracting 2**mantissa bits: exact, keeps -0, NaN and what is an integer already."""
        text = type_text(t)

        def splat(value: float) -> str:
            c = number(value, t.scalar)
            return c if t.lanes == 1 else f"splat ({SCALARS[t.scalar]} {c})"

        magic = splat(2.0**23 if t.scalar == "f32" else 2.0**52)
        size = self.call_intrinsic("fabs", t, (x,))
        whole = self.op(f"fadd {text} {size}, {magic}")
        r = near = self.op(f"fsub {text} {whole}, {magic}")
        mask = "i1" if t.lanes == 1 else f"<{t.lanes} x i1>"
        if kind != "rint":
            if kind == "trunc":
                off = self.op(f"fcmp ogt {text} {near}, {size}")
                moved = self.op(f"fsub {text} {near}, {splat(1.0)}")
            else:
                near = self.call_intrinsic("copysign", t, (near, x))
                off = self.op(f"fcmp {'ogt' if kind == 'floor' else 'olt'} {text} {near}, {x}")
                moved = self.op(f"{'fsub' if kind == 'floor' else 'fadd'} {text} {near}, {splat(1.0)}")
            r = self.op(f"select {mask} {off}, {text} {moved}, {text} {near}")
        r = self.call_intrinsic("copysign", t, (r, x))
        small = self.op(f"fcmp olt {text} {size}, {magic}")
        return self.op(f"select {mask} {small}, {text} {r}, {text} {x}")

    # ---- products with powers of two
    def _scale(self, node: Node) -> str:
        t, target = node.type, self.module.target
        x, n = (self.names[a] for a in node.args)
        if target.has_scale and target.arch == "x86_64":
            if t.lanes * t.size in (16, 32, 64):
                return self.hard_scale(x, n, t)
            if t.lanes == 1:  # in the first lane of a register
                wide, text = t.with_lanes(16 // t.size), type_text(t)
                lanes = type_text(wide)
                x, n = (self.op(f"insertelement {lanes} zeroinitializer, {text} {v}, i64 0") for v in (x, n))
                return self.op(f"extractelement {lanes} {self.hard_scale(x, n, wide)}, i64 0")
        return self.soft_scale(x, n, t)

    def hard_scale(self, x: str, n: str, t: VType) -> str:
        """By AVX-512's instruction for a whole register."""
        text, bits, mask = type_text(t), t.lanes * t.bits, f"i{max(t.lanes, 8)}"
        name = f"llvm.x86.avx512.mask.scalef.p{'s' if t.size == 4 else 'd'}.{bits}"
        params, args = [text] * 3 + [mask], f"{text} {x}, {text} {n}, {text} zeroinitializer, {mask} -1"
        if bits == 512:  # rounded as all else is
            params, args = [*params, "i32"], args + ", i32 4"
        return self.op(self.intrinsic(name, text, params, args))

    def soft_scale(self, x: str, n: str, t: VType) -> str:
        """By two halves of n, neither of which is beyond the exponents that there are. Where n is NaN they are no NaN:
        the result is then x to the bit."""
        digits, bias, whole = (23, 127, "i32") if t.scalar == "f32" else (52, 1023, "i64")
        text, bits = type_text(t), type_text(t.with_scalar(whole))

        def splat(value: int | float, scalar: str) -> str:
            c = number(value, scalar)
            return c if t.lanes == 1 else f"splat ({SCALARS[scalar]} {c})"

        k = self.op(f"fadd {text} {n}, {splat(1.5 * 2.0**digits + 2 * bias, t.scalar)}")
        k = self.op(f"bitcast {text} {k} to {bits}")
        k = self.op(f"and {bits} {k}, {splat(4 * bias + 3, whole)}")  # n + 2 bias: the lowest bits of the sum
        half = self.op(f"lshr {bits} {k}, {splat(1, whole)}")
        for part in (half, self.op(f"sub {bits} {k}, {half}")):
            power = self.op(f"shl {bits} {part}, {splat(digits, whole)}")
            power = self.op(f"bitcast {bits} {power} to {text}")
            x = self.op(f"fmul {text} {x}, {power}")
        return x

    # ---- dot products of parts of 32-bit lanes
    def _dot4(self, node: Node) -> str:
        t, target = node.type, self.module.target
        if target.has_dot4 and t.lanes in (4, 8, 16):
            text = type_text(t)
            args = ", ".join(self.arg(a) for a in node.args)
            return self.op(self.intrinsic(f"llvm.x86.avx512.vpdpbusd.{t.lanes * 32}", text, [text] * 3, args))
        return self.soft_dot(node, 8)

    def _same_dot4(self, node: Node) -> str:
        t, target = node.type, self.module.target
        if not target.has_same_dot4 or target.arch != "aarch64" or t.lanes not in (2, 4):
            return self.soft_dot(node, 8)
        text, bytes_ = type_text(t), f"<{t.lanes * 4} x i8>"
        acc, *parts = node.args
        a, b = (self.op(f"bitcast {self.arg(p)} to {bytes_}") for p in parts)
        name = f"llvm.aarch64.neon.{node.kind[:4]}.v{t.lanes}i32.v{t.lanes * 4}i8"
        args = f"{self.arg(acc)}, {bytes_} {a}, {bytes_} {b}"
        return self.op(self.intrinsic(name, text, (text, bytes_, bytes_), args))

    _sdot4 = _udot4 = _same_dot4

    def _dot2(self, node: Node) -> str:
        t, target = node.type, self.module.target
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}.get(t.lanes)
        if name is None or target.arch != "x86_64" or t.lanes * 4 > target.vector_bytes:
            return self.soft_dot(node, 16)
        text, half = type_text(t), f"<{t.lanes * 2} x i16>"
        acc, *parts = node.args
        a, b = (self.op(f"bitcast {self.arg(p)} to {half}") for p in parts)
        products = self.op(self.intrinsic(f"llvm.x86.{name}", text, (half, half), f"{half} {a}, {half} {b}"))
        return self.op(f"add {self.arg(acc)}, {products}")

    def _dot_bf16(self, node: Node) -> str:
        t, target = node.type, self.module.target
        acc, *pairs = node.args
        if target.has_dot_bf16 and t.lanes in (4, 8, 16):
            text, half = type_text(t), f"<{t.lanes * 2} x bfloat>"
            a, b = (self.op(f"bitcast {self.arg(p)} to {half}") for p in pairs)
            name = f"llvm.x86.avx512bf16.dpbf16ps.{t.lanes * 32}"
            return self.op(self.intrinsic(name, text, (text, half, half), f"{self.arg(acc)}, {half} {a}, {half} {b}"))
        text, total = type_text(t), self.names[acc]
        whole = type_text(node.args[1].type)

        def splat(value: int) -> str:
            return str(value) if t.lanes == 1 else f"splat (i32 {value})"

        for part in (f"and {whole} %s, {splat(-65536)}", f"shl {whole} %s, {splat(16)}"):
            x, y = (self.op(f"bitcast {whole} {self.op(part % self.names[p])} to {text}") for p in pairs)
            total = self.call_intrinsic("fma", t, (x, y, total))
        return total

    def soft_dot(self, node: Node, bits: int) -> str:
        """acc + the products of the parts, cut out with shifts: some bytes are unsigned, all else is signed."""
        t = type_text(node.type)
        total, a, b = (self.names[x] for x in node.args)

        def splat(value: int) -> str:
            return str(value) if node.type.lanes == 1 else f"splat (i32 {value})"

        first, second = {"dot4": ("lshr", "ashr"), "udot4": ("lshr", "lshr")}.get(node.kind, ("ashr", "ashr"))
        for at in range(0, 32, bits):
            x, y = (self.op(f"shl {t} {v}, {splat(32 - bits - at)}") for v in (a, b))
            x = self.op(f"{first} {t} {x}, {splat(32 - bits)}")
            y = self.op(f"{second} {t} {y}, {splat(32 - bits)}")
            product = self.op(f"mul {t} {x}, {y}")
            total = self.op(f"add {t} {total}, {product}")
        return total
