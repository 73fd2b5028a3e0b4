"""LLVM IR text for memory, calls and other effects."""

from __future__ import annotations

from collections.abc import Sequence

from hilo.backend.llvm_text import SCALARS, Writer, type_text
from hilo.loop.nodes import Node, VType


class Effects(Writer):
    """The instructions that touch memory or call; i1 lies in memory as a byte 0 or 1."""

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
        hint = ", !nontemporal !0" if node.attrs.get("nontemporal") else ""
        loaded = self.op(f"load {type_text(t)}, {self.arg(node.args[0])}, align {node.attrs['align']}{hint}")
        return self.from_memory(loaded, node.type)

    def _store(self, node: Node) -> None:
        ptr, value = node.args[:2]
        t = self.memory_type(value.type)
        stored = self.to_memory(value)
        if len(node.args) == 3:
            self.masked("store", node, t, stored)
            return
        hint = ", !nontemporal !0" if node.attrs.get("nontemporal") else ""
        self.line(f"store {type_text(t)} {stored}, {self.arg(ptr)}, align {node.attrs['align']}{hint}")

    def masked(self, what: str, node: Node, t: VType, stored: str | None) -> str:
        """A masked load or store. One lane is done as a vector of one.

        A mask of constants with one lane set is done by hand: LLVM 22 for x86 stores too many bytes where the value is
        a truncated one (it narrows the value, then stores it as wide as it was).
        """
        from hilo.backend.constants import known_lanes

        lanes = known_lanes(node.args[-1])
        if lanes is not None and sum(lanes) == 1:
            return self.one_lane(node, t, lanes.index(1), stored)
        one = t.lanes == 1
        text = f"<{t.lanes} x {SCALARS[t.scalar]}>"
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

    def one_lane(self, node: Node, t: VType, lane: int, stored: str | None) -> str:
        """A load or store of lane `lane` of a vector alone."""
        scalar = SCALARS[t.scalar]
        ptr = self.arg(node.args[0])
        if lane:
            ptr = f"ptr {self.op(f'getelementptr i8, {ptr}, i64 {lane * t.size}')}"
        text = type_text(t)
        if stored is None:
            v = self.op(f"load {scalar}, {ptr}, align {t.size}")
            return v if t.lanes == 1 else self.op(f"insertelement {text} zeroinitializer, {scalar} {v}, i64 {lane}")
        if t.lanes > 1:
            stored = self.op(f"extractelement {text} {stored}, i64 {lane}")
        self.line(f"store {scalar} {stored}, {ptr}, align {t.size}")
        return ""

    def lane_pointers(self, ptr: Node, offsets: Node) -> str:
        n = offsets.type.lanes
        return f"<{n} x ptr> {self.op(f'getelementptr i8, {self.arg(ptr)}, {self.vector_of(offsets)}')}"

    def lane_mask(self, node: Node, position: int, lanes: int) -> str:
        return self.vector_of(node.args[position]) if len(node.args) > position else f"<{lanes} x i1> splat (i1 true)"

    def _gather(self, node: Node) -> str:
        t = self.memory_type(node.type)
        n = t.lanes
        text = f"<{n} x {SCALARS[t.scalar]}>"
        pointers = self.lane_pointers(*node.args[:2])
        args = f"{pointers}, i32 {t.size}, {self.lane_mask(node, 2, n)}, {text} zeroinitializer"
        name = f"llvm.masked.gather.v{n}{t.scalar}.v{n}p0"
        v = self.op(self.intrinsic(name, text, (f"<{n} x ptr>", "i32", f"<{n} x i1>", text), args))
        # LLVM (22.1) cannot select some extensions of gathered lanes that it sees through, and ends the process.
        v = self.op(f"freeze {text} {v}")
        if n == 1:
            v = self.op(f"extractelement {text} {v}, i64 0")
        return self.from_memory(v, node.type)

    def _scatter(self, node: Node) -> None:
        ptr, offsets, value = node.args[:3]
        t = self.memory_type(value.type)
        n = t.lanes
        text = f"<{n} x {SCALARS[t.scalar]}>"
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

    def _data(self, node: Node) -> str:
        data = self.module.data
        return data.setdefault(node.attrs["value"], f"@data.{len(data)}")

    def _funcptr(self, node: Node) -> str:
        return self.module.declare(node.attrs["name"], "void", ())
