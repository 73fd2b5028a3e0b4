"""Exchange with the host: queues that the user owns, and processes that send to each other."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported

TWO = """
func.func @main() -> (tensor<2xf32>, tensor<i32>) {
  %t = stablehlo.create_token : !stablehlo.token
  %a:3 = "stablehlo.infeed"(%t) {infeed_config = "x"} : (!stablehlo.token) -> (tensor<2xf32>, tensor<i32>, !stablehlo.token)
  %b:2 = "stablehlo.infeed"(%a#2) {infeed_config = "x"} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  %c = stablehlo.add %a#0, %b#0 : tensor<2xf32>
  %o = "stablehlo.outfeed"(%c, %a#1, %b#1) {outfeed_config = "y"}
      : (tensor<2xf32>, tensor<i32>, !stablehlo.token) -> !stablehlo.token
  return %c, %a#1 : tensor<2xf32>, tensor<i32>
}
"""  # noqa: E501
ECHO = """
func.func @main() -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %a:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>,
      is_host_transfer = true} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  %b = stablehlo.add %a#0, %a#0 : tensor<2xf32>
  %c = "stablehlo.send"(%b, %a#1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>,
      is_host_transfer = true} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return %b : tensor<2xf32>
}
"""
X = np.array([1, 2], np.float32)


def test_infeed_and_outfeed():
    queues = hilo.HostQueues()
    queues.put_infeed(X, np.int32(7), config="x")
    queues.put_infeed(10 * X, config="x")
    a, b = hilo.interpret(TWO, host=queues)
    assert (a.tolist(), int(b)) == ([11, 22], 7)
    out = queues.take_outfeed("y")
    assert [x.tolist() for x in out] == [[11, 22], 7]
    assert [x.dtype for x in out] == [np.float32, np.int32]
    assert queues.waiting() == {}


def test_queues_keep_what_they_were_given():
    queues = hilo.HostQueues()
    x = X.copy()
    queues.put_infeed(x, np.int32(7), config="x")
    queues.put_infeed(x, config="x")
    x[:] = 0
    hilo.interpret(TWO, host=queues)
    assert queues.take_outfeed("y")[0].tolist() == [2, 4]


def test_configs_are_queues_of_their_own():
    queues = hilo.HostQueues()
    queues.put_infeed(X, np.int32(7))
    with pytest.raises(Error, match="the infeed 'x' is empty") as e:
        hilo.interpret(TWO, host=queues)
    assert e.value.op == "stablehlo.infeed"
    assert str(e.value.loc).startswith("<text>:4")
    assert queues.waiting() == {"the infeed": 1}
    with pytest.raises(Error, match="the outfeed 'y' is empty"):
        queues.take_outfeed("y")


@pytest.mark.parametrize(("arrays", "words"), [
    ((X,), "the infeed 'x' has 1 arrays, but 2 are wanted"),
    ((X, np.int64(7)), r"array 1 of the infeed 'x' is i64\[\], but i32\[\] is wanted"),
    ((X[:1], np.int32(7)), r"array 0 of the infeed 'x' is f32\[1\], but f32\[2\] is wanted"),
])  # fmt: skip
def test_what_is_fed_must_fit(arrays, words):
    queues = hilo.HostQueues()
    queues.put_infeed(*arrays, config="x")
    with pytest.raises(Error, match=words):
        hilo.interpret(TWO, host=queues)


def test_channels_of_the_host():
    queues = hilo.HostQueues()
    queues.put_channel(5, X)
    assert hilo.interpret(ECHO, host=queues)[0].tolist() == [2, 4]
    assert queues.take_channel(5)[0].tolist() == [2, 4]
    with pytest.raises(Error, match="channel 5 from the host is empty"):
        hilo.interpret(ECHO, host=queues)


@pytest.mark.parametrize("native", [False, True])
def test_a_timeout_waits_for_another_thread(native):
    queues = hilo.HostQueues(timeout=20)
    run = hilo.compile(ECHO, host=queues) if native else lambda: hilo.interpret(ECHO, host=queues)

    def feed() -> None:
        time.sleep(0.02)
        queues.put_channel(5, X)

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert run()[0].tolist() == [2, 4]
    feeder.join()
    assert queues.take_channel(5)[0].tolist() == [2, 4]
    with pytest.raises(Error, match="must be a number of seconds"):
        hilo.HostQueues(timeout=float("inf"))


def test_without_queues():
    with pytest.raises(Unsupported, match="give the run a hilo"):
        hilo.interpret(TWO)


def test_a_grid_has_queues_for_all_or_for_each():
    shared = hilo.HostQueues()
    for k in (1, 2):
        shared.put_channel(5, k * X)
    got = hilo.interpret_parallel(ECHO, [[]] * 2, replicas=2, host=shared)
    assert [r.tolist() for (r,) in got] == [[2, 4], [4, 8]]
    assert [shared.take_channel(5)[0].tolist() for _ in range(2)] == [[2, 4], [4, 8]]
    each = [hilo.HostQueues() for _ in range(2)]
    for k, q in enumerate(each):
        q.put_channel(5, k * X)
    hilo.interpret_parallel(ECHO, [[]] * 2, replicas=2, host=each)
    assert [q.take_channel(5)[0].tolist() for q in each] == [[0, 0], [2, 4]]
    with pytest.raises(Error, match="1 queues of the host for 2 processes"):
        hilo.interpret_parallel(ECHO, [[]] * 2, replicas=2, host=each[:1])
    words = r"would wait for ever in stablehlo.recv, as channel 5 from the host is empty; \(1, 0\) waits in"
    with pytest.raises(Error, match=words):
        hilo.interpret_parallel(ECHO, [[]] * 2, replicas=2, host=shared)


def test_a_grid_without_queues_goes_round():
    """What one process sends to a channel of the host, another one gets."""
    send = """
    func.func @send(%x: tensor<2xf32>, %t: !stablehlo.token) {
      %c = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>,
          is_host_transfer = true} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      return
    }"""
    echo = "func.func @echo() -> tensor<2xf32> {" + ECHO.split("{", 1)[1]
    text = f"module {{ {send} {echo} }}"
    for order in (["send", "echo"], ["echo", "send"]):
        inputs = [[] if name == "echo" else [X, None] for name in order]
        got = hilo.interpret_parallel(text, inputs, partitions=2, entry=order)
        assert got[order.index("echo")][0].tolist() == [2, 4]


def between(pairs: str, channel: int = 0) -> str:
    """A program whose processes send to each other twice, and receive twice."""
    handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>{pairs}"
    return f"""
    func.func @main(%x: tensor<2xf32>, %t: !stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>) {{
      %y = stablehlo.add %x, %x : tensor<2xf32>
      %a = "stablehlo.send"(%x, %t) {{{handle}}} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      %b = "stablehlo.send"(%y, %a) {{{handle}}} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      %c:2 = "stablehlo.recv"(%b) {{{handle}}} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      %d:2 = "stablehlo.recv"(%c#1) {{{handle}}} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      return %c#0, %d#0 : tensor<2xf32>, tensor<2xf32>
    }}"""


@pytest.mark.parametrize(("channel", "grid"), [(0, (3, 1)), (4, (1, 3))])
def test_processes_send_to_each_other(channel, grid):
    pairs = ", source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>"
    inputs = [[k * X, None] for k in range(3)]
    got = hilo.interpret_parallel(between(pairs, channel), inputs, replicas=grid[0], partitions=grid[1])
    assert [[x.tolist() for x in each] for each in got] == [[[0, 0], [0, 0]], [[0, 0], [0, 0]], [[1, 2], [2, 4]]]


def test_without_pairs_a_channel_is_open_to_all():
    got = hilo.interpret_parallel(between(""), [[X, None]])
    assert [x.tolist() for x in got[0]] == [[1, 2], [2, 4]]


def test_a_message_that_never_comes():
    pairs = ", source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
    text = between(pairs)
    quiet = "func.func @quiet(%x: tensor<2xf32>, %t: !stablehlo.token) { return }"
    with pytest.raises(Error, match=r"\(1, 0\) would wait for ever in stablehlo.recv on channel 0; \(0, 0\) has"):
        hilo.interpret_parallel(f"module {{ {text} {quiet} }}", [[X, None]] * 2, replicas=2, entry=["quiet", "main"])
    with pytest.raises(Error, match="C4"):
        hilo.interpret_parallel(text, [[X, None]])
    with pytest.raises(Unsupported, match="interpret_parallel"):
        hilo.interpret(text, X, None)


# -- in native code
LOOP = """
func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %x = stablehlo.constant dense<0.0> : tensor<2xf32>
  %t = stablehlo.create_token : !stablehlo.token
  %r:3 = stablehlo.while(%i = %zero, %s = %x, %u = %t) : tensor<i32>, tensor<2xf32>, !stablehlo.token
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %a:2 = "stablehlo.infeed"(%u) : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
    %b = stablehlo.add %s, %a#0 : tensor<2xf32>
    %v = "stablehlo.outfeed"(%b, %a#1) : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b, %v : tensor<i32>, tensor<2xf32>, !stablehlo.token
  }
  return %r#0, %r#1 : tensor<i32>, tensor<2xf32>
}"""


def test_compiled_programs_have_queues_of_their_own():
    first, second = hilo.HostQueues(), hilo.HostQueues()
    f, g = hilo.compile(ECHO, host=first), hilo.compile(ECHO, host=second)
    first.put_channel(5, X)
    second.put_channel(5, 10 * X)
    assert (g()[0].tolist(), f()[0].tolist()) == ([20, 40], [2, 4])
    assert (first.take_channel(5)[0].tolist(), second.take_channel(5)[0].tolist()) == ([2, 4], [20, 40])
    with pytest.raises(Error, match=r"stablehlo\.recv: channel 5 from the host is empty"):
        f()
    with pytest.raises(Unsupported, match=r"stablehlo\.recv: there is no queue"):
        hilo.compile(ECHO)()


def test_infeed_and_outfeed_in_native_code():
    queues = hilo.HostQueues()
    f = hilo.compile(TWO, host=queues)
    for k in (1, 2):
        queues.put_infeed(k * X, np.int32(k), config="x")
        queues.put_infeed(10 * X, config="x")
        a, b = f()
        assert (a.tolist(), int(b)) == (((k + 10) * X).tolist(), k)
    assert [x.tolist() for x in queues.take_outfeed("y")] == [[11, 22], 1]
    assert [x.tolist() for x in queues.take_outfeed("y")] == [[12, 24], 2]
    queues.put_infeed(X, np.int64(7), config="x")
    with pytest.raises(Error, match=r"stablehlo.infeed: array 1 of the infeed 'x' is i64\[\], but i32\[\] is wanted"):
        f()


@pytest.mark.parametrize("fuse", [True, False])
def test_loops_take_and_give_in_order(fuse):
    options = hilo.Options.from_env(fuse=fuse)
    queues = hilo.HostQueues()
    f = hilo.compile(LOOP, host=queues, options=options)
    for run in (f, lambda n: hilo.interpret(LOOP, n, host=queues)):
        for k in range(5):
            queues.put_infeed(np.array([1, 10**k], np.float32))
        n, s = run(np.int32(5))
        assert (int(n), s.tolist()) == (5, [5, 11111])
        given = [queues.take_outfeed()[0].tolist() for _ in range(5)]
        assert given == [[k + 1, (10 ** (k + 1) - 1) // 9] for k in range(5)]
        assert queues.waiting() == {}
        queues.put_infeed(X)
        with pytest.raises(Error, match="the infeed is empty"):
            run(np.int32(2))
        assert queues.take_outfeed()[0].tolist() == [1, 2]


def test_the_order_stays_without_a_chain_of_tokens():
    """Two infeeds on one token: the first takes the first entry, even where only the second is used."""
    text = """func.func @main() -> tensor<2xf32> {
      %t = stablehlo.create_token : !stablehlo.token
      %a:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      %b:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      return %b#0 : tensor<2xf32>
    }"""
    queues = hilo.HostQueues()
    for run in (hilo.compile(text, host=queues), lambda: hilo.interpret(text, host=queues)):
        queues.put_infeed(X)
        queues.put_infeed(3 * X)
        assert run()[0].tolist() == [3, 6]


def test_every_element_type_goes_through():
    from hilo.ir import dtypes

    for t in dtypes.ALL:
        text = f"""func.func @main() -> tensor<2x{t.mlir}> {{
          %t = stablehlo.create_token : !stablehlo.token
          %a:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<2x{t.mlir}>, !stablehlo.token)
          %b = "stablehlo.outfeed"(%a#0, %a#1) : (tensor<2x{t.mlir}>, !stablehlo.token) -> !stablehlo.token
          return %a#0 : tensor<2x{t.mlir}>
        }}"""
        x = np.array([1, 0]).astype(t.np)
        queues = hilo.HostQueues()
        for run in (hilo.compile(text, host=queues), lambda q=queues, p=text: hilo.interpret(p, host=q)):
            queues.put_infeed(x)
            for got in (run()[0], queues.take_outfeed()[0]):
                assert (got.dtype, got.tobytes()) == (x.dtype, x.tobytes()), t
