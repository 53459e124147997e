"""Ctrl-C, SIGTERM and closed pipes: it stops at once, its children with it, and what is written is whole."""
from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, SAMPLES, caten, finished, shell, start

import caten as library

SECONDS = 3.0                                    # less than one on a calm machine
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
LONG_KERNEL = """[composite]
name = "Long"
inputs = ["X{float}[N]", "s{float}[]"]
outputs = ["s"]
[implementation]
code = "(dotimes (i N) (dotimes (j N) (dotimes (k N) (incf s (sin (* (aref X i) (+ (aref X j) (aref X k))))))))"
"""
LONG_REFERENCE = """[composite]
name = "Short"
inputs = ["X{float}[N]", "s{float}[]"]
outputs = ["s"]
[implementation]
code = "(dotimes (i N) (incf s (aref X i)))"
[test]
code = "lambda X, s: np.einsum('i,j,k->', X, X, X) + np.sum(X[:, None, None] * X[None, :, None] * X[None, None, :])"
"""
BUSY = """from caten.runtime.discover import base


class Busy(base("gcc")):
    name = "busy"
    description = "renders for ever"

    def render(self, *programs):
        print("rendering", flush=True)
        while True:
            pass
"""


def descendants(pid: int) -> list[int]:
    """The processes below one, from /proc."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupt(running: subprocess.Popen[str], number: int, group: bool) -> list[int]:
    """Send the signal (to the whole group, as a terminal does) and see that everything ends in time; the processes that it had."""
    below = descendants(running.pid)
    begin = time.monotonic()
    (os.killpg if group else os.kill)(running.pid, number)
    try:
        result = finished(running, 20)
    finally:
        running.kill()                                # one that heard nothing would keep a core busy for ever
    assert time.monotonic() - begin < SECONDS
    assert "Traceback" not in result.err
    assert not result.out.strip() or result.out == "rendering\n"
    wait_for(lambda: not any(alive(pid) for pid in below), SECONDS)
    return below


@pytest.mark.slice(2)
@pytest.mark.parametrize(("number", "code"), SIGNALS, ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize(("spec", "size"), [(LONG_KERNEL, 20_000), (LONG_REFERENCE, 900)], ids=["kernel", "reference"])
def test_a_long_test_run(spec: str, size: int, number: signal.Signals, code: int, folder: Path, tool: Any) -> None:
    tool("gcc")
    Path("long.toml").write_text(spec)
    assert caten("long.toml", "-O0", "-o", "warm.so").code == 0
    running = start("long.toml", "-O0", "--test", f"N={size}", start_new_session=True)
    wait_for(lambda: (folder / "long.so").exists() and any(busy(pid) for pid in descendants(running.pid)))
    below = interrupt(running, number, group=number == signal.SIGINT)
    assert below
    assert running.returncode == code
    assert sorted(p.name for p in folder.iterdir()) == ["long.h", "long.json", "long.so", "long.toml", "warm.h", "warm.json", "warm.so"]
    library.load("long.so")


def busy(pid: int) -> bool:
    """Has it computed for a while?"""
    try:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) >= 0.2 * os.sysconf("SC_CLK_TCK")
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), SIGNALS, ids=["Ctrl-C", "SIGTERM"])
def test_a_long_compilation(number: signal.Signals, code: int, folder: Path) -> None:
    (folder / "busy.py").write_text(BUSY)
    running = start(str(ROOT / "samples" / "axpy.toml"), "-O0", "-r", "./busy.py", start_new_session=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "rendering\n"
    interrupt(running, number, group=number == signal.SIGINT)
    assert running.returncode == code
    assert [p.name for p in folder.iterdir() if p.name != "__pycache__"] == ["busy.py"]


def test_a_reader_that_has_seen_enough(folder: Path) -> None:
    specs = " ".join([str(p) for p in SAMPLES])
    done = shell(f"caten schedule -O0 {specs} > all; caten render all | head -1; echo ${{PIPESTATUS[@]}}", folder)
    assert done.stderr == ""
    first, codes = done.stdout.splitlines()
    assert first.startswith("/* ")
    assert codes == "0 0"
    assert len(caten("render", "all").out) > 65536                  # more than a pipe holds: it did meet the closed end
