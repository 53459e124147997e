"""The outermost boundary: every end of a command becomes an exit code, and every error a readable message."""
from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from .. import faults
from ..errors import CatenError, Diagnostic, did_you_mean
from . import signals
from .app import COMPLETE, cli, with_command
from .argv import normalise
from .atomic_files import unwritable
from .diagnostics import FORMATS, Reporter

OK, FAILED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 4, 130


def guarded(arguments: Sequence[str], interruptible: bool = False) -> int:
    """Run one command line and return its exit code. `interruptible`: Ctrl-C raises KeyboardInterrupt during the run;
    before and after, it ends the process."""
    reporter = Reporter(format=asked_format(arguments))
    code = INTERNAL
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run(arguments, reporter)
        reporter.finish(code)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        signals.kill_children()
        code = INTERRUPTED
    except signals.Terminated as stop:
        signals.kill_children()
        code = 128 + stop.number
    except BrokenPipeError:
        code = _closed_pipe(code)
    except OSError as problem:                                # the last flush found a full disk behind stdout
        with contextlib.suppress(OSError):
            code = reporter.caught(unwritable("stdout", problem))
        _silence()
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _run(arguments: Sequence[str], reporter: Reporter) -> int:
    try:
        if COMPLETE in os.environ:
            from .completion import answer  # imported here: only completion needs it
            return answer(os.environ[COMPLETE])
        words = with_command(normalise(arguments))
        # not cli.main, which handles pipes and Ctrl-C differently
        with cli.make_context("caten", words, obj=reporter) as context:
            result = cli.invoke(context)
        return result if isinstance(result, int) and result else FAILED if reporter.failed else OK
    except CatenError as problem:
        return reporter.caught(problem)
    except click.UsageError as problem:
        reporter.show([usage_diagnostic(problem)])
        return USAGE
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as problem:
        reporter.show([Diagnostic("E900", problem.format_message())])
        return USAGE
    except (KeyboardInterrupt, click.Abort, signals.Terminated):
        raise
    except BaseException as problem:                          # includes SystemExit: a runtime file may raise anything
        fault = _of_a_runtime(problem)
        if isinstance(problem,
                      OSError) and fault is None and (isinstance(problem, BrokenPipeError) or _is_of_echo(problem)):
            raise
        if _asks_for_tracebacks(arguments):
            traceback.print_exc()
        if fault is not None:
            return reporter.caught(fault)
        reporter.show([internal(problem, arguments)])
        return INTERNAL


def usage_diagnostic(problem: click.UsageError) -> Diagnostic:
    """An error of click as a diagnostic of caten."""
    command = problem.ctx.command_path if problem.ctx else "caten"
    hint = f"{command} --help lists the options".replace("caten build", "caten")
    if isinstance(problem, click.NoSuchOption):
        known = [name for p in (problem.ctx.command.params if problem.ctx else [])
                 for name in (*p.opts, *p.secondary_opts)]
        return Diagnostic("E901", f"unknown option '{problem.option_name}'",
                          hint=did_you_mean(problem.option_name, known) or hint)
    if isinstance(problem, click.exceptions.NoArgsIsHelpError) and problem.ctx and isinstance(problem.ctx.command,
                                                                                              click.Group):
        commands = ", ".join(problem.ctx.command.commands)
        return Diagnostic("E900", f"{command} needs a command: {commands}",
                          hint=f"{command} --help describes them")
    return Diagnostic("E900", " ".join(problem.format_message().split()).rstrip("."), hint=hint)


def internal(problem: BaseException, arguments: Sequence[str]) -> Diagnostic:
    """The diagnostic of an internal error, E940; the traceback goes to a file in the cache."""
    where = faults.kept(problem, f"caten {' '.join(arguments)}", os.environ.get("CATEN_CACHE_DIR") or None)
    return Diagnostic("E940", f"internal error: {type(problem).__name__}", notes=((where, None),), hint=faults.PLEASE)


def asked_format(arguments: Sequence[str]) -> str:
    """The value of --diagnostics-format, found without parsing the command line, because parsing may fail."""
    option = "--diagnostics-format"
    asked = [b for a, b in pairwise(arguments) if a == option] + [a.removeprefix(f"{option}=") for a in arguments
                                                                  if a.startswith(f"{option}=")]
    return asked[-1] if asked and asked[-1] in FORMATS else "text"


def _asks_for_tracebacks(arguments: Sequence[str]) -> bool:
    """Is --debug 4 given, in any spelling?"""
    return bool({"--debug=4", "-d4"} & set(arguments) or {("--debug", "4"), ("-d", "4")} & set(pairwise(arguments)))


def _of_a_runtime(problem: BaseException) -> CatenError | None:
    """The diagnostic that blames a runtime file, if one is in the traceback."""
    from ..runtime import discover, plugin_checks  # imported here: rarely needed
    return plugin_checks.blamed(problem, discover.builtin_folder())


def _is_of_echo(problem: OSError) -> bool:
    """Did click raise it while printing?"""
    *_, (frame, _) = traceback.walk_tb(problem.__traceback__)
    return Path(frame.f_code.co_filename).parts[-2:] == ("click", "utils.py")


def _closed_pipe(code: int) -> int:
    """The exit code after the reader of stdout has closed the pipe, which is no error."""
    _silence()
    return OK if code == INTERNAL else code


def _silence() -> None:
    """Redirect stdout to /dev/null, so that the interpreter's flush at exit cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
