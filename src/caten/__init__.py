"""caten: a gcc-style compiler for tensor operators."""
from __future__ import annotations

TYPE_CHECKING = False                  # typing takes as long to import as the rest of `caten --version`
if TYPE_CHECKING:
    from typing import Any

    from .api import (
        Argument,
        CatenError,
        CatenWarning,
        Checked,
        Operator,
        Operators,
        check,
        compile,
        load,
        load_library,
    )

__version__ = "0.1.0"
__all__ = ["Argument", "CatenError", "CatenWarning", "Checked", "Operator", "Operators", "__version__", "check",
           "compile", "load", "load_library"]


if not TYPE_CHECKING:                  # with it, a type checker would take any name for one of these
    def __getattr__(name: str) -> Any:
        """The public names, imported when they are first used: the command line must start fast."""
        if name in __all__:
            from . import api
            return getattr(api, name)
        raise AttributeError(f"module 'caten' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
