"""Python functions that programs call."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback
from support import X, close, error, like

close(jax.jit(lambda a: jax.pure_callback(np.sin, like(a), a) + 1)(X), np.sin(X) + 1)
one_by_one = jax.vmap(lambda a: jax.pure_callback(np.sin, like(a), a, vmap_method="sequential"))
close(jax.jit(one_by_one)(X), np.sin(X))
double = jax.jit(lambda v: v * 2)


def again(v: Any) -> np.ndarray:
    """Runs programs on the same device, and waits for them."""
    assert isinstance(v, jax.Array)
    return np.asarray(double(v).block_until_ready() + jnp.linalg.norm(v))


close(jax.jit(lambda a: jax.pure_callback(again, like(a), a))(X), 2 * X + np.linalg.norm(X), 1e-4)

# Arrays that a function keeps stay what they were.
kept: list[Any] = []
keep = jax.jit(lambda a: (io_callback(kept.append, None, a * 2), a + 1)[1])
for i in range(3):
    keep(X + i)
jax.effects_barrier()
for i in range(3):
    close(kept[i], 2 * (X + i))

# In order, in and out of loops.
noted: list[Any] = []


@jax.jit
def in_order(a: jax.Array) -> jax.Array:
    io_callback(lambda v: noted.append(("before", float(v))), None, a.sum(), ordered=True)

    def body(total: Any, v: Any) -> tuple[Any, None]:
        io_callback(lambda v: noted.append(float(v)), None, v, ordered=True)
        return total + v, None

    total, _ = lax.scan(body, 0.0, a)
    io_callback(lambda v: noted.append(("after", float(v))), None, total, ordered=True)
    return total


in_order(jnp.arange(3.0))
in_order(jnp.arange(3.0) + 1)
jax.effects_barrier()
assert noted == [("before", 3), 0, 1, 2, ("after", 3), ("before", 6), 1, 2, 3, ("after", 6)], noted

assert int(jax.jit(lambda: io_callback(lambda: np.int32(7), jax.ShapeDtypeStruct((), np.int32)))()) == 7
jax.jit(lambda a: jax.debug.print("printed {a}", a=a.sum()))(X)
jax.jit(lambda a: jax.debug.print("in order {a}", a=a.sum(), ordered=True))(X)
jax.effects_barrier()


def wrong(v: Any) -> Any:
    raise ValueError("this is what is wrong")


said = error(lambda: jax.jit(lambda a: jax.pure_callback(wrong, like(a), a))(X), "ValueError: this is what is wrong")
assert said.startswith("INTERNAL: "), said
assert "in wrong" in said, said
said = error(lambda: jax.jit(lambda a: jax.pure_callback(lambda v: exit(3), like(a), a))(X), "SystemExit: 3")
assert "CpuCallback error calling callback" in said
error(lambda: jax.jit(lambda a: jax.pure_callback(lambda v: X[0], like(a), a))(X), "Incorrect output shape")
error(lambda: jax.jit(lambda a: jax.pure_callback(lambda v: X > 0, like(a), a))(X), "Incorrect output dtype")
close(double(X), 2 * X)


def in_place(context: Any, out: Any, v: Any) -> None:
    np.asarray(out)[...] = np.asarray(v) + 1


close(jax.jit(buffer_callback(in_place, like(X)))(X), X + 1)


def wrong_in_place(context: Any, out: Any, v: Any) -> None:
    raise ValueError("wrong in place")


error(lambda: jax.jit(buffer_callback(wrong_in_place, like(X)))(X), "ValueError: wrong in place")


class Function:
    def __call__(self, v: Any) -> Any:
        return np.asarray(v) + 1


# A function lives as long as the programs that call it.
function = Function()
alive = weakref.ref(function)
compiled = jax.jit(lambda a, f=function: jax.pure_callback(f, like(a), a)).lower(X).compile()
del function
jax.clear_caches()
gc.collect()
close(compiled(X), X + 1)
del compiled
jax.clear_caches()
gc.collect()
assert alive() is None
