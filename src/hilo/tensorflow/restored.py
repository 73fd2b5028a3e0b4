"""SavedModels whose objects TensorFlow has made again: signatures as traced functions, and the variables they share.
Imports names, launch, program.

The values of variables are kept here, as numpy arrays, from the loading on: TensorFlow's own are not looked at again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.tensorflow.launch import Launcher
from hilo.tensorflow.names import read_only, tf
from hilo.tensorflow.program import Traced

FILE: Final = "saved_model.pb"


@dataclass(eq=False)
class Variable:
    """A variable of the model. `assigned`: some signature changes it."""

    name: str
    value: np.ndarray
    assigned: bool = False


class Variables(Mapping[str, np.ndarray]):
    """The values of variables by name. Setting one checks dtype and shape, and copies."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = {v.name: v for v in variables}

    def __getitem__(self, name: str) -> np.ndarray:
        """A view that cannot be written to."""
        value = self._variables[name].value.view()
        value.flags.writeable = False
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._variables:
            raise Error(f"there is no variable {name!r}; there are {', '.join(self._variables) or 'none'}")
        old, new = self._variables[name].value, np.array(value)
        if (new.dtype, new.shape) != (old.dtype, old.shape):
            raise Error(f"variable {name} is {old.dtype}{list(old.shape)}, not {new.dtype}{list(new.shape)}")
        self._variables[name].value = new

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


class Restored:
    """The signatures of a SavedModel as TensorFlow's concrete functions, with `variables`."""

    def __init__(self, path: str, tags: Sequence[str]) -> None:
        with tf.init_scope():  # whatever graph is being built around
            self._model = _load(path, tags)
            self.functions: Final[dict[str, Any]] = dict(self._model.signatures)
            self._by_handle: Final = self._found()
        self.variables: Final = Variables(list(self._by_handle.values()))

    def _found(self) -> dict[int, Variable]:
        """The variables by their handles' ids."""
        found: dict[int, Variable] = {}
        names: dict[str, int] = {}
        for f in self.functions.values():
            changed = _changed(f)
            named = {id(v.handle): v.name for v in f.variables}
            for handle in f.captured_inputs:
                if handle.dtype != tf.resource or id(handle) not in named:
                    continue
                variable = found.get(id(handle))
                if variable is None:
                    name = named[id(handle)].removesuffix(":0")
                    names[name] = count = names.get(name, 0) + 1
                    value = next(v for v in f.variables if v.handle is handle).numpy()
                    variable = Variable(name if count == 1 else f"{name}_{count - 1}", value)
                    found[id(handle)] = variable
                variable.assigned |= id(handle) in changed
        return found

    def trace(self, name: str, arrays: Mapping[str, np.ndarray]) -> tuple[Traced, list[str | Variable | np.ndarray]]:
        """The program of a signature for these inputs, and what its inputs are: names, variables, constants.

        Raises `Error` for what TensorFlow's bridge cannot compile, with the op.
        """
        f = self.functions[name]
        order = list(f._arg_keywords or ())
        if sorted(order) != sorted(arrays):
            raise Error(f"signature {name!r} takes {order} in its function, not {sorted(arrays)}")
        captured = list(f.captured_inputs)
        inputs: list[str | Variable | np.ndarray] = list(order)
        for c in captured:
            variable = self._by_handle.get(id(c))
            if c.dtype == tf.resource and variable is None:
                raise Error(f"signature {name!r} uses a resource that is no variable (a table, say): "
                            "this cannot be compiled")  # fmt: skip
            with tf.init_scope():
                inputs.append(c.numpy() if variable is None else variable)
        launcher = Launcher(f._inference_function, f.graph, lambda: False)
        with tf.init_scope():
            tensors = [tf.constant(arrays[n]) for n in order]
            return launcher.trace([*tensors, *captured]), inputs


def _changed(f: Any) -> set[int]:
    """The handles that a concrete function writes to."""
    reads = {id(f.graph.inputs[i]) for i in read_only.get_read_only_resource_input_indices_graph(f.graph)}
    own = f.graph.inputs[len(f.graph.inputs) - len(f.captured_inputs) :]
    return {id(c) for t, c in zip(own, f.captured_inputs) if t.dtype == tf.resource and id(t) not in reads}


def _load(path: str, tags: Sequence[str]) -> Any:
    """The model's object. Optimizers of Keras 2, which have slots, are not known to TensorFlow any more: nothing of
    them is needed to call signatures, so that they are left out."""
    try:
        return tf.saved_model.load(path, tags=list(tags))
    except Exception as e:
        failure = e
    try:
        with tempfile.TemporaryDirectory() as folder:
            some = tf.saved_model.LoadOptions(allow_partial_checkpoint=True)  # values of slots are left over
            return tf.saved_model.load(_without_slots(Path(path), Path(folder)), tags=list(tags), options=some)
    except Exception:
        raise Error(f"TensorFlow cannot load {path}: {' '.join(str(failure).split())[:400]}") from failure


def _without_slots(path: Path, folder: Path) -> str:
    """A copy of a SavedModel in `folder`, without the slots of optimizers."""
    proto: Any = import_module("tensorflow.core.protobuf.saved_model_pb2").SavedModel()
    proto.ParseFromString((path / FILE).read_bytes())
    for graph in proto.meta_graphs:
        for node in graph.object_graph_def.nodes:
            del node.slot_variables[:]
    (folder / FILE).write_bytes(proto.SerializeToString())
    for part in ("variables", "assets"):
        if (path / part).is_dir():
            shutil.copytree(path / part, folder / part)
    return str(folder)
