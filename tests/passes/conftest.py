from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def shared() -> Path:
    """The folder of shared programs (HILO_SHARED, by default beside the checkout)."""
    folder = Path(os.environ.get("HILO_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    if not (folder / "bench").is_dir():
        pytest.skip("no shared programs: set HILO_SHARED")
    return folder
