"""hilo: an open ML compiler. StableHLO in, fast native code out.

    >>> import hilo
    >>> f = hilo.compile("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {"
    ...                  "  %y = stablehlo.add %x, %x : tensor<3xf32>"
    ...                  "  return %y : tensor<3xf32> }")
    >>> import numpy as np
    >>> f(np.arange(3, dtype=np.float32))[0].tolist()
    [0.0, 2.0, 4.0]

Everything here is loaded on first use, so that `import hilo` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from hilo import bundle

__version__ = "0.1.0"
__all__ = ["Error", "Executable", "HostQueues", "Module", "Options", "Probes", "build", "compile", "inspect",
           "interpret", "interpret_parallel", "load", "parse", "register_custom_call", "register_ffi_type",
           "text"]  # fmt: skip

if TYPE_CHECKING:
    from hilo import build
    from hilo.api import (
        compile,  # noqa: A004
        inspect,
        interpret,
        interpret_parallel,
        load,
        parse,
        register_custom_call,
        register_ffi_type,
        text,
    )
    from hilo.errors import Error
    from hilo.ir.host import HostQueues
    from hilo.ir.module import Module
    from hilo.ir.probes import Probes
    from hilo.options import Options
    from hilo.runtime.executable import Executable

_HOME = {
    "Error": "hilo.errors",
    "Executable": "hilo.runtime.executable",
    "HostQueues": "hilo.ir.host",
    "Module": "hilo.ir.module",
    "Options": "hilo.options",
    "Probes": "hilo.ir.probes",
    "compile": "hilo.api",
    "inspect": "hilo.api",
    "interpret": "hilo.api",
    "interpret_parallel": "hilo.api",
    "load": "hilo.api",
    "parse": "hilo.api",
    "register_custom_call": "hilo.api",
    "register_ffi_type": "hilo.api",
    "text": "hilo.api",
}

bundle.install(sys.modules[__name__])


def __getattr__(name: str) -> Any:
    if name == "build":
        return importlib.import_module("hilo.build")
    if name not in _HOME:
        raise AttributeError(f"module 'hilo' has no attribute {name!r}")
    from hilo.gc_pause import gc_paused

    with gc_paused():  # importing makes many objects, all of which stay
        value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "build"})
