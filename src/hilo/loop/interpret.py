"""Runs loop IR with numpy: the definition of what a `Func` means, and the oracle of tests. Imports loop, errors.

A scalar is a numpy array of shape (), a vector one of shape (lanes,); lanes may be any number, so that one run of a
function written for vectors checks a hundred thousand values. Pointers are addresses, as on the machine (so that tables
of pointers in memory work), but memory is touched only through the numpy arrays that were handed in or allocated: an
access outside of them is an `Error`, and so is what traps natively (integer division by zero).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.loop.builder import Builder
from hilo.loop.exact import fma
from hilo.loop.nodes import Block, Func, Node, VType

_NP = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
       "f32": np.float32, "f64": np.float64, "ptr": np.int64}  # fmt: skip
Env = dict[Node, Any]


def run(
    func: Func, *args: Any, funcs: Iterable[Func] = (), externals: dict[str, Callable[..., Any]] | None = None
) -> Any:
    """Call `func` and give what it returns (None for void).

    An argument for a `ptr` parameter is a C-contiguous array (its data), a list of such arrays (a table of pointers to
    them) or an address; for other parameters a number, or an array of `lanes` values. `funcs` are functions it may
    call, `externals` Python functions by symbol. Raises `Error` for accesses out of bounds and division by zero.
    """
    with np.errstate(all="ignore"):
        return _Machine([func, *funcs], externals or {}).call_with(func, args)


def apply(build: Callable[..., Iterable[Node]], *arrays: np.ndarray) -> list[np.ndarray]:
    """`build(b, *nodes)` makes values from nodes; they are computed for whole arrays, one lane per element."""
    n = arrays[0].size
    types = [VType(_SCALAR[a.dtype.type], n) for a in arrays]
    func = Func("apply", [(f"x{i}", t) for i, t in enumerate(types)])
    results = tuple(build(Builder(func), *func.params))
    env: Env = dict(zip(func.params, (a.reshape(n) if n > 1 else a.reshape(()) for a in arrays)))
    with np.errstate(all="ignore"):
        _Machine([func], {}).block(func.body, env)
    return [np.array(env[r]).reshape(arrays[0].shape) for r in results]


_SCALAR = {np.bool_: "i1", np.int8: "i8", np.int16: "i16", np.int32: "i32", np.int64: "i64",
           np.float32: "f32", np.float64: "f64"}  # fmt: skip


_UNSIGNED = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def _u(x: Any) -> Any:
    """The bits of an integer array, as unsigned."""
    return np.asarray(x).view(_UNSIGNED[np.asarray(x).dtype.itemsize * 8])


def _divide(x: Any, y: Any, quotient: bool) -> Any:
    """C's division: truncated. INT_MIN / -1 traps natively, so it is refused here like a zero divisor."""
    signed = np.issubdtype(y.dtype, np.signedinteger)
    if np.any(y == 0) or (signed and np.any((y == -1) & (x == np.iinfo(x.dtype).min))):
        raise Error("integer division by zero or overflow in loop IR")
    r = np.fmod(x, y)
    return (x - r) // y if quotient else r


def _shift(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: op(x, np.minimum(_u(y), x.dtype.itemsize * 8 - 1).astype(x.dtype))


def _ones(u: Any) -> Any:
    """How many bits of each unsigned number are one (numpy 1 has no function for it)."""
    octets = np.ascontiguousarray(u)[..., None].view(np.uint8)
    return np.unpackbits(octets, axis=-1).sum(axis=-1)


def _bit_count(x: Any) -> Any:
    return _ones(_u(x)).astype(x.dtype)


def _leading_zeros(x: Any) -> Any:
    u = _u(x)
    for s in (1, 2, 4, 8, 16, 32):
        if s < u.dtype.itemsize * 8:
            u = u | (u >> u.dtype.type(s))
    return _ones(~u).astype(x.dtype)


def _trailing_zeros(x: Any) -> Any:
    u = _u(x)
    return _ones(~u & (u - u.dtype.type(1))).astype(x.dtype)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "copysign": np.copysign,
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": _shift(np.left_shift), "ashr": _shift(np.right_shift),
    "lshr": _shift(lambda x, y: np.right_shift(_u(x), _u(y)).view(x.dtype)),
    "sdiv": lambda x, y: _divide(x, y, True), "srem": lambda x, y: _divide(x, y, False),
    "udiv": lambda x, y: _divide(_u(x), _u(y), True).view(x.dtype),
    "urem": lambda x, y: _divide(_u(x), _u(y), False).view(x.dtype),
}  # fmt: skip
_EXTREMA: dict[str, Callable[[Any, Any], Any]] = {
    "smax": np.maximum, "smin": np.minimum,
    "umax": lambda x, y: np.maximum(_u(x), _u(y)).view(x.dtype),
    "umin": lambda x, y: np.minimum(_u(x), _u(y)).view(x.dtype),
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "fneg": np.negative, "fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
    "trunc": np.trunc, "ctpop": _bit_count, "ctlz": _leading_zeros, "cttz": _trailing_zeros,
    "bswap": lambda x: x.byteswap(),
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": lambda x, y: _u(x) < _u(y), "ule": lambda x, y: _u(x) <= _u(y), "ugt": lambda x, y: _u(x) > _u(y),
    "uge": lambda x, y: _u(x) >= _u(y), "oeq": np.equal, "une": np.not_equal, "olt": np.less, "ole": np.less_equal,
    "ogt": np.greater, "oge": np.greater_equal, "uno": lambda x, y: np.isnan(x) | np.isnan(y),
    "ord": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
}  # fmt: skip


