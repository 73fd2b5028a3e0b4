"""Tokens of MLIR text: one compiled pattern, one pass. Imports only errors and ir.module (for `Loc`).

Whole literals are one token where the grammar allows it, so that a tensor type or a million-element constant costs
one step: `tensor<...>`, `dense<...>`, `array<...>`, strings, `%value#result`. The quantifiers are possessive: lexing is
linear whatever the input.
"""

from __future__ import annotations

import re
from collections.abc import MutableSequence
from typing import Final

from hilo.errors import Error
from hilo.ir.module import Loc

_ANGLES = r"<[^<>\"]*+(?:<[^<>\"]*+(?:<[^<>\"]*+>[^<>\"]*+)*+>[^<>\"]*+)*+>"  # brackets nested three deep
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # an unterminated one reaches to the end of the file
_NAME = r"[\w$.]++(?:-[\w$.]++)*+"
_TOKEN = re.compile(
    r"\s*+(?://[^\n]*+\s*+)*+("
    rf"%{_NAME}(?:\#\d++)?"
    rf"|tensor{_ANGLES}"
    r"|->|\{-\#|\#-\}|[(){}\[\]<>,:=]"
    r'|dense<(?:[^<>"]*+|"0[xX][0-9A-Fa-f]*+")>'
    r'|(?:array|dense_resource)<[^<>"]*+>'
    r"|[A-Za-z_][\w$.]*+"
    r"|-?0x[0-9A-Fa-f]++|-?\d++(?:\.\d*+(?:[eE][+-]?\d++)?+)?+"
    rf"|@?{_STRING}"
    rf"|[@\#!^]{_NAME}|\S|\Z)",
    re.DOTALL,
)
LONG: Final = 1 << 16  # characters of a text whose places are worth packing
_WHOLE_STRING = r'(?s)@?"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ESCAPE = r"(?s)\\(?:([0-9A-Fa-f]{2})|(.))"
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Source:
    """A text with its tokens, and where each of them starts. `tokens` ends with an empty token.

    A text that is not UTF-8, or that ends inside a string, raises `Error`.
    """

    __slots__ = ("_at", "filename", "first_line", "starts", "text", "tokens")

    def __init__(self, text: str | bytes, filename: str, first_line: int = 1) -> None:
        self.filename = filename
        self.first_line = first_line
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as e:
                raise Error(f"not UTF-8 text: byte {e.start} is {e.object[e.start]:#04x}", loc=filename) from None
        self.text = text
        self._at = 0, 0, 0  # the last place that was asked for: its offset, its line, where that begins
        self.starts: MutableSequence[int] = []
        if len(text) > LONG:
            from array import array

            self.starts = array("q")
        self.tokens: list[str] = []
        add_token, add_start = self.tokens.append, self.starts.append
        for m in _TOKEN.finditer(text):
            add_token(m[1])
            add_start(m.start(1))
        last = next((i for i in range(len(self.tokens) - 1, -1, -1) if self.tokens[i]), 0)
        is_string = self.tokens[last].startswith(('"', '@"'))
        if is_string and not re.fullmatch(_WHOLE_STRING, self.tokens[last]):
            raise Error("a string that starts here is not closed", loc=self.loc(last))

    def loc(self, index: int) -> Loc:
        """The place of token `index` in the text."""
        offset = self.starts[min(index, len(self.starts) - 1)]
        last, line, start = self._at  # places are asked for nearly in order
        if offset >= last:
            line += self.text.count("\n", last, offset)
            start = max(start, self.text.rfind("\n", last, offset) + 1)
        elif offset < start:
            line -= self.text.count("\n", offset, last)
            start = self.text.rfind("\n", 0, offset) + 1
        self._at = offset, line, start
        return Loc("file", file=self.filename, line=line + self.first_line, col=offset - start + 1)

    def slice(self, first: int, last: int) -> str:
        """The text from token `first` to the end of token `last`."""
        return self.text[self.starts[first] : self.starts[last] + len(self.tokens[last])]


def unquote(token: str) -> str:
    """The value of a string token: `\\n`, `\\t`, `\\\\`, `\\"` and two hex digits (bytes of UTF-8) are escapes."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    parts, at = [], 0
    for m in re.finditer(_ESCAPE, body):
        parts.append(body[at : m.start()].encode())
        parts.append(bytes.fromhex(m[1]) if m[1] else _PLAIN_ESCAPES.get(m[2], m[2]).encode())
        at = m.end()
    parts.append(body[at:].encode())
    return b"".join(parts).decode(errors="surrogateescape")


def quote(text: str) -> str:
    """`text` as a string token; what is not printable ASCII becomes hex escapes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    data = text.encode(errors="surrogateescape")
    body = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return f'"{body}"'
