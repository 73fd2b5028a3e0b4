"""The one exception type that hilo raises for anything a user can cause.

Imports nothing of hilo, so that every room may use it.
"""

from __future__ import annotations


class Error(Exception):
    """A problem in the user's input: program, arguments, files or options.

    `message` says what is wrong and, where there is one, which rule is broken; `loc` (anything with a readable `str`,
    or None) says where; `op` names the operation. `str(error)` is one line: `file:line:col: op: message`.
    """

    def __init__(self, message: str, *, loc: object | None = None, op: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.loc = loc
        self.op = op

    def __str__(self) -> str:
        where = f"{self.loc}: " if self.loc is not None and str(self.loc) else ""
        what = f"{self.op}: " if self.op else ""
        return f"{where}{what}{self.message}"

    def at(self, loc: object | None, op: str | None = None) -> Error:
        """The same error with a location and an op name filled in where it has none."""
        return type(self)(self.message, loc=self.loc if self.loc is not None else loc, op=self.op or op)


class VerifyError(Error):
    """A program breaks a rule of the specification; `rule` is the spec's constraint number ("C2") where it has one."""

    def __init__(self, message: str, *, rule: str = "", loc: object | None = None, op: str | None = None) -> None:
        super().__init__(message, loc=loc, op=op)
        self.rule = rule

    def __str__(self) -> str:
        return super().__str__() + (f" [{self.rule}]" if self.rule else "")

    def at(self, loc: object | None, op: str | None = None) -> VerifyError:
        loc = self.loc if self.loc is not None else loc
        return VerifyError(self.message, rule=self.rule, loc=loc, op=self.op or op)


class Unsupported(Error):
    """A valid program needs something that hilo does not do yet; the message says what and, if known, a way around."""


def require(condition: object, rule: str, message: str, **values: object) -> None:
    """Raise `VerifyError` for spec constraint `rule` unless `condition` holds; `message` is formatted only then."""
    if not condition:
        raise VerifyError(message.format(**values) if values else message, rule=rule)
