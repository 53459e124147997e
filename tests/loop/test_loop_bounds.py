"""What becomes of an access: nothing, an error, a condition at entry, or a guard in the body."""
from __future__ import annotations

import re
from functools import reduce

import pytest

from caten.core.expr import Const, Expr, Op
from caten.core.node import substitute
from caten.core.program import Check, Ensure, resolve
from caten.core.text import flat, form_of, read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.loop.bounds_checks import add_checks
from caten.loop.statements import Aref
from caten.loop.verifier import verify

PARAMS = "(size M) (size N) (size K) (buffer A f32 (M K) (0 1) in) (buffer X f32 (N) (0) inout) (buffer I i32 (N) (0) in)"


def program(body: str, params: str = PARAMS, facts: str = "") -> OpProgram:
    return resolve(read(f'(op t (source "specs/t.toml") {params} {facts} (body {body}))')[0])   # type: ignore[no-any-return]


def index_checks(checked: OpProgram) -> list[str]:
    """The conditions about indices, as `text: condition`."""
    conditions = {e.row: flat(form_of(e.cond)) for e in checked.all(Ensure)}
    return [f"{c.text}: {conditions.get(c.row, 'in the body')}" for c in checked.all(Check) if "index" in c.text or "step" in c.text]


def test_an_access_that_never_runs_is_none() -> None:
    body = "(for i 0 1 1 serial (for j 0 N 1 serial (setf (aref X j) (where (< j i) (aref X (aref I j)) 0.0))))"
    assert index_checks(add_checks(program(body))) == []


def test_what_runs_at_no_size_is_not_refused() -> None:
    """The other rows of one matrix: N·N = N has N = 0 and 1."""
    body = "(for k 0 N 1 serial (for i (+ k 1) N 1 serial (setf (aref X (cast i64 (aref I i))) 0.0)))"
    add_checks(program(body, facts="(require (= (* N N) N))"))


@pytest.mark.parametrize(("body", "cond"), [
    ("(for i 0 256 1 serial (setf (aref X i) 0.0))", "(<= 256 N)"),
    ("(for i 0 M 1 serial (setf (aref X i) 0.0))", "(<= M N)"),
    ("(for i 0 M 1 serial (for p 0 K 1 serial (setf (aref X i) (aref A i p))))", "(or (<= K 0) (<= M N))"),
    ("(for i 0 M 1 serial (setf (aref X (+ i 3)) 0.0))", "(or (<= M 0) (<= (+ M 3) N))"),
    ("(for i 0 N 2 serial (setf (aref X (+ i 1)) 0.0))", "(<= (* 2 (floordiv (+ N 1) 2)) N)"),
    ("(for i (- M 1) -1 -1 serial (setf (aref X i) 0.0))", "(<= M N)"),
    ("(for i 0 M 1 serial (for j 0 i 1 serial (setf (aref X j) 0.0)))", "(<= M (+ N 1))"),
    ("(for i 0 M 1 serial (for j 0 K 1 serial (setf (aref X (+ (* i K) j)) 0.0)))", "(<= (* K M) N)"),
    ("(local c i64 () register) (setf (aref c) 0) (for i 0 M 1 serial (setf (aref X (aref c)) 0.0) (incf (aref c) 1))", "(<= M N)"),
    ("(setf (aref X 0) 1.0)", "(< 0 N)"),
    ("(for i 0 N M serial (setf (aref X i) 0.0))", "(/= M 0)"),
])
def test_affine_accesses_are_checked_at_entry(body: str, cond: str) -> None:
    checked = add_checks(program(body))
    verify(checked)
    assert [c.rsplit(": ", 1)[1] for c in index_checks(checked)] == [cond]
    assert "fail" not in show(checked)


