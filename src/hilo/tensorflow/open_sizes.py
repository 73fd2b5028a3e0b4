"""One program for all sizes of what TensorFlow's converter gives where a model leaves sizes open. Imports mlir_lines.

With sizes that are known only at run time the converter does not finish its work. Sizes are computed in MLIR's own
dialects (`arith`, `shape`, `tensor`), on `index`, and ops of TensorFlow are left (`tf.Reshape`, `tf.StridedSlice`,
`tf.MirrorPad`). Each is replaced by ops of StableHLO with the same result; an op that has no such form here is an
`Unsupported`, and the caller compiles for known sizes instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Final

from hilo.errors import Unsupported
from hilo.tensorflow.mlir_lines import INDEX, NAME, Rewriter, Rule, Size, parsed, parts, signature, tensor_type

MASK: Final = re.compile(r"(begin|end|ellipsis|new_axis|shrink_axis)_mask = (\d+)")
ARITHMETIC: Final = {"addi": "add", "subi": "subtract", "muli": "multiply", "divsi": "divide", "divui": "divide",
                     "maxsi": "maximum", "minsi": "minimum", "maxui": "maximum", "minui": "minimum"}  # fmt: skip


def finished(text: str) -> str:
    """The text of a module with StableHLO in place of what the converter left. `Unsupported` if there is no form."""
    return Rewriter(RULES).rewritten(text)


# -- sizes ------------------------------------------------------------------------------------------


def _arith_constant(w: Rewriter, name: str, rest: str) -> None:
    m = re.match(r" (-?\d+) : (index|i64|i32)$", rest)
    if m is None:
        raise Unsupported("such a constant is not known here", op="arith.constant")
    w.scalars[name] = int(m[1])


def _index_cast(w: Rewriter, name: str, rest: str) -> None:
    m = re.match(r" (%\S+) : (\S+) to (\S+)$", rest)
    if m is None or not m[2].startswith("tensor"):
        w.scalars[name] = w.scalars[NAME.findall(rest)[0]]
        return
    a, b = (INDEX.sub(r"\1i64>", t) for t in m.groups()[1:])
    w.emit(f"stablehlo.convert {m[1]} : ({a}) -> {b}", name)
    if m[1] in w.vectors:
        w.vectors[name] = w.vectors[m[1]]


def _arithmetic(op: str) -> Rule:
    def rule(w: Rewriter, name: str, rest: str) -> None:
        a, b = NAME.findall(rest)
        if a not in w.scalars or b not in w.scalars:
            raise Unsupported("such arithmetic is not known here", op=f"arith.{op}")
        w.scalars[name] = w.binary(ARITHMETIC[op], w.scalars[a], w.scalars[b])

    return rule


def _const_shape(w: Rewriter, name: str, rest: str) -> None:
    w.vector([int(n) for n in re.findall(r"-?\d+", rest.partition(":")[0])], name)


def _witness(w: Rewriter, name: str, rest: str) -> None:
    pass


def _assuming(w: Rewriter, name: str, rest: str) -> None:
    w.entered(name)


def _shape_of(w: Rewriter, name: str, rest: str) -> None:
    x, t = parts(r" (%\S+) : (\S+) -> ", rest)
    w.vector(w.dims(x, t)[0], name)


def _shapes(w: Rewriter, rest: str) -> list[list[Size]]:
    """The operands of an op on shapes."""
    operands, _, types = rest.partition("->")[0].partition(" : ")
    return [w.elements(o, t) for o, t in zip(NAME.findall(operands), types.split(", "))]


def _split_at(w: Rewriter, name: str, rest: str) -> None:
    (x, at), _, (t, *_), _ = signature(rest)
    place = w.scalars[at]
    sizes = w.elements(x, t)
    if not isinstance(place, int):
        raise Unsupported("the place is known only at run time", op="shape.split_at")
    head, tail = name.split(", ")
    w.vectors[head], w.vectors[tail] = sizes[:place], sizes[place:]


def _concat(w: Rewriter, name: str, rest: str) -> None:
    w.vectors[name] = [n for s in _shapes(w, rest) for n in s]


def _to_extent_tensor(w: Rewriter, name: str, rest: str) -> None:
    w.vector(w.vectors[NAME.findall(rest)[0]], name)


def _broadcast(w: Rewriter, name: str, rest: str) -> None:
    """Of shapes. Where two sizes are open, the one that is not 1: the broadcast itself checks that both fit."""
    shapes = _shapes(w, rest)
    rank = max(map(len, shapes))
    sizes: list[Size] = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            a = sizes[i]
            if a == 1 or n == 1:
                sizes[i] = n if a == 1 else a
            elif isinstance(a, int) or isinstance(n, int):
                sizes[i] = a if isinstance(a, int) else n
            elif a != n:
                one = w.emit(f"stablehlo.compare EQ, {a}, {w.scalar(1)} : (tensor<i64>, tensor<i64>) -> tensor<i1>")
                sizes[i] = w.emit(f"stablehlo.select {one}, {n}, {a} : tensor<i1>, tensor<i64>")
    w.vector(sizes, name)


def _dim(w: Rewriter, name: str, rest: str) -> None:
    x, axis, t = parts(r" (%\S+), (%\S+) : (\S+)$", rest)
    shape, w.element = parsed(t)
    number = w.scalars[axis]
    if not isinstance(number, int):
        raise Unsupported("the axis is known only at run time", op="tensor.dim")
    w.scalars[name] = w.dim(x, shape, number)


def _from_elements(w: Rewriter, name: str, rest: str) -> None:
    operands = NAME.findall(rest.partition(":")[0])
    if any(o not in w.scalars for o in operands):
        raise Unsupported("such elements are not known here", op="tensor.from_elements")
    sizes = [w.scalars[o] for o in operands]
    (*shape,), dtype = parsed(rest.partition(" : ")[2])
    dtype = "i64" if dtype == "index" else dtype
    if len(shape) == 1 and dtype == "i64":
        w.vector(sizes, name)
        return
    made = w.vector(sizes) if shape else w.scalar(sizes[0])
    have, want = (tensor_type(tuple(shape), t) for t in ("i64", dtype))
    w.emit(f"stablehlo.convert {made} : ({have}) -> {want}", name)


def _extract(w: Rewriter, name: str, rest: str) -> None:
    x, places, t = parts(r" (%\S+)\[(.*)\] : (\S+)$", rest)
    place = w.scalars.get(places) if places else None
    if not isinstance(place, int):
        raise Unsupported("such an element is not known here", op="tensor.extract")
    w.scalars[name] = w.elements(x, t)[place]


# -- ops of TensorFlow ------------------------------------------------------------------------------


def _reshape(w: Rewriter, name: str, rest: str) -> None:
    """The one open size of the result is what is left of the operand's elements; several are read from the operand."""
    (x, to), _, (t, vector), out = signature(rest)
    sizes, shape = w.dims(x, t)
    want, _ = parsed(out)
    made: list[Size] = [n if n is not None else -1 for n in want]
    if want.count(None) == 1:
        a, b = prod(n for n in shape if n is not None), prod(n for n in want if n is not None)
        if not b:
            raise Unsupported("a size that is open beside one of 0", op="tf.Reshape")
        g = gcd(a, b)
        total = w.binary("multiply", a // g, _product(w, [s for n, s in zip(shape, sizes) if n is None]))
        made[want.index(None)] = w.binary("divide", total, b // g)
    elif None in want:
        made = [e if n is None else n for n, e in zip(want, w.elements(to, vector))]
        left = w.binary("divide", _product(w, sizes), _product(w, [_or(w, e, 1) for e in made]))
        made = [_or(w, e, left) for e in made]
    w.reshaped(x, t, made, out, name)


def _product(w: Rewriter, sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for size in sizes:
        total = w.binary("multiply", total, size)
    return total


def _or(w: Rewriter, size: Size, other: Size) -> Size:
    """`other` if `size` is -1, which stands for what is left."""
    if isinstance(size, int):
        return other if size == -1 else size
    a, b = w.scalar(-1), w.scalar(other)
    left = w.emit(f"stablehlo.compare EQ, {size}, {a} : (tensor<i64>, tensor<i64>) -> tensor<i1>")
    return w.emit(f"stablehlo.select {left}, {b}, {size} : tensor<i1>, tensor<i64>")


def _strided_slice(w: Rewriter, name: str, rest: str) -> None:
    (x, *ends), attributes, types, out = signature(rest)
    begin, end, strides = (w.constant(e, "tf.StridedSlice") for e in ends)
    masks = {m[1]: int(m[2]) for m in MASK.finditer(attributes)}
    sizes, shape = w.dims(x, types[0])
    starts: list[Size] = []
    limits: list[Size] = []
    steps: list[int] = []
    kept: list[int] = []  # the axes of the slice that the result has; -1: a new one

    def whole(axis: int) -> None:
        starts.append(0)
        limits.append(sizes[axis])
        steps.append(1)
        kept.append(axis)

    def has(mask: str, i: int) -> bool:
        return bool(masks.get(mask, 0) >> i & 1)

    for i, (b, e, step) in enumerate(zip(begin, end, strides)):
        axis = len(starts)
        if has("ellipsis", i):
            later = sum(not has("new_axis", j) for j in range(i + 1, len(begin)))
            for a in range(axis, len(shape) - later):
                whole(a)
        elif has("new_axis", i):
            kept.append(-1)
        else:
            if step < 1:
                raise Unsupported("backwards, where sizes are known only at run time", op="tf.StridedSlice")
            n = sizes[axis]
            shrink = has("shrink_axis", i)
            starts.append(0 if has("begin", i) and not shrink else _place(w, b, n))
            if shrink:
                limits.append(w.binary("add", starts[-1], 1))
            else:
                limits.append(n if has("end", i) else w.binary("maximum", _place(w, e, n), starts[-1]))
            steps.append(1 if shrink else step)
            if not shrink:
                kept.append(axis)
    for axis in range(len(starts), len(shape)):
        whole(axis)
    counts = [_count(w, *p) for p in zip(starts, limits, steps)]
    inner = tensor_type(tuple(c if isinstance(c, int) else None for c in counts), w.element)
    cut = w.sliced(x, types[0], inner, starts, limits, steps)
    w.reshaped(cut, inner, [1 if a < 0 else counts[a] for a in kept], out, name)


def _place(w: Rewriter, at: int, n: Size) -> Size:
    """A place in an axis of `n`, which counts from the end if it is negative, and stays inside."""
    if isinstance(n, int):
        return max(0, min(n, at + n if at < 0 else at))
    return w.binary("maximum", w.binary("add", n, at), 0) if at < 0 else w.binary("minimum", at, n) if at else 0


def _count(w: Rewriter, start: Size, limit: Size, step: int) -> Size:
    if start == 0 and step == 1:
        return limit
    between = w.binary("subtract", limit, start)
    return between if step == 1 else w.binary("divide", w.binary("add", between, step - 1), step)


def _mirror_pad(w: Rewriter, name: str, rest: str) -> None:
    """Along one axis after the other: its first and last elements, reversed, on both sides."""
    (x, paddings), attributes, (t, _), _ = signature(rest)
    edges = w.constant(paddings, "tf.MirrorPad")
    skip = 1 if "REFLECT" in attributes else 0
    for axis in range(len(edges) // 2):
        low, high = edges[2 * axis : 2 * axis + 2]
        if low or high:
            x, t = _mirrored(w, x, t, axis, (low, high), skip)
    w.emit(f"stablehlo.convert {x} : {t}", name)


def _mirrored(w: Rewriter, x: str, t: str, axis: int, edges: tuple[int, int], skip: int) -> tuple[str, str]:
    sizes, shape = w.dims(x, t)
    n = shape[axis]
    if n is None:
        raise Unsupported("an axis whose size is known only at run time", op="tf.MirrorPad")

    def part(first: int, last: int) -> tuple[str, str]:
        starts: list[Size] = [0] * len(shape)
        limits = list(sizes)
        starts[axis], limits[axis] = first, last
        kind = tensor_type((*shape[:axis], last - first, *shape[axis + 1 :]), w.element)
        cut = w.sliced(x, t, kind, starts, limits, [1] * len(shape))
        return w.emit(f"stablehlo.reverse {cut}, dims = [{axis}] : {kind}"), kind

    low, high = edges
    pieces = [*([part(skip, skip + low)] if low else ()), (x, t),
              *([part(n - skip - high, n - skip)] if high else ())]  # fmt: skip
    out = tensor_type((*shape[:axis], n + low + high, *shape[axis + 1 :]), w.element)
    names, types = (", ".join(p) for p in zip(*pieces))
    return w.emit(f"stablehlo.concatenate {names}, dim = {axis} : ({types}) -> {out}"), out


RULES: Final[Mapping[str, Rule]] = {
    "arith.constant": _arith_constant,
    "arith.index_cast": _index_cast,
    **{f"arith.{op}": _arithmetic(op) for op in ARITHMETIC},
    "shape.const_shape": _const_shape,
    "shape.const_witness": _witness,
    "shape.assuming": _assuming,
    "shape.shape_of": _shape_of,
    "shape.broadcast": _broadcast,
    "shape.split_at": _split_at,
    "shape.concat": _concat,
    "shape.to_extent_tensor": _to_extent_tensor,
    "tensor.dim": _dim,
    "tensor.from_elements": _from_elements,
    "tensor.extract": _extract,
    "tf.Reshape": _reshape,
    "tf.StridedSlice": _strided_slice,
    "tf.MirrorPad": _mirror_pad,
}
