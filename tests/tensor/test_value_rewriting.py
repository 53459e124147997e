"""Rules on values: what a pattern matches, and what becomes of it."""
from __future__ import annotations

import re

import pytest

from caten import driver, loading
from caten.core.program import Opt
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.schedule.planning_log import Entry, Rewritten
from caten.tensor.values import TensorProgram

PRODUCT = """
[[rewrite]]
name = "product"
inputs = ["A{float}[M K]", "B{float}[K N]"]
outputs = ["C{float}[M N]"]
lang = "python"
pattern = "return A @ B"
call = "(product A B C (int32 M) N)"
"""


def spec(inputs: str, output: str, code: str, rules: str = PRODUCT) -> str:
    lang = "lisp" if code.startswith("(") else "python"
    return f'[composite]\nname = "T"\ninputs = [{inputs}]\noutputs = ["{output}"]\n[implementation]\nlang = "{lang}"\ncode = """{code}"""\n{rules}'


def rule(inputs: str, pattern: str, replacement: str, output: str = "Y{float}[N]", more: str = "", name: str = "r") -> str:
    return (f'[[rewrite]]\nname = "{name}"\ninputs = [{inputs}]\noutputs = ["{output}"]\nlang = "python"\n'
            f'pattern = "return {pattern}"\nreplacement = "return {replacement}"\n{more}\n')


def values(text: str, **options: object) -> tuple[str, list[str]]:
    """The definitions after all rules, and the names of the rules that were applied."""
    log: list[Entry] = []
    made = Options(verify=True, **options)      # type: ignore[arg-type]
    (program,) = loading.load_programs(SpecText("t.toml", text), made)
    program = driver.advance(program, "tensor", made, log=log)
    assert isinstance(program, TensorProgram)
    driver.advance(program.without(Opt).adding(Opt(min(made.opt, 1))), "loop", made)      # which verifies what it calls, and plans nothing
    shown = re.sub(r"\s+", " ", " ".join([show(d) for d in program.definitions]))
    return shown, [e.rule for e in log if isinstance(e, Rewritten)]


MATRICES = '"X{float}[M K]", "W{float}[K N]", "v{float}[N]"'
LOOPS = """(dotimes (i M) (dotimes (j N) (setf (aref Y i j) 0))) (dotimes (j N) (dotimes (q K) (dotimes (i M) (incf (aref Y i j) (* (aref W q j) (aref X i q))))))"""
SCALARS = "(dotimes (j N) (dotimes (i M) (set s 0.0) (dotimes (q K) (incf s (* (aref X i q) (aref W q j)))) (setf (aref Y i j) s)))"
CONSTANT = '"X{float}[8 K]", "W{float}[K 16]"'


@pytest.mark.parametrize(("inputs", "output", "code"), [
    (MATRICES, "Y{float}[M N]", "return X @ W"),
    (MATRICES, "Y{float}[M N]", LOOPS),                                       # the loops in another order, the factors exchanged
    (MATRICES, "Y{float}[M N]", SCALARS),                                     # a value of which the axes are j, i
    (MATRICES, "Y{float}[M N]", "return np.maximum(X @ W + v, 0)"),
    (MATRICES, "Y{float}[M N]", "return np.einsum('ik,kj->ij', X, W)"),
    (CONSTANT, "Y{float}[8 16]", "return X @ W"),
    (MATRICES, "Y{float}[M N]", "return np.tanh(X) @ W"),                     # an operand that is computed
    (MATRICES, "Y{float}[M N]", "return (X * 2) @ W"),
    ('"X{float}[M K]<1 0>", "W{float}[K N]"', "Y{float}[M N]", "return np.tanh(X) @ W"),
])
def test_a_product_is_a_call(inputs: str, output: str, code: str) -> None:
    shown, rules = values(spec(inputs, output, code))
    assert rules == ["product"]
    assert "extern product (address" in shown
    assert "reduce" not in shown


@pytest.mark.slice(4)
@pytest.mark.parametrize(("inputs", "output", "code"), [
    ('"X{double}[M K]", "W{double}[K N]"', "Y{double}[M N]", "return X @ W"),              # another type
    ('"X{float}[M K]", "W{float}[N K]"', "Y{float}[M N]", "return X @ W.T"),               # a transposed operand
    ('"X{float}[M K]<1 0>", "W{float}[K N]"', "Y{float}[M N]", "return X @ W"),            # column-major in memory
    ('"X{float}[M K]", "W{float}[K N]"', "Y{float}[M N]<1 0>", "return X @ W"),            # a column-major result
    ('"X{float}[M K]", "W{float}[(* 2 K) N]"', "Y{float}[M N]", "return X @ W[K:]"),       # a part of an array
    ('"X{float}[B M K]", "W{float}[K N]"', "Y{float}[B M N]", "return X @ W"),             # three axes
    ('"X{float}[M K]", "W{float}[K N]"', "Y{float}[M N]",                                  # a maximum, not a sum
     "(dotimes (i M) (dotimes (j N) (setf (aref Y i j) 0) (dotimes (p K) (maxcf (aref Y i j) (* (aref X i p) (aref W p j))))))"),
])
def test_what_is_no_such_product_stays(inputs: str, output: str, code: str) -> None:
    shown, rules = values(spec(inputs, output, code))
    assert (rules, "extern" in shown) == ([], False)


