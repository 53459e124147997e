"""A Python file that calls a library with numpy arrays and needs nothing but numpy and ctypes: it names the argument that does not fit."""
from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any

from ..core.dtypes import DTYPES, is_packed, is_short
from ..core.expr import Expr, Op, Var
from ..core.numpy_types import EXTENDED
from ..core.size_formula import evaluate, formula, names, python, spell
from ..render.cpu_check import NOT_HERE

CTYPES: dict[str, str] = {
    "bool": "ctypes.c_uint8", "i4": "ctypes.c_int8", "u4": "ctypes.c_uint8", "f16": "ctypes.c_uint16", "bf16": "ctypes.c_uint16",
    "f32": "ctypes.c_float", "f64": "ctypes.c_double", "c64": "_Complex64", "c128": "_Complex128",
    **{f"i{b}": f"ctypes.c_int{b}" for b in (8, 16, 32, 64)}, **{f"u{b}": f"ctypes.c_uint{b}" for b in (8, 16, 32, 64)},
}

# Names that the written file uses itself.
TAKEN = ("numpy", "ctypes", "os", "sys", "code", "max", "min", "abs", "bool", "float", "complex")

_TOP = '''\
"""{title}

Calls {shown} with numpy arrays. Written by caten; needs {needs} alone.
"""
import ctypes
import os

{extended}import numpy

{opening}
_library.{check}.restype = ctypes.c_char_p
if _library.{check}({not_here}):
    raise ImportError("{{}}: {{}}".format({library!r}, _library.{check}({not_here}).decode()))


class _Complex64(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


class _Complex128(ctypes.Structure):
    _fields_ = [("re", ctypes.c_double), ("im", ctypes.c_double)]


def _array(op, name, array, dtype, rank, order, written):
    """Refuse what the kernel cannot work on, and say which argument it is."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"{{op}}: {{name}} must be a numpy array, not {{type(array).__name__}}")
    if array.dtype != numpy.dtype(dtype):
        raise TypeError(f"{{op}}: {{name}} must have elements of type {{dtype}}, and has {{array.dtype}}")
    if array.ndim != rank:
        raise ValueError(f"{{op}}: {{name}} must have {{rank}} axes, and has the shape {{array.shape}}")
    if not array.transpose(order).flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"{{op}}: {{name}} must be contiguous and aligned, its axes from slowest to fastest {{order}}")
    if written and not array.flags.writeable:
        raise ValueError(f"{{op}}: {{name}} is written, but the given array is read-only")


def _apart(op, out_name, out, name, array):
    if numpy.may_share_memory(out, array):
        raise ValueError(f"{{op}}: {{out_name}} is written and shares memory with {{name}}")


def _same(op, what, value, expected):
    if value != expected:
        raise ValueError(f"{{op}}: {{what}} must be {{expected}}, and is {{value}}")


def _number(op, name, value, least, greatest):
    if not hasattr(value, "__index__"):
        raise TypeError(f"{{op}}: {{name}} must be an integer, not {{type(value).__name__}}")
    if not least <= value.__index__() <= greatest:
        raise ValueError(f"{{op}}: {{name}} is {{value}}, and must be from {{least}} to {{greatest}}")
    return value.__index__()


def _empty(shape, dtype, order):
    inverse = [order.index(axis) for axis in range(len(order))]
    return numpy.empty([shape[axis] for axis in order], dtype).transpose(inverse)

{packing}

def _done(op, check, code):
    if code == -1:
        raise MemoryError(f"{{op}}: out of memory")
    if code:
        check.restype = ctypes.c_char_p
        raise ValueError(f"{{op}}: {{check(code).decode()}}")
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
        told = "the OpenMP library is missing: pip install {{}}, or name its folder in LD_LIBRARY_PATH".format(_package)
        raise ImportError("{{}}; {{}}".format(problem, told)) from None
    _needed = ctypes.CDLL(_openmp)               # what the process has already is not looked for
    _library = ctypes.CDLL(_path)'''

_PACKING = '''

def _packed(array, order):
    """Elements of 4 bits as the library has them: two to a byte, the first one in the low half."""
    flat = numpy.zeros(array.size + array.size % 2, numpy.uint8)
    flat[:array.size] = numpy.ascontiguousarray(array.transpose(order)).reshape(-1).view(numpy.uint8) & 15
    return flat[0::2] | flat[1::2] << 4


def _unpack(packed, array, order):
    flat = numpy.stack([packed & 15, packed >> 4], -1).reshape(-1)[:array.size]
    signed = array.dtype == numpy.dtype("int4")
    along = array.transpose(order)
    along[...] = (((flat ^ 8) - 8).view(numpy.int8) if signed else flat).astype(array.dtype).reshape(along.shape)
'''


