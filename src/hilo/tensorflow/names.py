"""What is used of TensorFlow, by the names that it has here. Imports errors; TensorFlow at once.

TensorFlow has no public way to get at a traced function before it is run, so some of these are its own internals: all
of them are in this list.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from hilo.errors import Error

OLDEST: Final = (2, 20)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as e:
        wanted = ".".join(map(str, OLDEST))
        raise Error(f"hilo.tensorflow needs TensorFlow {wanted} or newer ({e}): "
                    "pip install 'hilo-compiler[tensorflow]'") from e  # fmt: skip


tf: Final = _module("tensorflow")
if tuple(int(n) for n in tf.__version__.split(".")[:2]) < OLDEST:
    raise Error(f"hilo.tensorflow is for TensorFlow {'.'.join(map(str, OLDEST))} or newer, not {tf.__version__}")

atomic_function: Final = _module("tensorflow.python.eager.polymorphic_function.atomic_function")
attributes: Final = _module("tensorflow.python.eager.polymorphic_function.attributes")
concrete_function: Final = _module("tensorflow.python.eager.polymorphic_function.concrete_function")
context: Final = _module("tensorflow.python.eager.context")
control_flow_util: Final = _module("tensorflow.python.ops.control_flow_util")
deps: Final = _module("tensorflow.python.framework.auto_control_deps")
eager_function_run: Final = _module("tensorflow.python.eager.polymorphic_function.eager_function_run")
func_graph: Final = _module("tensorflow.python.framework.func_graph")
function_type_utils: Final = _module("tensorflow.python.eager.polymorphic_function.function_type_utils")
gen_script_ops: Final = _module("tensorflow.python.ops.gen_script_ops")
ops: Final = _module("tensorflow.python.framework.ops")
polymorphic: Final = _module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
pywrap: Final = _module("tensorflow.python.pywrap_tfe")
read_only: Final = _module("tensorflow.python.framework.auto_control_deps_utils")
record: Final = _module("tensorflow.python.eager.record")
resource_variable_ops: Final = _module("tensorflow.python.ops.resource_variable_ops")
save_context: Final = _module("tensorflow.python.saved_model.save_context")
script_ops: Final = _module("tensorflow.python.ops.script_ops")
tf_decorator: Final = _module("tensorflow.python.util.tf_decorator")
tracing_compilation: Final = _module("tensorflow.python.eager.polymorphic_function.tracing_compilation")
