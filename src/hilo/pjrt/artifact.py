"""Executables as bytes: a header in JSON, then blobs (machine code, constants), then a checksum. Plain data: reading
runs nothing, and whatever does not fit is one clear `Error`.

What calls out of the program cannot be kept as machine code; then the program's own bytes are, and `load` compiles them
again (from objects that are cached). Imports backend.names and target, ir, runtime.image, errors, record.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from typing import Any, Final

import numpy as np

from hilo.backend.names import title
from hilo.backend.target import Target
from hilo.errors import Error
from hilo.ir.dtypes import dtype
from hilo.ir.types import TensorType
from hilo.pjrt.boundary import Boundary
from hilo.record import field, record
from hilo.runtime.image import Image

MAGIC: Final = b"hilo executable\n"
FORMAT: Final = 2  # raise it when the meaning of anything below changes
_CHECKSUM: Final = 32


@record
class Artifact:
    """What is to be known of an executable: its code (`image`) or its program, and what its methods tell.

    name                      of the program, for people
    fingerprint               of all that the code depends on
    format, program, options  as the client gave them; a program that has code is not kept
    machine                   that the code is for
    memory                    bytes by the names of PJRT's statistics
    costs                     by XLA's names
    optimized                 the optimized program: its format and bytes
    """

    name: str
    fingerprint: bytes
    format: str
    program: bytes
    options: bytes
    machine: Target
    boundary: Boundary
    image: Image | None = None
    donated: list[int] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    optimized: tuple[str, bytes] = ("", b"")


def write(a: Artifact, made: dict[str, str] | None) -> bytes:
    """The artifact as bytes. `made`: what must be as it is now when they are read; None: somebody else sees to it."""
    blobs = [a.program, a.options, a.optimized[1]]
    header: dict[str, Any] = {
        "made": made,
        "machine": vars_of(a.machine),
        "name": a.name,
        "fingerprint": a.fingerprint.hex(),
        "format": a.format,
        "boundary": vars(a.boundary),
        "donated": a.donated,
        "memory": a.memory,
        "costs": a.costs,
        "optimized": a.optimized[0],
    }
    if a.image is not None:
        i = a.image
        header["code"] = {
            "name": i.name,
            "arguments": list(map(_written, i.arg_types)),
            "results": list(map(_written, i.result_types)),
            "objects": len(i.objects),
            "constants": [[dtype_name(c.dtype), list(c.shape)] for c in i.constants],
            "arena_size": i.arena_size,
            "aliases": i.aliases,
            "cost": i.cost,
            "release_gil": i.release_gil,
            "forms": i.forms,
        }
        blobs += [*i.objects, *(np.ascontiguousarray(c).tobytes() for c in i.constants)]
    header["sizes"] = [len(b) for b in blobs]
    head = json.dumps(header).encode()
    body = b"".join([MAGIC, FORMAT.to_bytes(4, "little"), len(head).to_bytes(8, "little"), head, *blobs])
    return body + hashlib.sha256(body).digest()


def read(data: bytes, made: dict[str, str] | None) -> Artifact:
    """The artifact in `data`, which was written with the same `made`.

    Raises `Error` that says what does not fit: no artifact, damaged, of another version, or for another machine.
    """
    start = len(MAGIC) + 12
    if not data.startswith(MAGIC):
        raise Error("this is no executable that hilo serialized")
    if len(data) < start + _CHECKSUM:
        raise Error("the serialized executable is cut short")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    if version != FORMAT:
        raise Error(f"the serialized executable has the format {version}; this hilo reads {FORMAT}: compile it again")
    body = memoryview(data)[:-_CHECKSUM]
    if hashlib.sha256(body).digest() != data[-_CHECKSUM:]:
        raise Error("the serialized executable is damaged: its checksum is wrong")
    size = int.from_bytes(body[len(MAGIC) + 4 : start], "little")
    try:
        header = json.loads(bytes(body[start : start + size]))
        machine = Target(**header["machine"])
        if made is not None:
            _check_made(header["made"] or {}, made)
            _check_machine(machine)
        blobs = _cut(body[start + size :], header["sizes"])
        code = header.get("code")
        return Artifact(
            header["name"],
            bytes.fromhex(header["fingerprint"]),
            header["format"],
            bytes(blobs[0]),
            bytes(blobs[1]),
            machine,
            _boundary(header["boundary"]),
            None if code is None else _image(code, blobs[3:]),
            header["donated"],
            header["memory"],
            header["costs"],
            (header["optimized"], bytes(blobs[2])),
        )
    except Error:
        raise
    except Exception as e:  # the checksum is right: whoever wrote this was no hilo
        raise Error(f"the serialized executable makes no sense: {type(e).__name__}: {e!s:.80}") from None


@cache
def circumstances() -> dict[str, str]:
    """What artifacts of one hilo have in common, by name."""
    from importlib.metadata import PackageNotFoundError, version

    from hilo.backend.llvm_library import llvm_version, llvmlite_version

    try:
        release = version("hilo-compiler")
    except PackageNotFoundError:  # run from its sources
        release = "unreleased"
    return {
        "hilo": f"{release} {sources()[:16]}",
        "LLVM": f"{llvm_version()} (llvmlite {llvmlite_version()})",
    }


@cache
def sources() -> str:
    """Tells this hilo from any other by what is in its files: the same on every machine that has the same one."""
    root = os.path.dirname(os.path.dirname(__file__))
    found = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".py", ".c", ".h")):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found.update(f"{os.path.relpath(path, root)}\n".encode(errors="surrogateescape"))
                    found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()


def _check_made(made: dict[str, str], here: dict[str, str]) -> None:
    for what, now in here.items():
        if made.get(what) != now:
            raise Error(f"the serialized executable was made by {what} {made.get(what)!s:.60}, this is {now}: "
                        "compile it again")  # fmt: skip


def _check_machine(machine: Target) -> None:
    host = Target.host()
    has = set(host.features.split(","))
    lacking = [f[1:] for f in machine.features.split(",") if f.startswith("+") and f not in has]
    if lacking or not host.includes(machine):
        what = f"which has {', '.join(lacking[:6])}" if lacking else f"{machine.vector_bytes * 8} bits wide"
        raise Error(f"the serialized executable is for another machine ({title(machine)}, {what}); "
                    f"this is {title(host)}")  # fmt: skip


def vars_of(machine: Target) -> dict[str, Any]:
    """A machine as plain data."""
    return {name: getattr(machine, name) for name in Target.__match_args__}


def dtype_name(t: np.dtype) -> str:
    """hilo's name of a numpy type."""
    from hilo.ir.dtypes import from_numpy

    return from_numpy(t).name


