"""hilo and its peers, each as `build(case, threads) -> prepare`, `prepare(arrays) -> (call, read)`: `call()` runs
once and waits, `read()` gives the last results as numpy arrays. A peer is imported only when it is asked for.

hilo, xla, iree, torch and inductor take weights as arguments; hilo-bound, onnxruntime and openvino hold them as
constants, and exist for modules that have weights (`Case.data`); the latter two also for those that have none."""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.modules import Case

Run = tuple[Callable[[], Any], Callable[[], list[np.ndarray]]]
Prepare = Callable[[list[np.ndarray]], Run]


class Unsuitable(Exception):
    """The peer cannot express the module, or would only repeat another column."""


def hilo(case: Case, threads: int) -> Prepare:
    import hilo as compiler

    f = compiler.compile(case.text, threads=threads)

    def prepare(arrays: list[np.ndarray]) -> Run:
        return _caller(f, arrays)

    return prepare


def hilo_bound(case: Case, threads: int) -> Prepare:
    """hilo with the weights bound when it compiles, as inference libraries have them."""
    import hilo as compiler

    if case.data == len(case.args):
        raise Unsuitable("no weights")

    def prepare(arrays: list[np.ndarray]) -> Run:
        weights = dict(enumerate(arrays[case.data :], case.data))
        return _caller(compiler.compile(case.text, threads=threads, constants=weights), arrays[: case.data])

    return prepare


def _caller(f: Callable[..., Any], arrays: list[np.ndarray]) -> Run:
    box: list[Any] = [None]

    def call() -> None:
        box[0] = f(*arrays)

    return call, lambda: box[0]


def xla(case: Case, threads: int) -> Prepare:
    """XLA CPU through jaxlib. Its threads come from the process's affinity."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(ir.Module.parse(case.text))
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    executable = device.client.compile_and_load(code, xla_client.DeviceList((device,)), options)

    def prepare(arrays: list[np.ndarray]) -> Run:
        buffers = [jax.device_put(a, device) for a in arrays]
        box: list[Any] = [None]

        def call() -> None:
            box[0] = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            for r in box[0]:
                r[0].block_until_ready()

        return call, lambda: [np.asarray(r[0]) for r in box[0]]

    return prepare


def iree(case: Case, threads: int) -> Prepare:
    """IREE's llvm-cpu backend with the local-task driver; its compiled modules are kept."""
    import iree.runtime as rt

    from benchmarks.kept import IREE_FLAGS, Kept

    def build() -> bytes:
        from iree.compiler import tools

        return tools.compile_str(case.text, target_backends=["llvm-cpu"], input_type="stablehlo",
                                 extra_args=IREE_FLAGS)  # fmt: skip

    blob = Kept("iree", threads).module(case.text, build)
    config = rt.Config("local-task" if threads > 1 else "local-sync")
    vm = rt.VmModule.copy_buffer(config.vm_instance, blob)
    context = rt.SystemContext(config=config)
    context.add_vm_module(vm)
    function = context.modules[vm.name]["main"]

    def prepare(arrays: list[np.ndarray]) -> Run:
        buffers = [rt.asdevicearray(config.device, a) for a in arrays]
        box: list[Any] = [None]

        def call() -> None:
            out = function(*buffers)
            box[0] = list(out) if isinstance(out, (tuple, list)) else [out]

        return call, lambda: [np.asarray(r.to_host()) for r in box[0]]

    return prepare


def torch(case: Case, threads: int) -> Prepare:
    """PyTorch, eager."""
    from benchmarks.torch_peers import eager

    return eager(case, threads)


def inductor(case: Case, threads: int) -> Prepare:
    """PyTorch, compiled by inductor to C++, which inductor keeps in a folder of ours."""
    from benchmarks.kept import inductor_folder

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = inductor_folder(threads)
    from benchmarks.torch_peers import compiled

    return compiled(case, threads)


def onnxruntime(case: Case, threads: int) -> Prepare:
    from benchmarks.torch_peers import onnx_runtime

    return onnx_runtime(case, threads)


def openvino(case: Case, threads: int) -> Prepare:
    from benchmarks.torch_peers import open_vino

    return open_vino(case, threads)


def limit(case: Case, threads: int) -> Prepare:
    """Not a peer: what the machine needs at the least, for the multiply-adds or for the bytes, whichever is more."""
    from hilo.runtime.limits import measure, moving, multiplying

    limits = measure(threads, megabytes=64, rounds=3)
    read, written = case.moved()
    by_memory = limits.best_ms(0, read, written)
    if limits.best_ms(case.flops, 0, 0) > by_memory:
        work = multiplying(case.flops, threads)
    else:
        work = moving(int(read), int(written), threads)
    times = max(1, int(1 / max(limits.best_ms(case.flops, read, written), 1e-4)))  # threads start together: 1 ms

    def prepare(arrays: list[np.ndarray]) -> Run:
        def call() -> None:
            work(times)

        call.calls = times  # pyright: ignore[reportFunctionMemberAccess]
        return call, list

    return prepare


PEERS: dict[str, Callable[[Case, int], Prepare]] = {
    "hilo": hilo, "hilo-bound": hilo_bound, "xla": xla, "iree": iree, "torch": torch, "inductor": inductor,
    "onnxruntime": onnxruntime, "openvino": openvino, "limit": limit,
}  # fmt: skip
