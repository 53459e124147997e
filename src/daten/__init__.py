"""daten: graphs of operators. Lazy tensors, their gradients, and the library that computes them."""
from __future__ import annotations

TYPE_CHECKING = False                  # typing takes longer to import than `daten --help` may take
if TYPE_CHECKING:
    from typing import Any

    from . import nn, optim, random
    from .checkpointing import checkpoint
    from .function_gradients import Func, grad, gradcheck, value_and_grad
    from .jitted import jit
    from .settings import use
    from .symbolic_sizes import Var
    from .tensor import Tensor, apply, gradients, no_grad, operator, realize

_MODULES = ("nn", "optim", "random")
_HOMES = {"checkpoint": "checkpointing", "Func": "function_gradients", "grad": "function_gradients",
          "gradcheck": "function_gradients", "jit": "jitted", "use": "settings", "Var": "symbolic_sizes",
          "Tensor": "tensor", "apply": "tensor", "gradients": "tensor", "no_grad": "tensor", "operator": "tensor",
          "realize": "tensor", "value_and_grad": "function_gradients"}
__all__ = ["Func", "Tensor", "Var", "apply", "checkpoint", "grad", "gradcheck", "gradients", "jit", "nn", "no_grad",
           "operator", "optim", "random", "realize", "use", "value_and_grad"]

if not TYPE_CHECKING:                  # with it, a type checker would take any name for one of these
    def __getattr__(name: str) -> Any:
        """The public names, imported when they are first used: the command must start fast."""
        if name not in __all__:
            from .other_names import function
            raise AttributeError(f"module 'daten' has no attribute {name!r}{function(name)}")
        from importlib import import_module
        module = import_module(f".{_HOMES.get(name, name)}", __name__)
        found = globals()[name] = module if name in _MODULES else getattr(module, name)
        return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
