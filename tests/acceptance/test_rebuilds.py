"""Nothing stale, nothing for nothing: make with -MD, and the memory of builds that were done before."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import ENVIRONMENT, caten

RELU = '[composite]\nname = "Relu"\ninputs = ["X{float}[N]", "Y{float}[N]"]\noutputs = ["Y"]\n[implementation]\ncode = "(dotimes (i N) (setf (aref Y i) (relu (aref X i))))"\n'
USER = ('include = ["lib/relu.toml"]\n[composite]\nname = "User"\ninputs = ["X{float}[N]", "Y{float}[N]"]\noutputs = ["Y"]\n[implementation]\n'
        'code = "(call Relu X Y)"\n')
RUNTIME = 'from caten.runtime.discover import base\n\n\nclass Mine(base("gcc")):\n    name = "mine"\n    description = "mine"\n'
MAKEFILE = """user.so:
\t@caten user.toml -r ./mine.py -O0 -MD -MP -MF user.d -o user.so && echo built >> log
-include user.d
"""


def write_project(folder: Path) -> None:
    (folder / "lib").mkdir()
    for name, text in (("lib/relu.toml", RELU), ("user.toml", USER), ("mine.py", RUNTIME), ("Makefile", MAKEFILE)):
        (folder / name).write_text(text)


def test_make_builds_when_something_changed_and_only_then(folder: Path, tool: Any) -> None:
    for name in ("make", "gcc"):
        tool(name)
    write_project(folder)
    (folder / ".bin").mkdir()
    (folder / ".bin/caten").write_text(f'#!/bin/sh\nexec {sys.executable} -m caten "$@"\n')
    (folder / ".bin/caten").chmod(0o755)

    def builds() -> int:
        done = subprocess.run(["make", "-s"], env=os.environ | ENVIRONMENT | {"PATH": f"{folder}/.bin:{os.environ['PATH']}"}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        count = len((folder / "log").read_text().splitlines()) if (folder / "log").exists() else 0
        (folder / "log").write_text("")
        return count

    def add(name: str) -> None:
        with open(folder / name, "a") as file:
            file.write("# changed\n")
    assert [builds(), builds()] == [1, 0]
    for name in ("user.toml", "lib/relu.toml", "mine.py"):
        add(name)
        assert [builds(), builds()] == [1, 0], name
    (folder / "lib/other.toml").write_text(RELU)
    add("Makefile")
    assert builds() == 0
    (folder / "user.toml").write_text(RELU)
    (folder / "lib/relu.toml").unlink()                                     # -MP: a dependency that is gone is no error
    assert [builds(), builds()] == [1, 0]


@pytest.mark.parametrize("changed", ["user.toml", "lib/relu.toml", "mine.py", "cc"])
def test_a_build_that_was_done_before_is_never_stale(changed: str, cold: Path, tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    write_project(cold)
    (cold / "cc").write_text(f'#!/bin/sh\necho ran >> {cold}/log\nexec gcc "$@"\n')
    (cold / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(cold / "cc"))

    def build() -> tuple[bytes, bool]:
        (cold / "log").unlink(missing_ok=True)
        assert caten("user.toml", "-r", "./mine.py", "-O0").code == 0
        return (cold / "user.so").read_bytes(), (cold / "log").exists()
    first, ran = build()
    assert ran
    assert build() == (first, False)
    text = (cold / changed).read_text()
    for old, new in (("relu (aref", "sqrt (aref"), ("(call Relu X Y)", "(dotimes (i N) (setf (aref Y i) 2.0))"), ('"mine"\n    desc', '"mine"\n\n    desc'),
                     ("exec gcc", "exec gcc -DOTHER")):
        text = text.replace(old, new)
    assert text != (cold / changed).read_text()
    (cold / changed).write_text(text)
    second, ran = build()
    assert ran
    assert (second != first) == (changed != "cc")
    assert build() == (second, False)
