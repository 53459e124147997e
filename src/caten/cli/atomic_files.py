"""Write files atomically: completely or not at all."""
from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path

from ..echo import escape_lines
from ..errors import CatenError, error

STDOUT = "-"


def unwritable(path: str, problem: OSError) -> CatenError:
    """The diagnostic for an output that cannot be written."""
    reason = problem.strerror or str(problem)
    return error("E909", f"cannot write {path}: {reason}",
                 hint="name another file with -o" if path != "stdout" else None)


def check(path: str) -> None:
    """Check, before long work, that `write` could write a file: its folder takes a temporary one. CatenError E909."""
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path != STDOUT and (target.is_file() or not target.exists()):
            with tempfile.TemporaryFile(dir=target.parent):
                pass
    except OSError as problem:
        raise unwritable(path, problem) from None


def write(path: str, content: str | bytes, mode: int = 0o644) -> None:
    """Write a temporary file in the folder of `path` and rename it. `-` is stdout; devices and pipes are written
    directly. CatenError E909."""
    # file names may contain bytes that are not UTF-8
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    if path == STDOUT:
        return _to_stdout(data)
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with open(target, "wb") as device:                # /dev/null, /dev/stdout, a named pipe
                device.write(data)
            return None
        target = Path(os.path.realpath(target))                # replace the target of a link, not the link
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:64]}.", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(temporary, mode & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise unwritable(path, problem) from None


def _to_stdout(data: bytes) -> None:
    """Write bytes to stdout. E909 if the disk behind a redirection is full; BrokenPipeError reaches the caller."""
    try:
        sys.stdout.flush()
        # the output may quote foreign text, whose control characters must not reach the terminal
        if sys.stdout.isatty():
            data = escape_lines(data.decode(errors="replace")).encode()
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:                                    # stdout was replaced by a text stream
            sys.stdout.write(data.decode())
        else:
            buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise unwritable("stdout", problem) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
