"""The provenance of measurements: machine, software versions, date."""
from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import cores
from ..runtime import cpu
from ..version import __version__

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def described() -> dict[str, Any]:
    """The provenance recorded in a results file."""
    return {"cpu": cpu.model(), "cpus": cores.available(),
            "system": f"{platform.system()} {platform.release()}",
            "huge_pages": huge_pages(), "python": platform.python_version(), "numpy": np.__version__,
            "caten": __version__,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def huge_pages() -> str:
    """The transparent-huge-page setting: `always`, `madvise` or `never`; empty if the system has none."""
    try:
        text = HUGE_PAGES.read_text()
    except OSError:
        return ""
    return text.partition("[")[2].partition("]")[0]