def test_a_strided_array_is_no_operand_of_a_call() -> None:
    text = spec(MATRICES, "Y{float}[M N]", "return X @ W")
    assert values(text, strided=("X",))[1] == []
    assert values(text, strided=("v",))[1] == ["product"]


def test_no_rule_applies_without_values_or_where_it_is_switched_off() -> None:
    text = spec(MATRICES, "Y{float}[M N]", "return X @ W")
    assert values(text, no_rewrite=True)[1] == []
    assert values(text, in_order=True)[1] == []                               # sums are no values then
    assert values(text, opt=0)[1] == []
    assert values(text, runtime="numpy")[1] == []                             # which calls no C functions


def test_a_library_that_is_linked_switches_its_rules_on() -> None:
    text = spec(MATRICES, "Y{float}[M N]", "return X @ W", PRODUCT + 'library = "blas"\n')
    assert values(text)[1] == []
    assert values(text, ldflags=("-L/opt", "-lblas"))[1] == ["product"]


def test_sizes_that_may_not_fit_an_argument_are_checked() -> None:
    text = spec(MATRICES, "Y{float}[M N]", "return X @ W")
    (program,) = loading.load_programs(SpecText("t.toml", text), Options())
    made = driver.advance(program, "tensor", Options())
    assert "(check 7 \"M is too large for product, which takes i32\")" in show(made)
    assert "N is too large" not in show(made)                                 # it is passed as int64


MAP = '"X{float}[N]"'


@pytest.mark.parametrize(("pattern", "code", "replaced"), [
    ("X * X", "return X[::-1] ** 2 + 1", 0),                                   # X is an array at its own index here
    ("np.exp(X)", "return np.exp(X) + 1", 1),
    ("np.exp(X)", "return np.log(np.exp(X) + np.exp(X))", 1),
    ("np.exp(X)", "return np.exp(np.sin(X))", 1),                              # a hole that is an expression
    ("X + np.exp(X)", "return np.exp(np.sin(X)) + np.sin(X)", 1),              # twice the same, in the other order
    ("X + np.exp(X)", "return np.exp(np.sin(X)) + np.cos(X)", 0),
    ("np.exp(X / np.sum(X))", "return np.exp(X / np.sum(X))", 1),              # several values
    ("np.exp(X / np.sum(X))", "return np.exp(X / np.max(X))", 0),
])
def test_parts_of_formulas_and_patterns_of_several_values(pattern: str, code: str, replaced: int) -> None:
    shown, rules = values(spec(MAP, "Y{float}[N]", code, rule(MAP, pattern, "np.cos(X)")))
    assert len(rules) == replaced
    assert ("cos" in shown) == (replaced > 0 or "cos" in code)


def test_a_scalar_stands_for_an_expression_without_axes() -> None:
    scaled = rule('"a{float}[]", "X{float}[N]"', "a * np.exp(X)", "np.exp2(a * X)")
    shown, rules = values(spec('"X{float}[N]", "b{float}[]"', "Y{float}[N]", "return np.exp(X) * (b + 1)", scaled))
    assert rules == ["r"]
    assert "(exp2 (* (read X i) (+ b 1.0)))" in shown


def test_conditions_must_follow() -> None:
    guarded = rule(MAP, "np.exp(X)", "np.exp2(X)", more='requirements = ["N >= 64"]')
    assert values(spec(MAP, "Y{float}[N]", "return np.exp(X)", guarded))[1] == []
    assert values(spec(MAP, "Y{float}[N]", "return np.exp(X)", guarded), binds=(("N", 100),))[1] == ["r"]
    assert values(spec(MAP, "Y{float}[N]", "return np.exp(X)", guarded), binds=(("N", 10),))[1] == []


def test_the_first_rule_that_fits_is_taken_and_what_it_made_is_left() -> None:
    first = rule(MAP, "np.exp(X)", "np.exp(X) * 2", name="first")
    second = rule(MAP, "np.exp(X)", "np.exp2(X)", name="second")
    assert values(spec(MAP, "Y{float}[N]", "return np.exp(X)", first + second))[1] == ["first"]
    assert values(spec(MAP, "Y{float}[N]", "return np.exp(X)", second + first))[1] == ["second"]


def test_an_output_that_is_an_input_is_updated() -> None:
    update = """[[rewrite]]
name = "update"
inputs = ["A{float}[M K]", "B{float}[K N]", "C{float}[M N]"]
outputs = ["C"]
lang = "python"
pattern = "C += A @ B"
call = "(update A B C M N K)"
"""
    shown, rules = values(spec('"X{float}[M K]", "W{float}[K N]", "Y{float}[M N]"', "Y", "Y += X @ W", update))
    assert rules == ["update"]
    assert "(address C update)" in shown
    assert "(out C f32 (M N) Y)" in shown


def test_reduced_axes_match_in_any_order() -> None:
    body = "(set s 0.0) (dotimes (j M) (dotimes (i N) (incf s (aref X i j)))) (setf Y s)"
    one = rule('"X{float}[N M]"', "np.sum(X)", "np.max(X)", output="Y{float}[]")
    assert values(spec('"X{float}[N M]"', "Y{float}[]", body, one))[1] == ["r"]
