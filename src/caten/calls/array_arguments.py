"""Array arguments of a call: which arrays a call accepts, which ones a kernel can use in place, and copies."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DTYPES, is_packed
from ..core.numpy_types import numpy_dtype
from ..errors import error, out_of_memory

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Argument = Mapping[str, Any]                 # one argument of a manifest


def as_array(value: Any, argument: Argument, op: str) -> Array:
    """The value as a numpy array over the same memory. E701 if it is no array, E714 if it is not in main memory."""
    import numpy as np
    name = argument["name"]
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
            raise error("E701", f"{op}: {name} is a masked array, and a kernel would read or write the elements "
                                f"behind the mask too",
                        hint=f"{name}.filled(0) makes an array without a mask; {name}.data is the memory itself")
        return np.asarray(value)
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError):
        pass
    if hasattr(value, "__dlpack__") and not isinstance(value, type):
        # KDLCPU, kDLCUDAHost.
        if hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) not in (1, 3):
            raise error("E714", f"{op}: {name} does not lie in main memory", hint="copy it there first")
        try:
            return _from_dlpack(value, argument)
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise error("E701", f"{op}: {name} cannot be shared as an array: {problem}") from None
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise error("E701", f"{op}: {name} must be an array of {describe(argument)}, not {kind}",
                hint="anything with the buffer protocol or DLPack will do; numpy.asarray makes an array of a list")


def _from_dlpack(value: Any, argument: Argument) -> Array:
    import numpy as np

    from .dlpack import array_of
    array = array_of(value)
    if array.flags.writeable or argument["direction"] == "in":
        return array
    try:
        value.__dlpack__(max_version=(1, 0))
    except TypeError:
        # The exporter speaks DLPack before 1.0, which has no word for read-only (exporting such an array is an error
        # there), so numpy assumes it. The memory may be written.
        return np.asarray(_Memory(array))
    return array


class _Memory:
    """The memory of an array, writable; keeps the array alive."""

    def __init__(self, array: Array):
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def check(array: Array, argument: Argument, op: str) -> None:
    """Element type (E702), rank (E703), and that an output can be written (E706)."""
    name, wanted = argument["name"], numpy_dtype(argument["dtype"])
    if array.dtype != wanted:
        raise error("E702", f"{op}: {name} must have elements of type {wanted}, and has {_type(array.dtype)}",
                    hint=f"{name}.astype('{wanted}') makes a converted copy" if argument["direction"] == "in" else None)
    if array.ndim != len(argument["shape"]):
        raise error("E703", f"{op}: {name} must be {describe(argument)}, and has the shape {array.shape}")
    if argument["direction"] != "in" and not array.flags.writeable:
        raise error("E706", f"{op}: {name} is written, but the given array is read-only")


def _type(dtype: Any) -> str:
    return str(dtype) if dtype.isnative else f"{dtype.newbyteorder('=')} in the other byte order"


def describe(argument: Argument) -> str:
    """An argument's type and shape as the tensor notation writes them: `float32[M, K]`."""
    return f"{DTYPES[argument['dtype']].numpy}[{', '.join([str(e) for e in argument['shape']])}]"


def fits(array: Array, argument: Argument) -> bool:
    """Can the kernel use this memory: aligned, and dense in the declared order or with strides that it takes?"""
    if not array.flags.aligned or is_packed(argument["dtype"]):
        return False
    along = array.transpose(argument["order"])
    if argument["strides"] is None or not array.size:
        return bool(along.flags.c_contiguous)
    # Elements of an array that takes strides must not overlap, and its fastest axis must be dense.
    least = array.itemsize
    for position, (extent, stride) in enumerate(zip(reversed(along.shape), reversed(along.strides), strict=True)):
        if extent == 1:
            continue
        if stride % array.itemsize or stride < least or (position == 0 and stride != array.itemsize):
            return False
        least = stride * extent
    return True


def dense(array: Array, argument: Argument) -> bool:
    """Is it dense in the declared order?"""
    return bool(array.transpose(argument["order"]).flags.c_contiguous)


def copy(array: Array, argument: Argument, op: str) -> Array:
    """A copy for the kernel: aligned, dense in the declared order, and with 4-bit elements two to a byte."""
    if is_packed(argument["dtype"]):
        return packed(array, argument)
    new = empty(array.shape, argument, op)
    new[...] = array
    return new


def packed(array: Array, argument: Argument) -> Array:
    """4-bit elements two to a byte, the first in the low half, in the declared order; an odd one has its own byte."""
    import numpy as np
    flat = np.ascontiguousarray(array.transpose(argument["order"])).reshape(-1).view(np.uint8)
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    pairs = flat.view("<u2")                              # one pass over pairs instead of two over every second byte
    return (pairs & 15 | pairs >> 4 & 240).astype(np.uint8)


def unpacked(content: Array, shape: tuple[int, ...], argument: Argument, op: str) -> Array:
    """Bytes of two elements as an array of such elements."""
    new = empty(shape, argument, op)
    give_back(new, content, argument)
    return new


def give_back(array: Array, worked: Array, argument: Argument) -> None:
    """What the kernel left in a copy, into the array that the caller has."""
    import numpy as np
    if not is_packed(argument["dtype"]):
        array[...] = worked
        return
    flat = np.stack([worked & 15, worked >> 4], -1).reshape(-1)[:array.size]
    if argument["dtype"] == "i4":
        flat = ((flat ^ 8) - 8).view(np.int8)
    along = array.transpose(argument["order"])
    along[...] = flat.astype(array.dtype).reshape(along.shape)


def stride_values(array: Array, argument: Argument) -> list[int]:
    """The strides in elements that an array passes, by axis: those that the manifest spells as a name."""
    return [s // array.itemsize for s, formula in zip(array.strides, argument["strides"] or (), strict=False)
            if isinstance(formula, str)]


def empty(shape: tuple[int, ...], argument: Argument, op: str) -> Array:
    """A new array that is dense in the declared order. Raises E712 where it cannot be had."""
    import numpy as np
    order = argument["order"]
    try:
        new: Array = np.empty([shape[axis] for axis in order], numpy_dtype(argument["dtype"]))
    except (MemoryError, ValueError) as problem:
        raise out_of_memory(op, f"{argument['name']} of shape {shape} cannot be allocated: {problem}") from None
    return new if order == sorted(order) else new.transpose([order.index(axis) for axis in range(len(order))])


def folded(array: Array) -> bool:
    """May elements of an array overlap, as in a sliding window? Interleaved axes count as overlap."""
    least = array.itemsize if array.size else 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < least:
            return True
        least = stride * (extent - 1) + least
    return False


def overlap(a: Array, b: Array) -> bool:
    """May two arrays overlap? Compares address ranges, so interleaved columns count as overlap."""
    import numpy as np
    return bool(np.may_share_memory(a, b))


def share(a: Array, b: Array) -> bool:
    """Do two arrays share an element? Exact where that is settled quickly, else a safe yes."""
    import numpy as np
    if not np.may_share_memory(a, b):
        return False
    try:
        # Numpy's stub allows only -1 and 0, its documentation any count.
        work: Any = 10_000
        return bool(np.shares_memory(a, b, max_work=work))
    except RuntimeError:                                       # TooHardError
        return True
