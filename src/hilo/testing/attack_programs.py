"""Programs in MLIR text that are deep, long, wide or huge: the builders behind `attacks`. Imports nothing of hilo."""

from __future__ import annotations

from typing import Final

DEEP: Final = 100_000
T: Final = "tensor<4xf32>"
I: Final = "tensor<i32>"


def main(body: str, params: str = f"%a: {T}", results: str = T) -> str:
    """A function @main; `body` with its return."""
    return f"func.func @main({params}) -> {results} {{\n{body}\n}}\n"


def identity(more: str = "") -> str:
    """A function that gives back its argument, after the ops `more`."""
    return main(f"{more}\nreturn %a : {T}")


def attribute(value: str) -> str:
    """A module with an attribute that nobody knows."""
    return f"module attributes {{x.y = {value}}} {{\n{identity()}}}"


def with_type(t: str) -> str:
    """A function that gives back its argument of type `t`."""
    return f"func.func @main(%a: {t}) -> {t} {{\n return %a : {t}\n}}"


def nested(left: str, middle: str, right: str, depth: int = DEEP) -> str:
    return left * depth + middle + right * depth


def constant(value: str, t: str) -> str:
    """A function that returns a constant."""
    return main(f"%c = stablehlo.constant dense<{value}> : {t}\nreturn %c : {t}", "", t)


def located(loc: str) -> str:
    return main(f"%0 = stablehlo.add %a, %a : {T} loc({loc})\nreturn %0 : {T}")


def aliases(name: str, first: str, step: str, count: int) -> str:
    """Aliases that each stand for something with the one before in it."""
    lines = [f"{name}0 = {first}", *(f"{name}{n + 1} = {step.format(f'{name}{n}')}" for n in range(count))]
    return "\n".join(lines) + "\n"


# ---- depth
def nested_ifs(depth: int) -> str:
    start = '%r = "stablehlo.if"(%p) ({\n'
    end = f"\nstablehlo.return %r : {T}\n}}, {{\n stablehlo.return %a : {T}\n}}) : (tensor<i1>) -> {T}"
    inner = f" %r = stablehlo.add %a, %a : {T}"
    return main(nested(start, inner, end, depth) + f"\n return %r : {T}", f"%a: {T}, %p: tensor<i1>")


def _loop(n: int, start: str) -> str:
    """The head of a loop over %x{n}, up to its body."""
    return (
        f"%r{n} = stablehlo.while(%x{n} = {start}) : {I}\n cond {{\n"
        f" %c{n} = stablehlo.constant dense<2> : {I}\n"
        f" %p{n} = stablehlo.compare LT, %x{n}, %c{n} : ({I}, {I}) -> tensor<i1>\n"
        f" stablehlo.return %p{n} : tensor<i1>\n}} do {{\n"
    )


def nested_loops(depth: int) -> str:
    heads = "".join(_loop(n, f"%x{n - 1}" if n else "%a") for n in range(depth))
    inner = f"%r{depth} = stablehlo.add %x{depth - 1}, %x{depth - 1} : {I}\n"
    ends = "".join(f"stablehlo.return %r{n + 1} : {I}\n}}\n" for n in reversed(range(depth)))
    return main(heads + inner + ends + f"return %r0 : {I}", f"%a: {I}", I)


def many_loops(count: int) -> str:
    parts = []
    for n in range(count):
        head = _loop(n, f"%r{n - 1}" if n else "%a")
        parts.append(f"{head}%y{n} = stablehlo.add %x{n}, %x{n} : {I}\n stablehlo.return %y{n} : {I}\n}}\n")
    return main("".join(parts) + f"return %r{count - 1} : {I}", f"%a: {I}", I)


def calls(count: int, *, ring: bool = False, twice: bool = False) -> str:
    """Functions that call the next one, once or twice; in a ring the last calls the first."""
    found = []
    for n in range(count):
        name = f"f{n}" if n else "main"
        callee = f"f{n + 1}" if n + 1 < count else "main" if ring else ""
        if not callee:
            body = f"%r = stablehlo.add %a, %a : {T}"
        else:
            body = f"%r = func.call @{callee}(%a) : ({T}) -> {T}"
            body += f"\n%q = func.call @{callee}(%r) : ({T}) -> {T}" if twice else ""
        last = "q" if twice and callee else "r"
        found.append(f"func.func @{name}(%a: {T}) -> {T} {{\n{body}\nreturn %{last} : {T}\n}}")
    return "\n".join(found)


# ---- size
def chain(count: int, *ops: str) -> str:
    """`count` elementwise ops one after the other; `{}` in an op is the value before."""
    lines = [f"%0 = stablehlo.add %a, %a : {T}"]
    lines += [f"%{n} = stablehlo.{ops[n % len(ops)].replace('{}', f'%{n - 1}')} : {T}" for n in range(1, count)]
    return main("\n".join(lines) + f"\nreturn %{count - 1} : {T}")


def turned(count: int) -> str:
    """Elementwise and index-moving ops in turn, which fuse into one kernel."""
    lines = [f"%0 = stablehlo.add %a, %a : {T}"]
    for n in range(1, count, 2):
        lines.append(f"%{n} = stablehlo.reverse %{n - 1}, dims = [0] : {T}")
        lines.append(f"%{n + 1} = stablehlo.tanh %{n} : {T}")
    return main("\n".join(lines) + f"\nreturn %{len(lines) - 1} : {T}")


