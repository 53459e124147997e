"""Shell completion with click's scripts and protocol, from the commands and their options."""
from __future__ import annotations

import contextlib
import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from ..errors import CatenError
from .app import COMPLETE, cli, with_command
from .argv import normalise
from .explanation_pages import all_pages, title_of

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """The completion script for a shell."""
    return _completer(shell).source().strip() + "\n"


def answer(instruction: str) -> int:
    """Print completions for the instruction in the variable `COMPLETE`; the exit code, 1 for an unknown instruction."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    completer = _completer(shell)
    words, incomplete = completer.get_completion_args()
    found: list[CompletionItem] = []
    with contextlib.suppress(CatenError):          # messages would disturb the command line
        found = completions(completer, words, incomplete)
    sys.stdout.write("".join([completer.format_completion(item) + "\n" for item in found]))
    return 0


def completions(completer: ShellComplete, words: list[str], incomplete: str) -> list[CompletionItem]:
    """The completions of `incomplete` after `words`. Without a command both commands and files: `build` is the
    default."""
    try:
        plain = normalise(words)
    except CatenError:                             # the command line so far is invalid
        plain = words
    found = completer.get_completions(with_command(plain), incomplete)
    return found if plain else [*completer.get_completions([], incomplete), *found]


def _completer(shell: str) -> ShellComplete:
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, "caten", COMPLETE)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A file name, which the shell completes itself."""
    return [CompletionItem(incomplete, type="file")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Diagnostic codes with their titles."""
    return [CompletionItem(code, help=title_of(page))
            for code, page in all_pages().items() if code.startswith(incomplete.upper())]


def runtimes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runtimes, or paths of runtime files."""
    from ..options import environment
    from ..runtime import discover
    listed = discover.listing(environment()["runtime_path"])
    return [*[CompletionItem(r.name) for r in listed if r.name.startswith(incomplete)],
            CompletionItem(incomplete, type="file")]


def config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The option keys of the chosen runtime; after `KEY=` its values, if they are few."""
    from ..options import environment
    from ..runtime import discover
    from ..runtime.protocol import Choice, Flag
    done, _, last = incomplete.rpartition(",")
    lead = done + "," if done else ""
    options = discover.find(ctx.params.get("runtime") or "clang", environment()["runtime_path"]).config
    key, equals, value = last.partition("=")
    if not equals:
        return [CompletionItem(f"{lead}{name}=", help=option.help)
                for name, option in options.items() if name.startswith(key.upper())]
    option = options.get(key.upper())
    values = ("0", "1") if isinstance(option, Flag) else [str(v) for v in option.of] if isinstance(option,
                                                                                                   Choice) else ()
    return [CompletionItem(f"{lead}{key}={v}") for v in values if v.startswith(value)]
