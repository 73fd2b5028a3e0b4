"""The targets that tests of this folder run on."""

from __future__ import annotations

import pytest
from backend_runs import usable

from hilo.backend.target import Target


@pytest.fixture(params=usable(), ids=lambda t: t.name, scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    return request.param
