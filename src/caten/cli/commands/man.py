"""`caten man`: manual pages in man(7) macros, generated from the help texts."""
from __future__ import annotations

import os
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import click

from ...errors import Diagnostic, UsageError, did_you_mean
from ...version import __version__
from ..app import COMMANDS, EPILOG, cli
from ..atomic_files import STDOUT, unwritable, write

EXAMPLES = """\b
Examples:
  caten man | man -l -           show the page of caten
  caten man test
  caten man -o build/man1        write every page; MANPATH=build lets man find them"""

EXIT_STATUS = (
    ("0", "Success."), ("1", "A spec has errors, or a test failed."), ("2", "The command line is wrong."),
    ("3", "The host compiler or another tool is missing or failed."), ("4", "An internal error."),
    ("5", "No operator, case or test matched."),
    ("130", "Interrupted."),
    ("143", "Terminated."))
ENVIRONMENT = (
    ("CC, CFLAGS, LDFLAGS", "The C compiler, its flags and those of the linker. The command line overrides them."),
    ("CATEN_RUNTIME_PATH", "Folders to search for runtime files, separated by colons."),
    ("CATEN_CACHE_DIR", "The folder of compiled libraries."), ("TMPDIR", "The folder of temporary files."),
    ("NO_COLOR", "Disable colours."),
    ("FORCE_COLOR", "Enable colours, also without a terminal."),
    ("SOURCE_DATE_EPOCH", "The date of manual pages, in seconds since 1970."))


@click.command("man", epilog=EXAMPLES)
@click.argument("name", metavar="[COMMAND]", required=False)
@click.option("-o", "--output", "folder", metavar="DIR",
              help="Write the pages of all commands to this folder, as caten.1, caten-test.1 and so on.")
def command(name: str | None, folder: str | None) -> None:
    """Print the manual page of caten or of one command; with -o, write all of them."""
    if name is not None and name not in COMMANDS:
        raise UsageError(Diagnostic("E900", f"there is no command '{name}'",
                                    hint=did_you_mean(name, tuple(COMMANDS)) or "caten --help lists them"))
    if folder is None:
        write(STDOUT, page(name))
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from None
    for each in (None, *COMMANDS) if name is None else (name,):
        write(str(Path(folder) / f"{_title(each)}.1"), page(each))


def page(name: str | None) -> str:
    """The page of a command, or of caten itself."""
    return _group_page() if name is None else _command_page(name)


def _title(name: str | None) -> str:
    return "caten" if name is None else f"caten-{name}"


def _group_page() -> str:
    return "".join([
        _head("caten", "a gcc-style compiler for tensor operators"),
        _section("SYNOPSIS", ".B caten\n[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR] \\fIFILE\\fR...\n"),
        _section("DESCRIPTION", _text("caten compiles specs of tensor operators to a native library with its header "
                                      "and manifest. The default command is build.")),
        _section("COMMANDS", _list(tuple(COMMANDS.items()))), _section("EXIT STATUS", _list(EXIT_STATUS)),
        _section("ENVIRONMENT", _list(ENVIRONMENT)),
        _section("EXAMPLES", _verbatim(EPILOG)),
        _section("SEE ALSO", "".join([f".BR caten\\-{name} (1)\n" for name in COMMANDS])),
    ])


def _command_page(name: str) -> str:
    with click.Context(cli, info_name="caten") as above:
        command = cli.get_command(above, name)
        assert command is not None
        with click.Context(command, info_name=name, parent=above) as context:
            options = [(getattr(p, "group", "Options"), record) for p in command.get_params(context)
                       if isinstance(p, click.Option) and (record := p.get_help_record(context))]
            usage = " ".join(command.collect_usage_pieces(context))
    groups: dict[str, list[tuple[str, str]]] = {}
    for group, record in options:
        groups.setdefault(group, []).append(record)
    listed = "".join([f".SS {_escaped(group)}\n{_list(records)}" for group, records in groups.items()])
    return "".join([
        _head(_title(name), COMMANDS[name].rstrip(".")), _section("SYNOPSIS", f".B caten {name}\n{_escaped(usage)}\n"),
        _section("DESCRIPTION", _text(command.help or "")), _section("OPTIONS", listed),
        _section("EXIT STATUS", _list(EXIT_STATUS)),
        _section("EXAMPLES", _verbatim(command.epilog)) if command.epilog else "",
        _section("SEE ALSO", ".BR caten (1)\n"),
    ])


def _head(title: str, about: str) -> str:
    """The title line, and the NAME section for `whatis`. The date comes from SOURCE_DATE_EPOCH, or there is none, so
    that pages are reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    date = datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%d") if epoch.isdigit() else ""
    return (f'.TH "{title.upper()}" "1" "{date}" "caten {__version__}" "User Commands"\n'
            f'.SH NAME\n{_escaped(title)} \\- {_escaped(about)}\n')


def _section(title: str, body: str) -> str:
    return f".SH {title}\n{body}"


def _list(records: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> str:
    return "".join([f".TP\n.B {_escaped(term.replace(' =', '='))}\n{_text(about)}" for term, about in records])


def _text(text: str) -> str:
    """Paragraphs, for the formatter to fill."""
    paragraphs = [" ".join(p.split()) for p in textwrap.dedent(text).split("\n\n") if p.strip()]
    return "\n.PP\n".join([_escaped(p) for p in paragraphs]) + "\n"


def _verbatim(epilog: str) -> str:
    """The lines of a click epilog as they are, without its heading and the mark `\\b`."""
    lines = [line.removeprefix("  ") for line in epilog.split("\n") if line.strip() not in ("\b", "Examples:")]
    return ".nf\n" + "".join([_escaped(line) + "\n" for line in lines]) + ".fi\n"


def _escaped(text: str) -> str:
    """Escape the characters with a meaning in man(7): backslashes, hyphens, a dot or quote at the start of a line."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\\&" + plain if plain.startswith((".", "'")) else plain
