"""The report of `--test`: results, compiler and flags, the library, and how to call it."""
from __future__ import annotations

import shlex
from collections.abc import Mapping

from ..bindings.c_header import declarations, parameter_names
from ..compiler import Built
from ..echo import escape
from ..runtime.manifest import Manifest, operators
from ..testing import runner
from .atomic_files import STDOUT, write
from .output_kinds import Plan
from .outputs import Production


def run_test(production: Production, todo: Plan, settings: Mapping[str, int | float]) -> int:
    """Run every operator at its settings and print the report; the exit code, 1 if an operator fails."""
    built, options = production.built("so"), production.request.options
    reports = []
    for program in built.ops:
        known = {*program.sizes, *[p.declares()[0] for p in program.params if hasattr(p, "declares")]}
        own = {name: value for name, value in settings.items() if name in known}
        reports += runner.run_at(built, own, options, program.name)
    lines = [line for report in reports for line in report.lines()]
    write(STDOUT, "".join([f"{line}\n" for line in (*lines, *about(built, todo))]))
    for report in reports:
        production.request.reporter.show(report.diagnostics)
    return 0 if all(report.passed for report in reports) else 1


def about(built: Built, todo: Plan) -> list[str]:
    """Lines about the library: compiler, flags, path, prototypes."""
    record, library = built.record, todo.path("so")
    lines = [f"compiled by {escape(record.compiler)} {escape(record.version)}".rstrip()]
    lines += [f"  {escape(shlex.join(record.flags))}"] if record.flags else []
    if library is None:
        return lines
    header = todo.path("header")
    lines.append(f"library {escape(library)}" + (f", header {escape(header)}" if header else ""))
    ops = operators(built.manifest) if header else []
    for op in ops:
        lines += [f"  C       {prototype(op)};", f"  Python  {call(op, library, len(ops) > 1)}"]
    return lines


def prototype(op: Manifest) -> str:
    """The C declaration of an operator."""
    return declarations(op, parameter_names(op))[0].removesuffix(";")


def call(op: Manifest, library: str, several: bool) -> str:
    """A Python call of an operator. `several`: the library has other operators too, so it is an attribute."""
    given = [a["name"] for a in op["arguments"] if a["kind"] == "scalar"
             or (a["kind"] == "tensor" and a["direction"] != "out")]
    outs = [a["name"] for a in op["arguments"] if a["kind"] == "tensor" and a["direction"] != "in"]
    attribute = f".{op['op']}" if several else ""
    return f"{', '.join(outs)} = caten.load({library!r}){attribute}({', '.join(given)})"
