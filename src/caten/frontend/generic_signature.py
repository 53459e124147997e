"""Generic signatures: type variables, `~` for any number of axes, attributes, and outputs whose shape follows.

    A{T}[~ M K], B{T}[~ K N] -> C{T}[~ M N], attributes = ["axis = -1"], Y{T}[...]

A spec with them stands for one operator for each `Instance`: the element types, the axes of `~`, and the values of the
attributes. As in NumPy, the axes that `~` stands for are aligned at the last one, and an axis of extent 1 is repeated.
Without an instance, type variables are float32, `~` is one axis, and attributes have their defaults.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tomli

from ..core.dtypes import DTYPES, SPELLINGS
from ..errors import CatenError, Place, did_you_mean, error
from ..frozen import frozen
from ..options import Instance

Given = tuple[str, tuple[int, ...]]                        # the element type and the shape of an argument
VARIABLE = re.compile(r"[A-Z]\d?\Z")                       # a type variable: T, U, T1
# The class words: which kinds of element types, what these are called, and the type without an instance.
CLASSES: dict[str, tuple[frozenset[str], str, str]] = {
    word: (frozenset(kinds.split()), name, default) for word, kinds, name, default in (
    ("dense", "bool int uint float complex", "of any type", "f32"),
    ("number", "int uint float complex", "numbers", "f32"),
    ("ordered", "bool int uint float", "real numbers or bools", "f32"),
    ("real", "int uint float", "real numbers", "f32"),
    ("integer", "int uint", "integers", "i64"),
    ("inexact", "float complex", "floating-point or complex", "f32"),
    ("floating", "float", "floating-point", "f32"),
    ("complex", "complex", "complex", "c64"))}
# The types of Python's numbers where no array decides.
WEAK = {"bool?": "bool", "int?": "i64", "float?": "f64", "complex?": "c128"}
DECLARATION = re.compile(r"([A-Za-z_][\w-]*)\s*\{\s*([^\s}]*)[^}]*\}\s*\[([^\]]*)\]")
# An entry of a shape: (* 2 M), ..., ~, a name or a number.
ENTRY = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\.\.\.|~|[^\s,()]+")
ATTRIBUTE = re.compile(r"\s*([A-Za-z_][\w-]*)\s*=\s*(.*?)\s*\Z", re.DOTALL)
OPERATOR = re.compile(r"\s*([A-Za-z_][\w-]*)\s*:\s*")       # that an instance is of
WORDS = {"none": None, "nil": None, "null": None}
INFERRED = "..."                                           # of an output: what the body returns; of an input: any shape
ANY_AXES = "~"


@frozen
class Tensor:
    """A tensor as a generic signature declares it: the word for its type, and the entries of its shape."""

    name: str
    word: str
    shape: tuple[str, ...]

    @property
    def variable(self) -> str | None:
        """Its type variable or class word."""
        return self.word if VARIABLE.match(self.word) or self.word.lower() in CLASSES else None

    @property
    def is_generic(self) -> bool:
        return self.variable is not None or ANY_AXES in self.shape or INFERRED in (*self.shape, self.word)

    @property
    def named(self) -> int:
        """How many axes it has besides those of `~`."""
        return len(self.shape) - self.any_axes

    @property
    def any_axes(self) -> bool:
        """Does it have any number of axes?"""
        return ANY_AXES in self.shape or self.shape == (INFERRED,)


@frozen
class Bindings:
    """What the parts of a generic signature stand for. `types`: by variable. `axes`: of `~`, by tensor; without one,
    those of all tensors together."""

    types: Mapping[str, str]
    axes: tuple[int | str, ...]
    own: Mapping[str, tuple[int | str, ...]]

    def block(self, tensor: str) -> tuple[int | str, ...]:
        """The axes of `~` in a tensor."""
        return self.own.get(tensor, self.axes)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes of all axes of `~`."""
        return tuple(dict.fromkeys([axis for block in (self.axes, *self.own.values()) for axis in block
                                    if isinstance(axis, str)]))


def tensors(texts: Iterable[str]) -> tuple[Tensor, ...]:
    """The declarations in these texts. What is malformed is left to the parser of signatures."""
    return tuple([Tensor(m[1].replace("-", "_"), m[2], tuple(ENTRY.findall(m[3])))
                  for text in texts for m in DECLARATION.finditer(text)])


