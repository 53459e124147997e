"""What the user asked for: the options of one compilation, resolved from the command line or a Python call."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Everything that can change the result. Nothing below reads the environment instead."""

    runtime: str = "clang"                               # a name, or the path of a runtime file
    config: tuple[tuple[str, str], ...] = ()             # the runtime's own options, as given
    opt: int = 2                                         # -O0 … -O3
    binds: tuple[tuple[str, int], ...] = ()              # -DM=100
    strided: tuple[str, ...] = ()                        # -fstrided=A
    unchecked: bool = False                              # -fno-bounds-check
    lines: bool = False                                  # -g
    include_dirs: tuple[str, ...] = ()                   # -I
    only: tuple[str, ...] = ()                           # --only NAME
    schedule: str | None = None                          # the text of -s FILE
    verify: bool = False                                 # --verify: after every pass and primitive
    seed: int = 0                                        # --seed
    debug: int = 0                                       # --debug 0…4
    cc_timeout: float = 120.0                            # seconds for one run of the host compiler
    use_cache: bool = True                               # --no-cache
    language: str | None = None                          # -x toml|lisp; None: from the name and the first character
    cc: str | None = None                                # $CC; --config CC= wins over it
    cflags: tuple[str, ...] = ()                         # $CFLAGS
    ldflags: tuple[str, ...] = ()                        # $LDFLAGS, then -L and -l of the command line
    temp_dir: str | None = None                          # $TMPDIR
    cache_dir: str | None = None                         # $CATEN_CACHE_DIR; None: the platform's
    runtime_path: tuple[str, ...] = ()                   # $CATEN_RUNTIME_PATH: folders of runtime files
