"""Lazy tensors: what is done with them is a graph, which is compiled and run when a value is asked for."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from caten.api import read
from caten.core.dtypes import DTYPES, is_float
from caten.core.numpy_types import numpy_dtype
from caten.frontend import operator_library
from caten.frontend.spec import composites_of
from caten.functions.call_keys import dtype_of

from . import templates
from .graph import Call, Constant, Leaf, Node, Ref, called, in_order
from .realization import run

Number = bool | int | float | complex


class Tensor:
    """An array, or what will be one. `Tensor([[1.0, 2.0]])`; `requires_grad=True`: `backward` computes its gradient,
    which is then `.grad`."""

    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: str | None = None, requires_grad: bool = False) -> None:
        """`data`: an array, or numbers; numbers of Python are float32, int64 or bool."""
        self._ref = data if isinstance(data, Ref) else _leaf(data, dtype)
        self.requires_grad = requires_grad
        self.grad: Tensor | None = None

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._ref.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> str:
        """The element type, by its name in NumPy."""
        return DTYPES[self._ref.dtype].numpy

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        return self.transpose()

    def __repr__(self) -> str:
        node = self._ref.node
        waits = isinstance(node, Call) and self._ref.array is None
        by = f", by {node.template.program.name}" if waits and isinstance(node, Call) else ""
        return f"Tensor({self.dtype}[{', '.join(map(str, self.shape))}]{by})"

    # ---- its value

    def numpy(self) -> np.ndarray:
        """The array, computed if it is not there."""
        run([self._ref])
        return _array(self._ref)

    def realize(self) -> Tensor:
        """Compute it now."""
        run([self._ref])
        return self

    def item(self) -> Any:
        """The only element, as a number of Python."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """The elements, in lists."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def detach(self) -> Tensor:
        """The same value, through which no gradient goes."""
        if self._ref.array is not None:
            return Tensor(Ref(Leaf(self._ref.array, self._ref.dtype)))
        same = _expression("x0", self)
        assert isinstance(same._ref.node, Call)
        same._ref.node.stops = True
        return same

    # ---- operators

    def __add__(self, other: Any) -> Tensor: return _one("add", self, other)
    def __radd__(self, other: Any) -> Tensor: return _one("add", other, self)
    def __sub__(self, other: Any) -> Tensor: return _one("subtract", self, other)
    def __rsub__(self, other: Any) -> Tensor: return _one("subtract", other, self)
    def __mul__(self, other: Any) -> Tensor: return _one("multiply", self, other)
    def __rmul__(self, other: Any) -> Tensor: return _one("multiply", other, self)
    def __truediv__(self, other: Any) -> Tensor: return _one("divide", self, other)
    def __rtruediv__(self, other: Any) -> Tensor: return _one("divide", other, self)
    def __pow__(self, other: Any) -> Tensor: return _one("pow", self, other)
    def __matmul__(self, other: Any) -> Tensor: return _product(self, _tensor(other))
    def __rmatmul__(self, other: Any) -> Tensor: return _product(_tensor(other), self)
    def __neg__(self) -> Tensor: return _one("negative", self)
    def __abs__(self) -> Tensor: return _one("abs", self)
    def __lt__(self, other: Any) -> Tensor: return _one("less", self, other)
    def __le__(self, other: Any) -> Tensor: return _one("less_equal", self, other)
    def __gt__(self, other: Any) -> Tensor: return _one("greater", self, other)
    def __ge__(self, other: Any) -> Tensor: return _one("greater_equal", self, other)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The operators of the library are methods: `x.softmax(axis=1)`."""
        if name.startswith("_") or operator_library.find(name) is None:
            raise AttributeError(f"a Tensor has no {name!r}, and the library no such operator")
        return lambda *others, **attributes: apply(name, self, *others, **attributes)

    def transpose(self, *axes: int) -> Tensor:
        """With the axes in another order; without one, backwards."""
        return _one("transpose", self, axes=axes or tuple(range(self.ndim))[::-1])

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one extent may be -1."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        if -1 in wanted:
            rest = int(np.prod([e for e in wanted if e != -1]))
            wanted = tuple([self.size // rest if e == -1 else e for e in wanted])
        return _one("reshape", self, shape=wanted)

    def astype(self, dtype: str) -> Tensor:
        """Converted to an element type."""
        return self if dtype == self.dtype else _one("cast", self, dtype=dtype)

    def __getitem__(self, at: Any) -> Tensor:
        return _expression(f"x0[{_index(at)}]", self)

    # ---- gradients

    def backward(self, gradient: Any = None) -> None:
        """Add the gradient of this number, with respect to each tensor that `requires_grad`, to its `.grad`.
        `gradient`: that of a number with respect to this tensor, if it is none."""
        if gradient is None and self.shape:
            raise ValueError(f"backward of {self!r}: it is no number; give the gradient with respect to it")
        leaves = _RECORDED.reachable(self._ref)
        for tensor, g in zip(leaves, gradients(self, leaves, gradient), strict=True):
            tensor.grad = g if tensor.grad is None else tensor.grad + g


def realize(*tensors: Tensor) -> None:
    """Compute tensors at once, in one call of one library."""
    run([t._ref for t in tensors])


def apply(name: str, *inputs: Any, **attributes: Any) -> Any:
    """An operator of the library, applied to tensors, arrays and numbers."""
    return _applied(lambda types: templates.of_library(name, types, attributes), inputs)


def operator(spec: str | Path, name: str = "") -> Callable[..., Any]:
    """An operator of a spec of one's own, to be applied to tensors: `decay = operator("decay.toml"); decay(x)`.

    `spec`: a file, or a text. `name`: of the operator, where the spec has several. Its gradient is made of its body, or
    is that of its section [gradient]. Attributes are arguments by name. CatenError with what is wrong with the spec."""
    text = read(spec)
    names = [c.name for c in composites_of(text, templates.OPTIONS)[0]]
    if name not in names and (name or len(names) != 1):
        raise ValueError(f"the spec has the operators {', '.join(names)}: name one of them" if not name else
                         f"the spec has no operator '{name}', but {', '.join(names)}")

    def applied(*inputs: Any, **attributes: Any) -> Any:
        return _applied(lambda types: templates.of_call_with(text, name or names[0], types, attributes), inputs)
    return applied


def _applied(template_of: Callable[[Sequence[tuple[str, tuple[int, ...]]]], templates.Template],
             inputs: Sequence[Any]) -> Any:
    given = [i._ref if isinstance(i, Tensor) else i for i in inputs]
    for i in inputs:
        if isinstance(i, Tensor) and i.requires_grad:
            _RECORDED.add(i)
    refs = _of_one_type(given)
    template = template_of([(r.dtype, r.shape) for r in refs])
    made = tuple([Tensor(r) for r in called(template, refs)])
    return made[0] if len(made) == 1 else made


def _one(name: str, *inputs: Any, **attributes: Any) -> Tensor:
    """The only result of an operator."""
    made = apply(name, *inputs, **attributes)
    assert isinstance(made, Tensor)
    return made


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, of which either may be a vector."""
    if not a.ndim or not b.ndim:
        raise ValueError("@ takes vectors and matrices: a number is multiplied by *")
    if a.ndim == 1:
        return _one("dot" if b.ndim == 1 else "vecmat", a, b)
    return _one("matvec" if b.ndim == 1 else "matmul", a, b)


