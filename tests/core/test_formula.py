"""Formulas over sizes: text, value, solving."""
from __future__ import annotations

import random

import pytest

from caten.core.size_formula import ALLOWED, evaluate, formula, names, solve, spell
from caten.errors import CatenError

SIZES = {"M": 7, "N": 3, "Z": 0}
VALUES = [("(* 2 M)", 14), ("(+ M (- N 1))", 9), ("(floordiv (- 0 M) N)", -3), ("(mod (- 0 M) N)", 2), ("(floordiv M Z)", 0), ("(mod M Z)", 0),
          ("(truncdiv (- 0 M) N)", -2), ("(max M N)", 7), ("(min M (neg N))", -3), ("(where (< M N) 1 2)", 2), ("(and (< 0 M) (not (= M N)))", True),
          ("(or (<= M N) (/= M N))", True), ("(cast i64 (abs (neg M)))", 7), ("(>= M 7)", True), ("(> M 7)", False), ("5", 5)]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: int) -> None:
    expr = formula(text)
    assert evaluate(expr, SIZES) == value
    assert formula(spell(expr)) is expr


def test_every_operator_has_a_value() -> None:
    used = {n.fn for text, _ in VALUES for n in formula(text).walk() if hasattr(n, "fn")}
    assert set(ALLOWED) <= used


@pytest.mark.parametrize(("text", "value", "answer"), [
    ("M", 5, ("M", 5)), ("(* 2 M)", 8, ("M", 4)), ("(* M 2)", 7, ("M", None)), ("(+ M N)", 8, ("M", 5)), ("(- M 1)", 4, ("M", 5)), ("(- N M)", 1, ("M", 2)),
    ("(+ 1 (* 4 (- M N)))", 9, ("M", 5)), ("(* M 0)", 0, None), ("(+ M M)", 4, None), ("(* A B)", 4, None), ("(floordiv M 2)", 4, None), ("N", 3, None)])
def test_solving(text: str, value: int, answer: tuple[str, int | None] | None) -> None:
    assert solve(formula(text), value, {"N": 3}) == answer


def test_a_solution_solves() -> None:
    rng = random.Random(1)
    solved = 0
    for _ in range(500):
        expr, known = formula("M"), {"N": rng.randint(-4, 4)}
        for _ in range(rng.randint(0, 4)):
            other = formula(rng.choice(["N", str(rng.randint(-3, 5))]))
            left, right = (expr, other) if rng.random() < 0.5 else (other, expr)
            expr = rng.choice([left + right, left - right, left * right])
        value = evaluate(expr, known | {"M": rng.randint(0, 9)})
        answer = solve(expr, value, known)
        if answer is not None:
            assert answer[1] is not None
            assert evaluate(expr, known | {"M": answer[1]}) == value
            solved += 1
    assert solved > 300


def test_what_is_no_formula() -> None:
    for text in ("(aref A 1)", "(exp M)"):
        with pytest.raises(CatenError, match="not a formula"):
            evaluate(formula(text), SIZES)
    with pytest.raises(CatenError, match="one formula"):
        formula("1 2")
    with pytest.raises(KeyError):
        evaluate(formula("Q"), SIZES)
    assert names(formula("(+ B (* A B))")) == ("B", "A")
