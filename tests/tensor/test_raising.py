"""Loop nests to index notation: what fits becomes compute and reduce, what does not stays a nest."""
from __future__ import annotations

import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read, show
from caten.frontend import op as _op
from caten.loop import verifier
from caten.loop.statements import Aref
from caten.semantics.interpret import run
from caten.tensor import tensor_verifier
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.values import Define, Nest

PARAMS = """(size M) (size N) (size K) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)
(buffer x f32 (N) (0) in) (buffer y f32 (N) (0) inout) (buffer k i64 (N) (0) in)"""


def op(body: str, facts: str = "") -> _op.OpProgram:
    return resolve(read(f"(op T {facts} {PARAMS} (body {body}))")[0])


def definitions(body: str, facts: str = "") -> list[str]:
    program = raise_op(op(body, facts))
    assert resolve(read(show(program))[0]) is program
    tensor_verifier.verify(program)
    return [" ".join(show(d, 1 << 20).split()) for d in program.all(Define)]


def loops(body: str) -> str:
    kernel = lower(raise_op(op(body))).kernels[0]
    return " ".join(show(kernel, 1 << 20).split())


GEMM = "(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))"
EXTREME = """(for j 0 N 1 serial (local best f32 () register) (local at i64 () register) (setf (aref best) {}) (setf (aref at) {})
  (for i 0 M 1 serial (if {} ((setf (aref best) (aref C i j)) (setf (aref at) i)))) (setf (aref y j) (cast f32 (aref at))))"""
