"""Scalars that are set once and read right after are gone; those that something else hangs on stay."""
from __future__ import annotations

import pytest

from caten.core.program import resolve
from caten.core.text import flat, form_of, read
from caten.loop.forwarding import forward_scalars
from caten.loop.statements import LoopProgram
from caten.schedule.analysis.loop_queries import loops_in

A, S, T = "(local a f32 () register)", "(setf (aref a) (aref X i))", "(local t f32 () register)"


def body(text: str) -> str:
    """The statements of a loop over i after forward substitution."""
    (node,) = read(f"(loop P (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) inout) (buffer I i64 (N) (0) in) (size N) (kernel k (for i 0 N 1 serial {text})))")
    program = resolve(node)
    assert isinstance(program, LoopProgram)
    return " ".join([flat(form_of(s)) for s in forward_scalars(loops_in(program)[0].body)])


@pytest.mark.parametrize(("text", "made"), [
    (f"{A} {S} (incf (aref Y i) (aref a))", "(incf (aref Y i) (aref X i))"),
    (f"{A} {S} (incf (aref Y i) (* (aref a) (aref a)))", "(incf (aref Y i) (* (aref X i) (aref X i)))"),
    (f"{A} (setf (aref a) (exp (aref X i))) (setf (aref Y i) (aref a))", "(setf (aref Y i) (exp (aref X i)))"),
    (f"{A} (setf (aref a) (aref Y i)) (setf (aref Y i) (+ (aref a) 1.0))", "(setf (aref Y i) (+ (aref Y i) 1.0))"),
    (f"{A} {S} {T} (setf (aref t) (+ (aref a) 1.0)) (setf (aref Y i) (aref t))", "(setf (aref Y i) (+ (aref X i) 1.0))"),
    (f"{A} {S} (if (< 0.0 (aref a)) ((setf (aref Y i) (aref a))))", "(if (< 0.0 (aref X i)) ((setf (aref Y i) (aref X i))))")])
def test_what_is_read_right_after_is_put_there(text: str, made: str) -> None:
    assert body(text) == made


@pytest.mark.parametrize("text", [
    f"{A} (setf (aref a) (exp (aref X i))) (setf (aref Y i) (* (aref a) (aref a)))",                                    # computed twice
    f"{A} (setf (aref a) (aref Y i)) (setf (aref Y i) 0.0) (setf (aref Y 0) (aref a))",                                 # another value by then
    f"{A} (setf (aref a) (aref Y i)) (if (< i 3) ((setf (aref Y i) 0.0) (setf (aref Y 0) (aref a))))",
    f"{A} {S} (incf (aref a) 1.0) (setf (aref Y i) (aref a))",                                                          # set twice
    f"{A} {S} (for j 0 N 1 serial (incf (aref Y j) (aref a)))",                                                         # read in every iteration
    f"{A} (if (< i 3) ((setf (aref a) 1.0))) (setf (aref Y i) (aref a))",
    "(local a f32 (2) register) (setf (aref a 0) (aref X i)) (setf (aref Y i) (aref a 0))"])
def test_what_something_else_hangs_on_stays(text: str) -> None:
    assert body(text) == text


def test_names_that_hang_on_each_other_do_not_become_one_expression_without_end() -> None:
    names = [f"v{n}" for n in range(400)]
    text = "".join([f"(local {v} f32 () register) (setf (aref {v}) (+ {f'(aref {names[n - 1]})' if n else '(aref X i)'} 1.0)) " for n, v in enumerate(names)])
    made = body(text + f"(setf (aref Y i) (aref {names[-1]}))")
    assert 2 < made.count("local") < 40
