"""Calls out of a program, as its entry makes them: hilo's own convention, whose structs lie on the stack. Imports
custom_calls, loop and plan.program; loaded for programs that call out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilo.custom_calls.element_types import NUMBERS
from hilo.custom_calls.signature import signature_of
from hilo.ir.dims import Size
from hilo.loop import sizes
from hilo.loop.builder import I32, I64, PTR
from hilo.plan.program import HostCall

if TYPE_CHECKING:
    from hilo.plan.entry import Writer

CONSTANTS = 8  # byte offset in struct hilo_ctx, as the next ones
_MESSAGE, _MESSAGE_SIZE, _FAILED = 32, 40, 48
_CALL_BYTES, _BUFFER_BYTES = 72, 24  # of struct hilo_call and struct hilo_buffer (runtime/native/hilo_custom_call.h)


def open_dims(s: HostCall) -> list[Size]:
    """The run-time sizes among the dims of a call's operands and results: it finds them before its pointers."""
    g = signature_of(s.op)
    dims = [d for t in (*g.operand_tensors(), *g.result_tensors()) for d in t.shape]
    return [d for d in dims if isinstance(d, Size)]


def call_size(s: HostCall) -> int:
    """Bytes of the structs of a call by hilo's own convention."""
    g = signature_of(s.op)
    types = (*g.operand_tensors(), *g.result_tensors())
    return _CALL_BYTES + sum(_BUFFER_BYTES + 8 * t.rank for t in types)


def direct_call(w: Writer, s: HostCall) -> None:
    """Call native code by hilo's own convention: fills its structs, which lie on the stack."""
    b, g = w.b, signature_of(s.op)
    types = (*g.operand_tensors(), *g.result_tensors())
    if w.call_block is None:
        w.call_block = b.alloca(w.layout.call_size)
    block, buffers = w.call_block, b.gep(w.call_block, _CALL_BYTES)
    dims = _CALL_BYTES + _BUFFER_BYTES * len(types)
    for i, (x, t) in enumerate(zip((*s.operands, *s.results), types, strict=True)):
        at = _CALL_BYTES + _BUFFER_BYTES * i
        fields = (w.address(x), b.gep(block, dims), b.const(t.rank, I32), b.const(NUMBERS[t.dtype.name], I32))
        for offset, value in zip((0, 8, 16, 20), fields, strict=True):
            b.store(b.gep(block, at + offset), value)
        for d in t.shape:
            b.store(b.gep(block, dims), sizes.node(b, d))
            dims += 8
    assert s.config is not None
    count = len(s.operands)
    head = (
        b.i64(_CALL_BYTES), b.i64(count), b.i64(len(s.results)), buffers, b.gep(buffers, _BUFFER_BYTES * count),
        w.address(s.config), b.i64(s.config.nbytes - 1),
        b.load(b.gep(w.ctx, _MESSAGE), PTR, invariant=True),
        b.load(b.gep(w.ctx, _MESSAGE_SIZE), I64, invariant=True),
    )  # fmt: skip
    for i, value in enumerate(head):
        b.store(b.gep(block, 8 * i), value)
    if s.target.convention == "llvm" or w.layout.portable:
        code = b.call(s.target.symbol, (block,), I32)
    else:
        table = b.load(b.gep(w.ctx, CONSTANTS), PTR, invariant=True)
        fn = b.load(b.gep(table, 8 * w.layout.address_slots[s.index]), PTR, invariant=True)
        code = b.callptr(fn, (block,), I32)

    def leave() -> None:
        b.store(b.gep(w.ctx, _FAILED), b.i64(s.index))
        b.ret(code)

    b.if_(b.cmp("ne", code, 0), leave)
