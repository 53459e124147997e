"""Accesses under conditions that read memory: their checks are made where the conditions hold, and the verifier sees that what is checked is inside."""
from __future__ import annotations

import random

import pytest

from caten import driver, loading
from caten.core.expr import Expr, Op, Var, index
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.loop import context
from caten.loop.known_conditions import choices, remaining, stated, value
from caten.options import Options

LOADS = ("(aref C i i)", "(aref C j i)", "(aref D i)", "(aref D j)", "(aref C (floordiv i 2) j)")
RISKY = ("(aref A (mod i N) 1)", "(aref A (+ (* 3 i) 2) j)", "(aref A (aref D i) j)", "(aref A i (aref D j))")


def condition(rng: random.Random, depth: int = 0) -> str:
    """Comparisons of elements, some inside `and`, `or` and `not`."""
    chance = rng.random()
    if depth < 3 and chance < 0.1:
        return f"(not {condition(rng, depth + 1)})"
    if depth < 3 and chance < 0.55:
        parts = [condition(rng, depth + 1) for _ in range(rng.choice((2, 2, 3)))]
        return f"({rng.choice(('and', 'or', 'or'))} {' '.join(parts)})"
    return f"({rng.choice(('=', '/=', '<', '>='))} {rng.choice(LOADS)} {rng.choice((*LOADS, '3'))})"


def choice(rng: random.Random, depth: int = 0) -> str:
    """A value that one of several accesses gives, each under the conditions around it."""
    if depth < 3 and rng.random() < 0.6:
        return f"(if {condition(rng)} {choice(rng, depth + 1)} {choice(rng, depth + 1)})"
    return f"(+ {rng.choice(LOADS)} {rng.choice(RISKY)})"


def spec(body: str) -> SpecText:
    return SpecText("choice.toml", f"""[composite]
name = "Choice"
inputs = ["A{{int}}[N N]", "C{{int}}[M M]", "D{{int}}[M]"]
outputs = ["E{{int}}[M M]"]
[implementation]
code = "(dotimes (i M) (dotimes (j M) (setf (aref E i j) {body})))"
""")


def refused(body: str, opt: int) -> str:
    """The code of the first diagnostic; nothing where the program is verified after every pass."""
    options = Options(runtime="clang", opt=opt, verify=True)
    try:
        for program in loading.load_programs(spec(body), options):
            driver.advance(program, "loop", options)
    except CatenError as refusal:
        return refusal.diagnostics[0].code
    return ""


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.slow
def test_checked_accesses_under_conditions_are_verified(opt: int, nightly: bool) -> None:
    """E400, an access that is outside whenever it runs, is drawn, too."""
    codes = [refused(choice(random.Random(seed)), opt) for seed in range(150 if nightly else 5)]
    assert set(codes) <= {"", "E400"}, [(n, code) for n, code in enumerate(codes) if code not in ("", "E400")]
    assert codes.count("") > len(codes) // 2


@pytest.mark.parametrize("body", [
    "(if (/= (aref C i j) (aref D i)) 0 (if (< (aref C i j) (aref D i)) (aref A i (aref D j)) 1))",
    "(if (= (aref D j) (aref C i i)) (if (/= (aref D j) (aref C i i)) (aref A (+ (* 3 i) 2) j) 0) 1)",
])
def test_an_access_under_conditions_that_contradict_each_other_never_runs(body: str) -> None:
    assert refused(body, 2) == ""


@pytest.mark.slow
def test_without_what_is_known_as_written_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "choices", lambda *_: ())
    assert "E483" in (refused(choice(random.Random(seed)), 0) for seed in range(60))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [8, 34, 61])
def test_conditions_on_names_of_loaded_values_are_known_as_written(seed: int) -> None:
    """Large expressions are divided into parts with names: some conditions of a check read no memory themselves."""
    assert refused(choice(random.Random(seed)), 0) == ""


P, Q, R = (Op("lt", (Var(name, "i64"), index(3))) for name in "pqr")


def known(*conditions: Expr) -> frozenset[tuple[Expr, bool]]:
    return frozenset([literal for c in conditions for literal in stated(c, True)])


def test_values_of_conditions() -> None:
    assert value(P & Q, known(P, Q)) is True
    assert value(P & Q, known(Op("not", (P,)))) is False
    assert value(P | Q, known(P)) is True
    assert value(P | Q, known(Op("not", (P,)))) is None
    assert value(Op("where", (P, Q, R)), known(P, Op("not", (Q,)))) is False
    assert value(Op("where", (P, Q, R)), known(Q, R)) is True
    assert value(P, known(Op("ge", (Var("p", "i64"), index(3))))) is False
    assert value(P & Q, known(P & Q)) is True
    assert value(Op("not", (P | Q,)), known(P | Q)) is False


def test_not_less_is_greater_or_equal_but_not_of_floats() -> None:
    x, y = Var("x", "f32"), Var("y", "f32")
    assert value(Op("ge", (x, y)), known(Op("not", (Op("lt", (x, y)),)))) is None
    assert value(Op("gt", (x, y)), known(Op("lt", (y, x)))) is True
    assert value(Op("ne", (x, y)), known(Op("eq", (x, y)))) is False


def test_what_is_left_of_a_check() -> None:
    check = choices(Op("not", (P,)) | Q | R, True)
    assert len(check) == 3
    assert remaining(check, known(P, Op("not", (Q,)))) == ((R, True),)
    assert remaining(check, known(Q)) is None
    assert choices(P, True) == ()
