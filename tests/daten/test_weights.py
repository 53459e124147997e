"""State dicts in files."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.errors import CatenError
from daten import weights


def test_there_and_back(tmp_path: Path) -> None:
    values = {"a.weight": np.arange(6.0).reshape(2, 3).T, "b": np.array(3, np.int64)}
    weights.save(values, tmp_path / "w.safetensors")
    found = weights.load(tmp_path / "w.safetensors")
    for name, value in values.items():
        np.testing.assert_array_equal(found[name], value)
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights.save({"a": np.ones(2)}, tmp_path / "w.safetensors")

    def full(handle: int) -> Any:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        weights.save({"a": np.zeros(2)}, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(weights.load(tmp_path / "w.safetensors")["a"], np.ones(2))
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_what_is_no_such_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(CatenError, match="E679"):
        weights.load(tmp_path / "w.safetensors")
