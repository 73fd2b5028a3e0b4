"""Conversions of vectors. Imports x86.select and its neighbours.

What has no instruction of its own goes by way of i32: bytes and words to floats and back. A vector of several parts is
converted piece by piece: where lanes become wider each register is cut up, where they become narrower pieces are put
together.
"""

from __future__ import annotations

from typing import Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import NO, VECTOR, Address
from hilo.backend.x86.pieces import (
    INT,
    everywhere,
    join,
    join_masks,
    known,
    mask_part,
    numbers,
    part_type,
    parts,
    pattern,
    piece,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.backend.x86.shuffles import length_of
from hilo.backend.x86.uses import LOWER_BITS
from hilo.backend.x86.vectors import name_of
from hilo.loop.nodes import Node, VType

#: Instructions by how, from, to. Those that make integers narrower have their result where others have memory.
DIRECT: Final = {
    ("sitofp", "i32", "f32"): "vcvtdq2ps", ("sitofp", "i32", "f64"): "vcvtdq2pd",
    ("sitofp", "i64", "f32"): "vcvtqq2ps", ("sitofp", "i64", "f64"): "vcvtqq2pd",
    ("uitofp", "i32", "f32"): "vcvtudq2ps", ("uitofp", "i32", "f64"): "vcvtudq2pd",
    ("uitofp", "i64", "f32"): "vcvtuqq2ps", ("uitofp", "i64", "f64"): "vcvtuqq2pd",
    ("fptosi", "f32", "i32"): "vcvttps2dq", ("fptosi", "f32", "i64"): "vcvttps2qq",
    ("fptosi", "f64", "i32"): "vcvttpd2dq", ("fptosi", "f64", "i64"): "vcvttpd2qq",
    ("fptoui", "f32", "i32"): "vcvttps2udq", ("fptoui", "f32", "i64"): "vcvttps2uqq",
    ("fptoui", "f64", "i32"): "vcvttpd2udq", ("fptoui", "f64", "i64"): "vcvttpd2uqq",
    ("fpext", "f32", "f64"): "vcvtps2pd", ("fptrunc", "f64", "f32"): "vcvtpd2ps",
}  # fmt: skip
_ORDER: Final = ("i8", "i16", "i32", "i64")
for _i, _small in enumerate(_ORDER):
    for _wide in _ORDER[_i + 1 :]:
        _pair = "bwdq"[_i] + "bwdq"[_ORDER.index(_wide)]
        DIRECT["sext", _small, _wide] = "vpmovsx" + _pair
        DIRECT["zext", _small, _wide] = "vpmovzx" + _pair
        DIRECT["itrunc", _wide, _small] = "vpmov" + _pair[::-1]


@selects("convert", of="vector")
def convert(s: Selector, node: Node) -> Value:
    (x,), how, t = node.args, node.attrs["how"], node.type
    f = x.type
    if how == "bitcast":
        return value(parts(s, x))
    if f.scalar == "i1":
        return from_mask(s, node, how, t)
    if t.scalar == "i1":
        return to_mask(s, parts(s, x), f)
    if how == "itrunc" and x in s.lazy and x.kind in LOWER_BITS and not (x.kind == "mul" and t.size == 1):
        return value(lower(s, x, t))
    if (how, f.scalar, t.scalar) in DIRECT:
        return value(convert_parts(s, sources(s, x, t), how, f, t, node))
    word = f.with_scalar("i32")
    if f.is_float:  # to 8 or 16 bits
        made = convert_parts(s, sources(s, x, word), "fptosi", f, word)
        return value(convert_parts(s, [(r, 0) for r in made], "itrunc", word, t, node))
    extended = convert_parts(s, sources(s, x, word), "sext" if how == "sitofp" else "zext", f, word)
    return value(convert_parts(s, [(r, 0) for r in extended], "sitofp", word, t, node))


Place = tuple["int | Address", int]  # a register, and from which byte on; or memory


def sources(s: Selector, x: Node, t: VType) -> list[Place]:
    """Where the lanes of an operand are: in registers, or in memory, from which it is converted."""
    f = x.type
    if t.size >= f.size and t.lanes * t.size >= 16 and x in s.lazy and x.kind == "load" and len(x.args) == 1:
        return [(s.affine(x.args[0]), 0)]
    return [(r, 0) for r in parts(s, x)]


def convert_parts(s: Selector, places: list[Place], how: str, f: VType, t: VType,
                  node: Node | None = None) -> list[int]:  # fmt: skip
    """The registers of a vector of type `t` of those of one of type `f`, by one instruction for each."""
    name = DIRECT[how, f.scalar, t.scalar]
    steps = max(parts_of(f), parts_of(t))  # instructions
    lanes = f.lanes // steps
    a, z = lanes * f.size, lanes * t.size  # bytes of a piece, before and after
    size = length_of(max(a, z))
    out = []
    for i in range(steps):
        r = s.result(node) if steps == 1 and node is not None else s.new(VECTOR)
        first = places[0][0]
        source: int | Address
        if isinstance(first, Address):
            source = Address(first.base, first.index, first.scale, first.disp + i * a)
        else:
            source = piece(s, places[i * a // 64][0], i * a % 64, a, f.is_float)  # type: ignore[arg-type]
        s.v(name, size, r, NO, source)
        out.append(r)
    if z < 64 and steps > 1:
        return join_into(s, out, z, t.is_float)
    return out


def join_into(s: Selector, pieces: list[int], bytes_: int, floats: bool) -> list[int]:
    """Pieces put together to registers of 64 bytes, or to one of fewer."""
    per = min(len(pieces), 64 // bytes_)
    return [join(s, pieces[i : i + per], bytes_, floats)[0] for i in range(0, len(pieces), per)]


# ---- only the lower bits of what is computed
def lower(s: Selector, x: Node, t: VType) -> list[int]:
    """The registers of the lower bits, of type `t`, of a vector of i64, computed in that type where `x` waits."""
    n, one = parts_of(t), part_type(t)
    if (c := x.const) is not None:
        return [everywhere(s, c, t.size, max(16, one.lanes * t.size))] * n
    if x.kind == "iota" or x.kind == "const":
        values = range(t.lanes) if x.kind == "iota" else x.attrs["value"]
        data = numbers(values, t.size)
        return [known(s, data[64 * i : 64 * i + 64].ljust(16, b"\0")) for i in range(n)]
    if x not in s.lazy or x.kind == "load" or (x.kind == "mul" and t.size == 1):
        return convert_parts(s, [(r, 0) for r in parts(s, x)], "itrunc", x.type, t)
    if x.kind == "splat":
        r = s.new(VECTOR)
        s.v(f"vpbroadcast{INT[t.size]}_general", length(one), r, NO, s.use(x.args[0]))
        return [r] * n
    if x.kind == "convert":
        return lower_extended(s, x, t)
    a, b = (lower(s, y, t) for y in x.args)
    out = [s.new(VECTOR) for _ in range(n)]
    for r, first, second in zip(out, a, b, strict=True):
        s.v(name_of(x.kind, t), length(one), r, first, second)
    return out


def lower_extended(s: Selector, x: Node, t: VType) -> list[int]:
    """The lower bits of what is converted to i64."""
    (y,), f = x.args, x.args[0].type
    if x.attrs["how"] not in ("sext", "zext") or f.scalar == "i1":
        made = s.select(x)
        registers = made if isinstance(made, tuple) else (made,)
        return convert_parts(s, [(r, 0) for r in registers], "itrunc", x.type, t)  # type: ignore[misc]
    if f is t:
        return list(parts(s, y))
    how = x.attrs["how"] if f.size < t.size else "itrunc"
    return convert_parts(s, [(r, 0) for r in parts(s, y)], how, f, t)


# ---- masks
def from_mask(s: Selector, node: Node, how: str, t: VType) -> Value:
    """0 and 1, or -1, of bits."""
    mask = s.use(node.args[0])
    n, one = parts_of(t), part_type(t)
    out = s.results(node)
    for i, r in enumerate(out):
        k = mask_part(s, mask, t.lanes, i, n)
        if how == "sext":
            s.v("vpmovm2" + INT[t.size], length(one), r, NO, k)
        else:
            s.v("vpbroadcast" + INT[t.size], length(one), r, NO, constants.label((1).to_bytes(t.size, "little")),
                mask=k, zero=True)  # fmt: skip
    return value(out)


def to_mask(s: Selector, xs: tuple[int, ...], f: VType) -> int:
    """The lowest bits of integers."""
    masks = []
    size = length(part_type(f))
    for x in xs:
        k = s.new(1 + VECTOR)
        if f.size >= 4:
            rm, broadcast = pattern(s, 1, f)
            s.v("vptestm" + INT[f.size], size, k, x, rm, broadcast=broadcast)
        else:
            top = s.new(VECTOR)
            s.v("vpsllw", size, top, NO, x, imm=8 * f.size - 1)
            s.v(f"vpmov{INT[f.size]}2m", size, k, NO, top)
        masks.append(k)
    return join_masks(s, masks, f.lanes // len(masks))
