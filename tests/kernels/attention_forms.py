"""Attention written in many ways: programs from a seed, with masks, scales, orders of axes, derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def tensor(shape: tuple[int, ...], name: str = "f32") -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{name}>"


def spread(x: str, source: str, dims: list[int], target: str) -> str:
    return f"stablehlo.broadcast_in_dim {x}, dims = {dims} : ({source}) -> {target}"


@dataclass
class Form:
    """softmax(q k^T) v of `heads` = batch x heads, in a form that `seed` chooses."""

    seed: int
    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, tuple[int, ...], str]] = field(default_factory=list)  # name, shape, type
    count: int = 0

    def let(self, text: str) -> str:
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: str, t: str) -> str:
        return self.let(f"stablehlo.constant dense<{value}> : {t}")

    def argument(self, shape: tuple[int, ...], name: str) -> str:
        self.arguments.append((f"%a{len(self.arguments)}", shape, name))
        return self.arguments[-1][0]

    def program(self) -> str:
        rng = np.random.default_rng(self.seed)

        def pick(*choices: object) -> object:
            return choices[rng.integers(len(choices))]

        b, h = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        rows, columns = int(pick(1, 5, 40, 65, 130)), int(pick(33, 64, 100, 257, 512))  # type: ignore[call-overload]
        depth, width = int(pick(3, 8, 16, 40)), int(pick(1, 8, 16, 33))  # type: ignore[call-overload]
        name = str(pick("f32", "f32", "f32", "bf16", "f16", "f64"))
        score = "f32" if name in ("bf16", "f16") and rng.integers(2) else name
        s, r = (b, h, rows, columns), (b, h, rows)
        t, u, bits = tensor(s, score), tensor(r, score), tensor(s, "i1")

        def laid_out(n: int, d: int, shared: bool) -> tuple[str, list[int], int, int]:
            """An operand with axes batch, head, rows, depth in some order; heads may be copies of one."""
            order = list(pick([0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 1, 3], [0, 1, 3, 2]))  # type: ignore[call-overload]
            full = [b, h, n, d]
            shape = tuple(full[i] for i in order)
            if shared and rng.integers(2):
                less = tuple(full[i] for i in order if i != 1)
                x = self.argument(less, name)
                dims = [i for i in range(4) if order[i] != 1]
                x = self.let(spread(x, tensor(less, name), dims, tensor(shape, name)))
            else:
                x = self.argument(shape, name)
            return x, [order.index(0), order.index(1)], order.index(2), order.index(3)

        q, qb, _, qk = laid_out(rows, depth, False)
        k, kb, _, kk = laid_out(columns, depth, True)
        v, vb, vk, _ = laid_out(columns, width, True)
        shapes = {x.split(" : ")[0].split(" = ")[0].strip(): x for x in self.lines}

        def type_of(x: str) -> str:
            known = {a: tensor(shape, n) for a, shape, n in self.arguments}
            return known[x] if x in known else shapes[x].rsplit("-> ", 1)[1]

        x = self.dot(q, type_of(q), k, type_of(k), f"{qb} x {kb}", f"[{qk}] x [{kk}]", t)
        scale = str(pick("multiply", "divide", ""))
        if scale:
            x = self.let(f"stablehlo.{scale} {x}, {self.constant('0.3', t)} : {t}")
        mask = str(pick("", "causal", "added", "argument", "lengths"))
        low = str(pick("-1.0e9", "-1.0e4", "0xFF800000")) if score in ("f32",) else "-1.0e4"
        if mask in ("causal", "argument", "lengths"):
            if mask == "argument":
                m = self.let(spread(self.argument((b, columns), "i1"), tensor((b, columns), "i1"), [0, 3], bits))
            else:
                j = self.let(f"stablehlo.iota dim = 3 : {tensor(s, 'i32')}")
                if mask == "causal":
                    i = self.let(f"stablehlo.iota dim = 2 : {tensor(s, 'i32')}")
                else:
                    i = self.let(spread(self.argument((b,), "i32"), tensor((b,), "i32"), [0], tensor(s, "i32")))
                m = self.let(f"stablehlo.compare GE, {i}, {j} : ({tensor(s, 'i32')}, {tensor(s, 'i32')}) -> {bits}")
            x = self.let(f"stablehlo.select {m}, {x}, {self.constant(low, t)} : {bits}, {t}")
        elif mask == "added":
            some = (b, 1, rows, columns)
            bias = self.let(spread(self.argument(some, score), tensor(some, score), [0, 1, 2, 3], t))
            x = self.let(f"stablehlo.add {x}, {bias} : {t}")
        top = self.reduced(x, "maximum", "0xFF800000" if score == "f32" else "-6.0e4", t, u, score)
        e = self.let(f"stablehlo.exponential {self.let(f'stablehlo.subtract {x}, {top} : {t}')} : {t}")
        p = self.let(f"stablehlo.divide {e}, {self.reduced(e, 'add', '0.0', t, u, score)} : {t}")
        outs: list[tuple[str, str]] = []
        if rng.integers(4) == 0:
            outs.append((p, t))
        if rng.integers(3) == 0:  # dropout
            kept = self.argument(s, "i1")
            p = self.let(f"stablehlo.select {kept}, {p}, {self.constant('0.0', t)} : {bits}, {t}")
        if score != name:
            p = self.let(f"stablehlo.convert {p} : ({t}) -> {tensor(s, name)}")
        t = tensor(s, name)
        if rng.integers(2):
            o = tensor((b, h, rows, width), name)
            y = self.dot(p, t, v, type_of(v), f"[0, 1] x {vb}", f"[3] x [{vk}]", o)
        else:
            o = tensor((b, h, width, rows), name)
            y = self.dot(v, type_of(v), p, t, f"{vb} x [0, 1]", f"[{vk}] x [3]", o)
        outs.append((y, o))
        if rng.integers(3) == 0 and score == name:  # the derivative of the softmax, and what is made of it
            self.backward(p, (b, h, rows, columns), depth, name, outs)
        if rng.integers(2):  # something more with the result
            more = self.let(f"stablehlo.multiply {y}, {self.let(f'stablehlo.tanh {y} : {o}')} : {o}")
            outs[outs.index((y, o))] = (more, o)
        arguments = ", ".join(f"{a}: {tensor(shape, n)}" for a, shape, n in self.arguments)
        types = ", ".join(o for _, o in outs)
        body = "\n".join(self.lines)
        values = ", ".join(x for x, _ in outs)
        return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {values} : {types} }}"

    def dot(self, x: str, xt: str, y: str, yt: str, batching: str, contracting: str, out: str) -> str:
        dims = f"batching_dims = {batching}, contracting_dims = {contracting}"
        return self.let(f"stablehlo.dot_general {x}, {y}, {dims} : ({xt}, {yt}) -> {out}")

    def backward(
        self, p: str, s: tuple[int, int, int, int], depth: int, name: str, outs: list[tuple[str, str]]
    ) -> None:
        """The derivative of the softmax, by rows and by columns."""
        b, h, rows, columns = s
        t, u, g = tensor(s, name), tensor(s[:3], name), tensor((b, h, rows, depth), name)
        back, w = self.argument((b, h, rows, depth), name), self.argument((b, h, columns, depth), name)
        wt, same = tensor((b, h, columns, depth), name), "[0, 1] x [0, 1]"
        d = self.dot(back, g, w, wt, same, "[3] x [3]", t)
        total = self.reduced(self.let(f"stablehlo.multiply {d}, {p} : {t}"), "add", "0.0", t, u, name)
        d = self.let(f"stablehlo.multiply {p}, {self.let(f'stablehlo.subtract {d}, {total} : {t}')} : {t}")
        outs.append((self.dot(d, t, w, wt, same, "[3] x [2]", g), g))
        outs.append((self.dot(d, t, back, g, same, "[2] x [2]", wt), wt))

    def reduced(self, x: str, kind: str, first: str, t: str, u: str, name: str) -> str:
        """Rows of `x` reduced, spread over the rows again."""
        init = self.constant(first, tensor((), name))
        y = self.let(f"stablehlo.reduce({x} init: {init}) applies stablehlo.{kind} across dimensions = [3] "
                     f": ({t}, {tensor((), name)}) -> {u}")  # fmt: skip
        return self.let(spread(y, u, [0, 1, 2], t))