RAISED = [
    ("(for i 0 N 1 serial (setf (aref y i) (sin (aref x i))))", ["(define v0 (compute f32 ((i N)) (sin (read x i))))"]),
    (GEMM, ["(define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (* (read A i p) (read B p j))))",
            "(define v1 (compute f32 ((i M) (j N)) (+ (read C i j) (read v0 i j))))"]),
    ("(for i 0 N 1 serial (let v f32 (aref x i)) (setf (aref y i) (* (aref y i) (aref x i))))",
     ["(define v0 (compute f32 ((i N)) (* (read y i) (read x i))))"]),
    ("(for i 0 N 1 serial (local s f32 () register) (setf (aref s) (exp (aref x i))) (setf (aref y i) (* (aref s) (aref s))))",
     ["(define v0 (compute f32 ((i N)) (* (exp (read x i)) (exp (read x i)))))"]),
    ("(for j 0 N 1 serial (local s f32 () register) (setf (aref s) 1.0) (for i 0 M 1 serial (incf (aref s) (aref C i j) max)) (setf (aref y j) (neg (aref s))))",
     ["(define v0 (reduce f32 ((i N)) ((p M)) max true (read C p i)))", "(define v1 (compute f32 ((i N)) (neg (max (read v0 i) 1.0))))"]),
    ("(for i 0 N 1 serial (if (< (aref x i) 0.0) ((setf (aref y i) 0.0)) ((setf (aref y i) 1.0))))",
     ["(define v0 (compute f32 ((i N)) (where (< (read x i) 0.0) 0.0 1.0)))"]),
    ("(for j 0 N 1 serial (for i 0 M 1 serial (if (< i j) ((incf (aref y j) (aref C i j))))))",
     ["(define v0 (reduce f32 ((i N)) ((p M)) add (< p i) (read C p i)))", "(define v1 (compute f32 ((i N)) (+ (read y i) (read v0 i))))"]),
    ("(for i 0 N 1 serial (if (< (aref x i) 0.0) ((setf (aref y i) 0.0))))",
     ["(define v0 (compute f32 ((i N)) (where (< (read x i) 0.0) 0.0 (read y i))))"]),
    ("(for i 1 N 1 serial (setf (aref y i) (aref x (- i 1))))",
     ["(define v0 (compute f32 ((i N)) (where (<= 1 i) (read x (- i 1)) (read y i))))"]),
    # passes over rows: a scalar that a loop accumulates, and an array that a loop before it has set
    ("""(for i 0 M 1 serial (local s f32 () register) (setf (aref s) 0.0)
       (for j 0 N 1 serial (setf (aref C i j) (exp (aref C i j))) (incf (aref s) (aref C i j)))
       (for j_2 0 N 1 serial (setf (aref C i j_2) (/ (aref C i j_2) (aref s)))))""",
     ["(define v0 (compute f32 ((i M) (j N)) (exp (read C i j))))", "(define v1 (reduce f32 ((i M)) ((p N)) add true (read v0 i p)))",
      "(define v2 (compute f32 ((i M) (j N)) (/ (read v0 i j) (read v1 i))))"]),
    # what a loop keeps of the iteration with the greatest or least element
    (EXTREME.format("-inf", "0", "(> (aref C i j) (aref best))"),
     ["(define v0 (reduce f32 ((i N)) ((p M)) max true (where (= (read C p i) (read C p i)) (read C p i) -inf)))",
      "(define v1 (reduce i64 ((i N)) ((p M)) min (= (read C p i) (read v0 i)) p))",
      "(define v2 (compute f32 ((i N)) (cast f32 (where (< -inf (read v0 i)) (read v1 i) 0))))"]),
    (EXTREME.format("1.0", "K", "(>= (aref best) (aref C i j))"),
     ["(define v0 (reduce f32 ((i N)) ((p M)) min true (where (= (read C p i) (read C p i)) (read C p i) inf)))",
      "(define v1 (reduce i64 ((i N)) ((p M)) max (= (read C p i) (read v0 i)) p))",
      "(define v2 (compute f32 ((i N)) (cast f32 (where (and (/= (read v1 i) -9223372036854775808) (<= (read v0 i) 1.0)) (read v1 i) K))))"]),
    (EXTREME.format("-inf", "7", "(and (not (isnan (aref best))) (or (isnan (aref C i j)) (> (aref C i j) (aref best))))"),
     ["(define v0 (reduce f32 ((i N)) ((p M)) max true (read C p i)))",
      "(define v1 (reduce i64 ((i N)) ((p M)) min (or (= (read C p i) (read v0 i)) (isnan (read C p i))) p))",
      "(define v2 (compute f32 ((i N)) (cast f32 (where (and (or (< -inf (read v0 i)) (isnan (read v0 i))) (not (isnan -inf))) (read v1 i) 7))))"]),
    # an array between nests has the order of axes of the map that reads it
    ("""(local t f32 (N M) scratch) (for j 0 N 1 serial (for i 0 M 1 serial (setf (aref t j i) (exp (aref C i j)))))
       (for j_2 0 N 1 serial (for i_2 0 M 1 serial (incf (aref y j_2) (aref t j_2 i_2))))
       (for i_3 0 M 1 serial (for j_3 0 N 1 serial (setf (aref C i_3 j_3) (/ (aref t j_3 i_3) 2.0))))""",
     ["(define v0 (compute f32 ((i M) (j N)) (exp (read C i j))))", "(define v1 (compute f32 ((i M) (j N)) (/ (read v0 i j) 2.0)))",
      "(define v2 (reduce f32 ((i N)) ((p M)) add true (read v0 p i)))", "(define v3 (compute f32 ((i N)) (+ (read y i) (read v2 i))))"]),
    # reduced axes are in the order of what is read
    ("(for p 0 K 1 serial (for q 0 M 1 serial (for j 0 N 1 serial (incf (aref y j) (* (aref A q p) (aref C q j))))))",
     ["(define v0 (reduce f32 ((i N)) ((p M) (q K)) add true (* (read C p i) (read A p q))))", "(define v1 (compute f32 ((i N)) (+ (read y i) (read v0 i))))"]),
    # a triangle: the condition of the loop over p
    ("(for i 0 N 1 serial (for p 0 (+ i 1) 1 serial (incf (aref y i) (aref x p))))",
     ["(define v0 (reduce f32 ((i N)) ((p N)) add (< p (+ i 1)) (read x p)))", "(define v1 (compute f32 ((i N)) (+ (read y i) (read v0 i))))"]),
]
STAYS = {
    "an extreme that a NaN resets": EXTREME.format("-inf", "0", "(not (<= (aref C i j) (aref best)))"),
    "an extreme with another limit": EXTREME.format("-inf", "0", "(> (aref C i j) (* 2.0 (aref best)))"),
    "an extreme and what is stored of it": """(local best f32 () register) (setf (aref best) -inf)
      (for j 0 N 1 serial (if (> (aref x j) (aref best)) ((setf (aref best) (aref x j)))) (setf (aref y j) (aref best)))""",
    "an extreme and an element at its index": """(for i 0 N 1 serial (local best f32 () register) (local at f32 () register) (setf (aref best) 0.0) (setf (aref at) 0.0)
      (for j 0 M 1 serial (if (> (aref C j i) (aref best)) ((setf (aref best) (aref C j i)) (setf (aref at) (sin (aref C j i)))))) (setf (aref y i) (aref at)))""",
    "a recurrence": "(for i 1 N 1 serial (setf (aref y i) (aref y (- i 1))))",
    "a step": "(for i 0 N 2 serial (setf (aref y i) (aref x i)))",
    "a store at an index that is loaded": "(for i 0 N 1 serial (setf (aref y (max 0 (min (- N 1) (aref k i)))) 1.0))",
    "one element many times": "(for i 0 N 1 serial (for j 0 N 1 serial (setf (aref y i) (aref x j))))",
    "an array that every iteration fills anew": "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref y j) (aref C i j))))",
    "a diagonal": "(for i 0 (min M N) 1 serial (setf (aref C i i) 0.0))",
    "state of an inner loop": "(for i 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial (setf (aref s) (sin (+ (aref s) (aref x j))))) (setf (aref y i) (aref s)))",
    "state of the loop around an accumulation": "(for i 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial (incf (aref s) (aref x j)) (setf (aref s) (sin (aref s)))) (setf (aref y i) (aref s)))",
    "a scalar that the inner loop replaces": "(for i 0 M 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial (setf (aref s) (+ (aref s) (aref x j))) (setf (aref C i j) (aref s))))",
    "a transposed self": "(for i 0 (min M N) 1 serial (for j 0 (min M N) 1 serial (setf (aref C i j) (aref C j i))))",
}


