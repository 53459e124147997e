"""Arrays with strides, called from C between pages that no one may touch: every stride that an array can have works, every other is refused."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guarded_calls import Called, Job, call_all

from caten import compiler
from caten.frontend.spec_files import SpecText
from caten.loop import entry_checks
from caten.options import Options

COPY = "(composite Copy ((A{float}[M N K]) -> (B{float}[M N K])) (dotimes (i M) (dotimes (j N) (dotimes (k K) (setf (aref B i j k) (* 2 (aref A i j k)))))))"
GEMM = """(composite Gemm ((A{float}[M K], B{float}[K N]) -> (C{float}[M N]))
  (dotimes (i M) (dotimes (j N) (setf (aref C i j) 0) (dotimes (p K) (incf (aref C i j) (* (aref A i p) (aref B p j)))))))"""
COLUMN = "(composite Column ((A{double}[M N]<1 0>) -> (B{double}[M])) (dotimes (i M) (setf (aref B i) 0) (dotimes (j N) (incf (aref B i) (aref A i j)))))"
HUGE = (2**63 - 1, -2**63, -2**63 + 1, 2**62, -2**62, 2**61, 2**60 + 1, -2**60 - 1, (2**63 - 1) // 2, 2**63 // 3 + 1, 2**64 // 6)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[Any, Any] = {}

    def get(spec: str, strided: tuple[str, ...], opt: int) -> Any:
        key = spec, strided, opt
        if key not in made:
            options = Options(runtime="clang", opt=opt, strided=strided, use_cache=False)
            out: Path = tmp_path_factory.mktemp("strides") / "kernel.so"
            result = compiler.build([SpecText("t", spec, "lisp")], options)
            out.write_bytes(Path(result.artifact).read_bytes())
            made[key] = out, result.manifest
        return made[key]
    return get


def called(made: Any, name: str, arrays: dict[str, Any], strides: dict[str, tuple[int, ...]], given: dict[str, int], sizes: dict[str, int]) -> Called:
    """A call with arrays that lie with these strides; `given`: strides that the call is told instead."""
    artifact, manifest = made
    numbers = {f"{a}_stride{axis}": s for a, all_ in strides.items() for axis, s in enumerate(all_)}
    return call_all(artifact, manifest, [Job(name, arrays | sizes | numbers | given, strides, at_end) for at_end in (True,)])[0]


def text_of(made: Any, row: int | None) -> str:
    return next((str(c["text"]) for c in made[1]["checks"] if c["row"] == row), "")


@pytest.mark.slice(6)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("strides", [(2000, 100, 1), (-2000, 100, 1), (2000, -100, 1), (-2000, -100, 1), (60, 2000, 1), (-60, 2000, 1)])
def test_negative_and_exchanged_strides_work(built: Any, opt: int, strides: tuple[int, ...]) -> None:
    made = built(COPY, ("A", "B"), opt)
    for m, n, k in ((1, 1, 1), (3, 4, 5), (9, 7, 50), (0, 3, 4), (3, 4, 0)):
        a = np.random.default_rng(1).uniform(-1, 1, (m, n, k)).astype(np.float32)
        result = called(made, "Copy", {"A": a, "B": np.full_like(a, np.nan)}, {"A": strides, "B": tuple(reversed((1, *strides[:2][::-1])))}, {},
                        {"M": m, "N": n, "K": k})
        assert (result.status, result.wrong) == (0, ())
        np.testing.assert_array_equal(result.results["B"], 2 * a)


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("row", [0, 1, -3, 70, -70])
def test_rows_of_an_input_may_overlap(built: Any, opt: int, row: int) -> None:
    m, n, k = 17, 33, 40
    memory = np.random.default_rng(2).uniform(-1, 1, 5000).astype(np.float32)
    a = np.lib.stride_tricks.as_strided(memory[2500:], (m, k), (4 * row, 4)).copy() if row else np.repeat(memory[None, :k], m, 0)
    b = np.random.default_rng(3).uniform(-1, 1, (k, n)).astype(np.float32)
    result = called(built(GEMM, ("A", "B", "C"), opt), "Gemm", {"A": a, "B": b, "C": np.zeros((m, n), np.float32)},
                    {"A": (row, 1), "B": (-n - 3, 1), "C": (-n - 1, 1)}, {}, {"M": m, "N": n, "K": k})
    assert (result.status, result.wrong) == (0, ())
    np.testing.assert_allclose(result.results["C"], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.slice(3)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("name", ["A_stride0", "A_stride1", "B_stride0", "B_stride1"])
def test_strides_whose_products_wrap_are_refused(built: Any, opt: int, name: str) -> None:
    made = built(COPY, ("A", "B"), opt)
    a = np.ones((4, 4, 4), np.float32)
    for stride in HUGE:
        result = called(made, "Copy", {"A": a, "B": a}, {"A": (20, 5, 1), "B": (20, 5, 1)}, {name: stride}, {"M": 4, "N": 4, "K": 4})
        assert result.wrong == ()
        assert text_of(made, result.status) == f"the stride {name} of the array {name[0]} is too large for axis {name[-1]}"
        np.testing.assert_array_equal(result.results["B"], a)                    # nothing was written


def test_the_stride_of_a_column_is_that_of_its_axis(built: Any) -> None:
    made = built(COLUMN, ("A",), 2)
    a = np.arange(12.0).reshape(3, 4)
    good = called(made, "Column", {"A": a, "B": np.zeros(3)}, {"A": (1, -5)}, {}, {"M": 3, "N": 4})
    np.testing.assert_array_equal(good.results["B"], a.sum(1))
    bad = called(made, "Column", {"A": a, "B": np.zeros(3)}, {"A": (1, 5)}, {"A_stride1": 2**62}, {"M": 3, "N": 4})
    assert text_of(made, bad.status) == "the stride A_stride1 of the array A is too large for axis 1"


@pytest.mark.parametrize("stride", [0, 1, 4, -4, -1])
def test_rows_of_an_output_may_not_share_memory(built: Any, stride: int) -> None:
    made = built(COPY, ("A", "B"), 2)
    a = np.ones((4, 4, 5), np.float32)
    for name in ("B_stride0", "B_stride1"):
        result = called(made, "Copy", {"A": a, "B": a}, {"A": (20, 5, 1), "B": (20, 5, 1)}, {name: stride}, {"M": 4, "N": 4, "K": 5})
        assert "which is written, is smaller than a row" in text_of(made, result.status)
        assert result.wrong == ()


@pytest.mark.slice(6)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("stride", [0, 1, -1, *HUGE])
def test_a_stride_that_no_element_needs_may_be_anything(built: Any, opt: int, stride: int) -> None:
    made = built(COPY, ("A", "B"), opt)
    for m, n, k in ((1, 4, 5), (0, 4, 5), (4, 0, 5), (4, 4, 0)):
        a = np.ones((m, n, k), np.float32)
        result = called(made, "Copy", {"A": a, "B": a}, {"A": (20, 5, 1), "B": (20, 5, 1)}, {"A_stride0": stride, "B_stride0": stride},
                        {"M": m, "N": n, "K": k})
        assert (result.status, result.wrong) == (0, ())


def test_without_the_check_a_call_reads_outside(monkeypatch: pytest.MonkeyPatch, built: Any) -> None:
    monkeypatch.setattr(entry_checks, "stride_rows", lambda buffer: ())
    made = built(COPY.replace("Copy", "Unchecked"), ("A", "B"), 0)
    a = np.ones((4, 4, 4), np.float32)
    result = called(made, "Unchecked", {"A": a, "B": a}, {"A": (20, 5, 1), "B": (20, 5, 1)}, {"A_stride0": 2**50}, {"M": 4, "N": 4, "K": 4})
    assert result.status is None, "the pages around the array show what is read outside"
