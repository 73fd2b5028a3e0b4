"""Running compiled programs: executables, threads, memory, and the cache of compiled code. Imports errors and ir.

The native part (`_native`, sources in native/) is told here what this process may use.
"""

from __future__ import annotations

from hilo.runtime import _native
from hilo.runtime.machine import allowed_cpus, memory_to_keep

_native.set_cores(allowed_cpus())
_native.set_memory_limit(memory_to_keep())
