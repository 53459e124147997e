"""Where figures come from: the machine, the software, the day."""
from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def described() -> dict[str, Any]:
    """Facts about this machine and this moment, for a file of results."""
    return {"cpu": cpu(), "cpus": len(os.sched_getaffinity(0)), "system": f"{platform.system()} {platform.release()}", "huge_pages": huge_pages(),
            "python": platform.python_version(), "numpy": np.__version__, "caten": __version__,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def cpu(info: str | None = None) -> str:
    """The CPU as the system names it; `info` is the text of /proc/cpuinfo."""
    if info is None:
        try:
            info = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        except OSError:
            info = ""
    rows: dict[str, str] = {}
    for line in info.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            rows.setdefault(name.strip(), value.strip())
    model = rows.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{name} {rows[name]}" for name in ("cpu family", "model", "stepping") if name in rows]
    return f"{model} ({', '.join(numbers)})" if numbers else model


def huge_pages() -> str:
    """`always`, `madvise` or `never`: whether large arrays may lie in huge pages; empty where the system does not tell."""
    try:
        text = HUGE_PAGES.read_text()
    except OSError:
        return ""
    return text.partition("[")[2].partition("]")[0]
