"""Builds the C extension of the runtime; everything else is in pyproject.toml."""

import numpy
from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "hilo.runtime._native",
            sources=[
                "src/hilo/runtime/native/module.c",
            ],
            include_dirs=[numpy.get_include()],
            extra_compile_args=["-std=c11", "-O2", "-pthread", "-Wall", "-Wextra"],
            extra_link_args=["-pthread"],
        )
    ]
)
