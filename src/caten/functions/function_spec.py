"""The spec that a function stands for: its signature for the types and ranks of a call, and its body."""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import argument_checks
from ..core.dtypes import is_float, is_integer
from ..core.text import show
from ..errors import Place
from ..frontend.returned_types import returned_types
from ..frontend.spec import composites_of
from ..frontend.spec_files import SpecText
from ..frontend.toml_positions import Path
from ..options import Options
from .body_text import BodyText
from .call_keys import as_array, dtype_of
from .function_reader import Function, fail, is_constant, spelled
from .type_annotations import ArrayType, ElementType, annotated

WEAK = (float, int, bool)                        # of Python: numbers whose type the arrays decide
RESULT = "result"

Given = Mapping[str, Any]


def spec_of(function: Function, given: Given, options: Options) -> SpecText:
    """The spec for arguments with these types and ranks, and these equal extents. `given`: by parameter."""
    known = dict(_known(function, given))
    number = _number_types([dtype for each in known.values() if (dtype := _element_type(each)) is not None])
    sizes, arrays, body = _Sizes(function), dict[str, str](), BodyText()
    for name, kind in known.items():
        if isinstance(kind, ArrayType):
            sizes.know(kind, given.get(name))
    for name, kind in known.items():
        match kind:
            case ArrayType():
                arrays[name] = kind.declaration(name)
            case np.ndarray():
                arrays[name] = f"{name}{{{_dtype(function, name, kind)}}}[{sizes.shape(kind.shape)}]"
            case ElementType(name=dtype):
                arrays[name] = f"{name}{{{dtype}}}[]"
            case type():
                arrays[name] = f"{name}{{{number[kind]}}}[]"
            case _:
                at = function.places[name]
                body.add(f"{name} = {spelled(_constant(function, name, given.get(name)))}", at.file, at.line)
    for text, origin in zip(function.body.lines, function.body.origins, strict=True):
        body.add(text, *origin)
    # A number that the body changes is its own: `a += 1` gives a name another value.
    changed = [name for name in arrays if name in function.changed and isinstance(known[name], ArrayType | np.ndarray)]
    spec = _Spec(function, arrays, changed, body)
    before = len(changed) if function.returns_first(changed) else 0     # what it returns of them is in their arrays
    if function.returned is None or (function.returned and function.returned <= before):
        return spec.text(())
    wanted = function.annotations.get("return", inspect.Parameter.empty)
    parts = getattr(wanted, "__args__", None) if not annotated(wanted) else None
    declared = [annotated(part) for part in parts or (wanted,)]
    if len(declared) == function.returned:
        declared = declared[before:]                         # the others are parameters, with annotations of their own
    written = function.returned - before if function.returned else len(declared)
    if len(declared) == written and all(isinstance(d, ArrayType) for d in declared):
        return spec.text([d.declaration(name) for d, name in zip(declared, _result_names(function, written),
                                                                 strict=True) if isinstance(d, ArrayType)])
    probe = spec.text([f"{name}{{f64}}[]" for name in _result_names(function, 1)])
    (composite, *_), composites = composites_of(probe, options)
    found = returned_types(composite, composites)[before:]
    return spec.text([f"{name}{{{dtype}}}[{' '.join([show(extent) for extent in shape])}]"
                      for name, (dtype, shape) in zip(_result_names(function, len(found)), found, strict=True)])


def _number_types(dtypes: Sequence[str]) -> dict[type, str]:
    """The element types of Python's numbers: those of the arrays, as in NumPy."""
    floats, integers = {d for d in dtypes if is_float(d)}, {d for d in dtypes if is_integer(d)}
    return {float: floats.pop() if len(floats) == 1 else "f64", int: integers.pop() if len(integers) == 1 else "i64",
            bool: "bool"}


def _result_names(function: Function, count: int) -> list[str]:
    """Names for what is returned, which nothing else has."""
    taken = {*function.names, *function.places}
    base = RESULT
    while any(name.startswith(base) for name in taken):
        base += "_"
    return [base] if count == 1 else [f"{base}{n}" for n in range(count)]


def _known(function: Function, given: Given) -> Iterator[tuple[str, Any]]:
    """What is known of each parameter: its annotation, the type of a Python number, an array, or None for what is no
    array and no number."""
    for p in function.parameters:
        said = function.annotations.get(p.name)
        known = annotated(said)
        if known is not None:
            yield p.name, known
        elif p.kind is p.KEYWORD_ONLY:
            yield p.name, None
        elif said in WEAK:
            yield p.name, said
        elif p.name in given:
            yield p.name, _of_value(function, p.name, given[p.name])
        else:
            fail("E673", f"the type of '{p.name}' is not known before the first call", function.places[p.name],
                 f'annotate it: {p.name}: caten.f32["M N"]; or ask for the spec of a call')


