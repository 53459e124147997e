"""`daten train` and `daten generate` where they end before their time: what they say, and what is in the files."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from daten_command import daten

from daten import weights

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from daten.cli import main; main()"]
# The loss, and the parameter w of two elements; with lr = 1 and SGD
LOSSES = '''
[inputs]
X = "X{float}[B 2]"
[parameters]
w = "w{float grad}[2]"
[main]
code = "(set L %s)"
loss = "L"
[train]
optimizer = "sgd"
lr = %s
batch = 4
epochs = 3
'''
GOOD = "(mean (* (- (* X w) 1.0) (- (* X w) 1.0)))"
KINK = "(mean (sqrt (* (* X w) (* X w))))"                      # at w = 0 the loss is 0, its gradient 0 · ∞


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With data, and good weights from an earlier training."""
    np.savez(tmp_path / "data.npz", X=np.ones((8, 2), np.float32))
    weights.save({"w": np.array([3, 4], np.float32)}, tmp_path / "w.safetensors")
    return tmp_path


def assert_good(folder: Path, want: tuple[float, ...] = (3, 4)) -> None:
    np.testing.assert_array_equal(weights.load(folder / "w.safetensors")["w"], np.array(want, np.float32))
    assert sorted(os.listdir(folder)) == ["data.npz", "w.safetensors"]


@pytest.mark.parametrize(("loss", "lr", "words", "found"), [
    (GOOD, "1e30", ("epoch 1, batch 2: the loss is inf", "w.safetensors is as it was", "--find-nan", "a smaller learning rate"), "makes an infinite number of"),
    ("(mean (log (* X w)))", "1e9", ("epoch 1, batch 2: the loss is nan",), "'log' makes NaN of inputs without NaN"),
    (KINK, "0.1", ("epoch 1", "the losses are finite, but not the parameters after the last step"), "epoch 1, batch 1: the loss is finite, but not the parameters")])
def test_values_that_are_not_finite_are_never_saved(loss: str, lr: str, words: tuple[str, ...], found: str, folder: Path) -> None:
    program = LOSSES % (loss, lr)
    if loss == KINK:
        program = program.replace("batch = 4", "batch = 8")
        given: list[str] = []                                   # w starts as zeros
    else:
        given = ["--weights", "w.safetensors"]
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", *given, cwd=folder, stdin=program)
    assert done.returncode == 1
    assert all(w in done.stderr for w in words), done.stderr
    assert_good(folder)
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", "--find-nan", *given, cwd=folder, stdin=program)
    assert done.returncode == 1
    assert found in done.stderr
    assert "Traceback" not in done.stderr
    assert_good(folder)


@pytest.mark.parametrize(("value", "option"), [(np.nan, ("--find-nan",)), (np.inf, ())])
def test_data_that_is_not_finite_is_named_instead_of_the_learning_rate(value: float, option: tuple[str, ...], folder: Path) -> None:
    np.savez(folder / "data.npz", X=np.array([[1, 1]] * 7 + [[value, 1]], np.float32))
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", *option, cwd=folder, stdin=LOSSES % (GOOD, 0.1))
    assert done.returncode == 1
    assert f"the data has {'NaN' if value != value else 'an infinite number'}, in 'X'" in done.stderr
    assert "learning rate" not in done.stderr
    assert_good(folder)


