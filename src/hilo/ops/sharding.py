"""Sharding rules that several ops share. A rule is like einsum's: one letter per axis, equal letters are sharded alike.

Operands are separated by commas, results too; what is not a tensor has no letters. Imports ir.types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hilo.ir.types import TensorType, Type, result_types

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def axis_names(n: int) -> str:
    """`n` distinct letters, one per axis."""
    return _LETTERS[:n] if n <= 52 else _LETTERS + "".join(chr(0x100 + k) for k in range(n - 52))


def distinct(types: Iterable[Type]) -> list[str]:
    """Letters for the axes of each type, all different."""
    ranks = [t.rank if isinstance(t, TensorType) else 0 for t in types]
    names = iter(axis_names(sum(ranks)))
    return ["".join(next(names) for _ in range(r)) for r in ranks]


def unsharded(*types: Type, out: Type, **_: Any) -> str:
    """The rule of an op none of whose axes correspond."""
    each = distinct([*types, *result_types(out)])
    return f"{','.join(each[: len(types)])}->{','.join(each[len(types) :])}"


def passed_through(*types: Type, out: Type, **_: Any) -> str:
    """The rule of an op whose results are like its first operands."""
    each = distinct(types)
    return f"{','.join(each)}->{','.join(each[: len(result_types(out))])}"