def _expression(code: str, *inputs: Tensor) -> Tensor:
    """An expression of NumPy over `x0`, `x1` …"""
    made = _applied(lambda types: templates.of_body(code, types), inputs)
    assert isinstance(made, Tensor)
    return made


def gradients(of: Tensor, wrt: Sequence[Tensor], gradient: Any = None) -> list[Tensor]:
    """The gradients of a number with respect to tensors, as tensors: they can be differentiated again."""
    wanted = {(id(t._ref.node), t._ref.index) for t in wrt}
    order = list(in_order([of._ref], for_gradient=True))
    depends: set[int] = set()
    for call in order:
        if any((id(r.node), r.index) in wanted or id(r.node) in depends for r in call.inputs):
            depends.add(id(call))
    first = Ref(Constant(1.0, of._ref.dtype)) if gradient is None else _tensor(gradient)._ref
    parts: dict[tuple[int, int], list[Ref]] = {(id(of._ref.node), of._ref.index): [first]}

    def total(node: Any, n: int) -> Ref | None:
        found = parts.get((id(node), n), [])
        while len(found) > 1:
            b, a = found.pop(), found.pop()
            found.append(called(templates.of_library("add", [(a.dtype, a.shape), (b.dtype, b.shape)], {}), (a, b))[0])
        return found[0] if found else None
    for call in reversed(order):
        if id(call) not in depends:
            continue
        seeds = [total(call, n) for n in call.template.seeded]
        if all(s is None for s in seeds):
            continue
        want = tuple([is_float(r.dtype) and ((id(r.node), r.index) in wanted or id(r.node) in depends)
                      for r in call.inputs])
        given = [s if s is not None else _zeros(Ref(call, n)) for s, n in zip(seeds, call.template.seeded, strict=True)]
        results = [Ref(call, n) for n in range(len(call.shapes))] if call.template.takes_results else []
        made = iter(called(call.template.gradient(want), [*call.inputs, *results, *given]))
        for r, want_it in zip(call.inputs, want, strict=True):
            if want_it:
                parts.setdefault((id(r.node), r.index), []).append(next(made))
    return [Tensor(total(t._ref.node, t._ref.index) or _zeros(t._ref)) for t in wrt]


