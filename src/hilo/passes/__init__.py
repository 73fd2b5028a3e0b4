"""Passes over the tensor IR: Function -> Function (the same object back: nothing changed), one a file."""
