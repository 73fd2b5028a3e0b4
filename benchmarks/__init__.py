"""Benchmarks: `python -m benchmarks run`. Modules come from the shared benchmark data and from benchmarks/modules."""
