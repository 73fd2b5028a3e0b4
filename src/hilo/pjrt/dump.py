"""Programs as files, where XLA's options `xla_dump_...` ask for them: as they came, and as they are run.

    module_0001.jit_f.before_optimizations.txt      HLO, or what the client gave if HLO has no form for it
    module_0001.jit_f.hilo_after_optimizations.txt  HLO, whose fusions are hilo's kernels
    ... .hlo.pb                                     the same as messages of XLA, with `xla_dump_hlo_as_proto`

The options are those of the compilation, or of the variable XLA_FLAGS. Whatever goes wrong is told in the log: what is
only looked at never makes a compilation fail. Imports formats, compiler when used.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

_FLAG: Final = re.compile(r"--(xla_dump_\w+)(?:=(\S*))?")
_ELIDE: Final = 64  # elements up to which constants are written out
_NUMBERS: Final = count(1)
_log = logging.getLogger(__name__)

File = tuple[str, bytes]  # how its name ends, contents


class Dump:
    """Where a compilation's programs go: `directory` is "" if nobody asks."""

    def __init__(self, overrides: Mapping[str, Any]) -> None:
        asked = {**dict(_FLAG.findall(os.environ.get("XLA_FLAGS", ""))), **overrides}
        self.directory = str(asked.get("xla_dump_to", ""))
        self.as_proto = _is_on(asked, "xla_dump_hlo_as_proto")
        self.as_text = _is_on(asked, "xla_dump_hlo_as_text") or not self.as_proto
        self.names = str(asked.get("xla_dump_hlo_module_re", ""))

    def write(self, name: str, optimized: tuple[str, bytes], before: tuple[str, bytes] | None = None) -> None:
        """Write the program `name`: `optimized` as `Loaded.optimized_program` says, and the one that the client gave,
        as (format, bytes), if it is at hand."""
        if not self.directory:
            return
        try:
            if not re.search(self.names, name):
                return
            os.makedirs(self.directory, exist_ok=True)
            start = f"module_{next(_NUMBERS):04d}.{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:150]}."
            files = [*self._after(optimized), *([] if before is None else self._before(*before))]
            for end, data in files:
                with open(os.path.join(self.directory, start + end), "wb") as file:
                    file.write(data)
        except Exception as e:
            _log.warning("the program %s is not written to %s: %s", name, self.directory, e)

    def _after(self, optimized: tuple[str, bytes]) -> Iterator[File]:
        from hilo.formats.hlo_text.proto_reader import read
        from hilo.formats.hlo_text.writer import write

        if self.as_proto:
            yield "hilo_after_optimizations.hlo.pb", optimized[1]
        if self.as_text:
            yield "hilo_after_optimizations.txt", write(read(optimized[1], "<optimized>"), elide=_ELIDE).encode()

    def _before(self, format: str, program: bytes) -> Iterator[File]:  # noqa: A002
        from hilo.errors import Error
        from hilo.formats import hlo_text
        from hilo.pjrt.compiler import parse

        module = parse(format, program)
        try:
            if self.as_proto:
                yield "before_optimizations.hlo.pb", hlo_text.module_message(module)
            if self.as_text:
                yield "before_optimizations.txt", hlo_text.print_module(module, elide=_ELIDE).encode()
        except Error:  # HLO has no form of it
            yield "before_optimizations.mlir", str(module).encode()


def _is_on(options: Mapping[str, Any], name: str) -> bool:
    """A switch; one that is only named is on."""
    value = options.get(name, False)
    return value if isinstance(value, bool) else str(value).lower() in ("", "1", "true")
