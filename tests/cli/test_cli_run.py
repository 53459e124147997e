"""`caten run`: arrays and numbers in, outputs out, whatever the kernel does."""
from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import driver

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
GATHER = "(composite Gather ((x{float}[N], k{int}[]) -> (y{float}[])) (setf y (aref x k)))"


def test_run_on_arrays(building: Any, folder: Path) -> None:
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    np.save("x.npy", x)
    np.savez("data.npz", Y=y, other=x)
    result = building("run", "axpy.toml", "-O0", "a=2.0", "X=x.npy", "Y=data.npz", "-o", "out.npz")
    assert result.code == 0, result.err
    with np.load("out.npz") as out:
        np.testing.assert_array_equal(out["Y"], 2 * x + y)
    assert building("run", "axpy.toml", "-O0", "a=2.0", "X=data.npz:other", "Y=data.npz:Y", "-o", "y.npy").code == 0
    np.testing.assert_array_equal(np.load("y.npy"), 2 * x + y)
    assert building("run", "axpy.toml", "-O0", "a=2.0", "X=x.npy", "Y=data.npz").out == "Y float32[5]\n[1. 3. 5. 7. 9.]\n"


@pytest.mark.parametrize(("arguments", "code", "word"), [
    (["X=x.npy", "Y=x.npy", "a=2", "-o", "x.txt"], 2, "E903"), (["X=none.npy"], 2, "E913"), (["X=axpy.toml"], 2, "E913"), (["X=x.npz:q"], 2, "E913"),
    (["Q=1"], 2, "no argument 'Q'"), (["X=x.npy", "X=x.npy"], 2, "given twice"), (["X=x.npy", "a=2", "Y=y64.npy"], 1, "E70"),
    (["X=x.npy", "a=2"], 2, "needs Y"), (["X=x.npy", "Y=x.npy"], 2, "caten run axpy.toml a=1 X=X.npy Y=Y.npy"), (["X=pickled.npy"], 2, "cannot be read"),
])
def test_run_refuses(building: Any, folder: Path, arguments: list[str], code: int, word: str) -> None:
    np.save("x.npy", np.ones(3, np.float32))
    np.save("y64.npy", np.ones(3))
    np.savez("x.npz", X=np.ones(3, np.float32))
    np.save("pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    result = building("run", "axpy.toml", "-O0", *arguments)
    assert result.code == code, result.err
    assert word in result.err
    assert "Traceback" not in result.err


def test_outputs_have_the_names_of_the_spec_in_its_order(building: Any, folder: Path) -> None:
    spec = "(composite Two ((c{float}[]) -> (z{float}[1], y{float}[2])) (dotimes (i 2) (setf (aref y i) c)) (setf (aref z 0) (- c)))"
    result = building("run", spec, "-O0", "c=2")
    assert (result.code, result.out) == (0, "z float32[1]\n[-2.]\ny float32[2]\n[2. 2.]\n")


def test_an_output_that_is_an_input_may_stand_after_another(building: Any, folder: Path) -> None:
    np.save("c.npy", np.zeros(3, np.float32))
    spec = "(composite Two ((c{float}[3]) -> (z{float}[1], c)) (setf (aref c 0) 1) (setf (aref z 0) 2))"
    assert building("run", spec, "-O0", "c=c.npy").out == "z float32[1]\n[2.]\nc float32[3]\n[1. 0. 0.]\n"


def test_a_kernel_that_crashes_is_an_error(building: Any, folder: Path) -> None:
    np.save("x.npy", np.ones(3, np.float32))
    result = building("run", GATHER, "-O0", "-fno-bounds-check", f"k={2**31 - 1}", "x=x.npy", "-o", "y.npz")
    assert result.code == 1
    assert "E715" in result.err
    assert "the kernel crashed (SIGSEGV)" in result.err
    assert not Path("y.npz").exists()


def test_a_check_that_fails_is_an_error(building: Any, folder: Path) -> None:
    np.save("x.npy", np.ones(3, np.float32))
    result = building("run", GATHER, "-O0", "k=3", "x=x.npy")
    assert result.code == 1
    assert "E711" in result.err


def test_an_archive_is_not_unpacked_beyond_the_memory(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caten.testing.archives.memory", lambda: 1 << 20)
    np.savez_compressed("x.npz", x=np.zeros(1 << 18, np.float64))
    monkeypatch.setattr("caten.testing.archives.load", lambda path, name: pytest.fail("it was unpacked"))
    result = building("run", GATHER, "-O0", "k=1", "x=x.npz")
    assert result.code == 2
    assert "x=x.npz: the arrays need 2 MiB (2 MiB for this one), and this machine has 1 MiB" in result.err


def test_an_array_that_claims_more_than_its_file_holds(building: Any, folder: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**50,)})
    Path("x.npy").write_bytes(header.getvalue() + bytes(64))
    result = building("run", GATHER, "-O0", "k=1", "x=x.npy")
    assert result.code == 2
    assert f"it should hold {2**52} bytes of elements, and has 64" in result.err


def test_an_argument_may_be_spelled_as_in_the_spec(building: Any, folder: Path) -> None:
    spec = "(composite One ((al-pha{float}[], x-0{float}[]) -> (z{float}[])) (setf z (* x-0 al-pha)))"
    result = building("run", spec, "-O0", "al-pha=2", "x_0=3")
    assert (result.code, result.out.split()) == (0, ["z", "float32[]", "6."]), result.err


def test_what_was_made_of_the_same_text_is_not_scheduled_again(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("x.npy", np.ones(3, np.float32))
    command = ("run", "axpy.toml", "-O1", "a=2.0", "X=x.npy", "Y=x.npy")
    first = building(*command)
    assert first.code == 0, first.err
    monkeypatch.setattr(driver, "render", None)
    assert building(*command) == first
    assert building(*command, "--no-cache").code != 0
