"""Reference semantics: the interpreter, the float64 oracle with its rounding bounds, and the comparison with it."""
