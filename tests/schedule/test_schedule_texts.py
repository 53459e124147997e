"""Texts of schedules: what is none, and where and how a wrong step is told."""
from __future__ import annotations

import pytest
from schedule_nets import program

from caten.errors import CatenError
from caten.schedule import script


def test_a_misspelt_name_gets_a_hint() -> None:
    with pytest.raises(CatenError) as caught:
        script.apply(program("(for column 0 N 1 serial (setf (aref v column) x))"), [("split", "colum", "4")])
    assert caught.value.diagnostics[0].hint == "did you mean 'column'?"
    with pytest.raises(CatenError) as caught:
        script.parse_schedule("(schedule (vectorise j))")
    assert caught.value.diagnostics[0].hint == "did you mean 'vectorize'?"


@pytest.mark.parametrize("text", ["", "(split i 4)", "(schedule) (schedule)", "schedule", "(schedule split)",
                                  "(schedule ((split) i 4))", "()", "(loop Op (size N))", "(tensor Op (schedule))"])
def test_texts_that_are_no_schedule(text: str) -> None:
    with pytest.raises(CatenError) as caught:
        script.parse_schedule(text)
    assert caught.value.diagnostics[0].code == "E504"


def test_a_wrong_step_in_a_text_has_a_place() -> None:
    with pytest.raises(CatenError) as caught:
        script.parse_schedule("(schedule\n  (split i 4)\n  (split i))", "mine.txt")
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert (place.file, place.line, place.column) == ("mine.txt", 3, 3)