def bound(declared: Sequence[Tensor], instance: Instance | None) -> Bindings:
    """What the signature stands for in an instance. E675 if the instance does not fit it."""
    given = {name: (dtype, shape) for name, dtype, shape in instance.arrays} if instance is not None else {}
    known = {t.name: t for t in declared}
    for name in given:
        if name not in known:
            raise error("E675", f"there is no tensor '{name}'",
                        hint=did_you_mean(name, list(known)) or f"there are {', '.join(known)}")
    types: dict[str, tuple[str, str]] = {}
    blocks: dict[str, tuple[int | str, ...]] = {}
    for t in declared:
        if t.name not in given:
            continue
        dtype, shape = given[t.name]
        if t.variable is not None:
            _check_class(t, dtype)
            first, by = types.setdefault(t.variable, (dtype, t.name))
            if first != dtype:
                raise error("E675", f"{t.variable} is {_word(first)} by {by}, and {_word(dtype)} by {t.name}",
                            hint="convert one of them")
        elif SPELLINGS.get(t.word.lower()) not in (dtype, None):
            raise error("E675", f"{t.name} has elements of type {t.word}, not {_word(dtype)}")
        if t.shape == (INFERRED,):
            blocks[t.name] = shape
        elif ANY_AXES not in t.shape:
            if len(shape) != len(t.shape):
                raise error("E675", f"{t.name} has {_axes(len(t.shape))}, not {len(shape)}")
        elif len(shape) < t.named:
            raise error("E675", f"{t.name} has {len(shape)}, and at least {_axes(t.named)}")
        else:
            start = t.shape.index(ANY_AXES)
            blocks[t.name] = shape[start:start + len(shape) - t.named]
    missing = {t.variable: CLASSES.get(t.variable.lower(), ANY_CLASS)[2] for t in declared if t.variable is not None}
    own = {t.name: blocks.pop(t.name, (unused(f"{t.name}0", declared),)) for t in declared if t.shape == (INFERRED,)}
    axes, aligned = _aligned(blocks, declared)
    return Bindings(missing | {name: dtype for name, (dtype, _) in types.items()}, axes, own | aligned)


def _check_class(t: Tensor, dtype: str) -> None:
    """E675 unless the element type is one of the class that the declaration names."""
    word = (t.variable or "").lower()
    kinds, described, _ = CLASSES.get(word, ANY_CLASS)
    if DTYPES[dtype].kind not in kinds:
        raise error("E675", f"the elements of {t.name} are {described}, not {_word(dtype)}")
    if dtype in ("i4", "u4") and word in CLASSES and word != "dense":
        raise error("E675", f"the elements of {t.name} are {described} that are computed with, and {_word(dtype)} is "
                            "for storage", hint="convert them first: x.astype(np.int8)")


def _word(dtype: str) -> str:
    return DTYPES[dtype].numpy


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def _aligned(blocks: Mapping[str, tuple[int | str, ...]],
             declared: Sequence[Tensor]) -> tuple[tuple[int | str, ...], dict[str, tuple[int | str, ...]]]:
    """The axes of `~` of all tensors together, and of each one that is known. E675 if they cannot be broadcast."""
    if not blocks:
        return (unused("axis0", declared),) if any(ANY_AXES in t.shape for t in declared) else (), {}
    rank, axes = max(map(len, blocks.values())), list[int | str]()
    for n in range(rank):
        at = [(name, block[n - rank]) for name, block in blocks.items() if rank - n <= len(block)]
        wide = [(name, extent) for name, extent in at if extent != 1]
        for name, extent in wide[1:]:
            if extent != wide[0][1]:
                raise error("E675", f"the axes that ~ stands for cannot be broadcast: axis {n - rank} is {wide[0][1]} "
                                    f"by {wide[0][0]}, and {extent} by {name}")
        axes.append(wide[0][1] if wide else 1)
    return tuple(axes), dict(blocks)


def unused(wish: str, declared: Sequence[Tensor]) -> str:
    """A name for a size that no declaration has."""
    words = {word.lower() for t in declared for word in (t.name, *re.findall(r"[A-Za-z_][\w-]*", " ".join(t.shape)))}
    while wish.lower() in words:
        wish += "_"
    return wish


