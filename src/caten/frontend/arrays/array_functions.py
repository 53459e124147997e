"""The functions of numpy that a body may use, by name, and the methods of arrays."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...core.dtypes import DTYPES
from ...core.dtypes import is_complex as is_complex_type
from ...core.expr import Cast, Expr, index
from ...core.scalars import OPERATORS
from ...tensor.values import Inside
from ..typing import WEAK_INT, Literal, spell
from . import (
    array_products,
    array_reductions,
    array_scans,
    array_scatters,
    assembling,
    creation,
    index_grids,
    joining,
    reshaping,
    selection,
    views,
)
from .argument_binding import KINDS, Function, as_operand
from .axis_arguments import axes_of
from .builder import Builder
from .einsum import einsum
from .elementwise_functions import (
    apply,
    as_in_numpy,
    choose,
    converted,
    in_type,
    logical,
    round_to,
    term_of,
    truth,
    viewed,
)
from .handles import ONE, Array, Operand, constant_of, dtype_of, is_whole, owned, product_of, shape_of, size_term
from .numpy_promotion import is_same_kind
from .python_builtins import ndindex
from .size_functions import also_of_sizes
from .type_limits import finfo, iinfo

REDUCTION = "x:array axis=None keepdims:bool=False"
SUMMATION = "x:array axis=None dtype:dtype=None keepdims:bool=False"
VARIANCE = "x:array axis=None dtype:dtype=None ddof:int=0 keepdims:bool=False"
SELECTIVE = "initial:operand=None where:operand=True"
PAIR = "x1:operand x2:operand"
PIECEWISE = "piecewise"                         # its list may have functions, which are applied to x first
LIKE = "dtype:dtype=None shape:shape=None"
OF_TYPE = "* dtype:dtype=None"


def _make(b: Builder, x: Any) -> Any:
    return creation.array(b, x, None)


KINDS["numbers"] = ("numbers in lists", _make)


def _function(name: str, signature: str, make: Any) -> tuple[str, Function]:
    return name, Function(f"np.{name}", signature, make)


def _elementwise(name: str, fn: str) -> tuple[str, Function]:
    arguments = {1: "x:operand", 2: PAIR, 3: f"{PAIR} x3:operand"}[OPERATORS[fn].arity]
    return _function(name, arguments, lambda b, *operands: apply(b, fn, *operands))


def _universal(name: str, fn: str | Callable[..., Operand], arity: int = 1) -> tuple[str, Function]:
    """A universal function of NumPy: where its results have the type of its operands it takes `dtype`."""
    if isinstance(fn, str) and OPERATORS[fn].gives != "same" and fn != "abs":
        return _elementwise(name, fn)
    arity, make = (OPERATORS[fn].arity, partial(_with, apply, fn)) if isinstance(fn, str) else (arity, fn)

    def made(b: Builder, *given: Any) -> Operand:
        *operands, dtype = given
        return make(b, *operands) if dtype is None else in_type(b, name, make, operands, dtype)
    return _function(name, f"{PAIR if arity == 2 else 'x:operand'} {OF_TYPE}", made)


def _with(make: Callable[..., Any], fn: str, b: Builder, *given: Any) -> Any:
    """A function of NumPy by what it does with an operator."""
    return make(b, fn, *given)


def _reduction(name: str, signature: str, make: Callable[..., Operand], fn: str) -> tuple[str, Function]:
    return _function(name, f"{signature.replace('x:array', 'x:array_or_sizes')} {SELECTIVE}",
                     also_of_sizes(fn, partial(_with, make, fn)))


def _selected(b: Builder, x: Array, where: Any, otherwise: Any) -> Array:
    """The elements where a condition holds, and a number in place of the others."""
    return x if where is True else b.array(choose(b, where, x, otherwise))


def _combined(b: Builder, fn: str, made: Array, initial: Operand | None) -> Operand:
    """A reduction that starts with a number."""
    if initial is None:
        return made
    return apply(b, fn, made, truth(b, initial) if made.dtype == "bool" else initial)


def _total(b: Builder, fn: str, x: Array, axis: Any, dtype: str | None, keepdims: bool, initial: Operand | None,
           where: Any) -> Operand:
    x = _selected(b, x, where, _number(b, 0 if fn == "add" else 1))
    return _combined(b, fn, array_reductions.total(b, fn, x, axis, dtype, keepdims), initial)


def _extreme(b: Builder, fn: str, x: Array, axis: Any, keepdims: bool, initial: Operand | None,
             where: Any) -> Operand:
    if where is not True and initial is None:
        b.fail("E322", f"np.{fn} with 'where' needs 'initial': there may be no such element", f"np.{fn}(…, initial=…)")
    x = _selected(b, x, where, truth(b, initial) if x.dtype == "bool" and initial is not None else initial)
    return _combined(b, fn, array_reductions.reduced(b, fn, x, axis, keepdims), initial)


def _any_of(b: Builder, fn: str, x: Array, axis: Any, keepdims: bool, where: Any) -> Array:
    if where is not True:
        x = b.array(choose(b, where, truth(b, x), _number(b, fn == "and")))
    return array_reductions.any_of(b, fn, x, axis, keepdims)


def _mean(b: Builder, x: Array, axis: Any, dtype: str | None, keepdims: bool, where: Any) -> Operand:
    if where is True:
        return array_reductions.mean(b, x, axis, dtype, keepdims)
    if dtype is None and DTYPES[x.dtype].kind in ("int", "uint", "bool"):
        dtype = "f64"
    total = _total(b, "add", x, axis, dtype, keepdims, None, where)
    return apply(b, "div", total, converted(b, dtype_of(total), _count(b, where, x, axis, keepdims)))


def _count(b: Builder, where: Any, x: Array, axis: Any, keepdims: bool) -> Operand:
    """At how many elements of x along axes a condition holds. Where it is one for all along another axis, so is the
    number."""
    held = b.array(truth(b, where))
    b.broadcast(held.shape, x.shape)
    held = views.expand_dims(b, held, tuple(range(x.rank - held.rank))) if held.rank < x.rank else held
    axes = axes_of(b, axis, x.rank)
    times = product_of([x.shape[n] for n in axes if held.shape[n] is ONE])
    count = array_reductions.total(b, "add", held, axes, None, keepdims)
    return apply(b, "mul", count, size_term(times, b.pos)) if constant_of(times) != 1 else count


def _var(b: Builder, x: Array, axis: Any, dtype: str | None, ddof: int, keepdims: bool, where: Any,
         center: Operand | None, correction: int | None) -> Operand:
    if ddof and correction is not None:
        b.fail("E322", "ddof and correction are two names of one number", "leave out one of them")
    ddof = ddof if correction is None else correction
    if where is True:
        return array_reductions.var(b, x, axis, dtype, ddof, keepdims, center)
    if dtype is not None or DTYPES[x.dtype].kind in ("int", "uint", "bool"):
        x = b.array(converted(b, dtype or "f64", x))
    difference = apply(b, "sub", x, _mean(b, x, axis, None, True, where) if center is None else center)
    squares = _selected(b, array_reductions.square_of(b, difference), where, _number(b, 0))
    return apply(b, "div", array_reductions.reduced(b, "add", squares, axis, keepdims), converted(
        b, squares.dtype, array_reductions.freedom(b, _count(b, where, x, axis, keepdims), ddof)))


def _std(b: Builder, *given: Any) -> Operand:
    return apply(b, "sqrt", _var(b, *given))


def _is_complex(x: Operand) -> bool:
    return dtype_of(x) in DTYPES and is_complex_type(dtype_of(x))


def _fabs(b: Builder, x: Operand) -> Operand:
    """Of floats, and of integers as floats."""
    if _is_complex(x):
        b.fail("E304", "np.fabs is not defined on complex numbers", "np.abs is")
    return apply(b, "abs", as_in_numpy(b, "exp", (x,))[0])


def _float_power(b: Builder, x: Operand, y: Operand) -> Operand:
    """A power in float64 at least."""
    dtype = "c128" if _is_complex(x) or _is_complex(y) else "f64"
    return apply(b, "pow", *[converted(b, dtype, each) for each in (x, y)])


def _on_bools(fn: str, of_bools: str) -> Callable[..., Operand]:
    """A function of two operands that is another one of bools."""
    def made(b: Builder, x: Operand, y: Operand) -> Operand:
        return apply(b, of_bools if dtype_of(x) == dtype_of(y) == "bool" else fn, x, y)
    return made


def _fmod(b: Builder, x: Operand, y: Operand) -> Operand:
    both = [converted(b, "i8", each) if dtype_of(x) == dtype_of(y) == "bool" else each for each in (x, y)]
    return apply(b, "truncmod", *both)


def _part(fn: str) -> Callable[..., Operand]:
    """The real or the imaginary part, or the conjugate; of bools too."""
    def made(b: Builder, x: Operand) -> Operand:
        if dtype_of(x) != "bool":
            return apply(b, fn, x)
        return apply(b, "and", x, apply(b, "not", x)) if fn == "imag" else converted(
            b, "i8", x) if fn == "conj" else x
    return made


def _clip(b: Builder, x: Any, low: Any, high: Any, least: Any, most: Any, dtype: str | None) -> Operand:
    """One bound may be None. `least`, `most`: the bounds by their names in NumPy 2.1."""
    low, high = least if low is None else low, most if high is None else high
    if dtype is not None:
        x, low, high = [each if each is None else converted(b, dtype, each) for each in (x, low, high)]
    if low is None or high is None:
        return x if low is high else apply(b, "min", x, high) if low is None else apply(b, "max", x, low)
    if any(_is_complex(each) for each in (x, low, high)):
        return apply(b, "min", apply(b, "max", x, low), high)
    return apply(b, "clip", x, low, high)


def _where(b: Builder, condition: Operand, x: Any, y: Any) -> Operand:
    """One of two elements. E328 for the indices where a condition holds, which NumPy gives without these."""
    if x is None and y is None:
        b.fail("E328", "at how many places a condition holds is not known before the call",
               "np.where(condition, x, y) chooses elements; np.argmax(condition) is the first place, and "
               "np.count_nonzero(condition) counts them")
    if x is None or y is None:
        b.fail("E322", "np.where lacks its argument 'y'", "np.where(condition, x, y)")
    return choose(b, condition, x, y)


def _select(b: Builder, conditions: list[Array], choices: list[Array], default: Any) -> Operand:
    """The element of the first array whose condition holds."""
    if len(conditions) != len(choices):
        b.fail("E322", f"np.select takes as many choices as conditions, not {len(choices)} for {len(conditions)}")
    chosen = _number(b, default) if isinstance(default, int) else default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        chosen = choose(b, condition, choice, chosen)
    return chosen


def _piecewise(b: Builder, x: Array, conditions: Any, values: Any) -> Operand:
    """The value of the last condition that holds; one value more is that of no condition, which is 0 otherwise."""
    lists = [each if isinstance(each, tuple | list) else [each] for each in (conditions, values)]
    held, given = [[found for each in items if (found := as_operand(b, each)) is not None] for items in lists]
    if [len(held), len(given)] != [*map(len, lists)] or len(given) - len(held) not in (0, 1):
        b.fail("E322", "np.piecewise takes a list of conditions, and a value or function for each, perhaps with one "
               "more", "np.piecewise(x, [x < 0, x > 1], [-1, lambda v: v * v, 0])")
    made: Operand = converted(b, x.dtype, given[-1] if len(given) > len(held) else _number(b, 0))
    for condition, value in zip(held, given, strict=False):
        made = choose(b, condition, converted(b, x.dtype, value), made)
    return views.broadcast_to(b, b.array(made), x.shape)


def _choose(b: Builder, which: Array, choices: Any, mode: str) -> Operand:
    """The element of the array that `which` numbers, all arrays broadcast together."""
    given = [as_operand(b, each) for each in choices] if isinstance(choices, tuple | list) else []
    arrays = [x for x in given if x is not None]
    if not arrays or len(arrays) < len(given) or not is_whole(which.dtype):
        b.fail("E322", "np.choose takes an array of integers and a list of arrays",
               "np.choose(which, [x, y], mode='clip')")
    at = selection.inside(b, which, index(len(arrays)), mode, "np.choose", ())
    if mode == "raise":
        at = _checked_number(b, which, len(arrays))
    chosen: Operand = arrays[-1]
    for n, each in reversed(list(enumerate(arrays[:-1]))):
        chosen = choose(b, apply(b, "eq", at, _number(b, n)), each, chosen)
    return views.broadcast_to(b, b.array(chosen), b.broadcast(which.shape, shape_of(chosen)))


def _checked_number(b: Builder, which: Array, count: int) -> Array:
    """The numbers of some of `count` arrays. One that is none makes the call fail."""
    row = b.check(f"a number by which np.choose chooses is outside [0, {count})", b.pos)
    return b.compute(which.shape, lambda at: Inside(Cast("i64", which.at(at)), index(count), row))


def _outer(b: Builder, fn: str, x: Array, y: Array) -> Operand:
    """An operator on all pairs of elements."""
    return apply(b, fn, views.expand_dims(b, x, tuple(range(x.rank, x.rank + y.rank))) if y.rank else x, y)


def _arange(b: Builder, start: Operand, stop: Any, step: Operand, dtype: str | None) -> Array:
    end = term_of(stop, b.pos)
    if end is None:
        start, end = _number(b, 0), start
    return creation.arange(b, start, end, step if isinstance(step, Array) or step is not None else _number(b, 1), dtype)


def _parts(b: Builder, value: Any) -> list[Array] | Array | None:
    """A list of arrays, or an array, which stands for its parts along the first axis."""
    return value if isinstance(value, Array) and value.rank else KINDS["arrays"][1](b, value)


KINDS["parts"] = ("a list of arrays", _parts)


def _number(b: Builder, value: int | float) -> Operand:
    term = term_of(value, b.pos)
    assert term is not None
    return term


def _concatenate(b: Builder, arrays: list[Array] | Array, axis: Any, dtype: str | None,
                 casting: str) -> Operand:
    if isinstance(arrays, Array) and arrays.rank > 1 and axis is not None:
        place, = axes_of(b, axis, arrays.rank - 1)
        x = views.moveaxis(b, arrays, 0, place)                # an axis whose parts follow each other
        arrays = [reshaping.reshape(b, x, (*x.shape[:place], product_of(x.shape[place:place + 2]),
                                           *x.shape[place + 2:]))]
    elif isinstance(arrays, Array):
        arrays = [reshaping.ravel(b, arrays)] if axis is None else b.fail(
            "E330", "np.concatenate of an array without axes in its parts", "an array of one axis is whole already")
    return joining.concatenate(b, _in_type(b, arrays, dtype, casting), axis)


def _stack(b: Builder, arrays: list[Array] | Array, axis: Any, dtype: str | None, casting: str) -> Operand:
    if isinstance(arrays, Array):
        return views.moveaxis(b, _in_type(b, [arrays], dtype, casting)[0], 0, axis)
    return joining.stack(b, _in_type(b, arrays, dtype, casting), axis)


def _in_type(b: Builder, arrays: list[Array], dtype: str | None, casting: str) -> list[Array]:
    """E310 for elements that a rule of NumPy does not convert."""
    if casting not in ("same_kind", "unsafe"):
        b.fail("E327", f"the casting '{casting}' is not supported yet", "there are 'same_kind' and 'unsafe'")
    for x in arrays:
        if dtype is not None and casting == "same_kind" and not is_same_kind(x.dtype, dtype):
            b.fail("E310", f"{spell(x.dtype)} is not converted to {spell(dtype)} here", "casting='unsafe' does it")
    return arrays if dtype is None else [b.array(converted(b, dtype, x)) for x in arrays]


def _unstack(b: Builder, x: Array, axis: Any) -> tuple[Array, ...]:
    """The parts along an axis whose extent is known."""
    place, = axes_of(b, axis, x.rank)
    count = constant_of(x.shape[place])
    if count is None:
        b.fail("E326", "how many arrays np.unstack makes is not known when the body is compiled",
               "for row in x goes over the first axis")
    return tuple([selection.select(b, x, (*[slice(None)] * place, n)) for n in range(count)])


def _split_along(axis: int, b: Builder, x: Array, parts: Any) -> tuple[Array, ...]:
    """`np.vsplit`, `np.hsplit` (of a vector along its only axis) and `np.dsplit`."""
    return joining.split(b, x, parts, 0 if axis == 1 and x.rank == 1 else axis)


def _broadcast_arrays(b: Builder, arrays: list[Array]) -> tuple[Array, ...]:
    shape = b.broadcast(*[x.shape for x in arrays])
    return tuple([views.broadcast_to(b, x, shape) for x in arrays])


def _trace(b: Builder, x: Array, offset: int, axis1: Any, axis2: Any, dtype: str | None) -> Operand:
    return array_reductions.total(b, "add", _diagonal(b, x, offset, axis1, axis2), -1, dtype, False)


def _diagonal(b: Builder, x: Array, offset: int, axis1: Any, axis2: Any) -> Array:
    """The diagonal of two axes, along a new last axis."""
    if x.rank >= 2:
        x = views.moveaxis(b, x, (axis1, axis2), (0, 1))
    return views.diagonal(b, x, offset)


def _eye(b: Builder, rows: Any, columns: Any, k: int, dtype: str | None, below: bool = False) -> Array:
    return creation.eye(b, rows, rows if columns is None else columns, k, dtype, below)


def _flatten(b: Builder, x: Array, order: str) -> Array:
    return owned(reshaping.ravel(b, assembling.in_order(b, x, order)))


def _reshape(b: Builder, x: Array, shape: tuple[Expr, ...], order: str) -> Array:
    """In Fortran order the first axis is the fastest, of the old and of the new shape."""
    if order != "F":
        return reshaping.reshape(b, assembling.in_order(b, x, order), shape)
    return views.transpose(b, reshaping.reshape(b, views.transpose(b, x), shape[::-1]))


def _item(b: Builder, x: Operand) -> Operand:
    """The only element of an array."""
    return reshaping.reshape(b, x, ()) if isinstance(x, Array) else x


def _transpose(b: Builder, x: Array, axes: tuple[Any, ...]) -> Array:
    """`x.transpose(1, 0)`, `x.transpose((1, 0))`, `x.transpose()`."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        return views.transpose(b, x, axes[0])
    return views.transpose(b, x, axes or None)


