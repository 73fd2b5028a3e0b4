"""What is known of this machine, and when LLVM is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from hilo.backend import host, llvm_file, target
from hilo.backend.llvm_library import host as said_by_llvm
from hilo.backend.names import Names, names, title
from hilo.backend.target import NAMED, Target, described
from hilo.record import replace

KNOWN = host.x86_host()
LINUX_X86 = pytest.mark.skipif(KNOWN is None, reason="the system does not tell what this machine is")


@LINUX_X86
def test_the_system_and_llvm_know_the_same_features() -> None:
    assert KNOWN is not None
    _, _, has = said_by_llvm()
    own = {name for bits in host._WORDS.values() for name in bits.values()}
    assert {f for f in own & has.keys() if has[f]} == KNOWN[1].keys() & has.keys()


@LINUX_X86
def test_the_host_is_what_llvm_would_describe() -> None:
    there, by_llvm = Target.host(), described(*said_by_llvm(), host.cache_sizes())
    words = {"name": "", "cpu": "", "features": ""}
    assert replace(there, **words) == replace(by_llvm, **words)
    for t in (there, there.plain(), there.relaxed(frozenset({"bf16"}))):
        assert names(t) == Names(by_llvm.triple, by_llvm.cpu, by_llvm.features)
    assert title(there) == by_llvm.name == f"x86-{llvm.get_host_cpu_name()}"
    assert title(there.plain()) == f"{by_llvm.name} (plain)"


def test_lines_of_linux() -> None:
    has = dict.fromkeys(("fma", "avx2", "avx512f", "avx512bf16", "avx512fp16"), True)
    line = "cpu:type:x86,ven0002fam0019mod0011:feature:,0000,008C,0125,0130,0185,0257,02AC"
    assert host.read_modalias(line) == ("native-amd-25-17", has)
    assert host.read_modalias("cpu:type:x86,ven0000fam0006mod008F:feature:,0000") == ("native-intel-6-143", {})
    assert host.read_modalias("cpu:type:x86,ven0004fam0006mod008F:feature:,0000") == ("native-4-6-143", {})
    for other in ("", "cpu:type:aarch64:feature:,0000", "cpu:type:x86,ven0002", "cpu:type:x86,ven0002fam0019mod0011",
                  "cpu:type:x86,venXfam0019mod0011:feature:,0000", line + ",", line + ",-"):  # fmt: skip
        assert host.read_modalias(other) is None


def test_other_systems_ask_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "x86_host", lambda: None)
    there = target._host.__wrapped__()
    assert there == described(*said_by_llvm(), host.cache_sizes())
    assert names(there) == Names(there.triple, there.cpu, there.features)
    assert title(there) == there.name


def test_a_host_that_is_not_this_one() -> None:
    other = described(target.LINUX_X86, "native-intel-6-143", dict.fromkeys(("avx2", "fma", "bmi2", "f16c"), True))
    assert other.name == "x86-intel-6-143"
    assert other.vector_bytes == 32
    assert names(other) == Names(other.triple, NAMED["x86-avx2"].cpu, other.features)
    assert title(other) == other.name


def test_the_library_is_known_by_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Path(llvm_file.path())
    assert llvm_file.version() == f"{here.stat().st_size} {here.stat().st_mtime_ns}"
    monkeypatch.setattr(llvm_file, "path", lambda: "")
    assert llvm_file.version.__wrapped__() == ""


@LINUX_X86
def test_a_program_from_the_cache_loads_no_llvm(tmp_path: Path) -> None:
    script = """
import sys, numpy as np, hilo
from hilo.options import Options
text = '''func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = stablehlo.exponential %x : tensor<64xf32>
  return %y : tensor<64xf32>
}'''
f = hilo.compile(text, options=Options(cache=True, cache_dir=sys.argv[1]))
assert np.allclose(f(np.ones(64, np.float32)), np.e)
print("libllvmlite" in open("/proc/self/maps").read(), "llvmlite" in sys.modules)
"""
    said = [subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
            for _ in range(2)]  # fmt: skip
    assert said[1].stdout == "False False\n"
