"""The standard streams of a command, of which its parent may have closed some."""
from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Reopen standard streams that the parent closed, so that no other file gets their numbers: stdin is empty, writing
    to stdout fails, stderr goes to /dev/null."""
    for number, name, mode in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115   as long as the process
            setattr(sys, name, stream)
