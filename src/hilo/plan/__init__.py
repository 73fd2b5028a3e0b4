"""From a scheduled function to a `Program`: steps, buffers and the entry function. Imports ir, loop, kernels."""
