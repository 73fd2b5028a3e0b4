"""Changing valid inputs into ones that are wrong in small, or in nasty, ways. Imports mutate_message and the
bytecode container's pieces.

Everything is drawn from a `random.Random`, so that an input follows from its seed. Most mutations of text keep a
token's kind (a number stays a number), since such inputs get through the reader, to what stands behind it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

from hilo.errors import Error
from hilo.formats.bytecode.container import IR, MAGIC, section
from hilo.formats.bytecode.wire import Reader, Sink, varint
from hilo.testing.mutate_message import changed

NUMBERS: Final = (
    "0", "1", "-1", "2", "3", "7", "8", "16", "63", "64", "65", "100", "127", "128", "255", "256", "-128", "65535",
    "65536", "1000000", "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "9999999999999", "99999999999999999999999999999999", "1e308", "1e309", "-1e-400",
    "0x7FC00000", "0xFF", "0x", "1.0", "-0.0", "0.5", "?", "00", "1e", "9" * 5000,
)  # fmt: skip
TYPES: Final = (
    "f32", "f64", "bf16", "f16", "i1", "i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32",
    "ui64", "f4E2M1FN", "f6E2M3FN", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "complex<f32>", "complex<f64>", "index", "i3",
    "i128", "none", "f80", "tf32", "!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<i8:f32:0, {0.5:1, 0.25}>",
    "tuple<tensor<2xf32>>", "!stablehlo.token", "tensor<f32>", "tensor<*xf32>", "memref<2xf32>",
)  # fmt: skip
HLO_TYPES: Final = (
    "f32", "f64", "bf16", "f16", "pred", "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64",
    "f8e4m3fn", "f8e5m2", "f4e2m1fn", "c64", "c128", "token", "opaque", "tuple", "s3",
)  # fmt: skip
STRANGE: Final = (
    "\0", "\ufeff", "\u00e9", "\U0001f4a5", "\u202e", "\r", "\x1b[31m", "\u2028", "\x7f", "\u0663", "\u00b2", "\\",
    '"', "//", "/*", "\t\t", "\n\n", "%", "#", "@", "!", "^bb0", "loc(", "dense<", "{-#", "tensor<", "<", ">", "{", "}",
)  # fmt: skip
_TOKEN: Final = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|[%@#!^]?[A-Za-z_][\w$.]*|\s+|.',
    re.DOTALL,
)
_NUMBER: Final = re.compile(rb"-?\d[\d.eE+x]*\Z")
_TYPE: Final = re.compile(rb"(?:u?i\d+|[bt]?f\d+\w*|s\d+|u\d+|pred|c64|c128|complex)\Z")
_DIMS: Final = re.compile(rb"(\d+|\?)x")
_NESTS: Final = (
    ("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("tuple<", ">"), ("complex<", ">"), ("dense<[", "]>"),
    ("loc(", ")"), ("#a<", ">"), ("{a = ", "}"), ("{a = [", "]}"), ("tensor<", ">"), ('"', '"'),
    ("callsite(", " at unknown)"), ("fused[", "]"), ("(tensor<f32>) -> ", ""), ("!t<", ">"),
)  # fmt: skip
_DEPTHS: Final = (3, 70, 1000, 100_000)
_HUGE: Final = (127, 128, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def mutated(r: random.Random, form: str, pool: Sequence[bytes]) -> bytes:
    """One of the valid inputs `pool`, changed once or a few times."""
    data = r.choice(pool)
    if form == "bytecode":
        return _mutated_bytecode(r, data, pool)
    if form == "message":
        return _mutated_message(r, data, pool)
    if r.random() < 0.03:
        return _flipped(r, data)
    tokens = _TOKEN.findall(data)
    words = HLO_TYPES if form == "hlo" else TYPES
    for _ in range(_times(r)):
        if not any(tokens):  # nothing is left to change
            break
        r.choice(_TEXT_WAYS)(r, tokens, words, pool)
    return b"".join(tokens)


def _times(r: random.Random) -> int:
    return r.choice((1, 1, 1, 1, 2, 2, 3, 5))


# ---- text: each way changes the list of tokens
Way = Callable[[random.Random, list[bytes], Sequence[str], Sequence[bytes]], None]


def _where(r: random.Random, tokens: list[bytes], fits: Callable[[bytes], object]) -> int:
    found = [i for i, t in enumerate(tokens) if fits(t)]
    return r.choice(found) if found else r.randrange(len(tokens))


def _number(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = _where(r, tokens, _NUMBER.match)
    small = _NUMBER.match(tokens[i]) and r.random() < 0.6
    tokens[i] = str(r.randint(-2, 9)).encode() if small else r.choice(NUMBERS).encode()


def _dimension(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    """A size of a type: in text, types like `2x3xf32` are tokens `2`, `x3xf32`."""
    i = _where(r, tokens, lambda t: t[:1] == b"x" and _DIMS.search(t))
    new = r.choice(("0", "1", "2", "3", "?", *NUMBERS)).encode() + b"x"
    found = list(_DIMS.finditer(tokens[i]))
    if found:
        m = r.choice(found)
        tokens[i] = tokens[i][: m.start()] + r.choice((new, new, b"")) + tokens[i][m.end() :]


def _type(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = _where(r, tokens, lambda t: _TYPE.match(t) or _TYPE.match(t.rpartition(b"x")[2]))
    head = tokens[i].rpartition(b"x")[0]
    tokens[i] = (head + b"x" if head else b"") + r.choice(words).encode()


def _delete(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = r.randrange(len(tokens))
    del tokens[i : i + r.choice((1, 1, 1, 2, 5, 30))]


def _repeat(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = r.randrange(len(tokens))
    part = tokens[i : i + r.choice((1, 1, 2, 8, 40))]
    tokens[i:i] = part * r.choice((1, 1, 1, 2, 20, 300))


def _swap(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = _where(r, tokens, lambda t: not t.isspace())
    like = tokens[i][:1]
    j = _where(r, tokens, lambda t: t[:1] == like) if r.random() < 0.7 else r.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]


def _another(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    """A token of another program, of the same kind."""
    others = [t for t in _TOKEN.findall(r.choice(pool)[:8192]) if not t.isspace()]
    if others:
        new = r.choice(others)
        i = _where(r, tokens, lambda t: t[:1].isalpha() == new[:1].isalpha() and t[:1].isdigit() == new[:1].isdigit()
                   and not t.isspace())  # fmt: skip
        tokens[i] = new


def _lines(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    """A line goes, comes twice, moves, or comes from another program."""
    lines = b"".join(tokens).splitlines(keepends=True)
    i, j = r.randrange(len(lines)), r.randrange(len(lines))
    way = r.randrange(4)
    if way == 0:
        del lines[i]
    elif way == 1:
        lines.insert(j, lines[i])
    elif way == 2:
        lines.insert(j, lines.pop(i))
    else:
        lines.insert(i, r.choice(r.choice(pool).splitlines(keepends=True) or [b""]))
    tokens[:] = _TOKEN.findall(b"".join(lines))


def _strange(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = r.randrange(len(tokens))
    new = r.choice(STRANGE).encode() * r.choice((1, 1, 1, 3, 5000))
    at = r.randrange(len(tokens[i]) + 1)
    tokens[i] = tokens[i][:at] + new + tokens[i][at:]


def _nest(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    i = _where(r, tokens, lambda t: not t.isspace())
    left, right = r.choice(_NESTS)
    n = r.choice(_DEPTHS)
    tokens[i] = left.encode() * n + tokens[i] + (right.encode() * n if r.random() < 0.7 else b"")


def _cut(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    del tokens[r.randrange(len(tokens)) :]


def _bytes(r: random.Random, tokens: list[bytes], words: Sequence[str], pool: Sequence[bytes]) -> None:
    tokens[:] = [_flipped(r, b"".join(tokens))]


_TEXT_WAYS: Final[tuple[Way, ...]] = (
    *(_number,) * 6, *(_dimension,) * 4, *(_type,) * 4, *(_another,) * 4, *(_delete,) * 3, *(_swap,) * 3,
    *(_lines,) * 3, _repeat, _repeat, _strange, _nest, _cut, _bytes,
)  # fmt: skip


# ---- bytes
def _flipped(r: random.Random, data: bytes) -> bytes:
    """A few bytes changed, or the end cut off."""
    new = bytearray(data)
    for _ in range(_times(r)):
        if new:
            new[r.randrange(len(new))] = r.choice((r.randrange(256), 0, 1, 3, 255, 127, 128))
    return bytes(new[: r.randrange(len(new) + 1)] if r.random() < 0.1 else new)


def _mutated_bytecode(r: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Changes inside sections, whose lengths are made right again: a plain flip is mostly found at once."""
    if r.random() < 0.15:
        return _flipped(r, data)
    try:
        head, parts = split(data)
        other = split(r.choice(pool))[1]
    except Error:
        return _flipped(r, data)
    for _ in range(_times(r)):
        if r.random() < 0.05:  # a section that is missing, twice, or another program's
            k = r.randrange(len(parts))
            parts[k : k + 1] = r.choice(([], [parts[k]] * 2, [r.choice(other)]))
            if not parts:
                break
            continue
        k = r.randrange(len(parts)) if r.random() < 0.5 else next((k for k, p in enumerate(parts) if p[0] == IR), 0)
        parts[k] = parts[k][0], _payload(r, parts[k][1])
    return joined(head, parts)


