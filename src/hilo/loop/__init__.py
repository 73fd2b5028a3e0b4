"""The loop IR: nodes, builder, index algebra, math. Imports only ir.dtypes and ir.types of hilo."""
