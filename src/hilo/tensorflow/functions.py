"""`hilo.tensorflow.function`: TensorFlow's polymorphic functions, whose traced functions are hilo's to run.

A `tf.function` traces the Python function for each signature and calls the traced one, an *atomic function*, with flat
tensors; for gradients it makes further ones. Ours carry a mark among their attributes, which TensorFlow hands from the
function to all that it makes of it. Whatever has the mark gets a `Launcher` in place of the call: that is the only
place where the two part. Imports names, launch, graphs, stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    eager_function_run,
    function_type_utils,
    ops,
    polymorphic,
    record,
    save_context,
    tf_decorator,
    tracing_compilation,
)

# The attribute of traced functions that hilo runs: one that every TensorFlow knows, so that models with such functions
# can be saved and loaded elsewhere, where they are compiled by XLA.
MARK: Final = attributes.API_PREFERRED_DEVICE
HILO: Final = "hilo"

Key = tuple[tuple[int, tuple[int, ...]], ...]

_state: Final = local()
_installed = False
_taken = False  # whether TensorFlow hands over traced functions


class Function(polymorphic.Function):
    """A `tf.function` with `jit_compile=True` whose compiled code is hilo's.

    Most calls are with tensors alone, outside of graphs and tapes. TensorFlow's way from such a call to the traced
    function takes longer than many a step, so that what it leads to is remembered by dtypes and shapes.
    """

    autograph_info__: Final = {}  # AutoGraph calls it as it is

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._attributes = {**self._attributes, MARK: HILO}
        self._shortcuts: dict[Key, Shortcut | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_shortcuts": {}}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not context.executing_eagerly():
            return self._call_in_graph(args, kwargs)
        key = None if kwargs else key_of(args)
        if key is None or record.could_possibly_record() or not _is_plain():
            return super().__call__(*args, **kwargs)
        shortcut = self._shortcuts.get(key)
        if shortcut is not None and shortcut.holds():
            return shortcut(args)
        result = super().__call__(*args)
        if key in self._shortcuts:  # the second such call
            self._shortcuts[key] = self._shortcut(args)
        else:
            self._shortcuts[key] = None
        return result

    def _shortcut(self, args: Sequence[Any]) -> Shortcut | None:
        made = self._no_variable_creation_config if self._created_variables else self._variable_creation_config
        if made is None:
            return None
        given = function_type_utils.canonicalize_function_inputs(args, {}, self._function_type, self._default_values)
        concrete = tracing_compilation.trace_function(given.args, given.kwargs, made)
        bound = concrete.function_type.bind(*given.args, **given.kwargs)
        inputs = concrete.function_type.unpack_inputs(bound)
        fixed = len(inputs) == len(args) and all(a is b for a, b in zip(inputs, args))
        if not fixed or any(callable(c) or not isinstance(c, ops.EagerTensor) for c in concrete._captured_inputs):
            return None
        return Shortcut(concrete)

    def _call_in_graph(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
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


class Shortcut:
    """The call of a concrete function with its flat inputs: `shortcut(args)`, as long as it `holds`."""

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete
        self._captured = concrete._captured_inputs
        self._inputs = tuple(self._captured)
        self._run = concrete._inference_function.call_flat.run
        self._pack = concrete.function_type.pack_output

    def holds(self) -> bool:
        """False once other things have been captured (a restored model)."""
        return self._concrete._captured_inputs is self._captured

    def __call__(self, args: tuple[Any, ...]) -> Any:
        with record.stop_recording():
            return self._pack(self._run((*args, *self._inputs)))


def key_of(args: Sequence[Any]) -> Key | None:
    """Dtypes and shapes of eager tensors; None if there is anything else."""
    key = []
    for a in args:
        if type(a) is not ops.EagerTensor:
            return None
        key.append((a._datatype_enum(), a._shape_tuple()))
    return tuple(key)


def _is_plain() -> bool:
    """Whether nothing around the call has a part in which function is traced."""
    return not (eager_function_run.RUN_FUNCTIONS_EAGERLY or ops.get_default_graph()._distribution_strategy_stack)


def inside_compiled() -> bool:
    """Whether the graph that is being built is compiled as a whole, or saved, so that a call in it is TensorFlow's."""
    if save_context.in_save_context():
        return True
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


def _is_marked(attrs: Mapping[str, Any] | None) -> bool:
    mark = (attrs or {}).get(MARK)
    return mark is not None and getattr(mark, "s", mark) in (HILO, HILO.encode())


def _take_marked() -> None:
    """Make TensorFlow hand over traced functions that have the mark."""
    global _taken
    if _taken:
        return
    _taken = True
    original = atomic_function.from_func_graph

    @wraps(original)
    def from_func_graph(name: Any, graph: Any, attrs: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(name, graph, attrs, *args, **kwargs)
        if _is_marked(attrs):
            made.call_flat = Launcher(made, graph, inside_compiled)
        return made

    atomic_function.from_func_graph = from_func_graph
    rewriter = concrete_function._DelayedRewriteGradientFunctions
    rewriter._rewrite_forward_and_call_backward = graphs.rewriting(rewriter._rewrite_forward_and_call_backward)
