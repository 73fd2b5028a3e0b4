"""Execution: arguments and results, layouts, donation, what is not ready yet, errors, calls of Python, threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pjrt_client import C, Host, PjrtError, a_host, tiled

import hilo
from hilo.custom_calls.registry import unregister
from hilo.runtime import _native

ADD = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
DONATE = """func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32>{attribute})
    -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
#: Runs for longer than it is worth in the calling thread.
LARGE = """func.func @main(%x: tensor<384x384xf32>) -> tensor<384x384xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<384x384xf32>, tensor<384x384xf32>) -> tensor<384x384xf32>
  return %0 : tensor<384x384xf32>
}"""
CALL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @NAME(%x) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""
X, Y = np.arange(4, dtype="f4"), np.array([10, 20, 30, 40], "f4")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))
    with a_host() as host:
        yield host


@pytest.fixture
def calls(host: Host) -> Any:
    """Compiles a program that calls a Python function."""

    def compile(function: Any) -> int:  # noqa: A001
        hilo.register_custom_call("t_pjrt", function)
        try:
            return host.compile(CALL.replace("NAME", "t_pjrt"))
        finally:
            unregister("t_pjrt")

    return compile


def pointer(host: Host, buffer: int) -> int:
    return host.api.buffer_unsafe_pointer(buffer=buffer).buffer_pointer


def promise(host: Host, shape: tuple[int, ...]) -> tuple[int, int]:
    """A buffer whose contents come later, and what fulfils it."""
    made = host.api.client_create_alias_buffer(client=host.client, memory=host.memory("device"), shape_dims=shape,
                                               shape_num_dims=len(shape), shape_element_type=C["F32"])  # fmt: skip
    return made.alias_buffer, made.fulfill_alias_buffer_cb


def fulfil(host: Host, how: int, buffer: int | None, error: str = "") -> None:
    host.api.client_fulfill_alias_buffer(client=host.client, buffer=buffer, status_code=C["DATA_LOSS"] if error else 0,
                                         error_message=error.encode(), error_message_size=len(error),
                                         fulfill_alias_buffer_cb=how)  # fmt: skip


def test_a_call(host: Host) -> None:
    loaded = host.compile(ADD)
    x, y = host.put(X), host.put(Y)
    for _ in range(3):
        (z,), event = host.run(loaded, [x, y], event=True)
        host.api.wait(event)
        assert (host.get(z) == X + Y).all()
        host.free(z)
    (z,) = host.run(loaded, [x, x])
    assert (host.get(z) == 2 * X).all()


def test_scalars_and_arrays_without_elements(host: Host) -> None:
    text = """func.func @main(%x: tensor<f64>, %y: tensor<0x3xi8>) -> (tensor<0x3xi8>, tensor<f64>, tensor<i1>) {
      %0 = stablehlo.negate %x : tensor<f64>
      %1 = stablehlo.add %y, %y : tensor<0x3xi8>
      %2 = stablehlo.constant dense<true> : tensor<i1>
      return %1, %0, %2 : tensor<0x3xi8>, tensor<f64>, tensor<i1>
    }"""
    results = host.run(host.compile(text), [host.put(np.array(2.5)), host.put(np.empty((0, 3), "i1"))])
    empty, negated, true = map(host.get, results)
    assert (empty.shape, empty.dtype, negated, true) == ((0, 3), np.int8, -2.5, True)


def test_nothing_in_and_nothing_out(host: Host) -> None:
    assert host.run(host.compile("func.func @main() { return }"), []) == []


def test_more_arguments_than_a_call_has_room_for_on_the_stack(host: Host) -> None:
    n = 70
    params = ", ".join(f"%x{i}: tensor<f32>" for i in range(n))
    steps = ["%s0 = stablehlo.negate %x0 : tensor<f32>"]
    steps += [f"%s{i} = stablehlo.add %s{i - 1}, %x{i} : tensor<f32>" for i in range(1, n)]
    body = "\n".join([*steps, f"return %s{n - 1} : tensor<f32>"])
    loaded = host.compile(f"func.func @main({params}) -> tensor<f32> {{ {body} }}")
    (total,) = host.run(loaded, [host.put(np.array(i, "f4")) for i in range(n)])
    assert host.get(total) == n * (n - 1) / 2