def _written(t: TensorType) -> list[Any]:
    return [getattr(t.dtype, "storage", t.dtype).name, list(t.shape)]


def _type(written: list[Any]) -> TensorType:
    return TensorType(dtype(written[0]), tuple(map(int, written[1])))


def _cut(data: memoryview, sizes: list[int]) -> list[memoryview]:
    pieces, at = [], 0
    for n in sizes:
        if n < 0 or n > len(data) - at:
            raise ValueError("blobs are longer than the whole")
        pieces.append(data[at : at + n])
        at += n
    if at != len(data):
        raise ValueError("blobs are shorter than the whole")
    return pieces


def _boundary(parts: dict[str, Any]) -> Boundary:
    def places(listed: list[Any]) -> list[Any]:
        return [(code, tuple(dims), tuple(order)) for code, dims, order in listed]

    return Boundary(places(parts["arguments"]), places(parts["results"]), parts["argument_kinds"],
                    parts["result_kinds"], parts["must_donate"])  # fmt: skip


def _image(code: dict[str, Any], blobs: list[memoryview]) -> Image:
    count = code["objects"]
    constants = [np.frombuffer(b, _type(w).dtype.np).reshape(w[1])
                 for w, b in zip(code["constants"], blobs[count:], strict=True)]  # fmt: skip
    return Image(
        code["name"],
        tuple(map(_type, code["arguments"])),
        tuple(map(_type, code["results"])),
        [bytes(b) for b in blobs[:count]],
        constants,
        code["arena_size"],
        [(int(r), int(a)) for r, a in code["aliases"]],
        code["cost"],
        code["release_gil"],
        [(argument, nbytes, tuple(numbers)) for argument, nbytes, numbers in code["forms"]],
    )
