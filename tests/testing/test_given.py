"""Arrays of test cases: those that fit are used, every other is refused by name, whatever the file holds."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caten.compiler import build
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import runner

SPEC = '''
[composite]
name = "Scale"
inputs = ["a{float}[]", "x{float}[N]", "ix{int8}[R]"]
outputs = ["y{float}[R]"]
[implementation]
code = """(dotimes (i R) (setf (aref y i) (* a (aref x (aref ix i)))))"""
[test]
code = "lambda a, x, ix: a * x[ix]"
'''


def reports(case: str, folder: Path) -> list[runner.Report]:
    text = SPEC + f'[[test.case]]\nname = "c"\nsizes = {{ N = 3, R = 2, a = 2 }}\n{case}\n'
    options = Options(runtime="numpy", use_cache=False)
    return runner.run_cases(build([SpecText(str(folder / "scale.toml"), text, "toml")], options), options)


@pytest.mark.parametrize("case", ["input = { x = [1, 2, nan], ix = [0, 1] }", "input = { ix = [2.0, 2] }", "input = { x = [1e300, 0, 1] }"])
def test_arrays_that_fit(case: str, tmp_path: Path) -> None:
    assert reports(case, tmp_path)[0].passed


@pytest.mark.parametrize(("case", "said"), [
    ("input = { x = [1, 2] }", "gives x the shape (2,), but with its sizes it is (3,)"),
    ("input = { x = 5 }", "gives x the shape (), but with its sizes it is (3,)"),
    ("input = { x = [[1, 2], [3]] }", "cannot read the arrays of case 'c' from its input"),
    ("input = { ix = [0, 300] }", "gives ix elements that are not i8"),
    ("input = { ix = [0, 0.5] }", "gives ix elements that are not i8"),
    ("input = { a = 5 }", "gives 'a', a number, among its arrays"),
    ('input = "none.npz"', "cannot read"),
    ('input = "empty.npz"', "cannot read"),
    ('input = "torn.npz"', "cannot read"),
    ('expect = "torn.npz"', "cannot read"),
    ('input = "array.npz"', "cannot read"),
    ('input = "objects.npz"', "no array of numbers"),
    ('input = "words.npz"', "gives x elements that are not f32"),
    ('input = "complex.npz"', "gives x elements that are not f32"),
    ('input = "names.npz"', "gives 'q', which is no tensor of Scale"),
])
def test_arrays_that_do_not_fit(case: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 torn" * 9)
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    np.savez(tmp_path / "objects.npz", x=np.array([None, 1, 2], object))
    np.savez(tmp_path / "words.npz", x=np.array(["a", "b", "c"]))
    np.savez(tmp_path / "complex.npz", x=np.ones(3) * 1j)
    np.savez(tmp_path / "names.npz", q=np.ones(3))
    with pytest.raises(CatenError) as caught:
        reports(case, tmp_path)
    assert caught.value.diagnostics[0].code == "E836"
    assert said in caught.value.diagnostics[0].message
    written = (SPEC + f'[[test.case]]\nname = "c"\nsizes = {{ N = 3, R = 2, a = 2 }}\n{case}').split("\n")
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert written[place.line - 1][place.column - 1:] == case.split(" = ", 1)[1]           # the caret is at the arrays


@pytest.mark.parametrize("size", [10**6, 2**40])
def test_sizes_beyond_the_memory(size: int) -> None:
    text = '(composite Zero (() -> (Y{double}[N N N])) (dotimes (i N) (setf (aref Y i i i) 0.0)))'
    options = Options(runtime="numpy", use_cache=False)
    made = build([SpecText("zero.lisp", text, "lisp")], options)
    with pytest.raises(CatenError, match="E834"):
        runner.run_at(made, {"N": size}, options)
