"""Tokens of HLO text: one compiled pattern, one pass. Imports mlir_text's source and errors.

What the grammar lets be long or frequent is one token: an array shape with its layout (`f32[8,4]{1,0:T(8,128)}`), a
constant with its literal (`constant({ {1, 2} })`), dimension labels (`b01f_01io->b01f`), window sizes (`3x3`) and
paddings (`1_2x0_1`). The quantifiers are possessive: lexing is linear whatever the input.
"""

from __future__ import annotations

import re
from array import array

from hilo.errors import Error
from hilo.formats.mlir_text.lexer import Source

_PARENS = r'[^()"]*+(?:\([^()"]*+(?:\([^()"]*+(?:\([^()"]*+\)[^()"]*+)*+\)[^()"]*+)*+\)[^()"]*+)*+'
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # an unterminated one reaches to the end of the file
_TOKEN = re.compile(
    r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+("
    r"[0-9bfio?]++_[0-9bfio?]++->[0-9bfio?]++"
    rf"|constant\({_PARENS}\)"
    r"|[a-z][a-z0-9]*+\[[\d,<=? ]*+\](?:\{(?:\d[\d, ]*+)?(?::[^{}]*+)?\})?"
    r"|%?[A-Za-z_](?:[\w.$]|-(?!>))*+|%[\w.$]++"
    r"|-?\d++(?:[_x]-?\d++)++"
    r"|-?\d++(?:\.\d*+)?+(?:[eE][+-]?\d++)?+"
    rf"|{_STRING}|'[^'\n]*+'"
    r"|->|<=|\.\.\.|\S|\Z)",
    re.DOTALL,
)
_WHOLE_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class HloSource(Source):
    """An HLO text with its tokens, and where each of them starts. `tokens` ends with an empty token."""

    __slots__ = ()

    def __init__(self, text: str | bytes, filename: str) -> None:
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as e:
                raise Error(f"not UTF-8 text: byte {e.start} is {e.object[e.start]:#04x}", loc=filename) from None
        self.text = text
        self.filename = filename
        self.first_line = 1
        self._at = 0, 0, 0
        self.starts = array("q")
        self.tokens = []
        for m in _TOKEN.finditer(text):
            self.tokens.append(m[1])
            self.starts.append(m.start(1))
        last = next((i for i in range(len(self.tokens) - 1, -1, -1) if self.tokens[i]), 0)
        if self.tokens[last].startswith('"') and not _WHOLE_STRING.fullmatch(self.tokens[last]):
            raise Error("a string that starts here is not closed", loc=self.loc(last))


def unquote(token: str) -> str:
    """The value of a string token, with C's escapes (octal and hex ones are bytes of UTF-8)."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    parts, at = [], 0
    for m in _ESCAPE.finditer(body):
        parts.append(body[at : m.start()].encode(errors="surrogateescape"))
        code = int(m[1], 16) if m[1] else int(m[2], 8) & 255 if m[2] else None
        text = _PLAIN_ESCAPES.get(m[3], m[3]) if code is None else ""
        parts.append(text.encode(errors="surrogateescape") if code is None else bytes([code]))
        at = m.end()
    parts.append(body[at:].encode(errors="surrogateescape"))
    return b"".join(parts).decode(errors="surrogateescape")


def quote(text: str) -> str:
    """`text` as a string token; what is not printable ASCII becomes C's octal escapes."""
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    out = []
    for ch in text:
        if ch in named:
            out.append(named[ch])
        elif " " <= ch <= "~":
            out.append(ch)
        else:
            out.extend(f"\\{b:03o}" for b in ch.encode(errors="surrogateescape"))
    return f'"{"".join(out)}"'