@pytest.mark.parametrize(("body", "checked_body"), [
    ("(for i 0 N 1 serial (setf (aref X (cast i64 (aref I i))) 0.0))",
     "(body (for i 0 N 1 serial (let ix i64 (cast i64 (aref I i))) (if (not (and (<= 0 ix) (< ix N))) ((fail 5))) (setf (aref X ix) 0.0)))"),
    ("(for i 0 N 1 serial (for p 0 K 1 serial (incf (aref X (cast i64 (aref I i))) 1.0)))",
     "(body (for i 0 N 1 serial (let ix i64 (cast i64 (aref I i))) (if (not (and (or (<= K 0) (<= 0 ix)) (or (<= K 0) (< ix N)))) ((fail 5)))"
     " (for p 0 K 1 serial (incf (aref X ix) 1.0))))"),
    ("(for i 0 M 1 serial (if (< i 5) ((setf (aref X i) 0.0))))",
     "(body (for i 0 M 1 serial (if (< i 5) ((if (not (< i N)) ((fail 5))) (setf (aref X i) 0.0)))))"),
    ("(for i 0 N 1 serial (setf (aref X i) (where (< i M) (aref X (cast i64 (aref I i))) 0.0)))",
     "(body (for i 0 N 1 serial (let ix i64 (where (< i M) (cast i64 (aref I i)) 0)) (if (not (or (not (< i M)) (and (<= 0 ix) (< ix N)))) ((fail 5)))"
     " (setf (aref X i) (where (< i M) (aref X ix) 0.0))))"),
    ("(for i 0 M 1 serial (for j i K 1 serial (setf (aref X (+ j i)) 0.0)))",
     "(body (for i 0 M 1 serial (if (not (or (<= K i) (<= (+ K i) N))) ((fail 5))) (for j i K 1 serial (setf (aref X (+ j i)) 0.0))))"),
])
def test_other_accesses_are_checked_where_they_run(body: str, checked_body: str) -> None:
    checked = add_checks(program(body))
    verify(checked)
    assert flat(form_of(checked.clauses[-1])) == checked_body
    assert [c.rsplit(": ", 1)[1] for c in index_checks(checked)] == ["in the body"]


@pytest.mark.parametrize(("body", "checked_body"), [
    ("(setf (aref X (aref c)) 0.0) (for p 0 K 1 serial (if (< p 3) ((incf (aref X (aref c)) 1.0))))",
     "(let ix i64 (aref c)) (if (not (and (<= 0 ix) (< ix N))) ((fail 6))) (setf (aref X ix) 0.0) (for p 0 K 1 serial (if (< p 3) ((incf (aref X ix) 1.0))))"),
    ("(for i 0 (aref c) 1 serial (incf (aref X (+ i (aref c))) 1.0))",
     "(let ix i64 (aref c)) (if (not (<= (+ (cast i64 (aref I 0)) ix) N)) ((fail 6))) (for i 0 ix 1 serial (incf (aref X (+ i ix)) 1.0))"),
    ("(setf (aref X (aref c)) 0.0) (incf (aref c) 1) (setf (aref X (aref c)) 1.0)",
     "(let ix i64 (aref c)) (if (not (and (<= 0 ix) (< ix N))) ((fail 6))) (setf (aref X ix) 0.0) (incf (aref c) 1)"
     " (let ix_2 i64 (aref c)) (if (not (< ix_2 N)) ((fail 7))) (setf (aref X ix_2) 1.0)"),
    ("(setf (aref X (aref c)) 0.0) (for p 0 K 1 serial (incf (aref X (aref c)) 1.0) (incf (aref c) 1))",
     "(let ix i64 (aref c)) (if (not (and (<= 0 ix) (< ix N))) ((fail 6))) (setf (aref X ix) 0.0)"
     " (for p 0 K 1 serial (let ix_2 i64 (aref c)) (if (not (and (<= 0 ix_2) (< ix_2 N))) ((fail 7))) (incf (aref X ix_2) 1.0) (incf (aref c) 1))"),
    ("(if (< M 4) ((setf (aref X (aref c)) 0.0))) (setf (aref X (aref c)) 1.0)",
     "(if (< M 4) ((let ix i64 (aref c)) (if (not (and (<= 0 ix) (< ix N))) ((fail 6))) (setf (aref X ix) 0.0)))"
     " (let ix_2 i64 (aref c)) (if (not (and (<= 0 ix_2) (< ix_2 N))) ((fail 7))) (setf (aref X ix_2) 1.0)"),
], ids=["in a loop and a condition", "the end of a loop", "written between", "written in the loop", "in one branch"])
def test_a_loaded_index_has_one_name_and_one_check_until_it_may_change(body: str, checked_body: str) -> None:
    checked = add_checks(program("(local c i64 () register) (setf (aref c) (cast i64 (aref I 0))) " + body))
    verify(checked)
    assert flat(form_of(checked.clauses[-1])).removeprefix("(body (local c i64 () register) (setf (aref c) (cast i64 (aref I 0))) ")[:-1] == checked_body


