"""Elementary functions over arithmetic, choice by lane and bits alone, in float32 and float64: what vectors compute
instead of calling a C library once for each lane, and scalars where a runtime's table has no `exp` or `log`.

The precise form, the default, is within the error of the operator's row; the fast one is at most 3.5 units in the last
place off, and may be 0 for what is below twice the least normal number. A function that is not among them calls the C
library lane by lane, and so do: `sin`, `cos`, `tan` of a vector that holds an element beyond the form's limit (2^15 for
float32, 2^28 for float64); in float64 most functions on a machine without fused multiply-add. Scalars call the C
library, so an element at the end of an array may differ in the last place from what it would be in a vector.
`core.rewrite` with `table.rules()` expands a function inside an expression; the renderer writes each form as an inline
function, so that a schedule and the loops stay readable.
"""