@pytest.mark.parametrize(("body", "expected"), RAISED)
def test_raises(body: str, expected: list[str]) -> None:
    assert definitions(body) == expected


@pytest.mark.parametrize("why", STAYS)
def test_stays_a_nest(why: str) -> None:
    found = definitions(STAYS[why])
    assert len(found) == 1
    assert "(nest " in found[0]


WHY = {
    "a recurrence": ("an iteration reads an element that another one sets", "(aref y (- i 1))"),
    "a step": ("the step of the loop over 'i' is neither 1 nor -1", None),
    "a store at an index that is loaded": ("an index of a store, or a bound of a loop, is loaded", "(aref y (max 0 (min (- N 1) (aref k i))))"),
    "one element many times": ("several iterations set the same element", "(aref y i)"),
    "a diagonal": ("an index of a store is not one loop by itself", "(aref C i i)"),
    "state of an inner loop": ("'s' is carried from iteration to iteration", "(aref s)"),
    "state of the loop around an accumulation": ("'s' is carried from iteration to iteration", "(aref s)"),
    "a transposed self": ("an iteration reads an element that another one sets", "(aref C j i)"),
}


@pytest.mark.parametrize("name", WHY)
def test_says_why_it_stays_a_nest(name: str) -> None:
    heard: list[tuple[str, str | None]] = []
    raise_op(op(STAYS[name]), heard=lambda stmt, why, keeps: heard.append((why, show(keeps) if isinstance(keeps, Aref) else None)))
    assert heard == [WHY[name]]


def test_a_nest_that_does_nothing_is_no_value() -> None:
    found = definitions("(for j 0 N 1 serial (setf (aref y j) (aref x j))) (barrier)")
    assert found == ["(define v0 (compute f32 ((i N)) (read x i)))"]


def test_nothing_is_raised_at_level_0() -> None:
    assert "(nest " in definitions(GEMM, "(opt 0)")[0]


def test_all_loop_orders_of_a_contraction_are_the_same_values() -> None:
    first = definitions(GEMM)
    for a, b, c in ("ipj", "jip", "jpi", "pij", "pji"):
        bounds = {"i": "M", "j": "N", "p": "K"}
        nest = f"(for {a} 0 {bounds[a]} 1 serial (for {b} 0 {bounds[b]} 1 serial (for {c} 0 {bounds[c]} 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))"
        assert definitions(nest)[1] == first[1]
        assert sorted(definitions(nest)[0]) == sorted(first[0])


