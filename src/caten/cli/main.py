"""The `caten` command: from the raw command line to an exit code."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from .signals import install as install_signals
from .signals import plain_interrupts


def run() -> NoReturn:
    """The entry point. `--version` is answered before anything else is imported."""
    arguments = sys.argv[1:]
    if "--version" in (arguments[:arguments.index("--")] if "--" in arguments else arguments):
        print(f"caten {__version__}")
        sys.exit(0)
    with plain_interrupts():
        from . import boundary  # noqa: F401   imported here, because --version must not pay for it
    install_signals()
    sys.exit(execute(arguments))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. What it needs is imported here, because --version must not pay for it."""
    from .boundary import guarded

    return guarded(arguments)
