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
def across(how: str, t: VType) -> tuple[str, str]:
    """AT&T assembly that combines all lanes of a vector, and what it is told of its operands.

    It gives two or three values: floats are left in the lowest lane of the first one; integers are the first one. The
    others are for what comes between. It takes the vector, and, of one of 64 bytes, the lower half again: LLVM does not
    print the names of parts of the registers from 16 on. Empty if `t` is not the type of a whole register of lanes of
    4 or 8 bytes.
    """
    bytes_ = t.lanes * t.size
    if t.size < 4 or bytes_ not in (16, 32, 64):
        return "", ""
    wide = t.size == 8
    op = _OPS[how] + (("ps", "pd") if t.is_float else ("d", "q"))[wide]
    # What moves halves of a register expects to know whether there are floats in it.
    kind, pairs, singles = ("i", "vpshufd $$0xEE,", "vpshufd $$0x55,")
    if t.is_float:
        kind, pairs, singles = ("f", "vpermilpd $$1,", "vmovshdup")
    total, part, given = (0, 1, 2) if t.is_float else (1, 2, 3)
    lines: list[str] = []
    low, inputs = given, "x"
    if bytes_ == 64:
        lines.append(f"vextract{kind}64x4 $$1, ${given}, ${{{part}:t}}")
        lines.append(f"{op} ${{{part}:t}}, ${given + 1}, ${{{total}:t}}")
        low, inputs = total, "v,v"
    for size, whole, move in ((32, "t", f"vextract{kind}128 $$1,"), (16, "x", pairs), (8, "x", singles)):
        if t.size < size <= bytes_:
            lines += [f"{move} ${{{low}:{whole}}}, ${{{part}:x}}", f"{op} ${{{part}:x}}, ${{{low}:x}}, ${{{total}:x}}"]
            low = total
    if t.is_float:
        return "; ".join(lines), f"=&x,=&x,{inputs}"
    lines.append(f"vmov{'dq'[wide]} ${{1:x}}, $0")
    return "; ".join(lines), f"=r,=&x,=&x,{inputs}"
