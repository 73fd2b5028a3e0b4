"""Programs kept whole: text that was compiled before, on this machine and by this hilo, is loaded at once.

An entry of the cache is an `Image`, by the program's bytes and all that its code depends on. Programs that call out,
have run-time sizes, or take times are compiled each time (from objects that are cached), and so is every program while
somebody looks at how it is compiled. Imports pipeline, runtime, backend.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from hilo.backend.forks import Unforked
from hilo.errors import Error
from hilo.gc_pause import gc_paused
from hilo.options import Options
from hilo.runtime.stores import cache_of, is_tuned, tuned_of

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.runtime.cache import Key
    from hilo.runtime.executable import Executable
    from hilo.runtime.image import Image

NO_PART = ("__pycache__", "cli", "demo", "jax", "tensorflow", "testing")  # rooms that no compilation imports
MOST_BYTES = 64 << 20  # of a program that is kept: reading more takes as long as compiling


def compile_source(source: str | bytes, *, entry: str, target: str, threads: int | None,
                   donate: tuple[Any, ...] = (), options: Options | None = None,
                   filename: str = "<text>") -> Executable:  # fmt: skip
    """`pipeline.compile_module` of the program in `source`, from the cache if it is there. `filename`: for messages."""
    options = Options.from_env() if options is None else options

    def compiled(keep: Any = None) -> Executable:
        with Unforked(), gc_paused():  # importing the compiler makes as many objects as compiling does
            from hilo.formats import parse
            from hilo.ir.connection import connected
            from hilo.pipeline import compile_module

            with connected(None):
                return compile_module(parse(source, filename), entry=entry, target=target, threads=threads,
                                      donate=donate, options=options, keep=keep)  # fmt: skip

    if not is_kept(options) or not all(type(d) is int for d in donate):
        return compiled()
    from hilo.runtime.image import Image
    from hilo.runtime.settings import settings

    machine, count = settings(target, threads, options)
    store = cache_of(options)
    key = key_of(source, machine, options, entry=entry, donate=repr(donate))
    data = store.get(key)
    image = None if data is None else Image.read(data)
    if image is not None:
        anew = cache(compiled)
        try:
            return image.executable(count, lambda: anew())
        except Error:  # code that the process cannot load: made anew, and replaced
            pass

    def keep(made: Image) -> None:
        if made.nbytes <= MOST_BYTES:
            store.put(key, made.data())

    return compiled(keep)


def is_kept(options: Options) -> bool:
    """Whether programs go by the cache as a whole: not while somebody looks at what the compiler does."""
    looks = options.verify or options.dump or options.print or options.time or options.profile
    return options.cache and options.cache_programs and not looks


def key_of(source: str | bytes, machine: Target, options: Options, **more: str) -> Key:
    """What an image depends on."""
    import numpy as np

    from hilo.backend.llvm_file import version
    from hilo.runtime.cache import Key

    calls: Any = sys.modules.get("hilo.custom_calls.registry")  # whoever registers a target has loaded it
    text = source.encode(errors="surrogatepass") if isinstance(source, str) else source
    return Key.of(
        text,
        what="program",
        machine=repr(machine),
        options=repr(options.code_key()),
        tuned=tuned_of(options, machine).state() if options.tuned and is_tuned(options.cache_dir) else "",
        custom_calls=",".join(calls.registered()) if calls is not None else "",
        hilo=own_files(),
        llvm=version(),
        python=f"{sys.version_info[:3]} {np.__version__}",
        **more,
    )


@cache
def own_files() -> str:
    """Tells this hilo from any other, by the sizes and times of its files: changed code may make other programs."""
    from hilo.hashes import sha256

    found: list[str] = []
    folders = [os.path.dirname(__file__)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for file in sorted(entries, key=lambda e: e.name):
                if file.name.endswith((".py", ".so")):
                    s = file.stat()
                    found.append(f"{file.path} {s.st_size} {s.st_mtime_ns}")
                elif file.name not in NO_PART and file.is_dir():
                    folders.append(file.path)
    return sha256("\n".join(found).encode(errors="surrogateescape")).hexdigest()
