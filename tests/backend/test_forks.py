"""A child compiles, even if other threads of its parent were compiling when it was made."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import faulthandler, os, threading
import numpy as np
import hilo

TEXT = '''func.func @main(%x: tensor<NxNxf32>) -> tensor<NxNxf32> {
  %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<NxNxf32>, tensor<NxNxf32>) -> tensor<NxNxf32>
  %z = stablehlo.tanh %y : tensor<NxNxf32>
  return %z : tensor<NxNxf32> }'''

def check(n):
    f = hilo.compile(TEXT.replace("N", str(n)), threads=2)
    assert (f(np.zeros((n, n), np.float32))[0] == 0).all()

def work(n):
    while not stop.is_set():
        check(n)
        n += 1

check(8)  # and all is imported: a child made meanwhile would not get what was half there
stop = threading.Event()
threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in (40, 1000)]
for t in threads:
    t.start()
for i in range(6):
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(30, exit=True)
        check(20 + i)
        inner = os.fork()  # a child's child, too
        if not inner:
            check(30 + i)
            os._exit(0)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for t in threads:
    t.join()
print("done")
"""


# What a thread does in a block: forks come behind the outermost one, and the thread that forks is not waited for.
NESTED = """
import os, threading, time
from hilo.backend.forks import Unforked

entered, state = threading.Event(), []

def work():
    with Unforked():
        with Unforked():
            pass
        entered.set()
        time.sleep(0.3)
        state.append("done")

thread = threading.Thread(target=work)
thread.start()
entered.wait()
with Unforked():
    child = os.fork()
    if not child:
        with Unforked():
            os._exit(0 if state else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_wait_for_outermost_blocks() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NESTED], capture_output=True, text=True, timeout=60,
                          check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_compile() -> None:
    env = {**os.environ, "HILO_CACHE": "0"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], env=env, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
