"""Running `caten` as a person does: in this process where that tells the same, in one of its own where streams and signals matter."""
from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from caten.cli.boundary import guarded

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.toml"))
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src")}


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str


def caten(*words: str, stdin: str = "") -> Result:
    """A command line in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "stdin", given):
        code = guarded(words)
    return Result(code, out.buffer.getvalue().decode(), err.getvalue())     # type: ignore[attr-defined]   # it is the BytesIO from above


def start(*words: str, **kwargs: Any) -> subprocess.Popen[str]:
    """A command line in a process of its own; `env` adds to the environment."""
    kwargs["env"] = os.environ | ENVIRONMENT | kwargs.pop("env", {})
    return subprocess.Popen([sys.executable, "-m", "caten", *words], text=True, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs))


def finished(process: subprocess.Popen[str], timeout: float = 60) -> Result:
    """How it ended."""
    out, err = process.communicate(timeout=timeout)
    return Result(process.returncode, out or "", err or "")


def shell(line: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A line for a shell, with `caten` as a command in it."""
    bin_folder = cwd / ".bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "caten").write_text(f'#!/bin/sh\nexec {sys.executable} -m caten "$@"\n')
    (bin_folder / "caten").chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=cwd, capture_output=True, text=True, env=os.environ | ENVIRONMENT | {"PATH": path} | env)
