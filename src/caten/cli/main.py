"""The `caten` command: from the raw command line to an exit code.

From the import of this module until the command runs, Ctrl-C ends the process there and then: nothing has to be undone yet, and an exception
would meet code that prints it.
"""
from __future__ import annotations

import _signal  # type: ignore[import-not-found]   # the part in C, without stubs: signal itself takes a while to import
import sys

OURS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler      # not where the parent had it ignored, as for a job in the background
if OURS:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from .. import __version__  # noqa: E402   imported after what must come first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """The entry point. `--version` is answered before anything else is imported."""
    arguments = sys.argv[1:]
    if "--version" in (arguments[:arguments.index("--")] if "--" in arguments else arguments):
        print(f"caten {__version__}")
        sys.exit(0)
    from .boundary import guarded  # imported here, because --version must not pay for it
    from .signals import install

    install()
    sys.exit(guarded(arguments, interruptible=OURS))
