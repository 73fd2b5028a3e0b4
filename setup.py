"""Builds the C extension of the runtime and the library for hosts of PJRT; everything else is in pyproject.toml."""

import os
import sys
import sysconfig
import tomllib
from glob import glob
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = "src/hilo/runtime/native"
LIBRARY = "hilo.pjrt.hilo_pjrt"
FLAGS = ["-std=c11", "-O2", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra"]


class BuildNative(build_ext):
    """Extension modules, and a library that is none: its name is the same for every Python."""

    def get_ext_filename(self, fullname):
        if fullname.rpartition(".")[2] == LIBRARY.rpartition(".")[2]:
            return os.path.join(*fullname.split(".")) + ".so"
        return super().get_ext_filename(fullname)


def text(value):
    """A macro that is a C string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def libpython():
    """The path of the shared libpython of this interpreter; empty if it has none."""
    directory, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    path = Path(directory or "", name or "")
    return str(path) if ".so" in path.name and path.exists() else ""


version = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]

setup(
    cmdclass={"build_ext": BuildNative},
    ext_modules=[
        Extension(
            "hilo.runtime._native",
            sources=sorted(glob(f"{NATIVE}/*.c") + glob(f"{NATIVE}/pjrt/*.c")),
            depends=sorted(glob(f"{NATIVE}/*.h") + glob(f"{NATIVE}/pjrt/*.h")),
            include_dirs=[numpy.get_include()],
            define_macros=[("HILO_VERSION", text(version))],
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread"],
        ),
        Extension(
            LIBRARY,
            sources=[f"{NATIVE}/library/hilo_pjrt.c"],
            define_macros=[("HILO_BUILT_BY", text(sys.executable)), ("HILO_LIBPYTHON", text(libpython()))],
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread", "-ldl"],
        ),
    ],
)
