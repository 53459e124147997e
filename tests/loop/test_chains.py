"""Bounds that lead to each other: what they show holds, and the questions that most accesses ask are among it."""
from __future__ import annotations

import random

import numpy as np
import pytest

from caten.core.expr import Expr
from caten.core.program import resolve
from caten.core.text import read
from caten.loop import bound_chains
from caten.loop.context import Context
from caten.loop.statements import If, Incf, LoopProgram, Setf
from caten.schedule.analysis.loop_queries import loops_in
from caten.semantics.interpret import run


def asked(loops: str, form: str) -> tuple[Context, Expr, LoopProgram]:
    """What is known in the innermost of these loops, and an expression there."""
    opened = " ".join([f"(for {loop} 1 serial" for loop in loops.split(";")])
    (text,) = read(f"(loop P (buffer Y i64 () () inout) (size N) (size M) (ensure 1 (and (<= 0 N) (<= N 1048576))) (ensure 2 (and (<= 0 M) (<= M 1048576)))"
                   f"(check 1 \"N\") (check 2 \"M\") (kernel k {opened} (incf (aref Y) {form} min){')' * (loops.count(';') + 1)}))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    for loop in loops_in(program):
        context = context.inside(loop)
    stmt = loops_in(program)[-1].body[0]
    assert not isinstance(stmt, Setf)
    return context, stmt.value, program


def shown(loops: str, form: str) -> bool:
    context, expr, _ = asked(loops, form)
    return bound_chains.is_nonnegative(context, context.linear(expr))


@pytest.mark.parametrize(("loops", "form"), [
    ("i 0 N", "(- (- N i) 1)"), ("i 0 N", "i"), ("o 0 (floordiv N 8);i 0 8", "(- (- (- N (* 8 o)) i) 1)"),
    ("o 0 (floordiv (+ N 7) 8);i 0 (min 8 (- N (* 8 o)))", "(- (- (- N (* 8 o)) i) 1)"),
    ("o 0 (floordiv (+ N 7) 8)", "(min 8 (- N (* 8 o)))"), ("o 0 (floordiv (+ N 5) 6);i 0 6;j 0 (min 6 (- N (* 6 o)))", "(- (- (- N (* 6 o)) j) 1)"),
    ("o 0 (floordiv (- N (* 8 (floordiv N 8))) 3);i 0 3", "(- (- (- (- N (* 8 (floordiv N 8))) (* 3 o)) i) 1)"),
    ("i 0 N;j i N", "(- j i)"), ("i 0 N;j 0 (+ i 1)", "(- (- N j) 1)"), ("i 0 (max N M)", "(- (- (+ N M) i) 1)"),
    ("p 0 2;i 0 N;j 0 N", "(- (- N 1) (floordiv (+ (+ (* p (* N N)) (* i N)) j) (* 2 N)))"), ("i 0 N;j 0 M", "(- (- (* N M) 1) (+ (* i M) j))"),
    ("k 0 (- N 2);i 0 (- M 2)", "(- (- (* (- N 2) (- M 2)) 1) (+ (* (- M 2) k) i))"), ("i 0 N;j 0 M", "(- (- (* N M) 1) (+ (* (min i (- N 1)) M) j))"),
    ("i 0 (* 2 (* N M))", "(- (- N 1) (floordiv (floordiv i 2) M))"),
    ("i 0 (* N M)", "(+ (floordiv (- (* -1 i) 1) M) N)"), ("i 0 (* N M)", "(- -1 (floordiv (- (* -1 i) 1) M))"),
    ("i 0 N", "(+ (* 4 (floordiv (- N i) 4)) i)"), ("i 0 N", "(+ (* 4 (floordiv (- N 1) 4)) i)"), ("i 0 N;j 0 i", "(+ (+ (* 8 (floordiv (- i j) 8)) j) j)"),
    ("i 0 M", "(+ (* 6 (floordiv (- M (floordiv M (max N 1))) 3)) (floordiv M (max N 1)))")])
def test_indices_are_shown_to_be_inside(loops: str, form: str) -> None:
    assert shown(loops, form)


@pytest.mark.parametrize(("loops", "form"), [
    ("i 0 N", "(- (- N i) 2)"), ("i 0 N", "(- i 1)"), ("o 0 (floordiv (+ N 7) 8);i 0 8", "(- (- (- N (* 8 o)) i) 1)"), ("i 0 N", "(- M i)"),
    ("i 0 (max N M)", "(- (- N i) 1)"), ("i 0 (min N (* N M))", "(- (* N M) (* 2 i))"), ("i 0 (* N M)", "(- N (min i (* N M)))"),
    ("i 0 N", "(- (min i (* N M)) 1)"), ("i 0 N", "(- (min (* N M) (* N N)) i)"), ("i 0 N", "(- (floordiv i 2) 1)"), ("o 0 (floordiv (+ N 8) 8)", "(- (min 8 (- N (* 8 o))) 1)"),
    ("p 0 3;i 0 N;j 0 N", "(- (- N 1) (floordiv (+ (+ (* p (* N N)) (* i N)) j) (* 2 N)))"), ("i 0 N;j 0 M", "(- (- (* N M) 1) (+ (* i M) (* 2 j)))"),
    ("i 0 N;j 0 M", "(- (- (* N M) 1) (+ (* i N) j))"), ("i 0 N;j 0 M", "(- (- (* N M) 2) (+ (* (min i (- N 1)) M) j))"),
    ("i 0 (+ 1 (* 2 (* N M)))", "(- (- N 1) (floordiv (floordiv i 2) M))"), ("i 0 (* N M)", "(+ (floordiv (- (* -1 i) 2) M) N)"), ("i 0 (* N M)", "(- -2 (floordiv (- (* -1 i) 1) M))"),
    ("i 0 N", "(- (+ (* 4 (floordiv (- N i) 4)) i) 1)"), ("i 0 N", "(+ (* 4 (floordiv (- M i) 4)) i)"), ("i 0 N", "(+ (* 4 (floordiv (- N 2) 4)) i)")])
def test_what_does_not_hold_is_not_shown(loops: str, form: str) -> None:
    assert not shown(loops, form)


def drawn(rng: random.Random) -> tuple[str, str]:
    """Loops within loops, and a form of their variables."""
    names: list[str] = ["N", "M"]

    def atom() -> str:
        a = rng.choice(names)
        return rng.choice((a, a, f"(* {rng.randrange(1, 5)} {a})", f"(floordiv {a} {rng.randrange(1, 5)})", f"(min {a} {rng.randrange(1, 5)})", f"(max {a} {rng.choice(names)})", f"(* {a} {rng.choice(names)})"))

    def form(terms: int) -> str:
        text = str(rng.randrange(-3, 4))
        for _ in range(terms):
            text = f"({rng.choice('+-')} {text} {atom()})"
        return text
    loops = []
    for name in "ijk"[:rng.randrange(1, 4)]:
        loops.append(f"{name} {rng.choice(('0', '0', atom()))} {rng.choice((atom(), form(1)))}")
        names.append(name)
    return ";".join(loops), form(rng.randrange(1, 4))


@pytest.mark.slow
def test_what_is_shown_holds_in_every_iteration() -> None:
    """Beside the least value that the form takes where it is computed, for sizes of 0 to 5."""
    rng, said = random.Random(3), 0
    for _ in range(500):
        loops, form = drawn(rng)
        context, expr, program = asked(loops, form)
        if bound_chains.is_nonnegative(context, context.linear(expr)):
            said += 1
            for n in range(6):
                for m in range(6):
                    given = {"N": n, "M": m, "Y": np.array(1 << 40, np.int64)}
                    assert run(program, given) == 0
                    assert int(given["Y"]) >= 0, (loops, form, n, m)
    assert said > 60


def test_ranges_show_what_too_many_chains_do_not_reach() -> None:
    """(W - 2)·(k - 2) + l - 2 for k and l from 2 on, in a loop over the last of four columns."""
    (text,) = read("""(loop P (buffer X f32 (H W) (0 1) in) (buffer Y i64 () () inout) (size H) (size W) (ensure 1 (and (<= 2 H) (<= 2 W))) (check 1 "small")
      (kernel k (for k 2 H 1 serial (for l (* 4 (floordiv W 4)) W 1 serial (if (<= 2 l)
        ((incf (aref Y) (- (+ (* W k) l) (+ (* 2 W) (- (* 2 k) 2))) min)))))))""")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    for loop in loops_in(program):
        context = context.inside(loop)
    (guarded,) = loop.body
    assert isinstance(guarded, If)
    (stmt,) = guarded.then
    assert isinstance(stmt, Incf)
    form = context.given(guarded.cond).linear(stmt.value)
    assert bound_chains.is_nonnegative(context.given(guarded.cond), form)
    assert not bound_chains.is_nonnegative(context.given(guarded.cond), form.shifted(-1))
    assert not bound_chains.is_nonnegative(context, form)
