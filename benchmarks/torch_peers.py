"""PyTorch eager and inductor, and by way of an exported ONNX model ONNX Runtime and OpenVINO. Imports torch.

The programs are those of torch_programs.py; their results are compared with hilo's like every peer's.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.modules import Case
from benchmarks.peers import Prepare, Run, Unsuitable
from benchmarks.torch_programs import PROGRAMS, arrays, tensors

TRAINING = ("mnist", "mlp_step", "transformer_train", "resnet18_train", "layernorm_grad")


def eager(case: Case, threads: int) -> Prepare:
    return _in_torch(case, threads, lambda f: f)


def compiled(case: Case, threads: int) -> Prepare:
    if case.name.startswith("while"):
        raise Unsuitable("a loop that Python runs")
    torch.compiler.reset()  # rows share functions, of which a process compiles eight forms and runs the others eagerly
    prepare = _in_torch(case, threads, lambda f: torch.compile(f, dynamic=False))

    def compile_first(inputs: list[np.ndarray]) -> Run:
        call, read = prepare(inputs)
        call()
        return call, read

    return compile_first


def _in_torch(case: Case, threads: int, make: Callable[[Any], Any]) -> Prepare:
    function = _program(case)
    torch.set_num_threads(threads)
    f = make(function)
    training = case.name.startswith(TRAINING)

    def prepare(inputs: list[np.ndarray]) -> Run:
        args, box = tensors(case.name, inputs), [None]

        def call() -> None:
            with torch.set_grad_enabled(training):
                box[0] = f(*args)

        return call, lambda: arrays(case.name, box[0])

    return prepare


def _program(case: Case) -> Callable[..., Any]:
    if case.name not in PROGRAMS:
        raise Unsuitable("no natural form in PyTorch")
    return PROGRAMS[case.name]


class _Model(torch.nn.Module):
    """A program with its weights held as constants."""

    def __init__(self, function: Callable[..., Any], weights: list[Any]) -> None:
        super().__init__()
        self.function, self.count = function, len(weights)
        for i, w in enumerate(weights):
            self.register_buffer(f"w{i}", w)

    def forward(self, *data: Any) -> Any:
        found = self.function(*data, *(getattr(self, f"w{i}") for i in range(self.count)))
        return tuple(found) if isinstance(found, list) else found


def _export(case: Case, inputs: list[np.ndarray]) -> tuple[bytes, dict[str, np.ndarray]]:
    """The model in ONNX, and its inputs by name."""
    if case.name.startswith((*TRAINING, "while")):
        raise Unsuitable("training or a loop that Python runs")
    args = tensors(case.name, inputs)
    data, weights = args[: case.data], args[case.data :]
    names, buffer = [f"x{i}" for i in range(len(data))], io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(_Model(_program(case), weights).eval(), tuple(data), buffer, input_names=names,
                          opset_version=18, dynamo=False)  # fmt: skip
    return buffer.getvalue(), {n: np.array(d.numpy(), order="C") for n, d in zip(names, data, strict=True)}


def _results(case: Case, found: list[np.ndarray]) -> list[np.ndarray]:
    return arrays(case.name, [torch.from_numpy(np.array(r)) for r in found])


def onnx_runtime(case: Case, threads: int) -> Prepare:
    import onnxruntime as ort

    def prepare(inputs: list[np.ndarray]) -> Run:
        model, feeds = _export(case, inputs)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        box: list[Any] = [None]

        def call() -> None:
            box[0] = session.run(None, feeds)

        return call, lambda: _results(case, box[0])

    return prepare


def open_vino(case: Case, threads: int) -> Prepare:
    """In f32 throughout: its default takes bf16 where the machine has it."""
    import openvino as ov

    def prepare(inputs: list[np.ndarray]) -> Run:
        model, feeds = _export(case, inputs)
        core = ov.Core()
        config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        request = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", config).create_infer_request()
        box: list[Any] = [None]

        def call() -> None:
            box[0] = request.infer(feeds, share_inputs=True, share_outputs=True)

        return call, lambda: _results(case, list(box[0].values()))

    return prepare
