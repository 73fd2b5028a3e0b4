"""Custom calls that only mark a value for many devices, layouts or places: on one device, the value itself.

One table for the interpreter and for compiled code. Imports nothing of hilo.
"""

from __future__ import annotations

from typing import Final

MARKERS: Final = frozenset(
    (
        "LayoutConstraint",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
    )
)
PREFIX: Final = "xla.sdy."  # what Shardy's ops become in an export


def is_marker(target: str) -> bool:
    """Whether a call of `target` gives its operands as they are."""
    return target in MARKERS or target.startswith(PREFIX)
