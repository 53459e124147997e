"""The command group: a table of commands, each loaded from its file when it is used."""
from __future__ import annotations

from importlib import import_module
from typing import Any

import click

# Command -> its one line in `caten --help`. The command is the object `command` of the module of that name in this package.
COMMANDS: dict[str, str] = {
    "build": "Specs to a library; what caten does without a command.",
    "parse": "A spec to the (op …) level: checked, its names and types settled.",
    "ir": "A spec, or what parse printed, to the (tensor …) level: index notation.",
    "schedule": "A spec, or what ir printed, to the (loop …) level: scheduled kernels.",
    "render": "A spec, or what schedule printed, to source text: C.",
    "compile": "A spec, or the text of any stage, to a library: the same as build.",
    "test": "Run the tests that specs carry.",
    "test-runtime": "Test a runtime: every operator, element type and feature.",
    "report": "Put the records of test-runtime side by side.",
    "run": "Run an operator on your own arrays.",
    "bench": "Measure how fast specs run, and what that is of what the machine can do.",
    "tune": "Search for schedules that are faster on this machine, for -O3.",
    "check": "Report what is wrong with specs; write nothing.",
    "explain": "Explain a diagnostic code.",
    "doctor": "Show compilers and libraries found, and what to install.",
    "runtimes": "List the runtimes.",
    "new": "Write a runtime to start from.",
    "cache": "Show or clean the cache of compiled libraries.",
    "fmt": "Format specs.",
    "completions": "Print the script that completes command lines in a shell.",
    "man": "Print or write manual pages.",
}
COMPLETE = "_CATEN_COMPLETE"      # in the environment: a shell asks what may stand on the command line

EPILOG = """\b
Examples:
  caten gemm.toml                                   gemm.so, gemm.h, gemm.json
  caten -i gemm.toml --runtime clang --test "M=512,N=512,K=512" --config OMP=1,MARCH=native --debug 1
  caten gemm.toml softmax.toml -o libops.so         several specs, one library
  caten -S gemm.toml -o -                           assembly on stdout
  caten parse gemm.toml | caten ir - | caten schedule - | caten render -
  caten explain E301                                what a diagnostic means

Without a command caten builds: `caten build --help` lists the options."""


class Group(click.Group):
    """Commands from the table; a module is imported when its command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module: Any = import_module(f".{cmd_name.replace('-', '_')}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Group, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
             subcommand_metavar="[COMMAND] [OPTIONS] FILE…", options_metavar="")
@click.version_option(package_name="caten", message="caten %(version)s")
def cli() -> None:
    """caten: a gcc-style compiler for tensor operators. A spec of an operator in, a native library out."""
