"""Operands of an operator as results of nodes: arrays and numbers beside tensors, and element types that differ."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from caten.calls import dlpack
from caten.core.dtypes import DTYPES, SPELLINGS
from caten.core.numpy_types import numpy_dtype
from caten.functions.call_keys import dtype_of

from . import huge_pages, templates
from .element_types import type_named
from .graph import Constant, Leaf, Ref, called
from .symbolic_sizes import Symbolic
from .templates import Declaration
from .tracing import made_of_sizes

_KNOWN: dict[int, tuple[Declaration, tuple[str | None, ...]]] = {}       # by id, for comparing operators takes long
Number = bool | int | float | complex
WIDE = (np.float64, np.complex128)


def operands(declared: Declaration, given: Sequence[Any]) -> list[Ref]:
    """The operands as results of nodes. Those that the operator declares with one type variable get one type: that to
    which NumPy promotes them; a number of Python, or of NumPy, has no type of its own."""
    variables = _variables(declared)
    if _are_of_one_type(variables, given):
        return list(given)
    given = [value.item() if isinstance(value, np.generic) else value for value in given]
    refs = [value if isinstance(value, Ref) or is_number(value) or isinstance(value, Symbolic) else leaf(value)
            for value in given]
    variables += (None,) * (len(refs) - len(variables))
    common = {v: common_type([r for r, own in zip(refs, variables, strict=False) if own == v])
              for v in set(variables) if v}
    found: list[Ref] = []
    for n, (r, v) in enumerate(zip(refs, variables, strict=False)):
        dtype = common[v] if v else _fixed(declared, n, r)
        if isinstance(r, Symbolic):
            found.append(of_size(r, dtype))
        elif not isinstance(r, Ref):
            found.append(converted(r, dtype))
        elif v:
            is_list = isinstance(given[n], list | tuple)    # its numbers have no type of their own
            found.append(leaf(given[n], dtype) if is_list and r.dtype != dtype else cast(r, dtype))
        else:
            found.append(r)
    return found


def _variables(declared: Declaration) -> tuple[str | None, ...]:
    """The type variable of each input, if it has one."""
    known = _KNOWN.get(id(declared))
    if known is None or known[0] is not declared:
        generic = {t.name: t for t in declared.generic}
        known = declared, tuple([generic[n].variable if n in generic else None for n in declared.inputs])
        _KNOWN[id(declared)] = known
    return known[1]


def _are_of_one_type(variables: Sequence[str | None], given: Sequence[Any]) -> bool:
    """Are all operands tensors, those of each type variable of one type? Then there is nothing to do."""
    types: dict[str, str] = {}
    for r, v in zip_longest(given, variables[:len(given)]):
        if r.__class__ is not Ref or (v is not None and types.setdefault(v, r.dtype) != r.dtype):
            return False
    return True


def cast(r: Ref, dtype: str) -> Ref:
    """Converted to an element type."""
    if r.dtype == dtype:
        return r
    if isinstance(r.node, Constant):
        return Ref(Constant(_number(r.node.value, dtype), dtype))
    template = templates.of_library("cast", [(r.dtype, r.shape)], {"dtype": DTYPES[dtype].numpy})
    return called(template, [r])[0]


def converted(value: Any, dtype: str) -> Ref:
    """A number, an array or a list of numbers, with this element type. OverflowError for an integer of Python beyond
    it."""
    if not is_number(value):
        return leaf(value, dtype)
    check_fits(value, dtype)
    return Ref(Constant(_number(value, dtype), dtype))


def of_size(size: Symbolic, dtype: str) -> Ref:
    """A number that varies, as an array without axes."""
    kind = numpy_dtype(dtype)
    return made_of_sizes(lambda n: np.asarray(n, kind), [size], (), dtype)


def is_number(value: Any) -> bool:
    """Is it a number of Python?"""
    return isinstance(value, Number) and not isinstance(value, np.generic)


def fits(value: Any, dtype: str) -> bool:
    """Is a number of Python no integer, or inside of an element type?"""
    if not isinstance(value, int) or DTYPES[dtype].kind not in ("int", "uint"):
        return True
    bounds = np.iinfo(numpy_dtype(dtype))
    return int(bounds.min) <= value <= int(bounds.max)


def nearest(value: Any, dtype: str) -> Any:
    """An integer of Python beyond an element type as the least or the greatest of the type; else the value itself."""
    if fits(value, dtype):
        return value
    bounds = np.iinfo(numpy_dtype(dtype))
    return int(bounds.max if value > 0 else bounds.min)


def check_fits(value: Any, dtype: str) -> None:
    """OverflowError for an integer of Python beyond an element type."""
    if not fits(value, dtype):
        raise OverflowError(f"the integer {value} is out of bounds for {DTYPES[dtype].numpy}")


def leaf(data: Any, dtype: Any = None, stays: bool = False) -> Ref:
    """An array, or numbers, as a node of its own; numbers of Python are float32, int64 or bool, and arrays and numbers
    of NumPy in a list keep their type. `stays`: is it a weight, which is read again and again? OverflowError for an
    integer of Python beyond `dtype`."""
    if dtype is not None and (isinstance(data, list | tuple) or is_number(data)):
        array = np.array(data, numpy_dtype(type_named(dtype)))
    elif dtype is not None:
        array = _array(data).astype(numpy_dtype(type_named(dtype)))
    elif (array := _array(data)).dtype in WIDE and not _has_wide(data):
        array = array.astype(np.float32 if array.dtype == np.float64 else np.complex64)
    name = dtype_of(array)
    if name is None:
        for size in [each for each in array.flat if isinstance(each, Symbolic)]:
            int(size)                                       # it says that the size varies
        raise TypeError(f"no tensor has elements of type {array.dtype}")
    own = huge_pages.copied(array) if stays else np.array(array, order="C")   # a later change is none of it
    own.flags.writeable = False
    return Ref(Leaf(own, name))


def _array(data: Any) -> np.ndarray:
    """What NumPy makes of it; of an array of bfloat16, which other libraries do not give it, by DLPack."""
    try:
        return np.asarray(data)
    except TypeError:
        if not hasattr(data, "__dlpack__"):
            raise
        return dlpack.array_of(data)


def _has_wide(data: Any) -> bool:
    """Is it an array or number of 64 bits a float, or a list with one? A float of Python has no type of its own."""
    if isinstance(data, list | tuple):
        return any(type(v) is not float and _has_wide(v) for v in data)
    return not is_number(data) and _array(data).dtype in WIDE


def promoted(types: Sequence[str]) -> str:
    """The type to which NumPy promotes element types. It knows none of bfloat16 beside float16 and beside integers of
    16 bits or more: there it is promoted as float32."""
    try:
        common = np.result_type(*[numpy_dtype(t) for t in types])
    except TypeError:
        common = np.result_type(*[numpy_dtype("f32" if t == "bf16" else t) for t in types])
    name = dtype_of(np.empty(0, common))
    assert name is not None
    return name


def common_type(group: Sequence[Any]) -> str:
    """The type of operands of one type variable."""
    types = list(dict.fromkeys([r.dtype for r in group if isinstance(r, Ref)]))
    numbers = [r for r in group if not isinstance(r, Ref)]
    if not types:
        return max([_own_type(v) for v in numbers], key=["bool", "i64", "f32", "c64"].index)
    dtype = types[0] if len(types) == 1 else promoted(types)
    for v in numbers:
        dtype = _beside(v, dtype)
    return dtype


def _beside(value: Number | Symbolic, dtype: str) -> str:
    """The type of a number of Python and elements of a type."""
    value = value.value() if isinstance(value, Symbolic) else value
    kind = DTYPES[dtype].kind
    if kind == "complex" or (kind == "float" and not isinstance(value, complex)):
        return dtype
    if isinstance(value, complex):
        return "c128" if dtype == "f64" or kind != "float" else "c64"
    if isinstance(value, float):
        return "f32" if kind == "bool" else "f64"
    return dtype if kind != "bool" or isinstance(value, bool) else "i64"


def _own_type(value: Number | Symbolic) -> str:
    value = value.value() if isinstance(value, Symbolic) else value
    return ("bool" if isinstance(value, bool) else "i64" if isinstance(value, int)
            else "f32" if isinstance(value, float) else "c64")


def _fixed(declared: Declaration, n: int, value: Any) -> str:
    """The type of an operand that has no type variable."""
    if isinstance(value, Ref):
        return value.dtype
    if n >= len(declared.inputs):                           # one too many, which is refused later
        return _own_type(value)
    name = declared.inputs[n]
    word = next((t.word for t in declared.generic if t.name == name), "")
    return dict(declared.types).get(name) or SPELLINGS.get(word.lower()) or _own_type(value)


def _number(value: Any, dtype: str) -> Any:
    """A number of the kind of an element type."""
    kind = DTYPES[dtype].kind
    return (bool(value) if kind == "bool" else complex(value) if kind == "complex"
            else float(value) if kind == "float" else int(value))
