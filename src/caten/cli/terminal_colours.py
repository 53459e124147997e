"""Colours on a terminal, and the environment variables that switch them on or off."""
from __future__ import annotations

import os
from typing import IO, Any


def wants_colour(stream: IO[str]) -> bool:
    """Should output to `stream` be coloured? NO_COLOR disables colours; FORCE_COLOR and CLICOLOR_FORCE enable them
    without a terminal; CLICOLOR=0 and TERM=dumb disable them on a terminal. The first that is set decides.
    (https://no-color.org, https://force-color.org, https://bixense.com/clicolors)"""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb" and stream.isatty()


def console(stream: IO[str], **settings: Any) -> Any:
    """A rich.console.Console that writes to `stream` in colour, with or without a terminal. `settings`: of rich."""
    from rich.console import Console  # imported here: the import takes longer than many commands
    return Console(file=stream, force_terminal=True, no_color=False,
                   color_system="auto" if stream.isatty() else "standard", **settings)
