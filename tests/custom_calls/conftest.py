"""Targets that a test registers are gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hilo.custom_calls import registry


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    registry.known()  # loads those that hilo brings
    before = dict(registry._TARGETS)
    yield
    registry._TARGETS.clear()
    registry._TARGETS.update(before)
