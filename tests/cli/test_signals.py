"""Signals that arrive where what they raise is ignored."""
from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A callback of a weak reference, in which the signal arrives; what it raises there ends nothing.
CODE = """
import os, signal, sys, time, weakref
from caten.cli import signals
signals.install()
class Thing: pass
def ended(_):
    os.kill(os.getpid(), {number})
    for _ in range(1000): pass
thing = Thing()
kept = weakref.ref(thing, ended)
try:
    del thing
    time.sleep(20)
    print("went on")
except BaseException as stopped:
    print(type(stopped).__name__)
"""


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "KeyboardInterrupt"), (signal.SIGHUP, "Terminated")])
def test_a_signal_in_a_callback_is_not_lost(number: int, raised: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(number=int(number))], capture_output=True, text=True, timeout=15, check=False)
    assert (done.stdout.strip(), done.stderr) == (raised, "")


def test_other_faults_in_callbacks_are_told() -> None:
    code = CODE.replace("os.kill(os.getpid(), {number})", "1 / 0").replace("time.sleep(20)", "pass")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=False)
    assert "ZeroDivisionError" in done.stderr
    assert done.stdout.strip() == "went on"
