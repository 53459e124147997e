"""The header of a library: C99 and C++, with a comment that says how to call each function."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import size_formula
from ..core.dtypes import DTYPES, is_packed
from ..core.program import Source
from ..loop.statements import For, LoopProgram
from ..render.c_identifiers import Names
from ..render.c_tables import TYPES
from ..render.scratch_memory import THREADS, runs_threads
from ..render.work_estimate import threshold

INTERFACE = """\
 * Every function returns 0, or a number that says what went wrong:
 *   n > 0   check n failed; the function's _check gives the text for n. The values of outputs are then unspecified.
 *   -1      out of memory.
 *   -2      this processor lacks a feature that the library was compiled for, which _check names; nothing was
 *           written. Only on x86-64.
 * Arrays are dense in the order given, aligned to one element, and may not overlap where one of them is written. Sizes
 * are counts of elements and may be 0. A function with _ws uses scratch memory from the caller, as many bytes as its
 * _ws_size returns for the same sizes (-1 for sizes that a call refuses); a function without _ws allocates.
 * There is no global state: any number of threads may call any of these functions at once, on different outputs."""

# What the C types of storage types do not say.
STORAGE = (
    (("f16",), " * A float16 is passed as its bits: IEEE 754 binary16."),
    (("bf16",), " * A bfloat16 is passed as its bits: the upper half of those of a float."),
    (("i4", "u4"), " * Arrays of int4 and uint4 hold two elements in a byte, the first one in its low half, counted "
                   "along the whole array in its\n"
                   " * order; a last element without a neighbour has a byte to itself. Two calls at once may not "
                   "write elements of the same byte."),
)


def header(programs: Sequence[LoopProgram], manifest: Mapping[str, Any]) -> str:
    """The header's text for the library of `programs` that `manifest` describes."""
    files = dict.fromkeys([fact.file for p in programs if (fact := p.first(Source))])
    ops = manifest.get("ops") or [manifest]
    guard = "CT_" + "_".join([op["symbol"].removeprefix("ct_").upper() for op in ops]) + "_H"
    used = {a["dtype"] for op in ops for a in op["arguments"]}
    title = ", ".join([op["op"] for op in ops]) + (f" from {', '.join(files)}" if files
                                                   else "") + f" for {manifest['target'] or 'any target'}."
    layouts = [text for types, text in STORAGE if used & set(types)]
    lines = [f"/* {_comment(title)}", " *", INTERFACE, *layouts,
             *[f" * {_comment(line)}" for line in _threads(programs)], " */",
             f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "", "#ifdef __cplusplus",
             'extern "C" {', "#endif", ""]
    for name, part in (("c64", "float"), ("c128", "double")):
        if name in used:
            lines += [f"#ifndef CT_{name.upper()}_DEFINED", f"#define CT_{name.upper()}_DEFINED",
                      f"typedef struct {{ {part} re, im; }} ct_{name};   /* as a C complex number lies in memory */",
                      "#endif", ""]
    for op in ops:
        lines += [*_comment_of(op), *declarations(op, parameter_names(op)), ""]
    lines += ["/* The manifest of this library, as JSON. In a program with several libraries ct_manifest is that of "
              "one of them. */",
              *[f"extern const char *const {op['symbol']}_manifest;" for op in ops], "extern const char ct_manifest[];",
              "",
              "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def parameter_names(op: Mapping[str, Any]) -> dict[str, str]:
    """Argument -> its C identifier: the name in the spec, unless C needs that one."""
    names = Names([a["name"] for a in op["arguments"]])
    return {a["name"]: names.of(a["name"]) for a in op["arguments"]}


def parameters(op: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """The parameters as C declares them."""
    found = []
    for a in op["arguments"]:
        const = "const " if a["kind"] == "tensor" and a["direction"] == "in" else ""
        found.append(f"{const}{element_type(a)} {'*' if a['kind'] == 'tensor' else ''}{names[a['name']]}")
    return found


def workspace_parameters(op: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """The parameters of the function that returns the size of the workspace: all sizes, and each scalar that the size
    depends on."""
    depends = size_formula.names(size_formula.formula(op["scratch_bytes"]))
    return [f"{element_type(a)} {names[a['name']]}" for a in op["arguments"] if a["kind"] == "size"
            or a["name"] in depends]


def element_type(a: Mapping[str, Any]) -> str:
    """The C type of a scalar, or of what an array is an array of: bytes of two elements where these have 4 bits."""
    return "uint8_t" if a["kind"] == "tensor" and is_packed(a["dtype"]) else TYPES[a["dtype"]]


def declarations(op: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """The C declarations of one operator's functions, the one to call first."""
    given, symbols = parameters(op, names), op["symbols"]
    call = [f"int32_t {symbols['call']}({', '.join(given) or 'void'});"] if "call" in symbols else []
    return [*call,
            f"int32_t {symbols['workspace']}({', '.join([*given, 'void *ct_scratch'])});",
            f"int64_t {symbols['workspace_size']}({', '.join(workspace_parameters(op, names)) or 'void'});",
            f"const char *{symbols['check']}(int32_t row);"]


def _comment_of(op: Mapping[str, Any]) -> list[str]:
    """The comment above one operator's functions."""
    lines = [f"{op['op']}: {op['documentation'].strip()}" if op["documentation"].strip() else op["op"], ""]
    lines += [f"  {_argument(a)}" for a in op["arguments"]]
    if op["binds"]:
        lines += ["", "Compiled for " + ", ".join([f"{n} = {v}" for n, v in op["binds"].items()])
                  + "; the arguments must agree."]
    if op["conditions"]:
        lines += ["", "Required: " + ", ".join(op["conditions"])]
    scratch, name = f"{op['scratch_bytes']} bytes", THREADS.name
    if name in scratch:
        scratch += f", where {name} is what omp_get_max_threads() returns"
    lines += ["", f"Scratch memory of {op['symbols']['workspace']}: {scratch}, aligned to 64."]
    if op["checks"]:
        lines += ["", "Checks:"] + [f"  {row['row']}  {row['text']}" for row in op["checks"]]
    clean = [_comment(line).rstrip() for line in "\n".join(lines).split("\n")]
    return ["/* " + clean[0], *[f" * {line}".rstrip() for line in clean[1:]], " */"]


def _argument(a: Mapping[str, Any]) -> str:
    match a["kind"]:
        case "tensor":
            shape = " ".join([str(e) for e in a["shape"]])
            axes = " ".join([str(i) for i in a["order"]])
            order = f", axes from slowest to fastest {axes}" if a["order"] != sorted(a["order"]) else ""
            strides = f", strides in elements {' '.join([str(s) for s in a['strides']])}" if a["strides"] else ""
            what = {"in": "read", "out": "written", "inout": "read and written"}[a["direction"]]
            return f"{a['name']}: {DTYPES[a['dtype']].numpy} [{shape}]{order}{strides}, {what}"
        case "scalar":
            return f"{a['name']}: {DTYPES[a['dtype']].numpy}"
        case kind:
            return f"{a['name']}: {kind}"


def _threads(programs: Sequence[LoopProgram]) -> list[str]:
    """What is true of threads inside a call."""
    threaded = [p for p in programs if runs_threads(p)
                and any(isinstance(n, For) and n.mark == "parallel" for k in p.kernels for n in k.unique())]
    if not threaded:
        return ["Each call runs on the calling thread alone."]
    which = "" if len(threaded) == len(programs) else f" of {', '.join([p.name for p in threaded])}"
    others = "less work" if not which else "less work, and every other function,"
    least = min(map(threshold, threaded))
    return [f"Loops{which} with more than about {least} operations run on several threads, by OpenMP: as many as "
            f"the environment variable",
            f"OMP_NUM_THREADS says, else one for each processor that the process may use; {others} stays on the "
            f"calling thread.",
            "The results are the same for any number of threads."]


def _comment(text: str) -> str:
    """Text that cannot end a comment, nor continue a line."""
    clean = "".join([c if c.isprintable() or c == "\n" else " " for c in text])
    return clean.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("\\\n", "\\ \n")
