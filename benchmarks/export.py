"""`python -m benchmarks export`: write benchmarks/modules from JAX, odd shapes on purpose: shared ones are round."""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = Path(__file__).parent / "modules"
Arg = tuple[tuple[int, ...], str] | tuple[tuple[int, ...], str, str]  # shape, dtype, and what it is filled with
#: Arguments that calls give up: results take their memory.
DONATED = {"online_step_4x513": tuple(range(8))}

#: Floating-point operations of the products in one call; where there are none, memory is the limit.
FLOPS = {
    "matmul_37x511x129": 2 * 37 * 511 * 129,
    "matmul_1000x1000_nt": 2 * 1000**3,
    "transformer_block_77x384": 2 * 77 * 384 * (1152 + 384 + 2 * 1536) + 4 * 77 * 77 * 384,
    "kmeans_4001x17": 10 * 4 * 4001 * 17 * 31,
}


def programs() -> dict[str, tuple[Callable[..., Any], list[Arg]]]:
    """Name -> (function, its arguments)."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    f32, i32 = "float32", "int32"

    def block(x: Any, wq: Any, wo: Any, w1: Any, w2: Any) -> Any:
        """A transformer block: attention with 6 heads, then a feed-forward layer; pre-norm."""

        def norm(v: Any) -> Any:
            v = v - v.mean(-1, keepdims=True)
            return v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-5)

        q, k, v = jnp.split(norm(x) @ wq, 3, axis=-1)
        q, k, v = (t.reshape(t.shape[0], 6, -1).transpose(1, 0, 2) for t in (q, k, v))
        scores = jax.nn.softmax(q @ k.transpose(0, 2, 1) / 8.0, axis=-1)
        x = x + (scores @ v).transpose(1, 0, 2).reshape(x.shape) @ wo
        return x + jax.nn.gelu(norm(x) @ w1) @ w2

    def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    def kmeans(x: Any, c: Any) -> Any:
        """Ten rounds of Lloyd's algorithm."""

        def step(_: Any, c: Any) -> Any:
            d = (x * x).sum(1, keepdims=True) - 2 * x @ c.T + (c * c).sum(1)
            near = jax.nn.one_hot(jnp.argmin(d, 1), c.shape[0], dtype=x.dtype)
            return (near.T @ x) / jnp.maximum(near.sum(0)[:, None], 1)

        return lax.fori_loop(0, 10, step, c)

    def online_step(wi: Any, wo: Any, mi: Any, mo: Any, vi: Any, vo: Any, keys: Any, values: Any, x: Any, target: Any,
                    at: Any) -> Any:  # fmt: skip
        """One token of four sequences goes through attention with a cache, which it is added to, then an Adam step."""

        def loss(weights: Any) -> Any:
            wi, wo = weights
            q, k, v = (t.reshape(4, 8, 1, 64) for t in jnp.split(x @ wi, 3, axis=-1))
            seen = lax.dynamic_update_slice(keys, k, (0, 0, at, 0)), lax.dynamic_update_slice(values, v, (0, 0, at, 0))
            mask = jnp.arange(keys.shape[2]) <= at
            scores = jnp.where(mask, jnp.einsum("bhqd,bhkd->bhqk", q, seen[0]) / 8.0, -1e30)
            y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), seen[1]).reshape(4, 512) @ wo
            return ((y - target) ** 2).mean(), seen

        (error, seen), gradients = jax.value_and_grad(loss, has_aux=True)((wi, wo))
        ws, ms, vs = zip(*(adam(*t) for t in zip((wi, wo), gradients, (mi, mo), (vi, vo), strict=True)), strict=True)
        return *ws, *ms, *vs, *seen, error

    weights: list[Arg] = [((512, 1536), f32), ((512, 512), f32)]
    return {
        "online_step_4x513": (
            online_step,
            [*weights, *weights, *((s, t, "abs") for s, t, *_ in weights), *[((4, 8, 513, 64), f32)] * 2,
             ((4, 512), f32), ((4, 512), f32), ((), i32)],
        ),
        "softmax_1003x777": (lambda x: jax.nn.softmax(x, axis=-1), [((1003, 777), f32)]),
        "softmax_axis0_777x1003": (lambda x: jax.nn.softmax(x, axis=0), [((777, 1003), f32)]),
        "layernorm_grad_511x769": (
            jax.grad(lambda x, g: (jax.nn.standardize(x, axis=-1) * g).sum(), argnums=(0, 1)),
            [((511, 769), f32), ((769,), f32)],
        ),
        "column_sum_30011x67": (lambda x: x.sum(0), [((30011, 67), f32)]),
        "middle_sum_61x1021x33": (lambda x: x.sum(1), [((61, 1021, 33), f32)]),
        "argmax_999x1001": (lambda x: jnp.argmax(x, -1), [((999, 1001), f32)]),
        "gelu_bias_1023x3073": (
            lambda x, b: jax.nn.gelu(x + b, approximate=False),
            [((1023, 3073), f32), ((3073,), f32)],
        ),
        "adam_1000003": (adam, [((1000003,), f32)] * 4),
        "matmul_37x511x129": (lambda a, b: a @ b, [((37, 511), f32), ((511, 129), f32)]),
        "matmul_1000x1000_nt": (lambda a, b: a @ b.T, [((1000, 1000), f32)] * 2),
        "transpose_0213_32x65x33x64": (lambda x: x.transpose(0, 2, 1, 3), [((32, 65, 33, 64), f32)]),
        "take_rows_20011": (lambda t, i: t[i] * 2, [((5003, 129), f32), ((20011,), i32)]),
        "transformer_block_77x384": (
            block,
            [((77, 384), f32), ((384, 1152), f32), ((384, 384), f32), ((384, 1536), f32), ((1536, 384), f32)],
        ),
        "kmeans_4001x17": (kmeans, [((4001, 17), f32), ((31, 17), f32)]),
    }


def export() -> None:
    """Lower every program and write its text and its line of the manifest."""
    import jax
    import jax.numpy as jnp

    MODULES.mkdir(exist_ok=True)
    manifest = []
    for name, (function, args) in programs().items():
        specs = [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for shape, dtype, *_ in args]
        text = jax.jit(function, donate_argnums=DONATED.get(name, ())).lower(*specs).as_text()
        (MODULES / f"{name}.mlir").write_text(text)
        entries = [
            {"shape": list(shape), "dtype": dtype, "kind": kind[0] if kind else "int" if dtype == "int32" else "normal",
             "scale": 1.0 if len(shape) < 2 or not i else shape[0] ** -0.5, "hi": 5003 if dtype == "int32" else None}
            for i, (shape, dtype, *kind) in enumerate(args)
        ]  # fmt: skip
        flops = FLOPS.get(name, 0)
        manifest.append({"name": name, "file": f"{name}.mlir", "args": entries, "flops": flops, "bytes": 0})
    (MODULES / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
