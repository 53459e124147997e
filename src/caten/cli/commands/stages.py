"""The stage commands `caten parse`, `ir`, `schedule`, `render`, `compile`: each takes a spec or an earlier stage's
output."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ... import driver
from ...core.text import show
from ...echo import escape
from ...frozen import frozen
from ...loop.statements import LoopProgram
from ...schedule import script
from ...schedule.planning_log import Entry, explained
from ...tensor.fused_text import fused as with_kernels
from ...tensor.fusion_report import explained as fusion_explained
from ...tensor.values import TensorProgram
from ..atomic_files import STDOUT, write
from ..inputs import load, sources
from ..shared_options import GroupedCommand, GroupedOption, Request, compiles
from .build import build


@frozen
class Stage:
    """A stage command. `run`: called with the request and the command's own options; `examples`: the lines below the
    help text; `own`: the options."""

    help: str
    examples: tuple[str, ...]
    run: Callable[..., int | None]
    makes_files: bool = False
    own: tuple[Callable[[Any], Any], ...] = ()


def level_printer(level: str) -> Callable[..., None]:
    """A command that prints the programs at a level, one S-expression each, to -o or stdout."""
    def run(request: Request) -> None:
        programs = [driver.advance(program, level, request.options, request.warn)
                    for program in load(request, sources(request), applied=level != "op")]
        write(request.output or STDOUT, "".join([show(program) + "\n" for program in programs]))
    return run


def print_values(request: Request, fused: bool) -> None:
    """Print the (tensor …) of each program to -o or stdout. `fused`: with the kernels of fusion."""
    programs = [driver.advance(program, "tensor", request.options, request.warn)
                for program in load(request, sources(request))]
    made = [with_kernels(p) if fused and isinstance(p, TensorProgram) else p for p in programs]
    write(request.output or STDOUT, "".join([show(p) + "\n" for p in made]))


def print_schedules(request: Request, explain: bool, steps: bool) -> None:
    """Print the (loop …) of each program to -o or stdout. `steps`: only the schedules; `explain`: add what fusion made
    and the planning log, as comments."""
    programs: list[LoopProgram] = []
    texts: list[str] = []
    for program in load(request, sources(request)):
        log: list[Entry] = []
        fusion: list[str] = []
        if explain and not isinstance(program, LoopProgram):
            program = driver.advance(program, "tensor", request.options, request.warn, log=log)
            fusion = list(fusion_explained(program)) if isinstance(program, TensorProgram) else []
        scheduled = driver.advance(program, "loop", request.options, request.warn, log=log, as_given=steps)
        assert isinstance(scheduled, LoopProgram)
        programs.append(scheduled)
        logs = [f"; {escape(line)}\n" for line in (*fusion, *explained(log))] if explain else []
        texts += logs if steps else [show(scheduled) + "\n", *logs]
    write(request.output or STDOUT, "".join([script.schedules_text(programs), *texts] if steps else texts))


def print_source(request: Request) -> None:
    """Print the source text of all programs to -o or stdout."""
    write(request.output or STDOUT, driver.render(load(request, sources(request)), request.options, request.warn))


EXPLAIN = click.option(
    "--explain", is_flag=True, cls=GroupedOption, group="Output",
    help="After each program, print as comments which values share a kernel, where they are kept, why others do not, "
         "which plans were considered, and why some were rejected.")
FUSED = click.option(
    "--fused", is_flag=True, cls=GroupedOption, group="Output",
    help="Print the kernels of fusion around the definitions, with their loops. The later stages keep them.")
STEPS = click.option(
    "--steps", is_flag=True, cls=GroupedOption, group="Output",
    help="Print only the schedules, (schedule STEP…), in the form for -s FILE and for [schedule] in a spec.")
STAGES: dict[str, Stage] = {
    "parse": Stage(
        "Print the validated, expanded spec: one (op …) per operator, with everything that later stages need.",
        ("caten parse gemm.toml", "caten parse -x lisp - < gemm.lisp",
         "caten parse '(composite ((A{float}[N]) -> (B{float}[N])) "
         "(dotimes (i N) (setf (aref B i) (* 2 (aref A i)))))'",
         "caten parse gemm.toml -DM=100 -march=x86_64_v3 > gemm.op"),
        level_printer("op")),
    "ir": Stage(
        "Print the (tensor …) level: shapes and types are inferred, and loop nests are raised to index notation if "
        "possible.",
        ("caten ir gemm.toml", "caten ir softmax.toml --fused", "caten parse gemm.toml | caten ir -",
         "caten ir softmax.toml --fused | caten schedule -"),
        print_values, own=(FUSED,)),
    "schedule": Stage(
        "Print the (loop …) level: kernels scheduled by -s FILE, by the spec's [schedule], or by the autoscheduler.",
        ("caten schedule gemm.toml", "caten schedule gemm.toml --steps -o tiles.lisp",
         "caten schedule gemm.toml -s tiles.lisp",
         "caten schedule gemm.toml --explain", "caten ir gemm.toml | caten schedule -"),
        print_schedules, own=(EXPLAIN, STEPS)),
    "render": Stage(
        "Print the source text that the runtime compiles; for most runtimes it is C.",
        ("caten render gemm.toml", "caten render gemm.toml -o gemm.c",
         "caten schedule gemm.toml | caten render - | cc -x c -fsyntax-only -"),
        print_source),
    "compile": Stage(
        "Compile specs, or the output of any stage, to a library; the same as build.",
        ("caten compile gemm.toml", "caten schedule gemm.toml | caten compile - -o gemm.so",
         "caten compile -c gemm.toml -o gemm.o"),
        build, makes_files=True),
}
def command(name: str) -> click.Command:
    """The command of a stage."""
    stage = STAGES[name]

    def callback(request: Request, **own: bool) -> int | None:
        return stage.run(request, **own)
    callback.__doc__ = stage.help
    epilog = "\n".join(["\b", "Examples:", *[f"  {line}" for line in stage.examples]])
    made = compiles(products=stage.makes_files)(callback)
    for option in reversed(stage.own):
        made = option(made)
    return click.command(name, cls=GroupedCommand, epilog=epilog)(made)
