"""What is asked of a runtime before and after its cases, in a process of its own: a runtime that crashes or hangs
there ends with a message."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Diagnostic, ToolError
from ..testing import pipe_messages
from . import pool

Facts = dict[str, Any]


def asked(what: str, work: Callable[[], Facts], seconds: float) -> Facts:
    """`work()` in a process of its own. ToolError E605 where that dies, or takes longer than so many seconds;
    `what`: what was asked, for the message."""
    def once() -> Iterator[pool.Message]:
        yield work(), {}
    child = pool.Child(once)
    try:
        facts, _ = child.receive(seconds)
    except pool.Died as why:
        raise ToolError(Diagnostic("E605", f"the process in which the runtime was asked {what} died: {why}")) from None
    except pipe_messages.Late:
        raise ToolError(Diagnostic("E605",
                                   f"the runtime was asked {what}, and did not answer within {seconds:g} s")) from None
    finally:
        child.kill()
    return facts
