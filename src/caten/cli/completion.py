"""Shell completion. The scripts and their protocol are click's; what is completed follows from the commands."""
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
    """The script that a shell evaluates to complete command lines of caten."""
    return _completer(shell).source().strip() + "\n"


def answer(instruction: str) -> int:
    """What a shell's script asked for by the value of `COMPLETE`, on stdout; 1 for an instruction that no script
    gives."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    completer = _completer(shell)
    words, incomplete = completer.get_completion_args()
    found: list[CompletionItem] = []
    with contextlib.suppress(CatenError):          # a shell that asks is no place for messages
        found = completions(completer, words, incomplete)
    sys.stdout.write("".join([completer.format_completion(item) + "\n" for item in found]))
    return 0


def completions(completer: ShellComplete, words: list[str], incomplete: str) -> list[CompletionItem]:
    """What may stand at the place of `incomplete` behind `words`: without a command before it commands and files,
    because building needs none."""
    try:
        plain = normalise(words)
    except CatenError:                             # wrong already: completed as it stands
        plain = words
    found = completer.get_completions(with_command(plain), incomplete)
    return found if plain else [*completer.get_completions([], incomplete), *found]


def _completer(shell: str) -> ShellComplete:
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, "caten", COMPLETE)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A file's name: the shell's own business."""
    return [CompletionItem(incomplete, type="file")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Diagnostic codes with their titles."""
    return [CompletionItem(code, help=title_of(page))
            for code, page in all_pages().items() if code.startswith(incomplete.upper())]


def runtimes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runtimes, or the path of a runtime file."""
    from ..options import environment
    from ..runtime import discover
    listed = discover.listing(environment()["runtime_path"])
    return [*[CompletionItem(r.name) for r in listed if r.name.startswith(incomplete)],
            CompletionItem(incomplete, type="file")]


def config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The keys of the chosen runtime, and the values of one that has few."""
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
