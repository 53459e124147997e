"""The `daten` command in this process, as a person would see it."""
from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from caten import diagnostic_lines
from daten import cli, settings


def daten(*words: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command in this process, with its streams and its exit code."""
    before = settings.options()
    written, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(written, "utf-8", write_through=True)
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "argv", ["daten", *words]), \
            mock.patch.object(sys, "stdin", io.StringIO(stdin)), mock.patch.object(diagnostic_lines, "PROGRAM", [*diagnostic_lines.PROGRAM]), \
            pytest.raises(SystemExit) as end:
        cli.main()
    settings._CURRENT[:] = [before]
    return subprocess.CompletedProcess(words, int(end.value.code or 0), written.getvalue().decode(), err.getvalue())
