"""Every identity holds: both sides, evaluated at all edge values of its holes."""
from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from caten.core.expr import Const, Expr, Hole, Op
from caten.core.identities import EXTREMA, FLOATS, LOGIC, NEGATIONS
from caten.core.rewrite import Rules, fill
from caten.mathematics import evaluate

EDGES: dict[str, list[Any]] = {"f32": [0.0, -0.0, 1.0, -1.0, 2.5, -3.25, 1e30, math.inf, -math.inf, math.nan], "i8": [-128, -1, 0, 1, 127],
                               "u64": [0, 1, (1 << 64) - 1], "bool": [False, True]}
SETS = [(FLOATS, "f32"), (EXTREMA, "i8"), (EXTREMA, "u64"), (LOGIC, "bool"), (NEGATIONS, "i8"), (NEGATIONS, "bool"), (NEGATIONS, "f32")]


def value(expr: Expr) -> Any:
    if isinstance(expr, Const):
        return evaluate.numpy_type(expr.type)(expr.value)
    assert isinstance(expr, Op)
    return evaluate.apply(expr.fn, [value(a) for a in expr.args], expr.args[-1].dtype)


def instances(pattern: Expr, dtype: str) -> list[dict[str, Any]]:
    """All bindings of the holes of a pattern to edge values that their tests admit; 2 and 3 for the exponents."""
    found = {n.name: n for n in pattern.unique() if isinstance(n, Hole)}
    values = [Const(v, dtype) for v in EDGES[dtype] + ([2.0, 3.0] if dtype == "f32" else [])]
    admitted = [[v for v in values if h.test is None or h.test(v)] for h in found.values()]
    return [dict(zip(found, each, strict=True)) for each in product(*admitted)]


def same(a: Any, b: Any, fn: str) -> bool:
    if fn == "pow" and np.isfinite(a) and np.isfinite(b):
        return bool(abs(a - b) <= np.spacing(abs(b)))
    if fn in ("min", "max"):
        return bool(a == b or (a != a and b != b))                      # of two zeros either
    return bool(np.asarray(a).tobytes() == np.asarray(b).tobytes() or (a != a and b != b))


def checked(rules: Rules, dtype: str) -> tuple[int, list[str]]:
    """How many instances there were, and those whose sides differ."""
    count, wrong = 0, []
    for pattern, template in rules.rules:
        logical = {n.fn for n in pattern.unique() if isinstance(n, Op)} <= {"not", "and", "or"}
        if logical != (dtype == "bool"):
            continue
        for env in instances(pattern, dtype):
            left, right = fill(pattern, env), fill(template, env) if isinstance(template, Expr) else template(**env)
            count += 1
            if not same(value(left), value(right), left.fn):
                wrong.append(f"{left} is not {right}")
    return count, wrong


@pytest.mark.parametrize(("rules", "dtype"), SETS)
def test_both_sides_are_equal(rules: Rules, dtype: str) -> None:
    count, wrong = checked(rules, dtype)
    assert not wrong
    assert count > 1


def test_every_rule_fires_on_its_own_pattern() -> None:
    for rules, dtype in SETS:
        for pattern, _ in rules.rules:
            for env in instances(pattern, dtype)[:3]:
                assert rules.step(fill(pattern, env)) is not None


def test_an_identity_that_fails_for_a_signed_zero_or_nan_is_seen() -> None:
    x = Hole("x")
    plus_zero = Hole("zero", lambda n: isinstance(n, Const) and repr(n.value) == "0.0")
    for wrong in (Rules((x + plus_zero, x)), Rules((Op("mul", (x, plus_zero)), plus_zero)), Rules((x - x, Const(0.0, "f32")))):
        assert checked(wrong, "f32")[1]
