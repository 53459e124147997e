"""The text of a translation unit of C: its helpers, the kernels of its programs, and their entry points."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from ..core.expr import Expr
from ..core.program import At, Buffer, Doc, Lines, Scalar, Schedule, Signature, Size, Source
from ..core.text import flat
from ..loop.statements import Aref, For, Kernel, Local, LoopProgram, Stmt, Vref
from . import compiled_parts, definitions, short_loops
from .c_expressions import Expressions
from .c_identifiers import REFERENCE, Names, exports, free, symbol
from .c_scope import View
from .c_statements import KernelBody
from .c_tables import CTables
from .cache_hints import NON_TEMPORAL_MACROS
from .cpu_check import CPU_CHECK
from .entry_points import EntryPoints, escaped
from .helper_functions import Helpers
from .invariant_divisions import with_invariant_divisions
from .long_kernels import Call, versions
from .recurrent_operands import with_recurrent_operands_last
from .scratch_memory import THREADS, layout
from .source_locations import SourceLocations
from .unrolling import unroll
from .work_estimate import threshold

_PRAGMA = "#define CT_PRAGMA(words) _Pragma(#words)\n"
_UNROLL = "#define CT_UNROLL(n) CT_PRAGMA(GCC unroll n)\n"
_EXPORT = '#define CT_API __attribute__((visibility("default")))\n'
# Wide vectors are passed only inside one translation unit, so the compilers' warning about their calling convention
# does not apply.
_VECTORS = """#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
"""
_APART = "CT_APART_"           # before a function's name, as long as a helper may have the same
_THREADS = "extern int omp_get_max_threads(void);\nextern int omp_get_thread_num(void);\n"


def translation_unit(style: CTables, *programs: LoopProgram) -> str:
    """One translation unit for one program, or for a library of several."""
    named = [p.name for p in programs]
    taken = exports(named, [p.place() for p in programs]) + [symbol(n.removesuffix(REFERENCE)) for n in named]
    helpers, body, used = _texts(style, programs, taken)
    own = helpers.text()
    if not helpers.texts.keys().isdisjoint(used):
        own, body = _apart(style, programs, taken)
    head = [f"#include <{h}>\n" for h in sorted(helpers.headers) if h not in style.headers]
    head += ["\n" + text for h, text in style.headers.items() if h in helpers.headers]
    hints = (_UNROLL if "CT_UNROLL" in body else "") + (short_loops.MACRO if "CT_WHOLE_VECTORS" in body else "")
    exported = (CPU_CHECK if style.checks_cpu else _EXPORT) + (_PRAGMA + hints if hints else "")
    pieces = ["".join(head), exported, NON_TEMPORAL_MACROS if "CT_STREAMED" in body else "",
              _THREADS if "omp_get_" in body else "", _VECTORS if "vector_size" in own else "", own, body]
    return "\n".join([title(p) for p in programs]) + "\n" + "\n".join([p for p in pieces if p])


def _texts(style: CTables, programs: Sequence[LoopProgram], taken: Sequence[str],
           prefix: str = "ct_") -> tuple[Helpers, str, list[str]]:
    """The helpers, the text of the programs, and all names of functions outside the helpers: `taken` and those in
    the text."""
    helpers = Helpers(style.types, style.ops, style.vector_functions, definitions.write, style.fused,
                      style.settings.get("MATH") == "fast",
                      style.vector_bytes)
    used = [prefix + name.removeprefix("ct_") for name in taken]
    found = [_program(style, p, helpers, used, prefix) for p in programs]
    parts = compiled_parts.apart(
        [k for kernels, _ in found for k in kernels], [entries for _, entries in found],
        lambda k, keys: compiled_parts.key_of(k, helpers.texts, keys)) if style.in_parts else None
    return helpers, parts or "\n".join([text for kernels, entries in found for text in (*kernels, entries)]), used


def _apart(style: CTables, programs: Sequence[LoopProgram], taken: Sequence[str]) -> tuple[str, str]:
    """The helpers and the programs where a helper has the name of a function (an operator may be called max_f32):
    the helper gets another one. Until then functions bear a prefix that tells them from helpers."""
    helpers, text, marked = _texts(style, programs, taken, _APART)
    used = {"ct_" + name.removeprefix(_APART) for name in marked}
    others = {name: free(name + "_", used | helpers.texts.keys()) for name in helpers.texts if name in used}
    own, body = (re.sub(r"\bct_\w+", lambda m: others.get(m[0], m[0]), text)
                 for text in (helpers.text(), text))
    return own, body.replace(_APART, "ct_")


def _program(style: CTables, program: LoopProgram, helpers: Helpers, taken: list[str],
             prefix: str) -> tuple[list[str], str]:
    """The functions of the kernels, and the entry points."""
    style.check_types(program)
    parallel = style.has_threads
    if not style.promotes_unrolled_arrays:
        program = unroll(program)
    program = with_recurrent_operands_last(with_invariant_divisions(program))
    blocks = layout(program, parallel)
    names = Names([p.declares()[0] for p in program.params if isinstance(p, (Buffer, Scalar, Size))],
                  own=(THREADS.name,))
    entry = EntryPoints(program, names, helpers, blocks, prefix, style.allocates, style.checks_cpu)
    source = program.first(Source)
    file = escaped(source.file) if source and program.first(Lines) else ""
    kernels: list[str] = []
    places = program.all(At)
    views, flags, indices = declared_names(style, program)

    def add(part: Kernel, own: set[str], name: str, given: Expr | None = None,
            calls: Mapping[tuple[Stmt, ...], Call] | None = None) -> Call:
        """Add the function of a kernel, or of a version of it, in which this condition holds."""
        # The views get those of the kernel's own arrays, too.
        ex = Expressions(helpers, names, {n: view for n, view in views.items() if n in own}, flags, indices)
        with nullcontext() if given is None else ex.given(given):
            body = KernelBody(part, ex, dict(style.marks), blocks, parallel, threshold(program), style.region,
                              SourceLocations(places, source), file, style.declares_in_for, style.auto_vectorizes,
                              style.confuses_lanes, calls or {})
        name = free(name, taken)
        taken.append(name)
        # what follows is not from the spec
        kernels.append(entry.kernel(name, body) + ('#line 1 "<generated>"\n' if file else ""))
        return Call(name, tuple(entry.functions[part.name][1]))
    for kernel in program.kernels:
        own = {n.buffer for n in kernel.unique() if isinstance(n, Aref | Vref)}
        name = f"{entry.symbol}_{symbol(kernel.name)[3:]}"
        found = versions(kernel) if style.in_parts else []
        add(kernel, own, name, calls={
            v.body: add(Kernel(kernel.name, (*v.arrays, *v.body)), own, f"{name}_v{n}", v.condition)
            for n, v in enumerate(found, 1)})
    return kernels, entry.text(taken)


def declared_names(style: CTables, program: LoopProgram) -> tuple[dict[str, View], frozenset[str], frozenset[str]]:
    """The arrays of a program as its kernels see them, and the names of its bools and of its indices."""
    shared = style.has_threads
    views = {b.name: View(b.name, b.type, b.axes, b.axes_in_memory, b.strides, outside=True,
                          shared=shared and b.access != "in")
             for b in program.buffers.values()}
    views |= {c.name: View(c.name, c.type, c.shape, tuple(range(len(c.shape)))) for c in program.all(Local)}
    flags = frozenset(s.name for s in program.all(Scalar) if s.type == "bool")
    indices = frozenset([*[s.name for s in program.all(Size)],
                         *[n.name for n in program.unique() if isinstance(n, For)]])
    return views, flags, indices


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
