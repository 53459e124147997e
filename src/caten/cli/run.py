"""`caten run`: an operator on the user's own arrays."""
from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import click

from ..build import Built
from ..errors import Diagnostic, UsageError
from . import arguments
from .inputs import sources
from .options import GroupedCommand, Request, compiles
from .production import Production

EXAMPLES = """\b
Examples:
  caten run gemm.toml A=a.npy B=b.npy C=c.npy -o out.npz
  caten run axpy.toml a=2.0 x=data.npz:x y=data.npz:y
  caten run mlp.toml --only Relu X=x.npy -o y.npy"""


@click.command("run", cls=GroupedCommand, epilog=EXAMPLES)
@compiles(tools=True)
def command(request: Request) -> None:
    """Compile a spec and call it on NAME=FILE.npy, NAME=FILE.npz[:ENTRY] and NAME=NUMBER; the outputs go to -o FILE.npz, or as text to stdout."""
    specs, given = arguments.split(request.inputs)
    request = replace(request, inputs=specs)
    built = Production(request, sources(request)).built("so")
    if len(built.programs) > 1:
        names = ", ".join([p.name for p in built.programs])
        raise UsageError(Diagnostic("E913", f"there are {len(built.programs)} operators: {names}", hint="choose one with --only NAME"))
    written = [b.name for b in built.programs[0].buffers.values() if b.access != "in"]
    arguments.check_output(request.output, len(written))
    results = call(built, arguments.load(given))
    arguments.save(dict(zip(written, results, strict=True)), request.output)


def call(built: Built, values: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs, in the order of the C function's arguments. Ctrl-C ends the process at once: a kernel does not look for it."""
    loaded = built.runtime.load(built.artifact, built.manifest)
    function = getattr(loaded, built.programs[0].name, loaded)
    unknown = [name for name in values if name not in (a["name"] for a in built.manifest["arguments"])]
    if unknown:
        known = ", ".join([a["name"] for a in built.manifest["arguments"]])
        raise UsageError(Diagnostic("E913", f"{built.programs[0].name} has no argument '{unknown[0]}'", hint=f"it has {known}"))
    previous = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        results = function(**values)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return results if isinstance(results, tuple) else (results,)
