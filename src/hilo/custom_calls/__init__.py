"""Custom calls: the registry of targets, what a target is told of its call, the targets that hilo brings, and markers
that mean nothing on one device.

Begin reading at registry.py; native code is called by runtime/foreign.py. Imports ir.
"""

from __future__ import annotations


def include() -> str:
    """The directory of `hilo_custom_call.h`, the convention for C."""
    from pathlib import Path

    return str(Path(__file__).parents[1] / "runtime" / "native")
