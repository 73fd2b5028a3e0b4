"""Demonstrations that ship with hilo: `hilo demo NAME`. They use only the public face."""
