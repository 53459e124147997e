"""Arguments of array functions: which parameter takes which, and what it must be.

A signature is a text, `x:array axis=None * keepdims:bool=False`: a name, a kind from the table below, and a default.
What follows `*` is given by name only."""
from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

from ...core.dtypes import DTYPES
from ...core.expr import Expr, index
from ...errors import did_you_mean
from ...frozen import frozen
from ...loop.affine import canonical
from ..typing import WEAK_INT, Literal, Term
from .builder import Builder
from .elementwise_functions import term_of
from .handles import Array, Selected, Unset, spelled

NOTHING = object()


@frozen
class ElementType:
    """`np.float32`: a type as a value, and a function that converts to it."""

    dtype: str

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return DTYPES[self.dtype].bytes

    @property
    def kind(self) -> str:
        """A letter, as in NumPy: `b i u f c`."""
        return DTYPES[self.dtype].kind[0]

    @property
    def name(self) -> str:
        """Its name in NumPy."""
        return DTYPES[self.dtype].numpy


@frozen
class Parameter:
    """`star`: takes all positional arguments that follow. `by_name`: takes none."""

    name: str
    kind: str
    default: Any = NOTHING
    star: bool = False
    by_name: bool = False


@frozen
class Function:
    """`signature`: of its arguments. `make`: from a builder and the arguments to the result."""

    name: str
    signature: str
    make: Callable[..., Any]


@cache
def parameters_of(signature: str) -> tuple[Parameter, ...]:
    """The parameters of a signature."""
    found: list[Parameter] = []
    by_name = False
    for part in signature.split():
        if part == "*":
            by_name = True
            continue
        declared, has_default, default = part.partition("=")
        name, _, kind = declared.partition(":")
        found.append(Parameter(name.lstrip("*"), kind or "any", ast.literal_eval(default) if has_default else NOTHING,
                               name.startswith("*"), by_name))
    return tuple(found)


