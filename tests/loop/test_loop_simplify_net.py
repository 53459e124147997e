"""The net of the simplifier: random expressions against exhaustive evaluation over small domains."""
from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from caten.core.expr import Cast, Const, Expr, Op, Var, index
from caten.core.program import Size
from caten.loop import disjunctions
from caten.loop import simplify as simplifier
from caten.loop.affine import canonical
from caten.loop.context import Context
from caten.loop.statements import LoopProgram, dotimes
from caten.mathematics.evaluate import apply, cast, numpy_type

SEEN: Counter[str] = Counter()
VAR_I, VAR_J, N = Var("i", "i64"), Var("j", "i64"), Var("N", "i64")          # 0 <= i < N, 0 <= j < 4
PARTS = ("add", "add", "sub", "mul", "floordiv", "mod", "min", "max", "where", "neg", "narrow", "shl", "shr", "and")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def random_expression(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice((VAR_I, VAR_J, N, index(rng.randint(-4, 9)), index(rng.choice((0, 1, 4, 8)))))
    fn = rng.choice(PARTS)
    SEEN[fn] += 1
    a = random_expression(rng, depth - 1)
    match fn:
        case "neg":
            return -a
        case "narrow":
            return Cast("i64", Op(rng.choice(("add", "mul")), (Cast("i8", a), Const(rng.randint(-128, 127), "i8"))))
        case "shl" | "shr":
            return Op(fn, (a, index(rng.randint(0, 3))))
        case "and":
            return Op(fn, (a, index(rng.choice((1, 3, 7, 6)))))
        case "where":
            return Op(fn, (random_condition(rng, depth - 1), a, random_expression(rng, depth - 1)))
        case "floordiv" | "mod":
            return Op(fn, (a, rng.choice((index(rng.choice((-3, 0, 1, 2, 4, 8))), N, random_expression(rng, 0)))))
    return Op(fn, (a, random_expression(rng, depth - 1)))


def random_condition(rng: random.Random, depth: int) -> Expr:
    if depth > 0 and rng.random() < 0.3:
        fn = rng.choice(("and", "or", "not"))
        SEEN["cond " + fn] += 1
        parts = [random_condition(rng, depth - 1) for _ in range(1 if fn == "not" else 2)]
        return Op(fn, tuple(parts))
    fn = rng.choice(COMPARISONS)
    SEEN[fn] += 1
    return Op(fn, (random_expression(rng, depth), random_expression(rng, depth)))


GRID = [(n, i, j) for n in range(7) for i in range(n) for j in range(4)]
ENV = {name: np.array(column, dtype="int64") for name, column in zip(("N", "i", "j"), zip(*GRID, strict=True), strict=True)}


def evaluate(expr: Any) -> Any:
    """The values at every point of the grid, by the operators' reference meaning."""
    match expr:
        case Var(name):
            return ENV[name]
        case Const(value=value):
            return np.full(len(GRID), value, dtype=numpy_type(expr.type))
        case Cast(dtype, arg):
            return cast(evaluate(arg), arg.dtype, dtype)
    return apply(expr.fn, [evaluate(a) for a in expr.args], expr.args[-1].dtype)


def context() -> Context:
    program = LoopProgram("net", (Size("N"),))
    return Context.of(program).inside(dotimes("i", N)).inside(dotimes("j", index(4)))


def compare(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_condition(rng, 2) if rng.random() < 0.3 else random_expression(rng, 3)
    simple = simplifier.simplify(expr, context())
    again = simplifier.simplify(simple, context())
    normal = canonical(expr)
    SEEN["shorter" if simple is not expr else "same"] += 1
    with np.errstate(all="ignore"):
        wanted = evaluate(expr)
        for found in {simple: 0, again: 0, normal: 0}:
            wrong = np.flatnonzero(evaluate(found) != wanted)
            assert not len(wrong), f"seed {seed} at N, i, j = {GRID[wrong[0]]}: {expr!r} -> {found!r}, which was {wanted[wrong[0]]}"


def compare_all(count: int) -> None:
    for seed in range(count):
        compare(seed)


@pytest.mark.slow
def test_simplified_expressions_have_the_same_values(nightly: bool) -> None:
    SEEN.clear()
    compare_all(25_000 if nightly else 500)
    print(dict(SEEN))
    for feature in (*PARTS, *COMPARISONS, "cond and", "cond or", "cond not", "shorter", "same"):
        assert SEEN[feature], f"no random expression had: {feature}"


def test_the_net_catches_a_wrong_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: `<=` is taken for `<`."""
    monkeypatch.setitem(disjunctions._FORMS, "le", ((1, 1, False),))
    with pytest.raises(AssertionError):
        compare_all(300)


def test_the_net_catches_division_that_truncates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the part of a quotient that is taken out is rounded the wrong way."""
    true_interval = Context.interval
    monkeypatch.setattr(Context, "interval", lambda self, form: (max(true_interval(self, form)[0], 0), true_interval(self, form)[1]))
    with pytest.raises(AssertionError):
        compare_all(500)
