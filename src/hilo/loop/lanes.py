"""Steps over the lanes of a vector. Imports the builder."""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.nodes import Node


def any_lane(b: Builder, mask: Node) -> Node:
    """Whether any lane of an i1 vector is set (one i1): halves are joined until one lane is left."""
    while (n := mask.type.lanes) > 1:
        half = (n + 1) // 2
        mask = b.or_(b.shuffle(mask, mask, range(half)), b.shuffle(mask, mask, range(n - half, n)))
    return mask
