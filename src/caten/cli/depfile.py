"""Dependency files for make, as gcc's -MD -MF -MT -MP write them."""
from __future__ import annotations

import re
from collections.abc import Sequence


def depfile(targets: Sequence[str], dependencies: Sequence[str], *, phony: bool = False) -> str:
    """`gemm.so: gemm.toml runtimes/clang.py`; with `phony` an empty rule for every dependency but the first, so that a
    deleted one stops no build."""
    unique = list(dict.fromkeys(dependencies))
    rule = " ".join([quoted(t, TARGET) for t in targets]) + ":" + "".join([f" \\\n  {quoted(d, NEEDED)}"
                                                                           for d in unique]) + "\n"
    return rule + "".join([f"\n{quoted(d, TARGET)}:\n" for d in unique[1:]] if phony else [])


# What make reads as something else, unless a backslash stands before it: in the name of a target, and in that of what
# it needs.
TARGET, NEEDED = " \t#:%", " \t#:*?[|"


def quoted(name: str, special: str) -> str:
    """A file name as make reads it. A backslash is one like any other character, but before one of the special ones."""
    text = re.sub(rf"(\\*)([{re.escape(special)}])", r"\1\1\\\2", name).replace("$", "$$")
    return text.replace("=", "$(or =)") if special == NEEDED else text
