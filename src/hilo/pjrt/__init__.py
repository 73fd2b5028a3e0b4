"""hilo as a plugin of PJRT, the interface through which JAX and others use compilers: what happens at compile time.

The native library (runtime/native/pjrt) calls `compiler.compile` and `compiler.load`; running programs needs no Python.
Knows no framework. Imports kept, pipeline and what is below; nothing at all when it is imported itself.
"""
