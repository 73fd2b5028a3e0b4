"""Code and constants of one object are near each other, wherever the process has memory left.

Code finds its constants within 2 GB. In a process with large libraries (TensorFlow's) free memory lies on both sides of
them, so that places which are asked for one by one may be further apart: LLVM ended the process then.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = '''
import ctypes

import numpy as np

import hilo

TANH = "func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{\\n" \\
       "  %y = stablehlo.tanh %x : tensor<{n}xf32>\\n  %z = stablehlo.sine %y : tensor<{n}xf32>\\n" \\
       "  return %z : tensor<{n}xf32>\\n}}"
hilo.compile(TANH.format(n=4))  # everything is loaded

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE, PAGES = 4096, 4000

def reserve(size):
    return libc.mmap(None, size, 0, 0x4022, -1, 0)  # private, anonymous, without memory behind it

holes = reserve(2 * PAGES * PAGE)
far = min(reserve(1 << 30) for _ in range(3))
for i in range(0, 2 * PAGES, 2):  # above the 3 GB there is only room for single pages
    libc.munmap(holes + i * PAGE, PAGE)
while (place := reserve(2 * PAGE)) > far:
    pass
libc.munmap(place, 2 * PAGE)

x = np.linspace(-1, 1, 1000).astype(np.float32)
(y,) = hilo.compile(TANH.format(n=1000))(x)
np.testing.assert_allclose(y, np.sin(np.tanh(x)), rtol=1e-5)
'''


def test_with_holes_of_single_pages() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
