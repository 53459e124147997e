"""The driver of the stages: what it does when a planned program cannot be shown to be right."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from caten import driver, loading, passes
from caten.core.program import Program
from caten.errors import CatenError, error
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.statements import Vref
from caten.options import Options

AXPY = Path(__file__).resolve().parent.parent / "samples" / "axpy.toml"
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))


def scheduled(options: Options) -> Program:
    op = loading.load_programs(SpecText("axpy.toml", AXPY.read_text(), "toml"), options)[0]
    return driver.advance(op, "loop", options)


def vectors(program: Program) -> int:
    return sum(isinstance(n, Vref) for n in program.walk())


def without_vectors(program: Program) -> None:
    """A verifier that cannot follow vectors."""
    verifier.verify(program)
    if vectors(program):
        raise error("E483", "not shown to be inside")


def test_a_step_that_cannot_be_shown_right_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vectors(scheduled(OPTIONS)) > 0
    monkeypatch.setitem(passes.VERIFIERS, "loop", without_vectors)
    monkeypatch.setattr("caten.schedule.script.verify_program", without_vectors)
    program = scheduled(replace(OPTIONS, strict=False))
    assert vectors(program) == 0
    assert "parallel" in repr(program)


def test_with_verify_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(passes.VERIFIERS, "loop", without_vectors)
    monkeypatch.setattr("caten.schedule.script.verify_program", without_vectors)
    with pytest.raises(CatenError, match="E483"):
        scheduled(replace(OPTIONS, verify=True))


def test_a_schedule_that_was_asked_for_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(passes.VERIFIERS, "loop", without_vectors)
    with pytest.raises(CatenError, match="E483"):
        scheduled(replace(OPTIONS, schedule="(schedule (split i 8) (vectorize ii))"))


def test_a_warning_is_told_once_however_often_a_program_is_made() -> None:
    """Vectors are never made of a scan: -Wscalar says so in each of two goes, and who listens hears it once."""
    options, heard = replace(OPTIONS, asked=frozenset({driver.SCALAR})), []
    scan = SpecText("scan.toml", '[composite]\nname = "Scan"\ninputs = ["X{float}[N]"]\noutputs = ["X"]\n'
                    '[implementation]\ncode = "(loop (i 1 N) (incf (aref X i) (aref X (- i 1))))"\n', "toml")
    for warn, times in ((heard.append, 2), (driver.once(heard.append), 1)):
        heard.clear()
        for _ in range(2):
            driver.advance(loading.load_programs(scan, options)[0], "loop", options, warn)
        assert [d.code for d in heard] == [driver.SCALAR] * times
