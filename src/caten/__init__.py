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
    from .api_runs import (
        BenchResults,
        BenchRow,
        CaseResult,
        FileResult,
        OutputResult,
        TestResults,
        TuneResult,
        bench,
        test,
        tune,
    )

__version__ = "0.1.0"
__all__ = ["Argument", "BenchResults", "BenchRow", "CaseResult", "CatenError", "CatenWarning", "Checked", "FileResult",
           "Operator", "Operators", "OutputResult", "TestResults", "TuneResult", "__version__", "bench", "check",
           "compile", "load", "load_library", "test", "tune"]
_RUNS = ("BenchResults", "BenchRow", "CaseResult", "FileResult", "OutputResult", "TestResults", "TuneResult", "bench",
         "test", "tune")


if not TYPE_CHECKING:                  # with it, a type checker would take any name for one of these
    def __getattr__(name: str) -> Any:
        """The public names, imported when they are first used: the command line must start fast."""
        if name in _RUNS:
            from . import api_runs
            return getattr(api_runs, name)
        if name in __all__:
            from . import api
            return getattr(api, name)
        raise AttributeError(f"module 'caten' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