class _Recorded:
    """The tensors that require gradients, by their nodes, for as long as both are there."""

    def __init__(self) -> None:
        self.tensors: WeakKeyDictionary[Node, WeakValueDictionary[int, Tensor]] = WeakKeyDictionary()

    def add(self, tensor: Tensor) -> None:
        self.tensors.setdefault(tensor._ref.node, WeakValueDictionary())[tensor._ref.index] = tensor

    def reachable(self, ref: Ref) -> list[Tensor]:
        """Those that a result depends on."""
        found: dict[int, Tensor] = {}
        for call in in_order([ref], for_gradient=True):
            for r in call.inputs:
                entry = self.tensors.get(r.node)
                tensor = None if entry is None else entry.get(r.index)
                if tensor is not None and tensor._ref == r:                # an optimizer gives it another value
                    found.setdefault(id(tensor), tensor)
        return list(found.values())


_RECORDED = _Recorded()


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


def _zeros(r: Ref) -> Ref:
    return Tensor(np.zeros(r.shape, numpy_dtype(r.dtype)))._ref


def _array(r: Ref) -> np.ndarray:
    if isinstance(r.node, Constant):
        return np.asarray(r.node.value, numpy_dtype(r.dtype))
    array = r.array
    assert array is not None
    return array


def _leaf(data: Any, dtype: str | None) -> Ref:
    array = np.asarray(data)
    if dtype is not None:
        array = array.astype(dtype)
    elif array.dtype == np.float64 and not isinstance(data, np.ndarray | np.generic):
        array = array.astype(np.float32)
    name = dtype_of(array)
    if name is None:
        raise TypeError(f"no tensor has elements of type {array.dtype}")
    own = np.array(array, order="C")                            # a later change of the caller's array is none of it
    own.flags.writeable = False
    return Ref(Leaf(own, name))


def _of_one_type(given: Sequence[Any]) -> list[Ref]:
    """Operands as results of nodes; numbers of Python have the type of the others."""
    refs = [r if isinstance(r, Ref) else None if isinstance(r, Number) else _leaf(r, None) for r in given]
    types = [r.dtype for r in refs if r is not None]
    return [r if r is not None else Ref(Constant(v, _type_of(v, types)))
            for r, v in zip(refs, given, strict=True)]


def _type_of(value: Any, types: Sequence[str]) -> str:
    own = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32"
    for dtype in types:
        kind = DTYPES[dtype].kind
        if kind in ("float", "complex") or (kind in ("int", "uint") and isinstance(value, int)) or kind == own:
            return dtype
    return own


def _index(at: Any) -> str:
    """An index of Python as it is written."""
    def one(i: Any) -> str:
        if isinstance(i, slice):
            return ":".join(["" if part is None else str(int(part)) for part in (i.start, i.stop)]) + (
                f":{int(i.step)}" if i.step is not None else "")
        return "..." if i is Ellipsis else "None" if i is None else str(int(i))
    return ", ".join([one(i) for i in at]) if isinstance(at, tuple) else one(at)