# Attributes with a number for each axis of the images; one number is that of all of them.
FOR_EACH_AXIS = ("kernel", "stride", "padding", "dilation", "output_padding", "size")


def of_call(declared: Sequence[Tensor], arrays: Mapping[str, Given],
            attributes: Mapping[str, Any], defaults: Iterable[tuple[str, Any]] = ()) -> Instance:
    """The instance for arrays with these element types and shapes. Of the extents of `~`, only those of 1 matter, and
    which are equal because they are the same axis. `defaults`: those of the attributes. E675 for a list with more
    numbers than an image has axes."""
    if (said := _too_long([t for t in declared if t.name in arrays], dict(defaults), attributes)) is not None:
        raise error("E675", said)
    arrays = _typed(declared, arrays)
    rank = max([len(shape) - t.named for t in declared if ANY_AXES in t.shape
                for _, shape in [arrays.get(t.name, ("", ()))] if t.name in arrays], default=0)
    names = [unused(f"axis{n}", declared) for n in range(max(rank, 0))]

    def shaped(t: Tensor, shape: tuple[int, ...]) -> tuple[int | str, ...]:
        if t.shape == (INFERRED,):
            return tuple([1 if extent == 1 else unused(f"{t.name}{n}", declared) for n, extent in enumerate(shape)])
        count = len(shape) - t.named
        if ANY_AXES not in t.shape or count < 0:
            return t.shape if len(shape) == len(t.shape) else shape
        start = t.shape.index(ANY_AXES)
        block = [1 if extent == 1 else names[rank - count + n] for n, extent in enumerate(shape[start:start + count])]
        return (*t.shape[:start], *block, *t.shape[start + 1:])
    known = {t.name: t for t in declared}
    return Instance(tuple([(name, dtype, shaped(known[name], shape))
                           for name, (dtype, shape) in arrays.items() if name in known and known[name].is_generic]),
                    tuple(sorted(attributes.items())))


