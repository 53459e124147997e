"""Where figures come from: the machine, the software, the day."""
from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..runtime import cpu

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def described() -> dict[str, Any]:
    """Facts about this machine and this moment, for a file of results."""
    return {"cpu": cpu.model(), "cpus": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.release()}",
            "huge_pages": huge_pages(), "python": platform.python_version(), "numpy": np.__version__,
            "caten": __version__,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def huge_pages() -> str:
    """`always`, `madvise` or `never`: whether large arrays may lie in huge pages; empty where the system does not
    tell."""
    try:
        text = HUGE_PAGES.read_text()
    except OSError:
        return ""
    return text.partition("[")[2].partition("]")[0]
