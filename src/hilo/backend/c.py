"""Loop IR -> portable C11. Scalar functions only (every value has one lane). Imports loop of hilo.

Compiled with `-ffp-contract=off` (and without -ffast-math) the code gives the same bits as the LLVM backend. Integers
are held in unsigned types, which wrap; pointers as `char *`; memory is reached with memcpy, which compilers turn into
plain loads and stores.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence

from hilo.backend.nesting import run
from hilo.errors import Unsupported
from hilo.loop.nodes import I64, Block, Func, Node, VType

_TYPES = {"i1": "uint8_t", "i8": "uint8_t", "i16": "uint16_t", "i32": "uint32_t", "i64": "uint64_t", "f32": "float",
          "f64": "double", "ptr": "char *", "void": "void"}  # fmt: skip
_INFIX = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*", "udiv": "/",
          "urem": "%", "and": "&", "or": "|", "xor": "^"}  # fmt: skip
_SIGNED = {"sdiv": "/", "srem": "%"}
_SHIFTS = {"shl": "<<", "lshr": ">>", "ashr": ">>"}
_MATH = {"fma": "fma", "fabs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint",
         "trunc": "trunc", "copysign": "copysign"}  # fmt: skip
_PREDICATES = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NAME = re.compile(r"[A-Za-z_]\w*")

PRELUDE = r"""#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define HILO_MEMORY(T, N) \
  static inline T hilo_load_##N(const char *p) { T v; memcpy(&v, p, sizeof v); return v; } \
  static inline void hilo_store_##N(char *p, T v) { memcpy(p, &v, sizeof v); }
