"""Which numbers of iterations are known to be multiples, and that the answer is kept for all places where the same equations are known."""
from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from caten.core.expr import Expr, Op, Var
from caten.core.program import resolve
from caten.core.text import read
from caten.loop.context import Context
from caten.loop.divisibility import is_multiple
from caten.loop.statements import ONE, For, LoopProgram
from caten.schedule.analysis.loop_queries import context_at, loops_in

# equations of the call, and in a condition around the loop -> the bound of the loop, by what it is (not) known to be divisible, and its value
CASES: list[tuple[str, str, str, tuple[int, ...], tuple[int, ...], Callable[[int, int, int], int]]] = [
    ("(= N (* 8 K))", "", "N", (2, 4, 8), (3, 16), lambda n, k, o: n),
    ("(= N (* 8 K))", "", "(floordiv N 2)", (2, 4), (3, 8), lambda n, k, o: n // 2),
    ("(= N (* 8 K))", "", "(min (- N (* 256 o)) 256)", (2, 8), (3, 16, 512), lambda n, k, o: min(n - 256 * o, 256)),
    ("(= N (* 8 K))", "", "(min (- N (* 12 o)) 24)", (4,), (8, 3), lambda n, k, o: min(n - 12 * o, 24)),
    ("(= N (* 8 K))", "", "(+ N 4)", (2, 4), (8,), lambda n, k, o: n + 4),
    ("(= N (* 8 K))", "", "(max N (* 6 K))", (2,), (4, 8), lambda n, k, o: max(n, 6 * k)),
    ("", "(= N (* 4 K))", "N", (2, 4), (8,), lambda n, k, o: n),
    ("(= N (* 2 K))", "(= K (* 2 (floordiv K 2)))", "N", (2, 4), (8,), lambda n, k, o: n),
    ("(= N 24)", "", "(min (- N (* 8 o)) 8)", (2, 8), (16,), lambda n, k, o: min(n - 8 * o, 8)),
    ("", "", "(* 6 N)", (2, 3, 6), (4,), lambda n, k, o: 6 * n),
    ("", "", "N", (1,), (2,), lambda n, k, o: n),
]


def place(equation: str, condition: str, bound: str) -> tuple[Context, Context, Expr]:
    """What is known in the loop over o and at the entry, and the bound of the loop inside."""
    inner = f"(for i 0 {bound} 1 serial (setf (aref Y) i))"
    text = (f"(loop P (size N) (size K) {f'(require {equation})' if equation else ''} (buffer Y i64 () () inout) (kernel k (for o 0 N 1 serial "
            f"{f'(if {condition} ({inner}))' if condition else inner})))")
    program = resolve(read(text)[0])
    assert isinstance(program, LoopProgram)
    loop = loops_in(program)[-1]
    return context_at(program, loop), Context.of(program), loop.hi


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[:3]))
def test_multiples(case: tuple[str, str, str, tuple[int, ...], tuple[int, ...], Callable[[int, int, int], int]]) -> None:
    equation, condition, bound, yes, no, value = case
    known, entry, extent = place(equation, condition, bound)
    found = {factor: is_multiple(known, entry, extent, factor) for factor in (*yes, *no)}
    assert found == dict.fromkeys(yes, True) | dict.fromkeys(no, False)
    points = [(n, k, o) for n, k, o in itertools.product(range(60), range(60), range(3)) if _holds(equation, n, k) and _holds(condition, n, k)]
    assert points
    for factor in yes:
        assert all(value(n, k, o) % factor == 0 for n, k, o in points)


def _holds(equation: str, n: int, k: int) -> bool:
    return {"": True, "(= N (* 8 K))": n == 8 * k, "(= N (* 4 K))": n == 4 * k, "(= N (* 2 K))": n == 2 * k,
            "(= K (* 2 (floordiv K 2)))": k % 2 == 0, "(= N 24)": n == 24}[equation]


def test_the_same_equations_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops around a place say nothing of a remainder; a proof for each of them failed, which takes long."""
    known, entry, _ = place("(= N (* 2 K))", "", "N")
    assert not is_multiple(known, entry, Var("N", "i64"), 8)
    asked: list[object] = []
    real = Context._excluded
    monkeypatch.setattr(Context, "_excluded", lambda self, *words: asked.append(words) or real(self, *words))
    for n in range(5):
        known = known.inside(For(f"j{n}", Op("mul", (Var("o", "i64"), Var("K", "i64"))), Var("N", "i64"), ONE, "serial", ()))
        asked.clear()
        assert not is_multiple(known, entry, Var("N", "i64"), 8)
        assert asked == []

