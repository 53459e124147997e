"""Lazy tensors: operators on them build a graph, which is compiled and run when a value is needed."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from caten.api import read
from caten.calls import dlpack
from caten.core.dtypes import DTYPES, is_float
from caten.core.numpy_types import numpy_dtype
from caten.errors import did_you_mean
from caten.frontend import operator_library
from caten.frontend.spec_files import SpecText

from . import indexing, templates
from .backward import differentiated
from .element_types import DType, dtype, type_named
from .graph import RECORDS, Call, Constant, Leaf, Node, Ref, called, in_order, reshaped, stops_gradients
from .numpy_protocols import NumpyProtocols
from .operands import cast, common_type, converted, fits, is_number, leaf, operands
from .other_names import METHODS
from .realization import run
from .settings import options
from .symbolic_sizes import SymbolicSize, formula_of, has_symbolic, value_of_all
from .tracing import ACTIVE, begins, change, give, hold, is_kept, shape_of

# Operators that take other types: the kinds of elements that they do not take, and what these are converted to.
OTHERWISE = {**dict.fromkeys(("sum", "prod", "cumsum", "cumprod"), (("bool",), "int64")),
             **dict.fromkeys(("mean", "var", "std"), (("bool", "int", "uint"), "float64"))}
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
ON_BOOLS = {"add": "logical_or", "multiply": "logical_and"}
POWER_BITS = 6                  # of an exponent of integers: from 64 on, only powers of 0, 1 and -1 fit into 64 bits

# Methods of NumPy's arrays whose axis, or second argument, may be left out, where the operators of the library with
# these names mean something else.
OF_ARRAYS = frozenset(("clip", "cumprod", "cumsum", "diagonal", "dot", "nonzero", "repeat", "squeeze", "take"))
ALONG_AXES = frozenset(("cumprod", "cumsum", "take"))           # of them, those that mean the same with an axis


class Tensor:
    """A lazy array: its elements are computed when they are needed. `Tensor([[1.0, 2.0]])` makes one from numbers. With
    `requires_grad=True`, `backward` adds the gradient with respect to it to its attribute `grad`, which is None
    before."""

    _numpy: ClassVar = NumpyProtocols()
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        """`data`: an array, a number, or nested lists of numbers. Python floats become float32, integers int64 and
        bools bool; arrays in a list keep their type. Tensors in a list are stacked along a new first axis, and
        gradients flow to them. Arrays of other libraries are copied; they need DLPack or the buffer protocol. `dtype`:
        convert the elements to this type. ValueError for a list of parts of several shapes, and for `requires_grad` of
        elements that are no floats."""
        given = stacked(data) if holds_tensor(data) else data
        ref = (given._ref if isinstance(given, Tensor) else given if isinstance(given, Ref) else
               leaf(given, dtype, stays=requires_grad))
        if not requires_grad and isinstance(ref.node, Leaf) and ref.node.holder is not None and ACTIVE.get() is None:
            ref = called(templates.Reshape(ref.dtype, ref.shape, None), [ref])[0]          # what the other keeps now
        self._ref: Ref = ref if dtype is None else cast(ref, type_named(dtype))
        self.requires_grad = requires_grad
        self._grad: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What copies and files of pickle have: the elements, which are computed, and not how."""
        return {**vars(self), "_ref": (self.numpy(), self._ref.dtype, is_kept(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        array, dtype, is_held = state["_ref"]
        array.flags.writeable = False
        vars(self).update(state, _ref=Ref(Leaf(array.view(), dtype)))
        if is_held:
            hold(self)

    # ---- what it is

    @property
    def requires_grad(self) -> bool:
        """Does `backward` find the gradient with respect to this tensor? It can be set; ValueError for elements that
        are no floats."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not is_float(self._ref.dtype):
            raise ValueError(f"only floats have gradients, and this is {self!r}: Tensor(…, \"float32\") converts")
        self._requires_grad = bool(value)
        if value:
            hold(self)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has added to, None before. It can be set; TypeError for what is neither a tensor
        nor None, ValueError for another shape."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"a gradient is a tensor or None, not {value!r}: Tensor(…) makes a tensor of an array")
        if value is not None and value._ref.shape != self._ref.shape:
            raise ValueError(f"the gradient of {self!r} has its shape, not {value.shape}")
        self._grad = value
        trace = ACTIVE.get()
        if trace is not None:
            trace.assigned[id(self)] = self

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents. In a function that `jit` traces for many sizes, extents that vary are symbolic: formulas of
        sizes."""
        return shape_of(self._ref)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._ref.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def dtype(self) -> DType:
        """The element type: `x.dtype == "float32"`."""
        return dtype(self._ref.dtype)

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reverse order; for a matrix, the transpose."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two axes exchanged: the transpose of each matrix. ValueError for fewer than two
        axes."""
        if self.ndim < 2:
            raise ValueError(f"{self!r} is no matrix")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    @property
    def real(self) -> Tensor:
        """The real parts. For a real type, the tensor itself."""
        return one("real", self) if self.dtype.kind == "complex" else self

    @property
    def imag(self) -> Tensor:
        """The imaginary parts. For a real type, zeros."""
        return one("imag" if self.dtype.kind == "complex" else "zeros_like", self)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return numpy_dtype(self._ref.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """The device of the tensor, which is always "cpu"."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """The tensor itself, because there is only one device, "cpu". ValueError for another device or a stream."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"there is one device, 'cpu', without streams: not {device!r}")
        return self

    def __repr__(self) -> str:
        node = self._ref.node
        waits = isinstance(node, Call) and self._ref.array is None
        by = f", by {node.template.name}" if waits and isinstance(node, Call) else ""
        return f"Tensor({self.dtype}[{', '.join(map(str, self.shape))}]{by})"

    def __format__(self, how: str) -> str:
        """As of a number where the tensor has no axes, `f"{loss:.4f}"`, for which it is computed; else only `f"{x}"`,
        the text of `repr`."""
        return format(self.item(), how) if how and not self.ndim else super().__format__(how)

    # ---- its value

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array, which are computed if they are not known. TypeError inside a function that
        `jit` traces, if the value differs from call to call."""
        trace = ACTIVE.get()
        if trace is not None and trace.differs(self._ref) and not isinstance(self._ref.node, Constant):
            raise TypeError(f"{self!r} has another value each time: jit runs the function for the first time, and only "
                            f"what it computes after that. Ask for values outside of it")
        run([self._ref])
        return _array(self._ref)

    def realize(self) -> Tensor:
        """Compute the elements now. Returns the tensor."""
        run([self._ref])
        return self

    def item(self, *at: int) -> Any:
        """The only element, or the one at an index, as a Python number; one index counts in row-major order. ValueError
        if there are several elements, IndexError beyond them."""
        return self.numpy().item(*at)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self!r} has to be copied to become {dtype}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        array_api = self._numpy.namespace()
        known = array_api.__array_api_version__
        if api_version not in (None, known):
            raise ValueError(f"the array API standard of {api_version} is not known: that of {known} is")
        return array_api

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return self._numpy.of_elements(ufunc, method, inputs, named)

    def __array_function__(self, function: Any, types: Any, inputs: Any, named: Any) -> Any:
        return self._numpy.of_arrays(function, inputs, named)

    @classmethod
    def __caten_function__(cls, function: Any, given: Any) -> Any:
        return cls._numpy.of_function(function, given)

    def __buffer__(self, flags: int, /) -> memoryview:
        return memoryview(self.numpy())    # type: ignore[arg-type]   # an array has the protocol of PEP 688

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if stream is not None or dl_device not in (None, (1, 0)):
            raise BufferError("a tensor is on the CPU, without streams")
        if copy is not False:
            return dlpack.capsule_of(self.numpy().copy())         # what takes it may write to it
        try:
            return dlpack.capsule_of(self.numpy(), max_version=max_version, copy=False)        # read-only
        except (TypeError, BufferError):                    # of NumPy before 2.1, and of DLPack before 1.0
            raise BufferError("a tensor is read-only, which DLPack before 1.0 cannot say: copy it") from None

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        trace = ACTIVE.get()
        if trace is not None and trace.differs(self._ref) and not isinstance(self._ref.node, Constant):
            raise TypeError(f"{self!r} is true in some calls, and jit runs the function for the first one alone: "
                            f"np.where(condition, a, b) chooses in each")
        if self._ref.shape and prod(self._ref.shape) != 1:
            raise ValueError(f"{self!r} is neither true nor false: x.any() and x.all() are, and np.where(x, a, b) "
                             f"chooses for each element")
        return bool(self.item())

    def __round__(self, digits: int | None = None) -> Any:
        """The nearest integer of Python, of a tensor without axes; with a number of digits, and of an array, the
        elements rounded as by np.round."""
        if digits is None and not self.ndim:
            return round(self.item())
        return self._numpy.of_arrays(np.round, (self, digits or 0), {})

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: return self // other, self % other
    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]: return other // self, other % self

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if DTYPES[self._ref.dtype].kind not in ("int", "uint"):
            raise TypeError(f"{self!r} is no integer")
        return int(self.item())

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[n] for n in range(len(self))])

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def detach(self) -> Tensor:
        """A tensor with the same elements, through which no gradient flows."""
        if self._ref.array is not None:
            return Tensor(_apart(self._ref))
        (same,) = called(templates.of_body("return x0", [(self._ref.dtype, self._ref.shape)], "detach"), [self._ref])
        assert isinstance(same.node, Call)
        same.node.stops = True
        return Tensor(same)

    def assign(self, value: Any) -> None:
        """Replace all elements by `value`, an array of the same shape, converted to the element type. Tensors that were
        computed from this one keep their values. ValueError for another shape."""
        new = leaf(np.asarray(value), self.dtype, stays=True)
        if new.shape != self._ref.shape:
            raise ValueError(f"{self!r} cannot have a value of shape {new.shape}")
        if is_kept(self):
            give(self, new)
        else:
            self._ref = new

    # ---- operators

    def __add__(self, other: Any) -> Tensor: return one("add", self, other)
    def __radd__(self, other: Any) -> Tensor: return one("add", other, self)
    def __sub__(self, other: Any) -> Tensor: return one("subtract", self, other)
    def __rsub__(self, other: Any) -> Tensor: return one("subtract", other, self)
    def __mul__(self, other: Any) -> Tensor: return one("multiply", self, other)
    def __rmul__(self, other: Any) -> Tensor: return one("multiply", other, self)
    def __truediv__(self, other: Any) -> Tensor: return _quotient(self, other)
    def __rtruediv__(self, other: Any) -> Tensor: return _quotient(other, self)
    def __iadd__(self, other: Any) -> Tensor: return self._updated(self + other)
    def __isub__(self, other: Any) -> Tensor: return self._updated(self - other)
    def __imul__(self, other: Any) -> Tensor: return self._updated(self * other)
    def __itruediv__(self, other: Any) -> Tensor: return self._updated(self / other)
    def __floordiv__(self, other: Any) -> Tensor: return one("floor_divide", self, other)
    def __rfloordiv__(self, other: Any) -> Tensor: return one("floor_divide", other, self)
    def __mod__(self, other: Any) -> Tensor: return one("remainder", self, other)
    def __rmod__(self, other: Any) -> Tensor: return one("remainder", other, self)
    def __pow__(self, other: Any) -> Tensor: return _power(self, other)
    def __rpow__(self, other: Any) -> Tensor: return _power(other, self)
    def __and__(self, other: Any) -> Tensor: return _bits("bitwise_and", "logical_and", self, other)
    def __rand__(self, other: Any) -> Tensor: return _bits("bitwise_and", "logical_and", other, self)
    def __or__(self, other: Any) -> Tensor: return _bits("bitwise_or", "logical_or", self, other)
    def __ror__(self, other: Any) -> Tensor: return _bits("bitwise_or", "logical_or", other, self)
    def __xor__(self, other: Any) -> Tensor: return _bits("bitwise_xor", "logical_xor", self, other)
    def __rxor__(self, other: Any) -> Tensor: return _bits("bitwise_xor", "logical_xor", other, self)
    def __lshift__(self, other: Any) -> Tensor: return one("left_shift", self, other)
    def __rlshift__(self, other: Any) -> Tensor: return one("left_shift", other, self)
    def __rshift__(self, other: Any) -> Tensor: return one("right_shift", self, other)
    def __rrshift__(self, other: Any) -> Tensor: return one("right_shift", other, self)
    def __lt__(self, other: Any) -> Tensor: return one("less", self, other)
    def __le__(self, other: Any) -> Tensor: return one("less_equal", self, other)
    def __gt__(self, other: Any) -> Tensor: return one("greater", self, other)
    def __ge__(self, other: Any) -> Tensor: return one("greater_equal", self, other)
    def __eq__(self, other: Any) -> Any: return _equality("equal", self, other)
    def __ne__(self, other: Any) -> Any: return _equality("not_equal", self, other)
    def __matmul__(self, other: Any) -> Tensor: return product(self, tensor(other))
    def __rmatmul__(self, other: Any) -> Tensor: return product(tensor(other), self)
    def __neg__(self) -> Tensor: return one("negative", self)
    def __pos__(self) -> Tensor: return self

    def __abs__(self) -> Tensor:
        if self._ref.dtype == "bool":
            return self
        return one("complex_abs" if DTYPES[self._ref.dtype].kind == "complex" else "abs", self)

    def __invert__(self) -> Tensor:
        return one("logical_not" if self._ref.dtype == "bool" else "bitwise_not", self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Each operator of caten's library is a method: `x.softmax(axis=1)`. Methods that NumPy's arrays have, too, do
        what they do there: `x.cumsum()` is one of all elements. Those that draw numbers, `x.dropout(p=0.1)`, take their
        key from `daten.random`."""
        if name in OF_ARRAYS:
            return lambda *others, **named: (
                apply(name, self, *others, **named) if name in ALONG_AXES and named.keys() == {"axis"} else
                self._numpy.of_arrays(getattr(np, name), (self, *others), named))
        if name.startswith("_") or operator_library.find(name) is None:
            known = [] if name.startswith("_") else [*vars(Tensor), *[e.name for e in operator_library.entries()]]
            close = METHODS.get(name) or did_you_mean(name, [k for k in known if not k.startswith("_")])
            raise AttributeError(f"a Tensor has no {name!r}, and the library no such operator"
                                 f"{f': {close}' if close else ''}")
        spec = templates.library_spec(name)
        if templates.declaration_of(spec, name).inputs[:2] == ("key", "x") and self._ref.dtype != "u32":
            return lambda *others, **attributes: apply(name, self._numpy.key(), self, *others, **attributes)
        return lambda *others, **attributes: apply(name, self, *others, **attributes)

    def transpose(self, *axes: Any) -> Tensor:
        """The tensor with its axes in the order `axes`, numbers or one tuple of them; without `axes`, in reverse
        order."""
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
        return one("transpose", self, axes=order or tuple(range(self.ndim))[::-1])

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """The tensor with two axes exchanged."""
        order = list(range(self.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self.transpose(*order)

    def copy(self) -> Tensor:
        """A tensor with the same elements. Assignments to elements of one of the two do not change the other."""
        self.recorded()
        return Tensor(self._ref)

    def ravel(self) -> Tensor:
        """All elements along one axis, in row-major order."""
        return self.reshape(-1)

    def flatten(self) -> Tensor:
        """All elements along one axis, in row-major order, as a tensor of its own. The operator `flatten` of the
        library keeps two axes: `daten.apply("flatten", x)`."""
        return self.ravel().copy()

    @staticmethod
    def apply(name: str | Path, *inputs: Any, **attributes: Any) -> Any:
        """Apply an operator to tensors, arrays and numbers, as `daten.apply` does: `Tensor.apply("decay.toml", x)`."""
        return apply(name, *inputs, **attributes)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in row-major order, in another shape. One extent may be -1: it follows from the number of
        elements. ValueError if the number of elements differs, TypeError for an extent that is no integer."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence | np.ndarray) else shape
        wanted = tuple([e if isinstance(e, SymbolicSize) else _extent(e) for e in given])
        own = self.shape
        size = prod(own)
        free = [n for n, e in enumerate(wanted) if not isinstance(e, SymbolicSize) and e == -1]
        if free:
            rest = prod([e for n, e in enumerate(wanted) if n not in free]) or 1
            wanted = tuple([size // rest if n in free else e for n, e in enumerate(wanted)])
        if prod(wanted) != size or any(e < 0 for e in wanted):
            raise ValueError(f"{self!r} has {size} elements: it cannot be reshaped to {wanted}")
        self.recorded()
        if not has_symbolic(own, wanted):
            return Tensor(reshaped(self._ref, value_of_all(wanted)))
        formulas = tuple(map(formula_of, wanted))
        if formulas == tuple(map(formula_of, own)):
            return Tensor(self._ref)
        return Tensor(reshaped(self._ref, tuple([int(value_of_all(e)) for e in wanted]), formulas))

    def astype(self, dtype: Any) -> Tensor:
        """The elements converted to this type."""
        own = type_named(dtype)
        self.recorded()
        return self if own == self._ref.dtype else Tensor(cast(self._ref, own))

    def __getitem__(self, at: Any) -> Tensor:
        self.recorded()
        return Tensor(indexing.taken(self._ref, at))

    def __setitem__(self, at: Any, value: Any) -> None:
        """Change elements of this tensor to `value`, converted to its element type. Tensors that were computed from it
        before keep their values. ValueError for a value of another shape, OverflowError for an integer beyond the
        type."""
        is_lazy = isinstance(value, Tensor | SymbolicSize) or holds_tensor(value)
        given = tensor(value).astype(self.dtype)._ref if is_lazy else converted(value, self._ref.dtype)
        change(self, indexing.stored(self._ref, at, given))

    def _updated(self, new: Tensor) -> Tensor:
        """What `w -= rate * w.grad` gives: within `no_grad` a parameter is changed, and stays one; else it is a new
        tensor."""
        if not self.requires_grad or RECORDS.get():
            return new
        self[...] = new
        return self

    # ---- gradients

    def recorded(self) -> None:
        """Note that something is computed from this tensor, if it requires gradients: `backward` then finds it."""
        if self.requires_grad and RECORDS.get():
            _RECORDED.add(self)

    def backward(self, gradient: Any = None) -> None:
        """Backpropagate from this scalar: add to `.grad` of each tensor with `requires_grad` that it depends on.

        If this tensor is not a scalar, pass `gradient`: the gradient of a scalar with respect to this tensor, of the
        same shape. ValueError if it is missing, and if this tensor depends on none that requires gradients; CatenError
        E676 for an operator without gradient."""
        _check_gradient("backward", self, gradient)
        self.recorded()
        leaves = _RECORDED.reachable(self._ref)
        if not leaves:
            raise ValueError(f"backward of {self!r}: no tensor that it depends on requires gradients. Perhaps it was "
                             f"made in no_grad() or from detached tensors, or the parameters have new values since")
        for tensor, g in zip(leaves, gradients(self, leaves, gradient), strict=True):
            begins(tensor)
            tensor.grad = g if tensor.grad is None else tensor.grad + g


def _apart(r: Ref) -> Ref:
    """The array of a node as a node of its own. That of a parameter is another one as soon as the parameter has another
    value: outside of what `jit` traces, the array is an object of its own; inside, it is that of the parameter in each
    call."""
    array, own = r.array, r.node
    assert array is not None
    if not isinstance(own, Leaf) or own.holder is None:
        return Ref(Leaf(array, r.dtype))
    return Ref(Leaf(array.view(), r.dtype) if ACTIVE.get() is None else Leaf(array, r.dtype, holder=own.holder))


def _extent(extent: Any) -> int:
    """An extent of a shape, as a number."""
    try:
        return int(extent.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"an extent is an integer, not {extent!r}") from None


def realize(*tensors: Tensor) -> None:
    """Compute several tensors together, in one call of one library: values that they share are computed once."""
    run([t._ref for t in tensors])


@contextmanager
def no_grad() -> Iterator[None]:
    """A context manager that switches off the recording of gradients: no gradient flows through the results computed
    inside it, and a result releases its inputs once it is computed."""
    before = RECORDS.set(False)
    try:
        yield
    finally:
        RECORDS.reset(before)


def apply(name: str | Path, *inputs: Any, **attributes: Any) -> Any:
    """Apply an operator of caten's library, or that of a spec in a file `*.toml`, to tensors, arrays and numbers.
    `attributes`: those of the operator, by name.

    The result is a tensor, or a tuple of tensors if the operator has several outputs. As in NumPy, the sum of an array
    of bools is an integer, of two bools `add` is or and `multiply` is and, and the mean of integers is a float.
    CatenError for an unknown operator, and for operands that do not fit its signature; OverflowError for an integer of
    Python beyond the element type of the tensor beside it."""
    if isinstance(name, Path) or name.endswith(".toml"):
        return operator(Path(name))(*inputs, **attributes)
    if name in OTHERWISE and inputs:
        first = tensor(inputs[0])
        kinds, wanted = OTHERWISE[name]
        inputs = (first.astype(wanted) if first.dtype.kind in kinds else first, *inputs[1:])
    if name in COMPARISONS and len(inputs) == 2:
        inputs = _comparable(*inputs)
    if name in ON_BOOLS and all(map(_is_bool, inputs)):
        name = ON_BOOLS[name]
    return applied(templates.library_spec(name), name, inputs, attributes)


def _comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands of a comparison. An integer beyond the type of a tensor compares with all elements alike: it becomes
    1 or -1, and they become 0."""
    if isinstance(b, Tensor) and not isinstance(a, Tensor):
        return _comparable(b, a)[::-1]
    if not isinstance(a, Tensor) or not isinstance(b, int) or fits(b, a._ref.dtype):
        return a, b
    return one("zeros_like", a).astype("int64"), 1 if b > 0 else -1


def operator(spec: str | Path, name: str = "") -> Callable[..., Any]:
    """A function that applies an operator of your own spec to tensors: `decay = operator("decay.toml"); decay(x)`.

    `spec`: a file, or the text of a spec. `name`: the name of the operator, needed if the spec has several. The
    function takes the attributes of the operator by name. The gradient is derived from the body, or taken from the
    section [gradient]. CatenError with all errors in the spec; ValueError if `name` is missing or unknown."""
    from caten.frontend.spec import composites_of
    text = read(spec)
    names = [c.name for c in composites_of(text, options())[0]]
    if name not in names and (name or len(names) != 1):
        raise ValueError(f"the spec has the operators {', '.join(names)}: name one of them" if not name else
                         f"the spec has no operator '{name}', but {', '.join(names)}")

    def of_spec(*inputs: Any, **attributes: Any) -> Any:
        return applied(text, name or names[0], inputs, attributes)
    return of_spec


def applied(spec: SpecText, name: str, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """An operator of a spec, applied to tensors, arrays and numbers."""
    inputs = [stacked(i) if holds_tensor(i) else i for i in inputs]
    given = [i._ref if isinstance(i, Tensor) else i for i in inputs]
    for i in inputs:
        if isinstance(i, Tensor):
            i.recorded()
    declared = templates.declaration_of(spec, name)
    count = len(declared.inputs)
    for attribute, value in zip(declared.attributes, given[count:], strict=False):       # x.sum(1)
        if attribute in attributes or isinstance(value, Ref):
            break
        attributes = {**attributes, attribute: value}
        del given[count]
    refs = operands(declared, given)
    results = called(templates.of_call_with(spec, name, [(r.dtype, r.shape) for r in refs], attributes), refs)
    made = tuple([Tensor(r) for r in results])
    return made[0] if len(made) == 1 else made


def one(name: str, *inputs: Any, **attributes: Any) -> Tensor:
    """Apply an operator that has one output."""
    made = apply(name, *inputs, **attributes)
    assert isinstance(made, Tensor)
    return made


def _bits(integers: str, bools: str, a: Any, b: Any) -> Tensor:
    """Apply an operator that has one name for integers and another for bools."""
    return one(bools if _is_bool(a) and _is_bool(b) else integers, a, b)


def _equality(name: str, a: Tensor, b: Any) -> Any:
    """Are elements equal? What is no number, None or a text, is another object."""
    return NotImplemented if b is None or isinstance(b, str) else one(name, a, b)


def _is_bool(value: Any) -> bool:
    """Does an operand consist of bools?"""
    if isinstance(value, Tensor):
        return value._ref.dtype == "bool"
    if isinstance(value, list | tuple):
        return np.asarray(value).dtype == np.bool_
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _quotient(a: Any, b: Any) -> Tensor:
    """a / b. Integers are converted to float64, as in NumPy."""
    return one("divide", *[v.astype("float64") if isinstance(v, Tensor) and DTYPES[v._ref.dtype].kind in
                            ("int", "uint", "bool") else v for v in (a, b)])


def _power(a: Any, b: Any) -> Tensor:
    """a ** b. For integers by repeated squaring; a result that does not fit into the type is undefined. ValueError for
    a negative exponent of integers, where it is known."""
    known = a if isinstance(a, Tensor) else b
    if DTYPES[known._ref.dtype].kind in ("float", "complex") or isinstance(a, float) or isinstance(b, float):
        return one("pow", a, b)
    x, y = _same(a, b)
    exponents = _known(y._ref)
    if exponents is not None and (exponents < 0).any():
        raise ValueError("integers to negative integer powers are not allowed: convert one of them to floats")
    multiply = "result = np.where(rest & 1 == 1, result * base, result)"
    steps = [line for _ in range(POWER_BITS) for line in (multiply, "base = base * base", "rest = rest >> 1")]
    code = "\n".join(["result = np.ones_like(x0)", "base = x0", "rest = x1", *steps[:-2],
                      f"return np.where((x0 == 0) & (x1 >= {1 << POWER_BITS}), np.zeros_like(x0), result)"])
    return Tensor(indexing.body(code, [x._ref, y._ref], "pow"))


def _known(r: Ref) -> np.ndarray | None:
    """The elements of a number or of an array that is there, and is the same in each call of what jit traces."""
    trace = ACTIVE.get()
    if isinstance(r.node, Constant):
        return np.asarray(r.node.value, numpy_dtype(r.dtype))
    return None if trace is not None and trace.differs(r) else r.array


def _same(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands, converted to their common type."""
    x, y = operands(templates.declaration_of(templates.library_spec("equal"), "equal"),
                    [v._ref if isinstance(v, Tensor) else v for v in (a, b)])
    return Tensor(x), Tensor(y)


def product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b; either operand may be a vector. ValueError for a scalar."""
    if not a.ndim or not b.ndim:
        raise ValueError("@ takes vectors and matrices: a number is multiplied by *")
    if a.ndim == 1:
        return one("dot" if b.ndim == 1 else "vecmat", a, b)
    return one("matvec" if b.ndim == 1 else "matmul", a, b)


def gradients(of: Tensor, wrt: Sequence[Tensor], gradient: Any = None) -> list[Tensor]:
    """The gradients of the scalar `of` with respect to the tensors `wrt`, each of the shape of its tensor. They can be
    differentiated again. If `of` is not a scalar, `gradient` is the gradient of a scalar with respect to `of`, of the
    same shape; ValueError if it is missing."""
    _check_gradient("gradients", of, gradient)
    first = Ref(Constant(1.0, of._ref.dtype)) if gradient is None else tensor(gradient)._ref
    return [Tensor(r) for r in differentiated([of._ref], [t._ref for t in wrt], [first])]


def _check_gradient(function: str, of: Tensor, gradient: Any) -> None:
    """ValueError if a tensor is no number, and no gradient of its shape is given."""
    if gradient is None:
        if of.shape:
            raise ValueError(f"{function} of {of!r}: it is no number; give the gradient with respect to it")
    elif (shape := tensor(gradient).shape) != of.shape:
        raise ValueError(f"{function} of {of!r}: the gradient with respect to it has the same shape, not {shape}")


class _Recorded:
    """The tensors that require gradients, by their nodes, as long as tensor and node exist."""

    def __init__(self) -> None:
        self.tensors: WeakKeyDictionary[Node, WeakValueDictionary[int, Tensor]] = WeakKeyDictionary()

    def add(self, tensor: Tensor) -> None:
        self.tensors.setdefault(tensor._ref.node, WeakValueDictionary())[tensor._ref.index] = tensor

    def reachable(self, ref: Ref) -> list[Tensor]:
        """The recorded tensors that a result depends on, or is."""
        found: dict[int, Tensor] = {}
        for refs in ((ref,), *[call.inputs for call in in_order([ref], stops_gradients)]):
            for r in refs:
                entry = self.tensors.get(r.node)
                tensor = None if entry is None else entry.get(r.index)
                if tensor is not None and tensor._ref == r:                # an optimizer gives it another value
                    found.setdefault(id(tensor), tensor)
        return list(found.values())


_RECORDED = _Recorded()


def tensor(value: Any) -> Tensor:
    """The value as a tensor; a tensor is returned as it is."""
    return value if isinstance(value, Tensor) else Tensor(value)


def holds_tensor(data: Any) -> bool:
    """Is it a list with a tensor in it?"""
    return isinstance(data, list | tuple) and any(
        isinstance(v, Tensor) or (isinstance(v, list | tuple) and holds_tensor(v)) for v in data)


def stacked(parts: Sequence[Any]) -> Tensor:
    """Tensors, arrays, numbers and lists of them along a new first axis. They are joined in pairs: the depth of the
    graph is logarithmic in their number. ValueError for several shapes."""
    given = [p if is_number(p) else tensor(p) for p in parts]
    for t in given:
        if isinstance(t, Tensor):
            t.recorded()
    dtype = common_type([t._ref if isinstance(t, Tensor) else t for t in given])
    joined = [(t if isinstance(t, Tensor) else Tensor(t)).astype(dtype) for t in given]
    shapes = list(dict.fromkeys([t._ref.shape for t in joined]))
    if len(shapes) > 1:
        raise ValueError(f"a list of tensors has parts of one shape, not of {' and '.join(map(str, shapes))}")
    joined = [t.reshape(1, *t.shape) for t in joined]
    while len(joined) > 1:
        pairs = [one("concatenate", a, b, axis=0) for a, b in zip(joined[::2], joined[1::2], strict=False)]
        joined = pairs + joined[len(pairs) * 2:]
    return joined[0]


def _array(r: Ref) -> np.ndarray:
    if isinstance(r.node, Constant):
        return np.asarray(r.node.value, numpy_dtype(r.dtype))
    array = r.array
    assert array is not None
    return array
