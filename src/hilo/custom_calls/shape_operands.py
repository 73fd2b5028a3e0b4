"""Operands of a custom call that only say what shapes its results have: the target does not get them. Imports ir.

Exporters of programs with run-time sizes write them, and their numbers as the attribute `indices_of_shape_operands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from hilo.custom_calls.decode import decode
from hilo.ir.op import Attrs

NAMES: Final = (".indices_of_shape_operands", "indices_of_shape_operands")


def shape_operands(attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """The numbers of those operands, one for each result; none for most calls."""
    for name in NAMES:
        if name in attrs:
            return tuple(int(i) for i in np.asarray(decode(attrs[name])).flat)
    return ()


def without_shape_operands(attrs: Mapping[str, Any], count: int) -> tuple[list[int], Attrs]:
    """The numbers of the other of `count` operands, and the attributes of a call that has only those."""
    gone = set(shape_operands(attrs))
    kept = [i for i in range(count) if i not in gone]
    new = {k: v for k, v in attrs.items() if k not in NAMES}
    if new.get("operand_layouts") is not None:
        new["operand_layouts"] = tuple(new["operand_layouts"][i] for i in kept)
    aliases = new.get("output_operand_aliases") or ()
    new["output_operand_aliases"] = tuple(
        a.replace(operand_index=kept.index(a["operand_index"])) for a in aliases if a["operand_index"] in kept
    )
    return kept, Attrs(new)