def test_what_is_proven_gets_no_check() -> None:
    body = "(for i 0 M 1 serial (for p 0 K 1 serial (if (< i N) ((incf (aref X i) (aref A i p))))))"
    checked = add_checks(program(body))
    assert not index_checks(checked)
    assert checked.body == program(body).body


@pytest.mark.parametrize(("body", "message"), [
    ("(for i 0 N 1 serial (setf (aref X (+ i 1)) 0.0))", "(aref X (+ i 1)): index 1 (= (+ i 1)) reaches N, outside [0, N)"),
    ("(for i 0 N 1 serial (setf (aref X (- i 1)) 0.0))", "(aref X (- i 1)): index 1 (= (- i 1)) reaches -1, outside [0, N)"),
    ("(for i 0 N 1 serial (if (< (aref X i) 0.0) ((setf (aref X (+ i N)) 0.0))))",
     "(aref X (+ i N)): index 1 (= (+ i N)) is outside [0, N) whenever it runs"),
])
def test_what_is_outside_at_every_size_is_refused_at_its_place(body: str, message: str) -> None:
    access = message.split(": ")[0]
    with pytest.raises(CatenError) as refused:
        add_checks(program(body, facts=f'(at 7 12 "{access}")'))
    found = refused.value.diagnostics[0]
    assert (found.code, found.message) == ("E400", message)
    assert found.place is not None
    assert (found.place.file, found.place.line, found.place.column) == ("specs/t.toml", 7, 12)


def test_a_check_names_its_place() -> None:
    checked = add_checks(program("(for i 0 M 1 serial (setf (aref X i) 0.0))", facts='(at 8 17 "(aref X i)")'))
    assert index_checks(checked) == ["t.toml:8:17: (aref X i): index 1 (= i) is outside [0, N): (<= M N)"]


def test_a_literal_step_of_0_and_contradicting_sizes_are_refused() -> None:
    with pytest.raises(CatenError, match="E401: the step of the loop over i is 0"):
        add_checks(program("(for i 0 N 0 serial (setf (aref X i) 0.0))"))
    with pytest.raises(CatenError, match=r"E402: every call would fail: the condition \(< N 50\) does not hold"):
        add_checks(program("", facts="(bind N 100) (require (< N 50))"))


def test_entry_conditions_come_in_a_fixed_order_and_only_where_needed() -> None:
    params = "(size M) (size N) (scalar s i64) (scalar t i32) (buffer A f32 (M N) (0 1) in) (buffer X f32 ((- M N)) (0) inout)"
    checked = add_checks(program("(for i 0 (- M N) s serial (setf (aref X i) (cast f32 t)))", params, "(bind N 3) (require (> M 7))"))
    assert [flat(form_of(e)) for e in checked.all(Ensure)] == [
        "(ensure 1 (and (<= 0 M) (<= M 1099511627776)))",
        "(ensure 2 (= N 3))",
        "(ensure 3 (and (<= -2147483648 s) (<= s 2147483647)))",
        "(ensure 4 (> M 7))",
        "(ensure 5 (/= s 0))",
    ]


def test_products_are_compared_without_overflow() -> None:
    params = "(size M) (size N) (size K) (buffer X f64 (M N K) (0 1 2) inout)"
    checked = add_checks(program("", params))
    assert flat(form_of(checked.all(Ensure)[-1])) == (
        "(ensure 4 (<= K (floordiv (floordiv 576460752303423488 (max M 1)) (max N 1))))")


def test_unchecked_programs_keep_what_is_not_about_indices() -> None:
    checked = add_checks(program("(for i 0 M 1 serial (setf (aref X (cast i64 (aref I i))) 0.0))", facts="(unchecked)"))
    assert not index_checks(checked)
    assert "fail" not in show(checked)
    assert len(checked.all(Ensure)) == 4


def test_adding_checks_is_deterministic_and_survives_text() -> None:
    body = "(for i 0 M 1 serial (setf (aref X (cast i64 (aref I i))) 0.0))"
    checked = add_checks(program(body))
    assert checked is add_checks(program(body))
    assert resolve(read(show(checked))[0]) is checked


@pytest.mark.parametrize("loops", ["(for p 0 (* (* a b) c) 1 serial {})", "(for p 0 (* a (* b c)) 1 serial {})"])
def test_an_array_of_three_axes_as_one_row(loops: str) -> None:
    """Quotients of quotients, below products of three sizes, of which two alone might wrap where the third is 0."""
    verified(loops.format("(incf (aref Y) (aref V (floordiv (floordiv p c) b) (mod (floordiv p c) b) (mod p c)))"))


