"""What the stage commands have in common: programs at a level, printed as text."""
from __future__ import annotations

from .. import pipeline
from ..core.text import show
from .files import STDOUT, write
from .inputs import load, sources
from .options import Request


def print_level(request: Request, level: str) -> None:
    """The inputs' programs at `level`, one S-expression each, to -o or stdout."""
    programs = [pipeline.advance(p, level, request.options, request.warn) for p in load(request, sources(request))]
    write(request.output or STDOUT, "".join([show(p) + "\n" for p in programs]))
