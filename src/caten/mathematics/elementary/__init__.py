"""Elementary functions for vectors in float32 and float64, expanded into arithmetic, selects and bit operations.

The expansions replace one call of the C library per lane. Scalars use them too if a runtime's table has no `exp` or
`log`. The precise expansion, the default, keeps to the error in the operator's row. The fast one has an error of at
most 3.5 ulps, and may flush results below twice the smallest normal number to 0.

These cases call the C library lane by lane: functions without an expansion; `sin`, `cos` and `tan` if an element
exceeds the limit of the expansion (2^15 for float32, 2^28 for float64); and most float64 functions on a machine without
FMA. Scalars call the C library. So an element in the tail of an array may differ in the last place from the same
element in a vector.

The renderer writes each expansion as an inline function, so that schedules and loops stay readable.
`elementary_table.rules()` gives the expansions as rewrite rules.
"""
