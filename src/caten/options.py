"""What the user asked for: the options of one compilation, resolved from the command line, the environment or a Python call."""
from __future__ import annotations

from dataclasses import dataclass


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
