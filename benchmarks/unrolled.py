"""Programs of any number of ops, as unrolling loops makes them: `python -m benchmarks scale` compiles them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

X, W, R = "tensor<48x64xf32>", "tensor<64x64xf32>", "tensor<48xf32>"


def recurrence(v: str, k: int) -> Iterator[str]:
    """5 ops: a product, a bias, tanh, a gate."""
    yield f"%d{k} = stablehlo.dot_general {v}, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {X}"
    yield f"%c{k} = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf32>) -> {X}"
    yield f"%a{k} = stablehlo.add %d{k}, %c{k} : {X}"
    yield f"%t{k} = stablehlo.tanh %a{k} : {X}"
    yield f"%v{k} = stablehlo.multiply %t{k}, {v} : {X}"


def elementwise(v: str, k: int) -> Iterator[str]:
    """4 ops that fuse with everything around them."""
    yield f"%a{k} = stablehlo.add {v}, %x : {X}"
    yield f"%t{k} = stablehlo.sine %a{k} : {X}"
    yield f"%m{k} = stablehlo.multiply %t{k}, {v} : {X}"
    yield f"%v{k} = stablehlo.subtract %m{k}, %x : {X}"


def block(v: str, k: int) -> Iterator[str]:
    """21 ops: layer normalisation, a product with a bias, softmax, a residual."""
    yield from _reduce(f"s{k}", v, "add", "%zero")
    yield f"%m{k} = stablehlo.divide %s{k}, %n : {R}"
    yield from _less(f"d{k}", v, f"m{k}")
    yield f"%q{k} = stablehlo.multiply %d{k}, %d{k} : {X}"
    yield from _reduce(f"u{k}", f"%q{k}", "add", "%zero")
    yield f"%r{k} = stablehlo.rsqrt %u{k} : {R}"
    yield f"%rb{k} = stablehlo.broadcast_in_dim %r{k}, dims = [0] : ({R}) -> {X}"
    yield f"%y{k} = stablehlo.multiply %d{k}, %rb{k} : {X}"
    yield f"%p{k} = stablehlo.dot_general %y{k}, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> {X}"
    yield f"%c{k} = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf32>) -> {X}"
    yield f"%a{k} = stablehlo.add %p{k}, %c{k} : {X}"
    yield from _reduce(f"g{k}", f"%a{k}", "maximum", "%least")
    yield from _less(f"h{k}", f"%a{k}", f"g{k}")
    yield f"%e{k} = stablehlo.exponential %h{k} : {X}"
    yield from _reduce(f"f{k}", f"%e{k}", "add", "%zero")
    yield f"%fb{k} = stablehlo.broadcast_in_dim %f{k}, dims = [0] : ({R}) -> {X}"
    yield f"%w{k} = stablehlo.divide %e{k}, %fb{k} : {X}"
    yield f"%v{k} = stablehlo.add {v}, %w{k} : {X}"


def _reduce(name: str, v: str, op: str, init: str) -> Iterator[str]:
    how = f"applies stablehlo.{op} across dimensions = [1] : ({X}, tensor<f32>) -> {R}"
    yield f"%{name} = stablehlo.reduce({v} init: {init}) {how}"


def _less(name: str, v: str, row: str) -> Iterator[str]:
    yield f"%{row}b = stablehlo.broadcast_in_dim %{row}, dims = [0] : ({R}) -> {X}"
    yield f"%{name} = stablehlo.subtract {v}, %{row}b : {X}"


KINDS: dict[str, Callable[[str, int], Iterator[str]]] = {
    "recurrence": recurrence,
    "elementwise": elementwise,
    "block": block,
}


def program(kind: str, ops: int) -> str:
    """The text of a program with at least so many ops."""
    lines = [
        f"func.func public @main(%x: {X}, %w: {W}, %b: tensor<64xf32>) -> {X} {{",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        "%least = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        f"%n = stablehlo.constant dense<64.0> : {R}",
    ]
    v, k = "%x", 0
    while len(lines) < ops:
        lines += KINDS[kind](v, k)
        v, k = f"%v{k}", k + 1
    return "\n".join([*lines, f"return {v} : {X}", "}"])
