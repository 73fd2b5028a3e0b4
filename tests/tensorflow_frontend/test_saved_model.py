"""SavedModels: signatures, shapes, and a published model on a generated chord."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import hilo  # noqa: E402
import hilo.tensorflow  # noqa: E402

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))

        @tf.function(input_signature=[tf.TensorSpec([3, 4], name="x")])
        def fixed(self, x):
            return {"y": x @ self.w}

        @tf.function(input_signature=[tf.TensorSpec([None, 2], name="b"), tf.TensorSpec([None, 4], name="a")])
        def open(self, b, a):
            return {"sum": a @ self.w + b, "left": tf.nn.relu(a)}

    model, path = Model(), tmp_path_factory.mktemp("models") / "two"
    tf.saved_model.save(model, str(path), signatures={"serving_default": model.fixed, "open": model.open})
    return path


def test_the_default_signature_is_a_program(folder):
    (y,) = hilo.compile(hilo.load(folder))(X)
    np.testing.assert_allclose(y, X @ np.arange(8).reshape(4, 2), rtol=1e-6)


def test_signatures(folder):
    model = hilo.tensorflow.load(folder)
    assert set(model.signatures) == {"serving_default", "open"}
    f = model.signatures["open"]
    assert repr(f) == "<Signature open(a: ?x4xfloat32, b: ?x2xfloat32) -> (left: ?x4xfloat32, sum: ?x2xfloat32)>"
    for n in (3, 1, 3):
        out = f(b=np.ones((n, 2), np.float32), a=X[:n])
        np.testing.assert_allclose(out["sum"], X[:n] @ np.arange(8).reshape(4, 2) + 1, rtol=1e-5)
        np.testing.assert_array_equal(out["left"], np.maximum(X[:n], 0))
    assert len(f._made) == 2
    assert {p.shape for p in f.module({"a": (5, 4), "b": (5, 2)})["main"].params} == {(5, 4), (5, 2)}


def test_errors(folder, tmp_path):
    f = hilo.tensorflow.load(folder).signatures["open"]
    with pytest.raises(hilo.Error, match=r"leaves sizes of a open \(\?x4xfloat32\)"):
        f.module()
    with pytest.raises(hilo.Error, match=r"input a of signature 'open' is \?x4xfloat32, not of shape \(3, 5\)"):
        f(a=np.zeros((3, 5), np.float32), b=np.zeros((3, 2), np.float32))
    with pytest.raises(hilo.Error, match="takes a, b; b is not given"):
        f(a=X)
    with pytest.raises(hilo.Error, match="has no input c"):
        f.module({"c": (1,)})
    with pytest.raises(hilo.Error, match="is no SavedModel"):
        hilo.tensorflow.load(tmp_path)
    with pytest.raises(hilo.Error, match="has no graph for 'train'"):
        hilo.tensorflow.load(folder, "train")
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(hilo.Error, match="is damaged"):
        hilo.load(tmp_path)


def chord(*frequencies: float, size: int, rate: int) -> np.ndarray:
    t = np.arange(size) / rate
    x = sum(np.sin(2 * np.pi * f * h * t) / h for f in frequencies for h in range(1, 5))
    return (x / np.abs(x).max()).astype(np.float32)


@pytest.mark.skipif(importlib.util.find_spec("basic_pitch") is None,
                    reason="needs a published model: pip install --no-deps basic-pitch")
def test_basic_pitch_names_the_notes_of_a_chord():
    (root,) = importlib.util.find_spec("basic_pitch").submodule_search_locations  # type: ignore[union-attr]
    path = Path(root) / "saved_models" / "icassp_2022" / "nmp"
    f = hilo.tensorflow.load(path).default()
    ((name, value),) = f.inputs.items()
    size = value.shape[1]
    x = chord(261.63, 329.63, 392.00, size=size, rate=22050).reshape(1, size, 1)  # C4, E4, G4
    ours = f(**{name: x})
    notes = np.sort(np.argsort(-ours["note"][0].mean(0))[:3]) + 21  # MIDI numbers: the lowest key of a piano is 21
    assert notes.tolist() == [60, 64, 67]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(path)).signature_def["serving_default"]
        outputs = {k: v.name for k, v in graph.outputs.items()}
        theirs = session.run(outputs, {graph.inputs[name].name: x})
    assert ours.keys() == theirs.keys()
    for k, v in ours.items():
        np.testing.assert_allclose(v, theirs[k], atol=1e-4)
    two = f(**{name: np.concatenate([x, x * 0.5])})
    np.testing.assert_allclose(two["note"][0], ours["note"][0], atol=1e-5)
