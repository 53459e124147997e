"""The `daten` command: its answers, exit codes and errors."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daten import program_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (ROOT / "samples" / "daten" / "mlp.toml").read_text("utf-8")


def daten(*words: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", "from daten.cli import main; main()", *words], cwd=cwd, input=stdin, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=300, check=False)


@pytest.mark.slow
def test_train_run_and_show(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((300, 64)).astype(np.float32)
    np.savez(tmp_path / "data.npz", X=x, Y=(x @ draw.standard_normal((64, 10))).argmax(1))
    (tmp_path / "mlp.toml").write_text(PROGRAM, "utf-8")
    done = daten("train", "mlp.toml", "--data", "data.npz", "--epochs", "4", "-o", "w.safetensors", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[3].rstrip(",")) for line in done.stdout.splitlines()]
    assert losses[-1] < losses[0]
    np.save(tmp_path / "x.npy", x[:7])
    done = daten("run", "mlp.toml", "--input", "X=x.npy", "--size", "B=7", "--weights", "w.safetensors", "-o", "out.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npz")["P"].shape == (7, 10)
    done = daten("show", "-", "--size", "B=16", cwd=tmp_path, stdin=PROGRAM)
    assert "P{float32}[16 10] <- contraction.add(v1{float32}[16 128], W2{float32}[128 10], b2{float32}[10])" in done.stdout
    assert all(f"grad_{name}{{float32}}" in done.stdout for name in ("W1", "b1", "W2", "b2"))
    assert "arrays between them" in done.stdout
    (tmp_path / "steep.toml").write_text(PROGRAM.replace("lr = 2e-3", "lr = 1e30"), "utf-8")
    done = daten("train", "steep.toml", "--data", "data.npz", "--find-nan", cwd=tmp_path)
    assert done.returncode == 1
    assert "daten: error: the loss is no number: '" in done.stderr
    assert "makes NaN of inputs without NaN" in done.stderr


def test_only_parameters_with_grad_are_trained(tmp_path: Path) -> None:
    program = program_file.parsed(PROGRAM.replace("b1{float grad}", "b1{double}").replace("W2{float grad}", "W2{float}"))
    assert list(program.trained) == ["W1", "b2"]
    assert program.parameters["b1"].dtype == "float64"
    done = daten("train", "-", "--data", "none.npz", cwd=tmp_path, stdin=PROGRAM.replace(" grad}", "}"))
    assert done.returncode == 2                                # of click: there is no such file
    (tmp_path / "none.npz").write_bytes(b"")
    done = daten("train", "-", "--data", "none.npz", cwd=tmp_path, stdin=PROGRAM.replace(" grad}", "}"))
    assert done.returncode == 1
    assert "the program has no parameter to train" in done.stderr


@pytest.mark.parametrize(("change", "message"), [
    (("(layer X W1 b1)", "(layr X W1 b1)"), "<stdin> [main]:1:20: error: there is no module 'layr', and the library has no such operator [E678]"),
    (("(set L", "(sat L"), "a statement is (set NAME EXPRESSION)"), (("X W1", "X W7"), "there is no 'W7' here"),
    (("[inputs]", "[input]"), "there is no section [input] in a program"), (('loss = "L"', 'loss = "Q"'), "[main] sets no 'Q'"),
    (("W1{float grad}[64 128]", "W1{float grad}[64 K]"), "the extents of the parameter 'W1' are numbers"),
    (("W2{float grad}[128 10]", "W2{float grad}[127 10]"), "K is 128, and 127 by y"), (("epochs = 5", "epoch = 5"), "[train] has no 'epoch'"),
    (("{float}[B 64]", "{flaot}[B 64]"), "there is no element type 'flaot'"), (("[main]", "[main"), "this is no TOML")])
def test_what_is_wrong_with_a_program_has_a_place(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    done = daten("run", "-", cwd=tmp_path, stdin=PROGRAM.replace(*change))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    for words, code, message in ((["runn"], 2, "No such command 'runn'"), (["show", "none.toml"], 1, "cannot read none.toml"),
                                 (["run", "-", "--size", "Q=3"], 1, "no input has the size 'Q'"), (["run", "-", "--input", "Q=x.npy"], 1, "cannot read x.npy"),
                                 (["train", "-"], 1, "there is nothing to train on"), (["generate", "--model", "9B", "1"], 1, "there is no model '9B'"),
                                 (["--help"], 0, ""), (["--version"], 0, "")):
        done = daten(*words, cwd=tmp_path, stdin=PROGRAM)
        assert done.returncode == code, words
        assert message in done.stderr
        assert "Traceback" not in done.stderr
