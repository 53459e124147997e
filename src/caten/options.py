"""The options of one compilation, from the command line, the environment or a Python call."""
from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from .errors import Diagnostic, UsageError
from .frozen import frozen

# Flags of C compilers with which the same C text means something else: sums in another order, no NaN, no denormals,
# integers that do not wrap.
OTHER_MEANING = frozenset((
    "-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-ffinite-math-only", "-fassociative-math",
                           "-freciprocal-math", "-fno-signed-zeros",
    "-fapprox-func", "-ffp-contract=fast", "-ffp-contract=on", "-ffp-model=fast", "-ffp-model=aggressive", "-mdaz-ftz",
                           "-mrecip",
    "-fno-wrapv", "-ftrapv"))


@frozen
class Instance:
    """One operator of a generic spec. `arrays`: for tensors by name, the element type and the shape, in which a number
    is an extent and a text the name of a size. `attributes`: by name. `of`: the operator that it is an instance of;
    without a name, of each operator."""

    arrays: tuple[tuple[str, str, tuple[int | str, ...]], ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    of: str = ""


@frozen
class Options:
    """Everything that can change the result. Nothing below the command line and the Python interface reads the
    environment instead.

    `given` names the fields that the user set explicitly: where a text of an earlier stage already says otherwise,
    those must not contradict it."""

    runtime: str = "clang"                               # a name, or the path of a runtime file
    config: tuple[tuple[str, str], ...] = ()             # the runtime's own options, as given
    opt: int = 2                                         # -O0 … -O3
    binds: tuple[tuple[str, int], ...] = ()              # -DM=100
    strided: tuple[str, ...] = ()                        # -fstrided=A
    unchecked: bool = False                              # -fno-bounds-check
    in_order: bool = False                               # -fno-reassociate
    no_rewrite: bool = False                             # -fno-rewrite
    lines: bool = False                                  # -g
    include_dirs: tuple[str, ...] = ()                   # -I: where included and called specs are looked for
    only: tuple[str, ...] = ()                           # --only NAME
    schedule: str | None = None                          # the text of -s FILE
    schedule_file: str = "<schedule>"                    # its name, for diagnostics
    verify: bool = False                                 # --verify: after every pass and primitive
    # A fault of caten's own ends the build, and no simpler plan is taken (CATEN_STRICT=1).
    strict: bool = True
    seed: int = 0                                        # --seed
    debug: int = 0                                       # --debug 0…4
    # The codes of warnings that are given only where they are asked for: -Wscalar.
    asked: frozenset[str] = frozenset()
    cc_timeout: float = 120.0                            # seconds for one run of the host compiler
    use_cache: bool = True                               # --no-cache
    cache_dir: str | None = None                         # CATEN_CACHE_DIR (None: the platform's place)
    runtime_path: tuple[str, ...] = ()                   # CATEN_RUNTIME_PATH
    cc: str | None = None                                # $CC
    cflags: tuple[str, ...] = ()                         # $CFLAGS
    ldflags: tuple[str, ...] = ()                        # $LDFLAGS, -L, -l
    temp_dir: str | None = None                          # $TMPDIR
    instances: tuple[Instance, ...] = ()                 # --instance: of a generic spec
    case_instances: bool = False                         # without --instance, those that the test cases name
    given: frozenset[str] = frozenset()                  # the fields that were set explicitly


def environment(link: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of Options that come from the environment (an empty variable counts as absent). `link`: further words
    for the linker. Raises UsageError E910 and E916."""
    get = os.environ.get
    return {"cc": get("CC") or None, "cflags": _words("CFLAGS"), "ldflags": (*_words("LDFLAGS"), *from_here(link)),
            "temp_dir": get("TMPDIR") or None, "strict": get("CATEN_STRICT", "") not in ("", "0"),
            "cache_dir": get("CATEN_CACHE_DIR") or None,
            "runtime_path": tuple([d for d in get("CATEN_RUNTIME_PATH", "").split(os.pathsep) if d])}


def _words(variable: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(os.environ.get(variable, "")))
    except ValueError as problem:
        raise UsageError(Diagnostic("E910", f"${variable} cannot be split into words: {problem}",
                                    hint="close the quote")) from None
    same_meaning(words, f"${variable}")
    return from_here(words)


def from_here(words: Sequence[str]) -> tuple[str, ...]:
    """Words for the C compiler, with the folders of -I and -L as absolute paths: it is started in another folder."""
    found: list[str] = []
    for word in words:
        after = found[-1] if found and found[-1] in ("-I", "-L") else ""
        start = "" if after else word[:2]
        named = bool(after) or (start in ("-I", "-L") and len(word) > 2)
        found.append(start + os.path.abspath(word[len(start):]) if named else word)
    return tuple(found)


def same_meaning(words: Sequence[str], origin: str) -> None:
    """UsageError E916 for a C compiler flag that would change results. `origin`: the source of the words."""
    if bad := [w for w in words if w in OTHER_MEANING]:
        raise UsageError(Diagnostic("E916",
                                    f"{origin} holds {bad[0]}, with which results would depend on the C compiler",
                                    hint="leave it out; a schedule may reassociate sums and fuse products, visibly"))