def _convert(how: str, x: np.ndarray, source: VType, target: VType) -> Any:
    dtype = _NP[target.scalar]
    if how == "bitcast":
        return x.view(dtype)
    if how == "sext" and source.scalar == "i1":
        return -(x.astype(dtype))
    if how in ("zext", "uitofp"):
        return _u(x).astype(dtype)
    if how == "itrunc" and target.scalar == "i1":
        return (x & 1).astype(np.bool_)
    if how == "fptoui":
        return x.astype(_UNSIGNED[target.bits]).view(dtype)
    return x.astype(dtype)


class _Machine:
    def __init__(self, funcs: Iterable[Func], externals: dict[str, Callable[..., Any]]) -> None:
        self.funcs = {f.name: f for f in funcs}
        self.symbols = list(self.funcs)  # the "address" of a function is its place here, plus one, negated
        self.externals = externals
        self.bases: list[int] = []
        self.buffers: list[np.ndarray] = []  # bytes, in the order of their addresses
        self.data: dict[Node, np.ndarray] = {}

    # ---- memory
    def pointer(self, a: np.ndarray) -> int:
        """Make an array's memory accessible; its address."""
        if not a.flags.c_contiguous:
            raise Error("a buffer of loop IR is a C-contiguous array")
        base = a.ctypes.data
        i = bisect.bisect_left(self.bases, base)
        if i < len(self.bases) and self.bases[i] == base:
            if self.buffers[i].size < a.nbytes:
                self.buffers[i] = a.reshape(-1).view(np.uint8)
        elif a.nbytes:
            self.bases.insert(i, base)
            self.buffers.insert(i, a.reshape(-1).view(np.uint8))
        return base

    def memory(self, address: Any, size: int) -> np.ndarray:
        """The `size` bytes at an address."""
        address = int(address)
        i = bisect.bisect_right(self.bases, address) - 1
        if size and (i < 0 or address + size > self.bases[i] + self.buffers[i].size):
            raise Error(f"loop IR touches {size} bytes at {address:#x}, outside of every buffer")
        return self.buffers[i][address - self.bases[i] :][:size] if size else np.empty(0, np.uint8)

    def load(self, t: VType, address: Any, mask: Any = None) -> Any:
        dtype = np.dtype(_NP[t.scalar])
        if mask is None:
            v = self.memory(address, t.lanes * t.size).view(dtype)
            return v.copy() if t.lanes > 1 else v[0].copy().reshape(())
        return self.gather(t, address, np.arange(t.lanes) * t.size if t.lanes > 1 else np.array(0), mask)

    def gather(self, t: VType, address: Any, offsets: Any, mask: Any = None) -> Any:
        out = np.zeros(offsets.shape, _NP[t.scalar])
        for i in np.ndindex(offsets.shape):
            if mask is None or mask[i]:
                out[i] = self.memory(address + offsets[i], t.size).view(out.dtype)[0]
        return out

    def store(self, t: VType, address: Any, value: Any, mask: Any = None) -> None:
        if mask is None:
            self.memory(address, t.lanes * t.size)[:] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        else:
            self.scatter(t, address, np.arange(t.lanes) * t.size if t.lanes > 1 else np.array(0), value, mask)

    def scatter(self, t: VType, address: Any, offsets: Any, value: Any, mask: Any = None) -> None:
        for i in np.ndindex(offsets.shape):
            if mask is None or mask[i]:
                self.memory(address + offsets[i], t.size)[:] = np.frombuffer(value[i].tobytes(), np.uint8)

    # ---- calls and blocks
    def call_with(self, func: Func, args: Sequence[Any]) -> Any:
        values = []
        keep = []  # tables of pointers live as long as the call
        for p, a in zip(func.params, args, strict=True):
            if isinstance(a, list):
                a = np.array([self.pointer(x) for x in a], np.int64)
                keep.append(a)
            if p.type.scalar == "ptr" and isinstance(a, np.ndarray):
                a = self.pointer(a)
            values.append(np.asarray(a, _NP[p.type.scalar]))
        return self.call(func, values)

    def call(self, func: Func, args: Sequence[Any]) -> Any:
        env: Env = dict(zip(func.params, args, strict=True))
        bases, buffers = list(self.bases), list(self.buffers)
        result = self.block(func.body, env)
        self.bases, self.buffers = bases, buffers  # the stack memory of the call is gone
        return result

    def block(self, block: Block, env: Env) -> Any:
        """Run a block; gives what a `ret` in it returns."""
        result = None
        for node in block.nodes:
            kind = node.kind
            args = [env[a] for a in node.args]
            if kind in _BINARY:
                env[node] = _BINARY[kind](args[0], args[1])
            elif kind == "cmp":
                env[node] = _COMPARE[node.attrs["pred"]](args[0], args[1])
            elif kind in _UNARY:
                env[node] = _UNARY[kind](args[0])
            elif kind == "ret":
                result = args[0] if args else None
            else:
                env[node] = getattr(self, "do_" + kind)(node, env, *args)
            if isinstance(env.get(node), np.generic):
                env[node] = np.asarray(env[node])
        return result

    def yields(self, block: Block, env: Env, params: Sequence[Any]) -> list[Any]:
        env.update(zip(block.params, params, strict=True))
        self.block(block, env)
        return [env[y] for y in block.yields]

    # ---- the other kinds
    def do_const(self, node: Node, env: Env) -> Any:
        return np.array(node.attrs["value"], _NP[node.type.scalar])

    def do_splat(self, node: Node, env: Env, x: Any) -> Any:
        return np.full(node.type.lanes, x)

    def do_fma(self, node: Node, env: Env, a: Any, b: Any, c: Any) -> Any:
        return fma(a, b, c)

    def do_scale(self, node: Node, env: Env, x: Any, n: Any) -> Any:
        return np.ldexp(x, np.nan_to_num(n).astype(np.int32))

    def do_dot4(self, node: Node, env: Env, acc: Any, a: Any, b: Any) -> Any:
        parts = 32 // int(node.kind[-1])
        total = acc
        for at in range(0, 32, parts):
            x, y = (np.left_shift(v, 32 - parts - at) for v in (a, b))
            unsigned = {"dot4": (True, False), "udot4": (True, True)}.get(node.kind, (False, False))
            x, y = (np.right_shift(v.view(np.uint32) if u else v, 32 - parts).view(np.int32)
                    for v, u in zip((x, y), unsigned, strict=True))  # fmt: skip
            total = total + x * y
        return total

    do_dot2 = do_sdot4 = do_udot4 = do_dot4

    def do_dot_bf16(self, node: Node, env: Env, acc: Any, a: Any, b: Any) -> Any:
        high = np.int32(-65536)
        upper = fma(np.bitwise_and(a, high).view(np.float32), np.bitwise_and(b, high).view(np.float32), acc)
        return fma(np.left_shift(a, 16).view(np.float32), np.left_shift(b, 16).view(np.float32), upper)

    def do_select(self, node: Node, env: Env, c: Any, a: Any, b: Any) -> Any:
        return np.where(c, a, b)

    def do_convert(self, node: Node, env: Env, x: Any) -> Any:
        return _convert(node.attrs["how"], x, node.args[0].type, node.type)

    def do_lane(self, node: Node, env: Env, v: Any) -> Any:
        return v[node.attrs["index"]]

    def do_insert(self, node: Node, env: Env, v: Any, a: Any) -> Any:
        v = v.copy()
        v[node.attrs["index"]] = a
        return v

    def do_any(self, node: Node, env: Env, mask: Any) -> Any:
        return np.any(mask)

    def do_iota(self, node: Node, env: Env) -> Any:
        return np.arange(node.type.lanes, dtype=_NP[node.type.scalar])

    def do_shuffle(self, node: Node, env: Env, a: Any, b: Any) -> Any:
        both = np.concatenate([np.atleast_1d(a), np.atleast_1d(b)])
        out = both[list(node.attrs["mask"])]
        return out if out.size > 1 else out.reshape(())

    def do_across(self, node: Node, env: Env, v: Any) -> Any:
        how = node.attrs["how"]
        while v.size > 1:
            low, high = v[: v.size // 2], v[v.size // 2 :]
            v = (_BINARY.get(how) or _EXTREMA[how])(low, high)
        return v.reshape(())

    def do_load(self, node: Node, env: Env, ptr: Any, mask: Any = None) -> Any:
        return self.load(node.type, ptr, mask)

    def do_store(self, node: Node, env: Env, ptr: Any, value: Any, mask: Any = None) -> None:
        self.store(node.args[1].type, ptr, value, mask)

    def do_gather(self, node: Node, env: Env, ptr: Any, offsets: Any, mask: Any = None) -> Any:
        return self.gather(node.type, ptr, offsets, mask)

    def do_scatter(self, node: Node, env: Env, ptr: Any, offsets: Any, value: Any, mask: Any = None) -> None:
        self.scatter(node.args[2].type, ptr, offsets, value, mask)

    def do_gep(self, node: Node, env: Env, ptr: Any, offset: Any) -> Any:
        return ptr + offset

    def do_alloca(self, node: Node, env: Env) -> Any:
        size, align = node.attrs["size"], node.attrs["align"]
        raw = np.full(size + align, 0xA5, np.uint8)  # not zero, so that reading what was never written shows
        skip = -raw.ctypes.data % align
        return np.asarray(self.pointer(raw[skip : skip + size]), np.int64)

    def do_data(self, node: Node, env: Env) -> Any:
        if node not in self.data:
            self.data[node] = np.array(node.attrs["value"], np.int64)
        return np.asarray(self.pointer(self.data[node]), np.int64)

    def do_call(self, node: Node, env: Env, *args: Any) -> Any:
        return self.symbol(node.attrs["callee"], args)

    def do_callptr(self, node: Node, env: Env, fn: Any, *args: Any) -> Any:
        if not -len(self.symbols) <= int(fn) < 0:
            raise Error(f"loop IR calls {int(fn):#x}, which is no function")
        return self.symbol(self.symbols[-1 - int(fn)], args)

    def do_funcptr(self, node: Node, env: Env) -> Any:
        name = node.attrs["name"]
        if name not in self.symbols:
            self.symbols.append(name)
        return np.asarray(-1 - self.symbols.index(name), np.int64)

    def symbol(self, name: str, args: Sequence[Any]) -> Any:
        if name in self.funcs:
            return self.call(self.funcs[name], args)
        if name not in self.externals:
            raise Error(f"loop IR calls {name}, which is not known")
        return self.externals[name](*args)

    def do_prefetch(self, node: Node, env: Env, *args: Any) -> None:
        """Nothing: memory is as it is. A fence neither."""

    do_fence = do_prefetch

    def do_memcpy(self, node: Node, env: Env, dst: Any, src: Any, size: Any) -> None:
        self.memory(dst, int(size))[:] = self.memory(src, int(size)).copy()

    def do_memset(self, node: Node, env: Env, dst: Any, byte: Any, size: Any) -> None:
        self.memory(dst, int(size))[:] = int(byte) & 255

    def do_atomic_add(self, node: Node, env: Env, ptr: Any, value: Any) -> Any:
        old = self.load(node.args[1].type, ptr)
        self.store(node.args[1].type, ptr, old + value)
        return old

    def do_for(self, node: Node, env: Env, lo: Any, hi: Any, step: Any, *carried: Any) -> Sequence[Any]:
        for i in range(int(lo), int(hi), int(step)):
            carried = tuple(self.yields(node.blocks[0], env, [np.asarray(i, lo.dtype), *carried]))
        return carried

    def do_while(self, node: Node, env: Env, *carried: Any) -> Sequence[Any]:
        test, body = node.blocks
        while self.yields(test, env, carried)[0]:
            carried = tuple(self.yields(body, env, carried))
        return carried

    def do_if(self, node: Node, env: Env, cond: Any) -> Sequence[Any]:
        return self.yields(node.blocks[0 if cond else 1], env, ())

    def do_result(self, node: Node, env: Env, values: Sequence[Any]) -> Any:
        return values[node.attrs["index"]]
