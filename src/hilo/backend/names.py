"""What LLVM calls the machines that we make code for. Imports backend.target and, for the host, LLVM's library."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from hilo.backend.host import NATIVE
from hilo.backend.target import NAMED, Target


class Names(NamedTuple):
    """A machine in LLVM's words."""

    triple: str
    cpu: str
    features: str  # "+avx2,-x"


@cache
def names(target: Target) -> Names:
    """How LLVM calls a machine: this one by all that LLVM knows of it, any other by what its `Target` says."""
    if not target.cpu.startswith(NATIVE):
        return Names(target.triple, target.cpu, target.features)
    if not is_here(target):  # somebody else's host, in code that was kept
        level = {16: "x86-sse2", 32: "x86-avx2", 64: "x86-avx512"}.get(target.vector_bytes, "x86-sse2")
        return Names(target.triple, NAMED[level].cpu, target.features)
    from hilo.backend.llvm_library import host as described_by_llvm
    from hilo.backend.target import described

    known = described(*described_by_llvm())
    return Names(known.triple, known.cpu, known.features)


def is_here(target: Target) -> bool:
    """Whether a machine is this one, as far as code can tell."""
    host = Target.host()
    return (target.cpu, target.features) == (host.cpu, host.features)


def title(target: Target) -> str:
    """The machine's name for people, with LLVM's name of the processor, e.g. `x86-znver4`."""
    if not (target.cpu.startswith(NATIVE) and is_here(target)):
        return target.name
    return target.name.replace(target.cpu.removeprefix(NATIVE), names(target).cpu)
