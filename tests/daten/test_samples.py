"""The samples that learn."""
from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "daten"


@pytest.mark.slow
def test_the_sine_is_found() -> None:
    done = subprocess.run([sys.executable, SAMPLES / "sine.py"], capture_output=True, text=True, check=True, timeout=120)
    *steps, last = done.stdout.splitlines()
    losses = [float(line.split()[-1]) for line in steps]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.005
    assert last.startswith("sin x = 0.")


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("network", ["Layers", "Convolutions"])
def test_networks_read_digits(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn ones in the place of those of scikit-learn: a picture of each digit, with noise."""
    def load_digits(return_X_y: bool) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0)
        pictures, digits = draw.uniform(0, 16, (10, 64)), draw.integers(0, 10, 1797)
        return (pictures[digits] + draw.normal(0, 3, (1797, 64))).clip(0, 16).round(), digits
    datasets: Any = types.ModuleType("sklearn.datasets")
    datasets.load_digits = load_digits
    monkeypatch.setitem(sys.modules, "sklearn", types.ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)
    spec = importlib.util.spec_from_file_location("digits", SAMPLES / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    losses, right = digits.learned(getattr(digits, network), 2)
    assert losses[-1] < losses[0] / 4
    assert right > 0.9
