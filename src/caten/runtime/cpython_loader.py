"""Makes the function by which Python calls an operator directly (`direct`) from what its library holds."""
from __future__ import annotations

import sys
from collections.abc import Callable as Function
from functools import cache
from typing import Any

from ..bindings.cpython import (
    ALIGNED,
    COLUMN_MAJOR,
    ELEMENTS,
    EXTENDED,
    FUNCTIONS,
    ROW_MAJOR,
    WRITEABLE,
    inputs_of,
)
from ..calls import array_arguments
from ..core.dtypes import DTYPES
from ..core.numpy_types import numpy_dtype
from .library import Library
from .manifest import Manifest

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02


def attached(library: Library, op: Manifest, long_way: Function[..., Any],
             failure: Function[..., Any]) -> Function[..., Any] | None:
    """A function that calls the operator with what `long_way` takes, and leaves to that what is not simply right;
    `failure(code, …)`, with the same arguments, raises what a result of the kernel other than 0 means. None where the
    library or this Python has no such thing."""
    direct = library.entries[op["op"]].direct
    parts = _python() if direct else None
    if parts is None:
        return None
    import ctypes
    ffi = library.ffi
    library.attach(ffi.new("void *[]", [ffi.cast("void *", p) for p in (*parts, *_extended())]))
    outs = [a for a in op["arguments"] if a["kind"] == "tensor" and a["direction"] == "out"]
    given = [a["name"] for a in inputs_of(op)] + (["out"] if len(outs) == 1 else [])
    makers = [_maker(a, op["op"]) for a in outs]
    counts = [len(group) for group in op.get("any_axes", {}).values()]
    # The tuple keeps the library loaded for as long as the function lives.
    self = (long_way, failure, tuple([sys.intern(n) for n in given]), *counts, *makers, library)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    made: Function[..., Any] = make(ctypes.addressof(_definition(int(ffi.cast("intptr_t", direct)))), self, None)
    return made


def _maker(argument: array_arguments.Argument, op: str) -> Function[..., Any]:
    """A function that makes an output of these extents."""
    import numpy as np
    if list(argument["order"]) != sorted(argument["order"]):
        return lambda *shape: array_arguments.empty(shape, argument, op)
    empty, dtype = np.empty, numpy_dtype(argument["dtype"])

    def made(*shape: int) -> Any:
        try:
            return empty(shape, dtype)
        except (MemoryError, ValueError):
            return array_arguments.empty(shape, argument, op)
    return made


@cache
def _python() -> list[int] | None:
    """What the function `attach_symbol` of a library takes; None where Python is not CPython, has not all functions, or
    where arrays do not lie in memory as expected."""
    import ctypes

    import numpy as np
    try:
        functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in FUNCTIONS]
    except AttributeError:
        return None
    if not _lie_as_expected(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.int64, "F"), np.zeros(0, bool)):
        return None
    scalars = [np.dtype(DTYPES[e].numpy).type for e in ELEMENTS]
    if not all(map(_lies_behind_its_head, scalars)):
        return None
    every = [np.dtype(letter) for letter in np.typecodes["All"]]
    elements = [sum({1 << t.num for t in every if t.name == name}) for name in (DTYPES[e].numpy for e in ELEMENTS)]
    # The types live for ever.
    return [*functions, id(np.ndarray), id(float), id(int), object.__basicsize__, *elements,
            *map(id, scalars)]


def _extended() -> list[int]:
    """The numbers of ml_dtypes' types in numpy. Where it is not imported, there are no arrays of them."""
    import numpy as np
    ours = sys.modules.get("ml_dtypes")
    return [-1 if ours is None else np.dtype(getattr(ours, DTYPES[name].numpy)).num for name in EXTENDED]


def _lies_behind_its_head(kind: Any) -> bool:
    """Does the value of one of numpy's numbers lie there?"""
    import ctypes
    one = kind(1)
    return bool(ctypes.string_at(id(one) + object.__basicsize__, one.nbytes) == one.tobytes())


def _lie_as_expected(*given: Any) -> bool:
    """Is the memory of arrays, and of their element types, what `direct` reads there?"""
    import ctypes

    class Array(ctypes.Structure):
        _fields_ = (("data", ctypes.c_void_p), ("axes", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                    ("strides", ctypes.c_void_p), ("base", ctypes.c_void_p), ("element", ctypes.c_void_p),
                    ("flags", ctypes.c_int))

    class Element(ctypes.Structure):
        _fields_ = (("type", ctypes.c_void_p), ("kind", ctypes.c_char), ("letter", ctypes.c_char),
                    ("order", ctypes.c_char),
                    ("reserved", ctypes.c_char), ("number", ctypes.c_int))
    head = object.__basicsize__

    def lies(array: Any) -> bool:
        dtype, flags = array.dtype, array.flags
        found, element = Array.from_address(id(array) + head), Element.from_address(id(dtype) + head)
        known = {ROW_MAJOR: flags.c_contiguous, COLUMN_MAJOR: flags.f_contiguous, ALIGNED: flags.aligned,
                 WRITEABLE: flags.writeable}
        return (ctypes.c_void_p.from_address(id(array) + head - ctypes.sizeof(ctypes.c_void_p)).value == id(type(array))
                and (found.data, found.axes, found.element) == (array.ctypes.data, array.ndim, id(dtype))
                and tuple(found.shape[:array.ndim]) == array.shape
                and all(bool(found.flags & flag) == is_set for flag, is_set in known.items())
                and (element.kind, element.order, element.number) == (dtype.kind.encode(), dtype.byteorder.encode(),
                                                                      dtype.num))
    return all(map(lies, given))


@cache
def _definition(function: int) -> Any:
    """What Python wants to know of a C function, its PyMethodDef. It reads this until the last reference to what it
    made is gone, which may be after the library is, and when Python ends after this module is; so it is never freed,
    one for every address."""
    import ctypes

    class Definition(ctypes.Structure):
        _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                    ("doc", ctypes.c_char_p))
    made = Definition(b"operator", function, METH_FASTCALL | METH_KEYWORDS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made
