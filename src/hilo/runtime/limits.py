"""What the machine can do at most: fused multiply-adds and memory, measured.

Small loops as LLVM IR, called from as many Python threads as a program would use (ctypes gives up the GIL). They are
written here and not made by the compiler, so that it is not measured by itself. Imports backend.names and target, and
runtime.cache.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from hilo.backend.names import names
from hilo.backend.target import Target
from hilo.runtime.cache import Cache, Key

CHAINS = 12  # independent accumulators: enough to hide the latency of two FMA units


@dataclass(frozen=True)
class Limits:
    """GFLOP/s of f32 fused multiply-adds; GB/s of a non-temporal copy (bytes read and written) and of reading."""

    fma: float
    copy: float
    read: float

    def best_ms(self, flops: float, read: float, written: float) -> float:
        """The least time for so much work: all of it at the limit that binds."""
        moved = 2 * written / self.copy + max(0.0, read - written) / self.read
        return max(flops / self.fma, moved) * 1e-6


def known(threads: int, cache: Cache, *, again: bool = False) -> Limits:
    """The limits of this machine with so many threads: from the cache, or measured (half a second) and kept there.

    What is measured on a busy machine is too low: `again` measures once more, and the better of both is kept.
    """
    import llvmlite.binding as llvm

    key = Key.of("limits of the machine", cpu=llvm.get_host_cpu_name(), threads=str(threads),
                 features=llvm.get_host_cpu_features().flatten())  # fmt: skip
    found = _read(cache.get(key))
    if found is not None and not again:
        return found
    new = measure(threads)
    if found is not None:
        new = Limits(max(new.fma, found.fma), max(new.copy, found.copy), max(new.read, found.read))
    cache.put(key, json.dumps(asdict(new)).encode())
    return new


def _read(data: bytes | None) -> Limits | None:
    """Limits as they are kept; None if there are none."""
    try:
        figures = json.loads(data or b"null")
        return Limits(**{k: float(v) for k, v in figures.items()}) if figures else None
    except (ValueError, TypeError, AttributeError):
        return None


def measure(threads: int, megabytes: int = 256, rounds: int = 5) -> Limits:
    """Best of several rounds; arrays of `megabytes` in all for the memory."""
    module = _compile(_lanes())
    fma = _function(module, "run_fma", 1)
    copy, read = _function(module, "copy", 3), _function(module, "read", 2)
    n = megabytes * (1 << 20) // 8 // threads // 1024 * 1024
    source, target = (_aligned(n * threads) for _ in range(2))
    parts = [(target[i * n :].ctypes.data, source[i * n :].ctypes.data, n) for i in range(threads)]
    count = 8_000_000
    flops = threads * count * CHAINS * _lanes() * 2
    with ThreadPoolExecutor(threads) as pool:
        return Limits(
            flops / _best(pool, fma, [(count,)] * threads, rounds) * 1e-9,
            2 * source.nbytes / _best(pool, copy, parts, rounds) * 1e-9,
            source.nbytes / _best(pool, read, [p[1:] for p in parts], rounds) * 1e-9,
        )


def moving(read: int, written: int, threads: int) -> Callable[[int], None]:
    """What moves so many bytes, that often: a non-temporal copy, and for the rest reading or non-temporal stores."""
    module = _compile(_lanes())
    unit = 8 * _lanes() * threads  # elements that one turn of a loop, in all threads, takes at most
    source, target = (_aligned(max(1, -(-n // 4 // unit)) * unit) for n in (read, written))
    copied = min(source.size if read else 0, target.size if written else 0)
    parts: list[list[tuple[Callable[..., Any], tuple[int, ...]]]] = [[] for _ in range(threads)]
    for name, begin, end, arrays in (
        ("copy", 0, copied, (target, source)),
        ("read", copied, source.size if read else 0, (source,)),
        ("fill", copied, target.size if written else 0, (target,)),
    ):
        f, n = _function(module, name, len(arrays) + 1), (end - begin) // threads
        for i, part in enumerate(parts if n > 0 else ()):
            part.append((f, (*(a[begin + i * n :].ctypes.data for a in arrays), n)))
    return _repeated(parts, (source, target))


def multiplying(flops: float, threads: int) -> Callable[[int], None]:
    """What does so many multiply-adds of f32 (two flops each), that often."""
    count = max(1, int(flops / (threads * CHAINS * _lanes() * 2)))
    return _repeated([[(_function(_compile(_lanes()), "run_fma", 1), (count,))]] * threads, ())


def _repeated(parts: list[list[tuple[Callable[..., Any], tuple[int, ...]]]],
              memory: tuple[np.ndarray, ...]) -> Callable[[int], None]:  # fmt: skip
    """A thread for each part, which does it as often as asked; `memory` is what the addresses belong to."""
    pool = ThreadPoolExecutor(len(parts))

    def one(part: list[tuple[Callable[..., Any], tuple[int, ...]]], times: int) -> None:
        for _ in range(times):
            for f, args in part:
                f(*args)

    def run(times: int, _memory: tuple[np.ndarray, ...] = memory) -> None:
        for done in [pool.submit(one, part, times) for part in parts]:
            done.result()

    return run


def _aligned(n: int) -> np.ndarray:
    """Ones, at an address that any vector may be stored to."""
    memory = np.ones(n + 16, np.float32)
    return memory[-memory.ctypes.data % 64 // 4 :][:n]


def _best(pool: ThreadPoolExecutor, f: Callable[..., Any], calls: list[tuple[Any, ...]], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        list(pool.map(lambda args: f(*args), calls))
        best = min(best, time.perf_counter() - start)
    return best


@cache
def _lanes() -> int:
    return Target.host().lanes("f32")


@cache
def _compile(lanes: int) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, cpu, features = names(Target.host())
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_text(lanes)), machine)
    engine.finalize_object()
    return engine


def _function(engine: Any, name: str, arguments: int) -> Callable[..., Any]:
    kind = ctypes.CFUNCTYPE(ctypes.c_float, *[ctypes.c_int64] * arguments)
    return kind(engine.get_function_address(name))


def _text(lanes: int) -> str:
    v = f"<{lanes} x float>"
    loop = """entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]"""
    again = """  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %end
