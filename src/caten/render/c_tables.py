"""The tables of C11: how types, operators and loops are spelled, and what a target may do otherwise."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.dtypes import DTYPES
from ..core.expr import Expr
from ..core.scalars import OPERATORS
from ..errors import error
from ..loop.statements import LoopProgram
from .code import ADD, BITAND, BITOR, BITXOR, EQUALITY, MUL, RELATION, Helper, Infix, Libm, Prefix, Spelling

TYPES: dict[str, str] = {
    "bool": "uint8_t", "i4": "int8_t", "u4": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t",
    "f32": "float", "f64": "double", "c64": "ct_c64", "c128": "ct_c128",
    **{f"i{b}": f"int{b}_t" for b in (8, 16, 32, 64)}, **{f"u{b}": f"uint{b}_t" for b in (8, 16, 32, 64)},
}
OPS: dict[str, Spelling] = {
    "add": Infix("+", ADD), "sub": Infix("-", ADD), "mul": Infix("*", MUL), "div": Infix("/", MUL), "neg": Prefix("-"),
    "and": Infix("&", BITAND), "or": Infix("|", BITOR), "xor": Infix("^", BITXOR), "not": Prefix("~"),
    "lt": Infix("<", RELATION), "le": Infix("<=", RELATION), "gt": Infix(">", RELATION), "ge": Infix(">=", RELATION),
    "eq": Infix("==", EQUALITY), "ne": Infix("!=", EQUALITY), "where": Infix("?:", 0),
    **{fn: Helper() for fn in ("floordiv", "mod", "truncdiv", "truncmod", "max", "min", "fmax", "fmin", "fma", "shl",
                               "shr", "abs", "isnan", "isinf",
                               "real", "imag", "conj", "complex")},
    **{fn: Libm(row.libm) for fn, row in OPERATORS.items() if row.libm and row.takes == "float" and fn != "truncmod"},
}
MARKS: dict[str, str] = {"serial": "", "unroll": "CT_UNROLL({count})",
                         "parallel": "#pragma omp parallel for schedule(static)"}
# A parallel loop as a region and a work-sharing loop, where each thread runs an epilogue.
REGION = ("#pragma omp parallel", "#pragma omp for schedule(static) nowait")


class CTables:
    """How a language like C spells types, operators and loops, and what its compiler can do. `settings["OMP"]` switches
    parallel loops on."""

    types: Mapping[str, str] = TYPES
    ops: Mapping[str, Spelling] = OPS
    marks: Mapping[str, str] = MARKS
    region: tuple[str, str] = REGION
    settings: Mapping[str, Any] = {}
    # (operator, type, lanes) -> a function of a vector library
    vector_functions: Mapping[tuple[str, str, int], str] = {}
    fused: bool = False             # does the machine have FMA instructions?
    vector_bytes: int = 64          # the width of a vector register
    headers: Mapping[str, str] = {}                     # a header that the target lacks -> the text to use instead
    declares_in_for: bool = True    # `for (int64_t i = 0; …)`, since C99
    in_parts: bool = False          # may a compiler make the kernels of a large file in several parts at once?
    allocates: bool = True  # may a call allocate its scratch memory? Else the caller passes it, to ct_NAME_ws alone
    checks_cpu: bool = False  # is the code for some CPUs of its architecture only, so that entry points check the CPU?
    promotes_unrolled_arrays: bool = False      # does the compiler promote arrays to registers after it unrolled loops?
    # does the compiler vectorise loops, and hoist a division under the first lane's mask?
    auto_vectorizes: bool = False
    confuses_lanes: bool = False    # does it vectorise loads under a condition, and take elements of other lanes?

    @property
    def has_threads(self) -> bool:
        """May several threads run a kernel?"""
        return bool(self.settings.get("OMP"))

    def check_types(self, program: LoopProgram) -> None:
        """E611 where the program has an element type that the runtime's table lacks."""
        for node in program.unique():
            dtype = node.declares()[1] if hasattr(node, "declares") else node.dtype if isinstance(node, Expr) else ""
            if dtype in DTYPES and dtype not in self.types:
                raise error("E611", f"{program.name}: this runtime does not support {dtype}", program.place(),
                            hint=f"it supports {', '.join(self.types)}"
                            + "; sizes and indices are i64, so its table needs that" * (dtype == "i64"))
