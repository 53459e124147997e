"""Every sample through the stages: piped or at once the same C, which every C compiler takes without a word."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, SAMPLES, caten, shell

STRICT = ("-Wall", "-Wextra", "-Werror")
BY_DAY = ("axpy", "gemv", "histogram", "softmax")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=[pytest.mark.nightly] * (path.stem not in BY_DAY)) for path in SAMPLES])
def test_a_sample_piped_or_at_once(path: Path, folder: Path, tool: Any) -> None:
    tool("gcc")
    assert caten("--emit=c=all.c,header=all.h", str(path)).code == 0
    text = ""
    for stage, given in (("parse", str(path)), ("ir", "-"), ("schedule", "-"), ("render", "-")):
        result = caten(stage, given, stdin=text)
        assert (result.code, result.err) == (0, ""), stage
        text = result.out
    assert text == Path("all.c").read_text()
    quiet(["gcc", "-x", "c", "-fsyntax-only", "-"], text)
    quiet(["gcc", "-x", "c", "-fsyntax-only", *STRICT, "-"], text)
    quiet(["gcc", "-x", "c", "-fsyntax-only", "-std=c99", "-pedantic", *STRICT, "-"], '#include "all.h"\n')
    tool("g++")
    quiet(["g++", "-x", "c++", "-fsyntax-only", "-std=c++98", "-Wno-long-long", "-pedantic", *STRICT, "-"], '#include "all.h"\n')


def quiet(command: list[str], text: str) -> None:
    """A compiler that accepts a text and says nothing."""
    done = subprocess.run([*command, "-I."], input=text, text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), command


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", ["sin", "softmax"])
def test_real_pipes(name: str, folder: Path, tool: Any) -> None:
    tool("gcc")
    shutil.copy(ROOT / "samples" / f"{name}.toml", folder)
    piped = shell(f"caten parse {name}.toml | caten ir - | caten schedule - | caten render -", folder)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout == caten("render", f"{name}.toml").out != ""
    compiled = shell(f"caten render -o - {name}.toml | gcc -x c -fsyntax-only -", folder)
    assert (compiled.returncode, compiled.stdout, compiled.stderr) == (0, "", "")
