"""The functions of a C library through cffi, by their types.

cffi has two parts. One reads C declarations, in Python; to import it and to read the first ones takes 20 ms. The
other, which the modules that cffi generates import, is in C and reads types itself, but no structs. Only libraries that
pass complex numbers need the first part."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

COMPLEX = "typedef struct { float re, im; } ct_c64; typedef struct { double re, im; } ct_c128;\n"


class CLibrary:
    """A library that is loaded for as long as its `ffi` lives, which makes pointers. OSError where it cannot be."""

    def __init__(self, path: Path | str) -> None:
        import _cffi_backend as backend
        self._handle: Any = backend.load_library(str(path), backend.RTLD_NOW)
        self.ffi: Any = _types()()
        self.ffi.library = self._handle

    def with_structs(self) -> None:
        """From now on types may have complex numbers."""
        import cffi
        self.ffi = cffi.FFI()
        self.ffi.cdef(COMPLEX)
        self.ffi.library = self._handle

    def function(self, name: str, result: str, arguments: Sequence[str] = ()) -> Any:
        """A function of the library. AttributeError where it has none of this name."""
        kind = self.ffi.typeof(f"{result}(*)({', '.join(arguments) or 'void'})")
        return self._handle.load_function(kind, name)

    def text(self, name: str) -> bytes:
        """What an array of characters holds. AttributeError where the library has none of this name."""
        return bytes(self.ffi.string(self.ffi.cast("const char *", self.function(name, "void"))))


@cache
def _types() -> type:
    """cffi's second part, as a class whose objects may have attributes."""
    import _cffi_backend as backend
    return type("Types", (backend.FFI,), {})
