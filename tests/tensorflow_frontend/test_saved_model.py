"""SavedModels: signatures, sizes left open, variables, state, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import keras  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from tensorflow.core.protobuf import saved_model_pb2  # noqa: E402

import hilo  # noqa: E402
import hilo.tensorflow  # noqa: E402
from hilo.cli import main  # noqa: E402

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
W = np.arange(8, dtype=np.float32).reshape(4, 2)


def spec(*shape, dtype=tf.float32, name):
    return tf.TensorSpec(shape, dtype, name=name)


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(W, name="w")

    @tf.function(input_signature=[spec(3, 4, name="x")])
    def fixed(self, x):
        return {"y": x @ self.w}

    @tf.function(input_signature=[spec(None, 2, name="b"), spec(None, 4, name="a")])
    def open(self, b, a):
        return {"sum": a @ self.w + b, "left": tf.nn.relu(a)}

    @tf.function(input_signature=[spec(None, dtype=tf.bool, name="p"), spec(None, dtype=tf.int32, name="i")])
    def kinds(self, p, i):
        return tf.where(p, tf.cast(i, tf.int64), 7), [tf.logical_not(p), (tf.reduce_sum(i),)][0]

    @tf.function(input_signature=[tf.TensorSpec(None, name="a")])
    def unranked(self, a):
        return {"y": a * 2}

    @tf.function(input_signature=[spec(None, name="a")])
    def unique(self, a):
        return {"y": tf.unique(a)[0]}

    @tf.function(input_signature=[spec(None, 6, name="a"), spec(2, dtype=tf.int32, name="shape")])
    def valued(self, a, shape):
        return {"y": tf.reshape(a, shape)}

    @tf.function(input_signature=[spec(None, dtype=tf.string, name="s")])
    def strings(self, s):
        return {"n": tf.strings.length(s)}

    @tf.function(input_signature=[spec(2, name="a")])
    def printed(self, a):
        return {"y": tf.numpy_function(np.sin, [a], tf.float32)}

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32, 1)])
    def ragged(self, r):
        return {"y": tf.reduce_sum(r, axis=1)}


class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.n = tf.Variable(0, name="n")
        self.scale = tf.Variable([2.0, 3.0], name="scale")

    @tf.function(input_signature=[spec(None, 2, name="x")])
    def step(self, x):
        self.n.assign_add(1)
        return {"y": x * self.scale * tf.cast(self.n, tf.float32)}

    @tf.function(input_signature=[])
    def count(self):
        return {"n": self.n + 0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    model, counter, path = Model(), Counter(), tmp_path_factory.mktemp("models")
    names = ("open", "kinds", "unranked", "unique", "valued", "strings", "printed")
    tf.saved_model.save(model, str(path / "model"), signatures={"serving_default": model.fixed} |
                        {n: getattr(model, n) for n in names})  # fmt: skip
    tf.saved_model.save(counter, str(path / "counter"), signatures={"step": counter.step, "count": counter.count})
    return path


@pytest.fixture(scope="module")
def model(folders):
    return hilo.load(folders / "model")


def test_the_default_signature_is_a_program(model):
    assert isinstance(model, hilo.tensorflow.saved_model.SavedModel)
    (y,) = hilo.compile(model)(X)
    np.testing.assert_allclose(y, X @ W, rtol=1e-6)
    np.testing.assert_allclose(model(x=X)["y"], X @ W, rtol=1e-6)
    assert "stablehlo.dot" in hilo.text(model)


def test_signatures(model):
    f = model.signatures["open"]
    assert repr(f) == "<Signature open(a: ?x4xfloat32, b: ?x2xfloat32) -> (left: ?x4xfloat32, sum: ?x2xfloat32)>"
    assert f.inputs["a"].shape == (None, 4)
    assert f.inputs["a"].dtype == tf.float32
    assert model["unranked"].inputs["a"].shape is None


def test_one_program_for_all_sizes(model):
    f = model["open"].compile()
    for n in (3, 1, 0):
        out = f(b=np.ones((n, 2), np.float32), a=X[:n])
        assert list(out) == ["left", "sum"]
        np.testing.assert_allclose(out["sum"], X[:n] @ W + 1, rtol=1e-5)
        np.testing.assert_array_equal(out["left"], np.maximum(X[:n], 0))
    assert len(f.executables) == 1
    types = {p.shape for p in model["open"].module({"a": (5, 4), "b": (5, 2)})["main"].params}
    assert types == {(5, 4), (5, 2)}


def test_for_some_shapes_only(model):
    f = model.compile("open", shapes={"a": (3, 4), "b": (1, 2)})
    np.testing.assert_allclose(f(a=X, b=np.ones((1, 2), np.float32))["sum"], X @ W + 1, rtol=1e-5)
    with pytest.raises(hilo.Error, match=r"input a of signature 'open' was compiled for shape \(3, 4\), not \(2, 4\)"):
        f(a=X[:2], b=np.ones((1, 2), np.float32))


def test_booleans_integers_and_structures(model):
    out = model["kinds"](p=[True, False], i=[1, 2])
    assert {k: v.tolist() for k, v in out.items()} == {"output_0": [1, 7], "output_1": [False, True]}
    assert [v.dtype for v in out.values()] == [np.int64, np.bool_]


def test_without_a_program_for_all_sizes(model):
    np.testing.assert_array_equal(model["unranked"](a=X)["y"], X * 2)
    assert model["unique"](a=[1, 2, 1])["y"].tolist() == [1, 2]
    a = np.arange(12, dtype=np.float32).reshape(2, 6)
    for shape in ([3, 4], [12, 1], [3, 4]):
        np.testing.assert_array_equal(model["valued"](a=a, shape=shape)["y"], a.reshape(shape))


def test_variables_as_arguments(folders):
    model = hilo.load(folders / "model")
    f, bound = model.compile(constants=False), model.compile()
    np.testing.assert_allclose(f(x=X)["y"], X @ W, rtol=1e-6)
    assert list(model.variables) == ["w"]
    model.variables["w"] = W + 1
    np.testing.assert_allclose(f(x=X)["y"], X @ (W + 1), rtol=1e-5)
    np.testing.assert_allclose(bound(x=X)["y"], X @ W, rtol=1e-6)
    with pytest.raises(hilo.Error, match=r"variable w is float32\[4, 2\], not float64\[1\]"):
        model.variables["w"] = np.ones(1)
    with pytest.raises(hilo.Error, match="no variable 'v'; there are w"):
        model.variables["v"] = W


def test_state_lasts_and_is_shared(folders):
    model = hilo.load(folders / "counter")
    x = np.ones((2, 2), np.float32)
    assert model["count"]()["n"] == 0
    for n, rows in ((1, 2), (2, 1), (3, 2)):
        np.testing.assert_array_equal(model["step"](x=x[:rows])["y"], x[:rows] * [2, 3] * n)
        assert model["count"]()["n"] == n
    model.variables["n"] = np.int32(10)
    assert model.compile("count", constants=False)()["n"] == 10
    assert hilo.load(folders / "counter")["count"]()["n"] == 0
    with pytest.raises(hilo.Error, match="changes variables"):
        model["count"].module()


def test_random_numbers_are_those_of_xla(tmp_path):
    m = tf.Module()
    m.state = tf.random.Generator.from_seed(3)
    m.f = tf.function(lambda: {"y": m.state.normal([4])}, autograph=False, input_signature=[])
    tf.saved_model.save(m, str(tmp_path), signatures=m.f)
    restored, ours = tf.saved_model.load(str(tmp_path)), hilo.load(tmp_path)
    theirs = tf.function(lambda: restored.signatures["serving_default"](), autograph=False, jit_compile=True)
    for _ in range(3):
        np.testing.assert_allclose(ours()["y"], theirs()["y"], rtol=1e-5)


def test_what_is_refused(model, folders, tmp_path):
    f = model["open"]
    for call, message in (
        (lambda: f(a=np.zeros((3, 5), np.float32), b=np.zeros((3, 2), np.float32)),
         r"input a of signature 'open' is \?x4xfloat32, not 3x5xfloat32"),
        (lambda: f(a=np.zeros((3, 4)), b=np.zeros((3, 2), np.float32)), "float32, not 3x4xfloat64"),
        (lambda: f(a=[["a"]], b=[[1, 2]]), "is no array of float32"),
        (lambda: f(a=X), "takes a, b; b is not given"),
        (lambda: f(a=X, b=X, c=X), "it has no c"),
        (lambda: f.module({"c": (1,)}), "has no input c"),
        (lambda: f.module({"a": (2, 4)}), r"leaves sizes of b open \(\?x2xfloat32\)"),
        (lambda: model["strings"](s=["a"]), "input s of signature 'strings' is of strings, which cannot be compiled"),
        (lambda: model["printed"](a=[1, 2]), "op 'PyFunc'.*(PyFunc|No registered)"),
        (lambda: model["other"], "no signature 'other'; there are kinds, open, printed"),
        (lambda: hilo.load(folders / "counter").default(), "no 'serving_default' among its signatures"),
        (lambda: hilo.tensorflow.load(tmp_path), "is no SavedModel"),
        (lambda: hilo.tensorflow.load(folders / "model", "train"), "has no graph for 'train'"),
    ):  # fmt: skip
        with pytest.raises(hilo.Error, match=message):
            call()
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(hilo.Error, match="is damaged"):
        hilo.load(tmp_path)


def test_ragged_tensors_come_as_their_parts(tmp_path):
    """TensorFlow saves signatures so: values, and where rows begin. What it keeps as one is refused."""
    m = Model()
    tf.saved_model.save(m, str(tmp_path), signatures={"serving_default": m.ragged})
    assert hilo.load(tmp_path)(r=[1, 2, 3], r_1=[0, 1, 3])["y"].tolist() == [1, 5]
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((tmp_path / "saved_model.pb").read_bytes())
    proto.meta_graphs[0].signature_def["serving_default"].inputs["r"].coo_sparse.values_tensor_name = "r"
    (tmp_path / "saved_model.pb").write_bytes(proto.SerializeToString())
    with pytest.raises(hilo.Error, match="input r of signature 'serving_default' is no dense tensor but coo_sparse"):
        hilo.load(tmp_path)(r=[1, 2, 3], r_1=[0, 1, 3])


L = keras.layers
NETS = {
    "dense": ((6,), [L.Dense(8, "relu"), L.BatchNormalization(), L.Dense(3, "softmax")], 1),
    "convolution": ((12, 12, 3), [L.Conv2D(4, 3, padding="same", activation="relu"), L.MaxPool2D(), L.Conv2D(5, 3),
                                  L.GlobalAveragePooling2D(), L.Dense(2)], 1),
    "lstm": ((7, 5), [L.LSTM(6), L.Dense(2)], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_keras(name, tmp_path):
    shape, layers, programs = NETS[name]
    net = keras.Sequential([keras.Input(shape), *layers])
    net.export(str(tmp_path), verbose=False)
    f = hilo.load(tmp_path).compile()
    ((key, _),) = f.signature.inputs.items()
    for n in (4, 1):
        x = np.random.default_rng(n).standard_normal((n, *shape)).astype(np.float32)
        np.testing.assert_allclose(f(**{key: x})["output_0"], net(x), atol=1e-5)
    assert len(f.executables) == programs


SIZED = {
    "slices": lambda a: (a[1:], a[:-1], a[-2:, 1:3], a[:, ::2], a[..., 1], a[:, None], a[1:5:2], a[3:1], a[0]),
    "reshapes": lambda a: (tf.reshape(a, [-1]), tf.reshape(a, [-1, 2]), tf.reshape(a, [tf.shape(a)[0], 2, -1])),
    "mirrored": lambda a: (tf.pad(a, [[0, 0], [2, 1]], "REFLECT"), tf.pad(a, [[0, 0], [1, 3]], "SYMMETRIC")),
    "broadcasts": lambda a: (a[:, :1] + a, a * a[:1], a + tf.reduce_mean(a, 0), a + tf.nn.softmax(a)),
    "products": lambda a: (a @ tf.ones([4, 3]), tf.einsum("ni,mi->nm", a, a), tf.concat([a, a], 0)),
}


@pytest.mark.parametrize("name", SIZED)
def test_what_the_converter_leaves_of_open_sizes(name, tmp_path):
    m = tf.Module()
    m.f = tf.function(SIZED[name], autograph=False, input_signature=[spec(None, 4, name="a")])
    tf.saved_model.save(m, str(tmp_path), signatures=m.f)
    f = hilo.load(tmp_path).compile()
    for n in (6, 2, 3):
        a = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        want = [x.numpy() for x in tf.nest.flatten(m.f(a))]
        got = f(a=a)
        assert [x.shape for x in got.values()] == [x.shape for x in want]
        for x, y in zip(got.values(), want):
            np.testing.assert_allclose(x, y, atol=1e-6)
    assert len(f.executables) == 1


def test_command_line(folders):
    def hilo_command(*args):
        result = CliRunner().invoke(main, [*args])
        return result.exit_code, result.output

    path = str(folders / "model")
    code, out = hilo_command("run", path, "--random", "0")
    assert (code, "float32[3,2]" in out) == (0, True), out
    code, out = hilo_command("run", path, "--entry", "open", "--random", "0", "--dim", "5")
    assert (code, "float32[5,2]" in out) == (0, True), out
    code, out = hilo_command("compile", path, "--emit", "stablehlo")
    assert (code, "stablehlo.dot" in out) == (0, True), out
    code, out = hilo_command("bench", path, "--seconds", "0")
    assert code == 0, out
    code, out = hilo_command("compile", path, "--entry", "other")
    assert code == 2
