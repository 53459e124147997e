"""x[…] and x[…] = y: slices, None, `...`, arrays of indices, masks."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from caten.core.numpy_types import numpy_dtype
from caten.frozen import frozen

from . import templates
from .graph import Constant, Ref, called, reshaped
from .operands import leaf
from .symbolic_sizes import SymbolicSize
from .tracing import ACTIVE, formulas_of, made_of_sizes, shape_of

Shape = tuple[int, ...]
BYTE = bytes(1)                 # of which all elements of an array are that is there for its shape
CHANGED_AT_ONCE = 1 << 16       # bytes of an array that is there, of which each change makes another one
COMPARED: dict[str, Callable[[Any, Any], Any]] = {"<": operator.lt, ">": operator.gt, ">=": operator.ge,
                                                   "<=": operator.le}


@frozen
class Index:
    """An index as it is written in a body over `x0` and the arrays `x1`, `x2` …, and the statements before that say
    that its slices are inside."""

    code: str
    parts: tuple[Any, ...] | None   # the index itself, if it is one of numbers, slices and None
    arrays: tuple[Ref, ...]
    only_sizes: bool                # are the arrays there for their extents alone?
    before: str


def taken(x: Ref, at: Any) -> Ref:
    """The elements at an index. IndexError for one that `x` has not."""
    if (mask := _single_mask(at)) is not None:
        return taken(reshaped(x, (1, *x.shape)), np.full(1, mask))
    index = index_of(shape_of(x), at)
    made = body(f"{index.before}return x0[{index.code}]", [x, *index.arrays])
    if index.parts is not None and x.array is not None and not x.stays and ACTIVE.get() is None:
        known = np.asarray(x.array[index.parts])
        if known.flags.c_contiguous:                        # as rows of data are, one batch after the other
            made.becomes(known)
    return made


def broadcast_to_sizes(x: Ref, shape: Sequence[Any]) -> Ref:
    """Repeated to a shape of sizes that vary."""
    if len(shape) < len(x.shape):
        raise ValueError(f"an array of {len(x.shape)} axes cannot be broadcast to {shape}")
    return body("return np.broadcast_to(x0, x1.shape)", [x, of_shape(shape)], "broadcast_to")


def of_shape(shape: Sequence[Any]) -> Ref:
    """An array of no matter what in a shape of sizes that vary: what is computed reads its extents."""
    return made_of_sizes(lambda given: np.zeros(given, bool), [tuple(shape)], tuple(shape), "bool")


def stored(x: Ref, at: Any, value: Ref) -> Ref:
    """The array with a value at an index; where an array of indices has one twice, the last value stays. IndexError as
    above; ValueError for a value that cannot be broadcast to the elements there."""
    if (mask := _single_mask(at)) is not None:
        return reshaped(stored(reshaped(x, (1, *x.shape)), np.full(1, mask), value), x.shape)
    index = index_of(shape_of(x), at)
    if not index.arrays:
        like = np.ndarray(x.shape, bool, BYTE, strides=(0,) * len(x.shape))
        value = _fitting(value, like[at].shape)
    if not index.arrays or index.only_sizes:
        made = body(f"{index.before}result = x0.copy()\nresult[{index.code}] = x{len(index.arrays) + 1}\n"
                    f"return result", [x, *index.arrays, value], "setitem")
        new = _elements(value)
        if index.parts is not None and new is not None and x.array is not None and not x.stays and (
                ACTIVE.get() is None and x.array.nbytes <= CHANGED_AT_ONCE):
            changed = x.array.copy()
            changed[index.parts] = new
            made.becomes(changed)                           # no program for each number in an index
        return made
    numbers = leaf(np.arange(prod(x.shape), dtype=np.int64).reshape(x.shape))
    places = body(f"{index.before}return x0[{index.code}]", [numbers, *index.arrays])
    value = _fitting(value, places.shape)
    if not prod(places.shape):
        return x
    values = called(_library("broadcast_to", [value], shape=places.shape), [value])[0]
    flat = [reshaped(r, (prod(r.shape),)) for r in (x, places, values)]
    return reshaped(called(_library("scatter", flat), flat)[0], x.shape)


def _elements(r: Ref) -> np.ndarray | None:
    """The elements of a number or of an array, if they are there."""
    return np.asarray(r.node.value, numpy_dtype(r.dtype)) if isinstance(r.node, Constant) else r.array


def _fitting(value: Ref, shape: Shape) -> Ref:
    """A value for elements of this shape, without axes of 1 that these have not. ValueError for one that cannot be
    broadcast to them."""
    more = max(0, len(value.shape) - len(shape))
    given = value.shape[more:]
    if prod(value.shape[:more]) != 1 or any(a not in (1, b) for a, b in zip(given[::-1], shape[::-1], strict=False)):
        raise ValueError(f"a value of shape {value.shape} does not fit elements of shape {shape}")
    if not more:
        return value
    formulas = formulas_of(value)
    return reshaped(value, given, formulas and formulas[more:])


def index_of(shape: Shape, at: Any) -> Index:
    """An index of an array of this shape. Masks become the positions where they are true, which have to be computed."""
    parts = list(at) if isinstance(at, tuple) else [at]
    parts = [_resolved(p) for p in parts]
    used = sum(p.ndim if _is_mask(p) else 1 for p in parts if p is not None and p is not Ellipsis)
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index has at most one '...'")
    if used > len(shape):
        raise IndexError(f"too many indices: {used} for {len(shape)} axes")
    words: list[str] = []
    basic: list[Any] = []
    arrays: list[Ref] = []
    before: list[str] = []
    axis, has_positions = 0, False
    for p in parts:
        if p is Ellipsis or p is None or isinstance(p, int):
            basic.append(p)
        if p is Ellipsis:
            words.append("...")
            axis += len(shape) - used
        elif p is None:
            words.append("None")
        elif isinstance(p, slice):
            bounds = _slice(p, shape[axis])
            basic.append(slice(*bounds))
            words.append(":".join([_size(b, arrays) if isinstance(b, SymbolicSize) else "" if b is None else str(b)
                                   for b in (bounds if bounds[2] is not None else bounds[:2])]))
            before += [f"assert x0.shape[{axis}] {sign} {number}" for sign, number in _inside(*bounds)
                       if _surely(shape[axis], sign, number)]
            axis += 1
        elif isinstance(p, SymbolicSize):
            if not -shape[axis] <= p < shape[axis]:
                raise IndexError(f"index {p} is out of bounds for axis {axis} of extent {shape[axis]}")
            words.append(_size(p, arrays))
            axis += 1
        elif isinstance(p, int):
            if not -shape[axis] <= p < shape[axis]:
                raise IndexError(f"index {p} is out of bounds for axis {axis} of extent {shape[axis]}")
            words.append(str(p))
            axis += 1
        else:
            for positions in _positions(p, shape, axis):
                _check_inside(positions, shape[axis], axis)
                arrays.append(positions)
                has_positions = True
                words.append(f"x{len(arrays)}")
                axis += 1
    if len(arrays) > 1:
        _check_together([r for r in arrays if r.dtype != "bool"])
    whole = tuple(basic) if len(basic) == len(parts) else None
    return Index(", ".join(words) or "...", whole, tuple(arrays), bool(arrays) and not has_positions,
                 "".join([f"{each}\n" for each in dict.fromkeys(before)]))


def _resolved(part: Any) -> Any:
    """A part of an index: None, `...`, a slice, an int, or an array that is there or will be (`Ref`)."""
    if part is None or part is Ellipsis or isinstance(part, slice | SymbolicSize):
        return part
    if isinstance(part, bool | np.bool_):
        return np.asarray(part)
    if isinstance(part, int | np.integer):
        return int(part)
    ref = getattr(part, "_ref", None)
    if ref is not None:
        if ref.dtype == "bool":
            return part.numpy()
        trace = ACTIVE.get()
        return ref if ref.shape or (trace is not None and trace.differs(ref)) else int(part.item())
    array = np.asarray(part)
    if array.dtype.kind not in "iub" and array.size:
        raise IndexError(f"{part!r} is no index: an index is an integer, a slice, None, '...', or an array of integers "
                         f"or bools")
    if array.dtype.kind == "b":
        return array
    return array.astype(np.int64) if array.ndim else int(array)


def _single_mask(at: Any) -> bool | None:
    """Whether an index is a mask without axes, which takes all or nothing, along a new axis; None if it is none."""
    part = _resolved(at) if not isinstance(at, tuple) else _resolved(at[0]) if len(at) == 1 else None
    return bool(part) if isinstance(part, np.ndarray) and part.dtype.kind == "b" and not part.ndim else None


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def _positions(part: Any, shape: Shape, axis: int) -> Sequence[Ref]:
    """Arrays of indices, one for each axis that the part indexes."""
    if isinstance(part, Ref):
        return [part]
    if not _is_mask(part):
        return [leaf(part)]
    if part.shape != shape[axis:axis + part.ndim]:
        raise IndexError(f"a mask of shape {part.shape} for axes of shape {shape[axis:axis + part.ndim]}")
    return [leaf(positions.astype(np.int64)) for positions in np.nonzero(part)]


def _check_inside(positions: Ref, extent: Any, axis: int) -> None:
    """IndexError for an array of indices that is there and has one outside of the axis. What is computed later is
    checked then."""
    array = positions.array
    trace = ACTIVE.get()
    if array is None or not array.size or isinstance(extent, SymbolicSize) or (trace and trace.differs(positions)):
        return
    for worst in (int(array.min()), int(array.max())):
        if not -extent <= worst < extent:
            raise IndexError(f"index {worst} is out of bounds for axis {axis} of extent {extent}")


def _check_together(arrays: Sequence[Ref]) -> None:
    """IndexError for arrays of indices that cannot be broadcast to one shape."""
    try:
        np.broadcast_shapes(*[r.shape for r in arrays])
    except ValueError:
        raise IndexError(f"arrays of indices of the shapes {', '.join([str(r.shape) for r in arrays])} do not fit "
                         f"together") from None


def _size(size: SymbolicSize, arrays: list[Ref]) -> str:
    """A size that varies in an index: the extent of an array more."""
    below = size < 0
    arrays.append(of_shape([-size if below else size]))
    return f"{'-' if below else ''}N{len(arrays)}_0"


def _slice(s: slice, extent: Any) -> tuple[Any, Any, Any]:
    """A slice of an axis, clipped as by NumPy: a bound that is surely beyond the axis is left out, and what takes
    nothing is `0:0`, so that it has this meaning for all extents."""
    start, stop, step = [_bound(each) for each in (s.start, s.stop, s.step)]
    if isinstance(step, int) and step == 0:
        raise ValueError("slice step cannot be zero")
    if not _is_inside(start, stop, step, extent) and (step is None or isinstance(step, int)):
        is_back = step is not None and step < 0
        first, last = _position(start, extent), _position(stop, extent)
        end = extent - 1 if is_back else extent                  # what a bound cannot be above
        lowest, highest = (stop, start) if is_back else (start, stop)
        low, high = (last, first) if is_back else (first, last)
        if _surely(low, ">", end) or _surely(high, "<", 0) or _surely(high, "<", low):
            return 0, 0, None
        lowest = None if _surely(low, "<", 0) else lowest
        highest = None if _surely(high, ">", end) else highest
        start, stop = (highest, lowest) if is_back else (lowest, highest)
    return start, stop, step


def _inside(start: Any, stop: Any, step: Any) -> list[tuple[str, int]]:
    """What holds of an extent in which a slice of numbers is not clipped. A program for other extents, too, that is
    told it has the extents of the slice as numbers."""
    is_back = isinstance(step, int) and step < 0
    found = [(">=", each + is_back if each >= 0 else -each) for each in (start, stop) if type(each) is int]
    low, high = (stop, start) if is_back else (start, stop)
    if type(low) is int and type(high) is int and (low < 0) != (high < 0):
        found.append((">=", low - high) if high < 0 else ("<=", high - low))
    return found


def _is_inside(start: Any, stop: Any, step: Any, extent: Any) -> bool:
    """Is it a slice of numbers that is not to be clipped, as most are?"""
    if step is not None or type(extent) is not int or not all(b is None or type(b) is int for b in (start, stop)):
        return False
    first = 0 if start is None else start if start >= 0 else start + extent
    last = extent if stop is None else stop if stop >= 0 else stop + extent
    return 0 <= first <= last <= extent


def _bound(bound: Any) -> Any:
    if bound is None or isinstance(bound, SymbolicSize):
        return bound
    return int(bound.item() if hasattr(bound, "item") else bound.__index__())


def _position(bound: Any, extent: Any) -> Any:
    """Where a bound is, from the beginning of the axis; None for one that is left out or may be of either sign."""
    if bound is None:
        return None
    return bound if _surely(bound, ">=", 0) else bound + extent if _surely(bound, "<", 0) else None


def _surely(a: Any, sign: str, b: Any) -> bool:
    """Does a comparison hold, for all values of the sizes that vary? What may differ from call to call is left to the
    call."""
    if a is None or b is None:
        return False
    try:
        return bool(COMPARED[sign](a, b))
    except ValueError:
        return False


def body(code: str, inputs: Sequence[Ref], name: str = "getitem") -> Ref:
    """What a body over `x0`, `x1` … returns."""
    template = templates.of_body(code, [(r.dtype, r.shape) for r in inputs], name)
    return called(template, inputs)[0]


def _library(name: str, inputs: Sequence[Ref], **attributes: Any) -> templates.Template:
    return templates.of_library(name, [(r.dtype, r.shape) for r in inputs], attributes)
