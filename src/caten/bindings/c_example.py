"""A program that calls a library and checks itself: the answer to "how do I call what was generated?", as C that
compiles.

It carries the operators once more as they were written, unscheduled, under the names `NAME_reference`, and compares.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from ..core.dtypes import DTYPES, is_packed, is_short
from ..core.program import Program
from ..core.size_formula import evaluate, formula
from ..core.small_sizes import small_sizes
from ..errors import error
from ..render.c_identifiers import REFERENCE, symbol
from ..render.c_tables import TYPES
from .c_header import element_type, parameter_names

TOLERANCE = {"f16": "4e-3", "bf16": "3e-2", "f32": "1e-4", "c64": "1e-4", "f64": "1e-10", "c128": "1e-10"}

_FILL = """\
/* Numbers that look random and are the same every time: in (-1, 1), small for integers, which may be indices. */
static uint32_t state;
static double next_number(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / 8388608.0 - 1.0;
}
"""
_CLOSE = """\
static int is_close(double got, double want, double tolerance)
{
    if (want != want || got != got) return want != want && got != got;
    return got == want || fabs(got - want) <= tolerance * (1.0 + fabs(want));
}
"""
# Numbers from -1 to 1 as 16-bit floats, by their bits, rounded towards zero.
_TO_SHORT = {
    "f16": """\
static uint16_t f16_of(double x)
{
    union { float value; uint32_t bits; } u = {(float)x};
    const uint32_t size = u.bits & 0x7fffffffu;
    return (uint16_t)((u.bits >> 16 & 0x8000u) | (size < 0x38800000u ? 0 : (size - 0x38000000u) >> 13));
}
""",
    "bf16": """\
static uint16_t bf16_of(double x)
{
    union { float value; uint32_t bits; } u = {(float)x};
    return (uint16_t)(u.bits >> 16);
}
""",
}
_OF_SHORT = {
    "f16": """\
static double of_f16(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double finite = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY) : finite;
    return h & 0x8000 ? -size : size;
}
""",
    "bf16": """\
static double of_bf16(uint16_t h)
{
    union { uint32_t bits; float value; } u = {(uint32_t)h << 16};
    return u.value;
}
""",
}


def as_reference(program: Program) -> Program:
    """The program under the name that the example's reference bears."""
    return program.replace(name=program.name + REFERENCE)


def example(manifest: Mapping[str, Any], reference: str, name: str = "gemm", needed: Sequence[str] = ()) -> str:
    """The text of a main.c for a library `name`.so with the header `name`.h. `needed`: the paths of shared libraries
    that the library needs and the loader does not find by itself. `reference`: the C text of `as_reference` of each of
    its programs, rendered without a schedule."""
    ops = manifest.get("ops") or [manifest]
    mains = [_check(op) for op in ops]
    used = {a["dtype"] for op in ops for a in op["arguments"]}
    written = {a["dtype"] for op in ops for a in op["arguments"] if a["direction"] != "in"}
    defined = [f"#define CT_{t.upper()}_DEFINED   /* by the reference above */" for t in ("c64", "c128") if t in used]
    folder = "./" if name.startswith("-") else ""
    main, library, program = [quote(word) for word in (f"{folder}{name}_main.c", f"-l:{name}.so", f"{name}_main")]
    more = "".join([f" -Wl,--no-as-needed {quote(path)} -Wl,-rpath,{quote(os.path.dirname(path))}" for path in needed])
    included = f'"{name}.h"'
    if '"' in name:
        included, library = f"<{name}.h>", f"-I. {library}"
    if "\n" in name or "??" in name or ('"' in name and ">" in name):
        raise error("E903", f"no C program can include a header called {name + '.h'!r}, so there is no example",
                    hint="give the library a plain name with -o")
    line = f"cc -O1 -std=c11 {main} -L. {library} -Wl,-rpath,'$ORIGIN'{more} -lm -o {program} && ./{program}"
    head = [f"/* {line} */", "",
            "#include <math.h>", "#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>", "",
            "/* ---- the reference: the same operators as they were written */", "", reference.strip(), "",
            "/* ---- calling and comparing */", "", *defined, f"#include {included}", "", _FILL,
            *[text for t, text in _TO_SHORT.items() if t in used],
            *[text for t, text in _OF_SHORT.items() if t in written], _CLOSE]
    calls = [f"    failures += check_{op['symbol']}();" for op in ops]
    body = ["int main(void)", "{", "    int failures = 0;", *calls, '    puts(failures ? "FAILED" : "ok");',
            "    return failures != 0;", "}", ""]
    return "\n".join([*head, *mains, *body])


def _variables(op: Mapping[str, Any]) -> dict[str, str]:
    """The C variable of each argument: the parameter's name, unless the program uses it or its `_want` twin."""
    taken, found = {"e", "expected", "is_close", "next_number", "result", "state"}, {}
    for name, spelled in parameter_names(op).items():
        while not taken.isdisjoint({spelled, spelled + "_want"}):
            spelled += "_"
        taken |= {spelled, spelled + "_want"}
        found[name] = spelled
    return found


