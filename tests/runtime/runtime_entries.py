"""Where the runtime's C code is and what compiles it."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import hilo.runtime

HERE = Path(__file__).parent
NATIVE = Path(hilo.runtime.__file__).parent / "native"


def c_compiler() -> str | None:
    """The C compiler that Python was built with, or any."""
    candidates = [(sysconfig.get_config_var("CC") or "cc").split()[0], "cc", "gcc", "clang"]
    return next((found for c in candidates if (found := shutil.which(c))), None)
