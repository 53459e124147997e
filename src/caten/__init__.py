"""caten: a gcc-style compiler for tensor operators."""
from __future__ import annotations

from .version import __version__

TYPE_CHECKING = False                  # typing takes as long to import as the rest of `caten --version`
if TYPE_CHECKING:
    from typing import Any

    from . import ops
    from .api import (
        Argument,
        CatenError,
        CatenWarning,
        Checked,
        NothingMatched,
        Operator,
        Operators,
        OutOfMemory,
        ToolError,
        UsageError,
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
    from .functions.generic_operator import GenericOperator
    from .functions.op_function import OpFunction, op
    from .functions.type_annotations import (
        bf16,
        bfloat16,
        bool_,
        c64,
        c128,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        u8,
        u16,
        u32,
        u64,
        uint8,
        uint16,
        uint32,
        uint64,
    )

_RUNS = ("BenchResults", "BenchRow", "CaseResult", "FileResult", "OutputResult", "TestResults", "TuneResult", "bench",
         "test", "tune")
_FUNCTIONS = ("OpFunction", "op")
_TYPES = ("bf16", "bfloat16", "bool_", "c128", "c64", "f16", "f32", "f64", "float16", "float32", "float64", "i16",
          "i32", "i64", "i8", "int16", "int32", "int64", "int8", "u16", "u32", "u64", "u8", "uint16", "uint32",
          "uint64", "uint8")
__all__ = [
    "Argument",
    "BenchResults",
    "BenchRow",
    "CaseResult",
    "CatenError",
    "CatenWarning",
    "Checked",
    "FileResult",
    "GenericOperator",
    "NothingMatched",
    "OpFunction",
    "Operator",
    "Operators",
    "OutOfMemory",
    "OutputResult",
    "TestResults",
    "ToolError",
    "TuneResult",
    "UsageError",
    "__version__",
    "bench",
    "bf16",
    "bfloat16",
    "bool_",
    "c64",
    "c128",
    "check",
    "compile",
    "f16",
    "f32",
    "f64",
    "float16",
    "float32",
    "float64",
    "i8",
    "i16",
    "i32",
    "i64",
    "int8",
    "int16",
    "int32",
    "int64",
    "load",
    "load_library",
    "op",
    "ops",
    "test",
    "tune",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


if not TYPE_CHECKING:                  # with it, a type checker would take any name for one of these
    def __getattr__(name: str) -> Any:
        """The public names, imported when they are first used: the command line must start fast."""
        if name in _RUNS:
            from . import api_runs
            return getattr(api_runs, name)
        if name in _FUNCTIONS:
            from .functions import op_function
            return getattr(op_function, name)
        if name == "GenericOperator":
            from .functions import generic_operator
            return generic_operator.GenericOperator
        if name == "ops":
            from importlib import import_module
            return import_module(".ops", __name__)
        if name in _TYPES:
            from .functions import type_annotations
            return getattr(type_annotations, name)
        if name in __all__:
            from . import api
            return getattr(api, name)
        raise AttributeError(f"module 'caten' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
