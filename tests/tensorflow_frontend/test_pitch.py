"""A published model (basic-pitch) names the notes of generated chords, and gives TensorFlow's own numbers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")
if importlib.util.find_spec("basic_pitch") is None:
    pytest.skip("needs a published model: pip install --no-deps basic-pitch", allow_module_level=True)

import hilo  # noqa: E402

sys.path.append(str(Path(__file__).parents[2] / "examples" / "tensorflow"))
import pitch  # noqa: E402  # pyright: ignore[reportMissingImports]


@pytest.fixture(scope="module")
def model():
    return hilo.load(pitch.model_folder())


@pytest.fixture(scope="module")
def compiled(model):
    return model.compile()


@pytest.fixture(scope="module")
def theirs():
    """The model by TensorFlow: it cannot load the objects (an optimizer of Keras 2), but the graph."""
    with tf.Graph().as_default():
        session = tf.compat.v1.Session()
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(pitch.model_folder()))
    d = graph.signature_def["serving_default"]
    yield lambda x: session.run({k: v.name for k, v in d.outputs.items()}, {d.inputs["input_2"].name: x})
    session.close()


@pytest.mark.parametrize("names", ["C4 E4 G4", "A3", "G3 B3 D4 F4"])
@pytest.mark.parametrize("seconds", [2, 4.5])
def test_names_of_chords(compiled, theirs, names, seconds):
    x = pitch.windows(pitch.chord([pitch.number(n) for n in names.split()], seconds))
    ours, wanted = compiled(input_2=x), theirs(x)
    assert list(ours) == sorted(wanted)
    for k, v in ours.items():
        assert v.shape == wanted[k].shape
        np.testing.assert_allclose(v, wanted[k], rtol=0, atol=1e-4)
    assert [pitch.name(n) for n in pitch.sounding(ours["note"])] == names.split()
    assert len(compiled.executables) == 1  # for 2 and for 3 windows


def test_the_same_with_known_sizes_and_with_variables_as_arguments(model, compiled):
    x = pitch.windows(pitch.chord([60, 64, 67], 1))
    wanted = compiled(input_2=x)
    for f in (model.compile(shapes={"input_2": x.shape}), model.compile(constants=False)):
        for k, v in f(input_2=x).items():
            np.testing.assert_allclose(v, wanted[k], rtol=0, atol=1e-5)
    assert len(model.variables) == 24
