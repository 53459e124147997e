"""C89: for the old compiler of a small CPU that has no vectors, and of <math.h> what that standard has, in double precision."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caten.core.program import Machine
from caten.render.code import Libm
from caten.render.cstyle import CStyle
from caten.runtime import toolchain
from caten.runtime.c_runtime import Compiled
from caten.runtime.manifest import manifest_c
from caten.runtime.protocol import Text

FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "log10", "pow", "sqrt", "ceil", "floor")
UNARY = [fn for fn in FUNCTIONS if fn not in ("atan2", "pow")]

# C89 has neither inline nor restrict. What follows is true of any compiler for it with a 64-bit long.
WORDS = "#include <stdint.h>\n#define inline\n#define restrict\n"
MATH = "#include <math.h>\n#define INFINITY ((float)HUGE_VAL)\n#define NAN (INFINITY - INFINITY)\n" + "".join(
    [f"#define {fn}f(x) ((float){fn}((double)(x)))\n" for fn in (*UNARY, "fabs", "trunc")] +
    [f"#define {fn}f(x, y) ((float){fn}((double)(x), (double)(y)))\n" for fn in ("atan2", "pow", "fmod", "copysign", "fmax", "fmin")]) + """
#define trunc(x) ((x) < 0 ? ceil(x) : floor(x))
#define fmax(x, y) ((x) != (x) || (x) < (y) ? (y) : (x))
#define fmin(x, y) ((x) != (x) || (y) < (x) ? (y) : (x))
static double copysign(double x, double y)
{
    union { double value; uint64_t bits; } u, v;
    u.value = x;
    v.value = y;
    u.bits = (u.bits & ~((uint64_t)1 << 63)) | (v.bits & ((uint64_t)1 << 63));
    return u.value;
}
"""
ALLOCATION = "#include <stdlib.h>\nextern void *aligned_alloc(size_t, size_t);\n"


class C89(Compiled):
    api_version, name = 1, "c89"
    description = "C89 without vectors"
    config = {"CC": Text(None, "the C compiler")}                                   # noqa: RUF012   as in the template
    ops = {fn: s for fn, s in CStyle.ops.items() if fn not in ("fma", "abs") and (not isinstance(s, Libm) or s.name in FUNCTIONS)}     # noqa: RUF012
    marks = CStyle.marks | {"unroll": ""}                                           # _Pragma is C99
    headers = {"stdint.h": WORDS, "math.h": MATH, "stdlib.h": ALLOCATION}            # noqa: RUF012
    declares_in_for = False

    def machine(self) -> Machine:
        return Machine("small", vector_bytes=1, registers=8, cache_bytes=(8 << 10, 64 << 10), has_fma=False)

    def compiler(self) -> toolchain.Compiler:
        return toolchain.choose(self.settings["CC"], ("gcc",), self.host)

    def flags(self, compiler: toolchain.Compiler) -> list[str]:
        return ["-std=c89", *[f for f in toolchain.EXACT if not f.startswith("-std")], "-O1", "-fPIC", "-Wno-psabi", *self.host.cflags]

    def trailer(self, manifest: Mapping[str, Any]) -> str:
        return manifest_c(manifest)                                                 # without the short way from Python, which is C99
