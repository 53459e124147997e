"""Functions of Python itself that a body may use: `len`, `range`, `max` and others, on what is known."""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

from ...core.expr import Expr
from ...frozen import frozen
from ..typing import Term
from .argument_binding import as_extent, described
from .array_reductions import reduced, total
from .builder import Builder
from .elementwise_functions import apply, converted, number_of, round_to, term_of
from .handles import ZERO, Array, Selected, Unset, constant_of, dtype_of, size_term
from .masked_elements import length

LONGEST = 50_000               # of a range that is unrolled


@frozen
class Builtin:
    """`make`: from a builder, the arguments and the keywords to the result."""

    name: str
    make: Callable[[Builder, list[Any], dict[str, Any]], Any]


@frozen
class UnknownRange:
    """A range whose bounds are not known: a loop over it needs loops over elements."""

    described: ClassVar[str] = "a range over sizes"


@frozen
class AllIndices:
    """`np.ndindex(shape)`: the indices of all elements of an array of that shape, the last axis fastest."""

    shape: tuple[Expr, ...]
    described: ClassVar[str] = "np.ndindex over sizes"


def ndindex(b: Builder, shape: tuple[Expr, ...]) -> list[tuple[int, ...]] | AllIndices:
    """Without axes there is one index, which has no parts."""
    return AllIndices(shape) if shape else [()]


def _len(b: Builder, args: list[Any]) -> Any:
    match args:
        case [Array() | Unset() as x] if x.shape:
            known = constant_of(x.shape[0])
            return size_term(x.shape[0], b.pos) if known is None else known
        case [tuple() | list() | str() | range() as x]:
            return len(x)
        case [Selected() as x]:
            return length(b, x)
    _refuse(b, "len", "an array or a list", args)


def _range(b: Builder, args: list[Any]) -> Any:
    if not 1 <= len(args) <= 3:
        _refuse(b, "range", "one to three integers", args)
    if all(isinstance(n, int) for n in args):
        if len(args) == 3 and args[2] == 0:
            b.fail("E231", "the step of this loop is 0", "a negative step counts down")
        made = range(*args)
        if len(made) > LONGEST:
            return UnknownRange()
        return made
    if all(isinstance(n, int | Term | Array) for n in args):
        return UnknownRange()
    _refuse(b, "range", "one to three integers", args)


def _of_array(b: Builder, args: list[Any], fn: str) -> Array | None:
    """Python's sum, max or min of the elements of an array with one axis."""
    match args:
        case [Array() as x] if x.rank == 1:
            if fn != "add":
                b.require(x.shape[0] > ZERO, "E321", f"the array is empty: no element is the {fn}imum")
            return total(b, fn, x, None, None, False) if fn == "add" else reduced(b, fn, x, None, False)
    return None


def _extreme(fn: str) -> Callable[[Builder, list[Any]], Any]:
    def make(b: Builder, args: list[Any]) -> Any:
        if (found := _of_array(b, args, fn)) is not None:
            return found
        items = args[0] if len(args) == 1 and isinstance(args[0], tuple | list | range) else args
        terms = [term_of(item, b.pos) for item in items]
        if not terms or any(t is None for t in terms):
            _refuse(b, fn, "numbers", args)
        if any(isinstance(t, Array) and t.shape for t in terms):
            b.fail("E326", f"which array is the {fn} is not known when the body is compiled",
                   f"np.{fn}imum(a, b) compares element by element, np.{fn}(x) is the {fn} of one array")
        return reduce(lambda x, y: apply(b, fn, x, y), [t for t in terms if t is not None])
    return make


def _sum(b: Builder, args: list[Any]) -> Any:
    if (found := _of_array(b, args, "add")) is not None:
        return found
    if not args or not isinstance(args[0], tuple | list | range) or len(args) > 2:
        _refuse(b, "sum", "a list; np.sum adds the elements of an array", args)
    terms = [term_of(item, b.pos) for item in (*args[1:], *args[0])]
    if any(t is None for t in terms):
        _refuse(b, "sum", "a list of arrays and numbers", args)
    given = [t for t in terms if t is not None]
    if len(args) == 1:                                      # it begins with 0: bools are counted
        given = [converted(b, "i64", t) if dtype_of(t) == "bool" else t for t in given]
    return reduce(lambda x, y: apply(b, "add", x, y), given) if terms else 0


def _one(fn: str) -> Callable[[Builder, list[Any]], Any]:
    def make(b: Builder, args: list[Any]) -> Any:
        operands = [term_of(x, b.pos) for x in args]
        if len(operands) != (2 if fn == "pow" else 1) or any(x is None for x in operands):
            _refuse(b, fn, "numbers or arrays", args)
        return apply(b, fn, *[x for x in operands if x is not None])
    return make


def _round(b: Builder, args: list[Any]) -> Any:
    x = term_of(args[0], b.pos) if args else None
    if x is None:
        return _refuse(b, "round", "a number or an array", args)
    number, digits = number_of(x), args[1] if len(args) > 1 else 0
    return round(number, *args[1:]) if number is not None else round_to(b, x, digits)


def _static(name: str, function: Callable[..., Any]) -> Callable[[Builder, list[Any]], Any]:
    def make(b: Builder, args: list[Any]) -> Any:
        for x in args:
            if isinstance(x, Array | Unset | Term):
                _refuse(b, name, "lists that are known", args)
        try:
            return function(*args)
        except (TypeError, ValueError):
            _refuse(b, name, "lists", args)
    return make


def _refuse(b: Builder, name: str, wanted: str, args: list[Any]) -> Any:
    given = " and ".join([described(x) for x in args]) or "nothing"
    b.fail("E322", f"{name} takes {wanted}, not {given}")


def _divmod(b: Builder, args: list[Any]) -> Any:
    operands = [term_of(x, b.pos) for x in args]
    if len(operands) != 2 or None in operands:
        _refuse(b, "divmod", "two numbers or arrays", args)
    found = [apply(b, fn, *[x for x in operands if x is not None]) for fn in ("floordiv", "mod")]
    return tuple([n if (n := number_of(x)) is not None else x for x in found])


def _slice(b: Builder, args: list[Any]) -> slice:
    if not 1 <= len(args) <= 3 or any(x is not None and as_extent(b, x) is None for x in args):
        _refuse(b, "slice", "one to three integers", args)
    return slice(*args)


def _builtin(name: str, make: Callable[[Builder, list[Any]], Any]) -> tuple[str, Builtin]:
    def checked(b: Builder, args: list[Any], keywords: dict[str, Any]) -> Any:
        if keywords:
            b.fail("E322", f"{name} takes no argument '{next(iter(keywords))}' here")
        return make(b, args)
    return name, Builtin(name, checked)


STATIC: dict[str, Callable[..., Any]] = {
    "tuple": tuple, "list": list, "zip": lambda *xs: list(zip(*xs, strict=False)), "any": any, "all": all,
    "enumerate": lambda xs, start=0: list(enumerate(xs, start)), "reversed": lambda xs: list(xs)[::-1],
    "sorted": sorted, "ord": ord}
BUILTINS: dict[str, Builtin] = dict([
    _builtin("len", _len), _builtin("range", _range), _builtin("max", _extreme("max")),
    _builtin("min", _extreme("min")), _builtin("sum", _sum), _builtin("abs", _one("abs")), _builtin("pow", _one("pow")),
    _builtin("round", _round), _builtin("divmod", _divmod), _builtin("slice", _slice),
    *[_builtin(name, _static(name, function)) for name, function in STATIC.items()]])