@pytest.mark.parametrize("loops", ["(for o 0 (* a b) 1 serial (for p 0 c 1 serial {}))", "(for p 0 c 1 serial (for o 0 (* a b) 1 serial {}))"])
def test_rows_of_three_axes(loops: str) -> None:
    """That a · b does not wrap is known inside of a loop over c alone."""
    verified(loops.format("(incf (aref Y) (aref V (floordiv o b) (mod o b) p))"))
    with pytest.raises(CatenError, match="E483"):
        verified(loops.format("(incf (aref Y) (aref V (floordiv o b) (+ (mod o b) 1) p))"))


def verified(body: str) -> None:
    sizes = " ".join([f"(size {n}) (ensure {k} (and (<= 0 {n}) (<= {n} 1099511627776))) (check {k} \"{n}\")" for k, n in enumerate("abc", 1)])
    verify(resolve(read(f"""(loop P (buffer V f32 (a b c) (0 1 2) in) (buffer Y f32 () () inout) {sizes}
      (ensure 4 (<= c (floordiv (floordiv 1152921504606846976 (max a 1)) (max b 1)))) (check 4 "large") (kernel k {body}))""")[0]))


@pytest.mark.parametrize("least", [0, 1, 4])
def test_rows_of_an_array_of_three_axes_are_inside_of_it_as_one_row(least: int) -> None:
    """A · B may wrap where C is 0; in a loop over C it does not, nor does the index of a row times C."""
    (program,) = [resolve(p) for p in read(f"""(loop G (buffer X f64 (A B C) (0 1 2) in) (buffer Y f64 ((* (* A B) C)) (0) out) (size A) (size B) (size C)
      (ensure 1 (<= {least} C)) (check 1 "C is small")
      (kernel g (for i 0 (* A B) 1 serial (for k 0 C 1 serial (setf (aref Y (+ (* i C) k)) (aref X (floordiv i B) (mod i B) k))))))""")]
    verify(program)
    beyond = resolve(read(show(program).replace("(for i 0 (* A B) 1", "(for i 0 (+ (* A B) 1) 1"))[0])
    with pytest.raises(CatenError, match="E483"):
        verify(beyond)


@pytest.mark.parametrize("axes", [3, 4, 5])
def test_rows_of_an_array_of_many_axes_are_inside_of_it_as_one_row(axes: int) -> None:
    """What the loop over rows ends at is a product of all sizes but the last."""
    names = "ABCDE"[:axes]
    rows = reduce(lambda a, b: f"(* {a} {b})", names[:-1])
    last, sizes = names[-1], " ".join([f"(size {n})" for n in names])
    text = f"""(loop G (buffer X f64 ({' '.join(names)}) ({' '.join(map(str, range(axes)))}) in) (buffer Y f64 ((* {rows} {last})) (0) out) {sizes}
      (kernel g (for i 0 {rows} 1 serial (for k 0 {last} 1 serial (setf (aref Y (+ (* i {last}) k)) 0.0:f64)))))"""
    verify(resolve(read(text)[0]))
    for right, wrong in ((f"{last}) k)", f"{last}) (+ k 1))"), (f"for k 0 {last}", f"for k 0 (+ {last} 1)"), (f"(* i {last})", f"(* (+ i 1) {last})")):
        assert right in text
        with pytest.raises(CatenError, match="E483"):
            verify(resolve(read(text.replace(right, wrong))[0]))


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_rows_that_are_read_from_the_last_to_the_first(axes: int) -> None:
    """Four at a time, too: such a loop has iterations only where no size is 0."""
    names = "ABCD"[:axes]
    rows, sizes = reduce(lambda a, b: f"(* {a} {b})", names), " ".join([f"(size {n})" for n in names])
    for split, index in ((f"(for i 0 {rows} 1 serial {{}})", "i"),
                         (f"(for o 0 (floordiv {rows} 4) 1 serial (for p 0 4 1 serial {{}}))", "(+ (* 4 o) p)")):
        rest, places = f"(- (* -1 {index}) 1)", []
        for name in reversed(names[1:]):
            places.append(f"(mod {rest} {name})")
            rest = f"(floordiv {rest} {name})"
        places.append(f"(+ {rest} {names[0]})")
        body = f"(setf (aref Y {index}) (aref X {' '.join(reversed(places))}))"
        text = f"(loop G (buffer X f64 ({' '.join(names)}) ({' '.join(map(str, range(axes)))}) in) (buffer Y f64 ({rows}) (0) out) {sizes} (kernel g {split.format(body)}))"
        verify(resolve(read(text)[0]))
        for wrong in (text.replace(f"(- (* -1 {index}) 1)", f"(* -1 {index})"), text.replace(f"(- (* -1 {index}) 1)", f"(- (* -1 {index}) 2)")):
            assert wrong != text
            with pytest.raises(CatenError, match="E483"):
                verify(resolve(read(wrong)[0]))


