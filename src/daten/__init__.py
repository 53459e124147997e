"""daten: graphs of operators. Lazy tensors, their gradients, and the library that computes them."""
from . import optim
from .tensor import Tensor, apply, gradients, operator, realize

__all__ = ["Tensor", "apply", "gradients", "operator", "optim", "realize"]
