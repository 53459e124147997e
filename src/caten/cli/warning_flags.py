"""The names of warnings for -W, and the policy that -W and -w define."""
from __future__ import annotations

from collections.abc import Sequence

from ..errors import Diagnostic, UsageError, did_you_mean
from .diagnostics import WarningPolicy

# Name -> diagnostic codes. All but ON_REQUEST are shown by default.
WARNINGS: dict[str, tuple[str, ...]] = {
    "cache": ("E650", "E651"),
    "records": ("E652", "E653"),
    "plans": ("E942", "E943"),
    "requests": ("E946",),
    "scalar": ("E944",),
    "nest": ("E945",),
}
ON_REQUEST = frozenset((*WARNINGS["scalar"], *WARNINGS["nest"]))
EVERYTHING = ("all", "extra")


def read_policy(flags: Sequence[str], silent: bool = False) -> WarningPolicy:
    """The policy of `-Wno-cache -Werror=cache -Werror -w`; later flags override earlier ones. UsageError E911."""
    silenced: set[str] = set(ON_REQUEST)
    errors: set[str] = set()
    all_errors = False
    for flag in flags:
        if flag in ("error", "no-error"):
            all_errors = flag == "error"
            continue
        name = flag.removeprefix("no-").removeprefix("error=")
        if name not in WARNINGS and name not in EVERYTHING:
            raise UsageError(Diagnostic("E911", f"unknown warning '-W{flag}'",
                                        hint=did_you_mean(name, (*WARNINGS, *EVERYTHING)) or
                                        f"the warnings are {', '.join(WARNINGS)}, "
                                        f"and all of them: {' or '.join(EVERYTHING)}"))
        codes = WARNINGS.get(name) or tuple([c for each in WARNINGS.values() for c in each])
        if flag.startswith("no-error="):
            errors.difference_update(codes)
        elif flag.startswith("no-"):
            silenced.update(codes)
        else:
            silenced.difference_update(codes)
            if flag.startswith("error="):
                errors.update(codes)
    return WarningPolicy(frozenset(silenced), frozenset(errors), all_errors, silent)
