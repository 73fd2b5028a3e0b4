"""`hilo.tensorflow.function`: TensorFlow's polymorphic functions, whose traced functions are hilo's to run.

A `tf.function` traces the Python function for each signature and calls the traced one, an *atomic function*, with flat
tensors; for gradients it makes further ones. Ours carry a mark among their attributes, which TensorFlow hands from the
function to all that it makes of it. Whatever has the mark gets a `Launcher` in place of the call: that is the only
place where the two part. Imports names, launch, graphs, stages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Any, Final

from hilo.tensorflow import graphs
from hilo.tensorflow.launch import Launcher
from hilo.tensorflow.names import (
    atomic_function,
    attributes,
    concrete_function,
    context,
    control_flow_util,
    ops,
    polymorphic,
    tf_decorator,
)

MARK: Final = "_hilo"  # attribute of traced functions that hilo runs

_state: Final = local()
_installed = False


class Function(polymorphic.Function):
    """A `tf.function` with `jit_compile=True` whose compiled code is hilo's."""

    autograph_info__: Final = {}  # AutoGraph calls it as it is

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._attributes = {**self._attributes, MARK: True}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if context.executing_eagerly():
            return super().__call__(*args, **kwargs)
        before = getattr(_state, "inside", None)
        _state.inside = bool(control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()))
        try:
            return super().__call__(*args, **kwargs)
        finally:
            _state.inside = before

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str | bytes]:
        """A function `(stage="hlo")` that gives the program of these arguments: TensorFlow's stages, with hilo's own
        optimized program in place of XLA's, and hilo's (`stages.STAGES`)."""
        from hilo.tensorflow.stages import generator

        return generator(self.get_concrete_function(*args, **kwargs), args, kwargs)


def inside_compiled() -> bool:
    """Whether the graph that is being built is compiled as a whole, so that a call in it is a part of that."""
    inside = getattr(_state, "inside", None)
    return control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()) if inside is None else inside


def function(func: Callable[..., Any] | None = None, *, jit_compile: bool | None = True, **options: Any) -> Any:
    """See `hilo.tensorflow.function`."""
    deprecated = options.pop("experimental_compile", None)
    if not (jit_compile if deprecated is None else deprecated):
        return polymorphic.function(func, jit_compile=jit_compile, **options)
    _take_marked()
    if options.pop("experimental_relax_shapes", None):
        options["reduce_retracing"] = True
    options.pop("experimental_follow_type_hints", None)

    def decorated(inner: Callable[..., Any]) -> Any:
        name = getattr(inner, "__name__", "function")
        made = Function(inner, name, jit_compile=True, **options)
        return tf_decorator.make_decorator(inner, decorator_name="tf.function", decorator_func=made)

    return decorated if func is None else decorated(func)


def install() -> None:
    """See `hilo.tensorflow.install`. All ways to a `tf.function` make an object of the same class."""
    global _installed
    _take_marked()
    _installed = True
    if "__new__" not in vars(polymorphic.Function):  # stays: Python does not forget a class's `__new__`
        polymorphic.Function.__new__ = staticmethod(_new)


def uninstall() -> None:
    """See `hilo.tensorflow.uninstall`."""
    global _installed
    _installed = False


def _new(cls: type, *args: Any, jit_compile: bool | None = None, **kwargs: Any) -> Any:
    return object.__new__(Function if _installed and jit_compile and cls is polymorphic.Function else cls)


def _take_marked() -> None:
    """Make TensorFlow know the mark, and hand over traced functions that have it."""
    if MARK in attributes.TRACING_COMPILATION_ALLOWLIST:
        return
    for name in ("POLYMORPHIC", "TRACING_COMPILATION", "MONOMORPHIC"):
        full = f"{name}_FUNCTION_ALLOWLIST" if name != "TRACING_COMPILATION" else f"{name}_ALLOWLIST"
        setattr(attributes, full, getattr(attributes, full) | {MARK})
    original = atomic_function.from_func_graph

    @wraps(original)
    def from_func_graph(name: Any, graph: Any, attrs: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(name, graph, attrs, *args, **kwargs)
        if attrs and MARK in attrs:
            made.call_flat = Launcher(made, graph, inside_compiled)
        return made

    atomic_function.from_func_graph = from_func_graph
    rewriter = concrete_function._DelayedRewriteGradientFunctions
    rewriter._rewrite_forward_and_call_backward = graphs.rewriting(rewriter._rewrite_forward_and_call_backward)
