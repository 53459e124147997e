"""The arguments of a call: arrays and scalars, checked and prepared for a C function. Wrappers contain this code."""
