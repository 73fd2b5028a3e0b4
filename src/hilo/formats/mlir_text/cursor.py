"""Reading position in a token stream: the small steps that every part of the parser is made of.

Imports the lexer, errors and ir.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from hilo.errors import Error, VerifyError
from hilo.formats.mlir_text.lexer import Source, unquote
from hilo.ir.module import Loc
from hilo.ir.types import Type

_T = TypeVar("_T")
MAX_DEPTH = 96  # nesting of regions, attributes, types and locations together
_MAX_EXPANDED = 1 << 20
_CLOSE = {"<": ">", "(": ")", "[": "]", "{": "}"}
_INTEGER = frozenset("0123456789-")


class Cursor:
    """A position (`at`) in the tokens of a source, with the tables that hold for the whole file.

    `aliases` maps `#name` and `!name` to the token where the definition's value starts; `alias_values` what has been
    parsed of them; `resources` the file's `dense_resource` blobs; `types` caches types by their text.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.at = 0
        self.depth = 0
        self.op: str | None = None  # the op being parsed, for error messages
        self.types: dict[str, Type] = {}
        self.aliases: dict[str, int] = {}
        self.alias_values: dict[tuple[str, str], Any] = {}
        self.resources: dict[str, bytes] = {}
        self._sizes: dict[Any, tuple[int, int]] = {}

    # -- errors ---------------------------------------------------------------------------------

    def error(self, message: str, at: int | None = None, kind: type[Error] = Error) -> Error:
        """An error at token `at` (default: the current one)."""
        return kind(message, loc=self.source.loc(self.at if at is None else at), op=self.op)

    def broken(self, rule: str, message: str, at: int | None = None) -> Error:
        """An error at token `at`: the text breaks constraint `rule` of the specification."""
        return VerifyError(message, rule=rule, loc=self.source.loc(self.at if at is None else at), op=self.op)

    def expected(self, what: str) -> Error:
        token = self.tokens[self.at]
        found = f"'{token if len(token) <= 40 else token[:37] + '...'}'" if token else "the end of the text"
        return self.error(f"expected {what}, found {found}")

    # -- steps ----------------------------------------------------------------------------------

    def take(self) -> str:
        """The current token; moves on (but never beyond the end)."""
        token = self.tokens[self.at]
        if token:
            self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Move over `token` if it is the current one."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise self.expected(f"'{token}'")
        self.at += 1

    def integer(self) -> int:
        token = self.tokens[self.at]
        if not token or not _INTEGER.issuperset(token) or token == "-":
            raise self.expected("an integer")
        if len(token) > 40:
            raise self.error("an integer of more than 40 digits")
        self.at += 1
        return int(token)

    def keyword(self, what: str = "a keyword") -> str:
        token = self.tokens[self.at]
        if not token.replace("_", "a").replace(".", "a").replace("$", "a").isalnum() or token[0].isdecimal():
            raise self.expected(what)
        self.at += 1
        return token

    def string(self) -> str:
        token = self.tokens[self.at]
        if token[:1] != '"' or len(token) < 2:
            raise self.expected("a string")
        self.at += 1
        return unquote(token)

    def symbol(self) -> str:
        """`@name` or `@"any name"`, without the `@`; nested symbols keep their text."""
        token = self.tokens[self.at]
        if token[:1] != "@" or len(token) < 2:
            raise self.expected("a symbol (@name)")
        self.at += 1
        name = unquote(token[1:]) if token[1] == '"' else token[1:]
        while self.tokens[self.at : self.at + 2] == [":", ":"]:
            self.at += 2
            name += "::@" + self.symbol()
        return name

    def comma_list(self, close: str, item: Callable[[], _T]) -> list[_T]:
        """Items separated by commas up to `close`, whose opening bracket has been read."""
        items: list[_T] = []
        if self.accept(close):
            return items
        while True:
            items.append(item())
            if self.accept(close):
                return items
            if not self.accept(","):
                raise self.expected(f"',' or '{close}'")

    def integers(self) -> tuple[int, ...]:
        """`[1, 2, 3]`"""
        self.expect("[")
        return tuple(self.comma_list("]", self.integer))

    def balanced(self) -> str:
        """Move over one bracketed piece, whatever it holds, and give its text."""
        first = self.at
        if self.tokens[first] not in _CLOSE:
            raise self.expected("an opening bracket")
        stack: list[str] = []
        while True:
            token = self.take()
            if not token:
                self.at = first
                raise self.error(f"the '{self.tokens[first]}' is not closed")
            if token in _CLOSE:
                stack.append(_CLOSE[token])
            elif token in (">", ")", "]", "}"):
                if stack.pop() != token:
                    self.at -= 1
                    raise self.expected("the bracket that closes the innermost open one")
                if not stack:
                    return self.source.slice(first, self.at - 1)

    def here(self) -> Loc:
        return self.source.loc(self.at)

    def is_bounded(self, value: Any, parts: Callable[[Any], Iterable[Any]]) -> bool:
        """Whether an alias's value nests and expands (`parts` gives what one is made of) within what is sensible: by
        aliases of aliases a short text can stand for a value of any size."""

        def size(x: Any) -> tuple[int, int]:
            known = self._sizes.get(x)
            if known is None:
                inner = [size(p) for p in parts(x)]
                known = 1 + sum(n for n, _ in inner), 1 + max((d for _, d in inner), default=0)
                self._sizes[x] = known
            return known

        expanded, depth = size(value)
        return expanded <= _MAX_EXPANDED and depth <= 2 * MAX_DEPTH

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; an `Error` beyond `MAX_DEPTH`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep")
        try:
            yield
        finally:
            self.depth -= 1
