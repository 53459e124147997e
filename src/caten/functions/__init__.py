"""Operators that are compiled for the arguments of their calls: Python functions with `@caten.op`, which are read and
never executed, and generic specs."""
