"""What the stage commands have in common: programs at a level, printed as text."""
from __future__ import annotations

from .. import driver
from ..core.text import show
from ..echo import escape
from ..schedule.log import Entry, explained
from .files import STDOUT, write
from .inputs import load, sources
from .options import Request


def print_level(request: Request, level: str, explain: bool = False) -> None:
    """The inputs' programs at `level`, one S-expression each, to -o or stdout; with `explain`, behind each what was planned and tried for it."""
    texts: list[str] = []
    for program in load(request, sources(request)):
        log: list[Entry] = []
        texts.append(show(driver.advance(program, level, request.options, request.warn, log=log)))
        texts += [f"; {escape(line)}" for line in explained(log)] if explain else []
    write(request.output or STDOUT, "".join([text + "\n" for text in texts]))
