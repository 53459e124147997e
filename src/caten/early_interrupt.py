"""Ctrl-C while a command starts. From the import of this module until the command runs it ends the process at once:
there is nothing to clean up yet, and an exception during an import would print a traceback."""
from __future__ import annotations

_signal = __import__("_signal")             # the C part, which has no stubs: importing signal takes longer
# False if the parent ignores SIGINT, as a shell does for background jobs
OURS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if OURS:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
