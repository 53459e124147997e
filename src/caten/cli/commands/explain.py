"""`caten explain`: print the pages of diagnostic codes."""
from __future__ import annotations

import shutil
import sys

import click

from ...errors import Diagnostic, UsageError, did_you_mean
from ..atomic_files import STDOUT, write
from ..completion import codes
from ..explanation_pages import all_pages, title_of
from ..terminal_colours import console, wants_colour

EXAMPLES = """\b
Examples:
  caten explain E301
  caten explain --list"""


@click.command("explain", epilog=EXAMPLES)
@click.argument("codes", nargs=-1, metavar="CODE…", shell_complete=codes)
@click.option("--list", "listing", is_flag=True, help="List every code with its title.")
def command(codes: tuple[str, ...], listing: bool) -> None:
    """Explain diagnostic codes such as E301: the meaning, an example, and what to do."""
    pages = all_pages()
    if listing:
        write(STDOUT, "".join([f"{code}  {title_of(text)}\n" for code, text in pages.items()]))
    elif not codes:
        raise UsageError(Diagnostic("E900", "no diagnostic code given",
                                    hint="caten explain E301, or caten explain --list"))
    else:
        show("\n".join([page(code, pages) for code in codes]))


def page(code: str, pages: dict[str, str]) -> str:
    """The page of a code, in upper or lower case. UsageError E912 for an unknown code."""
    found = pages.get(code.upper())
    if found is None:
        raise UsageError(Diagnostic("E912", f"there is no diagnostic '{code}'",
                                    hint=did_you_mean(code.upper(), tuple(pages))
                                    or "caten explain --list shows them all"))
    return f"{found.rstrip()}\n"


def show(markdown: str) -> None:
    """Print Markdown: formatted on a terminal, otherwise as it is."""
    if wants_colour(sys.stdout):
        from rich.markdown import Markdown
        console(sys.stdout, width=min(shutil.get_terminal_size().columns, 100)).print(Markdown(markdown))
    else:
        write(STDOUT, markdown)
