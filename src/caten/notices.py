"""What a person should know while a tool is slow: logged for a library, printed by the command line."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def log(text: str) -> None:
    """To the logger `caten`, which says nothing unless the program configures logging."""
    import logging  # slow to import, and notices are rare
    logging.getLogger("caten").info(text)


tell: Callable[[str], None] = log