def _rollaxis(b: Builder, x: Array, axis: int, start: int) -> Array:
    """An axis in front of the one that is `start`."""
    place, before = axes_of(b, axis, x.rank)[0], start + x.rank if start < 0 else start
    return views.moveaxis(b, x, place, before - 1 if place < before else before)


def _isfinite(b: Builder, x: Operand) -> Operand:
    return apply(b, "not", apply(b, "or", apply(b, "isnan", x), apply(b, "isinf", x)))


def _extent(b: Builder, extent: Expr) -> Any:
    """An extent as a number if it is one."""
    known = constant_of(extent)
    return size_term(extent, b.pos) if known is None else known


def _size(b: Builder, x: Operand, axis: Any) -> Any:
    shape = shape_of(x)
    return _extent(b, product_of([shape[n] for n in axes_of(b, axis, len(shape))]))


def _one_over(b: Builder, x: Operand) -> Operand:
    """1 / x, of integers without the fraction."""
    if dtype_of(x) == "bool":
        x = converted(b, "i8", x)
    whole = is_whole(dtype_of(x)) and b.lang == "python"
    return apply(b, "truncdiv" if whole else "div", _number(b, 1 if whole else 1.0), x)


_OTHER_NAMES = {"abs": "abs", "mod": "mod", "true_divide": "div", "fix": "trunc", "bitwise_not": "not",
                "left_shift": "shl", "right_shift": "shr"}
