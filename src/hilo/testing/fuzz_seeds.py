"""Valid programs to start from: the examples of every op, random programs, files. Imports formats, ops.

Every format gets the same programs, as far as it has a form for them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from hilo.errors import Error
from hilo.formats import sniff
from hilo.ir.module import Function, Module, parameter, topological
from hilo.ir.op import Op
from hilo.testing.generate import generate
from hilo.testing.pieces import all_ops

FORMATS: Final = ("text", "bytecode", "hlo", "message")
LARGEST: Final = 1 << 16  # bytes of a file: mutating and reading larger ones takes the time of many small ones
# Examples that are no programs: they name functions that are not there, or have no text.
_NOT_ALONE: Final = ("func.call", "hilo.guards", "interpreter.run_parallel", "stablehlo.composite")
_RANDOM: Final = 40  # random programs
_PIECES: Final = 20  # of one file
_FROM_FILES: Final = 600
_SNIFFED: Final = {"mlir_text": "text", "bytecode": "bytecode", "hlo_text": "hlo", "hlo_proto": "message"}


def seeds(form: str, corpus: Path | None = None) -> list[bytes]:
    """Valid inputs of a format. Raises `Error` if `corpus` is given and is no directory."""
    return [*_own(form), *(_files(form, corpus) if corpus is not None else ())]


@cache
def _own(form: str) -> tuple[bytes, ...]:
    """Our programs in a format. Bytecode has no CHLO: its special functions would be thousands of plain ops."""
    fitting = [m for m in programs() if form != "bytecode" or all(o.kind.dialect != "chlo" for o in m["main"].ops)]
    return tuple(dict.fromkeys(filter(None, (written(m, form) for m in fitting))))


@cache
def programs() -> tuple[Module, ...]:
    """One program for every example of an op, and random ones."""
    return (*_examples(), *(generate(seed, 4 + seed % 20) for seed in range(_RANDOM)))


def written(module: Module, form: str) -> bytes | None:
    """The program in a format; None if it has no form there."""
    from hilo.formats import bytecode, hlo_text, mlir_text

    try:
        if form == "bytecode":
            versions = ("current", "current", "1.0.0", "0.17.0")
            return bytecode.write(module, versions[sum(len(f.ops) for f in module.functions.values()) % len(versions)])
        if form == "message":
            return hlo_text.module_message(module)
        text = hlo_text.print_module(module) if form == "hlo" else mlir_text.print_module(module)
    except Exception:  # worse than `Error` is a finding, which the worker makes when it gets the text
        return None
    return text.encode(errors="surrogateescape")


def _examples() -> Iterator[Module]:
    for kind in all_ops():
        if kind.dialect == "hilo" or kind.full_name in _NOT_ALONE:  # made by the compiler alone
            continue
        for types, attrs in kind.examples:
            params: list[Op] = [parameter(i, t) for i, t in enumerate(types)]
            try:
                made = kind(*params, **attrs)
            except Error:  # e.g. a call of a function that is not there
                continue
            results = made.results()
            yield Module({"main": Function("main", params, topological([made, *results], params), results)})


def _files(form: str, corpus: Path) -> list[bytes]:
    if not corpus.is_dir():
        raise Error("there is no such directory", loc=str(corpus))
    found: list[bytes] = []
    for path in sorted(corpus.rglob("*")):
        if path.is_file() and 0 < path.stat().st_size <= LARGEST:
            data = path.read_bytes()
            if path.suffix == ".mlir" and form not in ("hlo", "message"):
                pieces = re.split(rb"^// -----.*$", data, flags=re.MULTILINE)
                found += pieces if len(pieces) < _PIECES else random.Random(0).sample(pieces, _PIECES)
            elif _SNIFFED.get(sniff(data)) == form:
                found.append(data)
    random.Random(0).shuffle(found)
    valid = filter(None, (_valid(data, form) for data in found))
    return list(islice(valid, _FROM_FILES))


def _valid(data: bytes, form: str) -> bytes | None:
    """The input, in another format if need be; None if it is refused."""
    from hilo.formats import parse

    try:
        module = parse(data, "corpus")
    except Exception:  # no seed, whatever it is
        return None
    return data if _SNIFFED.get(sniff(data)) == form else written(module, form)