def test_an_array_of_the_body_becomes_a_value_and_its_zero_fill_vanishes() -> None:
    body = """(local t f32 (N) scratch) (for q 0 N 1 serial (setf (aref t q) 0.0)) (for i 0 N 1 serial (setf (aref t i) (aref x i)))
    (for i_2 0 N 1 serial (setf (aref y i_2) (aref t i_2)))"""
    assert definitions(body) == ["(define v0 (compute f32 ((i N)) (read x i)))"]


def test_lowering_accumulates_in_place() -> None:
    assert loops(GEMM) == f"(kernel t {GEMM})"


def test_lowering_starts_from_the_other_term() -> None:
    body = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (aref x j)) (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))"
    text = loops(body)
    assert "(setf (aref C i j) (aref x j))" in text
    assert text.count("(for ") == 5


def test_lowering_keeps_a_local_per_element_where_the_total_is_not_a_contraction() -> None:
    body = "(for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0) (for i 0 M 1 serial (incf (aref s) (aref C i j))) (setf (aref y j) (sqrt (aref s))))"
    assert "(local s f32 () register)" in loops(body)


def test_a_value_that_doubles_with_every_name_has_values_for_some_of_them() -> None:
    names = " ".join(f"(let a{k + 1} f32 (* a{k} a{k}))" for k in range(60))
    body = f"(for i 0 N 1 serial (let a0 f32 (aref x i)) {names} (setf (aref y i) a60))"
    assert max(len(d) for d in definitions(body)) < 20_000
    assert loops(body).count("(let ") == len(definitions(body)) - 1


def test_lowering_keeps_what_an_element_was_until_it_is_read() -> None:
    body = """(for i 0 M 1 serial (for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0)
      (for p 0 K 1 serial (incf (aref s) (* (aref A i p) (aref B p j)))) (setf (aref C i j) (* (aref C i j) (aref s)))))"""
    text = loops(body)
    assert "(setf (aref C i_3 j_3) (* (aref C i_3 j_3) (aref s i_3 j_3)))" in text
    assert "(local s f32 (M N) scratch)" in text
    scalar = text_of_sum("(* (aref C i j) (aref s))", "(aref A i p)")
    assert "(incf (aref C i j) (aref s) mul)" in scalar


def text_of_sum(value: str, term: str) -> str:
    return loops(f"""(for i 0 M 1 serial (for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0)
      (for p 0 K 1 serial (incf (aref s) {term})) (setf (aref C i j) {value})))""")


def test_lowering_adds_a_contraction_to_what_the_element_becomes() -> None:
    text = text_of_sum("(+ (* 2.0 (aref C i j)) (aref s))", "(* (aref A i p) (aref B p j))")
    assert "(setf (aref C i j) (* (aref C i j) 2.0))" in text
    assert "local" not in text


def test_no_value_is_called_as_what_a_nest_declares() -> None:
    """The local v0 of this nest is not the value v0, which is stored in y."""
    text = """(op T (size N) (buffer x f32 (N) (0) in) (buffer y f32 (N) (0) out) (opt 2) (body
      (for i 0 N 1 serial (local v0 f32 () register) (setf (aref v0) (aref x i))
        (for j 0 N 1 serial (setf (aref v0) (sin (* (aref v0) (aref v0)))))
        (setf (aref y i) (aref v0)))))"""
    program = raise_op(resolve(read(text)[0]))
    assert isinstance(program.definitions[0].value, Nest)
    tensor_verifier.verify(program)


@pytest.mark.parametrize(("text", "code"), [
    ("(define v (compute f32 ((i N)) (read z i)))", "E470"),
    ("(define v (compute f32 ((i M)) 0.0))", "E470"),
    ("(define v (compute f32 ((i N) (i N)) 0.0))", "E470"),
    ("(define v (compute f32 ((i N)) 0.0)) (define v (compute f32 ((i N)) 1.0))", "E470"),
    ("(define v (compute f32 ((i N)) 0.0)) (output w v)", "E470"),
    ("(define v (compute f32 ((i N)) 0.0)) (output y w)", "E470"),
    ("(define v (nest ((for i 0 N 1 serial (setf (aref t i) (aref q i)))) (out t f32 (N)))) (output y v)", "E470"),
    ("(define (v w) (compute f32 ((i N)) 0.0))", "E471"),
    ("(define v (compute f64 ((i N)) 0.0:f64)) (output y v)", "E471"),
    ("(define v (compute f32 ((i N)) 0.0:f64))", "E471"),
    ("(define v (compute bool ((i N)) true)) (define w (reduce bool () ((p N)) add true (read v p)))", "E471"),
])
def test_the_verifier_refuses(text: str, code: str) -> None:
    from caten.errors import CatenError
    with pytest.raises(CatenError) as caught:
        tensor_verifier.verify(resolve(read(f"(tensor T (size N) (buffer y f32 (N) (0) out) {text})")[0]))
    assert code in [d.code for d in caught.value.diagnostics]