def _too_long(declared: Sequence[Tensor], defaults: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """What is wrong with a list of a number for each axis of an image, whose number of axes is fixed: a body that reads
    the first ones would not fail for the others."""
    lists = {name: value for name, value in defaults.items() if name in FOR_EACH_AXIS and isinstance(value, tuple)}
    if any(t.any_axes for t in declared) or not lists:
        return None
    for name, value in given.items():
        wanted = defaults.get(name) if name in lists else next(iter(lists.values()))
        if name in FOR_EACH_AXIS and isinstance(value, tuple) and wanted is not None and len(value) > len(wanted):
            return _has_to_be(name, value, wanted)
    return None


def _has_to_be(name: str, value: Any, wanted: Sequence[Any]) -> str:
    form = wanted if isinstance(value, tuple) else (value,) * len(wanted)
    return (f"the attribute '{name}' is {list(value) if isinstance(value, tuple) else value}, and has to be a "
            f"list of {len(wanted)}, such as {list(form)}")


def _typed(declared: Sequence[Tensor], arrays: Mapping[str, Given]) -> dict[str, Given]:
    """The arrays, with the types of those that are numbers of Python: that of the arrays with the same variable."""
    variables = {t.name: t.variable for t in declared}
    fixed = {t.name: SPELLINGS.get(t.word.lower()) for t in declared}
    types = {variables[name]: dtype for name, (dtype, _) in arrays.items() if variables.get(name) and dtype not in WEAK}

    def dtype_of(name: str, given: str) -> str:
        return given if given not in WEAK else types.get(variables.get(name)) or fixed.get(name) or WEAK[given]
    return {name: (dtype_of(name, dtype), shape) for name, (dtype, shape) in arrays.items()}


def attributes(texts: Sequence[tuple[str, Place]], instance: Instance | None) -> tuple[tuple[str, Any], ...]:
    """The attributes of a spec, with the values of an instance. E121 for one that is malformed, E675 for a value of an
    attribute that there is not."""
    found: dict[str, Any] = {}
    for text, place in texts:
        m = ATTRIBUTE.match(text)
        if m is None:
            raise error("E121", f"an attribute has a name and a default, not {text!r}", place, hint='"axis = -1"')
        if m[1] in found:
            raise error("E121", f"the attribute '{m[1]}' is there twice", place)
        found[m[1]] = value_of(m[2], place)
    for name, value in instance.attributes if instance is not None else ():
        if name not in found:
            raise error("E675", f"there is no attribute '{name}'",
                        hint=did_you_mean(name, list(found)) or f"there are {', '.join(found) or 'none'}")
        found[name] = value
    return tuple(found.items())


def for_each_axis(problem: CatenError, defaults: Iterable[tuple[str, Any]], given: Mapping[str, Any]) -> dict[
        str, Any] | None:
    """The attributes of a failing body with lists of one number for each axis where they are numbers, as in
    `padding=1`; None if there are none such, or it is not that what it says."""
    lists = _lists(problem, defaults)
    count = len(next(iter(lists.values()), ()))
    filled = {name: (value,) * count for name, value in given.items()
              if name in FOR_EACH_AXIS and isinstance(value, int) and (name in lists or dict(defaults)[name] is None)}
    return {**given, **filled} if filled and count else None


def _lists(problem: CatenError, defaults: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The attributes whose defaults are lists, if what a failing body says may be about them."""
    if problem.diagnostics[0].code not in ("E311", "E312", "E323"):
        return {}
    return {name: value for name, value in defaults if isinstance(value, tuple)}


def misfit(problem: CatenError, defaults: Iterable[tuple[str, Any]], given: Mapping[str, Any]) -> str | None:
    """What a failing body says of its lists, in words of the attributes: which one is a number, or a list of another
    length, where its default is a list; one without a default is as long as the others. None if it is not that."""
    known = dict(defaults)
    lists = _lists(problem, known.items())
    for name, value in given.items():
        wanted = lists.get(name) if known.get(name) is not None else next(iter(lists.values()), None)
        if wanted is not None and value is not None and (not isinstance(value, tuple) or len(value) != len(wanted)):
            return _has_to_be(name, value, wanted)
    return None


def value_of(text: str, place: Place | None) -> Any:
    """The value of an attribute: a number, true or false, a text in quotes, a list of them, or none."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = tomli.loads(f"x = {text.replace('True', 'true').replace('False', 'false')}")["x"]
    except tomli.TOMLDecodeError:
        value = {}
    if not is_value(value):
        raise error("E121", f"{text!r} is no value of an attribute", place,
                    hint='a number, true, false, none, "text", or a list such as [0, 1]')
    return tuples(value)


def tuples(value: Any) -> Any:
    """A value of an attribute, with tuples for lists."""
    return tuple([tuples(item) for item in value]) if isinstance(value, list | tuple) else value


def is_value(value: Any) -> bool:
    """Can an attribute have this value?"""
    return isinstance(value, bool | int | float | str | None) or (isinstance(value, list | tuple)
                                                                  and all(map(is_value, value)))


ANY_CLASS = CLASSES["dense"]
INSTANCE = re.compile(r"""\s*([A-Za-z_][\w-]*)\s*=\s*(?:([A-Za-z]\w*)\s*\[([^\]]*)\]        # A=float32[M,N]
                          |((?:\[(?:[^\[\]]|\[[^\]]*\])*\]|"[^"]*"|[^\s,;\[])+))\s*[;,]?        # axis=0""", re.VERBOSE)


def read_instance(text: str) -> Instance:
    """`A=float32[M,N] axis=0` as --instance has it, perhaps after `Softmax:`. E675 for what is malformed."""
    arrays, values = list[tuple[str, str, tuple[int | str, ...]]](), list[tuple[str, Any]]()
    name = OPERATOR.match(text)
    at = name.end() if name is not None else 0
    while at < len(text.rstrip()):
        m = INSTANCE.match(text, at)
        if m is None:
            raise error("E675", f"an instance is \"A=float32[M,N] axis=0\", not {text!r}", None)
        if m[2] is None:
            values.append((m[1], value_of(m[4], None)))
        else:
            dtype = SPELLINGS.get(m[2].lower())
            if dtype is None:
                raise error("E675", f"'{m[2]}' is no element type", None, hint=did_you_mean(m[2], list(SPELLINGS)))
            shape = [int(word) if word.isdigit() else word for word in re.findall(r"[^\s,]+", m[3])]
            arrays.append((m[1].replace("-", "_"), dtype, tuple(shape)))
        at = m.end()
    return Instance(tuple(arrays), tuple(values), name[1] if name is not None else "")
