"""NVIDIA's run-time compiler, a library that needs no graphics card: CUDA C++ to PTX or to machine code.

Run as a program, `python -m caten.runtime.nvrtc SOURCE OUT OPTION…`: exit code 0 and the compiler's version; 1 and what
it says; 3 without one."""
from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2")


class Refused(Exception):
    """The compiler's complaints."""


def candidates() -> Iterator[str]:
    """Where the library may be: in the wheels nvidia-cuda-nvrtc… of this Python, or where the loader looks."""
    for folder in sys.path:
        yield from map(str, sorted(Path(folder or ".").glob("nvidia/*/lib/libnvrtc.so.*"), reverse=True))
    yield from NAMES


def found() -> ctypes.CDLL | None:
    """The library, if there is one."""
    for name in candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compiled(library: ctypes.CDLL, source: str, options: Sequence[str]) -> bytes:
    """PTX for a virtual architecture (`compute_80`), machine code for a real one (`sm_80`)."""
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = library.nvrtcCompileProgram(program, len(options), words)
    if status:
        raise Refused(_text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog,
                            program).rstrip(b"\0").decode("utf-8", "replace"))
    kind = "CUBIN" if any("sm_" in o for o in options) else "PTX"
    made = _text(getattr(library, f"nvrtcGet{kind}Size"), getattr(library, f"nvrtcGet{kind}"), program)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return made


def _text(measure: ctypes._NamedFuncPointer, copy: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    measure(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    copy(program, text)
    return text.raw


def main(source: str, out: str, *options: str) -> int:
    library = found()
    if library is None:
        return 3
    try:
        Path(out).write_bytes(compiled(library, Path(source).read_text("utf-8"), options))
    except Refused as problem:
        print(problem, file=sys.stderr)
        return 1
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    print(f"{major.value}.{minor.value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
