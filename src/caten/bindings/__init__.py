"""What is generated beside the C source: a header, a C example, a Python wrapper, and entry points for CPython."""
