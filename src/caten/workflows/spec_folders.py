"""The specs in folders."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import tomli

from ..errors import Diagnostic, UsageError

SECTIONS = ("composite", "implementation")         # a document with neither is no spec


def expanded(inputs: Sequence[str]) -> tuple[str, ...]:
    """Replace every folder by the specs below it, sorted and without duplicates; hidden folders and .toml files that
    are no specs, such as pyproject.toml, are skipped. UsageError E902 for a folder without specs."""
    found: list[str] = []
    for name in inputs:
        if name in ("", "-") or name.lstrip().startswith("(") or not os.path.isdir(name):
            found.append(name)
            continue
        below = [p for p in sorted(Path(name).rglob("*.toml"))
                 if p.is_file() and not any(part.startswith(".") for part in p.relative_to(name).parts)]
        specs = [str(p) for p in below if _may_be_spec(p)]
        if not specs:
            message = f"no .toml file below {name} is a spec" if below else f"there is no .toml file below {name}"
            raise UsageError(Diagnostic("E902", message, hint="a spec has a [composite] section" if below else None))
        found += specs
    return tuple(dict.fromkeys(found)) if found.count("-") < 2 else tuple(found)


def _may_be_spec(path: Path) -> bool:
    """False for a TOML document without a section that only specs have. A file with errors may be a spec."""
    try:
        document = tomli.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return True
    return any(name in document for name in SECTIONS)
