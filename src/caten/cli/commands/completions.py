"""`caten completions`: print a shell-completion script."""
from __future__ import annotations

import click

from ..atomic_files import STDOUT, write
from ..completion import SHELLS, script

EXAMPLES = """\b
Examples:
  caten completions bash      eval "$(caten completions bash)" in ~/.bashrc
  caten completions zsh       eval "$(caten completions zsh)" in ~/.zshrc
  caten completions fish      > ~/.config/fish/completions/caten.fish"""


@click.command("completions", epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a completion script for a shell. It completes the commands, options, runtimes, diagnostic codes and files
    of caten."""
    write(STDOUT, script(shell))