@pytest.mark.parametrize("last", ["(setf (vref Y 4 ((- (+ (* i C) C) 4))) (splat 4 0.0:f64))", "(for k (- C 4) C 1 serial (setf (aref Y (+ (* i C) k)) 0.0:f64))"])
def test_the_end_of_a_row_of_known_length_is_inside_of_an_array_as_one_row(last: str) -> None:
    """No loop over C tells that C is not 0, but a condition does, around the rows or inside."""
    row = last.replace("splat 4 0.0:f64", "vref X 4 ((floordiv i B) (mod i B) (- C 4))").replace(" 0.0:f64", " (aref X (floordiv i B) (mod i B) k)")
    for kernel in (f"(if (<= 4 C) ((for i 0 (* A B) 1 serial {last})))", f"(for i 0 (* A B) 1 serial (if (<= 4 C) ({row})))"):
        text = (f"(loop G (buffer X f64 (A B C) (0 1 2) in) (buffer Y f64 ((* (* A B) C)) (0) out) (size A) (size B) (size C) (kernel g {kernel}))")
        verify(resolve(read(text)[0]))
        for wrong in (text.replace("(<= 4 C)", "(<= 3 C)"), text.replace("for i 0 (* A B)", "for i 0 (+ (* A B) 1)")):
            with pytest.raises(CatenError, match="E483"):
                verify(resolve(read(wrong)[0]))


def test_a_product_is_not_0_where_that_is_the_only_way_left() -> None:
    """The sizes of an array that is read as one row at an index that is clamped to it: at least 1 in a loop over indices, if there may be none else."""
    (program,) = [resolve(p) for p in read("""(loop G (buffer X f64 (A B) (0 1) in) (buffer I i64 (N) (0) in) (buffer Y f64 (N) (0) out) (size A) (size B) (size N)
      (ensure 1 (or (<= 1 (* A B)) (<= N 0))) (check 1 "none")
      (kernel g (for i 0 N 1 serial (setf (aref Y i) (aref X (floordiv (min (max (aref I i) 0) (- (* A B) 1)) B) (mod (min (max (aref I i) 0) (- (* A B) 1)) B))))))""")]
    verify(program)
    with pytest.raises(CatenError, match="E483"):
        verify(resolve(read(show(program).replace("(<= N 0)", "(<= N 1)"))[0]))


@pytest.mark.parametrize("loops", ["(for b 0 B 1 serial (for po 0 (floordiv (+ E 7) 8) 1 serial (for pi 0 (min 8 (- E (* 8 po))) 1 serial {})))",
                                   "(for po 0 (floordiv (+ E 7) 8) 1 serial (for pi 0 (min 8 (- E (* 8 po))) 1 serial (for b 0 B 1 serial {})))"])
def test_an_equation_of_whole_arrays_holds_for_their_rows(loops: str) -> None:
    """[B 2 ⌊E / 2⌋] read as rows of E, a block of columns at a time: as many elements as [B E] only if E is even, wherever there is a row."""
    body = loops.format("(setf (aref Y b (+ (* 8 po) pi)) (aref X b (floordiv (+ (* 8 po) pi) (floordiv E 2)) (mod (+ (* 8 po) pi) (floordiv E 2))))")
    (program,) = [resolve(p) for p in read(f"""(loop S (buffer X f32 (B 2 (floordiv E 2)) (0 1 2) in) (buffer Y f32 (B E) (0 1) out) (size B) (size E)
      (ensure 1 (= (* 2 (* B (floordiv E 2))) (* B E))) (check 1 "E is odd") (kernel s {body}))""")]
    verify(program)
    beyond = resolve(read(re.sub(r"\(ensure 1 \(=", "(ensure 1 (<=", show(program)))[0])           # holds for odd numbers, too
    with pytest.raises(CatenError, match="E483"):
        verify(beyond)


