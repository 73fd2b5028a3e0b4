"""`experimental_get_compiler_ir` of functions on hilo: every stage; TensorFlow's and Graphviz's own tools read them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import hilo  # noqa: E402
import hilo.tensorflow  # noqa: E402

X, Y = tf.ones([8, 16]), tf.ones([16, 4])


@pytest.fixture(scope="module")
def ir():
    v = tf.Variable(tf.ones([4]))

    @hilo.tensorflow.function
    def f(x, y, flag):
        v.assign_add(tf.reduce_sum(x @ y, 0))
        return tf.nn.relu(x @ y + v) if flag else x

    return f.experimental_get_compiler_ir(X, Y, flag=True)


@pytest.mark.parametrize(("stage", "has"), {
    "hlo": "HloModule", "hlo_no_metadata": "HloModule", "stablehlo": "stablehlo.dot",
    "optimized_hlo": "fusion(", "optimized_hlo_dot": "digraph", "optimized": "hilo.fusion", "llvm": "define",
    "asm": "ret", "memory": "arguments", "memory.svg": "<svg",
}.items())  # fmt: skip
def test_texts(ir, stage, has):
    text = ir(stage=stage)
    assert isinstance(text, str)
    assert has in text


def test_messages(ir):
    hlo_pb2 = pytest.importorskip("tensorflow.compiler.xla.service.hlo_pb2")
    for stage in ("hlo_serialized", "optimized_hlo_serialized"):
        module = hlo_pb2.HloModuleProto.FromString(ir(stage=stage))
        assert len(module.host_program_shape.parameters) == 3
        kinds = {i.opcode for c in module.computations for i in c.instructions}
        assert ("fusion" in kinds) == (stage == "optimized_hlo_serialized")


def test_what_is_shown_is_what_runs(ir):
    import numpy as np

    for stage in ("hlo_serialized", "stablehlo", "optimized_hlo_serialized", "optimized_hlo"):
        y, v = hilo.compile(hilo.parse(ir(stage=stage)))(X.numpy(), Y.numpy(), np.ones(4, np.float32))
        assert (y[0, 0], v[0]) == (16 + 129, 129)


def test_specifications_in_place_of_tensors():
    f = hilo.tensorflow.function(lambda x: x * 2)
    ir = f.experimental_get_compiler_ir(tf.TensorSpec([3]))
    assert "f32[3]" in ir(stage="optimized_hlo")
    with pytest.raises(hilo.Error, match="of known shapes"):
        f.experimental_get_compiler_ir(tf.TensorSpec([None]))


def test_a_stage_that_there_is_not(ir):
    with pytest.raises(hilo.Error, match="there is no stage 'nothing'; there are stablehlo, hlo"):
        ir(stage="nothing")


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_the_graph(ir):
    graph = ir(stage="optimized_hlo_dot").encode()
    done = subprocess.run(["dot", "-Tsvg"], input=graph, capture_output=True, check=True)
    assert b"<svg" in done.stdout
