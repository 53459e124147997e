"""Processes that measure: each writes down what it has done and what it is about to do, so that one that crashes or
hangs costs no more than that."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SILENCE = 300.0                # seconds after which a process that wrote nothing counts as hanging
GLANCE = 0.2                   # seconds between two looks at it


def ran(module: str, task: Mapping[str, Any], variables: Mapping[str, str],
        silence: float = SILENCE) -> tuple[dict[str, Any], str | None]:
    """A process of the module with a task, in this environment: the JSON that it wrote last, and why it did not come
    to its end (None: it did)."""
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder, "task.json"), Path(folder, "result.json")
        given.write_text(json.dumps(task))
        result.write_text("{}")
        process = subprocess.Popen([sys.executable, "-m", module, str(given), str(result)], cwd=ROOT,
                                   env=os.environ | variables)
        try:
            why = _ended(process, result, silence)
        finally:
            process.kill()
            process.wait()
        written: dict[str, Any] = json.loads(result.read_text())
        return written, why


def wrote(result: Path, document: Mapping[str, Any]) -> None:
    """Replace a file of results as a whole: its reader may come at any time, and its writer may die."""
    part = result.with_suffix(".part")
    part.write_text(json.dumps(document))
    part.replace(result)


def _ended(process: subprocess.Popen[bytes], result: Path, silence: float) -> str | None:
    while True:
        try:
            code = process.wait(GLANCE)
        except subprocess.TimeoutExpired:
            if time.time() - result.stat().st_mtime > silence:
                return f"nothing came of it for {silence:.0f} seconds"
        else:
            return None if code == 0 else f"its process ended with {code}"