HILO_MEMORY(uint8_t, i8) HILO_MEMORY(uint16_t, i16) HILO_MEMORY(uint32_t, i32) HILO_MEMORY(uint64_t, i64)
HILO_MEMORY(float, f32) HILO_MEMORY(double, f64) HILO_MEMORY(char *, ptr)
static inline float hilo_i32_as_f32(uint32_t b) { float v; memcpy(&v, &b, sizeof v); return v; }
static inline double hilo_i64_as_f64(uint64_t b) { double v; memcpy(&v, &b, sizeof v); return v; }
static inline uint32_t hilo_f32_as_i32(float f) { uint32_t v; memcpy(&v, &f, sizeof v); return v; }
static inline uint64_t hilo_f64_as_i64(double f) { uint64_t v; memcpy(&v, &f, sizeof v); return v; }
static inline uint64_t hilo_ctpop(uint64_t x) { uint64_t n = 0; for (; x; x &= x - 1) n++; return n; }
static inline uint64_t hilo_cttz(uint64_t x, int bits) { return x ? hilo_ctpop(~x & (x - 1)) : (uint64_t)bits; }
static inline uint64_t hilo_ctlz(uint64_t x, int bits) { uint64_t n = 0; for (; x; x >>= 1) n++; return bits - n; }
static inline uint64_t hilo_bswap(uint64_t x, int bits) {
  uint64_t r = 0;
  for (int i = 0; i < bits; i += 8) r = r << 8 | (x >> i & 255);
  return r;
}
static inline float hilo_scale_f32(float x, float n) { return x == x ? ldexpf(x, (int)n) : x; }
static inline double hilo_scale_f64(double x, double n) { return x == x ? ldexp(x, (int)n) : x; }
static inline uint32_t hilo_dot(uint32_t c, uint32_t a, uint32_t b, int parts) {
  for (int i = 0; i < parts; i++)
    c += parts == 4 ? (uint32_t)(uint8_t)(a >> 8 * i) * (uint32_t)(int8_t)(b >> 8 * i)
                    : (uint32_t)(int16_t)(a >> 16 * i) * (uint32_t)(int16_t)(b >> 16 * i);
  return c;
}
static inline uint32_t hilo_sdot4(uint32_t c, uint32_t a, uint32_t b) {
  for (int i = 0; i < 32; i += 8) c += (uint32_t)(int8_t)(a >> i) * (uint32_t)(int8_t)(b >> i);
  return c;
}
static inline uint32_t hilo_udot4(uint32_t c, uint32_t a, uint32_t b) {
  for (int i = 0; i < 32; i += 8) c += (uint32_t)(uint8_t)(a >> i) * (uint32_t)(uint8_t)(b >> i);
  return c;
}
static inline float hilo_dot_bf16(float c, uint32_t a, uint32_t b) {
  c = fmaf(hilo_i32_as_f32(a & 0xffff0000u), hilo_i32_as_f32(b & 0xffff0000u), c);
  return fmaf(hilo_i32_as_f32(a << 16), hilo_i32_as_f32(b << 16), c);
}
#if defined(__GNUC__)
#define HILO_PREFETCH(p, write, locality) __builtin_prefetch(p, write, locality)
#else
#define HILO_PREFETCH(p, write, locality) ((void)0)
#endif
"""


def emit(funcs: Sequence[Func]) -> str:
    """C11 text with `funcs`. Raises `Unsupported` for a vector value or a name that C does not have."""
    for f in funcs:
        _check_name(f.name)
    defined = {f.name for f in funcs}
    declared: dict[str, str] = {}
    bodies = [_Emitter(f, declared).text() for f in funcs]
    prototypes = [_signature(f) + ";" for f in funcs]
    externals = [d for name, d in sorted(declared.items()) if name not in defined]
    return "\n".join((PRELUDE, *externals, *prototypes, *bodies)) + "\n"


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Unsupported(f"the name {name!r} is not a C identifier")
    return name


def _type(t: VType) -> str:
    if t.lanes > 1:
        raise Unsupported(f"the C backend has no vectors: {t} (lower with one lane)")
    return _TYPES[t.scalar]


def _signature(f: Func) -> str:
    params = ", ".join(f"{_type(p.type)} p{i}" for i, p in enumerate(f.params)) or "void"
    return f"{'static ' if f.attrs.get('private') else ''}{_type(f.ret)} {f.name}({params})"


def _number(value: float | int, t: VType) -> str:
    if not t.is_float:
        return f"({_type(t)}){int(value) & ((1 << t.bits) - 1):#x}{'ull' if t.bits == 64 else 'u'}"
    value = float(value)
    if t.scalar == "f32":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    if math.isfinite(value):
        return f"({value.hex()}{'f' if t.scalar == 'f32' else ''})"
    if t.scalar == "f32":
        return f"hilo_i32_as_f32({struct.unpack('<I', struct.pack('<f', value))[0]:#x}u)"
    return f"hilo_i64_as_f64({struct.unpack('<Q', struct.pack('<d', value))[0]:#x}ull)"


class _Emitter:
    """Emits one function. `names` maps a node to a C expression without effects."""

    def __init__(self, func: Func, declared: dict[str, str]) -> None:
        self.func = func
        self.declared = declared
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.results: dict[Node, list[str]] = {}
        self.depth = 1
        self.values = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def define(self, t: VType, expression: str) -> str:
        """A new variable with a value; gives its name."""
        self.values += 1
        self.line(f"{_type(t)} v{self.values} = {expression};")
        return f"v{self.values}"

    def text(self) -> str:
        self.names.update({p: f"p{i}" for i, p in enumerate(self.func.params)})
        run(self.block(self.func.body))
        return "\n".join((_signature(self.func) + " {", *self.lines, "}"))

    # ---- structure
    def block(self, block: Block) -> Iterator[Iterator]:
        structured = {"for": self.for_, "while": self.while_, "if": self.if_}
        for node in block.nodes:
            kind = node.kind
            if kind in structured:
                yield structured[kind](node)
            elif kind == "result":
                self.names[node] = self.results[node.args[0]][node.attrs["index"]]
            elif kind == "const":
                self.names[node] = _number(node.attrs["value"], node.type) if node.type.lanes == 1 else _type(node.type)
            else:
                value = getattr(self, "_" + kind, self.arithmetic)(node)
                if node.type.scalar == "void":
                    self.line(value + ";")
                else:
                    self.names[node] = self.define(node.type, value)

    def assign(self, variables: Sequence[str], nodes: Sequence[Node]) -> None:
        """Set variables to values all at once: a value may be another of the variables."""
        new = [self.define(n.type, self.names[n]) for n in nodes]
        for v, n in zip(variables, new, strict=True):
            self.line(f"{v} = {n};")

    def for_(self, node: Node) -> Iterator[Iterator]:
        lo, hi, step, *init = node.args
        (body,) = node.blocks
        carried = [self.define(v.type, self.names[v]) for v in init]
        iv = self.define(lo.type, self.names[lo])
        self.results[node] = carried
        signed = _signed(lo.type)
        self.line(f"for (; ({signed}){iv} < ({signed}){self.names[hi]}; {iv} += {self.names[step]}) {{")
        self.names.update(zip(body.params, (iv, *carried), strict=True))
        self.depth += 1
        yield self.block(body)
        self.assign(carried, body.yields)
        self.depth -= 1
        self.line("}")

    def while_(self, node: Node) -> Iterator[Iterator]:
        test, body = node.blocks
        carried = [self.define(v.type, self.names[v]) for v in node.args]
        self.results[node] = carried
        self.line("for (;;) {")
        self.depth += 1
        self.names.update(zip((*test.params, *body.params), (*carried, *carried), strict=True))
        yield self.block(test)
        self.line(f"if (!{self.names[test.yields[0]]}) break;")
        yield self.block(body)
        self.assign(carried, body.yields)
        self.depth -= 1
        self.line("}")

    def if_(self, node: Node) -> Iterator[Iterator]:
        values = []
        for y in node.blocks[0].yields:
            self.values += 1
            values.append(f"v{self.values}")
            self.line(f"{_type(y.type)} {values[-1]};")
        self.results[node] = values
        for head, block in zip((f"if ({self.names[node.args[0]]}) {{", "} else {"), node.blocks, strict=True):
            self.line(head)
            self.depth += 1
            yield self.block(block)
            for v, y in zip(values, block.yields, strict=True):
                self.line(f"{v} = {self.names[y]};")
            self.depth -= 1
        self.line("}")

    def _ret(self, node: Node) -> str:
        return f"return {self.names[node.args[0]]}" if node.args else "return"

    # ---- arithmetic
    def arithmetic(self, node: Node) -> str:
        kind, t = node.kind, node.type
        a = [self.names[x] for x in node.args]
        if kind in _MATH:
            return f"{_MATH[kind]}{'f' if t.scalar == 'f32' else ''}({', '.join(a)})"
        if t.is_float:
            return f"{a[0]} {_INFIX[kind]} {a[1]}"
        wide = "uint64_t" if t.bits == 64 else "uint32_t"
        if kind in _SIGNED:
            s = _signed(t)
            return _narrow(f"({wide})(({s}){a[0]} {_SIGNED[kind]} ({s}){a[1]})", t)
        if kind in _SHIFTS:
            left = f"({_signed(t)}){a[0]}" if kind == "ashr" else f"({wide}){a[0]}"
            return _narrow(f"{left} {_SHIFTS[kind]} ({a[1]} & {t.bits - 1})", t)
        if kind in ("ctlz", "cttz", "bswap"):
            return _narrow(f"hilo_{kind}({a[0]}, {t.bits})", t)
        if kind == "ctpop":
            return _narrow(f"hilo_ctpop({a[0]})", t)
        return _narrow(f"({wide}){a[0]} {_INFIX[kind]} ({wide}){a[1]}", t)

    def _fneg(self, node: Node) -> str:
        return f"-{self.names[node.args[0]]}"

    def _scale(self, node: Node) -> str:
        x, n = (self.names[a] for a in node.args)
        return f"hilo_scale_{node.type.scalar}({x}, {n})"

    def _dot4(self, node: Node) -> str:
        return f"hilo_dot({', '.join(self.names[a] for a in node.args)}, {node.kind[3:]})"

    _dot2 = _dot4

    def _dot_bf16(self, node: Node) -> str:
        return f"hilo_{node.kind}({', '.join(self.names[a] for a in node.args)})"

    _sdot4 = _udot4 = _dot_bf16

    def _cmp(self, node: Node) -> str:
        x, y = node.args
        a, b = self.names[x], self.names[y]
        pred = node.attrs["pred"]
        if x.type.is_float:
            if pred in ("uno", "ord"):
                return f"{'!' if pred == 'ord' else ''}({a} != {a} || {b} != {b})"
            return f"{a} {_PREDICATES[pred[1:]]} {b}"
        if pred[0] == "s":
            signed = _signed(x.type)
            a, b = f"({signed}){a}", f"({signed}){b}"
        return f"{a} {_PREDICATES[pred if pred in ('eq', 'ne') else pred[1:]]} {b}"

    def _select(self, node: Node) -> str:
        c, a, b = (self.names[x] for x in node.args)
        return f"{c} ? {a} : {b}"

    def _convert(self, node: Node) -> str:
        (x,) = node.args
        a, t, how = self.names[x], node.type, node.attrs["how"]
        if how == "bitcast":
            if x.type.scalar == t.scalar or x.type.is_float == t.is_float:
                return a
            return f"hilo_{x.type.scalar}_as_{t.scalar}({a})"
        if how == "ptrtoint":
            return _narrow(f"(uintptr_t){a}", t)
        if how in ("sext", "sitofp"):
            return f"({_type(t)})({'-' if x.type.bits == 1 else ''}({_signed(x.type)}){a})"
        if how in ("fptosi", "fptoui"):
            return _narrow(f"({_signed(t) if how == 'fptosi' else _type(t)}){a}", t)
        return _narrow(a, t) if how == "itrunc" else f"({_type(t)}){a}"

    def _splat(self, node: Node) -> str:
        _type(node.type)
        return self.names[node.args[0]]

    _lane = _shuffle = _across = _insert = _iota = _any = _splat

    # ---- memory
    def _gep(self, node: Node) -> str:
        ptr, offset = node.args
        return f"{self.names[ptr]} + (int64_t){self.names[offset]}"

    def _load(self, node: Node) -> str:
        return self.loaded(node, self.names[node.args[0]], node.args[1:])

    def _gather(self, node: Node) -> str:
        ptr, offset, *mask = node.args
        return self.loaded(node, f"{self.names[ptr]} + (int64_t){self.names[offset]}", mask)

    def loaded(self, node: Node, address: str, mask: Sequence[Node]) -> str:
        t = node.type
        value = f"hilo_load_{_memory(t)}({address})"
        if t.scalar == "i1":
            value = f"{value} != 0"
        return f"{self.names[mask[0]]} ? {value} : {_number(0, t)}" if mask else value

    def _store(self, node: Node) -> str:
        ptr, value, *mask = node.args
        return self.stored(self.names[ptr], value, mask)

    def _scatter(self, node: Node) -> str:
        ptr, offset, value, *mask = node.args
        return self.stored(f"{self.names[ptr]} + (int64_t){self.names[offset]}", value, mask)

    def stored(self, address: str, value: Node, mask: Sequence[Node]) -> str:
        text = f"hilo_store_{_memory(value.type)}({address}, {self.names[value]})"
        return f"if ({self.names[mask[0]]}) {text}" if mask else text

    def _alloca(self, node: Node) -> str:
        self.values += 1
        name = f"m{self.values}"
        self.line(f"_Alignas({node.attrs['align']}) char {name}[{max(1, node.attrs['size'])}];")
        return name

    def _data(self, node: Node) -> str:
        self.values += 1
        numbers = ", ".join(_number(x, I64) for x in node.attrs["value"])
        self.line(f"static const uint64_t d{self.values}[] = {{{numbers}}};")
        return f"(char *)d{self.values}"

    def _prefetch(self, node: Node) -> str:
        return f"HILO_PREFETCH({self.names[node.args[0]]}, {int(node.attrs['write'])}, {node.attrs['locality']})"

    def _fence(self, node: Node) -> str:
        return "atomic_thread_fence(memory_order_seq_cst)"

    def _memcpy(self, node: Node) -> str:
        return f"{node.kind}({', '.join(self.names[a] for a in node.args)})"

    _memset = _memcpy

    def _atomic_add(self, node: Node) -> str:
        ptr, value = node.args
        cell = f"(_Atomic {_type(value.type)} *){self.names[ptr]}"
        return f"atomic_fetch_add_explicit({cell}, {self.names[value]}, memory_order_relaxed)"

    # ---- calls
    def declare(self, name: str, result: VType, args: Sequence[Node]) -> None:
        params = ", ".join(_type(a.type) for a in args) or "void"
        self.declared.setdefault(_check_name(name), f"extern {_type(result)} {name}({params});")

    def _call(self, node: Node) -> str:
        name = node.attrs["callee"]
        self.declare(name, node.type, node.args)
        return f"{name}({', '.join(self.names[a] for a in node.args)})"

    def _callptr(self, node: Node) -> str:
        fn, *args = node.args
        params = ", ".join(_type(a.type) for a in args) or "void"
        called = f"(({_type(node.type)} (*)({params}))(uintptr_t){self.names[fn]})"
        return f"{called}({', '.join(self.names[a] for a in args)})"

    def _funcptr(self, node: Node) -> str:
        name = node.attrs["name"]
        self.declare(name, VType("void"), ())
        return f"(char *)(uintptr_t){name}"


def _memory(t: VType) -> str:
    return "i8" if t.scalar == "i1" else t.scalar


def _signed(t: VType) -> str:
    return "uint8_t" if t.bits == 1 else f"int{t.bits}_t"


def _narrow(expression: str, t: VType) -> str:
    """An integer expression brought back to the type's width."""
    return f"(uint8_t)(({expression}) & 1)" if t.bits == 1 else f"({_type(t)})({expression})"
