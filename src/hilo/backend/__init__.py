"""From loop IR to code: LLVM text, objects, loading them, C text; and `Target`, what a machine can do.

May import loop and ir.dtypes of hilo, and llvmlite (inside functions, or in cpu.py and jit.py only).
"""