def _check(op: Mapping[str, Any]) -> str:
    """The C function that calls one operator twice and compares: the library's and the reference."""
    sizes, spelled = small_sizes(op), _variables(op)
    call, reference = op["symbols"]["call"], symbol(op["op"] + REFERENCE)
    lines = [f"static int check_{op['symbol']}(void)", "{"]
    lines += [f"    const int64_t {spelled[s]} = {v};" for s, v in sizes.items()]
    extents = {a["name"]: [evaluate(formula(e), sizes) for e in a["shape"]] for a in op["arguments"]}
    first: list[str] = []
    second: list[str] = []
    filled: list[str] = []
    compared: list[str] = []
    for a in op["arguments"]:
        name, kind, ctype = spelled[a["name"]], a["kind"], element_type(a)
        count = 1
        for extent in extents[a["name"]]:
            count *= extent
        count = (count + 1) // 2 if kind == "tensor" and is_packed(a["dtype"]) else count
        match kind:
            case "tensor":
                other = name if a["direction"] == "in" else f"{name}_want"
                shape = "".join([f"[{e}]" for e in extents[a["name"]]]) or " one element"
                lines += [f"    static {ctype} {name}[{max(count, 1)}];   /* {shape.strip()} */"]
                lines += [f"    static {ctype} {other}[{max(count, 1)}];"] if other != name else []
                filled += [f"    for (int64_t e = 0; e < {count}; e++) {_fill(f'{name}[e]', a['dtype'])}",
                           *([f"    for (int64_t e = 0; e < {count}; e++) {other}[e] = {name}[e];"] if other != name
                             else [])]
                compared += _compare(name, other, count, a) if other != name else []
                first, second = [*first, name], [*second, other]
            case "scalar":
                filled += [f"    {ctype} {name};", f"    {_fill(name, a['dtype'])}"]
                first, second = [*first, name], [*second, name]
            case "size":
                first, second = [*first, name], [*second, name]
            case _:                                              # a stride: the arrays here are dense
                lines += [f"    const int64_t {name} = {_dense_stride(a['name'], op, extents)};"]
                first, second = [*first, name], [*second, name]
    lines += ["    state = 1;", *filled]
    lines += [f"    const int32_t result = {call}({', '.join(first)});",
              f"    const int32_t expected = {reference}({', '.join(second)});",
              "    if (result != expected) {",
              f'        printf("{op["op"]}: result %d instead of %d: %s\\n", (int)result, (int)expected,'
              f' result ? {op["symbols"]["check"]}(result) : "");', "        return 1;", "    }",
              "    if (result) {",
              f'        printf("{op["op"]}: refuses these numbers, and so does the reference: %s\\n",'
              f' {op["symbols"]["check"]}(result));',
              "        return 0;", "    }", *compared, "    return 0;", "}", ""]
    return "\n".join(lines)


def _fill(place: str, dtype: str) -> str:
    """The statement that gives a place its number."""
    match DTYPES[dtype].kind:
        case "float" if is_short(dtype):
            return f"{place} = {dtype}_of(next_number());"
        case "float":
            return f"{place} = ({TYPES[dtype]})next_number();"
        case "complex":
            return f"{{ {place}.re = ({_part(dtype)})next_number(); {place}.im = ({_part(dtype)})next_number(); }}"
        case "bool":
            return f"{place} = next_number() > 0;"
        case _:
            return f"{place} = ({TYPES[dtype]})((next_number() + 1) * 1.5);"


def _part(dtype: str) -> str:
    return "float" if dtype == "c64" else "double"


def _compare(name: str, want: str, count: int, a: Mapping[str, Any]) -> list[str]:
    dtype = a["dtype"]
    match DTYPES[dtype].kind:
        case "float" if is_short(dtype):
            shown = f"of_{dtype}({name}[e]), of_{dtype}({want}[e])"
            close = f"is_close({shown}, {TOLERANCE[dtype]})"
        case "float":
            close = f"is_close({name}[e], {want}[e], {TOLERANCE[dtype]})"
            shown = f"(double){name}[e], (double){want}[e]"
        case "complex":
            close = (f"is_close({name}[e].re, {want}[e].re, {TOLERANCE[dtype]}) && is_close({name}[e].im, "
                     f"{want}[e].im, {TOLERANCE[dtype]})")
            shown = f"(double){name}[e].re, (double){want}[e].re"
        case _:
            close, shown = f"{name}[e] == {want}[e]", f"(double){name}[e], (double){want}[e]"
    return [f"    for (int64_t e = 0; e < {count}; e++)", f"        if (!({close})) {{",
            f'            printf("{a["name"]}: element %lld is %g instead of %g\\n", (long long)e, {shown});',
            "            return 1;", "        }"]


def _dense_stride(stride: str, op: Mapping[str, Any], extents: Mapping[str, Sequence[int]]) -> int:
    """The stride in elements that a dense array has along the axis that a stride argument is of."""
    for a in op["arguments"]:
        for axis, spelled in enumerate(a["strides"] or ()):
            if spelled == stride:
                faster = a["order"][a["order"].index(axis) + 1:]
                product = 1
                for f in faster:
                    product *= extents[a["name"]][f]
                return product
    return 1
