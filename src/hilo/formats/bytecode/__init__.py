"""Programs as MLIR bytecode: portable artifacts of StableHLO (VHLO, 0.9 to 1.20), and plain bytecode of its dialects.

`parse` reads both, `write` writes portable artifacts. Imports ir, and mlir_text for what the formats share.
"""

from __future__ import annotations

import re

from hilo.errors import Error
from hilo.formats.bytecode.container import open_file
from hilo.formats.bytecode.opset import CURRENT, MINIMUM, Version
from hilo.gc_pause import gc_paused
from hilo.ir.module import Module


def parse(data: bytes, filename: str = "<bytecode>") -> Module:
    """The module in a bytecode file. Raises `hilo.errors.Error` if it is damaged, or needs what is not known here."""
    from hilo.formats.bytecode.program import Program
    from hilo.formats.mlir_text.resolve import check_calls

    try:
        with gc_paused():
            module = Program(open_file(data, filename)).module()
    except RecursionError:
        raise Error("nested too deeply", loc=filename) from None
    check_calls(module)
    return module


def write(module: Module, version: str = "current", *, locations: bool = True) -> bytes:
    """The module as a portable artifact of StableHLO `version` ("current", or one like "1.0.0").

    Ops of CHLO are expanded first. `locations` keeps where ops came from. Raises `Error` for a version that there is
    not; with the op, and the lowest version that has what it needs, for a program that `version` cannot express; and
    for what no version can (ops and attributes of other dialects).
    """
    from hilo.formats.bytecode.chlo import without_chlo
    from hilo.formats.bytecode.writer import write_module

    target = target_version(version)
    producer = f"StableHLO_v{version if version != 'current' else '.'.join(map(str, CURRENT))}"
    try:
        return write_module(without_chlo(module, target), target, producer, locations)
    except RecursionError:
        raise Error("nested too deeply to be written", loc=module.loc) from None


def target_version(text: str) -> Version:
    """The version that `text` names; patch versions have the operations of their minor version."""
    if text == "current":
        return CURRENT
    m = re.fullmatch(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", text)
    if m is None:
        raise Error(f"'{text[:40]}' is no version of StableHLO; it should be 'current', or like 1.0.0")
    version = (int(m[1]), int(m[2]), 0)
    if not MINIMUM <= version <= CURRENT:
        low, high = (".".join(map(str, v)) for v in (MINIMUM, CURRENT))
        raise Error(f"there are StableHLO versions {low} to {high}, not {text}")
    return version


__all__ = ["parse", "target_version", "write"]
