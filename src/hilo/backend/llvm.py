"""Loop IR -> LLVM IR as text, for any target that LLVM has. Imports loop and backend.target.

Values are numbered in order of appearance and nothing depends on addresses or hashes, so that equal functions give
equal text: caches key on it. Floating point is strict: no fast-math flags, and nothing is contracted that is not an `fma`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import inf

from hilo.backend.target import Target
from hilo.loop.nodes import Block, Func, Node, VType

_SCALARS = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "f32": "float", "f64": "double",
            "ptr": "ptr", "void": "void"}  # fmt: skip
_HOW = {"itrunc": "trunc"}
_PLAIN = {"fadd", "fsub", "fmul", "fdiv", "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl",
          "lshr", "ashr"}  # fmt: skip
_INTRINSIC = {"fma": "fma", "fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint",
              "trunc": "trunc", "copysign": "copysign", "ctpop": "ctpop", "bswap": "bswap"}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_.$][\w.$]*")
_METADATA = """
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{i32 1}
"""


@cache
def type_text(t: VType) -> str:
    scalar = _SCALARS[t.scalar]
    return scalar if t.lanes == 1 else f"<{t.lanes} x {scalar}>"


@cache
def suffix(t: VType) -> str:
    """How intrinsics spell a type: f32, v8i32 ..."""
    return t.scalar if t.lanes == 1 else f"v{t.lanes}{t.scalar}"


def symbol(name: str) -> str:
    if _NAME.fullmatch(name):
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


@cache
def data_layout(triple: str) -> str:
    from hilo.backend.cpu import target_machine

    return str(target_machine(triple, "", "", 1).target_data)


def emit(funcs: Sequence[Func], target: Target) -> str:
    """A module with `funcs` as LLVM IR text for `target`.

    A function is external unless it has the attribute `private`; functions called that are not in `funcs` are declared.
    Function attributes read: private, inline ("always", "never"), noalias (names of pointer parameters).
    """
    module = _Module(target)
    for f in funcs:
        module.defined.add(f.name)
    parts = [_Emitter(module, f).text() for f in funcs]
    head = f'target triple = "{target.triple}"\ntarget datalayout = "{data_layout(target.triple)}"\n'
    declared = [d for name, d in sorted(module.declared.items()) if name not in module.defined]
    cpu = f' "target-cpu"="{target.cpu}"' if target.cpu else ""
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bytes * 8}"{cpu} }}\n'
    return "\n".join((head, *parts, *declared, attributes)) + _METADATA


class _Module:
    """What the functions of one module share."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.defined: set[str] = set()
        self.declared: dict[str, str] = {}  # symbol -> its declaration

    def declare(self, name: str, result: str, params: Iterable[str]) -> str:
        if name not in self.declared:
            self.declared[name] = f"declare {result} {symbol(name)}({', '.join(params)})"
        return symbol(name)