def test_a_value_that_shares_parts_takes_no_longer_than_its_parts() -> None:
    """x below 0 in twenty conditions, each of what the one before gives: 3^20 ways to the one element that is read."""
    def reading(extent: str, conditions: int) -> OpProgram:
        (program,) = [resolve(p) for p in read(f"""(loop D (buffer X f32 ({extent}) (0) in) (buffer Y f32 (N) (0) out) (size N)
          (kernel d (for i 0 N 1 serial (setf (aref Y i) (aref X i)))))""")]
        value = next(n for n in program.unique() if isinstance(n, Aref) and n.buffer == "X")
        made: Expr = value
        for _ in range(conditions):
            made = Op("where", (made < Const(0.0, "f32"), made * made, made + made))
        return substitute(program, {value: made})
    verify(reading("N", 20))
    with pytest.raises(CatenError, match="E483"):
        verify(reading("(- N 1)", 20))


@pytest.mark.parametrize(("extent", "least", "right"), [("N", 0, True), ("(* A B)", 0, True), ("(* A B)", -1, False)])
def test_an_index_from_the_end_of_an_array_as_one_row(extent: str, least: int, right: bool) -> None:
    """As in a search in an array of two axes: what is below the number of its elements and may be negative does not overflow when that is added."""
    ix = f"(where (< ix 0) (+ ix {extent}) ix)"
    text = f"""(loop S (buffer X f64 (A B) (0 1) in) (buffer V f64 ({extent}) (0) inout) (buffer L i64 () () in) (size A) (size B) (size N) (ensure 1 (<= {extent} 1099511627776)) (check 1 "large")
      (check 2 "outside") (kernel s (if (< (aref L) {extent}) ((let ix i64 (aref L)) (if (not (<= {least} {ix})) ((fail 2))) (setf (aref V {ix}) 0.0:f64)))))"""
    program = resolve(read(text)[0])
    if right:
        verify(program)
    else:
        with pytest.raises(CatenError, match="E483"):
            verify(program)


def test_a_product_that_an_equation_bounds_fits_also_among_many_facts() -> None:
    """⌊H / G⌋·i is below H, so it does not wrap; beside what the blocks of rows and vectors of a head say."""
    text = """(loop P (buffer Q f32 (H T D) (0 1 2) in) (buffer K f32 (G S D) (0 1 2) in) (buffer Y f32 (G (floordiv H G) T D) (0 1 2 3) inout)
        (buffer A f32 (D H) (0 1) in) (buffer B f32 ((floordiv H G) D) (0 1) in) (buffer C f32 ((floordiv H G) D G) (0 1 2) in)
        (size H) (size T) (size D) (size G) (size S) (ensure 1 (= (* (* D H) T) (* (* (* (floordiv H G) D) G) T)))
        (check 1 "the numbers of elements differ")
        (kernel k (if (and (<= 8 D) (and (<= 1 S) (<= S 1))) ((for i 0 G 1 serial (for j 0 T 1 serial (for b 0 (floordiv (+ (floordiv H G) 95) 96) 1 serial
          (for k (* 8 (floordiv (min 96 (- (floordiv H G) (* 96 b))) 8)) (min 96 (- (floordiv H G) (* 96 b))) 1 serial (if (< (* 32 (floordiv D 32)) D)
            ((for p 0 (- (floordiv (+ D 7) 8) (* 4 (floordiv D 32))) 1 serial (for l 0 8 1 serial (if (< (+ (+ (* 32 (floordiv D 32)) (* 8 p)) l) D)
              ((setf (aref Y i (+ (* 96 b) k) j (+ (+ (* 32 (floordiv D 32)) (* 8 p)) l))
                 (aref Q (+ (+ (* (floordiv H G) i) (* 96 b)) k) j (+ (+ (* 32 (floordiv D 32)) (* 8 p)) l)))))))))))))))))"""
    verify(resolve(read(text)[0]))
    with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
        verify(resolve(read(text.replace("(aref Q (+ (+ (* (floordiv H G) i)", "(aref Q (+ (+ (* (floordiv H G) (+ 1 i))"))[0]))


