"""Makes tests/support.py importable from every test folder. Tests compile: no program comes whole from the cache."""

from __future__ import annotations

import os

os.environ.setdefault("HILO_CACHE_PROGRAMS", "0")
