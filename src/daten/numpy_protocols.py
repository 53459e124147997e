"""What NumPy, the array API standard and caten call on a tensor: `np.exp(tensor)`, `tensor.__array_namespace__()`, a
function of `caten.op`.

The functions are made of tensors, so they are modules above that of tensors. They are found by name when they are first
called, as most programs call none.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any


class NumpyProtocols:
    """The functions behind the methods of `Tensor` that NumPy and the standard know."""

    def namespace(self) -> Any:
        """The module of the array API."""
        return import_module(".array_api", __package__)

    def of_elements(self, ufunc: Any, method: str, inputs: Any, named: Any) -> Any:
        """NumPy's function of elements, applied to tensors."""
        return self._functions().of_elements(ufunc, method, inputs, named)

    def of_arrays(self, function: Any, inputs: Any, named: Any) -> Any:
        """NumPy's function of arrays, applied to tensors."""
        return self._functions().of_arrays(function, inputs, named)

    def of_function(self, function: Any, given: Any) -> Any:
        """A function of `caten.op`, applied to tensors."""
        return import_module(".function_calls", __package__).applied(function, given)

    def key(self) -> Any:
        """A new key of the sequence of random numbers, for an operator that draws some."""
        return import_module(".random", __package__).current().key()

    def _functions(self) -> Any:
        return import_module(".numpy_functions", __package__)
