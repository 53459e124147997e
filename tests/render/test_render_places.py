"""Statements of kernels find the line of the spec that they come from, whatever a schedule made of their names and indices."""
from __future__ import annotations

import pytest

from caten.compiler import prepare
from caten.core.program import At
from caten.core.text import read
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Stmt
from caten.options import Options
from caten.render.source_locations import SourceLocations

# 1 (dotimes (i M)                      5   (dotimes (j N)
# 2   (set s 0.0)                       6     (setf (aref Y i j) (aref X i j))))
# 3   (dotimes (j N)
# 4     (incf s (aref X i j)))
SPEC = (At(1, 1, "i"), At(2, 3, "(aref s)"), At(3, 3, "j"), At(4, 13, "(aref X i j)"), At(5, 3, "j_2"), At(6, 11, "(aref Y i j_2)"), At(6, 24, "(aref X i j_2)"))


def lines(body: str) -> list[int]:
    """The line of each statement, those inside of others behind them."""
    places, before, found = SourceLocations(SPEC), None, []
    for kernel in read(f"(kernel k {body})"):
        for stmt in [s for outer in kernel.body for s in outer.walk() if isinstance(s, Stmt)]:
            before = places.of(stmt, before)
            found.append(before.line if before else 0)
    return found


def test_as_they_were_written() -> None:
    assert lines("(for i 0 M 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial (incf (aref s) (aref X i j)))"
                 " (for j_2 0 N 1 serial (setf (aref Y i j_2) (aref X i j_2))))") == [1, 2, 2, 3, 4, 5, 6]


def test_split_loops_and_vectors() -> None:
    assert lines("(for io 0 8 1 serial (for j_2o 0 8 1 serial (setf (vref Y 8 (io (* 8 j_2o))) (vref X 8 (io (* 8 j_2o))))))") == [1, 5, 6]
    assert lines("(for io 0 8 1 serial (for jt 0 8 1 serial (incf (aref s_part) (aref X io jt))))") == [1, 3, 4]


def test_copies_with_names_of_their_own() -> None:
    assert lines("(for ione 0 M 1 serial (local sone f32 () register) (for jone 0 1 1 serial (incf (aref sone) (aref X ione jone))))") == [1, 2, 3, 4]


def test_loops_that_were_written_out() -> None:
    assert lines("(for i 0 M 1 serial (incf (aref s) (aref X i 0)) (setf (aref Y i 0) (aref X i 0)))") == [1, 4, 6]
    assert lines("(for i 0 M 1 serial (incf (aref s) (aref X i 0)) (incf (aref s) (aref X i 1)) (prefetch (aref X i 0))"
                 " (let x f32 (aref X i 0)) (let y f32 (aref X i 1)))") == [1, 4, 4, 6, 6, 6]


def test_a_loop_begins_anew() -> None:
    inner = "(incf (aref s) (aref X {0} 0)) (setf (aref Y {0} 0) (aref X {0} 0))"
    assert lines(f"(for io 0 8 1 serial {inner.format('io')}) (for it 0 3 1 serial {inner.format('it')})") == [1, 4, 6, 1, 4, 6]


def test_what_nothing_is_known_of_stays_where_it_is() -> None:
    assert lines("(local t f32 () register) (for i 0 M 1 serial (setf (aref t) 0.0))") == [0, 1, 1]


@pytest.mark.parametrize(("runtime", "body", "code", "line"), [
    ("metal", "(dotimes (i M)\n  (setf (aref Y i)\n    (erfc (aref X i))))", "E616", 7),
    ("metal", "(dotimes (i M)\n  (dotimes (j 2)\n    (setf (aref Y i)\n      (erfc (aref X i)))))", "E616", 8),
])
def test_what_a_runtime_refuses_has_the_place_of_its_statement(runtime: str, body: str, code: str, line: int) -> None:
    assert refused(runtime, "float", body) == (code, line)


def test_an_element_type_that_a_runtime_lacks_has_the_place_of_the_operator() -> None:
    assert refused("metal", "double", "(dotimes (i M) (setf (aref Y i) (aref X i)))") == ("E611", 2)


def refused(runtime: str, dtype: str, body: str) -> tuple[str, int]:
    """The code of a refusal by a runtime, and the line that it names."""
    text = f'[composite]\nname = "F"\ninputs = ["X{{{dtype}}}[M]"]\noutputs = ["Y{{{dtype}}}[M]"]\n[implementation]\ncode = """{body}"""\n'
    with pytest.raises(CatenError) as caught:
        prepare([SpecText("f.toml", text, "toml")], Options(runtime=runtime))
    place = caught.value.diagnostics[0].place
    assert place is not None
    return caught.value.diagnostics[0].code, place.line
