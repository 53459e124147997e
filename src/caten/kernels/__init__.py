"""Kernels that were built before, found by the structure of the operator before anything is scheduled."""
