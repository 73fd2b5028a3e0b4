"""Driving nested generators with a stack of our own, so that structures may be nested to any depth."""

from __future__ import annotations

from collections.abc import Iterator


def run(root: Iterator[Iterator]) -> None:
    """Run a generator that yields generators for its inner structures; each is run to its end before it goes on."""
    stack = [root]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
        else:
            stack.append(child)
