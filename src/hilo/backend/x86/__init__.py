"""hilo's own code generator for x86-64 with AVX-512: loop IR to object files, without LLVM. Imports loop, backend."""