def doubling(count: int) -> str:
    """Concatenations of a value with itself: sizes grow to 4 * 2 ** count."""
    lines = []
    for n in range(count):
        x = f"%{n - 1}" if n else "%a"
        t, twice = f"tensor<{4 << n}xf32>", f"tensor<{8 << n}xf32>"
        lines.append(f"%{n} = stablehlo.concatenate {x}, {x}, dim = 0 : ({t}, {t}) -> {twice}")
    t = f"tensor<{4 << count}xf32>"
    return main("\n".join(lines) + f"\nreturn %{count - 1} : {t}", results=t)


def matrices(n: int) -> str:
    """Temporaries of n x n, of which four numbers are returned."""
    t = f"tensor<{n}x{n}xf32>"
    return main(
        f"%0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<{n}xf32>) -> {t}\n"
        f"%1 = stablehlo.iota dim = 0 : {t}\n"
        f"%2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}\n"
        f"%3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}\n"
        f"%4 = stablehlo.slice %3 [0:1, 0:4] : ({t}) -> tensor<1x4xf32>\n"
        f"%5 = stablehlo.reshape %4 : (tensor<1x4xf32>) -> {T}\nreturn %5 : {T}",
        f"%a: tensor<{n}xf32>",
    )


def folds(n: int) -> str:
    """Constants of n elements that could be folded."""
    t = f"tensor<{n}xi64>"
    return main(
        f"%0 = stablehlo.iota dim = 0 : {t}\n%c = stablehlo.constant dense<3> : {t}\n"
        f"%1 = stablehlo.multiply %0, %c : {t}\n%2 = stablehlo.add %1, %1 : {t}\n"
        f"%3 = stablehlo.slice %2 [0:4] : ({t}) -> tensor<4xi64>\nreturn %3 : tensor<4xi64>",
        "", "tensor<4xi64>",
    )  # fmt: skip


def window(n: int) -> str:
    """A small result of a window of n elements."""
    return main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
      %c = stablehlo.constant dense<1.0> : {T}
      %r = "stablehlo.reduce_window"(%c, %z) <{{window_dimensions = array<i64: {n}>,
        padding = dense<[[{n - 4}, 3]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({T}, tensor<f32>) -> {T}
      return %r : {T}""")


def pads(amount: int) -> str:
    """Padding that is cut away again."""
    t = f"tensor<{4 + 2 * amount}xf32>"
    return main(
        f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%0 = stablehlo.pad %a, %z, low = [{amount}], high = [{amount}], interior = [0] : ({T}, tensor<f32>) -> {t}\n"
        f"%1 = stablehlo.slice %0 [{amount}:{amount + 4}] : ({t}) -> {T}\nreturn %1 : {T}"
    )


def parameters(count: int) -> str:
    """As many parameters as results."""
    sums = [f"%s{n} = stablehlo.add %p{n}, %p{(n + 1) % count} : {T}" for n in range(count)]
    names = ", ".join(f"%s{n}" for n in range(count))
    types = ", ".join([T] * count)
    body = "\n".join(sums) + f"\nreturn {names} : {types}"
    return main(body, ", ".join(f"%p{n}: {T}" for n in range(count)), f"({types})")


def operands(count: int) -> str:
    """One concatenation of many operands."""
    t = f"tensor<{4 * count}xf32>"
    names, types = ", ".join(["%a"] * count), ", ".join([T] * count)
    return main(f"%0 = stablehlo.concatenate {names}, dim = 0 : ({types}) -> {t}\nreturn %0 : {t}", results=t)


def rank(n: int) -> str:
    t = f"tensor<{'1x' * n}f32>"
    dims = ", ".join(map(str, range(n)))
    body = f"%0 = stablehlo.add %a, %a : {t}\n%1 = stablehlo.reverse %0, dims = [{dims}] : {t}\nreturn %1 : {t}"
    return main(body, f"%a: {t}", t)


def branches(count: int) -> str:
    regions = ", ".join([f"{{ stablehlo.return %a : {T} }}"] * count)
    body = f'%0 = "stablehlo.case"(%i) ({regions}) : ({I}) -> {T}\nreturn %0 : {T}'
    return main(body, f"%a: {T}, %i: {I}")


def comparator(count: int) -> str:
    """A sort whose comparator has many ops."""
    s = "tensor<f32>"
    lines = "\n".join(f"%{n} = stablehlo.add %{n - 1 if n else 'x'}, %y : {s}" for n in range(count))
    return main(
        f'%r = "stablehlo.sort"(%a) <{{dimension = 0 : i64, is_stable = true}}> ({{\n^bb0(%x: {s}, %y: {s}):\n'
        f"{lines}\n%p = stablehlo.compare LT, %{count - 1}, %y : ({s}, {s}) -> tensor<i1>\n"
        f"stablehlo.return %p : tensor<i1>\n}}) : ({T}) -> {T}\nreturn %r : {T}"
    )


def functions(count: int) -> str:
    return "\n".join(f"func.func private @f{n}() {{ return }}" for n in range(count)) + identity()


def resource(t: str, blob: str) -> str:
    """A constant whose elements are in a resource."""
    body = identity(f"%c = stablehlo.constant dense_resource<r> : {t}")
    return body + f'{{-# dialect_resources: {{ builtin: {{ r: "{blob}" }} }} #-}}'
