"""`caten explain`: the page of a diagnostic code."""
from __future__ import annotations

import sys
from importlib import resources

import click

from ..errors import Diagnostic, UsageError, did_you_mean
from .completions import codes
from .diagnostics import wants_colour
from .files import STDOUT, write

EXAMPLES = """\b
Examples:
  caten explain E301
  caten explain --list"""


@click.command("explain", epilog=EXAMPLES)
@click.argument("codes", nargs=-1, metavar="CODE…", shell_complete=codes)
@click.option("--list", "listing", is_flag=True, help="Every code with its title.")
def command(codes: tuple[str, ...], listing: bool) -> None:
    """Explain diagnostic codes such as E301: what they mean, an example, what to do."""
    pages = all_pages()
    if listing:
        write(STDOUT, "".join([f"{code}  {title_of(text)}\n" for code, text in pages.items()]))
    elif not codes:
        raise UsageError(Diagnostic("E900", "which code?", hint="caten explain E301, or caten explain --list"))
    else:
        show("\n".join([page(code, pages) for code in codes]))


def all_pages() -> dict[str, str]:
    """Code -> page, in the order of the codes."""
    files = [f for f in resources.files("caten").joinpath("explanations").iterdir() if f.name.endswith(".md")]
    return {f.name.removesuffix(".md"): f.read_text("utf-8") for f in sorted(files, key=lambda f: f.name)}


def page(code: str, pages: dict[str, str]) -> str:
    """The page of one code, in any case; UsageError for an unknown one."""
    found = pages.get(code.upper())
    if found is None:
        raise UsageError(Diagnostic("E912", f"there is no diagnostic '{code}'",
                                    hint=did_you_mean(code.upper(), tuple(pages)) or "caten explain --list shows them all"))
    return f"{found.rstrip()}\n"


def title_of(text: str) -> str:
    """The first line of a page without its heading mark."""
    return text.split("\n", 1)[0].lstrip("# ").strip()


def show(markdown: str) -> None:
    """Formatted on a terminal, as it is elsewhere."""
    if wants_colour(sys.stdout):
        from rich.console import Console
        from rich.markdown import Markdown
        Console(width=min(Console().width, 100)).print(Markdown(markdown))
    else:
        write(STDOUT, markdown)