class _Emitter:
    """Emits one function. `names` maps a node to its operand text; `here` is the label of the block being written."""

    def __init__(self, module: _Module, func: Func) -> None:
        self.module = module
        self.func = func
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.results: dict[Node, list[str]] = {}  # of structured nodes
        self.here = "entry"
        self.values = 0
        self.labels = 0

    # ---- text
    def new(self) -> str:
        self.values += 1
        return f"%v{self.values}"

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

    # ---- the function
    def text(self) -> str:
        f = self.func
        noalias = set(f.attrs.get("noalias") or ())
        params = []
        for i, p in enumerate(f.params):
            self.names[p] = f"%p{i}"
            extra = " noalias" if p.type.scalar == "ptr" and p.attrs["name"] in noalias else ""
            params.append(f"{type_text(p.type)}{extra} %p{i}")
        inline = {"always": " alwaysinline", "never": " noinline"}.get(f.attrs.get("inline") or "", "")
        linkage = "internal " if f.attrs.get("private") else ""
        head = f"define {linkage}{type_text(f.ret)} {symbol(f.name)}({', '.join(params)}){inline} #0 {{\nentry:"
        self.run(self.block(f.body))
        if not f.body.nodes or f.body.nodes[-1].kind != "ret":
            self.line("ret void")
        return "\n".join((head, *self.lines, "}"))

    def run(self, root: Iterator[Iterator]) -> None:
        """Drive nested generators with a stack of our own: any depth of nesting will do."""
        stack = [root]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            else:
                stack.append(child)

    def block(self, block: Block) -> Iterator[Iterator]:
        """Emit a block's nodes. Yields the generators of nested structures, which `run` drives to their end."""
        structured = {"for": self.for_, "while": self.while_, "if": self.if_}
        names = self.names
        for node in block.nodes:
            kind = node.kind
            if kind in structured:
                yield structured[kind](node)
            elif kind == "result":
                names[node] = self.results[node.args[0]][node.attrs["index"]]
            else:
                name = getattr(self, "_" + kind, self.plain)(node)
                if name is not None:
                    names[node] = name

    # ---- structured control flow
    def phis(self, at: int, values: Sequence[str], types: Sequence[VType], *edges: tuple[Sequence[str], str]) -> None:
        """Put phi nodes for `values` at line `at`; each edge is the incoming values and the label they come from."""
        text = []
        for i, (v, t) in enumerate(zip(values, types, strict=True)):
            incoming = ", ".join(f"[ {names[i]}, %{label} ]" for names, label in edges)
            text.append(f"  {v} = phi {type_text(t)} {incoming}")
        self.lines[at:at] = ["\n".join(text)] if text else []

    def for_(self, node: Node) -> Iterator[Iterator]:
        lo, hi, step, *init = node.args
        initial = [self.names[v] for v in (lo, *init)]
        unroll = max(1, node.attrs.get("unroll", 1))
        if unroll > 1 and step.const is not None:
            ahead = (unroll - 1) * step.const
            limit = self.op(f"sub nsw {self.arg(hi)}, {ahead}") if hi.const is None else str(hi.const - ahead)
            initial = yield from self.loop(node, initial, limit, unroll, None)
        known = lo.const is not None and hi.const is not None and lo.const < hi.const and unroll == 1
        final = yield from self.loop(node, initial, self.names[hi], 1, True if known else None)
        self.results[node] = final[1:]

    def loop(self, node: Node, initial: list[str], limit: str, copies: int, entered: bool | None) -> Iterator:
        """for (iv = initial[0]; iv < limit; ) with `copies` of the body a turn; gives the final iv and carried values."""
        lo, _, step, *init = node.args
        (body,) = node.blocks
        types = [lo.type, *(v.type for v in init)]
        iv_type = type_text(lo.type)
        flags = "nuw nsw" if lo.const is not None and lo.const >= 0 else "nsw"
        before, turn, after = self.here, self.label(), self.label()
        if entered:
            self.line(f"br label %{turn}")
        else:
            enter = self.op(f"icmp slt {iv_type} {initial[0]}, {limit}")
            self.line(f"br i1 {enter}, label %{turn}, label %{after}")
        self.start(turn)
        at = len(self.lines)
        values = [self.new() for _ in types]
        current = values
        for _ in range(copies):
            self.names.update(zip(body.params, current, strict=True))
            yield self.block(body)
            following = self.op(f"add {flags} {iv_type} {current[0]}, {self.names[step]}")
            current = [following, *(self.names[y] for y in body.yields)]
        again = self.op(f"icmp slt {iv_type} {current[0]}, {limit}")
        self.line(f"br i1 {again}, label %{turn}, label %{after}, !llvm.loop !0")
        last = self.here
        self.phis(at, values, types, (initial, before), (current, last))
        self.start(after)
        if entered:
            return current
        final = [self.new() for _ in types]
        self.phis(len(self.lines), final, types, (initial, before), (current, last))
        return final

    def while_(self, node: Node) -> Iterator[Iterator]:
        test, body = node.blocks
        types = [v.type for v in node.args]
        initial = [self.names[v] for v in node.args]
        before, head, turn, after = self.here, self.label(), self.label(), self.label()
        self.line(f"br label %{head}")
        self.start(head)
        at = len(self.lines)
        values = [self.new() for _ in types]
        self.names.update(zip(test.params, values, strict=True))
        self.names.update(zip(body.params, values, strict=True))
        yield self.block(test)
        self.line(f"br i1 {self.names[test.yields[0]]}, label %{turn}, label %{after}")
        self.start(turn)
        yield self.block(body)
        self.line(f"br label %{head}, !llvm.loop !0")
        self.phis(at, values, types, (initial, before), ([self.names[y] for y in body.yields], self.here))
        self.start(after)
        self.results[node] = values

    def if_(self, node: Node) -> Iterator[Iterator]:
        then, orelse = node.blocks
        first, second, after = self.label(), self.label(), self.label()
        self.line(f"br i1 {self.names[node.args[0]]}, label %{first}, label %{second}")
        edges = []
        for label, block in ((first, then), (second, orelse)):
            self.start(label)
            yield self.block(block)
            edges.append(([self.names[y] for y in block.yields], self.here))
            self.line(f"br label %{after}")
        self.start(after)
        types = [y.type for y in then.yields]
        values = [self.new() for _ in types]
        self.phis(len(self.lines), values, types, *edges)
        self.results[node] = values

    def _ret(self, node: Node) -> None:
        self.line(f"ret {self.arg(node.args[0])}" if node.args else "ret void")

    # ---- constants and lanes
    def _const(self, node: Node) -> str:
        value, t = node.attrs["value"], node.type
        if not isinstance(value, tuple):
            return number(value, t.scalar)
        scalar = _SCALARS[t.scalar]
        return "<" + ", ".join(f"{scalar} {number(v, t.scalar)}" for v in value) + ">"

    def _iota(self, node: Node) -> str:
        scalar = _SCALARS[node.type.scalar]
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
        return self.op(f"shufflevector {a}, {b}, <{len(mask)} x i32> <{lanes_text}>")

    def vector_of(self, node: Node) -> str:
        """A node as a vector operand: a scalar becomes a vector of one lane."""
        if node.type.lanes > 1:
            return self.arg(node)
        t = f"<1 x {type_text(node.type)}>"
        return f"{t} {self.op(f'insertelement {t} poison, {self.arg(node)}, i64 0')}"

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
        return self.op(f"{'fcmp' if a.type.is_float else 'icmp'} {node.attrs['pred']} {self.arg(a)}, {self.names[b]}")

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
            return c if t.lanes == 1 else f"splat ({_SCALARS[t.scalar]} {c})"

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

    # ---- memory. i1 lies in memory as a byte 0 or 1.
    def memory_type(self, t: VType) -> VType:
        return t.with_scalar("i8") if t.scalar == "i1" else t

    def from_memory(self, name: str, t: VType) -> str:
        if t.scalar != "i1":
            return name
        zero = "0" if t.lanes == 1 else "zeroinitializer"
        return self.op(f"icmp ne {type_text(self.memory_type(t))} {name}, {zero}")

    def to_memory(self, node: Node) -> str:
        if node.type.scalar == "i1":
            return self.op(f"zext {self.arg(node)} to {type_text(self.memory_type(node.type))}")
        return self.names[node]

    def _gep(self, node: Node) -> str:
        return self.op(f"getelementptr i8, {self.arg(node.args[0])}, {self.arg(node.args[1])}")

    def _load(self, node: Node) -> str:
        t = self.memory_type(node.type)
        if len(node.args) == 2:
            return self.from_memory(self.masked("load", node, t, None), node.type)
        hint = ", !nontemporal !3" if node.attrs.get("nontemporal") else ""
        loaded = self.op(f"load {type_text(t)}, {self.arg(node.args[0])}, align {node.attrs['align']}{hint}")
        return self.from_memory(loaded, node.type)

    def _store(self, node: Node) -> None:
        ptr, value = node.args[:2]
        t = self.memory_type(value.type)
        stored = self.to_memory(value)
        if len(node.args) == 3:
            self.masked("store", node, t, stored)
            return
        hint = ", !nontemporal !3" if node.attrs.get("nontemporal") else ""
        self.line(f"store {type_text(t)} {stored}, {self.arg(ptr)}, align {node.attrs['align']}{hint}")

    def masked(self, what: str, node: Node, t: VType, stored: str | None) -> str:
        """A masked load or store. One lane is done as a vector of one."""
        one = t.lanes == 1
        text = f"<{t.lanes} x {_SCALARS[t.scalar]}>"
        mask = self.vector_of(node.args[-1])
        ptr = self.arg(node.args[0])
        align = node.attrs["align"]
        mask_type = f"<{t.lanes} x i1>"
        name = f"llvm.masked.{what}.v{t.lanes}{t.scalar}.p0"
        if what == "load":
            args = f"{ptr}, i32 {align}, {mask}, {text} zeroinitializer"
            v = self.op(self.intrinsic(name, text, ("ptr", "i32", mask_type, text), args))
            return self.op(f"extractelement {text} {v}, i64 0") if one else v
        if one:
            stored = self.op(f"insertelement {text} poison, {type_text(t)} {stored}, i64 0")
        args = f"{text} {stored}, {ptr}, i32 {align}, {mask}"
        self.line(self.intrinsic(name, "void", (text, "ptr", "i32", mask_type), args))
        return ""

    def lane_pointers(self, ptr: Node, offsets: Node) -> str:
        n = offsets.type.lanes
        return f"<{n} x ptr> {self.op(f'getelementptr i8, {self.arg(ptr)}, {self.vector_of(offsets)}')}"

    def lane_mask(self, node: Node, position: int, lanes: int) -> str:
        return self.vector_of(node.args[position]) if len(node.args) > position else f"<{lanes} x i1> splat (i1 true)"

    def _gather(self, node: Node) -> str:
        t = self.memory_type(node.type)
        n = t.lanes
        text = f"<{n} x {_SCALARS[t.scalar]}>"
        pointers = self.lane_pointers(*node.args[:2])
        args = f"{pointers}, i32 {t.size}, {self.lane_mask(node, 2, n)}, {text} zeroinitializer"
        name = f"llvm.masked.gather.v{n}{t.scalar}.v{n}p0"
        v = self.op(self.intrinsic(name, text, (f"<{n} x ptr>", "i32", f"<{n} x i1>", text), args))
        if n == 1:
            v = self.op(f"extractelement {text} {v}, i64 0")
        return self.from_memory(v, node.type)

    def _scatter(self, node: Node) -> None:
        ptr, offsets, value = node.args[:3]
        t = self.memory_type(value.type)
        n = t.lanes
        text = f"<{n} x {_SCALARS[t.scalar]}>"
        stored = self.to_memory(value)
        if n == 1:
            stored = self.op(f"insertelement {text} poison, {type_text(t)} {stored}, i64 0")
        args = f"{text} {stored}, {self.lane_pointers(ptr, offsets)}, i32 {t.size}, {self.lane_mask(node, 3, n)}"
        name = f"llvm.masked.scatter.v{n}{t.scalar}.v{n}p0"
        self.line(self.intrinsic(name, "void", (text, f"<{n} x ptr>", "i32", f"<{n} x i1>"), args))

    def _alloca(self, node: Node) -> str:
        return self.op(f"alloca [{node.attrs['size']} x i8], align {node.attrs['align']}")

    def _prefetch(self, node: Node) -> None:
        args = f"{self.arg(node.args[0])}, i32 {int(node.attrs['write'])}, i32 {node.attrs['locality']}, i32 1"
        self.line(self.intrinsic("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"), args))

    def _fence(self, node: Node) -> None:
        if self.module.target.arch == "x86_64":
            self.line(self.intrinsic("llvm.x86.sse.sfence", "void", (), ""))
        else:
            self.line("fence seq_cst")

    def _memcpy(self, node: Node) -> None:
        args = ", ".join(self.arg(a) for a in node.args)
        self.line(self.intrinsic("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"), args + ", i1 false"))

    def _memset(self, node: Node) -> None:
        args = ", ".join(self.arg(a) for a in node.args)
        self.line(self.intrinsic("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"), args + ", i1 false"))

    def _atomic_add(self, node: Node) -> str:
        return self.op(f"atomicrmw add {self.arg(node.args[0])}, {self.arg(node.args[1])} monotonic")

    # ---- calls
    def _call(self, node: Node) -> str | None:
        name = node.attrs["callee"]
        callee = self.module.declare(name, type_text(node.type), [type_text(a.type) for a in node.args])
        return self.call(callee, node.args, node.type)

    def _callptr(self, node: Node) -> str | None:
        return self.call(self.names[node.args[0]], node.args[1:], node.type)

    def call(self, callee: str, args: Sequence[Node], t: VType) -> str | None:
        text = f"call {type_text(t)} {callee}({', '.join(self.arg(a) for a in args)})"
        if t.scalar == "void":
            self.line(text)
            return None
        return self.op(text)

    def _funcptr(self, node: Node) -> str:
        return self.module.declare(node.attrs["name"], "void", ())
