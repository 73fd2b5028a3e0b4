"""Calls of compiled functions from graphs that TensorFlow runs itself: a `tf.function` without `jit_compile`, a data
pipeline, Keras's loop over batches. Imports names.

In such a graph a call is one op that runs the launcher in this process, with the values that the graph has by then.
TensorFlow makes a call ready for gradients when they are asked for, by putting another function, which has more
results, in its place; so the op looks up its function when it runs (`Call.function`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any, Final
from weakref import WeakValueDictionary

from hilo.tensorflow.names import context, func_graph, gen_script_ops, ops, record, script_ops


class Call(script_ops.EagerFunc):
    """What the op in a graph runs. Keeps the traced function alive."""

    def __init__(self, function: Any) -> None:
        super().__init__(None, [], False)
        self.function = function  # an atomic function of ours

    def __call__(self, device: Any, token: Any, args: Sequence[Any]) -> Any:
        with context.eager_mode(), record.stop_recording():
            return self.function.call_flat.run(args)


_calls: Final = WeakValueDictionary[str, Call]()  # by the token of the op


def call(function: Any, args: Sequence[Any]) -> list[Any]:
    """Add a call of an atomic function of ours to the graph that is being built; gives its results."""
    outputs = function.function_type.flat_outputs
    made = Call(function)
    token = script_ops._py_funcs.insert(made)
    _calls[token] = made
    graph = outermost = ops.get_default_graph()
    while isinstance(outermost, func_graph.FuncGraph) and isinstance(outermost.outer_graph, func_graph.FuncGraph):
        outermost = outermost.outer_graph
    outermost._hilo_calls = [*getattr(outermost, "_hilo_calls", ()), made]  # lives as long as the outermost function
    with ops.control_dependencies(function.call_options.control_captures), record.stop_recording():
        results = gen_script_ops.eager_py_func(input=list(args), token=token, Tout=[t.dtype for t in outputs])
    if not outputs:
        return []
    results[0].op._gradient_function = graph._gradient_function_map.get("PartitionedCall")
    for t, r in zip(outputs, results):
        r.set_shape(t.shape)
    return list(results)


class _Op:
    """An op of ours as TensorFlow's rewriting of calls knows it: `f` is the function that it calls."""

    def __init__(self, op: Any, call: Call, forward: Any) -> None:
        self._op = op
        self._call = call
        self._forward = forward

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def _set_func_attr(self, name: str, value: Any) -> None:
        self._call.function = self._forward


def rewriting(original: Any) -> Any:
    """The method that puts the function for gradients in place of a call's, for calls of ours too."""

    @wraps(original)
    def _rewrite_forward_and_call_backward(self: Any, op: Any, *doutputs: Any) -> Any:
        made = _calls.get(op.get_attr("token").decode()) if op.type == "EagerPyFunc" else None
        if made is not None:
            op = _Op(op, made, self.forward_backward(len(doutputs))[0])
        return original(self, op, *doutputs)

    return _rewrite_forward_and_call_backward
