"""What the user asked for: the options of one compilation, resolved from the command line, the environment or a Python call."""
from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .errors import Diagnostic, UsageError


@dataclass(frozen=True)
class Options:
    """Everything that can change the result. Nothing below the command line and the Python interface reads the environment instead.

    `given` names the fields that the user set explicitly: where a text of an earlier stage already says otherwise, those must not contradict it.
    """

    runtime: str = "clang"                               # a name, or the path of a runtime file
    config: tuple[tuple[str, str], ...] = ()             # the runtime's own options, as given
    opt: int = 2                                         # -O0 … -O3
    binds: tuple[tuple[str, int], ...] = ()              # -DM=100
    strided: tuple[str, ...] = ()                        # -fstrided=A
    unchecked: bool = False                              # -fno-bounds-check
    lines: bool = False                                  # -g
    include_dirs: tuple[str, ...] = ()                   # -I: where included and called specs are looked for
    only: tuple[str, ...] = ()                           # --only NAME
    schedule: str | None = None                          # the text of -s FILE
    schedule_file: str = "<schedule>"                    # its name, for diagnostics
    verify: bool = False                                 # --verify: after every pass and primitive
    seed: int = 0                                        # --seed
    debug: int = 0                                       # --debug 0…4
    cc_timeout: float = 120.0                            # seconds for one run of the host compiler
    use_cache: bool = True                               # --no-cache
    cache_dir: str | None = None                         # CATEN_CACHE_DIR (None: the platform's place)
    runtime_path: tuple[str, ...] = ()                   # CATEN_RUNTIME_PATH
    cc: str | None = None                                # $CC
    cflags: tuple[str, ...] = ()                         # $CFLAGS
    ldflags: tuple[str, ...] = ()                        # $LDFLAGS, -L, -l
    temp_dir: str | None = None                          # $TMPDIR
    given: frozenset[str] = frozenset()                  # the fields that were set explicitly


def environment(link: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of Options that come from the environment (an empty variable counts as absent). `link`: further words for the
    linker. Raises UsageError E910."""
    get = os.environ.get
    return {"cc": get("CC") or None, "cflags": _words("CFLAGS"), "ldflags": (*_words("LDFLAGS"), *link),
            "temp_dir": get("TMPDIR") or None, "cache_dir": get("CATEN_CACHE_DIR") or None,
            "runtime_path": tuple([d for d in get("CATEN_RUNTIME_PATH", "").split(os.pathsep) if d])}


def _words(variable: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(os.environ.get(variable, "")))
    except ValueError as problem:
        raise UsageError(Diagnostic("E910", f"${variable} cannot be split into words: {problem}", hint="close the quote")) from None