def wrapper(manifest: Mapping[str, Any], library: str) -> str:
    """The text of a module with one function per operator of the library, a file beside the module."""
    ops = manifest.get("ops") or [manifest]
    title = ", ".join([op["op"] for op in ops]) + "."
    used = {a["dtype"] for op in ops for a in op["arguments"]}
    extended = bool(used & EXTENDED)
    shown = library.replace("\\", "\\\\").replace('"', '\\"')
    opening = (_OPENING_WITH_OPENMP if OPENMP & {*manifest["libraries"]} else _OPENING).format(library=library)
    top = _TOP.format(title=title, library=library, shown=shown, opening=opening, check=ops[0]["symbols"]["check"], not_here=NOT_HERE,
                      needs="numpy and ml_dtypes" if extended else "numpy",
                      extended="import ml_dtypes  # its types are numpy's by name from here on\n" if extended else "",
                      packing=_PACKING if any(map(is_packed, used)) else "")
    return "\n\n".join([top, *[_function(op) for op in ops]])


def _function(op: Mapping[str, Any]) -> str:
    """The function of one operator."""
    spelled = {a["name"]: _name(a["name"]) for a in op["arguments"]}
    tensors = [a for a in op["arguments"] if a["kind"] == "tensor"]
    inputs = [a for a in op["arguments"] if a["kind"] in ("tensor", "scalar") and a["direction"] != "out"]
    outs = [a for a in tensors if a["direction"] == "out"]
    sizes = [a["name"] for a in op["arguments"] if a["kind"] == "size"]
    lines, known = _sizes(op, [a for a in tensors if a["direction"] != "out"], spelled)
    keywords = [spelled[s] for s in sizes if s not in known]
    given = [*[spelled[a["name"]] for a in inputs], *(["*"] if keywords or outs else []), *keywords, *[f"{spelled[a['name']]}=None" for a in outs]]
    text = [f"def {_name(op['op'])}({', '.join(given)}):", f"    {_docstring(op)}"]
    name = op["op"]
    for a in inputs:
        text += [f"    {_check(name, a, spelled)}"] if a["kind"] == "tensor" else _scalar(name, a, spelled)
    text += [f"    {s} = _number({name!r}, {s!r}, {s}, 0, {1 << 40})" for s in keywords]
    text += [f"    {line}" for line in lines]
    for a in outs:
        shape = "(" + "".join([python(formula(e), spelled.__getitem__) + ", " for e in a["shape"]]) + ")"
        out = spelled[a["name"]]
        text += [f"    if {out} is None:", f"        {out} = _empty({shape}, {DTYPES[a['dtype']].numpy!r}, {a['order']!r})",
                 f"    {_check(name, a, spelled)}", f"    _same({name!r}, \"the shape of {a['name']}\", {out}.shape, {shape})"]
    for n, a in enumerate(tensors):
        for m, b in enumerate(tensors):
            if a["direction"] != "in" and n != m and (b["direction"] == "in" or m < n):
                text.append(f"    _apart({name!r}, {a['name']!r}, {spelled[a['name']]}, {b['name']!r}, {spelled[b['name']]})")
    bytes_of = {a["name"]: f"_{spelled[a['name']].strip('_')}_packed" for a in tensors if is_packed(a["dtype"])}
    text += [f"    {bytes_of[a['name']]} = _packed({spelled[a['name']]}, {a['order']!r})" for a in tensors if a["name"] in bytes_of]
    passed = [_passed(a, op, spelled | bytes_of if a["kind"] == "tensor" else spelled) for a in op["arguments"]]
    text.append(f"    code = _library.{op['symbols']['call']}({', '.join(passed)})")
    text.append(f"    _done({name!r}, _library.{op['symbols']['check']}, code)")
    text += [f"    _unpack({bytes_of[a['name']]}, {spelled[a['name']]}, {a['order']!r})"
             for a in tensors if a["name"] in bytes_of and a["direction"] != "in"]
    returned = [spelled[n] for n in op["outputs"]]
    text.append(f"    return {', '.join(returned)}")
    return "\n".join(text) + "\n"


def _name(name: str) -> str:
    """A Python identifier: keywords of Python, and the names that this file uses, get an underscore."""
    clean = "".join([c if c.isalnum() else "_" for c in name])
    clean = clean if not clean[:1].isdigit() else "_" + clean
    return clean + "_" if keyword.iskeyword(clean) or clean in TAKEN or clean.startswith("_") else clean


def _docstring(op: Mapping[str, Any]) -> str:
    text = f"{op['documentation'].strip() or op['op']}\n\n" + "\n".join(
        [f"{a['name']}: {DTYPES[a['dtype']].numpy}[{', '.join([str(e) for e in a['shape']])}], {a['direction']}"
         for a in op["arguments"] if a["kind"] in ("tensor", "scalar")])
    clean = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\n    ").replace("    \n", "\n")
    return f'"""{clean}\n    """'


def _check(op: str, a: Mapping[str, Any], spelled: Mapping[str, str]) -> str:
    return (f"_array({op!r}, {a['name']!r}, {spelled[a['name']]}, {DTYPES[a['dtype']].numpy!r}, {len(a['shape'])}, {a['order']!r},"
            f" {a['direction'] != 'in'})")


