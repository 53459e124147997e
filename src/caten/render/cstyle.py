"""Loop programs as readable C11: one translation unit with the helpers it needs, the kernels, and the entry points of
the C ABI.

A runtime for a C-family language derives from `CStyle` and overrides its tables.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dtypes import DTYPES
from ..core.expr import Expr
from ..core.program import At, Buffer, Doc, Lines, Scalar, Schedule, Signature, Size, Source
from ..core.scalars import OPERATORS
from ..core.text import flat
from ..errors import error
from ..loop.statements import For, Local, LoopProgram
from . import compiled_parts, definitions
from .c_expressions import Expressions
from .c_identifiers import REFERENCE, Names, exports, free, symbol
from .c_scope import View
from .c_statements import KernelBody
from .cache_hints import NON_TEMPORAL_MACROS
from .code import ADD, BITAND, BITOR, BITXOR, EQUALITY, MUL, RELATION, Helper, Infix, Libm, Prefix, Spelling
from .cpu_check import CPU_CHECK
from .entry_points import EntryPoints, escaped
from .helper_functions import Helpers
from .scratch_memory import THREADS, layout
from .source_locations import SourceLocations
from .unrolling import unroll

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
_UNROLL = """#define CT_PRAGMA(words) _Pragma(#words)
#define CT_UNROLL(n) CT_PRAGMA(GCC unroll n)
"""
_EXPORT = '#define CT_API __attribute__((visibility("default")))\n'
# Wide vectors are passed only inside one translation unit, so gcc's warning about their calling convention does not
# apply.
_VECTORS = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
"""
_APART = "CT_APART_"           # before a function's name, as long as a helper may have the same
_THREADS = "extern int omp_get_max_threads(void);\nextern int omp_get_thread_num(void);\n"


