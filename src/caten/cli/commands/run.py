"""`caten run`: run an operator on arrays from files."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from ...compiler import Built
from ...core.numpy_types import as_stored
from ...errors import Diagnostic, UsageError, error
from ...frontend.composite import named
from ...runtime.manifest import operators
from .. import array_files
from ..inputs import sources
from ..outputs import library
from ..shared_options import GroupedCommand, Request, compiles

EXAMPLES = """\b
Examples:
  caten run gemm.toml A=a.npy B=b.npy C=c.npy -o out.npz
  caten run axpy.toml a=2.0 x=data.npz:x y=data.npz:y
  caten run mlp.toml --only Relu X=x.npy -o y.npy"""


@click.command("run", cls=GroupedCommand, epilog=EXAMPLES)
@compiles(tools=True)
def command(request: Request) -> None:
    """Compile a spec and call it on NAME=FILE.npy, NAME=FILE.npz[:ENTRY] and NAME=NUMBER. -o FILE.npz stores all
    outputs, -o FILE.npy a single one; without -o they are printed."""
    specs, given = array_files.split(request.inputs)
    request = replace(request, inputs=specs)
    built = library(request, sources(request)).loadable()
    found = operators(built.manifest)
    if len(found) > 1:
        names = ", ".join([op["op"] for op in found])
        raise UsageError(Diagnostic("E913", f"the inputs have {len(found)} operators: {names}",
                                    hint="choose one with --only NAME"))
    described, = found
    known = [a["name"] for a in described["arguments"]]
    meant = {name: named(name, known) for name in given}
    if unknown := [name for name, found in meant.items() if found is None]:
        raise UsageError(Diagnostic("E913", f"{described['op']} has no argument '{unknown[0]}'",
                                    hint=f"its arguments: {', '.join(known)}"))
    given = {found: given[name] for name, found in meant.items() if found is not None}
    array_files.check_output(request.output, len(described["outputs"]))
    types = {a["name"]: a["dtype"] for a in described["arguments"]}
    values = {name: as_stored(v, types[name]) if hasattr(v, "dtype") else v
              for name, v in array_files.load(given).items()}
    needed = {a["name"]: f"{a['name']}.npy" if a["kind"] == "tensor" else "1"
              for a in described["arguments"] if a["kind"] != "size" and a.get("direction") != "out"}
    if missing := [name for name in needed if name not in values]:
        words = " ".join([f"{name}={value}" for name, value in needed.items()])
        raise UsageError(Diagnostic("E913", f"{described['op']} needs {', '.join(missing)}",
                                    hint=f"caten run {' '.join(specs)} {words}"))
    array_files.save(call(built, described, values), request.output)


def call(built: Built, described: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by name. The kernel runs in a child process without a time limit: it may crash, and Ctrl-C ends
    it."""
    from ...testing import isolate
    name = described["op"]

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        loaded = built.runtime.load(built.artifact, built.manifest)
        results = getattr(loaded, name, loaded)(**values)
        return {}, dict(zip(described["outputs"], results if isinstance(results, tuple) else (results,), strict=True))

    outcome = isolate.run(work, None)
    if outcome.status == "error":
        raise outcome.error()
    if outcome.status != "ok":
        raise error("E715", f"{name}: the kernel crashed ({outcome.signal})",
                    hint="with -fno-bounds-check an access may be out of bounds: try without that option; "
                         "otherwise this is a fault of caten, please report it")
    return outcome.arrays
