"""Functions that create arrays. Without `dtype`, floats are float32 and integers int64."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from caten.calls import dlpack
from caten.core.numpy_types import numpy_dtype

from ..element_types import type_named
from ..graph import Leaf, Ref
from ..symbolic_sizes import Symbolic, SymbolicSize, has_symbolic
from ..tensor import Tensor, one, tensor
from ..tracing import made_of_sizes
from .data_types import complex64, float32, int64
from .manipulation import broadcast_to

Shape = int | tuple[int, ...]


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """An array from a number, nested lists of numbers, or another array. Other arrays are copied. ValueError if `copy`
    is False and a copy is needed."""
    _on_cpu(device)
    if isinstance(obj, Tensor):
        if copy is False and dtype is not None and dtype != obj.dtype:
            raise ValueError(f"{obj!r} has to be copied to become {dtype}")
        return obj if copy is not True and dtype in (None, obj.dtype) else Tensor(obj, dtype)
    if copy is False:
        raise ValueError("a tensor has a copy of what it is made from")
    return Tensor(obj, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """An array from an array of another library, by DLPack. It is copied, unless `copy` is False; then the original
    must not change. BufferError if `copy` is False and the other library has to copy it."""
    _on_cpu(device)
    if copy is not False:
        return Tensor(dlpack.array_of(x))
    if isinstance(x, Tensor):
        return x
    try:
        array = dlpack.array_of(x, copy=False)
    except TypeError:                                       # of NumPy before 2.1, and of libraries before DLPack 1.0,
        array = dlpack.array_of(x)                           # which do not copy
    return Tensor(Ref(Leaf(array, type_named(array.dtype))))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers start, start + step, …, without `stop`. With one argument, from 0 to before it. ValueError
    if `step` is 0."""
    _on_cpu(device)
    if not isinstance(step, Symbolic) and step == 0:
        raise ValueError("arange: the step is 0")
    if stop is None:
        start, stop = 0, start
    if has_symbolic(start, stop, step):
        count = (stop - start + step - 1) // step if step > 0 else (stop - start + step + 1) // step
        return _of_sizes(np.arange, (start, stop, step), (count,) if count >= 0 else (0,), dtype or int64)
    made = np.arange(start, stop, step)
    return Tensor(made, dtype or (int64 if made.dtype.kind == "i" else float32))


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`; with `endpoint=False`, without `stop`."""
    _on_cpu(device)
    if has_symbolic(start, stop, num):
        return _of_sizes(partial(np.linspace, endpoint=endpoint), (start, stop, num), (num,), dtype or float32)
    made = np.linspace(start, stop, num, endpoint=endpoint)
    return Tensor(made, dtype or (complex64 if made.dtype.kind == "c" else float32))


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of this shape in which all elements are `fill_value`."""
    _on_cpu(device)
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    if has_symbolic(extents, fill_value):
        own = dtype or (int64 if isinstance(fill_value, SymbolicSize) else tensor(fill_value).dtype)
        return _of_sizes(np.full, (extents, fill_value), extents, own)
    return Tensor(np.full(shape, fill_value, (dtype or tensor(fill_value).dtype).numpy))


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros of this shape."""
    return full(shape, 0, dtype=dtype or float32, device=device)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones of this shape."""
    return full(shape, 1, dtype=dtype or float32, device=device)


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of this shape; its elements are zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of the shape of x in which all elements are `fill_value`."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros of the shape of x."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones of the shape of x."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of the shape of x; its elements are zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on diagonal `k` and zeros elsewhere; k > 0 is above the main diagonal."""
    _on_cpu(device)
    if has_symbolic(n_rows, n_cols, k):
        shape = (n_rows, n_rows if n_cols is None else n_cols)
        return _of_sizes(np.eye, (*shape, k), shape, dtype or float32)
    return Tensor(np.eye(n_rows, n_cols, k, (dtype or float32).numpy))


def _of_sizes(make: Callable[..., Any], given: tuple[Any, ...], shape: tuple[Any, ...], dtype: Any) -> Tensor:
    """An array of sizes that vary, in a function that is traced once for all of them."""
    name = type_named(dtype)
    return Tensor(made_of_sizes(lambda *a: np.asarray(make(*a), numpy_dtype(name)), given, shape, name))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices: elements above diagonal `k` become 0."""
    return one("tril", x, k=k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices: elements below diagonal `k` become 0."""
    return one("triu", x, k=k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinate arrays from vectors: the result for vector n varies along axis n. `indexing="xy"` exchanges the first
    two axes, as in images; "ij" does not. ValueError for another word."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    count = len(arrays)
    order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    shape = tuple([arrays[n].shape[0] for n in order])
    placed = [a.reshape(*[-1 if order[m] == n else 1 for m in range(count)]) for n, a in enumerate(arrays)]
    return [broadcast_to(a, shape) for a in placed]


def _on_cpu(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is one device, 'cpu', not {device!r}")
