"""The loop IR: scalars and fixed vectors in SSA form, with structured control flow. About 40 kinds of nodes.

A `Func` has parameters and a body `Block`; a block is a list of `Node`s; a node is an instruction and the value it
gives. Structured nodes (`for`, `while`, `if`) hold blocks. Backends know only this file (and ir.dtypes has no say here:
i1 is a mask bit, unsigned is a property of the instruction, bf16/f16/complex do not exist at this level except as i16
in memory).

Kinds (args; attrs):
  const (; value)                 number, or a tuple of numbers for a vector constant
  arithmetic on floats            fadd fsub fmul fdiv fneg fma fabs sqrt floor ceil rint trunc copysign
  scale (x, n)                    x 2^n, rounded once, for x that are NaN or 1/4 < |x| < 4, and whole n from -200 to 128
                                  (f64: from -1200 to 1024)
  arithmetic on integers          add sub mul sdiv udiv srem urem and or xor shl lshr ashr ctpop ctlz cttz bswap
  dot4 (acc, a, b), dot2 (acc, a, b)   on i32: acc + the products of four bytes (a's unsigned, b's signed), of two i16
  sdot4, udot4 (acc, a, b)        dot4 of bytes that are all signed, all unsigned
  dot_bf16 (acc, a, b)            acc (f32) + the products of the two bf16 in each i32 lane; may take subnormals for 0
                                  (signed) parts of each lane, wrapping
  cmp (a, b; pred)                icmp: eq ne slt sle sgt sge ult ule ugt uge; fcmp: oeq une olt ole ogt oge uno ord
  select (c, a, b)
  convert (a; how)                sext zext itrunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast ptrtoint
                                  (fptosi/fptoui are undefined out of range: guard them; fptrunc is only f64->f32)
  splat (a)                       scalar -> vector;   lane (v; index) -> scalar;   insert (v, a; index)
  iota ()                         vector 0, 1, 2 ... of its integer type
  any (mask)                      whether a lane of an i1 vector is set
  across (v; how)                 all lanes of v, a power of two of them, combined into a scalar by `how` (fadd fmul add
                                  mul and or xor smin smax umin umax): lower half with upper half, until one is left
  shuffle (a, b; mask)            lanes of a then b, by a tuple of numbers
  load (ptr; align, nontemporal, invariant), (ptr, mask; ...) masked lanes give zero
  store (ptr, value; align, nontemporal), (ptr, value, mask; ...)
  gather (ptr, byte offsets; ...) / (ptr, offsets, mask),   scatter (ptr, offsets, value[, mask])
  gep (ptr, byte offset)          pointer arithmetic;   alloca (; size, align) stack memory of the function
  data (; value)                  the address of constant i64s, given as a tuple of numbers
  call (args; callee), callptr (fnptr, args)   result type of the node; callee is a symbol (another Func or external)
  prefetch (ptr; write, locality), fence (), memcpy (dst, src, size), memset (dst, byte, size)
  atomic_add (ptr, value)         relaxed fetch-add, gives the old value
  for (lo, hi, step, init...; attrs: unroll)   body block's params: induction variable, carried...; body.yields
                                  runs while iv < hi (signed); a node of several values: take them with `result`
  while (init...)                 cond block (params = carried; yields one i1), body block (params, yields carried)
  if (cond; rare)                 then and orelse blocks with yields; `rare`: hardly ever then
  result (structured; index)      one value of a structured node
  ret (value)                     the last node of a function's body block; or of a branch of an `if` that gives no
                                  values: then the function ends there (entry functions only: an error of a call)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

SIZES: Final = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "ptr": 8}


class VType:
    """A scalar (`lanes == 1`) or fixed-vector type of i1 i8 i16 i32 i64 f32 f64, or `ptr`, or `void`. Interned."""

    __slots__ = ("bits", "is_float", "lanes", "scalar", "size")
    _pool: dict[tuple[str, int], VType] = {}
    scalar: str
    lanes: int
    is_float: bool
    bits: int
    size: int  # bytes of one lane in memory

    def __new__(cls, scalar: str, lanes: int = 1) -> VType:
        key = (scalar, lanes)
        t = cls._pool.get(key)
        if t is None:
            t = object.__new__(cls)
            t.scalar, t.lanes, t.is_float = scalar, lanes, scalar[0] == "f"
            t.size = SIZES.get(scalar, 0)
            t.bits = 1 if scalar == "i1" else t.size * 8
            t = cls._pool.setdefault(key, t)
        return t

    def with_lanes(self, lanes: int) -> VType:
        return self if lanes == self.lanes else VType(self.scalar, lanes)

    def with_scalar(self, scalar: str) -> VType:
        return VType(scalar, self.lanes)

    def __repr__(self) -> str:
        return self.scalar if self.lanes == 1 else f"{self.scalar}x{self.lanes}"

    def __reduce__(self) -> Any:
        return VType, (self.scalar, self.lanes)


I1, I8, I16, I32, I64 = (VType(f"i{n}") for n in (1, 8, 16, 32, 64))
F32, F64, PTR, VOID = VType("f32"), VType("f64"), VType("ptr"), VType("void")


class Node:
    """An instruction and its value. `attrs` is a dict or None. `level` is the depth of the block that holds it; `const`
    the value of a scalar constant or of a splat of one, else None."""

    __slots__ = ("args", "attrs", "blocks", "const", "kind", "level", "type")
    kind: str
    args: tuple[Node, ...]
    attrs: dict[str, Any]
    type: VType
    blocks: tuple[Block, ...]
    level: int
    const: Any

    def __init__(self, kind: str, args: tuple[Node, ...], type: VType, attrs: dict[str, Any] | None = None,  # noqa: A002
                 level: int = 0, blocks: tuple[Block, ...] = ()) -> None:  # fmt: skip
        self.kind = kind
        self.args = args
        self.type = type
        self.attrs = attrs if attrs is not None else {}
        self.level = level
        self.blocks = blocks
        self.const = None
        if kind == "const":
            value = self.attrs["value"]
            self.const = None if isinstance(value, tuple) else value
        elif kind == "splat":
            self.const = args[0].const

    def __repr__(self) -> str:
        return f"<{self.kind} {self.type!r}>"


class Block:
    """Nodes in order; `params` are nodes of kind "param"; `yields` what a structured node's block hands back."""

    __slots__ = ("barrier", "known", "level", "nodes", "params", "parent", "yields")

    def __init__(self, parent: Block | None, barrier: bool = False) -> None:
        self.nodes: list[Node] = []
        self.params: tuple[Node, ...] = ()
        self.yields: tuple[Node, ...] = ()
        self.parent = parent
        self.level: int = 0 if parent is None else parent.level + 1
        self.barrier = barrier  # pure nodes are not hoisted out of this block (branches of `if`)
        self.known: dict[Any, Node] = {}  # pure nodes by key: equal ones are made once


