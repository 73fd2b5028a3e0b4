"""Kernels of convolutions in the layout [b, 0, f]x[0, i, o]->[b, 0, f]. Imports ops, kernels."""

from __future__ import annotations

from hilo.kernels.convolution_direct import lower

__all__ = ["lower"]
