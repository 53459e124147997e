"""Dependency files for make, as gcc writes them with -MD -MF -MT -MP."""
from __future__ import annotations

import re
from collections.abc import Sequence


def depfile(targets: Sequence[str], dependencies: Sequence[str], *, phony: bool = False) -> str:
    """`gemm.so: gemm.toml runtimes/clang.py`. `phony`: add an empty rule for every dependency but the first, so that a
    deleted file does not stop make."""
    unique = list(dict.fromkeys(dependencies))
    rule = " ".join([quoted(t, TARGET) for t in targets]) + ":" + "".join([f" \\\n  {quoted(d, NEEDED)}"
                                                                           for d in unique]) + "\n"
    return rule + "".join([f"\n{quoted(d, TARGET)}:\n" for d in unique[1:]] if phony else [])


# Characters that make treats specially, unless a backslash precedes them: in target names, in prerequisite names.
TARGET, NEEDED = " \t#:%", " \t#:*?[|"


def quoted(name: str, special: str) -> str:
    """A file name, escaped for make. Backslashes are doubled only before a special character."""
    text = re.sub(rf"(\\*)([{re.escape(special)}])", r"\1\1\\\2", name).replace("$", "$$")
    return text.replace("=", "$(or =)") if special == NEEDED else text