def test_the_file_has_the_last_whole_epoch(folder: Path) -> None:
    """The first epoch is good; the second one, with what it learned, is not."""
    program = (LOSSES % ("(mean (/ 1.0 (- (* X w) 2.5)))", 0.25)).replace("batch = 4", "batch = 8")     # 3 -> 3.5 -> …
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", "--weights", "w.safetensors", "--epochs", "1", cwd=folder, stdin=program)
    assert done.returncode == 0, done.stderr
    after_one = tuple(weights.load(folder / "w.safetensors")["w"].tolist())
    assert after_one[0] > 3
    steep = program.replace("(mean (/ 1.0 (- (* X w) 2.5)))", f"(mean (/ -1.0 (maximum (- {after_one[0]} (* X w)) 0.0)))")
    weights.save({"w": np.array([3, 3], np.float32)}, folder / "w.safetensors")
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", "--weights", "w.safetensors", "--epochs", "50", cwd=folder,
                 stdin=steep.replace("lr = 0.25", "lr = 0.125"))
    assert done.returncode == 1
    epochs = done.stdout.count("epoch ")
    assert epochs > 0
    assert f"w.safetensors has the parameters after epoch {epochs}" in done.stderr
    assert np.isfinite(weights.load(folder / "w.safetensors")["w"]).all()


BIG = LOSSES.replace("B 2]", "B 200000]").replace("[2]", "[200000]")


def test_a_full_disk_leaves_the_old_file_and_names_it(folder: Path, tool: Callable[[str], str]) -> None:
    """800 kB of parameters, where files may have 500 kB; what gcc makes is smaller, while the embedded clang might have to build its own library first."""
    np.savez_compressed(folder / "data.npz", X=np.ones((2, 200000), np.float32))
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)); from daten.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "train", "-", "--data", "data.npz", "-o", "w.safetensors"], cwd=folder, input=BIG % (GOOD, 0.1), text=True,
                          capture_output=True, env={**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1", "CC": tool("gcc")}, timeout=300, check=False)     # Python does not see its files cut
    assert done.returncode == 1
    assert "daten: error: cannot write w.safetensors: File too large [E909]" in done.stderr
    assert_good(folder)


@pytest.mark.parametrize(("words", "file"), [(("train", "-", "--data", "data.npz"), "none/w.safetensors"), (("run", "-"), "none/o.npz"),
                                             (("profile", "-"), "none/t.json")])
def test_what_cannot_be_written_is_refused_at_once(words: tuple[str, ...], file: str, folder: Path) -> None:
    option = "--trace" if words[0] == "profile" else "-o"
    done = daten(*words, option, file, cwd=folder, stdin=LOSSES % (GOOD, 0.1))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"daten: error: cannot write {file}: No such file or directory [E909]" in done.stderr


@pytest.mark.slow
def test_ctrl_c_says_what_is_left(folder: Path) -> None:
    (folder / "p.toml").write_text(LOSSES % (GOOD, 0.1), "utf-8")
    for words, before, message in (
            (["train", "p.toml", "--data", "data.npz", "--epochs", "10000000", "-o", "w.safetensors"], b"epoch 2", ": w.safetensors has the parameters after epoch "),
            (["train", "p.toml", "--data", "data.npz", "--epochs", "10000000"], b"epoch 2", ": the parameters are not saved")):
        with subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            while before not in process.stdout.readline():
                pass
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            told = process.stderr.read().decode()
        assert process.returncode == 130
        assert told.startswith("daten: interrupted in epoch ")
        assert message in told
        assert len(told.splitlines()) == 1
    (folder / "p.toml").unlink()
    assert sorted(os.listdir(folder)) == ["data.npz", "w.safetensors"]


def test_a_program_is_trained_by_rmsprop_with_momentum(folder: Path) -> None:
    """Of equal gradients g, v is g² / 100 and 199 g² / 10,000: the steps are 10 and 10 / 1.99^½ + 5 learning rates."""
    program = LOSSES.replace('"sgd"', '"rmsprop"\nmomentum = 0.5') % ("(mean (* X w))", "0.01")
    done = daten("train", "-", "--data", "data.npz", "-o", "w.safetensors", "--weights", "w.safetensors", "--epochs", "1", cwd=folder, stdin=program)
    assert done.returncode == 0, done.stderr
    step = 0.1 + 0.1 / np.sqrt(1.99) + 0.05
    np.testing.assert_allclose(weights.load(folder / "w.safetensors")["w"], [3 - step, 4 - step], rtol=1e-5)
