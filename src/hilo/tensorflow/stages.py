"""What `experimental_get_compiler_ir` gives for functions on hilo. Imports names, program, api, stages.

The unoptimized program is TensorFlow's, as TensorFlow writes it; all that follows is hilo's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hilo.errors import Error
from hilo.tensorflow.names import context, function_type_utils, tf
from hilo.tensorflow.program import compiler_ir

THEIRS: Final = ("hlo", "hlo_no_metadata", "hlo_serialized", "stablehlo", "stablehlo_serialized")


def generator(concrete: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., str | bytes]:
    """`(stage="hlo")` -> that stage of the program that a concrete function of ours is for these arguments, which are
    tensors and Python values, or all of them `tf.TensorSpec`s."""
    context.ensure_initialized()
    given = [*args, *kwargs.values()]
    if given and all(isinstance(a, tf.TensorSpec) for a in given):
        inputs = list(tf.nest.flatten(concrete.structured_input_signature))
        unknown = [s for s in inputs if not s.shape.is_fully_defined()]
        if unknown:
            raise Error(f"a program is of known shapes, {unknown[0]} is not")
    else:
        bound = function_type_utils.canonicalize_function_inputs(args, kwargs, concrete.function_type)
        inputs = list(concrete.function_type.unpack_inputs(bound))

    def compiler_ir_generator(stage: str = "hlo", device_name: str | None = None,
                              platform_name: str | None = None) -> str | bytes:  # fmt: skip
        """`stage` is one of TensorFlow's, or of `hilo.stages.STAGES`. hilo is one device, however it is called."""
        name = concrete._inference_function.name
        shown = compiler_ir(name, inputs, stage if stage in THEIRS else "stablehlo", concrete.captured_inputs)
        if stage in THEIRS:
            return shown if stage.endswith("_serialized") else shown.decode()
        from hilo.api import inspect

        return inspect(shown.decode(), stage)

    return compiler_ir_generator