_LIKE = {"zeros": 0, "ones": 1, "empty": 0}

NUMPY: dict[str, Function] = dict([
    *[_universal(row.numpy, row.name) for row in OPERATORS.values() if row.numpy and row.name != "where"],
    *[_universal(name, fn) for name, fn in _OTHER_NAMES.items()],
    _function("select", "condlist:arrays choicelist:arrays default:operand=0", _select),
    _function(PIECEWISE, "x:array condlist funclist", _piecewise),
    _function("choose", "a:array choices * mode:text='raise'", _choose),
    _function("where", "condition:operand x:operand=None y:operand=None", _where),
    _function("clip", "x:operand a_min:operand=None a_max:operand=None * min:operand=None max:operand=None "
              "dtype:dtype=None", _clip),
    _universal("square", lambda b, x: apply(b, "pow", x, Literal(WEAK_INT, b.pos, value=2))),
    _universal("positive", lambda b, x: x),
    _universal("reciprocal", _one_over), _universal("fabs", _fabs),
    _universal("float_power", _float_power, 2), _universal("fmod", _fmod, 2),
    _universal("fmax", _on_bools("fmax", "or"), 2), _universal("fmin", _on_bools("fmin", "and"), 2),
    *[_function(name, "x:operand", _part(name)) for name in ("real", "imag")],
    *[_universal(name, _part("conj")) for name in ("conj", "conjugate")],
    _function("isfinite", "x:operand", _isfinite),
    *[_function(name, "x:operand decimals:int=0", round_to) for name in ("round", "around")],
    *[_function(f"logical_{fn}", "x:operand" if fn == "not" else PAIR,
                lambda b, *operands, fn=fn: logical(b, fn, *operands)) for fn in ("and", "or", "xor", "not")],
    # reductions
    *[_reduction(name, SUMMATION, _total, fn) for name, fn in (("sum", "add"), ("prod", "mul"))],
    *[_reduction(name, REDUCTION, _extreme, fn) for name, fn in (
        ("max", "max"), ("min", "min"), ("amax", "max"), ("amin", "min"))],
    *[_function(f"arg{fn}", REDUCTION,
                lambda b, x, axis, keepdims, fn=fn: array_reductions.position(b, fn, x, axis, keepdims))
      for fn in ("max", "min")],
    *[_function(name, f"{REDUCTION} where:operand=True", partial(_with, _any_of, fn))
      for name, fn in (("any", "or"), ("all", "and"))],
    _function("mean", f"{SUMMATION} where:operand=True", _mean),
    *[_function(name, f"{VARIANCE} * where:operand=True mean:operand=None correction:int=None", make)
      for name, make in (("var", _var), ("std", _std))],
    _function("logsumexp", REDUCTION, array_reductions.logsumexp),
    _function("linalg.norm", "x:array ord=None axis=None keepdims:bool=False", array_reductions.norm),
    _function("linalg.vector_norm", "x:array * axis=None keepdims:bool=False ord=2", array_reductions.vector_norm),
    _function("linalg.matrix_norm", "x:array * keepdims:bool=False ord='fro'", array_reductions.matrix_norm),
    # running totals, and what is counted
    *[_function(name, "a:array axis=None dtype:dtype=None",
                lambda b, x, axis, dtype, fn=fn: array_scans.running_total(b, fn, x, axis, dtype))
      for name, fn in (("cumsum", "add"), ("cumprod", "mul"))],
    *[_function(f"cumulative_{name}", "x:array * axis=None dtype:dtype=None include_initial:bool=False",
                partial(_with, array_scans.cumulative, fn)) for name, fn in (("sum", "add"), ("prod", "mul"))],
    *[_function(f"{name}.accumulate", "array:array axis=0 dtype:dtype=None",
                lambda b, x, axis, dtype, fn=fn: array_scans.running_total(b, fn, x, axis, dtype))
      for name, fn in (("add", "add"), ("multiply", "mul"))],
    *[_function(f"{name}.accumulate", "array:array axis=0",
                lambda b, x, axis, fn=fn: array_scans.scanned(b, fn, x, axis))
      for name, fn in (("maximum", "max"), ("minimum", "min"), ("bitwise_and", "and"), ("bitwise_or", "or"))],
    *[_function(f"logical_{fn}.accumulate", "array:array axis=0",
                lambda b, x, axis, fn=fn: array_scans.scanned(b, fn, b.array(truth(b, x)), axis))
      for fn in ("and", "or", "xor")],
    _function("bitwise_xor.accumulate", "array:array axis=0",
              lambda b, x, axis: array_scans.scanned(b, "xor", x, axis)),
    *[_function(f"{name}.reduceat", "array:array indices axis=0 dtype:dtype=None",
                lambda b, x, at, axis, dtype, fn=fn: array_scans.reduced_at(b, fn, x, at, axis, dtype))
      for name, fn in (("add", "add"), ("multiply", "mul"), ("maximum", "max"), ("minimum", "min"),
                       ("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor"))],
    *[_function(f"logical_{fn}.reduceat", "array:array indices axis=0",
                lambda b, x, at, axis, fn=fn: array_scans.reduced_at(b, fn, b.array(truth(b, x)), at, axis, None))
      for fn in ("and", "or", "xor")],
    *[_function(f"{name}.reduce", f"array:array axis=0 dtype:dtype=None keepdims:bool=False {SELECTIVE}",
                partial(_with, _total, fn)) for name, fn in (("add", "add"), ("multiply", "mul"))],
    *[_function(f"{name}.reduce", f"array:array axis=0 keepdims:bool=False {SELECTIVE}", partial(_with, _extreme, fn))
      for name, fn in (("maximum", "max"), ("minimum", "min"))],
    *[_function(f"bitwise_{fn}.reduce", "array:array axis=0 keepdims:bool=False",
                lambda b, x, axis, keepdims, fn=fn: array_reductions.reduced(b, fn, x, axis, keepdims))
      for fn in ("and", "or", "xor")],
    _function("logaddexp.reduce", "array:array axis=0 keepdims:bool=False", array_reductions.logsumexp),
    _function("logical_xor.reduce", "array:array axis=0 keepdims:bool=False",
              lambda b, x, axis, keepdims: array_reductions.reduced(b, "xor", b.array(truth(b, x)), axis, keepdims)),
    *[_function(f"logical_{fn}.reduce", "array:array axis=0 keepdims:bool=False where:operand=True",
                partial(_with, _any_of, fn)) for fn in ("and", "or")],
    *[_function(f"{row.numpy}.outer", "A:array B:array", lambda b, x, y, fn=row.name: _outer(b, fn, x, y))
      for row in OPERATORS.values() if row.numpy and row.arity == 2],
    *[_function(f"logical_{fn}.outer", "A:array B:array", lambda b, x, y, fn=fn: _outer(
        b, fn, b.array(truth(b, x)), b.array(truth(b, y)))) for fn in ("and", "or", "xor")],
    _function("bincount", "x:array weights:array=None minlength:extent=None", array_scatters.bincount),
    # products
    _function("matmul", "x1:array x2:array", array_products.matmul),
    _function("dot", "a:operand b:operand", array_products.dot),
    _function("linalg.multi_dot", "arrays:arrays", array_products.multi_dot),
    _function("einsum", "subscripts:text *operands:arrays optimize=None",
              lambda b, subscripts, operands, optimize: einsum(b, subscripts, operands)),
    _function("tensordot", "a:array b:array axes=2", array_products.tensordot),
    _function("inner", "a:operand b:operand", array_products.inner),
    _function("vdot", "a:array b:array", array_products.vdot),
    _function("outer", "a:array b:array", array_products.outer),
    _function("trace", "a:array offset:int=0 axis1=0 axis2=1 dtype:dtype=None", _trace),
    # views
    *[_function(name, "a:array axes=None", views.transpose) for name in ("transpose", "permute_dims")],
    _function("swapaxes", "a:array axis1 axis2", views.swapaxes),
    _function("matrix_transpose", "x:array", views.matrix_transpose),
    _function("moveaxis", "a:array source destination", views.moveaxis),
    _function("lib.stride_tricks.sliding_window_view", "x:array window_shape:shape axis=None", views.windows),
    _function("expand_dims", "a:array axis", views.expand_dims),
    _function("squeeze", "a:array axis=None", views.squeeze),
    _function("broadcast_to", "array:array shape:shape", views.broadcast_to),
    _function("flip", "m:array axis=None", views.flip),
    *[_function(name, "m:array", lambda b, x, axis=axis: views.flip(b, x, axis))
      for name, axis in (("flipud", 0), ("fliplr", 1))],
    _function("rot90", "m:array k:int=1 axes=(0,1)", views.rot90),
    _function("diagonal", "a:array offset:int=0 axis1=0 axis2=1", _diagonal),
    _function("broadcast_arrays", "*args:arrays", _broadcast_arrays),
    _function("reshape", "a:array shape:shape order:text='C'", _reshape),
    _function("ravel", "a:array order:text='C'",
              lambda b, x, order: reshaping.ravel(b, assembling.in_order(b, x, order))),
    _function("take", "a:array indices axis=None * mode:text='raise'", selection.take),
    # put together, taken apart
    *[_function(name, "arrays:parts axis=0 * dtype:dtype=None casting:text='same_kind'", make)
      for name, make in (("concatenate", _concatenate), ("concat", _concatenate), ("stack", _stack))],
    _function("unstack", "x:array * axis=0", _unstack),
    *[_function(name, "arrays:arrays", lambda b, arrays: joining.stack_rows(b, arrays, 0))
      for name in ("vstack", "row_stack")],
    _function("column_stack", "tup:arrays", assembling.column_stack),
    _function("dstack", "tup:arrays", assembling.dstack),
    _function("block", "arrays", assembling.block),
    _function("append", "arr:array values:array axis=None", assembling.append),
    _function("insert", "arr:array obj values:array axis=None", assembling.insert),
    _function("delete", "arr:array obj axis=None", assembling.delete),
    _function("rollaxis", "a:array axis:int start:int=0", _rollaxis),
    *[_function(f"atleast_{n}d", "*arys:arrays", lambda b, arrays, n=n: assembling.atleast(b, n, arrays))
      for n in (1, 2, 3)],
    _function("hstack", "arrays:arrays", lambda b, arrays: joining.stack_rows(b, arrays, 1)),
    _function("split", "array:array indices_or_sections axis=0", joining.split),
    *[_function(name, "ary:array indices_or_sections", partial(_split_along, axis))
      for name, axis in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2))],
    _function("array_split", "ary:array indices_or_sections axis=0", joining.array_split),
    _function("meshgrid", "*xi:arrays indexing:text='xy' sparse:bool=False copy:bool=True", creation.meshgrid),
    _function("roll", "a:array shift axis=None", joining.roll),
    _function("repeat", "a:array repeats axis=None", joining.repeat),
    _function("tile", "A:array reps:shape", joining.tile),
    # new arrays
    _function("arange", "start:operand stop=None step:operand=None dtype:dtype=None", _arange),
    _function("full", "shape:shape fill_value:operand dtype:dtype=None", creation.full),
    _function("full_like", f"a:operand fill_value:operand {LIKE}", lambda b, x, value, dtype, shape: creation.full(
        b, shape_of(x) if shape is None else shape, value, dtype or creation.like(x)[1])),
    *[_function(name, "shape:shape dtype:dtype=None",
                lambda b, shape, dtype, n=n: creation.zeros(b, shape, dtype, n)) for name, n in _LIKE.items()],
    *[_function(f"{name}_like", f"a:operand {LIKE}", lambda b, x, dtype, shape, n=n: creation.zeros(
        b, shape_of(x) if shape is None else shape, dtype or creation.like(x)[1], n))
      for name, n in _LIKE.items()],
    _function("eye", "N:extent M:extent=None k:int=0 dtype:dtype=None", _eye),
    _function("identity", "n:extent dtype:dtype=None", lambda b, n, dtype: _eye(b, n, None, 0, dtype)),
    _function("vander", "x:array N:extent=None increasing:bool=False", creation.vander),
    _function("tri", "N:extent M:extent=None k:int=0 dtype:dtype=None",
              lambda b, rows, columns, k, dtype: _eye(b, rows, columns, k, dtype, below=True)),
    _function("diag", "v:array k:int=0", creation.diagonal_matrix),
    _function("diagflat", "v:array k:int=0",
              lambda b, x, k: creation.diagonal_matrix(b, reshaping.ravel(b, x), k)),
    _function("indices", "dimensions:shape dtype=None sparse:bool=False",
              lambda b, shape, dtype, sparse: index_grids.indices(b, shape, sparse)),
    _function("ix_", "*args:arrays", index_grids.mesh),
    _function("diag_indices", "n:extent ndim:int=2", index_grids.diagonal_indices),
    *[_function(f"tri{word}_indices", "n:extent k:int=0 m:extent=None",
                lambda b, n, k, m, word=word: index_grids.triangle_indices(b, n, k, m, word == "l"))
      for word in ("l", "u")],
    _function("put_along_axis.index", "arr:array indices:array axis", index_grids.along_axis),
    _function("unravel_index", "indices:operand shape:shape", index_grids.unravel),
    _function("ravel_multi_index", "multi_index:arrays dims:shape", index_grids.ravelled),
    _function("tril", "m:array k:int=0", lambda b, x, k: creation.triangle(b, x, k, True)),
    _function("triu", "m:array k:int=0", lambda b, x, k: creation.triangle(b, x, k, False)),
    *[_function(name, "object:numbers_or_array dtype:dtype=None", creation.array) for name in ("array", "asarray")],
    *[_function(name, "a:array order:text='C'", lambda b, x, order: owned(x))
      for name in ("copy", "ascontiguousarray")],
    # shapes
    _function("shape", "a:operand", lambda b, x: tuple([_extent(b, extent) for extent in shape_of(x)])),
    _function("ndim", "a:operand", lambda b, x: len(shape_of(x))),
    _function("size", "a:operand axis=None", _size),
    _function("ndindex", "*shape:shape", ndindex),
    # types
    _function("finfo", "dtype:dtype", finfo),
    _function("iinfo", "dtype:dtype", iinfo),
])
KINDS["numbers_or_array"] = ("an array or numbers in lists", lambda b, value: value if isinstance(
    value, tuple | list) else term_of(value, b.pos))

