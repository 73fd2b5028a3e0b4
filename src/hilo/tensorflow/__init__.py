"""TensorFlow programs on hilo: what `tf.function(jit_compile=True)` marks is compiled by hilo instead of XLA.

    @hilo.tensorflow.function(jit_compile=True)      one function
    hilo.tensorflow.install()                        all of them, Keras models with jit_compile=True too

Begin reading at functions.py: tracing, signatures, structures and gradients are TensorFlow's own; `launch.py` runs a
traced function, `program.py` gets its StableHLO, `graphs.py` calls it from graphs, `saved_model.py` loads models.
`names.py` lists what is used of TensorFlow. Imports api, formats, runtime and what is below; TensorFlow when something
here is used, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilo.tensorflow.saved_model import SavedModel


def function(func: Callable[..., Any] | None = None, *, jit_compile: bool | None = True, **options: Any) -> Any:
    """`tf.function` whose compiled functions run on hilo; every option of `tf.function` is there.

    Gives what `tf.function` gives: a function, or with no `func` a decorator. With `jit_compile` false or None it is
    `tf.function` itself. What cannot be compiled raises `Error`, which names the op and its source line, when the
    function is called (or its compiler IR is asked for).
    """
    from hilo.tensorflow.functions import function as make

    return make(func, jit_compile=jit_compile, **options)


def install() -> None:
    """Every `tf.function(jit_compile=True)` made from now on runs on hilo, whoever makes it (Keras: `model.compile(
    jit_compile=True)`). A second call does nothing."""
    from hilo.tensorflow.functions import install as do

    do()


def uninstall() -> None:
    """`tf.function` is TensorFlow's own again. Functions made meanwhile stay on hilo."""
    from hilo.tensorflow.functions import uninstall as do

    do()


def load(path: str | PathLike[str], tag: str = "serve") -> SavedModel:
    """The SavedModel in a folder: its `signatures`, which can be called and give programs.

    `hilo.load(path)` gives the same. Raises `Error` for what is no SavedModel.
    """
    from hilo.tensorflow.saved_model import SavedModel

    return SavedModel(path, tag)
