"""JAX programs of many kinds, to be dumped as StableHLO and as HLO. Needs jax; `python jax_programs.py DIR` dumps them.

A program is (name, function, argument specs); a spec is "f32[2,3]"-like.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Program(NamedTuple):
    name: str
    function: Callable[..., Any]
    specs: tuple[str, ...]

    def arguments(self) -> list[np.ndarray[Any, Any]]:
        """The same values every time: small numbers, integers from 0 to 3."""
        rng = np.random.default_rng(7)
        made = []
        for spec in self.specs:
            name, dims = spec.rstrip("]").split("[")
            shape = tuple(int(d) for d in dims.split(",") if d)
            if name == "pred":
                made.append(rng.random(shape) > 0.5)
            elif name[0] in "su":
                made.append(rng.integers(0, 4, shape).astype(f"{'u' if name[0] == 'u' else ''}int{name[1:]}"))
            elif name[0] == "c":
                made.append((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64))
            else:
                t = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32}[name]
                made.append(np.asarray(rng.normal(size=shape)).astype(t))
        return made

    def lowered(self) -> Any:
        return jax.jit(self.function).lower(*self.arguments())


PROGRAMS: list[Program] = []


def program(*specs: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Program(f.__name__, f, specs))
        return f

    return add


@program("f32[4,5]", "f32[4,5]")
def elementwise(x: Any, y: Any) -> Any:
    return jnp.exp(x) * jnp.tanh(y) + jnp.sqrt(jnp.abs(x)) / (1 + y * y), jnp.arctan2(x, y), jnp.where(x > y, x, -y)


@program("s32[7]", "u8[5]", "pred[3]")
def integers(x: Any, y: Any, p: Any) -> Any:
    return x * x - 3, x // 2, x % 3, x << 2, x >> 1, ~y, y ^ 3, lax.population_count(y), lax.clz(x), p & ~p, -x


@program("bf16[3,4]", "f16[3,4]")
def narrow(x: Any, y: Any) -> Any:
    bits = lax.bitcast_convert_type(x, jnp.int16)
    return x + 1, y * 2, x.astype(jnp.float32), y.astype(jnp.int32), bits, x.sum(axis=1)


@program("c64[5]", "c64[5]")
def complex_numbers(x: Any, y: Any) -> Any:
    return x * y, jnp.real(x), jnp.conj(y), jnp.abs(x), lax.complex(jnp.real(x), jnp.imag(y)), x + 1j


@program("f32[4,5]", "f32[5,3]", "f32[3]")
def dense(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.relu(x @ w + b)


@program("f32[2,3,4]", "f32[2,5,4]")
def batched(x: Any, y: Any) -> Any:
    return jnp.einsum("bik,bjk->bij", x, y), jnp.einsum("bik,bjk->ij", x, y, precision="highest")


@program("f32[3,4,5]")
def reductions(x: Any) -> Any:
    some = x.max(axis=1), x.prod(axis=(0, 2)), jnp.any(x > 1, axis=0), x.argmax(axis=2)
    return x.sum(), *some, x.mean(), x.std(axis=0)


@program("f32[6,5]")
def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1), jax.nn.logsumexp(x, axis=0), jax.nn.log_softmax(x)


@program("f32[4,8]", "f32[8]", "f32[8]")
def layer_norm(x: Any, g: Any, b: Any) -> Any:
    m = x.mean(axis=-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(axis=-1, keepdims=True) + 1e-5) * g + b


@program("f32[5,3]")
def scanned(x: Any) -> Any:
    return lax.scan(lambda c, t: (c * 0.5 + t, c * t), jnp.zeros(3), x)


@program("f32[]")
def while_loop(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 1.5 + 1), (0, x))


@program("f32[3]", "s32[]")
def fori(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, v: v + i * x, x)


@program("f32[]", "f32[3]")
def conditional(p: Any, x: Any) -> Any:
    return lax.cond(p > 0, lambda a: (a + 1, a.sum()), lambda a: (a - p, a.max()), x)


@program("s32[]", "f32[3]")
def switch(k: Any, x: Any) -> Any:
    return lax.switch(k, [lambda a: a, lambda a: a * 2, lambda a: jnp.sin(a)], x)


@program("f32[6,4]", "s32[3]")
def gathered(x: Any, i: Any) -> Any:
    return x[i], x[i, i], jnp.take(x, i, axis=1, mode="clip"), jnp.take_along_axis(x, i[None, :], axis=1), x[::2, 1:3]


@program("f32[6,4]", "s32[3]", "f32[3,4]")
def scattered(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u), x.at[i, 0].set(1.0), x.at[i].max(u), x.at[1:3].mul(2.0)


@program("f32[5,6]")
def sorting(x: Any) -> Any:
    return jnp.sort(x, axis=0), jnp.argsort(x, axis=1), lax.sort((x, -x), num_keys=1), jnp.median(x)


@program("u32[2]")
def random_bits(key: Any) -> Any:
    k = jax.random.wrap_key_data(key)
    return jax.random.bits(k, (7,)), jax.random.uniform(k, (3, 2)), jax.random.permutation(k, 5)


@program("u32[2]")
def random_normal(key: Any) -> Any:
    return jax.random.normal(jax.random.wrap_key_data(key), (9,))


@program("u32[4]")
def rng_bit_generator(key: Any) -> Any:
    return lax.rng_bit_generator(key, (5,), dtype=jnp.uint32)


@program("f32[2,8]")
def fourier(x: Any) -> Any:
    return jnp.fft.rfft(x), jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.ifft(x + 0j)


@program("f32[4,6]")
def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0), lax.cummax(x, axis=1), lax.cumlogsumexp(x, axis=0)


@program("f32[2,5,4]", "f32[2,5,4]", "f32[2,5,4]")
def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / 2.0
    mask = jnp.tril(jnp.ones((5, 5), bool))
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.where(mask, scores, -1e30)), v)


@program("f32[2,8,8,3]", "f32[3,3,3,4]")
def convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program("f32[2,4,9]", "f32[6,2,3]")
def grouped_convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2,), [(2, 1)], lhs_dilation=(2,), rhs_dilation=(2,), feature_group_count=2)


@program("f32[2,6,6,3]")
def pooling(x: Any) -> Any:
    top = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return top, lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9


@program("f32[1,6,6,2]")
def pooling_gradient(x: Any) -> Any:
    def loss(v: Any) -> Any:
        return (lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()

    return jax.grad(loss)(x)


@program("f32[3,4]")
def shapes(x: Any) -> Any:
    more = jnp.pad(x, ((1, 2), (0, 1))), jnp.concatenate([x, x], 1), jnp.tile(x, 2)
    return x.T, x.reshape(2, 6), jnp.flip(x, 0), *more


@program("f32[3,4]", "f32[]")
def padding(x: Any, v: Any) -> Any:
    return lax.pad(x, v, ((1, 2, 1), (-1, 3, 0))), lax.pad(v, v, ())


@program("f32[8,8]", "s32[]")
def dynamic_slices(x: Any, k: Any) -> Any:
    part = lax.dynamic_slice(x, (k, k + 1), (2, 3))
    return part, lax.dynamic_update_slice(x, part, (k, k)), lax.dynamic_index_in_dim(x, k)


@program("f32[4]")
def special_functions(x: Any) -> Any:
    y = jnp.abs(x) + 1
    return lax.erf(x), lax.log1p(y), lax.expm1(x), lax.cbrt(x), lax.lgamma(y), lax.digamma(y), lax.erf_inv(x / 8)


@program("f32[4]", "f32[4]")
def rounding(x: Any, y: Any) -> Any:
    return jnp.floor(x), jnp.ceil(x), lax.round(x), jnp.rint(x), jnp.sign(x), lax.rem(x, y), lax.nextafter(x, y), x**3


@program("f32[3]")
def trigonometry(x: Any) -> Any:
    y = x / 8
    return jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arcsin(y), jnp.sinh(x), jnp.arctanh(y), jnp.arccosh(2 + x * x)


@program("f32[5]", "f32[5]")
def comparisons(x: Any, y: Any) -> Any:
    return x < y, x == y, x != x, jnp.isnan(x), jnp.isfinite(y), jnp.clip(x, -0.5, 0.5), jnp.maximum(x, y)


@program("f32[3,3]")
def linear_algebra(x: Any) -> Any:
    return lax.linalg.cholesky(x @ x.T + 3 * jnp.eye(3), symmetrize_input=False)


@program("f32[3,3]", "f32[3,2]")
def triangular(a: Any, b: Any) -> Any:
    return lax.linalg.triangular_solve(a + 3 * jnp.eye(3), b, left_side=True, lower=True)


@program("f32[4,5]", "f32[5,3]", "f32[3]", "f32[4,3]")
def training_step(x: Any, w: Any, b: Any, y: Any) -> Any:
    loss, grads = jax.value_and_grad(lambda p: ((jnp.tanh(x @ p[0] + p[1]) - y) ** 2).mean())((w, b))
    return loss, *(p - 0.1 * g for p, g in zip((w, b), grads, strict=True))


@program("f32[4,6]", "s32[4]", "f32[6,8]", "f32[8,3]")
def classifier_step(x: Any, labels: Any, w1: Any, w2: Any) -> Any:
    def loss(p: Any) -> Any:
        logits = jax.nn.gelu(x @ p[0]) @ p[1]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), (labels % 3)[:, None], axis=1).mean()

    value, grads = jax.value_and_grad(loss)((w1, w2))
    return value, jax.tree.map(lambda p, g: p - 0.05 * g, (w1, w2), grads)


@program("f32[5,3]")
def scan_gradient(x: Any) -> Any:
    return jax.grad(lambda v: lax.scan(lambda c, t: (jnp.tanh(c + t), c.sum()), jnp.zeros(3), v)[1].sum())(x)


@program("f32[2,5,3]")
def mapped(x: Any) -> Any:
    return jax.vmap(lambda v: jnp.cumsum(v @ v.T, axis=0)[::2])(x), lax.map(lambda v: v.sum(), x)


@program("f32[3,3]")
def recurrent(x: Any) -> Any:
    def cell(c: Any, t: Any) -> Any:
        h, s = c
        g = jax.nn.sigmoid(h + t)
        return (jnp.tanh(s * g), s + t), h

    return lax.scan(cell, (jnp.ones(3), jnp.zeros(3)), x, reverse=True)


@program("f32[7]")
def top_k(x: Any) -> Any:
    return lax.top_k(x, 3)


@program("f32[20]")
def large_constant(x: Any) -> Any:
    return x * np.linspace(0, 1, 20, dtype=np.float32), x[np.arange(20)[::-1].copy()]


@program()
def no_arguments() -> Any:
    return jnp.arange(6).reshape(2, 3), jnp.zeros((0, 3)), lax.iota(jnp.float32, 4)


@program("f32[0,3]", "f32[2]")
def empty(x: Any, y: Any) -> Any:
    return x.sum(axis=0), jnp.concatenate([x, x]), x @ jnp.ones((3, 0)), y[:0]


@program("f32[4]")
def checkpointed(x: Any) -> Any:
    f = jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))
    return jax.grad(lambda v: f(v).sum())(x), lax.optimization_barrier((x, x + 1))


def stablehlo(lowered: Any) -> str:
    return lowered.as_text()


def before(lowered: Any) -> str:
    """HLO as JAX makes it, with its large constants."""
    return lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)


def after(lowered: Any) -> str:
    """HLO as the CPU's compiler leaves it, with its large constants."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return lowered.compile().runtime_executable().hlo_modules()[0].to_string(options)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for p in PROGRAMS:
        made = p.lowered()
        for kind, text in (("mlir", stablehlo(made)), ("before.hlo", before(made)), ("after.hlo", after(made))):
            (folder / f"{p.name}.{kind}").write_text(text)