def test_values_do_not_take_the_names_inside_a_nest() -> None:
    body = """(for j 0 N 1 serial (local v0 f32 (K) scratch)
      (for i 0 K 1 serial (if (< (aref k j) 0) ((fail 1))) (setf (aref v0 i) (aref x j)))
      (for i_2 0 K 1 serial (setf (aref y j) (aref v0 i_2))))"""
    (nest,) = definitions(body, '(check 1 "negative")')
    assert nest.startswith("(define v1 (nest")


def test_a_scalar_that_is_accumulated_has_the_axes_of_the_array_that_holds_it() -> None:
    """Whichever loops are around it."""
    body = "(local s f32 () register) (setf (aref s) 0.0) (for p 0 K 1 serial (incf (aref s) (aref A i p))) (setf (aref C i j) (* (aref s) (aref x j)))"
    whole = "(local s f32 () register) (setf (aref s) 0.0) (for p 0 K 1 serial (incf (aref s) (* (aref A i p) (aref B p j)))) (setf (aref C i j) (aref s))"
    for stmts in (body, whole):
        orders = [definitions(f"(for {a} 0 {n} 1 serial (for {b} 0 {m} 1 serial {stmts}))") for a, n, b, m in ("iMjN", "jNiM")]
        assert orders[0] == orders[1]
    assert len(orders[0]) == 1


def test_a_part_of_a_formula_stays_in_the_loops_without_which_it_may_be_outside() -> None:
    """Where N is 0, M may be larger."""
    made = lower(raise_op(op("(for i 0 N 1 serial (for j 0 M 1 serial (let p f32 (exp (aref x j))) (setf (aref C j i) (* p p))))",
                             '(ensure 1 (or (<= N 0) (<= M N))) (check 1 "M is too large")')))
    verifier.verify(made)
    assert run(made, {"M": 3, "N": 0, "K": 0, **{name: np.ones(shape, np.float32) for name, shape in
                                                 {"A": (3, 0), "B": (0, 0), "C": (3, 0), "x": 0, "y": 0}.items()}, "k": np.ones(0, np.int64)}) == 0


def test_sums_as_written_keep_the_order_of_their_loops() -> None:
    body = "(for p 0 K 1 serial (for q 0 M 1 serial (for j 0 N 1 serial (incf (aref y j) (* (aref A q p) (aref C q j))))))"
    assert "((p K) (q M))" in definitions(body, "(in-order)")[0]


def test_a_value_has_no_name_of_a_loop_in_a_nest() -> None:
    """`v0` is the variable of a loop that stays a nest."""
    zeros = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) 1.0)))"
    assert len(definitions(zeros + "(for i 0 M 1 serial (for j 0 N 1 serial (for v0 0 3 1 serial (setf (aref C i j) (aref C i j)))))")) == 2


def test_a_sum_is_none_where_a_loop_around_it_has_no_iteration() -> None:
    """It does not depend on j, but only where there is a j is it certain that there are two columns."""
    made = raise_op(op("(for i 0 M 1 serial (for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0)"
                       " (for p 0 K 1 serial (incf (aref s) (aref A i 1))) (setf (aref C i j) (aref s))))",
                       '(ensure 1 (or (<= N 0) (<= 2 K))) (check 1 "K is too small")'))
    tensor_verifier.verify(made)
    assert "add (< 0 N) (read A i 1)" in str(made)
    verifier.verify(lower(made))
    always = definitions("(for i 0 M 1 serial (for j 0 N 1 serial (local s f32 () register) (setf (aref s) 0.0)"
                         " (for p 0 K 1 serial (incf (aref s) (aref A i p))) (setf (aref C i j) (aref s))))")
    assert "add true (read A i p)" in always[0]
