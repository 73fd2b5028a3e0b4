"""Custom calls: the registry of targets, what a target is told of its call, markers that mean nothing on one device.

Begin reading at registry.py. Imports ir, and the native part where a target is native code.
"""
