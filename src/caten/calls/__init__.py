"""The arguments of a call: numpy arrays and scalars, checked and prepared for a C function. Wrappers get a copy of this
code."""
