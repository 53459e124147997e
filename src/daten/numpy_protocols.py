"""What NumPy and the array API standard call on a tensor: `np.exp(tensor)`, `tensor.__array_namespace__()`.

The functions are made of tensors, so the class of tensors cannot import them: the package gives them to it. They are
imported when they are first called, as most programs call none.
"""
from __future__ import annotations

from typing import Any


class NumpyProtocols:
    """The functions behind the methods of `Tensor` that NumPy and the standard know."""

    def namespace(self) -> Any:
        """The module of the array API."""
        from . import array_api
        return array_api

    def of_elements(self, ufunc: Any, method: str, inputs: Any, named: Any) -> Any:
        """NumPy's function of elements, applied to tensors."""
        from . import numpy_functions
        return numpy_functions.of_elements(ufunc, method, inputs, named)

    def of_arrays(self, function: Any, inputs: Any, named: Any) -> Any:
        """NumPy's function of arrays, applied to tensors."""
        from . import numpy_functions
        return numpy_functions.of_arrays(function, inputs, named)
