"""When text is coloured: on a terminal, unless the environment says otherwise."""
from __future__ import annotations

import os
from typing import IO, Any


def wants_colour(stream: IO[str]) -> bool:
    """NO_COLOR turns colours off, FORCE_COLOR and CLICOLOR_FORCE turn them on without a terminal, CLICOLOR=0 and
    TERM=dumb turn them off on one. The first of these that is set decides. (https://no-color.org,
    https://force-color.org, https://bixense.com/clicolors)"""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb" and stream.isatty()


def console(stream: IO[str], **settings: Any) -> Any:
    """A rich.console.Console that writes to `stream` in colour, whatever the stream is; `settings` are rich's."""
    from rich.console import Console  # takes longer to import than many a command runs
    return Console(file=stream, force_terminal=True, no_color=False,
                   color_system="auto" if stream.isatty() else "standard", **settings)