def _constant(function: Function, name: str, value: Any) -> Any:
    """The value of a parameter that is known when the kernel is compiled."""
    value = value.item() if isinstance(value, np.generic) else value
    if not is_constant(value):
        fail("E673", f"'{name}' is {argument_checks.described(value)}; what is known when the kernel is compiled is a "
             "number, a text or a tuple", function.places[name])
    return value


def _of_value(function: Function, name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        return ElementType(_dtype(function, name, value))
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind
    array = as_array(value)
    if array is None:
        fail("E673", f"'{name}' is {argument_checks.described(value)}; a kernel takes arrays and numbers",
             function.places[name],
             "what is known when the kernel is compiled, such as an axis, is a parameter after '*'")
    return array


def _element_type(known: Any) -> str | None:
    """The element type of an array; None for what is none."""
    return known.dtype if isinstance(known, ArrayType) else dtype_of(known) if isinstance(known, np.ndarray) else None


def _dtype(function: Function, name: str, value: Any) -> str:
    found = dtype_of(value)
    if found is None:
        fail("E673", f"'{name}' has elements of type {value.dtype}, which no kernel takes", function.places[name])
    return found


class _Sizes:
    """Names of extents. Equal extents have one name, and an extent of 1 is the number."""

    def __init__(self, function: Function) -> None:
        self.names: dict[int, str] = {}
        self.taken = {*function.names, *function.places}

    def know(self, kind: ArrayType, value: Any) -> None:
        """Learn the names that an annotation gives to the extents of an argument."""
        array = None if value is None else as_array(value)
        words = kind.shape.replace(",", " ").split()
        self.taken.update(words)
        if array is not None and len(words) == array.ndim:
            for word, extent in zip(words, array.shape, strict=True):
                if re.fullmatch(r"[A-Za-z_]\w*", word):
                    self.names.setdefault(extent, word)

    def shape(self, extents: Sequence[int]) -> str:
        return " ".join([self.name(extent) for extent in extents])

    def name(self, extent: int) -> str:
        if extent == 1:
            return "1"
        if extent not in self.names:
            n = 0
            while f"N{n}" in self.taken:
                n += 1
            self.names[extent] = f"N{n}"
            self.taken.add(f"N{n}")
        return self.names[extent]


class _Spec:
    """A spec as TOML, with places in the file of the function."""

    def __init__(self, function: Function, arrays: Mapping[str, str], changed: Sequence[str], body: BodyText) -> None:
        self.function, self.arrays, self.changed, self.body = function, arrays, changed, body

    def text(self, results: Sequence[str]) -> SpecText:
        """The spec with these declarations of what is returned."""
        f = self.function
        outputs = [*self.changed, *results]
        if not outputs:
            fail("E674", f"'{f.name}' returns nothing, and changes no parameter", f.place,
                 "return the result, or store it into the elements of a parameter")
        lines = ["[composite]", f"name = {_quoted(f.name)}"]
        lines += [f"documentation = {_long(f.doc)}"] if f.doc else []
        lines += [f"inputs = [{', '.join([_quoted(text) for text in self.arrays.values()])}]",
                  f"outputs = [{', '.join([_quoted(text) for text in outputs])}]", "", "[implementation]",
                  'lang = "python"', f"code = {_long(self.body.text)}", ""]
        places: dict[Path, Any] = {("implementation", "code"): self.body.where, ("composite", "name"): _at(f.place),
                                   ("composite",): _at(f.place), ("implementation",): _at(f.place),
                                   ("composite", "outputs"): _at(f.place), ("composite", "inputs"): _at(f.place)}
        for n, name in enumerate(self.arrays):
            places["composite", "inputs", n] = _at(f.places[name])
        for n, text in enumerate(outputs):
            places["composite", "outputs", n] = _at(f.places.get(text, f.place))
        return SpecText(f.file, "\n".join(lines), "toml", places=places)


def _at(place: Place) -> Any:
    return lambda offset: place


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _long(text: str) -> str:
    """A text of several lines as TOML, as it is if it can be."""
    if "'''" not in text and "\r" not in text:
        return f"'''\n{text}\n'''"
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\n{escaped}\n"""'
