"""The start of the `daten` command."""
from __future__ import annotations

from caten.early_interrupt import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """The entry point."""
    from .cli import main
    main(interruptible=OURS)