# Methods: those functions of the same name whose first argument is the array, and these.
SAME = frozenset((
    "sum", "prod", "max", "min", "argmax", "argmin", "mean", "var", "std", "any", "all", "dot", "swapaxes", "squeeze",
    "diagonal", "trace", "ravel", "take", "cumsum", "cumprod", "repeat", "clip", "round", "copy", "conj",
    "conjugate"))
METHODS: dict[str, Function] = {
    **{name: Function(f".{name}", NUMPY[name].signature, NUMPY[name].make) for name in sorted(SAME)},
    "reshape": Function(".reshape", "x:array *shape:shape order:text='C'", _reshape),
    "transpose": Function(".transpose", "x:array *axes", _transpose),
    "flatten": Function(".flatten", "x:array order:text='C'", _flatten),
    "astype": Function(".astype", "x:operand dtype:dtype copy:bool=True",
                       lambda b, x, dtype, copy: owned(converted(b, dtype, x))),
    "item": Function(".item", "x:operand", _item),
    "view": Function(".view", "x:operand dtype:dtype", lambda b, x, dtype: viewed(b, dtype, x))}
ATTRIBUTES: dict[str, Function] = {"T": NUMPY["transpose"], "mT": NUMPY["matrix_transpose"], "shape": NUMPY["shape"],
                                   "ndim": NUMPY["ndim"], "size": NUMPY["size"], "real": NUMPY["real"],
                                   "imag": NUMPY["imag"]}
