"""The operands of commutative operators and of comparisons have one order, whichever is written first."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.core.program import resolve
from caten.core.text import flat, form_of, read
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.canonical_values import canonical_values
from caten.tensor.operand_order import with_ordered_operands
from caten.tensor.values import Define, Output, TensorProgram

PARAMS = ["A{float}[M K]", "B{float}[K N]", "C{float}[M N]", "D{float}[M N]", "a{float}[M]", "b{float}[N]", "s{float}[]", "n{int}[M N]", "k{int}[M N]"]
PAIRS = {
    "a bias behind or in front": ("A @ B + b", "b + A @ B"),
    "a constant factor": ("np.exp(C) * 2", "2 * np.exp(C)"),
    "a constant summand": ("np.sqrt(C) + 1", "1 + np.sqrt(C)"),
    "two parameters": ("C * D", "D * C"),
    "a parameter in two places": ("C * D + C", "C + D * C"),
    "a residual": ("np.tanh(A @ B) + C", "C + np.tanh(A @ B)"),
    "a row and a column": ("a[:, None] + b[None, :]", "b[None, :] + a[:, None]"),
    "maxima": ("np.maximum(C, np.minimum(D, 0))", "np.maximum(np.minimum(0, D), C)"),
    "two functions of one array": ("np.sin(C) * np.exp(C)", "np.exp(C) * np.sin(C)"),
    "sums of two arrays": ("C * C.sum(axis=1)[:, None] * D.sum(axis=1)[:, None]", "D.sum(axis=1)[:, None] * (C.sum(axis=1)[:, None] * C)"),
    "neighbours": ("C[:, 1:] * C[:, :-1]", "C[:, :-1] * C[:, 1:]"),
    "equal parts under other operators": ("np.exp(C + D) / (1 + np.exp(D + C))", "np.exp(D + C) / (np.exp(C + D) + 1)"),
    "integers": ("np.where((n & k) + n * 3 > 5, C, D)", "np.where(3 * n + (k & n) > 5, C, D)"),
    "conditions": ("np.where((C > 0) & (D < 1), C, D)", "np.where((D < 1) & (C > 0), C, D)"),
    "a comparison either way round": ("np.where(C > 0, C, D)", "np.where(0 < C, C, D)"),
    "one that is true of equal ones": ("np.where(C <= D.sum(axis=1)[:, None], C, D)", "np.where(D.sum(axis=1)[:, None] >= C, C, D)"),
    "bounds on both sides": ("np.where((0 <= n) & (n < k), C, D)", "np.where((k > n) & (n >= 0), C, D)"),
    "equality": ("np.where(n == k, C, D)", "np.where(k == n, C, D)"),
    "operands of a contraction": ("np.einsum('ik,kj->ij', A, B)", "np.einsum('kj,ik->ij', B, A)"),
}


OPTIONS = Options()


def program(line: str, options: Options) -> TensorProgram:
    inputs = ", ".join([f'"{p}"' for p in PARAMS if p.partition("{")[0] in line])
    spec = f'[composite]\nname = "Pair"\ninputs = [{inputs}]\noutputs = ["Y{{float}}[...]"]\n[implementation]\nlang = "python"\ncode = """\nreturn {line}\n"""\n'
    (loaded,) = loading.load_programs(SpecText("pair.toml", spec, "toml"), options)
    made = driver.advance(loaded, "tensor", options)
    assert isinstance(made, TensorProgram)
    return made


def values(line: str, options: Options = OPTIONS) -> list[str]:
    return [flat(form_of(c)) for c in program(line, options).clauses if isinstance(c, Define | Output)]


@pytest.mark.parametrize("name", PAIRS)
def test_both_orders_are_the_same_values(name: str) -> None:
    first, second = PAIRS[name]
    assert values(first) == values(second)


def test_where_floats_are_added_in_order_a_sum_starts_at_nothing() -> None:
    """As in NumPy: what is added to a sum is added behind it."""
    in_order = Options(in_order=True)
    first = values("A @ B + b", in_order)
    assert first == values("b + A @ B", in_order)
    assert first[0] == "(define v0 (compute f32 ((i M) (j N)) 0.0))"
    assert first[2] == "(define v2 (compute f32 ((i M) (j N)) (+ (read v1 i j) (read b j))))"


def test_a_difference_and_a_quotient_have_their_order() -> None:
    assert values("C - D") != values("D - C")
    assert values("C / D") != values("D / C")
    assert values("np.where(C < D, C, D)") != values("np.where(D < C, C, D)")


@pytest.mark.parametrize(("rows", "order"), [("M", ("(< i N)", "(read X")), ("N", ("(read X", "(< i N)"))])
def test_a_condition_stays_before_what_it_guards(rows: str, order: tuple[str, str]) -> None:
    """An array of N rows has none at the indices from N to M."""
    text = (f"(tensor T (size M) (size N) (size K) (buffer X f32 (N K) (0 1) in) (buffer y f32 ({rows}) (0) out) "
            f"(define v0 (reduce f32 ((i {rows})) ((p K)) add (and (< i N) (< 0.0 (read X i p))) 1.0)) (output y v0))")
    (define,) = canonical_values(resolve(read(text)[0])).all(Define)
    shown = flat(form_of(define))
    assert shown.index(order[0]) < shown.index(order[1])


@pytest.mark.parametrize(("written", "ordered"), [
    ("(* (read X i j) (* 2.0 s))", "(* (read X i j) (* s 2.0))"),                                       # constants last
    ("(+ (read x i) (read X i j))", "(+ (read X i j) (read x i))"),                                     # more axes
    ("(+ (* (read X i j) (read Z i j)) (exp (read X i j)))", "(+ (exp (read X i j)) (* (read X i j) (read Z i j)))"),      # what costs more
    ("(* (read X j i) (read X i j))", "(* (read X i j) (read X j i))"),                                 # rows before columns
    ("(* (read y (+ i 2)) (read y (+ i 1)))", "(* (read y (+ i 1)) (read y (+ i 2)))"),                 # nearer to the start
    ("(+ (read X i j) (read total i j))", "(+ (read v0 i j) (read X i j))"),                            # values before parameters
    ("(where (and (< (read k i) N) (<= 0 (read k i))) 1.0 2.0)", "(where (and (<= 0 (read k i)) (< (read k i) N)) 1.0 2.0)"),      # fewer variables
    ("(* (cos (read X i j)) (sin (read X i j)))", "(* (sin (read X i j)) (cos (read X i j)))"),         # the order of the table
    ("(* (read Z i j) (read X i j))", "(* (read X i j) (read Z i j))"),                                 # the order of the parameters
])
def test_the_order(written: str, ordered: str) -> None:
    text = (f"(tensor T (size N) (scalar s f32) (buffer X f32 (N N) (0 1) in) (buffer Z f32 (N N) (0 1) in) (buffer x f32 (N) (0) in) (buffer y f32 ((+ N 2)) (0) in) "
            f"(buffer k i64 (N) (0) in) (buffer Y f32 (N N) (0 1) out) (define total (reduce f32 ((i N) (j N)) ((p N)) add true (* (read X i p) (read Z p j)))) "
            f"(define v (compute f32 ((i N) (j N)) {written})) (output Y v))")
    last = canonical_values(resolve(read(text)[0])).all(Define)[-1]
    assert flat(form_of(last)).endswith(f"((i N) (j N)) {ordered}))")


def test_rows_are_before_columns_whatever_the_axes_are_called() -> None:
    """Before axes have their order: the operand whose sum is its last axis, as A in A @ B, is first."""
    text = ("(tensor T (size N) (buffer B f32 (N N) (0 1) in) (buffer A f32 (N N) (0 1) in) (buffer Y f32 (N) (0) out) "
            "(define v (reduce f32 ((i N) (j N)) ((p N)) add true (* (read B p i) (read A j p)))) "
            "(define w (reduce f32 ((i N)) ((p N)) add true (* (read v p i) (read v p i)))) (output Y w))")
    first = canonical_values(resolve(read(text)[0])).all(Define)[0]
    assert flat(form_of(first)) == "(define v0 (reduce f32 ((i N) (j N)) ((p N)) add true (* (read A i p) (read B p j))))"


@pytest.mark.parametrize("state", ["(read c i)", "(read v2 i)"])
def test_what_reads_costly_values_is_first_beside_a_parameter_as_beside_a_value(state: str) -> None:
    """The first step of a recurrence has a parameter where the others have a value."""
    costly, other = "(* (read v0 i) (read v1 i))", f"(* (read v0 i) {state})"
    for terms in (f"{costly} {other}", f"{other} {costly}"):
        made = resolve(read("(tensor T (size N) (buffer x f32 (N) (0) in) (buffer c f32 (N) (0) in) (buffer y f32 (N) (0) out) "
                            "(define v0 (compute f32 ((i N)) (sigmoid (read x i)))) (define v1 (compute f32 ((i N)) (tanh (read x i)))) "
                            f"(define v2 (compute f32 ((i N)) (+ (read x i) (read c i)))) (define v3 (compute f32 ((i N)) (+ {terms}))) (output y v3))")[0])
        last = flat(form_of(with_ordered_operands(made, by_axes=True).definitions[-1]))
        assert last.index("read v1") < last.index(state[1:-1])
