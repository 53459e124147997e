"""The `caten` command: from the raw command line to an exit code."""
from __future__ import annotations

import gc
import os
import sys

from ..early_interrupt import OURS  # before the other imports
from ..version import __version__
from .standard_streams import open_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """The entry point. `--version` is answered before anything else is imported."""
    arguments = sys.argv[1:]
    if "--version" in (arguments[:arguments.index("--")] if "--" in arguments else arguments):
        open_streams()
        leave(say_version())
    open_streams()
    from .. import notices  # imported here, because --version must not pay for it
    from ..collector import COLLECTIONS
    gc.set_threshold(*COLLECTIONS)
    if sys.stderr.isatty() or {"-v", "--verbose"} & set(arguments):
        notices.tell = say_notice
    from .boundary import guarded
    from .signals import install

    install()
    leave(guarded(arguments, interruptible=OURS))


def say_version() -> int:
    """Print the version; the exit code."""
    try:
        print(f"caten {__version__}", flush=True)
    except BrokenPipeError:                              # the reader has closed the pipe
        pass
    except OSError as problem:
        print(f"caten: error: cannot write stdout: {problem.strerror} [E909]", file=sys.stderr)
        return 1
    return 0


def say_notice(text: str) -> None:
    """Print a notice on stderr."""
    print(f"caten: {text}", file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """End the process without freeing its objects, which takes about as long as rendering. After foreign code was
    loaded (kernels, drivers) the process ends normally, so that its buffers are flushed and its exit handlers run."""
    if "ctypes" in sys.modules or "_cffi_backend" in sys.modules:
        sys.exit(code)
    import atexit
    import contextlib
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):      # the boundary has handled a closed pipe
            stream.flush()
    os._exit(code)
