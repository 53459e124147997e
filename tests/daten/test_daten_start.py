"""How daten starts: what is imported when, and what Ctrl-C leaves until a command runs."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import daten

INTERRUPTED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\n"
PROGRAM = '[inputs]\nX = "X{float}[4]"\n[main]\noutputs = ["Y"]\ncode = "(set Y (* X 2))"\n'


def started(*words: str, path: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Python with our packages, behind those of a folder."""
    folders = [*([str(path)] if path else []), str(Path(daten.__file__).parent.parent)]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, input=stdin, check=False,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)}, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


@pytest.mark.parametrize("words", [["-m", "daten", "--help"], ["-m", "daten", "--version"], ["-m", "daten", "train", "--help"], ["-c", "import daten; print('imported')"]])
def test_what_computes_nothing_imports_no_numpy(words: list[str]) -> None:
    found = started("-X", "importtime", *words)
    imported = {line.split("|")[-1].strip() for line in found.stderr.splitlines()}
    assert found.stdout
    assert "daten" in imported
    assert not imported & {"numpy", "daten.tensor", "caten.api", "rich"}


@pytest.mark.parametrize("module", ["click", "shutil"])
def test_an_interrupt_before_the_command_runs_ends_it_without_a_word(tmp_path: Path, module: str) -> None:
    """The shell tells it, by the signal."""
    (tmp_path / f"{module}.py").write_text(INTERRUPTED)
    found = started("-m", "daten", "--help", path=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("module", ["numpy", "zipfile"])
def test_an_interrupt_while_a_command_imports_ends_it_with_one_line(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(INTERRUPTED)
    found = started("-m", "daten", "run", "-", path=tmp_path, stdin=PROGRAM)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "daten: interrupted\n")


def test_a_command_in_the_background_ignores_interrupts_as_its_parent_does(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(INTERRUPTED + "print('went on')\nraise SystemExit(0)\n")
    path = os.pathsep.join([str(tmp_path), str(Path(daten.__file__).parent.parent)])
    found = subprocess.run([sys.executable, "-m", "daten", "run", "-"], capture_output=True, text=True, input=PROGRAM, check=False,
                           env=os.environ | {"PYTHONPATH": path}, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (found.stdout, found.stderr) == ("went on\n", "")


@pytest.mark.parametrize("first", ["daten.models.gpt2", "daten.training", "daten.jitted", "daten.tensor", "daten.array_api"])
def test_the_public_names_are_the_same_whatever_is_imported_first(first: str) -> None:
    code = (f"import {first}, daten\nfrom daten import *\n"
            "print(*[n for n in daten.__all__ if globals()[n] is not getattr(daten, n) or n not in dir(daten)])\n"
            "print(*[n for n in daten.__all__ if n not in ('nn', 'optim', 'random') and not callable(getattr(daten, n))])")
    found = started("-c", code)
    assert (found.stdout, found.stderr) == ("\n\n", "")


def test_numpy_knows_tensors_of_the_module_alone() -> None:
    found = started("-c", "import numpy as np; from daten.tensor import Tensor; t = Tensor([1.0, 4.0]); print(type(np.sqrt(t)).__name__, type(np.stack([t, t])).__name__, t.__array_namespace__().__name__)")
    assert (found.stdout, found.stderr) == ("Tensor Tensor daten.array_api\n", "")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'daten' has no attribute 'tensors'"):
        getattr(daten, "tensors")  # noqa: B009   mypy knows that there is none