class CStyle:
    """The tables of spellings, and `render`. `settings["OMP"]` switches parallel loops on."""

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

    def render(self, *programs: LoopProgram) -> str:
        """One translation unit for one program, or for a library of several."""
        named = [p.name for p in programs]
        taken = exports(named, [p.place() for p in programs]) + [symbol(n.removesuffix(REFERENCE)) for n in named]
        helpers, body, used = self._texts(programs, taken)
        own = helpers.text()
        if not helpers.texts.keys().isdisjoint(used):
            own, body = self._apart(programs, taken)
        head = [f"#include <{h}>\n" for h in sorted(helpers.headers) if h not in self.headers]
        head += ["\n" + text for h, text in self.headers.items() if h in helpers.headers]
        exported = (CPU_CHECK if self.checks_cpu else _EXPORT) + (_UNROLL if "CT_UNROLL" in body else "")
        pieces = ["".join(head), exported, NON_TEMPORAL_MACROS if "CT_STREAMED" in body else "",
                  _THREADS if "omp_get_" in body else "", _VECTORS if "vector_size" in own else "", own, body]
        return "\n".join([title(p) for p in programs]) + "\n" + "\n".join([p for p in pieces if p])

    def _texts(self, programs: Sequence[LoopProgram], taken: Sequence[str],
               prefix: str = "ct_") -> tuple[Helpers, str, list[str]]:
        """The helpers, the text of the programs, and all names of functions outside the helpers: `taken` and those in
        the text."""
        helpers = Helpers(self.types, self.ops, self.vector_functions, definitions.write, self.fused,
                          self.settings.get("MATH") == "fast",
                          self.vector_bytes)
        used = [prefix + name.removeprefix("ct_") for name in taken]
        found = [self._program(p, helpers, used, prefix) for p in programs]
        parts = compiled_parts.apart([k for kernels, _ in found for k in kernels], [entries for _, entries in found]
                                     ) if self.in_parts else None
        return helpers, parts or "\n".join([text for kernels, entries in found for text in (*kernels, entries)]), used

    def _apart(self, programs: Sequence[LoopProgram], taken: Sequence[str]) -> tuple[str, str]:
        """The helpers and the programs where a helper has the name of a function (an operator may be called max_f32):
        the helper gets another one. Until then functions bear a prefix that tells them from helpers."""
        helpers, text, marked = self._texts(programs, taken, _APART)
        used = {"ct_" + name.removeprefix(_APART) for name in marked}
        others = {name: free(name + "_", used | helpers.texts.keys()) for name in helpers.texts if name in used}
        own, body = (re.sub(r"\bct_\w+", lambda m: others.get(m[0], m[0]), text)
                     for text in (helpers.text(), text))
        return own, body.replace(_APART, "ct_")

    def _program(self, program: LoopProgram, helpers: Helpers, taken: list[str], prefix: str) -> tuple[list[str], str]:
        """The functions of the kernels, and the entry points."""
        self.check_types(program)
        parallel = self.has_threads
        if not self.promotes_unrolled_arrays:
            program = unroll(program)
        blocks = layout(program, parallel)
        names = Names([p.declares()[0] for p in program.params if isinstance(p, (Buffer, Scalar, Size))],
                      own=(THREADS.name,))
        entry = EntryPoints(program, names, helpers, blocks, prefix, self.allocates, self.checks_cpu)
        source = program.first(Source)
        file = escaped(source.file) if source and program.first(Lines) else ""
        kernels, places = [], program.all(At)
        views, flags, indices = self._declared(program)
        for kernel in program.kernels:
            ex = Expressions(helpers, names, dict(views), flags, indices)       # which get those of the kernel, too
            body = KernelBody(kernel, ex, dict(self.marks), blocks, parallel, self.region,
                              SourceLocations(places, source), file,
                              self.declares_in_for, self.auto_vectorizes)
            name = free(f"{entry.symbol}_{symbol(kernel.name)[3:]}", taken)
            taken.append(name)
            # what follows is not from the spec
            kernels.append(entry.kernel(name, body) + ('#line 1 "<generated>"\n' if file else ""))
        return kernels, entry.text(taken)

    @property
    def has_threads(self) -> bool:
        """May several threads run a kernel?"""
        return bool(self.settings.get("OMP"))

    def _declared(self, program: LoopProgram) -> tuple[dict[str, View], frozenset[str], frozenset[str]]:
        """The arrays of a program as its kernels see them, and the names of its bools and of its indices."""
        shared = self.has_threads
        views = {b.name: View(b.name, b.type, b.axes, b.axes_in_memory, b.strides, outside=True,
                              shared=shared and b.access != "in")
                 for b in program.buffers.values()}
        views |= {c.name: View(c.name, c.type, c.shape, tuple(range(len(c.shape)))) for c in program.all(Local)}
        flags = frozenset(s.name for s in program.all(Scalar) if s.type == "bool")
        indices = frozenset([*[s.name for s in program.all(Size)],
                             *[n.name for n in program.unique() if isinstance(n, For)]])
        return views, flags, indices

    def check_types(self, program: LoopProgram) -> None:
        """E611 where the program has an element type that the runtime's table lacks."""
        for node in program.unique():
            dtype = node.declares()[1] if hasattr(node, "declares") else node.dtype if isinstance(node, Expr) else ""
            if dtype in DTYPES and dtype not in self.types:
                raise error("E611", f"{program.name}: this runtime does not support {dtype}", program.place(),
                            hint=f"it supports {', '.join(self.types)}"
                            + "; sizes and indices are i64, so its table needs that" * (dtype == "i64"))


def _filled(words: list[str], width: int = 150) -> list[str]:
    """The words of a form, as many on a line as fit."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) < width:
            lines[-1] += " " + word
        else:
            lines.append("  " + word)
    return [*lines[:-1], lines[-1] + ")"]


def title(program: LoopProgram) -> str:
    """The comment on top: what it is, its signature, its schedule."""
    doc, declared, schedule = program.first(Doc), program.first(Signature), program.first(Schedule)
    lines = [program.name + (f": {doc.text.strip()}" if doc and doc.text.strip() else "")]
    if declared:
        lines += ["", *["  " + t for t in declared.tensors]]
    if schedule:
        lines += ["", *_filled(["(schedule", *map(flat, schedule.steps)])]
    text = "\n".join(lines)
    for old, new in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?"), ("\\\n", "\\ \n")):
        text = text.replace(old, new)
    clean = "".join([c if c.isprintable() or c == "\n" else " " for c in text])
    if "\n" not in clean:
        return f"/* {clean} */"
    return "/* " + "\n * ".join([line.rstrip() for line in clean.split("\n")]).replace("* \n", "*\n") + "\n */"