BLOCKS_OF_WINDOWS = """(loop P (buffer X f32 (H W) (0 1) in) (buffer Y f32 () () inout) (size H) (size W)
    (ensure 1 (= H (* 16 (floordiv H 16)))) (check 1 "H") (ensure 2 (= W (* 16 (floordiv W 16)))) (check 2 "W")
    (kernel k (for b 0 (floordiv (+ (* (floordiv H 16) (floordiv W 16)) 251) 252) 1 serial {loops})))"""
MOST = "(min (- (* (floordiv H 16) (floordiv W 16)) (* 252 b)) 252)"


@pytest.mark.parametrize(("loops", "j"), [
    (f"(for i 0 {MOST} 1 serial {{body}})", "(+ (* 252 b) i)"),
    (f"(for t 0 (floordiv (+ {MOST} 5) 6) 1 serial (if (<= (+ (+ (* 252 b) (* 6 t)) 6) (* (floordiv H 16) (floordiv W 16))) ((for i 0 6 1 serial {{body}}))))",
     "(+ (+ (* 252 b) (* 6 t)) i)")])
def test_windows_of_an_image_in_blocks_of_a_product(loops: str, j: str) -> None:
    """The number of a window, of as many as fit, divided by those of a line: below the number of lines of windows."""
    body = f"(for p 0 256 1 serial (incf (aref Y) (aref X (+ (* 16 (floordiv {j} (floordiv W 16))) (floordiv p 16)) (+ (* 16 (mod {j} (floordiv W 16))) (mod p 16)))))"
    text = BLOCKS_OF_WINDOWS.format(loops=loops.format(body=body))
    verify(resolve(read(text)[0]))
    with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
        verify(resolve(read(text.replace(f"(floordiv {j}", f"(floordiv (+ 1 {j})"))[0]))


@pytest.mark.parametrize("loop", ["(for t 0 (- (floordiv (+ (* D H) 7) 8) (floordiv (* D H) 8)) 1 serial {0})",
                                  "(for i (* 8 (floordiv (* D H) 8)) (* D H) 1 serial {1})", "(for t 0 (floordiv (* D H) 8) 1 serial {0})"])
def test_a_check_holds_in_the_tail_of_rows_that_exist(loop: str) -> None:
    """That there is a row, on which the check depends, also follows from what tiles leave of it."""
    store = "(setf (aref K p i) 0.0)"
    tile = f"(for v 0 8 1 serial (let i i64 (+ (* 8 (floordiv (* D H) 8)) v)) (if (< i (* D H)) ({store})))"
    text = f"""(loop P (buffer K f32 (T (* D H)) (0 1) inout) (buffer k f32 (D H) (0 1) in) (size T) (size D) (size H) (scalar p i64)
        (ensure 1 (and (or (<= H 0) (or (<= D 0) (<= 0 p))) (or (<= H 0) (or (<= D 0) (< p T))))) (check 1 "p is outside")
        (ensure 2 (and (<= -2147483648 p) (<= p 2147483647))) (check 2 "p is large") (kernel k {loop.format(tile, store)}))"""
    verify(resolve(read(text)[0]))
    with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
        verify(resolve(read(text.replace("(setf (aref K p", "(setf (aref K (+ p 1)"))[0]))


def _reads_a_row(loops: str, index: str) -> None:
    """Verify a kernel that reads x, an array of one axis of at least a·b·c elements, at this index."""
    verify(resolve(read(f"""(loop P (buffer x f32 (n) (0) in) (buffer y f32 () () inout)
      (buffer w f32 (a b c) (0 1 2) in) (buffer bc f32 (b c) (0 1) in) (buffer ab f32 (a b) (0 1) in)
      (size a) (size b) (size c) (size n) (size m)
      (ensure 1 (= n (+ (* (* a b) c) m))) (check 1 "n is not the number of elements")
      (ensure 3 (<= (* (* a b) c) 1099511627776)) (check 3 "large")
      (ensure 2 (and (<= 1 a) (<= 1 b))) (check 2 "empty")
      (kernel k {loops.format(f"(incf (aref y) (aref x {index}))")}))""")[0]))


@pytest.mark.parametrize(("loops", "r"), [
    ("(for r 0 (* a b) 1 serial (for p 0 c 1 serial {0}))", "r"),
    ("(for t 0 (floordiv (* a b) 8) 1 serial (for v 0 8 1 serial (for p 0 c 1 serial {0})))", "(+ (* 8 t) v)")])
