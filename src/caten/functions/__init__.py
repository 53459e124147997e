"""Operators written as Python functions: `@caten.op`. A function is read, never executed; each call is compiled for the
types and ranks of its arguments."""
