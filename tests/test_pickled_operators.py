"""Operators that are copied, pickled, and called in other processes."""
from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.runtime import pickled_library
from spec_texts import GEMM

SCALE = "(composite Scale ((a{float}[], x{float}[N]) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (* a (aref x i)))))"
TIMES = "(composite Times ((f{float}[], v{float}[K]) -> (w{float}[K])) (dotimes (j K) (setf (aref w j) (* f (aref v j)))))"
X = np.arange(4, dtype=np.float32)
CHILD = """
import pickle, sys
import numpy as np
operator = pickle.load(open(sys.argv[1], "rb"))
assert operator(2.0, np.arange(4, dtype=np.float32)).tolist() == [0, 2, 4, 6]
print(operator.name, operator.manifest["runtime"], len(operator.source) > 0)
"""


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "CFLAGS", "LDFLAGS", "CATEN_RUNTIME_PATH"):
        monkeypatch.delenv(name, raising=False)


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_copies_are_the_operator_itself() -> None:
    scale = caten.compile(SCALE, "gcc")
    ops = caten.compile([SCALE, GEMM], "gcc", opt=1)
    assert copy.copy(scale) is copy.deepcopy(scale) is copy.deepcopy({"scale": [scale]})["scale"][0] is scale
    assert copy.copy(ops) is copy.deepcopy(ops) is ops


def test_processes_that_are_spawned_call_an_operator() -> None:
    scale, gemm = caten.compile([SCALE, GEMM], "gcc", opt=1)["Scale"], caten.compile(GEMM, "gcc", opt=1)
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(scale, (2.0, X)).tolist() == [0, 2, 4, 6]
        assert pool.starmap(scale, [(n, X) for n in range(3)])[2].tolist() == [0, 2, 4, 6]
        np.testing.assert_array_equal(pool.apply(gemm, (a, b), {"C": np.zeros((2, 2), np.float32)}), a @ b)
        with pytest.raises(caten.CatenError, match=r"E702: Scale: x must have elements of type float32") as caught:
            pool.apply(scale, (2.0, X.astype(float)))
    assert caught.value.diagnostics[0].code == "E702"


@pytest.mark.parametrize("runtime", ["gcc", "numpy"])
def test_a_process_with_another_cache_has_the_bytes(tmp_path: Path, runtime: str) -> None:
    scale = caten.compile(SCALE, runtime)
    (tmp_path / "scale.pickle").write_bytes(pickle.dumps(scale))
    for library in (tmp_path / "cache").glob("*/library*"):
        library.unlink()
    for cache in ("other", "other", "cache"):                                   # the second process finds what the first one left
        done = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "scale.pickle")], capture_output=True, text=True,
                              env={**os.environ, "CATEN_CACHE_DIR": str(tmp_path / cache)})
        assert done.stdout == f"Scale {runtime} True\n", done.stderr
    assert len([p for p in (tmp_path / "other").iterdir() if len(p.name) == 64]) == 1


def test_what_an_operator_says_of_itself_is_pickled() -> None:
    caten.compile(SCALE, "gcc")
    times = caten.compile(TIMES, "gcc")                                         # it has the library of Scale
    assert times.manifest["symbol"] == "ct_scale"
    found = again(times)
    assert (found.name, found.signature, found.source, found.manifest) == (times.name, times.signature, times.source, times.manifest)
    assert found(f=3.0, v=X).tolist() == [0, 3, 6, 9]
    assert found.bind(3.0, X)().tolist() == [0, 3, 6, 9]


def test_libraries_are_pickled() -> None:
    ops, one = caten.compile([SCALE, GEMM], "gcc", opt=1), caten.compile([SCALE], "gcc")
    for library in (again(ops), again(one)):
        assert isinstance(library, caten.Operators)
        assert library.Scale(2.0, X).tolist() == [0, 2, 4, 6]
    assert (list(again(ops)), list(again(one))) == (["Scale", "Gemm"], ["Scale"])
    assert again(ops).manifest == ops.manifest
    assert again(ops).Gemm.source == ops.Gemm.source


def test_a_process_loads_a_library_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = caten.compile(SCALE, "gcc")
    first = again(scale)

    def refuse(*_: Any) -> Any:
        raise AssertionError("loaded again")
    monkeypatch.setattr(pickled_library.discover, "find", refuse)
    assert again(scale)(2.0, X).tolist() == first(2.0, X).tolist()


def test_a_library_whose_file_is_gone_cannot_be_pickled(tmp_path: Path) -> None:
    scale = caten.compile(SCALE, "gcc")
    for library in (tmp_path / "cache").glob("*/*.so"):
        library.unlink()
    with pytest.raises(caten.CatenError, match="E661: cannot pickle"):
        pickle.dumps(scale)