CONSTANTS: dict[str, Any] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None,
                             "tau": math.tau, "euler_gamma": 0.5772156649015329}
SUBSCRIPTED: dict[str, Callable[[Builder, Any], Any]] = {
    "r_": assembling.rows_of, "c_": assembling.columns_of, "s_": lambda b, written: written,
    "mgrid": lambda b, written: index_grids.grid(b, written, is_open=False),
    "ogrid": lambda b, written: index_grids.grid(b, written, is_open=True)}
# NumPy's functions that are operators of the library with the same meaning, by their names there.
OF_LIBRARY: dict[str, str] = {
    **{name: name for name in (
        "sort", "argsort", "diff", "kron", "cross", "convolve", "count_nonzero", "copysign", "deg2rad", "rad2deg",
        "heaviside", "isclose", "allclose", "array_equal", "logaddexp", "logaddexp2", "matvec", "vecmat", "vecdot",
        "isneginf", "isposinf", "ldexp", "nanargmax", "nanargmin", "nancumprod", "nancumsum",
        "nanmax", "nanmean", "nanmin", "nanprod", "nansum", "nanvar", "ptp", "signbit", "sinc", "take_along_axis",
        "trapezoid", "modf", "interp", "isin", "polyval", "rot90", "angle", "searchsorted", "cov", "corrcoef",
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "degrees": "rad2deg", "radians": "deg2rad", "bitwise_invert": "bitwise_not", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "linalg.inv": "inverse",
    **{f"linalg.{name}": name for name in (
        "cholesky", "det", "eigh", "eigvalsh", "matrix_power", "matrix_rank", "matrix_transpose", "pinv", "qr",
        "slogdet", "solve", "svd", "svdvals")},
    **{f"fft.{name}": name for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn",
                                          "irfftn", "fftshift", "ifftshift")},
    **{f"fft.{name}2": f"{name}n" for name in ("fft", "ifft", "rfft", "irfft")}}
OPERATOR_METHODS = frozenset(("argsort", "argpartition", "searchsorted"))      # of arrays; the others change them
# Functions whose results have as many elements as the data say, and what has a known shape instead.
OF_DATA: dict[str, str] = {
    "unique": "np.sort(x) puts equal elements side by side, and np.bincount(x, minlength=K) counts the integers "
              "below K",
    **dict.fromkeys(("intersect1d", "setdiff1d", "setxor1d", "union1d"),
                    "np.isin(x, y) says of each element whether the other array has it"),
    **dict.fromkeys(("nonzero", "flatnonzero", "argwhere"),
                    "np.argmax(mask) is the first place, and np.count_nonzero(mask) counts them"),
    **dict.fromkeys(("extract", "compress", "trim_zeros"), "np.where(mask, x, 0) keeps the shape")}
FILLED_BY_LOOP = "a loop fills an output of a given size: if mask[i]: y[n] = x[i]; n += 1"
# What numpy has and the values of a body do not yet.
LATER = frozenset(("sort", *OF_DATA, "histogram", "put", "scatter", "random.rand", "random.randn"))
# Functions that numpy lacks, and those of the operator table under its own names.
PLAIN: dict[str, Function] = {
    **{row.name: _elementwise(row.name, row.name)[1] for row in OPERATORS.values()
       if row.name not in ("and", "or", "not", "where", "max", "min", "abs", "pow", "complex")},
    "logsumexp": Function("logsumexp", REDUCTION, array_reductions.logsumexp),
    "sum_to_shape": Function("sum_to_shape", "x:array shape:shape", array_reductions.sum_to_shape)}

