"""XLA's messages made to hurt: deep, long and huge ones. Imports protobuf."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hilo.formats.protobuf import put, put_bytes, put_numbers, varint

_DEEP: Final = 20_000
_F32: Final = put(2, 11) + put_numbers(3, (4,))


def _nested(field: int, depth: int, inner: bytes = b"", before: bytes = b"") -> bytes:
    """A message in a message in a message ...; built from inside, with few copies."""
    pieces, size = [inner], len(inner)
    for _ in range(depth):
        head = before + varint(field << 3 | 2) + varint(size)
        pieces.append(head)
        size += len(head)
    return b"".join(reversed(pieces))


def _instruction(number: int, opcode: str, *fields: bytes, shape: bytes = _F32, operands: Iterable[int] = ()) -> bytes:
    return b"".join((put_bytes(1, f"i{number}"), put_bytes(2, opcode), put_bytes(3, shape), put(35, number),
                     put_numbers(36, operands), *fields))  # fmt: skip


def _computation(number: int, *instructions: bytes, root: int) -> bytes:
    body = b"".join(put_bytes(2, i) for i in instructions)
    return put_bytes(3, put_bytes(1, f"c{number}") + body + put(5, number) + put(6, root))


def _module(*computations: bytes, more: bytes = b"") -> bytes:
    return put_bytes(1, "fuzz") + put_bytes(2, f"c{len(computations)}") + b"".join(computations) + more


_PARAMETER: Final = _instruction(1, "parameter")


def _root(opcode: str, *fields: bytes, shape: bytes = _F32, operands: Iterable[int] = (1,)) -> bytes:
    """A module of a parameter and one instruction of it."""
    made = _instruction(2, opcode, *fields, shape=shape, operands=operands)
    return _module(_computation(1, _PARAMETER, made, root=2))


def _calls(count: int, step: int = 1) -> bytes:
    first = _computation(1, _PARAMETER, _instruction(2, "negate", operands=(1,)), root=2)
    return _module(first, *(
        _computation(n, _PARAMETER, *(_instruction(2 + k, "call", put_numbers(38, (n - 1,)), operands=(1 + k,))
                                      for k in range(step)), root=1 + step)
        for n in range(2, count + 2)
    ))  # fmt: skip


def _chain(count: int) -> bytes:
    steps = (_instruction(n, "negate", operands=(n - 1,)) for n in range(2, count + 2))
    return _module(_computation(1, _PARAMETER, *steps, root=count + 1))


def _literal(shape: bytes, *fields: bytes) -> bytes:
    return _root("constant", put_bytes(8, put_bytes(1, shape) + b"".join(fields)), shape=shape, operands=())


_HUGE: Final = put(2, 11) + put_numbers(3, (1 << 40, 1 << 20))
_TUPLE: Final = put(2, 13)

MESSAGES: Final[dict[str, Callable[[], bytes]]] = {
    "modules in modules": lambda: _nested(1, _DEEP, _root("negate")),
    "nested tuple types": lambda: _root("negate", shape=_nested(4, _DEEP, before=_TUPLE)),
    "nested tuple types, 60 deep": lambda: _root("tuple", shape=_nested(4, 60, _F32, before=_TUPLE)),
    "nested literals": lambda: _root("constant", put_bytes(8, _nested(10, _DEEP)), operands=()),
    "nested shardings": lambda: _root("negate", put_bytes(40, _nested(5, _DEEP, before=put(1, 2)))),
    "calls, 3k deep": lambda: _calls(3000),
    "calls that double, 40 deep": lambda: _calls(40, step=2),
    "10k instructions": lambda: _chain(10_000),
    "a huge type": lambda: _root("negate", shape=_HUGE),
    "a huge broadcast": lambda: _root("broadcast", shape=_HUGE),
    "a huge constant without elements": lambda: _literal(_HUGE, put_bytes(8, b"")),
    "a constant of 1000 dimensions": lambda: _literal(put(2, 11) + put_numbers(3, (1,) * 1000), put_bytes(8, bytes(4))),
    "a type of a million dimensions": lambda: _root("negate", shape=put(2, 11) + put_numbers(3, (1,) * 1_000_000)),
    "a negative size": lambda: _root("negate", shape=put(2, 11) + put_numbers(3, (-1,))),
    "replica groups": lambda: _root("all-gather", put_bytes(87, put_bytes(2, b"".join((
        put(1, 1 << 40), put(2, 1 << 20), put_numbers(3, (1 << 60,)))))), put_numbers(14, (0,))),
    "a window of 10k dimensions": lambda: _root("reduce-window", put_bytes(15, put_bytes(1, put(1, 2)) * 10_000)),
    "a parameter of number 2 ** 62": lambda: _module(_computation(1, _instruction(1, "parameter", put(9, 1 << 62)),
                                                                  root=1)),
    "frames in a circle": lambda: _module(
        _computation(1, _PARAMETER, root=1),
        more=put_bytes(17, put_bytes(1, "f") + put_bytes(3, put(1, 1)) + put_bytes(4, put(1, 1) + put(2, 1)) * 10_000),
    ),
    "a length of 2 ** 63": lambda: put_bytes(1, "fuzz") + b"\x12" + varint(1 << 63),
    "a name of 10 MB": lambda: _root("negate", put_bytes(7, put_bytes(2, "x" * 10_000_000))),
    "a million empty computations": lambda: put_bytes(1, "fuzz") + b"\x1a\x00" * 1_000_000,
}  # fmt: skip