def _scalar(op: str, a: Mapping[str, Any], spelled: Mapping[str, str]) -> list[str]:
    """Convert a number to what the call takes."""
    dtype, name = DTYPES[a["dtype"]], spelled[a["name"]]
    match dtype.kind:
        case "int" | "uint":
            return [f"    {name} = _number({op!r}, {a['name']!r}, {name}, {dtype.least}, {dtype.greatest})"]
        case "complex":
            return [f"    {name} = complex({name})", f"    {name} = {CTYPES[a['dtype']]}({name}.real, {name}.imag)"]
        case "float" if is_short(dtype.name):
            return [f"    {name} = int(numpy.asarray(float({name})).astype({dtype.numpy!r}).view(numpy.uint16))"]
        case kind:
            return [f"    {name} = {'bool' if kind == 'bool' else 'float'}({name})"]


def _sizes(op: Mapping[str, Any], arrays: list[Mapping[str, Any]], spelled: Mapping[str, str]) -> tuple[list[str], set[str]]:
    """Statements that compute the sizes from the shapes and the integer scalars, and compare what is left; and the sizes that they find."""
    axes = [(formula(e), f"{spelled[a['name']]}.shape[{axis}]", f"axis {axis} of {a['name']}") for a in arrays for axis, e in enumerate(a["shape"])]
    axes.sort(key=lambda row: not isinstance(row[0], Var))
    lines = [f"{spelled[n]} = {v}" for n, v in op["binds"].items()]
    numbers = [a["name"] for a in op["arguments"] if a["kind"] == "scalar" and DTYPES[a["dtype"]].kind in ("int", "uint")]
    known, rest = {*op["binds"], *numbers}, axes
    progress = True
    while progress:
        progress, later = False, []
        for expr, extent, where in rest:
            unknown = [n for n in names(expr) if n not in known]
            if not unknown:
                lines.append(f"_same({op['op']!r}, {_says(expr, where)!r}, {extent}, {python(expr, spelled.__getitem__)})")
            elif (inverse := _inverse(expr, extent, known, spelled)) is not None:
                lines.append(f"{spelled[inverse[0]]} = {inverse[1]}")
                known.add(inverse[0])
                if not isinstance(expr, Var):
                    lines.append(f"_same({op['op']!r}, {_says(expr, where)!r}, {extent}, {python(expr, spelled.__getitem__)})")
            else:
                later.append((expr, extent, where))
                continue
            progress = True
        rest = later
        for condition in [formula(c) for c in op["conditions"]]:
            if isinstance(condition, Op) and condition.fn == "eq":
                for a, b in (condition.args, condition.args[::-1]):
                    if isinstance(a, Var) and a.name not in known and set(names(b)) <= known:
                        lines.append(f"{spelled[a.name]} = {python(b, spelled.__getitem__)}")
                        known.add(a.name)
                        progress = True
    late = [f"_same({op['op']!r}, {_says(e, where)!r}, {extent}, {python(e, spelled.__getitem__)})" for e, extent, where in rest]
    return [*lines, *late], known


def _says(expr: Expr, where: str) -> str:
    return f"{where}, {spell(expr)}," if names(expr) else where


def _inverse(expr: Expr, value: str, known: set[str], spelled: Mapping[str, str]) -> tuple[str, str] | None:
    """The one unknown size of a formula and the Python text of what it must be; a division that leaves a rest shows in the comparison after it."""
    unknown = [n.name for n in expr.walk() if isinstance(n, Var) and n.name not in known]
    if len(unknown) != 1:
        return None
    while not isinstance(expr, Var):
        if not isinstance(expr, Op) or len(expr.args) != 2:
            return None
        left, right = expr.args
        on_the_left = unknown[0] in names(left)
        other = python(right if on_the_left else left, spelled.__getitem__)
        match expr.fn:
            case "add":
                value = f"({value} - {other})"
            case "sub":
                value = f"({value} + {other})" if on_the_left else f"({other} - {value})"
            case "mul" if not (names(right if on_the_left else left) or evaluate(right if on_the_left else left, {}) == 0):
                value = f"({value} // {other})"
            case _:
                return None
        expr = left if on_the_left else right
    return unknown[0], value


def _passed(a: Mapping[str, Any], op: Mapping[str, Any], spelled: Mapping[str, str]) -> str:
    """An argument as ctypes takes it."""
    name = spelled[a["name"]]
    match a["kind"]:
        case "tensor":
            return f"ctypes.c_void_p({name}.ctypes.data)"
        case "scalar" if DTYPES[a["dtype"]].kind == "complex":
            return name
        case "stride":
            array, axis = next((b, axis) for b in op["arguments"] for axis, s in enumerate(b["strides"] or ()) if s == a["name"])
            return f"ctypes.c_int64({spelled[array['name']]}.strides[{axis}] // {DTYPES[array['dtype']].bytes})"
        case _:
            return f"{CTYPES[a['dtype']]}({name})"
