"""The samples that learn."""
from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "daten"
DOCUMENTATION = "".join([page.read_text("utf-8") for page in sorted((SAMPLES.parents[1] / "docs").glob("*.md"))])


@pytest.mark.slow
def test_the_sine_is_found() -> None:
    done = subprocess.run([sys.executable, SAMPLES / "sine.py"], capture_output=True, text=True, check=True, timeout=120)
    *steps, last = done.stdout.splitlines()
    losses = [float(line.split()[-1]) for line in steps]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.005
    assert last.startswith("sin x = 0.")


def sample(name: str) -> Any:
    """A sample as a module."""
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The sample, with drawn digits in the place of those of scikit-learn: a picture of each digit, with noise."""
    def load_digits(return_X_y: bool) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0)
        pictures, digits = draw.uniform(0, 16, (10, 64)), draw.integers(0, 10, 1797)
        return (pictures[digits] + draw.normal(0, 3, (1797, 64))).clip(0, 16).round(), digits
    datasets: Any = types.ModuleType("sklearn.datasets")
    datasets.load_digits = load_digits
    monkeypatch.setitem(sys.modules, "sklearn", types.ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)
    return sample("digits")


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("network", ["Layers", "Convolutions"])
def test_networks_read_digits(network: str, digits: Any) -> None:
    losses, right = digits.learned(getattr(digits, network), 2)
    assert losses[-1] < losses[0] / 4
    assert right > 0.9


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("file", ["curves.svg", "curves.png"])
def test_the_learning_curves_are_a_picture(file: str, digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1", "--picture", str(tmp_path / file)])
    digits.main()
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["layers", "convolutions"]
    picture = (tmp_path / file).read_bytes()
    if file.endswith(".png"):
        assert picture.startswith(b"\x89PNG")
        return
    curves = [e for e in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g") if (e.get("id") or "").startswith("line2d")]
    assert len(curves) >= 2                                     # and the marks of the axes


@pytest.mark.slow
def test_digits_become_a_file(digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["digits.py", "--data", str(tmp_path / "digits.npz")])
    digits.main()
    with np.load(tmp_path / "digits.npz") as made:
        assert {name: made[name].shape for name in made} == {"X": (1500, 64), "Y": (1500,)}


@pytest.mark.slow
def test_characters_are_learned_and_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A few steps of a tiny transformer: the loss falls from that of guesses, and there are 200 characters of a text."""
    characters = sample("characters")
    for name, value in {"WIDTH": 16, "HEADS": 2, "LAYERS": 1, "TIME": 16, "BATCH": 8}.items():
        monkeypatch.setattr(characters, name, value)
    losses = characters.main(60)
    first, *_, text = capsys.readouterr().out.split("\n", 3)
    assert first.startswith("step 0: loss ")
    assert len(text) >= 200
    assert losses[0] == pytest.approx(np.log(len(set(DOCUMENTATION))), rel=0.15)
    assert np.mean(losses[-5:]) < 0.9 * losses[0]
