"""Builds the C extension of the runtime; everything else is in pyproject.toml."""

from glob import glob

import numpy
from setuptools import Extension, setup

NATIVE = "src/hilo/runtime/native"

setup(
    ext_modules=[
        Extension(
            "hilo.runtime._native",
            sources=sorted(glob(f"{NATIVE}/*.c") + glob(f"{NATIVE}/pjrt/*.c")),
            depends=sorted(glob(f"{NATIVE}/*.h") + glob(f"{NATIVE}/pjrt/*.h")),
            include_dirs=[numpy.get_include()],
            extra_compile_args=["-std=c11", "-O2", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra"],
            extra_link_args=["-pthread"],
        )
    ]
)
