"""Steps over the lanes of a vector. Imports the builder."""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.nodes import I1, Node


def any_lane(b: Builder, mask: Node) -> Node:
    """Whether any lane of an i1 vector is set (one i1)."""
    return b.pure("any", (mask,), I1) if mask.type.lanes > 1 else mask
