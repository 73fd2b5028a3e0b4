"""LLVM's C functions beside what llvmlite says."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from hilo.backend import cpu
from hilo.backend.llvm_library import emitted, host, llvm_version, parsed


def test_the_host_is_what_llvmlite_says() -> None:
    triple, name, features = host()
    assert (triple, name) == (llvm.get_process_triple(), llvm.get_host_cpu_name())
    found = dict(llvm.get_host_cpu_features())
    assert {name: features[name] for name in found} == found
    assert set(features) <= {*found, "dotprod"}  # which 64-bit Arms are asked for beyond what LLVM says
    assert llvm_version() == ".".join(map(str, llvm.llvm_version_info))


def test_objects_are_those_of_llvmlite() -> None:
    text = "define i64 @f(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}"
    triple, name, _ = host()
    machine = cpu.target_machine(triple, name, "")
    with parsed(text) as module:
        made = emitted(machine, module)
    found = llvm.Target.from_triple(triple)
    theirs = found.create_target_machine(cpu=name, features="", opt=1, reloc="pic", codemodel="small")
    assert made == theirs.emit_object(llvm.parse_assembly(text))


def test_text_that_is_no_module() -> None:
    with pytest.raises(ValueError, match="expected top-level entity"), parsed("nonsense"):
        pass
    late = "define i32 @f() {\n  br label %b\nb:\n  ret i32 %x\nc:\n  %x = add i32 1, 2\n  br label %b\n}"
    with pytest.raises(ValueError, match="dominate"), parsed(late):
        pass


def test_data_layouts() -> None:
    assert "p270:32:32" in cpu.data_layout("x86_64-unknown-linux-gnu")
    assert cpu.data_layout("aarch64-unknown-linux-gnu").startswith("e-m:e")
