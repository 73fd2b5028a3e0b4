"""What the machine is that this process runs on, as the system tells. Imports files alone.

LLVM knows more of machines, but takes longer to load than most programs take to be compiled: it is asked for what code
of its own needs (`names.py`), and here only where the system does not tell.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from hilo.files import text

NATIVE: Final = "native-"  # so begin names of processors that are not LLVM's
MODALIAS: Final = "/sys/devices/system/cpu/modalias"
CACHES: Final = "/sys/devices/system/cpu/cpu0/cache"
_HEAD: Final = "cpu:type:x86,ven"
_VENDORS: Final = {0: "intel", 2: "amd", 5: "via", 9: "hygon", 10: "zhaoxin"}  # Linux's numbers

# Linux numbers a feature by the word of CPUID that it is in, and its bit. Names are LLVM's.
_WORDS: Final = {
    4: {0: "sse3", 1: "pclmul", 9: "ssse3", 12: "fma", 13: "cx16", 19: "sse4.1", 20: "sse4.2", 22: "movbe",
        23: "popcnt", 25: "aes", 28: "avx", 29: "f16c"},
    6: {0: "sahf", 5: "lzcnt", 6: "sse4a", 11: "xop", 16: "fma4", 21: "tbm"},
    9: {3: "bmi", 5: "avx2", 8: "bmi2", 16: "avx512f", 17: "avx512dq", 19: "adx", 21: "avx512ifma", 28: "avx512cd",
        29: "sha", 30: "avx512bw", 31: "avx512vl"},
    12: {4: "avxvnni", 5: "avx512bf16", 23: "avxifma"},
    16: {1: "avx512vbmi", 6: "avx512vbmi2", 8: "gfni", 9: "vaes", 10: "vpclmulqdq", 11: "avx512vnni",
         12: "avx512bitalg", 14: "avx512vpopcntdq"},
    18: {8: "avx512vp2intersect", 23: "avx512fp16"},
}  # fmt: skip


def x86_host() -> tuple[str, dict[str, bool]] | None:
    """A name for the processor, by vendor, family and model, and the features that code may use; None where Linux on
    x86-64 does not tell."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    return read_modalias(text(MODALIAS))


def read_modalias(line: str) -> tuple[str, dict[str, bool]] | None:
    """`x86_host` of what Linux says: `cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001,...`, in hexadecimal."""
    head, _, numbers = line.partition(":feature:,")
    try:
        if not head.startswith(_HEAD):
            return None
        vendor, family, model = (int(part, 16) for part in head[len(_HEAD) :].replace("mod", "fam").split("fam"))
        there = {int(number, 16) for number in numbers.split(",")}
    except ValueError:
        return None
    has = {name: True for word, bits in _WORDS.items() for bit, name in bits.items() if 32 * word + bit in there}
    return f"{NATIVE}{_VENDORS.get(vendor, vendor)}-{family}-{model}", has


def cache_sizes() -> dict[str, int]:
    """The host's cache sizes from Linux's sysfs (`l1`, `l2`, `l3`); empty where that is not to be had."""
    sizes: dict[str, int] = {}
    try:
        names = sorted(n for n in os.listdir(CACHES) if n.startswith("index"))
    except OSError:
        return sizes
    for name in names:
        kind, level, size = (text(f"{CACHES}/{name}/{f}") for f in ("type", "level", "size"))
        if kind != "Instruction" and size.endswith("K") and level in "123":
            sizes[f"l{level}"] = int(size[:-1]) << 10
    return sizes