def _mutated_message(r: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    if r.random() < 0.1:
        return _flipped(r, data)
    try:
        for _ in range(_times(r)):
            data = changed(r, data, pool)
    except Error:
        return _flipped(r, data)
    return data


def _payload(r: random.Random, payload: bytes) -> bytes:
    """One change: mostly another number of the same length, which leaves the structure as it was."""
    if not payload:
        return bytes(r.randrange(256) for _ in range(r.randrange(4)))
    at = r.randrange(len(payload))
    before, after = payload[:at], payload[at + 1 :]
    way = r.randrange(10)
    if way < 5:
        return before + bytes((r.randrange(0, 40) << 1 | 1,)) + after
    if way == 5:
        return before + varint(r.choice(_HUGE)) + after
    if way == 6:
        return before + payload[at + r.choice((1, 1, 2, 8)) :]
    if way == 7:
        return before + payload[at : at + r.choice((1, 2, 8))] * r.choice((2, 2, 3, 2000)) + payload[at:]
    if way == 8:
        j = r.randrange(len(payload))
        new = bytearray(payload)
        new[at], new[j] = new[j], new[at]
        return bytes(new)
    return before + bytes((r.randrange(256),)) + after


def split(data: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The head of a bytecode file and its sections, each with its number. Raises `Error` if it has no such form."""
    r = Reader(data, 0, len(data), "input")
    r.at = len(MAGIC)
    r.varint()
    r.at = data.index(b"\0", r.at) + 1
    start = r.at
    parts: list[tuple[int, bytes]] = []
    while r.left:
        ident, content = section(r)
        parts.append((ident, data[content.at : content.end]))
    return data[:start], parts


def joined(head: bytes, parts: Sequence[tuple[int, bytes]]) -> bytes:
    """The bytecode file of a head and sections (the inverse of `split`, but for alignment)."""
    out = Sink(head)
    for ident, payload in parts:
        out.section(ident, payload)
    return bytes(out)