def test_wrong_calls_are_refused_and_leave_all_as_it_was(host: Host) -> None:
    loaded = host.compile(DONATE.replace("{attribute}", ""))
    x, y, matrix, ints = host.put(X), host.put(Y), host.put(X.reshape(2, 2)), host.put(X.astype("i4"))
    before = host.api.device_memory_stats(device=host.device).bytes_in_use
    for arguments, message in [
        ([x], "takes 2 arguments, got 1"),
        ([x, matrix], r"argument 1 of \w+: expected f32\[4\], got f32\[2,2\]"),
        ([x, ints], r"argument 1 of \w+: expected f32\[4\], got s32\[4\]"),
    ]:
        with pytest.raises(PjrtError, match=message) as failure:
            host.run(loaded, arguments)
        assert failure.value.code == C["INVALID_ARGUMENT"]
        assert not host.is_deleted(x)
    assert host.api.device_memory_stats(device=host.device).bytes_in_use == before
    (z,) = host.run(loaded, [x, y])
    assert (host.get(z) == X + Y).all()


def test_deleted_buffers_and_executables_are_refused(host: Host) -> None:
    loaded = host.compile(ADD)
    x, y = host.put(X), host.put(Y)
    host.api.buffer_delete(buffer=y)
    with pytest.raises(PjrtError, match=r"argument 1 of \w+: .* deleted or donated") as failure:
        host.run(loaded, [x, y])
    assert failure.value.code == C["INVALID_ARGUMENT"]
    host.api.loaded_executable_delete(executable=loaded)
    assert host.api.loaded_executable_is_deleted(executable=loaded).is_deleted
    with pytest.raises(PjrtError, match="the executable has been deleted"):
        host.run(loaded, [x, x])


def test_callbacks_for_send_and_recv_are_not_there(host: Host) -> None:
    x = host.put(X)
    with pytest.raises(PjrtError, match="send and recv") as failure:
        host.run(host.compile(ADD), [x, x], num_send_ops=1)
    assert failure.value.code == C["UNIMPLEMENTED"]


# Layouts.


