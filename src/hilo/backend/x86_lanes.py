"""Assembly that combines all lanes of a vector (`across` in loop/nodes.py), for x86-64 with AVX-512. Imports the loop's
types alone.

A step is an instruction that brings the upper half to the lower one's place, and one that combines them. LLVM makes the
same of shuffles, but looks for better ones first: of a softmax that was a fourth of all that it did.
"""

from __future__ import annotations

from functools import cache

from hilo.loop.nodes import VType

_OPS = {"fadd": "vadd", "fmul": "vmul", "add": "vpadd", "mul": "vpmull", "and": "vpand", "or": "vpor", "xor": "vpxor",
        "smax": "vpmaxs", "smin": "vpmins", "umax": "vpmaxu", "umin": "vpminu"}  # fmt: skip


@cache
def across(how: str, t: VType) -> str:
    """AT&T assembly that leaves all lanes of operand 2, combined, in the lowest lane of operand 0; operand 1 is for
    what comes between. Empty if `t` is not the type of a whole register of lanes of 4 or 8 bytes."""
    if t.size < 4 or t.lanes * t.size not in (16, 32, 64):
        return ""
    op = _OPS[how] + (("ps" if t.size == 4 else "pd") if t.is_float else "d" if t.size == 4 else "q")
    lines = []
    low, bytes_ = 2, t.lanes * t.size
    if bytes_ == 64:
        lines += ["vextractf64x4 $$1, ${2:g}, ${1:t}", f"{op} ${{1:t}}, ${{2:t}}, ${{0:t}}"]
        low = 0
    if bytes_ >= 32:
        lines += [f"vextractf128 $$1, ${{{low}:t}}, ${{1:x}}", f"{op} ${{1:x}}, ${{{low}:x}}, ${{0:x}}"]
        low = 0
    lines += [f"vpermilpd $$1, ${{{low}:x}}, ${{1:x}}", f"{op} ${{1:x}}, ${{{low}:x}}, ${{0:x}}"]
    if t.size == 4:
        lines += ["vmovshdup ${0:x}, ${1:x}", f"{op} ${{1:x}}, ${{0:x}}, ${{0:x}}"]
    return "; ".join(lines)
