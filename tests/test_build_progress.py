"""A long build says on a terminal how far it is, and nothing anywhere else."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from caten import build_progress, compiler
from caten.api import options_of, read
from caten.cli import progress

ROOT = Path(__file__).parent.parent
STEP = ROOT / "tests" / "schedule" / "training_step.lisp"
GEMM = ROOT / "samples" / "gemm.toml"
SPEC = "(composite {} ((X{{float}}[N]) -> (Y{{float}}[N])) (dotimes (i N) (setf (aref Y i) (* 2 (aref X i)))))"


def on_terminal(code: str) -> str:
    """What a program writes where its standard error is a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                             env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}, cwd=ROOT)
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:                                    # the last who had it open has closed it
            break
        if not part:
            break
        found += part
    os.close(ours)
    assert child.wait(60) == 0
    assert child.stdout is not None
    assert child.stdout.read() == b""
    return found.decode()


BUILD = """
import time
from caten import build_progress
build_progress.DELAY = {delay}
with build_progress.shown():
    build_progress.tell(1, 3, "scheduling")
    time.sleep({time})
    build_progress.tell(0, 0, "compiling")
    time.sleep({time})
"""


def test_a_long_build_shows_a_bar() -> None:
    seen = on_terminal(BUILD.format(delay=0, time=0.5))
    assert "scheduling" in seen
    assert "1/3" in seen
    assert "compiling" in seen


def test_a_short_build_shows_nothing() -> None:
    assert on_terminal(BUILD.format(delay=60, time=0)) == ""


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", BUILD.format(delay=0, time=0.2)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_who_hears_of_builds_already_shows_them() -> None:
    code = "from caten import build_progress\nwith build_progress.heard(lambda *told: None):" + BUILD.format(delay=0, time=0.2).replace("\n", "\n    ")
    assert on_terminal(code) == ""


def test_a_graph_that_is_built_shows_a_bar() -> None:
    seen = on_terminal("import numpy as np, daten\nfrom caten import build_progress\nbuild_progress.DELAY = 0\ndaten.use(cache=False)\n"
                       "daten.realize(daten.Tensor(np.ones(3, np.float32)) + 1)")
    assert "compiling" in seen


def test_the_command_line_shows_a_bar(tmp_path: Path) -> None:
    code = ("from caten import build_progress\nbuild_progress.DELAY = 0\nfrom caten.cli.boundary import guarded\n"
            f"guarded(['compile', {str(GEMM)!r}, '-O1', '--no-cache', '-o', {str(tmp_path / 'gemm.so')!r}])")
    assert "compiling" in on_terminal(code)
    assert (tmp_path / "gemm.so").is_file()


def test_parts_are_told_in_order() -> None:
    told: list[tuple[int, int, str]] = []
    with build_progress.heard(lambda *each: told.append(each)):
        compiler.build([read(STEP)], options_of("compile", cache=False, config={"OPT": 0}))
    (first, *others), last = told[:-1], told[-1]
    assert first == (0, 1, "scheduling Graph")
    assert [done for done, _, _ in others] == list(range(others[0][1]))
    assert last == (0, 0, "compiling")


def test_of_several_operators_each_is_a_part() -> None:
    told: list[tuple[int, int, str]] = []
    with build_progress.heard(lambda *each: told.append(each)):
        compiler.build([read(SPEC.format(name)) for name in ("One", "Other")], options_of("compile", cache=False))
    assert told == [(0, 2, "scheduling One"), (1, 2, "scheduling Other"), (0, 0, "compiling")]


def test_without_a_terminal_the_command_line_prints_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    with progress.building():
        build_progress.tell(2, 7, "scheduling")
        build_progress.tell(0, 0, "compiling")
    with progress.building(quiet=True):
        build_progress.tell(2, 7, "scheduling")
    assert capsys.readouterr().err == "caten: scheduling: 2 of 7\ncaten: compiling\n"
