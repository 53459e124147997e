"""Colours follow the environment, by the usual convention."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

RED = "\x1b[1;31m"
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM")


def run(folder: Path, words: list[str], settings: dict[str, str], terminal: bool) -> str:
    """What a real `caten` process writes to a pipe or a terminal (stdout and stderr alike)."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES} | {"TERM": "xterm", **settings}
    command = [sys.executable, "-m", "caten", *words]
    if not terminal:
        return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    ours, its = pty.openpty()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=its, stderr=its)
    os.close(its)
    written = b""
    try:
        while block := os.read(ours, 4096):
            written += block
    except OSError:                                          # Linux says so where the other end is closed
        pass
    child.wait()
    os.close(ours)
    return written.decode()


@pytest.mark.slice(2)
@pytest.mark.parametrize(("settings", "terminal", "coloured"), [
    ({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"NO_COLOR": ""}, True, True),
    ({"FORCE_COLOR": "1"}, False, True), ({"FORCE_COLOR": ""}, False, False), ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ({"CLICOLOR_FORCE": "1"}, False, True), ({"CLICOLOR_FORCE": "0"}, False, False),
    ({"CLICOLOR": "0"}, True, False), ({"CLICOLOR": "1"}, False, False), ({"TERM": "dumb"}, True, False),
])
def test_diagnostics_are_coloured_as_the_environment_says(tmp_path: Path, settings: dict[str, str], terminal: bool, coloured: bool) -> None:
    said = run(tmp_path, ["check", "missing.toml"], settings, terminal)
    assert "error: " in said
    assert (RED in said) == coloured
    assert ("\x1b" in said) == coloured


def test_a_page_is_formatted_where_colours_are_forced(tmp_path: Path) -> None:
    plain, coloured = (run(tmp_path, ["explain", "E301"], settings, False) for settings in ({}, {"FORCE_COLOR": "1"}))
    assert plain.startswith("# ")
    assert "\x1b[" in coloured
    assert not coloured.startswith("# ")