@pytest.mark.parametrize("large", [False, True])
def test_an_argument_of_another_layout_is_laid_out_anew(host: Host, large: bool) -> None:
    text, a = LARGE, np.random.default_rng(1).standard_normal((384, 384), np.float32)
    if not large:
        text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
          %0 = stablehlo.negate %x : tensor<2x3xf32>
          return %0 : tensor<2x3xf32> }"""
        a = a[:2, :3].copy()
    x = host.put(a, device_layout=tiled((0, 1)))
    assert host.minor_to_major(x) == (0, 1)
    (y,) = host.run(host.compile(text), [x])
    host.free(x)
    assert host.minor_to_major(y) == (1, 0)
    np.testing.assert_allclose(host.get(y), a @ a if large else -a, rtol=1e-3, atol=1e-3)


def test_layouts_that_the_program_asks_for(host: Host) -> None:
    text = """func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}, %y: tensor<2x3xf32>)
        -> (tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}) {
      %0 = stablehlo.subtract %x, %y : tensor<2x3xf32>
      return %0 : tensor<2x3xf32> }"""
    loaded = host.compile(text)
    a, b = np.arange(6, dtype="f4").reshape(2, 3), np.array([[5, 1, 0], [9, 8, 7]], "f4")
    y = host.put(b)
    for layout in (0, 1), (1, 0):
        (z,) = host.run(loaded, [host.put(a, device_layout=tiled(layout)), y])
        assert host.minor_to_major(z) == (0, 1)
        assert (host.get(z) == a - b).all()
        assert host.raw(z) == (a - b).T.tobytes()


# Donation.


def test_a_donated_argument_gives_its_memory_to_the_result(host: Host) -> None:
    loaded = host.compile(DONATE.replace("{attribute}", ""))
    x, y = host.put(X), host.put(Y)
    place = pointer(host, y)
    (z,) = host.run(loaded, [y, x])  # a copy of its own
    assert host.is_deleted(y)
    assert pointer(host, z) == place
    assert (host.get(z) == X + Y).all()
    with pytest.raises(PjrtError, match="deleted or donated"):
        host.run(loaded, [y, x])


def test_an_argument_that_must_not_be_donated_stays(host: Host) -> None:
    loaded = host.compile(DONATE.replace("{attribute}", ""))
    x, y = host.put(X), host.put(Y)
    (z,) = host.run(loaded, [x, y], non_donatable_input_indices=(0,), num_non_donatable_input_indices=1)
    assert not host.is_deleted(x)
    assert (host.get(x) == X).all()
    assert (host.get(z) == X + Y).all()


def test_memory_that_others_look_at_is_not_written(host: Host) -> None:
    loaded = host.compile(DONATE.replace("{attribute}", ""))
    y = host.put(Y)
    seen = np.tile(X, 1024)
    text = DONATE.replace("{attribute}", "").replace("4xf32", "4096xf32")
    x = host.begin_put(seen, "ZERO_COPY").buffer
    (z,) = host.run(host.compile(text), [x, host.put(np.tile(Y, 1024))])
    assert host.is_deleted(x)
    assert (host.get(z) == np.tile(X + Y, 1024)).all()
    assert (seen == np.tile(X, 1024)).all()
    x = host.put(X)
    host.api.buffer_increase_external_reference_count(buffer=x)
    place = pointer(host, x)
    (z,) = host.run(loaded, [x, y])
    assert host.is_deleted(x)
    assert pointer(host, z) != place
    host.api.buffer_decrease_external_reference_count(buffer=x)


def test_a_buffer_is_donated_once(host: Host) -> None:
    def program(x: str, y: str) -> int:
        return host.compile(f"""func.func @main(%x: tensor<4xf32>{x}, %y: tensor<4xf32>{y})
            -> (tensor<4xf32>, tensor<4xf32>) {{
          %0 = stablehlo.add %x, %y : tensor<4xf32>
          %1 = stablehlo.subtract %x, %y : tensor<4xf32>
          return %0, %1 : tensor<4xf32>, tensor<4xf32> }}""")

    first, second = (f" {{tf.aliasing_output = {i} : i32}}" for i in range(2))
    x = host.put(X)
    for loaded, message in [
        (program(first, ""), "use a buffer that was previously donated in the same call"),
        (program(first, second), "donate the same buffer twice"),
        (program("", second), "donate a buffer which is also used by the same call"),
    ]:
        with pytest.raises(PjrtError, match=message) as failure:
            host.run(loaded, [x, x])
        assert failure.value.code == C["INVALID_ARGUMENT"]
        assert not host.is_deleted(x)
        assert (host.get(x) == X).all()


# What is not ready.


def test_a_call_waits_for_its_arguments(host: Host) -> None:
    loaded = host.compile(ADD)
    x, (later, how) = host.put(X), promise(host, (4,))
    (y,), event = host.run(loaded, [later, x], event=True)
    (z,) = host.run(loaded, [y, y])
    assert not host.is_ready(y)
    assert not host.is_ready(z)
    host.free(x, y)
    fulfil(host, how, host.put(Y))
    host.api.wait(event)
    assert (host.get(z) == 2 * (X + Y)).all()


def test_many_calls_wait_without_holding_the_next_one_up(host: Host) -> None:
    loaded = host.compile(ADD)
    x, (later, how) = host.put(X), promise(host, (4,))
    z = later
    for _ in range(100):
        (z,) = host.run(loaded, [z, x])
    fulfil(host, how, host.put(Y))
    assert (host.get(z) == 100 * X + Y).all()


def test_errors_of_arguments_are_those_of_results(host: Host) -> None:
    loaded = host.compile(ADD)
    x, (later, how) = host.put(X), promise(host, (4,))
    (y,), event = host.run(loaded, [x, later], event=True)
    fulfil(host, how, None, "the disk is gone")
    (z,) = host.run(loaded, [y, x])
    for buffer in y, z:
        with pytest.raises(PjrtError, match="the disk is gone") as failure:
            host.await_buffer(buffer)
        assert failure.value.code == C["DATA_LOSS"]
    with pytest.raises(PjrtError, match="the disk is gone"):
        host.api.wait(event)


def test_large_work_runs_later_and_in_order(host: Host) -> None:
    a = np.random.default_rng(2).standard_normal((384, 384), np.float32) / 20
    loaded = host.compile(LARGE)
    x, wanted = host.put(a), a.astype("f8")
    for _ in range(5):
        (y,) = host.run(loaded, [x])
        host.free(x)  # while it is read
        x, wanted = y, wanted @ wanted
    np.testing.assert_allclose(host.get(x), wanted, rtol=2e-3, atol=1e-5)
    for _ in range(40):  # more than may be in flight
        host.free(*host.run(loaded, [x]))


# Calls of Python.


LOOP = """func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %r:3 = stablehlo.while(%i = %zero, %y = %x, %m = %n) : tensor<i32>, tensor<f32>, tensor<i32>
    cond {
      %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.multiply %y, %half : tensor<f32>
      %z = stablehlo.add %s, %half : tensor<f32>
      stablehlo.return %j, %z, %m : tensor<i32>, tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<f32>
}"""


def test_the_last_run_of_a_loop_tells_where_the_next_one_belongs(host: Host) -> None:
    loop = host.compile(LOOP)
    few, many, x = host.put(np.array(3, "i4")), host.put(np.array(30_000_000, "i4")), host.put(np.array(2, "f4"))

    def ready_at_once(n: int) -> bool:
        (y,) = host.run(loop, [n, x])
        ready = host.is_ready(y)
        assert host.get(y) == (1.125 if n == few else 1)
        host.free(y)
        return ready

    assert not ready_at_once(many)  # nothing is known: later
    # In the calling thread where the last run was short, as far as a busy machine lets it be.
    assert any(ready_at_once(few) is not None and ready_at_once(many) for _ in range(10))
    assert not ready_at_once(many)
    host.free(few, many, x)


def test_calls_of_python(host: Host, calls: Any) -> None:
    loaded = calls(lambda x: np.asarray(x) * 2)
    x, (later, how) = host.put(X), promise(host, (4,))
    (y,) = host.run(loaded, [x])
    assert (host.get(y) == 3 * X).all()
    (y,) = host.run(loaded, [later])  # on a thread that Python does not know
    fulfil(host, how, x)
    assert (host.get(y) == 3 * X).all()


def test_exceptions_come_out_where_results_are_waited_for(host: Host, calls: Any) -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        raise LookupError(f"nothing at {int(x[3])}")

    (y,), event = host.run(calls(fail), [host.put(X)], event=True)
    with pytest.raises(PjrtError, match="LookupError: nothing at 3") as failure:
        host.await_buffer(y)
    assert failure.value.code == C["INTERNAL"]
    with pytest.raises(PjrtError, match="nothing at 3"):
        host.api.wait(event)
    with pytest.raises(PjrtError, match="nothing at 3"):
        host.get(y)


@pytest.mark.parametrize("large", [False, True])
def test_a_function_may_call_programs_and_wait_for_them(host: Host, calls: Any, large: bool) -> None:
    inner = host.compile(LARGE if large else ADD)
    arguments = [host.put(np.eye(384, dtype="f4"))] if large else [host.put(X), host.put(Y)]

    def function(x: np.ndarray) -> np.ndarray:
        (z,) = host.run(inner, arguments)
        while not host.is_ready(z):  # as hosts wait that have futures of their own
            time.sleep(0.0005)
        return x * host.get(z).flat[0]

    loaded = calls(function)
    x, (later, how) = host.put(X), promise(host, (4,))
    expected = X * (1 if large else 10) + X
    assert (host.get(host.run(loaded, [x])[0]) == expected).all()
    (y,) = host.run(loaded, [later])
    fulfil(host, how, x)
    assert (host.get(y) == expected).all()


def test_arrays_that_a_function_keeps_outlive_the_call(host: Host, calls: Any) -> None:
    kept: list[np.ndarray] = []

    def function(x: np.ndarray) -> np.ndarray:
        kept.append(x[1:])  # a view
        return x

    loaded, used = calls(function), _native.memory_stats()["in_use"]
    for i in range(5):
        x = host.put(X + i)
        host.free(x, *host.run(loaded, [x]))
    assert np.array_equal(kept, [X[1:] + i for i in range(5)])
    kept.clear()
    assert _native.memory_stats()["in_use"] == used


# Threads, memory, ends.


def test_threads(host: Host) -> None:
    small, large = host.compile(ADD), host.compile(LARGE)
    a = np.eye(384, dtype="f4") * 2
    wrong: list[int] = []

    def work(k: int) -> None:
        x, m = host.put(X + k), host.put(a)
        for i in range(60):
            (y,) = host.run(small, [x, x])
            if i % 20 == 0:
                (n,) = host.run(large, [m])
                if not (host.get(n) == a @ a).all():
                    wrong.append(k)
                host.free(n)
            if not (host.get(y) == 2 * (X + k)).all():
                wrong.append(k)
            host.free(y)
        host.free(x, m)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_memory_stays_level(host: Host, calls: Any) -> None:
    loaded = [host.compile(ADD), host.compile(DONATE.replace("{attribute}", "")), calls(lambda x: x)]
    x = host.put(X)

    def round_of_calls() -> None:
        for _ in range(50):
            host.free(*host.run(loaded[0], [x, x]))
            y = host.put(Y)
            host.free(y, *host.run(loaded[1], [y, x]))
            host.free(*host.run(loaded[2], [x]))
            with pytest.raises(PjrtError):
                host.run(loaded[0], [x])

    def in_use() -> tuple[int, int]:
        return host.api.device_memory_stats(device=host.device).bytes_in_use, _native.memory_stats()["in_use"]

    round_of_calls()
    before = in_use()
    round_of_calls()
    assert in_use() == before


def script(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own."""
    prelude = f"""
import os, sys
os.environ["HILO_CACHE_DIR"] = {str(tmp_path)!r}
sys.path[:0] = {sys.path!r}
import numpy as np
from pjrt_client import C, Host, PjrtError
from test_execute import ADD, LARGE, X, Y
host = Host()
"""
    return subprocess.run([sys.executable, "-c", prelude + textwrap.dedent(text)], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip


def test_a_process_may_end_while_work_is_in_flight(tmp_path: Path) -> None:
    done = script("""
        loaded, x = host.compile(LARGE), host.put(np.ones((384, 384), "f4"))
        for _ in range(20):
            (x,) = host.run(loaded, [x])
    """, tmp_path)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_goes_on_without_what_was_in_flight(tmp_path: Path) -> None:
    done = script("""
        from test_execute import fulfil, promise
        loaded, x = host.compile(LARGE), host.put(np.eye(384, dtype="f4"))
        y, how = promise(host, (384, 384))
        for _ in range(10):
            host.free(*host.run(loaded, [x]))
            (y,) = host.run(loaded, [y])
        child = os.fork()
        if not child:
            try:
                host.await_buffer(y)
                os._exit(1)
            except PjrtError as e:
                if e.code != C["CANCELLED"] or "forked" not in str(e):
                    os._exit(2)
            (y,) = host.run(loaded, [x])
            ok = (host.get(y) == np.eye(384)).all()
            host.close()
            os._exit(0 if ok else 3)
        fulfil(host, how, x)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (host.get(y) == np.eye(384)).all())
    """, tmp_path)  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("0 True", "")


def test_strange_numbers_of_devices_are_refused(host: Host) -> None:
    loaded = host.compile(ADD)
    with pytest.raises(PjrtError, match="on one device"):
        host.api.loaded_executable_execute(executable=loaded, num_devices=2, num_args=2)
