"""daten: graphs of operators. Lazy tensors, their gradients, and the library that computes them."""
from . import nn, optim, random
from .checkpointing import checkpoint
from .function_gradients import Func, grad, gradcheck
from .jit import jit
from .numpy_protocols import NumpyProtocols
from .settings import use
from .symbolic_sizes import Var
from .tensor import Tensor, apply, gradients, no_grad, operator, realize

__all__ = ["Func", "Tensor", "Var", "apply", "checkpoint", "grad", "gradcheck", "gradients", "jit", "nn", "no_grad",
           "operator", "optim", "random", "realize", "use"]

Tensor._numpy = NumpyProtocols()
