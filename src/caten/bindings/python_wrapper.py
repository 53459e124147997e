"""The wrapper: a Python file that calls a library as caten does, and needs nothing but numpy."""
from __future__ import annotations

import builtins
import keyword
from collections.abc import Container, Mapping
from textwrap import indent
from typing import Any

from ..calls.call_arguments import CallArguments, keyword_sizes
from ..core.dtypes import DTYPES
from ..core.numpy_types import EXTENDED
from ..render.cpu_check import UNSUPPORTED_CPU
from .wrapper_support import support

CTYPES: dict[str, str] = {
    "bool": "ctypes.c_uint8", "i4": "ctypes.c_int8", "u4": "ctypes.c_uint8", "f16": "ctypes.c_uint16",
                          "bf16": "ctypes.c_uint16",
    "f32": "ctypes.c_float", "f64": "ctypes.c_double", "c64": "_Complex64", "c128": "_Complex128",
    **{f"i{b}": f"ctypes.c_int{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"ctypes.c_uint{b}" for b in (8, 16, 32, 64)},
}

# Names of modules in the written file.
TAKEN = ("numpy", "ml_dtypes", "ctypes", "os", "sys", "annotations")

_TOP = '''\
"""{title}

Calls {shown} with numpy arrays, as caten calls it. Written by caten; needs Python 3.10, {needs} and no caten.
"""
from __future__ import annotations

import ctypes
import os
{extended}
{opening}
_library.{check}.restype = ctypes.c_char_p
if _library.{check}({lacks}):
    raise ImportError("{{}}: {{}}".format({library!r}, _library.{check}({lacks}).decode()))


class _Complex64(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


class _Complex128(ctypes.Structure):
    _fields_ = [("re", ctypes.c_double), ("im", ctypes.c_double)]


def _support():
    """The functions of caten that check arguments, find sizes, allocate outputs and copy arrays."""
    import math
    import operator
    import re
    import struct
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from functools import cache
    from typing import Any

    import numpy as np

{support}

    return CallArguments


_CallArguments = _support()


def _operator(op, *types):
    """A function that calls one operator, from its description. `types`: those of its arguments in ctypes."""
    arguments, run, check = _CallArguments(op), _library[op["symbols"]["call"]], _library[op["symbols"]["check"]]
    check.restype = ctypes.c_char_p

    def call(given, optional, named):
        given_by_name = {{name: value for name, value in optional.items() if value is not None}}
        prepared = arguments.prepare(*arguments.arranged(given, given_by_name | named))
        passed = [v.ctypes.data if hasattr(v, "ctypes") else v for v in prepared.work]
        code = run(*[kind(*v) if isinstance(v, tuple) else kind(v)
                     for kind, v in zip(types, (*passed, *prepared.tail))])
        return arguments.finished(prepared, code, lambda row: check(row).decode())
    return call

'''

OPENMP = {"omp", "iomp5"}       # the OpenMP libraries of wheels, which are in no folder of the loader's
_OPENING = "_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))"
_OPENING_WITH_OPENMP = '''\
import sys

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r})
try:
    _library = ctypes.CDLL(_path)
except OSError as problem:
    if "libiomp5." in str(problem):
        _package, _openmp = "intel-openmp", os.path.join(sys.prefix, "lib", "libiomp5.so")
    else:
        _package, _openmp = "cmeel-libomp", ""
        for _folder in sys.path:
            if os.path.isfile(os.path.join(_folder, "cmeel.prefix", "lib", "libomp.so")):
                _openmp = os.path.join(_folder, "cmeel.prefix", "lib", "libomp.so")
    if "omp" not in str(problem) or not os.path.isfile(_openmp):
        missing = "the OpenMP library is missing: pip install {{}}, or name its folder in LD_LIBRARY_PATH"
        raise ImportError("{{}}; {{}}".format(problem, missing.format(_package))) from None
    _needed = ctypes.CDLL(_openmp)               # what the process has already is not looked for
    _library = ctypes.CDLL(_path)'''


def wrapper(manifest: Mapping[str, Any], library: str) -> str:
    """The text of a module with one function per operator of the library, a file beside the module."""
    ops = manifest.get("ops") or [manifest]
    extended = bool({a["dtype"] for op in ops for a in op["arguments"]} & EXTENDED)
    opening = (_OPENING_WITH_OPENMP if OPENMP & {*manifest["libraries"]} else _OPENING).format(library=library)
    top = _TOP.format(title=", ".join([op["op"] for op in ops]) + ".", library=library,
                      shown=library.replace("\\", "\\\\").replace('"', '\\"'), opening=opening,
                      check=ops[0]["symbols"]["check"], lacks=UNSUPPORTED_CPU, support=indent(support(), "    "),
                      needs="numpy, ml_dtypes" if extended else "numpy",
                      extended="\nimport ml_dtypes  # its types are numpy's by name from here on\n" if extended else "")
    table = f"\n_calls = {{\n{''.join([_described(op) for op in ops])}}}\n"
    return "\n\n".join([top + table, *[_function(op) for op in ops]])


def _described(op: Mapping[str, Any]) -> str:
    """An entry of the table of operators."""
    kept = ("op", "symbols", "outputs", "binds", "conditions", "scratch_bytes")
    table = "".join([f"        {k!r}: {op[k]!r},\n" for k in kept if k in op])
    arguments = "".join([f"            {a!r},\n" for a in op["arguments"]])
    types = ", ".join(["ctypes.c_void_p" if a["kind"] == "tensor" else CTYPES[a["dtype"]] for a in op["arguments"]])
    return f"    {op['op']!r}: _operator({{\n{table}        'arguments': [\n{arguments}        ],\n    }}, {types}),\n"


def _function(op: Mapping[str, Any]) -> str:
    """The function of one operator: its parameters have the names of the spec as far as Python allows."""
    arguments = CallArguments(op)
    inputs, outs, sizes = [a["name"] for a in arguments.inputs], arguments.outs, keyword_sizes(arguments)
    optional = [*[a["name"] for a in outs], *sizes]
    parameters = [*map(_name, inputs), *[f"{_name(a['name'])}=None" for a in outs], *["*"][:len(sizes)],
                  *[f"{_name(n)}=None" for n in sizes], "**_named"]
    taken = {*TAKEN, *dir(builtins)}
    return (f"def {_name(op['op'], taken)}({', '.join(parameters)}):\n    {_docstring(op, sizes)}\n"
            f"    return _calls[{op['op']!r}](({', '.join(map(_name, inputs))}{',' * (len(inputs) == 1)}),"
            f" {{{', '.join([f'{n!r}: {_name(n)}' for n in optional])}}}, _named)\n")


def _name(name: str, taken: Container[str] = ()) -> str:
    """A Python identifier: a keyword of Python, and a name that is taken, gets an underscore."""
    clean = "".join([c if c.isalnum() else "_" for c in name])
    clean = clean if not clean[:1].isdigit() else "_" + clean
    return clean + "_" if keyword.iskeyword(clean) or clean in taken or clean.startswith("_") else clean


def _docstring(op: Mapping[str, Any], keywords: list[str]) -> str:
    text = f"{op['documentation'].strip() or op['op']}\n\n" + "\n".join(
        [f"{a['name']}: {DTYPES[a['dtype']].numpy}[{', '.join([str(e) for e in a['shape']])}], {a['direction']}"
         for a in op["arguments"] if a["kind"] in ("tensor", "scalar")] + [f"{n}: size, by keyword" for n in keywords])
    clean = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\n    ").replace("    \n", "\n")
    return f'"""{clean}\n    """'
