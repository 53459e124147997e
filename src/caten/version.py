"""The version of caten."""

__version__ = "0.1.0"
