"""Where a record comes from: versions, compiler, flags, machine, seed, command."""
from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import compiler
from ..errors import CatenError
from ..frontend.spec_files import SpecText
from ..runtime import cpu
from ..version import __version__
from . import probe
from .cases import composite
from .execute import SILENCE, Plan, brief

TRIVIAL = composite("trivial", {"X": "f32[N]"}, {"R": "f32[N]"}, "(dotimes (i N) (setf (aref R i) (aref X i)))")


def facts(plan: Plan, command: str, again: str, dated: bool) -> dict[str, Any]:
    """The block of provenance. `command`: what was typed; `again`: what runs a case again, before its --filter."""
    runtime = plan.runtime
    file = hashlib.sha256(runtime.file.read_bytes()).hexdigest()[:16] if runtime.file else ""
    said = {"runtime": runtime.name, "runtime file": f"{runtime.file.name if runtime.file else ''}, sha256 {file}…",
            "caten": __version__,
            "python": platform.python_version(), "numpy": np.__version__,
            "system": f"{platform.system()} {platform.machine()}", "cpu": cpu.model(),
            **_compiler(plan), "config": ", ".join([f"{k}={_plain(v)}" for k, v in runtime.settings.items()]) or "none",
            "seed": plan.options.seed,
            "command": command, "again": again}
    return said | ({"date": datetime.now(UTC).strftime("%Y-%m-%d")} if dated else {})


def _compiler(plan: Plan) -> dict[str, str]:
    """The compiler and its flags, as they compile a trivial kernel."""
    try:
        return probe.asked("to compile a trivial kernel", partial(_compiled, plan), SILENCE)
    except CatenError as problem:
        return {"compiler": problem.diagnostics[0].message}


def _compiled(plan: Plan) -> dict[str, str]:
    try:
        built = compiler.build([SpecText("trivial", TRIVIAL, "lisp")], plan.options)
    except CatenError as problem:
        return {"compiler": problem.diagnostics[0].message}
    except Exception as problem:            # a runtime's own Python may fail in any way
        return {"compiler": brief(f"{type(problem).__name__}: {problem}")}
    return {"compiler": f"{Path(built.record.compiler).name}: {built.record.version}",
            "flags": " ".join(built.manifest["flags"]) or "none",
            "target": built.manifest["target"]}


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return Path(value).name
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