end:"""
    chains = _each(f"  %a# = phi {v} [zeroinitializer, %entry], [%b#, %loop]", CHAINS)
    sums = _each(f"  %a# = phi {v} [zeroinitializer, %entry], [%b#, %loop]", 8)
    fma = _each(f"  %b# = call {v} @llvm.fma.v{lanes}f32({v} %a#, {v} %x, {v} %x)", CHAINS)
    copy = f"""  %j# = add i64 %i, OFFSET
  %p# = getelementptr float, ptr %from, i64 %j#
  %q# = getelementptr float, ptr %to, i64 %j#
  %x# = load {v}, ptr %p#, align 4
  store {v} %x#, ptr %q#, align {lanes * 4}, !nontemporal !0"""
    fill = f"""  %j# = add i64 %i, OFFSET
  %q# = getelementptr float, ptr %to, i64 %j#
  store {v} zeroinitializer, ptr %q#, align {lanes * 4}, !nontemporal !0"""
    read = f"""  %j# = add i64 %i, OFFSET
  %p# = getelementptr float, ptr %from, i64 %j#
  %x# = load {v}, ptr %p#, align 4
  %b# = fadd {v} %a#, %x#"""
    return f"""
declare {v} @llvm.fma.v{lanes}f32({v}, {v}, {v})
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {v})
!0 = !{{i32 1}}

define float @fma(i64 %n, {v} %x) {{
{loop}
{chains}
{fma}
  %i1 = add i64 %i, 1
{again}
{_sum(v, lanes, CHAINS)}
}}

define float @run_fma(i64 %n) {{
  %f = sitofp i64 %n to float
  %x = insertelement {v} zeroinitializer, float %f, i64 0
  %r = call float @fma(i64 %n, {v} %x)
  ret float %r
}}

define float @copy(ptr %to, ptr %from, i64 %n) {{
{loop}
{_each(copy, 4, lanes)}
  %i1 = add i64 %i, {4 * lanes}
{again}
  ret float 0.0
}}

define float @fill(ptr %to, i64 %n) {{
{loop}
{_each(fill, 4, lanes)}
  %i1 = add i64 %i, {4 * lanes}
{again}
  ret float 0.0
}}

define float @read(ptr %from, i64 %n) {{
{loop}
{sums}
{_each(read, 8, lanes)}
  %i1 = add i64 %i, {8 * lanes}
{again}
{_sum(v, lanes, 8)}
}}
"""


def _each(lines: str, count: int, lanes: int = 0) -> str:
    """The lines `count` times over, # standing for the number and OFFSET for that many vectors."""
    return "\n".join(lines.replace("OFFSET", str(k * lanes)).replace("#", str(k)) for k in range(count))


def _sum(v: str, lanes: int, count: int) -> str:
    lines = [f"  %s1 = fadd {v} %b0, %b1"]
    lines += [f"  %s{k} = fadd {v} %s{k - 1}, %b{k}" for k in range(2, count)]
    total = f"call float @llvm.vector.reduce.fadd.v{lanes}f32(float 0.0, {v} %s{count - 1})"
    return "\n".join([*lines, f"  %r = {total}", "  ret float %r"])