class Func:
    """`params` (name, type), `ret` type, body. `attrs`: inline ("always"/"never"), private, noalias (names), rare (no
    other program is likely to have it), outer (it spends its time in what it calls, or hardly any: how good its own
    code is does not matter), product (loop.product.Product or Packing), ready (the runtime has the function, too, for
    programs of its own process). `helpers`: functions that builders may make for this one to call, by name; None where
    it must stand alone."""

    __slots__ = ("attrs", "body", "helpers", "name", "param_types", "params", "ret")

    def __init__(self, name: str, params: list[tuple[str, VType]], ret: VType = VOID, **attrs: Any) -> None:
        self.name = name
        self.ret = ret
        self.attrs = attrs
        self.helpers: dict[str, Func] | None = None
        self.body = Block(None)
        self.params = tuple(Node("param", (), t, {"name": n, "index": i}) for i, (n, t) in enumerate(params))
        self.body.params = self.params

    def __repr__(self) -> str:
        return f"<Func {self.name}>"


class Deferred(Func):
    """A function that `write` writes when it is first read. Programs share such functions, and threads compile side by
    side: each sees a whole one, and all the same."""

    __slots__ = ("_kinds", "_whole", "_write")

    def __init__(self, name: str, params: list[tuple[str, VType]], write: Callable[[Func], None], ret: VType = VOID,
                 **attrs: Any) -> None:  # fmt: skip
        self.name, self.ret, self.attrs, self.helpers = name, ret, attrs, None
        self._kinds, self._write = params, write
        self._whole: dict[None, Func] = {}  # empty until it is written

    def _read(self) -> Func:
        if not self._whole:
            whole = Func(self.name, self._kinds, self.ret)
            self._write(whole)
            self._whole.setdefault(None, whole)  # of several threads the first one's
        return self._whole[None]

    @property
    def body(self) -> Block:  # type: ignore[override]
        return self._read().body

    @property
    def params(self) -> tuple[Node, ...]:  # type: ignore[override]
        return self._read().params
