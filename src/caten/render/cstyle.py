"""Loop programs as readable C11: one translation unit with the helpers it needs, the kernels, and the entry points of
the C ABI.

A runtime for a C-family language derives from `CStyle` and overrides its tables.
"""
from __future__ import annotations

from ..loop.statements import LoopProgram
from .c_tables import CTables


class CStyle(CTables):
    """The tables of spellings, and `render`."""

    def render(self, *programs: LoopProgram) -> str:
        """One translation unit for one program, or for a library of several."""
        from .translation_unit import translation_unit  # a library that is in the cache is loaded without
        return translation_unit(self, *programs)
