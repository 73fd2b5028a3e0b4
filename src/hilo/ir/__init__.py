"""The tensor IR: types, ops, functions, modules. Imports nothing of hilo but errors."""
