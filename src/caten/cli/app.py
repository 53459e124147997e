"""The command group: a table of commands, each imported when it runs."""
from __future__ import annotations

from importlib import import_module
from typing import Any

import click

# Command -> its line in `caten --help`. commands/NAME.py defines `command`; stage commands share commands/stages.py.
COMMANDS: dict[str, str] = {
    "build": "Compile specs to a library (the default command).",
    "parse": "Check a spec, resolve names and types, and print its (op …) level.",
    "ir": "Print the (tensor …) level, index notation, of a spec or of parse output.",
    "schedule": "Print the (loop …) level, scheduled kernels, of a spec or of any earlier stage.",
    "render": "Print the generated source (C) of a spec or of any earlier stage.",
    "compile": "Compile a spec, or the output of any stage, to a library.",
    "test": "Run the tests in specs.",
    "test-runtime": "Test a runtime on every operator, element type and feature.",
    "report": "Compare results of test-runtime side by side.",
    "run": "Run an operator on your own arrays.",
    "bench": "Benchmark specs, and compare them with the machine's peak.",
    "tune": "Search for faster schedules on this machine; -O3 uses them.",
    "ops": "List the operators of the library, show one, or compile some.",
    "check": "Check specs and report problems; write nothing.",
    "explain": "Explain a diagnostic code.",
    "doctor": "Show which compilers and libraries are installed or missing.",
    "runtimes": "List the runtimes and whether each is usable.",
    "new": "Create a runtime file to start from.",
    "cache": "Show or clean the cache of compiled libraries.",
    "fmt": "Format specs.",
    "completions": "Print a shell-completion script.",
    "man": "Print or write manual pages.",
}
STAGES = ("parse", "ir", "schedule", "render", "compile")
COMPLETE = "_CATEN_COMPLETE"      # the variable in which a completion script passes its request

EPILOG = """\b
Examples:
  caten gemm.toml                                   gemm.so, gemm.h, gemm.json
  caten -i gemm.toml --runtime clang --test "M=512,N=512,K=512" --config OMP=1,MARCH=native --debug 1
  caten gemm.toml softmax.toml -o libops.so         several specs, one library
  caten -S gemm.toml -o -                           assembly on stdout
  caten parse gemm.toml | caten ir - | caten schedule - | caten render -
  caten explain E301                                what a diagnostic means

Without a command caten builds: `caten build --help` lists the options."""


def with_command(words: list[str]) -> list[str]:
    """The words with the default command `build` in front, unless the first word is a command or asks for help."""
    return words if words and (words[0] in COMMANDS or words[0] in ("--help", "-h")) else ["build", *words]


class Group(click.Group):
    """The commands of the table; a command's module is imported when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in STAGES:
            stages: Any = import_module(".commands.stages", __package__)
            staged: click.Command = stages.command(cmd_name)
            return staged
        module: Any = import_module(f".commands.{cmd_name.replace('-', '_')}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Group, epilog=EPILOG,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
             subcommand_metavar="[COMMAND] [OPTIONS] FILE…", options_metavar="")
@click.version_option(package_name="caten", message="caten %(version)s")
def cli() -> None:
    """caten: a gcc-style compiler for tensor operators. It compiles a spec of an operator to a native library."""
