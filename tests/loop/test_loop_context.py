"""What is known at a point of a program, and what it costs to know it."""
from __future__ import annotations

import numpy as np
import pytest

from caten.core.expr import Const, Op, Var, index
from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.loop import accesses
from caten.loop.context import Context
from caten.loop.operation_count import Work, counted
from caten.loop.statements import Aref, For, If, LoopProgram, Setf
from caten.loop.verifier import verify
from caten.schedule.analysis.loop_queries import loops_in
from caten.semantics.interpret import run

# Conditions on values that were loaded, of one alternative and of two.
LOADED = ("(= (aref A (+ (* 8 o) i)) 3)", "(< (aref A i) (aref A o))", "(or (= (aref A i) 1) (< (aref A o) 2))", "(/= (aref A (- N i)) 0)",
          "(or (< (aref A (+ i 2)) 2) (= (aref A o) (aref A i)))")


def innermost(conditions: int) -> tuple[Context, If]:
    """What is known under so many conditions on loaded values in two loops, and the question asked there."""
    opened = " ".join([f"(if {LOADED[k % len(LOADED)]} (" for k in range(conditions)])
    (text,) = read(f"(loop P (buffer A i64 (N) (0) in) (buffer Y i64 () () inout) (size N) (kernel k (for o 0 (floordiv (+ N 7) 8) 1 serial "
                   f"(for i 0 (min 8 (- N (* 8 o))) 1 serial {opened} (if (> (+ (* 2 o) (floordiv i 4)) (floordiv (- N 1) 4)) ((setf (aref Y) 1))) {')) ' * conditions}))))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    body: tuple[object, ...] = ()
    for loop in loops_in(program):
        context, body = context.inside(loop), loop.body
    while conditions:
        (stmt,) = body
        assert isinstance(stmt, If)
        context, body, conditions = context.given(stmt.cond), stmt.then, conditions - 1
    (asked,) = body
    assert isinstance(asked, If)
    return context, asked


@pytest.mark.parametrize("conditions", [1, 2, 5, 10])
def test_loaded_values_say_nothing_of_the_indices_they_were_loaded_from(conditions: int) -> None:
    """A proof about the indices costs as much as without these conditions: facts far from a goal once took the room of those that showed it."""
    spent = []
    for count in (0, conditions):
        with counted(Work()) as work:
            context, asked = innermost(count)
            assert context.refutes(asked.cond)
        spent.append(work.spent)
    assert spent[0] == spent[1] > 0
    assert not context.equates(["i", "o"])


TALL, WIDE = "(* (floordiv (+ H 3) 4) (floordiv (+ W 7) 8))", "(* (floordiv (+ H 1) 2) (floordiv (+ W 15) 16))"


@pytest.mark.parametrize(("cond", "is_known"), [
    (f"(< {WIDE} {TALL})", False), (f"(<= (* {WIDE} 10) (* 9 {TALL}))", False), (f"(not (< {WIDE} {TALL}))", False),
    (f"(or (< {WIDE} {TALL}) (< W 8))", False), (f"(and (< {WIDE} {TALL}) (< W 8))", True),
    (f"(< {WIDE} 100)", True), (f"(< (+ H W) {TALL})", True), ("(< (* H W) (* N W))", True), ("(< (floordiv (+ H 3) 4) (floordiv (+ W 7) 8))", True)])
def test_which_tiles_are_fewer_says_nothing_of_a_size(cond: str, is_known: bool) -> None:
    """With such products among what is known, each proof about the sizes took ten times as long."""
    text = f"(loop P (size N) (size H) (size W) (buffer Y i64 () () inout) (kernel k (if {cond} ((setf (aref Y) 1)))))"
    program = resolve(read(text)[0])
    assert isinstance(program, LoopProgram)
    (stmt,) = program.kernels[0].body
    assert isinstance(stmt, If)
    context = Context.of(program)
    known = context.given(stmt.cond)
    assert (len(known.clauses) > len(context.clauses) or known.ranges != context.ranges) is is_known
    assert not context.refutes(stmt.cond)
    assert not context.proves(stmt.cond)


def test_nested_loops_state_no_fact_twice() -> None:
    """What follows from the size of an array for its rows is stated in each loop that is entered. (On threads, a convolution once had 712 facts, of which
    18 were different, and took four times as long to plan.)"""
    text = ("(loop P (size B) (size C) (size H) (size W) (buffer X f32 (B C H W) (0 1 2 3) in) (buffer Y f32 (16 (* C H) W) (0 1 2) inout) (kernel k "
            "(for t 0 16 1 parallel (for b 0 B 1 serial (for c 0 C 1 serial (for h 0 H 1 serial (for w 0 W 1 serial "
            "(setf (aref Y t (+ (* H c) h) w) (aref X b c h w)))))))))")
    program = resolve(read(text)[0])
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    for loop in loops_in(program):
        context = context.inside(loop)
        assert len({c.alternatives for c in context.clauses}) == len(context.clauses)
        assert context.inside(loop).clauses == context.clauses
    cond = Var("b", "i64") + Var("c", "i64") < Var("W", "i64")
    known = context.given(cond)
    assert known is not context
    assert known.given(cond) is known
    either = known.given((Var("b", "i64") < Var("H", "i64")) | (Var("c", "i64") < Var("W", "i64")))
    assert len(either.clauses) == len(known.clauses) + 1
    assert either.given((Var("b", "i64") < Var("H", "i64")) | (Var("c", "i64") < Var("W", "i64"))) is either


@pytest.mark.parametrize(("condition", "is_inside"), [
    ("(and (<= 1 (min (+ N 2) (max (aref A i) 0))) (< (min (+ N 2) (aref A i)) (+ N 1)))", True), ("(and (<= 1 (aref A i)) (<= (min N (max (aref A i) 0)) N))", False),
    ("(and (<= 1 (max (aref A i) 0)) (<= (max (aref A i) 7) N))", True), ("(and (<= 1 (max (aref A i) 1)) (<= (max (aref A i) 7) N))", False)])
def test_a_bound_of_a_minimum_bounds_its_operands(condition: str, is_inside: bool) -> None:
    """An element of an array may be any number: before 1 is subtracted, it has to be known that this does not wrap. (Elements of a padded array at
    indices that are read: a clipped index is compared, and the index itself is read at.)"""
    (text,) = read(f"(loop P (buffer A i64 (M) (0) in) (buffer Y i64 () () inout) (size N) (size M) (ensure 1 (<= 8 N)) (check 1 \"N\") "
                   f"(kernel k (for i 0 M 1 serial (if {condition} ((setf (aref Y) (- (aref A i) 1)))))))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    (loop,) = loops_in(program)
    (guarded,) = loop.body
    assert isinstance(guarded, If)
    (stmt,) = guarded.then
    assert isinstance(stmt, Setf)
    assert accesses.is_inside(Context.of(program).inside(loop).given(guarded.cond), stmt.value, Var("N", "i64")) == is_inside


def test_a_product_that_is_a_number_bounds_indices() -> None:
    """An array of N · M rows is read as one of 42."""
    (text,) = read("(loop P (buffer X f32 (N M K) (0 1 2) in) (buffer Y f32 (42 K) (0 1) inout) (size N) (size M) (size K) (ensure 1 (= (* N M) 42)) "
                   "(check 1 \"rows\") (kernel k (for i 0 42 1 serial (for j 0 K 1 serial (setf (aref Y i j) (aref X (floordiv i M) (mod i M) j))))))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    verify(program)


def test_a_bound_of_a_minimum_that_is_a_factor_too_does_not_bound_its_operands() -> None:
    """Where N · min(n, k) ≤ min(n, k) + 100 with N = 2 and n = 1, k may be 1000: 100 - (N - 1) · m falls where m rises."""
    n, rows, k = Var("n", "i64"), Var("N", "i64"), Aref("k", (), "i64")
    least = Op("min", (n, Op("max", (k, index(0)))))
    known = Context({"n": (0, 1000), "N": (0, 1000)}).given(least * rows <= least + 100).given(rows >= 2)
    assert known.proves(least <= 100)
    assert not known.proves(k <= 100)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
def test_the_least_integer_divided_by_minus_one_is_itself(dtype: str) -> None:
    """An index -k for k ≤ 0 is inside of an array only where k is not -2^63."""
    k, zero = Aref("k", (), dtype), Const(0, dtype)
    known, opposite = Context().given(k <= zero), Op("floordiv", (k, Const(-1, dtype)))
    assert not known.proves(zero <= opposite)
    assert known.given(Const(-100, dtype) <= k).proves(zero <= opposite)


@pytest.mark.parametrize(("dtype", "mask"), [("i8", 127), ("i32", 2**31 - 1), ("i64", 2**63 - 1), ("u8", 127), ("u8", 255), ("u32", 2**32 - 1)])
def test_a_mask_of_all_bits_but_the_sign_changes_negative_integers(dtype: str, mask: int) -> None:
    """Where k < 100, the index k and 2^31 - 1, as of a hash, may be 2^31 - 1; it is not negative."""
    k, limit, zero = Aref("k", (), dtype), Const(100, dtype), Const(0, dtype)
    known, kept = Context().given(k < limit), Op("and", (k, Const(mask, dtype)))
    assert known.proves(zero <= kept)
    assert known.proves(kept < limit) == dtype.startswith("u")
    assert known.given(zero <= k).proves(kept < limit)


@pytest.mark.parametrize("dtype", ["u8", "u32", "u64"])
def test_an_unsigned_integer_is_its_absolute_value(dtype: str) -> None:
    """It is not the greater one of k and -k, which wraps: |100| of a u8 is not 156."""
    k = Aref("k", (), dtype)
    known = Context().given(k <= Const(100, dtype))
    assert known.proves(Op("abs", (k,)) <= Const(100, dtype))
    assert not known.refutes(Op("abs", (Const(100, dtype),)) <= Const(100, dtype))


def test_what_a_loop_writes_is_forgotten_in_its_own_bounds_and_nothing_else_matters() -> None:
    n, i = Aref("n", (), "i64"), Var("i", "i64")
    elsewhere, itself = Setf(Aref("y", (i,), "f32"), Const(1.0, "f32")), Setf(n, index(0))
    before = Context({})
    keeps, changes, other = [before.inside(For("i", index(0), n, index(1), "serial", (stmt,)))
                             for stmt in (elsewhere, itself, Setf(Aref("z", (i,), "f32"), Const(2.0, "f32")))]
    assert keeps.proves(i < n)
    assert not changes.proves(i < n)
    assert other is keeps                       # and so are the answers that it remembers


@pytest.mark.parametrize(("condition", "positive"), [
    ("(= (* (* M N) N) 384)", {"M", "N"}), ("(= 384 (* M N))", {"M", "N"}), ("(= (* M N) 0)", set()), ("(= (+ M N) 3)", set()), ("(/= (* M N) 384)", set())])
def test_factors_of_a_product_that_is_not_0_are_positive(condition: str, positive: set[str]) -> None:
    program = resolve(read(f"(loop P (buffer X f32 (M N) (0 1) inout) (size M) (size N) (ensure 1 {condition}) (check 1 \"\") (kernel main (setf (aref X 0 0) 0.0:f32)))")[0])
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    assert {name for name in ("M", "N") if context.proves(Var(name, "i64") >= index(1))} == positive


@pytest.mark.parametrize(("index_", "extent", "inside"), [
    ("n", "(+ (* 4 L) (* 2 (floordiv L 2)))", True), ("n", "(* 2 L)", True), ("(+ n (floordiv L 2))", "(* 2 L)", True), ("(+ n 1)", "L", False),
    ("n", "(- (* 2 L) 2)", False)])
def test_a_remainder_in_a_product_is_small(index_: str, extent: str, inside: bool) -> None:
    """L is N / 2 of an even number, and all N of an odd one: as a polynomial it has N², which may overflow."""
    (text,) = read(f"(loop P (buffer Y f32 ({extent}) (0) out) (size N) (kernel k (for n 0 L 1 serial (setf (aref Y {index_}) 0.0))))".replace(
        "L", "(+ (floordiv N 2) (* (mod N 2) (- N (floordiv N 2))))"))
    program = resolve(text)
    if inside:
        verify(program)
    else:
        with pytest.raises(CatenError, match="E483"):
            verify(program)


@pytest.mark.parametrize(("lo", "hi", "shown"), [
    ("(mod 3 (max 1 N))", "N", "(<= (mod 3 N) i)"), ("0", "(mod K (max N 1))", "(< i (mod K N))"),
    ("(floordiv K (max N 1))", "N", "(<= (floordiv K N) i)")])
def test_maxima_in_the_bounds_of_a_loop_are_decided_inside(lo: str, hi: str, shown: str) -> None:
    """In its statements, which are simplified, max(N, 1) is N."""
    text = (f"(loop P (size N) (size K) (buffer Y f32 (N) (0) inout) (kernel k (for j 0 N 1 serial "
            f"(for i {lo} {hi} 1 serial (if {shown} ((setf (aref Y j) 1.0)))))))")
    program = resolve(read(text)[0])
    assert isinstance(program, LoopProgram)
    context = Context.of(program)
    for loop in loops_in(program):
        context = context.inside(loop)
    (asked,) = loop.body
    assert isinstance(asked, If)
    assert context.proves(asked.cond)


@pytest.mark.parametrize("quotient", ["(floordiv M (max 1 N))", "(mod M (max 1 N))"])
def test_maxima_in_what_is_known_are_decided_inside_a_loop(quotient: str) -> None:
    """A split loop has them in its statements and no longer in its bounds."""
    simple = quotient.replace("(max 1 N)", "N")
    program = resolve(read(f"(loop P (size M) (size N) (size K) (buffer Y f32 (K) (0) inout) (ensure 1 (= (+ {quotient} N) K)) (check 1 \"fits\") "
                           f"(kernel k (for i 0 (floordiv N 8) 1 serial (setf (aref Y (- (+ (* 8 i) {quotient}) {simple})) 1.0))))")[0])
    verify(program)


@pytest.mark.parametrize("factor", ["M", "(min N M)", "(floordiv N 3)"])
def test_a_product_that_is_compared_with_a_number_does_not_wrap(factor: str) -> None:
    """The rows of a second array behind those of a first one: k - a · N, where a · N and a · M are at most 2^40."""
    first, second = f"(* {factor} N)", f"(* {factor} M)"
    (text,) = read(f"(loop P (size N) (size M) (ensure 1 (and (<= 0 N) (<= N 1099511627776))) (ensure 2 (and (< 0 M) (<= M 1099511627776)))"
                   f"(check 1 \"N\") (check 2 \"M\") (ensure 3 (<= {first} 1099511627776)) (check 3 \"\") (ensure 4 (<= {second} 1099511627776)) (check 4 \"\")"
                   f"(buffer X f32 ({factor} M) (0 1) in) (buffer Y f32 ((+ {first} {second})) (0) out)"
                   f"(kernel k (for k {first} (+ {first} {second}) 1 serial (setf (aref Y k) (aref X (floordiv (- k {first}) M) (mod (- k {first}) M))))))")
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    verify(program)


@pytest.mark.parametrize(("known", "hi", "shown"), [
    ("(require (> k 0))", "(floordiv (- (+ (* m n) k) 1) (* 2 k))", Op("lt", (index(0), Var("n", "i64")))),       # slices with steps of sizes
    ("(require (> k 0))", "(+ (floordiv (- (* m n) 1) k) 1)", Op("lt", (index(0), Var("m", "i64")))),
    ("(require (> k 0))", "(+ (floordiv (- (max (- (* m n) 2) 0) 1) k) 1)", Op("lt", (index(0), Var("m", "i64")))),
    ("(require (> k 0)) (require (= (floordiv (+ (* m n) 2) 3) q))", "q", Op("lt", (index(0), Var("n", "i64")))),
    ("(require (> k 0)) (require (<= k (* m n)))", "k", Op("lt", (index(0), Var("n", "i64")))),
    ("(require (> k 0)) (require (= (+ (floordiv -2 k) 2) q))", "q", Op("eq", (Var("i", "i64"), index(0)))),
    ("(require (> m 0))", "(+ (floordiv (- (max (- n 3) 0) 1) m) 1)", Op("le", (Var("m", "i64") * Var("i", "i64"), Var("m", "i64") * Op("floordiv", (Var("n", "i64") - index(4), Var("m", "i64")))))),
])
def test_what_the_iterations_of_a_slice_show(known: str, hi: str, shown: Op) -> None:
    """Where a loop has iterations, no factor of what its length divides is 0, and a maximum in its bound is decided."""
    program = resolve(read(f"(loop P (size m) (size n) (size k) (size q) (buffer A f32 (m n) (0 1) inout) {known} (kernel f (for i 0 {hi} 1 serial (fail 1))))")[0])
    context = Context.of(program)
    assert not context.proves(shown) or "(<= k (* m n))" in known
    assert context.inside(loops_in(program)[0]).proves(shown)


ASSUMED = """(loop P (size N) (buffer I i32 (N) (0) {}) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) inout)
  (kernel k (assume (address I read) {} N) (for i 0 N 1 serial {} (setf (aref Y i) (aref X {})))))"""


@pytest.mark.parametrize(("access", "least", "before", "at", "holds"), [
    ("in", "0", "", "(cast i64 (aref I i))", True), ("in", "0", "", "(cast i64 (aref I (- N (+ i 1))))", True),
    ("in", "(neg N)", "", "(cast i64 (aref I i))", False), ("in", "0", "", "(+ (cast i64 (aref I i)) 1)", False),
    ("in", "(neg N)", "", "(where (< (cast i64 (aref I i)) 0) (+ (cast i64 (aref I i)) N) (cast i64 (aref I i)))", True),
    ("in", "0", "(let k i64 (- (- N 1) (cast i64 (aref I i))))", "k", True),
    ("inout", "0", "(setf (aref I i) (cast i32 i))", "(cast i64 (aref I i))", False)])            # written by the loop
def test_what_is_assumed_of_the_elements_of_an_array_holds_until_it_is_written(access: str, least: str, before: str, at: str, holds: bool) -> None:
    (text,) = read(ASSUMED.format(access, least, before, at))
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    if holds:
        verify(program)
        return
    with pytest.raises(CatenError, match="E483"):
        verify(program)


@pytest.mark.parametrize("array", ["(address X read)", "(address I write)", "(address J read)"])
def test_only_of_indices_something_is_assumed(array: str) -> None:
    (text,) = read(ASSUMED.format("in", "0", "", "i").replace("(address I read)", array))
    program = resolve(text)
    assert isinstance(program, LoopProgram)
    with pytest.raises(CatenError, match="E48"):
        verify(program)


def test_the_interpreter_looks_at_what_is_assumed() -> None:
    (text,) = read(ASSUMED.format("in", "0", "", "(cast i64 (aref I i))"))
    program = resolve(text)
    given = {"N": 3, "X": np.arange(3, dtype=np.float32), "Y": np.zeros(3, np.float32)}
    assert run(program, {**given, "I": np.array([2, 0, 1], np.int32)}) == 0
    with pytest.raises(CatenError, match="an element of 'I' is outside"):
        run(program, {**given, "I": np.array([2, 0, 3], np.int32)})
