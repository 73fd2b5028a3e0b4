"""`Target`: the machine that code is made for. Kernels ask it for widths, registers and cache sizes, and never name an
instruction set. Imports loop, ir.dtypes and backend.host; LLVM only for hosts that are not known without it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from hilo.backend.host import NATIVE, cache_sizes, x86_host
from hilo.errors import Error
from hilo.ir.dtypes import DType
from hilo.loop.element import held_type
from hilo.loop.nodes import SIZES, VType
from hilo.record import record, replace

LINUX_X86: Final = "x86_64-unknown-linux-gnu"
LINUX_ARM: Final = "aarch64-unknown-linux-gnu"
NO_SIZES: Final[Mapping[str, Any]] = MappingProxyType({})


@record(frozen=True)
class Target:
    """An immutable, hashable description of a machine.

    `name` is for people; `triple`, `cpu` and `features` ("+avx2,-x") are LLVM's, but for hosts that are known without
    LLVM, whose `cpu` begins with "native" (`backend.names` has LLVM's words for them). `vector_bytes` is the width of a
    vector register and `registers` their number. In hardware there is: `has_fma` fused multiply-add; `has_masks` masked
    loads, stores and blends at full speed; `has_rounding` floor, ceil, rint and trunc; `has_dot4` dot products of four
    bytes, unsigned ones with signed ones; `has_same_dot4` such of bytes that are all signed, or all unsigned;
    `has_lanes` products of a vector and one lane of another that cost no more than others; `has_scale` products with
    powers of two. `has_dot_bf16`: sums of products of pairs of bf16, which take
    subnormals for 0, are there and permitted (`relaxed`). `l1`, `l2`, `l3` are bytes of cache per core (l3: shared).
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    has_fma: bool
    has_masks: bool
    has_rounding: bool
    has_dot4: bool
    has_scale: bool = False
    has_dot_bf16: bool = False
    has_same_dot4: bool = False
    has_lanes: bool = False
    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20

    @staticmethod
    def host() -> Target:
        """The machine this process runs on."""
        return _host()

    @staticmethod
    def named(name: str) -> Target:
        """`x86-avx512-vnni`, `x86-avx512`, `x86-avx2`, `x86-sse2`, `arm-neon-dotprod`, `arm-neon` (64-bit machines),
        `scalar` (no vectors, for portable C), or `host`.

        Raises `Error` for another name.
        """
        if name == "host":
            return _host()
        try:
            return NAMED[name]
        except KeyError:
            raise Error(f"no target {name!r}; there are host, {', '.join(NAMED)}") from None

    def lanes(self, dtype: DType | VType | str) -> int:
        """How many elements of a type (an element type, a loop-IR type or scalar's name) one vector register holds.

        Narrow floats count as the f32 that holds them, complex numbers as one of their parts.
        """
        if isinstance(dtype, DType):
            dtype = held_type(dtype)
        return max(1, self.vector_bytes // (SIZES[dtype] if isinstance(dtype, str) else dtype.size))

    def includes(self, other: Target) -> bool:
        """Whether code made for `other` runs on this machine."""
        return (
            self.triple.split("-")[0] == other.triple.split("-")[0]
            and self.vector_bytes >= other.vector_bytes
            and self.has_fma >= other.has_fma
            and self.has_masks >= other.has_masks
            and self.has_rounding >= other.has_rounding
            and self.has_dot4 >= other.has_dot4
            and self.has_same_dot4 >= other.has_same_dot4
            and self.has_scale >= other.has_scale
        )

    def plain(self) -> Target:
        """The same machine without its vectors: for code that is made quickly."""
        return replace(self, name=f"{self.name} (plain)", vector_bytes=1, has_masks=False, has_dot4=False,
                       has_dot_bf16=False, has_same_dot4=False, has_lanes=False)  # fmt: skip

    def relaxed(self, fast_math: frozenset[str]) -> Target:
        """The same machine with the instructions that only some relaxations (options.FAST_MATH) permit: "bf16"."""
        there = "bf16" in fast_math and self.vector_bytes == 64 and "+avx512bf16" in self.features.split(",")
        return replace(self, has_dot_bf16=True) if there else self

    @property
    def has_halves(self) -> bool:
        """Whether there are vectors of half the width, too, which cost no more, and on many machines half."""
        return self.vector_bytes == 64

    @property
    def arch(self) -> str:
        return self.triple.split("-")[0]


def _x86(name: str, cpu: str, features: str, level: int, dot4: bool = False,
         caches: Mapping[str, Any] = NO_SIZES) -> Target:  # fmt: skip
    """An x86-64 machine of a micro-architecture level: 1 (SSE2), 3 (AVX2, FMA) or 4 (AVX-512)."""
    return Target(
        name=name,
        triple=LINUX_X86,
        cpu=cpu,
        features=features,
        vector_bytes={1: 16, 3: 32, 4: 64}[level],
        registers=32 if level == 4 else 16,
        has_fma=level >= 3,
        has_masks=level == 4,
        has_rounding=level >= 3,
        has_dot4=dot4,
        has_scale=level == 4,
        has_dot_bf16=False,
        **caches,
    )


def _arm(name: str, cpu: str, features: str, dot4: bool = False,
         caches: Mapping[str, Any] = NO_SIZES) -> Target:  # fmt: skip
    """A 64-bit Arm machine: vectors of 16 bytes (NEON), which all of them have."""
    return Target(
        name=name,
        triple=LINUX_ARM,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=32,
        has_fma=True,
        has_masks=False,
        has_rounding=True,
        has_dot4=False,
        has_same_dot4=dot4,
        has_lanes=True,
        **caches,
    )


# Vectors of 512 bits are what we emit where there are any: "prefer-256-bit" would split them.
_WIDE: Final = "-prefer-256-bit"
NAMED: Final[dict[str, Target]] = {
    t.name: t
    for t in (
        _x86("x86-avx512-vnni", "x86-64-v4", f"+avx512vnni,{_WIDE}", 4, dot4=True),
        _x86("x86-avx512", "x86-64-v4", _WIDE, 4),
        _x86("x86-avx2", "x86-64-v3", "", 3),
        _x86("x86-sse2", "x86-64", "", 1),
        _arm("arm-neon-dotprod", "generic", "+dotprod", dot4=True),
        _arm("arm-neon", "generic", ""),
        # One element at a time, for emitters without vectors; on x86-64 LLVM makes code for it, too.
        replace(_x86("scalar", "x86-64", "", 1), vector_bytes=1),
    )
}


@cache
def _host() -> Target:
    if (found := x86_host()) is not None:
        return described(LINUX_X86, *found, cache_sizes())
    from hilo.backend.llvm_library import host

    return described(*host(), cache_sizes())


def described(triple: str, cpu: str, has: Mapping[str, bool], caches: Mapping[str, Any] = NO_SIZES) -> Target:
    """The machine that the system or LLVM describes: a triple, the CPU's name, the features that it has or lacks.

    Raises `Error` for a machine of another kind than we make code for.
    """
    kind = triple.split("-")[0]
    features = ",".join(f"{'+' if on else '-'}{f}" for f, on in sorted(has.items()) if f != "prefer-256-bit")
    if kind == "aarch64" and "linux" in triple:
        return _arm(f"arm-{cpu}", cpu, features, bool(has.get("dotprod")), caches)
    if kind != "x86_64":
        raise Error(f"hilo compiles for hosts of x86-64 and, with Linux, AArch64; this one is {triple}")
    level = 1
    if all(has.get(f) for f in ("avx2", "fma", "bmi2", "f16c")):
        level = 3
    if level == 3 and all(has.get(f) for f in ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")):
        level = 4
    dot4 = level == 4 and bool(has.get("avx512vnni"))
    return _x86(f"x86-{cpu.removeprefix(NATIVE)}", cpu, f"{features},{_WIDE}", level, dot4, caches)
