"""The tests of a spec as the command line takes them: without a reference, with sizes that follow from others, and malformed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAIRS = '''
[composite]
name = "Pairs"
inputs = ["A{float}[K]"]
outputs = ["C{float}[M](where K = (* 2 M))"]
[implementation]
code = "(dotimes (i M) (setf (aref C i) (+ (aref A (* 2 i)) (aref A (+ 1 (* 2 i))))))"
'''
CASE = '''
[[test.case]]
name = "one"
sizes = { SIZES }
'''


@pytest.fixture
def pairs(folder: Path) -> Path:
    (folder / "pairs.toml").write_text(PAIRS)
    return folder / "pairs.toml"


def test_a_case_of_sizes_alone_is_compared_with_the_body_in_float64(building: Any, pairs: Path) -> None:
    pairs.write_text(PAIRS + CASE.replace("SIZES", "M = 3, K = 6"))
    result = building("test", "pairs.toml", "-r", "numpy")
    assert result.code == 0, result.err
    assert "Pairs [one](K=6, M=3): ok" in result.out
    assert "compared with the spec at -O0 in float64" in result.out


@pytest.mark.parametrize(("given", "all_of_them"), [("M=5", "K=10, M=5"), ("K=8", "K=8, M=4"), ("k=8,m=4", "K=8, M=4")])
def test_a_size_that_an_equation_determines_need_not_be_given(building: Any, pairs: Path, given: str, all_of_them: str) -> None:
    tested = building("pairs.toml", "-r", "numpy", "--test", given)
    assert tested.code == 0, tested.err
    assert f"Pairs({all_of_them}): ok" in tested.out
    pairs.write_text(PAIRS + CASE.replace("SIZES", given.upper().replace("=", " = ")))
    assert f"Pairs [one]({all_of_them}): ok" in building("test", "pairs.toml", "-r", "numpy").out


def test_sizes_of_a_measurement_follow_too(building: Any, pairs: Path) -> None:
    result = building("bench", "pairs.toml", "-r", "numpy", "--no-limits", "--rounds", "3", "--batch", "0.0001", "--sizes", "M=4")
    assert result.code == 0, result.err
    assert "K=8" in result.out


def test_default_sizes_satisfy_the_equations(building: Any, pairs: Path) -> None:
    result = building("test", "pairs.toml", "-r", "numpy")
    assert (result.code, result.out.splitlines()[-1]) == (0, "1 of 1 passed")


@pytest.mark.parametrize(("given", "code", "message"), [
    ("M=3,K=7", "E905", "the condition K = (* 2 M) does not hold for K = 7, M = 3"),
    ("K=7", "E905", "no integer M satisfies the condition K = (* 2 M) with K = 7"),
    ("M=1000000000000", "E905", "the size K cannot be 2000000000000"),
    ("", "E906", "the size M is missing"),
])
@pytest.mark.parametrize("command", [("--test",), ("bench", "--sizes")])
def test_sizes_that_contradict_an_equation(building: Any, pairs: Path, command: tuple[str, ...], given: str, code: str, message: str) -> None:
    result = building(*command, given, "pairs.toml", "-r", "numpy", *["--no-limits"] * len(command[1:]))
    assert result.code == 2
    assert code in result.err
    assert message in result.err
    assert sorted(p.name for p in pairs.parent.iterdir()) == ["axpy.toml", "gemm.toml", "pairs.toml"]


def test_a_case_may_contradict_an_equation_where_it_expects_the_failure(building: Any, pairs: Path) -> None:
    pairs.write_text(PAIRS + CASE.replace("SIZES", "M = 3, K = 7") + 'expect = { error = "does not hold" }\n')
    result = building("test", "pairs.toml", "-r", "numpy")
    assert result.code == 0, result.out + result.err


MALFORMED = {
    "Python that does not parse": ('[test]\ncode = "lambda A: A +* 2"\n', "E801", 9),
    "a name that the operator lacks": ('[test]\ncode = "lambda Q: Q"\n', "E807", 9),
    "a function that is none": ('[test]\ncode = "lambda A: np.nothing(A)"\n', "E804", 9),
    "Lisp that does not close": ('[test]\ncode = "(lambda (A)"\n', "E201", 9),
    "a Lisp parameter that the operator lacks": ('[test]\ncode = "(lambda (Q) Q)"\n', "E823", 9),
    "a case without a size": (CASE.replace("SIZES", ""), "E906", 9),
    "a case of contradictory sizes": (CASE.replace("SIZES", "M = 1, K = 1"), "E905", 9),
    "a key that is none": ('[test]\ncod = "lambda A: A"\n', "E010", 9),
}


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("command", [(), ("build",), ("compile",), ("test",), ("check",), ("pairs.toml", "-o", "x.c")])
def test_a_malformed_test_is_refused_before_anything_is_written(building: Any, pairs: Path, command: tuple[str, ...], name: str) -> None:
    text, code, line = MALFORMED[name]
    pairs.write_text(PAIRS + text)
    result = building(*command, *([] if "pairs.toml" in command else ["pairs.toml"]))
    assert result.code == 1
    assert f"[{code}]" in result.err
    assert f"pairs.toml:{line}" in result.err
    assert sorted(p.name for p in pairs.parent.iterdir()) == ["axpy.toml", "gemm.toml", "pairs.toml"]


def test_all_faults_of_a_test_section_are_told(building: Any, pairs: Path) -> None:
    pairs.write_text(PAIRS + '[test]\ncode = "lambda Q: Q"\n' + CASE.replace("SIZES", ""))
    result = building("pairs.toml")
    assert "E807" in result.err
    assert "E906" in result.err


INLINE = '''
[composite]
name = "Take"
inputs = ["x{float}[N]", "k{int}[M]", "w{float}[N M]"]
outputs = ["y{float}[M]"]
[implementation]
code = "(dotimes (i M) (setf (aref y i) (* (aref w 0 i) (aref x (aref k i)))))"
[[test.case]]
name = "written out"
SIZES
input = { w = [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]], k = [2, 0] }
'''


@pytest.mark.parametrize("sizes", ["", "sizes = { M = 2 }", "sizes = { N = 3, M = 2 }"])
def test_sizes_of_a_case_follow_from_its_arrays(building: Any, pairs: Path, sizes: str) -> None:
    pairs.write_text(INLINE.replace("SIZES", sizes))
    result = building("test", "pairs.toml", "-r", "numpy")
    assert result.out.startswith("Take [written out](N=3, M=2): ok"), result.out + result.err


def test_a_size_that_the_arrays_of_a_case_contradict(building: Any, pairs: Path) -> None:
    pairs.write_text(INLINE.replace("SIZES", "sizes = { N = 4 }"))
    result = building("test", "pairs.toml", "-r", "numpy")
    assert "gives w the shape (3, 2), but with its sizes it is (4, 2)" in result.err
