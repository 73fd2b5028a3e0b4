"""Changing protocol buffer messages field by field, with lengths that are right. Imports protobuf.

The kind of a field that is bytes is not known: what can be read as a message is taken for one, then for numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from hilo.errors import Error
from hilo.formats.protobuf import Value, fields, numbers, put_bytes, varint

_NUMBERS: Final = (0, 1, 2, 3, 4, 7, 8, 10, 13, 16, 17, 31, 32, 64, 127, 128, 255, 256, 1 << 20, 1 << 31, (1 << 31) - 1,
                   1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2)  # fmt: skip
_DEPTH: Final = 12
_SHRUNK_DEPTH: Final = 4  # of messages that are made smaller
Fields = list[tuple[int, Value]]


def changed(r: random.Random, data: bytes, pool: Sequence[bytes], depth: int = 0) -> bytes:
    """The message with one change somewhere inside. Raises `Error` for what is no message."""
    parts = list(fields(data))
    if not parts:
        return joined([(r.randrange(1, 100), r.choice(_NUMBERS))])
    k = r.randrange(len(parts))
    number, value = parts[k]
    if isinstance(value, bytes) and value and depth < _DEPTH and r.random() < 0.85:
        parts[k] = number, _inside(r, value, pool, depth)
        return joined(parts)
    way = r.randrange(8)
    if way < 3 and not isinstance(value, bytes):
        parts[k] = number, _number(r, value)
    elif way < 3:
        parts[k] = number, r.choice((b"", b"\xff", b"\x0a\x00" * 40, bytes(value)[::-1], value * 2))
    elif way == 3:
        del parts[k : k + r.choice((1, 1, 2, 8))]
    elif way == 4:
        parts[k:k] = parts[k : k + r.choice((1, 1, 4))] * r.choice((1, 1, 2, 300))
    elif way == 5:
        j = r.randrange(len(parts))
        parts[k], parts[j] = parts[j], parts[k]
    elif way == 6:
        parts[k] = r.choice((r.randrange(1, 100), number + 1)), value
    else:  # a field of another message
        other = list(fields(r.choice(pool)))
        parts[k] = number, r.choice([v for n, v in other if n == number] or [value])
    return joined(parts)


def _inside(r: random.Random, value: bytes, pool: Sequence[bytes], depth: int) -> bytes:
    with suppress(Error):
        return changed(r, value, pool, depth + 1)
    with suppress(Error):
        found = numbers(value)
        k = r.randrange(len(found))
        found[k : k + 1] = r.choice(([_number(r, found[k])],) * 4 + ([], [found[k]] * 2, [found[k]] * 500))
        return b"".join(map(varint, found))
    at = r.randrange(len(value))
    return value[:at] + bytes((r.randrange(256),)) + value[at + 1 :]


def _number(r: random.Random, old: int) -> int:
    return r.choice((r.choice(_NUMBERS), r.randrange(40), old + 1, max(old - 1, 0)))


def joined(parts: Fields) -> bytes:
    """The message of these fields."""
    return b"".join(_field(n, v) for n, v in parts)


def _field(number: int, value: Value) -> bytes:
    if not isinstance(value, bytes):
        return varint(number << 3) + varint(value)
    return put_bytes(number, value) if number < 128 else varint(number << 3 | 2) + varint(len(value)) + value


def fewer_fields(data: bytes, fails: Callable[[bytes], bool], depth: int = 0) -> bytes:
    """What is left after fields have been left out, in messages in it, too, for as long as it fails."""
    try:
        parts = list(fields(data))
    except Error:
        return data
    size = len(parts)
    while size:
        at = 0
        while at < len(parts):
            less = parts[:at] + parts[at + size :]
            if fails(joined(less)):
                parts = less
            else:
                at += size
        size //= 2
    for k, (number, value) in enumerate(parts):
        if isinstance(value, bytes) and depth < _SHRUNK_DEPTH:

            def fails_with(inner: bytes, k: int = k, number: int = number) -> bool:
                return fails(joined([*parts[:k], (number, inner), *parts[k + 1 :]]))

            parts[k] = number, fewer_fields(value, fails_with, depth + 1)
    return joined(parts)