def test_a_quotient_and_its_remainder_are_the_dividend(loops: str, r: str) -> None:
    """⌊r / b⌋·b·c + (r mod b)·c is r·c."""
    _reads_a_row(loops, f"(+ (+ (* (* (floordiv {r} b) b) c) (* (mod {r} b) c)) p)")
    for wrong in (f"(+ (+ (* (* (floordiv {r} b) b) c) (* (mod {r} b) b)) p)",
                  f"(+ (+ (* (* (floordiv {r} b) c) c) (* (mod {r} b) c)) p)",
                  f"(+ 1 (+ (+ (* (* (floordiv {r} b) b) c) (* (mod {r} b) c)) (+ p m)))"):
        with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
            _reads_a_row(loops, wrong)


def test_tiles_of_three_axes_that_lie_in_one_row() -> None:
    """Blocks of blocks on each axis, with what is left of the last: the row's length is known by a sum of products."""
    loops = """(for io 0 (floordiv a 256) 1 serial (for ii 0 64 1 serial (for it 0 4 1 serial
      (for jo 0 (floordiv b 8) 1 serial (for ji 0 8 1 serial
      (for ko 0 (floordiv (+ c 4095) 4096) 1 serial
      (for ki 0 (floordiv (min (- c (* 4096 ko)) 4096) 8) 1 serial (for kv 0 8 1 serial {0}))))))))"""
    index = ("(+ (+ (+ (+ (+ (+ (+ (* (* ii b) c) (* 64 (* (* it b) c))) (* 256 (* (* io b) c))) (* ji c)) "
             "(* 8 (* jo c))) (* 4096 ko)) (* 8 ki)) {0})")
    _reads_a_row(loops, index.format("kv"))
    with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
        _reads_a_row(loops, index.format("(+ kv (+ m 1))"))
    with pytest.raises(CatenError, match="index 1 is not shown to be inside"):
        _reads_a_row(loops, index.replace("(* 64 (*", "(* 65 (*").format("kv"))


@pytest.mark.parametrize("index", ["{0}", "(where (< {0} 0) (+ {0} N) {0})"])
def test_an_index_made_of_floats_is_the_one_in_its_condition_whichever_way_round(index: str) -> None:
    """Gradients of `roi_align`, also of bfloat16: passes had ordered the operands in the condition alone."""
    asked, used = [index.format(f"(cast i64 (cast bf16 (floor {product})))") for product in ("(* (aref u m) (+ x 0.5))", "(* (+ 0.5 x) (aref u m))")]
    verify(resolve(read(f"(loop t (size M) (size N) (scalar x f32) (buffer u f32 (M) (0) in) (buffer X f32 (N) (0) inout)"
                        f"(kernel t (for m 0 M 1 serial (if (where (<= 0 {asked}) (< {asked} N) false) ((setf (aref X {used}) 0.0))))))")[0]))


def test_the_last_vector_is_inside_of_a_row_that_only_a_product_shows_to_be_longer() -> None:
    """The lanes were carried along in a proof that found K + 8 >= 16 alone."""
    verify(resolve(read("""(loop t (size K) (buffer X u8 (16 (+ K 8)) (0 1) inout)
      (kernel t (if (and (<= (+ K 8) 262144) (<= (+ K 8) (floordiv (* K K) 32)))
        ((for part 0 16 1 serial (if (< (* 16 (floordiv (+ K 8) 16)) (+ K 8)) ((setf (vref X 16 (part (- K 8))) (splat 16 0:u8)))))))))""")[0]))


def test_the_end_of_a_fused_loop_is_a_product_where_a_condition_inside_shows_that_it_does_not_wrap() -> None:
    """`pad` around a loop of a tile's rows times N: where the loop begins, the rows may be fewer than none."""
    verify(resolve(read("""(loop t (size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer w f32 (M) (0) inout)
      (kernel t (for i 0 (* 8 (floordiv (+ (floordiv (floordiv (+ M 7) 8) 3) 7) 8)) 1 serial (for k 0 3 1 serial
        (for jn 0 (* (min (- (- M (* 24 i)) (* 8 k)) 8) N) 1 serial (if (< i (floordiv (floordiv (+ M 7) 8) 3))
          ((incf (aref w (+ (+ (* 24 i) (* 8 k)) (floordiv jn N))) (aref A (+ (+ (* 24 i) (* 8 k)) (floordiv jn N)) (mod jn N))))))))))""")[0]))
