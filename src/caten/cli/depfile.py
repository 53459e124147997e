"""Dependency files for make, as gcc's -MD -MF -MT -MP write them."""
from __future__ import annotations

from collections.abc import Sequence


def depfile(targets: Sequence[str], dependencies: Sequence[str], *, phony: bool = False) -> str:
    """`gemm.so: gemm.toml runtimes/clang.py`; with `phony` an empty rule for every dependency but the first, so that a deleted one stops no build."""
    unique = list(dict.fromkeys(dependencies))
    rule = " ".join([quoted(t) for t in targets]) + ":" + "".join([f" \\\n  {quoted(d)}" for d in unique]) + "\n"
    return rule + "".join([f"\n{quoted(d)}:\n" for d in unique[1:]] if phony else [])


def quoted(name: str) -> str:
    """A file name as make reads it."""
    return name.replace("\\", "\\\\").replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$").replace(":", "\\:")
