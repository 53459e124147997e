"""State dicts in files."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.core.numpy_types import numpy_dtype
from caten.errors import CatenError
from daten import weights


def test_there_and_back(tmp_path: Path) -> None:
    values = {"a.weight": np.arange(6.0).reshape(2, 3).T, "b": np.array(3, np.int64)}
    weights.save(values, tmp_path / "w.safetensors")
    found = weights.load(tmp_path / "w.safetensors")
    for name, value in values.items():
        np.testing.assert_array_equal(found[name], value)
        assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype)
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


@pytest.mark.parametrize("spelled", weights.TYPES)
def test_every_type_of_such_files_that_tensors_have(spelled: str, tmp_path: Path) -> None:
    values = np.arange(4).astype(numpy_dtype(weights.TYPES[spelled]))
    weights.save({"a": values}, tmp_path / "w.safetensors")
    assert f'"dtype":"{spelled}"'.encode() in (tmp_path / "w.safetensors").read_bytes()
    found = weights.load(tmp_path / "w.safetensors")["a"]
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_a_type_that_tensors_do_not_have_is_named(tmp_path: Path) -> None:
    head = b'{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    (tmp_path / "w.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(2))
    with pytest.raises(CatenError, match=r"'a' has elements of type F8_E4M3") as caught:
        weights.load(tmp_path / "w.safetensors")
    assert caught.value.diagnostics[0].code == "E679"


def test_a_limit_leaves_the_old_file_and_the_error_names_it(tmp_path: Path) -> None:
    """The name is that of the caller, not that of a temporary file."""
    weights.save({"a": np.ones(2)}, tmp_path / "w.safetensors")
    code = ("import resource, numpy as np; from daten import weights; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
            "try: weights.save({'a': np.zeros(10000)}, 'w.safetensors')\n"
            "except OSError as problem: print(problem)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})           # Python does not notice that its files are cut
    assert done.stdout == "[Errno 27] File too large: 'w.safetensors'\n"
    np.testing.assert_array_equal(weights.load(tmp_path / "w.safetensors")["a"], np.ones(2))
    assert os.listdir(tmp_path) == ["w.safetensors"]
    with pytest.raises(FileNotFoundError, match=r"none/w\.safetensors'$"):
        weights.save({"a": np.zeros(2)}, tmp_path / "none" / "w.safetensors")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_of_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        weights.save({"a": np.ones(2)}, tmp_path / "w.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "w.safetensors").stat().st_mode & 0o777 == 0o666 & ~mask


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    weights.save({"a": np.ones(2)}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(weights.load(tmp_path / "real")["a"], np.ones(2))
    weights.save({"a": np.ones(2)}, "/dev/null")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(("given", "message"), [({"a": np.array(["x"])}, "save: a is no array of numbers"), ([np.ones(2)], "save takes arrays by name")])
def test_what_no_file_of_weights_has(given: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=message):
        weights.save(given, tmp_path / "w.safetensors")
    assert not os.listdir(tmp_path)
