"""caten: a gcc-style compiler for tensor operators."""

__version__ = "0.1.0"