def call(b: Builder, function: Function, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function. E322 if an argument lacks, is one too many, or has the wrong kind."""
    parameters, name = parameters_of(function.signature), function.name
    taken: dict[str, Any] = {}
    rest = list(args)
    for p in parameters:
        if p.star:
            taken[p.name], rest = tuple(rest), []
        elif rest and not p.by_name:
            taken[p.name] = rest.pop(0)
    if rest:
        b.fail("E322", f"{name} takes at most {_arguments(len([p for p in parameters if not p.by_name]))}, not "
                       f"{len(args)}", _usage(function))
    for key, value in keywords.items():
        if key not in [p.name for p in parameters]:
            b.fail("E322", f"{name} has no argument '{key}'",
                   did_you_mean(key, [p.name for p in parameters]) or _usage(function))
        if key in taken:
            b.fail("E322", f"the argument '{key}' of {name} is given twice", _usage(function))
        taken[key] = value
    found = []
    for p in parameters:
        if p.name not in taken and p.default is NOTHING:
            b.fail("E322", f"{name} lacks its argument '{p.name}'", _usage(function))
        found.append(_converted(b, p, taken[p.name], name) if p.name in taken else p.default)
    return function.make(b, *found)


def _arguments(count: int) -> str:
    return f"{count} argument{'s' * (count != 1)}"


def _usage(function: Function) -> str:
    parameters = parameters_of(function.signature)
    shown = [("*" if p.star else "") + p.name + ("" if p.default is NOTHING else f"={p.default}") for p in parameters]
    if named := [n for n, p in enumerate(parameters) if p.by_name]:
        shown.insert(named[0], "*")
    return f"{function.name}({', '.join(shown)})"


def _converted(b: Builder, parameter: Parameter, value: Any, name: str) -> Any:
    if value is parameter.default or parameter.kind == "any":
        return value
    wanted, convert = KINDS[parameter.kind]
    found = convert(b, value)
    if found is None:
        if isinstance(value, Unset):
            unset(b, value)
        if any(isinstance(each, Selected) for each in (value if isinstance(value, tuple | list) else [value])):
            refuse_selected(b)
        b.fail("E322", f"the argument '{parameter.name}' of {name} is {wanted}, not {_unfit(b, parameter.kind, value)}",
               "it must be known when the body is compiled" if isinstance(value, Array | Term) and parameter.kind not in
               ("array", "arrays", "operand") else None)
    return found


def _unfit(b: Builder, kind: str, value: Any) -> str:
    """A value that is refused; of a shape its first extent that is none."""
    items = value if kind == "shape" and isinstance(value, tuple | list) else ()
    wrong = [each for each in items if as_extent(b, each) is None]
    return f"{described(value)} with {described(wrong[0])}" if wrong and len(items) > 1 else described(
        wrong[0] if wrong else value)


def unset(b: Builder, value: Unset) -> NoReturn:
    """E227."""
    first = f"{value.name}[...] = 0" if b.lang == "python" else f"(setf {value.name} 0)"
    b.fail("E227", f"this reads the output '{value.name}', which is no input, before anything sets it",
           f"{first} first, or "
           "list it among the inputs too if it comes from the caller")


def refuse_selected(b: Builder) -> NoReturn:
    """E328."""
    b.fail("E328", "how many elements a mask selects is not known before the call",
           "np.where(mask, x, 0) keeps the shape; sums, means and extremes of x[mask] are known, and x[mask] = …")


def described(value: Any) -> str:
    """A value for a message."""
    match value:
        case Array(shape=()) | Term():
            return "a scalar"
        case Array() | Unset():
            return f"an array of the shape {spelled(value.shape)}"
        case ElementType():
            return "an element type"
        case bool() | None:
            return repr(value)
        case int() | float() | complex():
            return f"the number {value}"
        case dict():
            return "a dictionary"
        case str():
            return f"the text {value[:40]!r}"
        case tuple() | list():
            return f"a {type(value).__name__}"
        case slice():
            return "a slice"
        case range():
            return "a range"
        case _ if value is Ellipsis:
            return "'...'"
    return str(getattr(value, "described", "a function"))


# kinds


def as_array(b: Builder, value: Any) -> Array | None:
    """An array, or a scalar as one of rank 0. A list of numbers is written out, one of arrays stacked."""
    operand = as_operand(b, value)
    return None if operand is None else b.array(operand)


def as_operand(b: Builder, value: Any) -> Array | Term | None:
    """An array or a scalar; of a list the array that NumPy makes of it."""
    if isinstance(value, tuple | list) and value and all(as_operand(b, each) is not None for each in value):
        from_list = KINDS["numbers"][1](b, value)
        return from_list if isinstance(from_list, Array) else None
    return term_of(value, b.pos)


def as_array_or_sizes(b: Builder, value: Any) -> Array | tuple[Term, ...] | None:
    """An array; of a shape or another list of numbers and sizes the items, for what is made of them is a size."""
    if isinstance(value, tuple | list | range):
        items = [None if isinstance(each, bool) else term_of(each, b.pos) for each in value]
        sizes = tuple([each for each in items if isinstance(each, Term) and each.kind == WEAK_INT])
        if len(sizes) == len(items):
            return sizes
    return as_array(b, value)


def as_arrays(b: Builder, value: Any) -> list[Array] | None:
    """A list of arrays; of an array those along its first axis are not meant."""
    if not isinstance(value, tuple | list):
        return None
    found = [as_array(b, each) for each in value]
    return None if any(x is None for x in found) else [x for x in found if x is not None]


def as_extent(b: Builder, value: Any) -> Expr | None:
    """A number or arithmetic over sizes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return index(value)
    if isinstance(value, Literal) and isinstance(value.value, int):
        return index(value.value)
    return canonical(b.typing.default(value)) if isinstance(value, Term) and value.kind == WEAK_INT else None


def as_shape(b: Builder, value: Any) -> tuple[Expr, ...] | None:
    """An extent, or several."""
    if isinstance(value, tuple | list):
        if len(value) == 1 and isinstance(value[0], tuple | list):
            value = value[0]                      # x.reshape((2, 3)) is x.reshape(2, 3)
        found = [as_extent(b, each) for each in value]
        return None if any(each is None for each in found) else tuple([each for each in found if each is not None])
    one = as_extent(b, value)
    return None if one is None else (one,)


def as_dtype(b: Builder, value: Any) -> str | None:
    """`np.float32`, `float`, "float32"."""
    if isinstance(value, ElementType):
        return value.dtype
    return TYPE_WORDS.get(value) if isinstance(value, str) else None


def _static(kind: type) -> Callable[[Builder, Any], Any]:
    def convert(_: Builder, value: Any) -> Any:
        return value if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else None
    return convert


KINDS: dict[str, tuple[str, Callable[[Builder, Any], Any]]] = {
    "array": ("an array", as_array), "operand": ("an array or a number", as_operand),
    "array_or_sizes": ("an array", as_array_or_sizes), "arrays": ("a list of arrays", as_arrays),
    "extent": ("a number or arithmetic over sizes", as_extent),
    "shape": ("a shape: numbers and arithmetic over sizes", as_shape),
    "dtype": ("an element type", as_dtype), "bool": ("True or False", _static(bool)),
    "int": ("an integer", _static(int)), "text": ("a text", _static(str))}
# numpy's words for types. Of Python's own `float` has 64 bits.
TYPE_WORDS: dict[str, str] = {**{d.numpy: d.name for d in DTYPES.values()}, "bool_": "bool", "half": "f16",
                              "single": "f32", "double": "f64", "float": "f64", "int": "i64", "complex": "c128"}
