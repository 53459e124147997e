"""The verifier: one program per refusal, and programs that must pass."""
from __future__ import annotations

import pytest

import caten.tensor.values  # noqa: F401        # (read …) is a form of the tensor level
from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.loop.verifier import verify

PARAMS = """(size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer X f32 (N) (0) inout) (buffer I i64 (N) (0) in)
  (buffer F f32 ((* M N)) (0) inout)"""


def program(body: str, params: str = PARAMS):
    return resolve(read(f"(loop t {params} (kernel t {body}))")[0])


@pytest.mark.parametrize("body", [
    "(for i 0 N 1 serial (setf (aref X i) 0.0))",
    "(for i (- N 1) -1 -1 serial (setf (aref X i) 0.0))",
    "(for io 0 N 8 serial (for i io (min (+ io 8) N) 1 serial (setf (aref X i) 0.0)))",
    "(for io 0 (floordiv (+ N 7) 8) 1 serial (for ii 0 8 1 serial (if (< (+ (* 8 io) ii) N) ((setf (aref X (+ (* 8 io) ii)) 0.0)))))",
    "(for i 0 (floordiv N 8) 1 parallel (setf (vref X 8 ((* 8 i))) (splat 8 0.0)))",
    "(for i 0 N 8 parallel (setf (vref X 8 (i) -1 (< (ramp 8 i 1) (splat 8 N))) (splat 8 0.0)))",
    "(for i 0 N 8 serial (setf (vref X 8 (i) -1 (< (ramp 8 i 1) (splat 8 N)))"
    " (where (< (ramp 8 i 1) (splat 8 (- N 1))) (vref X 8 ((+ i 1))) (splat 8 0.0))))",
    "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref F (+ (* i N) j)) (aref A i j))))",
    "(for t 0 (* M N) 1 serial (setf (aref F t) (aref A (floordiv t N) (mod t N))))",
    "(for to 0 (floordiv (* M N) 16) 1 serial (for ti 0 16 1 serial (setf (aref F (+ (* 16 to) ti)) 0.0)))",
    "(for i 0 N 1 serial (setf (aref X i) (where (and (<= 1 i) (< (- i 1) M)) (aref A (- i 1) i) 0.0)))",
    "(for i 0 N 1 serial (let k i64 (aref I i)) (if (not (and (<= 0 k) (< k N))) ((fail 1))) (setf (aref X k) 0.0))",
    "(local T f32 (6 8) stack) (if (and (<= 8 M) (<= 6 N)) ((transpose (vref T 8 (0 0)) 0 (vref A 6 (0 0)) 0)))",
    "(local T f32 (8) stack) (for i 0 8 1 serial (setf (aref T i) 0.0))",
    "(local c i64 () register) (setf (aref c) 0) (for i 0 N 1 serial (setf (aref X (aref c)) 0.0) (incf (aref c) 1))",
    "(for i 0 N 1 serial (if (<= N 0) ((setf (aref X 7) 0.0))))",
])
def test_these_pass(body: str) -> None:
    verify(program(body))


def test_rows_of_a_block_are_contiguous_along_the_last_axis_with_several_elements() -> None:
    """With strides the last axis is the contiguous one, whatever its extent."""
    body = "(local T f32 (6 8) stack) (if (and (<= 8 M) (<= 6 N)) ((transpose (vref T 8 (0 0)) 0 (vref B 6 (0 0 0) 1) 0)))"
    verify(program(body, "(size M) (size N) (buffer B f32 (M N 1) (0 1 2) in)"))
    for buffer in ("(buffer B f32 (M N 1) (0 1 2) in (* 7 N) 7 1)", "(buffer B f32 (M N 2) (0 1 2) in)"):
        with pytest.raises(CatenError, match="its rows are not contiguous"):
            verify(program(body, f"(size M) (size N) {buffer}"))


@pytest.mark.parametrize(("param", "message"), [
    ("(buffer Z f31 (4) (0) in)", "'f31' is no element type"), ("(scalar z one)", "'one' is no element type"),
    ("(buffer Z f32 (4) (0 1) in)", "do not fit the shape"), ("(buffer Z f32 (4 4) (0 0) in)", "do not fit the shape"),
    ("(buffer Z f32 (q) (0) in)", "'q' is not declared"), ("(require (< q 3))", "'q' is not declared"), ("(ensure 1 (read A))", "is not computed from sizes and scalars"), ("(ensure 1 (< q 3))", "'q' is not declared"),
    ("(buffer Z f32 (4) (0) in 1 1)", "do not fit the shape"), ("(buffer Z f32 (4) (0) away)", "'away' is not in, out or inout"),
])
def test_a_parameter_that_is_none_is_refused(param: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        verify(program("", param))


@pytest.mark.parametrize(("code", "message", "body"), [
    ("E480", "the name 'i' is declared twice", "(for i 0 N 1 serial (for i 0 N 1 serial (setf (aref X i) 0.0)))"),
    ("E480", "'i' is not declared before this use", "(setf (aref X i) 0.0)"),
    ("E480", "'k' is not declared before this use, in (incf", "(local S i32 () register) (for i 0 N 1 serial (incf (aref S) k))"),
    ("E480", "'k' is not declared before this use, in (incf", "(local S i64 () register) (setf (aref S) 0) (for i 0 N 1 serial (incf (aref S) k))"),
    ("E480", "'T' is not declared before this use", "(setf (aref T 0) 0.0) (local T f32 (4) stack)"),
    ("E489", "(aref A i): 'A' has 2 axes", "(for i 0 N 1 serial (setf (aref X i) (aref A i)))"),
    ("E482", "a i64 is stored in a f32", "(for i 0 N 1 serial (setf (aref X i) 1))"),
    ("E482", "operands of type f32, i64", "(for i 0 N 1 serial (setf (aref X i) (+ (aref X i) 1)))"),
    ("E482", "a condition is a i64, not bool", "(if 1 ((setf (aref F 0) 0.0)))"),
    ("E482", "an index is a f32, not i64", "(for i 0 N 1 serial (setf (aref X (aref X i)) 0.0))"),
    ("E482", "a i64 cannot be named as f32", "(let x f32 N)"),
    ("E482", "'sqrt' does not combine two values", "(for i 0 N 1 serial (incf (aref X i) 1.0 sqrt))"),
    ("E483", "(aref X (+ i 1)): index 1 is not shown to be inside [0, N)", "(for i 0 N 1 serial (setf (aref X (+ i 1)) 0.0))"),
    ("E483", "(aref X (- i 1))", "(for i 0 N 1 serial (setf (aref X i) (aref X (- i 1))))"),
    ("E483", "(aref A i i): index 1", "(for i 0 N 1 serial (setf (aref X i) (aref A i i)))"),
    ("E483", "(vref X 8 (i)): index 1", "(for i 0 N 8 serial (setf (vref X 8 (i)) (splat 8 0.0)))"),
    ("E483", "(aref X (aref I i)): index 1", "(for i 0 N 1 serial (setf (aref X (aref I i)) 0.0))"),
    ("E483", "(aref X (aref c)): index 1", "(local c i64 () register) (setf (aref c) 0) (for i 0 N 1 serial (incf (aref c) 1) (setf (aref X (aref c)) 0.0))"),
    ("E484", "'often' is not a mark", "(for i 0 N 1 often (setf (aref X i) 0.0))"),
    ("E484", "the step is 0", "(for i 0 N 0 serial (setf (aref X i) 0.0))"),
    ("E489", "'A' has 2 axes", "(for i 0 N 1 parallel (setf (aref X i) (+ (aref A i) (aref A i i))))"),
    ("E484", "carries a dependence", "(for i 1 N 1 parallel (setf (aref X i) (aref X (- i 1))))"),
    ("E487", "vectors of different lengths", "(for i 0 (floordiv N 8) 1 serial (setf (vref X 8 ((* 8 i))) (+ (splat 8 0.0) (splat 4 1.0))))"),
    ("E487", "do not fold by halves", "(for i 0 N 1 serial (setf (aref X i) (fold add (splat 6 0.0))))"),
    ("E487", "6 lanes have no prefix by 'add'", "(for i 0 N 6 serial (setf (vref X 6 (i)) (prefix add (splat 6 0.0))))"),
    ("E487", "the mask is a bool", "(for i 0 N 8 serial (setf (vref X 8 (i) -1 true) (splat 8 0.0)))"),
    ("E483", "(vref A 4 (0 0)): index 1", "(local T f32 (8 8) stack) (if (<= 4 N) ((transpose (vref T 6 (0 0)) 0 (vref A 4 (0 0)) 0)))"),
    ("E483", "(vref A 4 (0 0)): index 2", "(local T f32 (8 8) stack) (if (<= 6 M) ((transpose (vref T 6 (0 0)) 0 (vref A 4 (0 0)) 0)))"),
    ("E483", "(vref T 8 (0 1)): index 2", "(local S f32 (8 8) stack) (local T f32 (8 8) stack) (transpose (vref T 8 (0 1)) 0 (vref S 4 (0 0)) 0)"),
    ("E482", "a vector of 4 f32 is stored in a vector of 4 i64", "(local S f32 (4 4) stack) (local T i64 (4 4) stack) (transpose (vref T 4 (0 0)) 0 (vref S 4 (0 0)) 0)"),
    ("E487", "'T' is transposed into itself", "(local T f32 (8 8) stack) (transpose (vref T 4 (0 4)) 0 (vref T 4 (4 0)) 0)"),
    ("E487", "rows of 2, 4, 6", "(local S f32 (4 4) stack) (local T f32 (4 4) stack) (transpose (vref T 3 (0 0)) 0 (vref S 4 (0 0)) 0)"),
    ("E487", "its rows are not contiguous", "(local S f32 (4 4) stack) (local T f32 (4 4) stack) (transpose (vref T 4 (0 0) 0) 1 (vref S 4 (0 0)) 0)"),
    ("E487", "follow each other along axis 1", "(local S f32 (4 4) stack) (local T f32 (4 4) stack) (transpose (vref T 4 (0 0)) 0 (vref S 4 (0 0)) 1)"),
    ("E488", "'A' is only read", "(local T f32 (4 4) stack) (if (and (<= 4 M) (<= 4 N)) ((transpose (vref A 4 (0 0)) 0 (vref T 4 (0 0)) 0)))"),
    ("E488", "a vector of 8 f32 is not stored with 'swim'", "(for i 0 (floordiv N 8) 1 serial (setf (vref X 8 ((* 8 i))) (splat 8 0.0) swim))"),
    ("E488", "a f32 is not stored with 'stream'", "(for i 0 N 1 serial (setf (aref X i) 0.0 stream))"),
    ("E488", "is not stored with 'stream'", "(for i 0 N 8 serial (setf (vref X 8 (i) -1 (< (ramp 8 i 1) (splat 8 N))) (splat 8 0.0) stream))"),
    ("E488", "nothing is prefetched in order to 'sell'", "(for i 0 N 1 serial (prefetch (aref X i) sell))"),
    ("E488", "the shape of a local in 'stack' must be constant", "(local T f32 (N) stack)"),
    ("E488", "'A' is only read", "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref A i j) 0.0)))"),
    ("E488", "in 'heap'", "(local T f32 (4) heap)"),
])
def test_these_are_refused(code: str, message: str, body: str) -> None:
    with pytest.raises(CatenError) as refused:
        verify(program(body))
    assert refused.value.diagnostics[0].code == code
    assert message in refused.value.diagnostics[0].message


def test_memory_that_may_have_changed_is_not_trusted() -> None:
    guarded = "(if (not (and (<= 0 (aref I 0)) (< (aref I 0) N))) ((fail 1))) {} (setf (aref X (aref I 0)) 0.0)"
    params = PARAMS.replace("(0) in)\n", "(0) inout)\n") + " (require (> N 0))"
    verify(program(guarded.format(""), params))
    with pytest.raises(CatenError, match="E483"):
        verify(program(guarded.format("(setf (aref I 0) 9)"), params))
    with pytest.raises(CatenError, match="E483"):
        verify(program(guarded.format("(for i 0 N 1 serial (setf (aref I i) 9))"), params))


def test_arithmetic_that_may_wrap_proves_nothing() -> None:
    params = "(scalar a i64) (size N) (buffer X f32 (N) (0) inout)"
    body = "(if (and (<= 0 a) (< (+ a 1) N)) ((setf (aref X a) 0.0)))"
    with pytest.raises(CatenError, match="E483"):                    # a + 1 wraps to the least integer, which is below N
        verify(program(body, params))
    verify(program(body, params + " (ensure 1 (<= a 2147483647))"))


def test_a_check_is_found_again_where_its_index_can_no_longer_wrap() -> None:
    """The check is about a sum that may wrap; the condition of the access bounds a part of it."""
    params = "(size N) (scalar a i64) (scalar b i64) (buffer X f32 (N) (0) inout)" + "".join(
        [f" (ensure {n} (and (<= -2147483648 {x}) (<= {x} 2147483647)))" for n, x in ((1, "a"), (2, "b"))])
    cond, place = "(and (<= 0 (* a N)) (<= (* a N) (- N 1)))", "(+ (* a N) (* b 3))"
    body = f"(setf (aref X 0) (where {cond} (aref X {place}) 0.0))"
    check = f"(if (not (or (not {cond}) (and (<= 0 {place}) (< {place} N)))) ((fail 1)))"
    verify(program(f"(if (< 0 N) ({check} {body}))", params))
    with pytest.raises(CatenError, match="E483"):
        verify(program(f"(if (< 0 N) ({body}))", params))


@pytest.mark.parametrize("row", ["(floordiv (mod f 15) 5)", "(mod (floordiv f 5) 3)"])
def test_the_parts_of_a_fused_index(row: str) -> None:
    """(f / 5 mod 3) · M + 64 o + f / 15 < 3 M: quotients of one number by 5 and by 15 depend on each other."""
    body = ("(for o 0 (floordiv (+ M 63) 64) 1 serial (for f 0 (* 15 (min 64 (- M (* 64 o)))) 1 serial"
            f" (setf (aref X (+ (+ (* {row} M) (* 64 o)) (floordiv f 15))) 0.0)))")
    verify(program(body, "(size M) (buffer X f32 ((* 3 M)) (0) inout)"))
    with pytest.raises(CatenError, match="E483"):
        verify(program(body, "(size M) (buffer X f32 ((- (* 3 M) 1)) (0) inout)"))


def test_a_sum_that_is_compared_with_numbers_does_not_wrap_when_less_is_asked() -> None:
    """Whichever order its parts are in: a size may be subtracted from what is not negative."""
    params = "(size N) (size M) (scalar a i64) (scalar b i64) (buffer X f32 (N) (0) inout)"
    place = "(- (* a y) b)"
    body = "(for y 0 M 1 serial (if (and (> {place} -1) {second}) ((setf (aref X {place}) 0.0))))".replace("{place}", place)
    for second in (f"(< (- {place} N) 0)", "(< (- (- (* a y) N) b) 0)", f"(<= (- {place} N) -1)"):
        verify(program(body.format(second=second), params))
    for second in (f"(< (- {place} N) 1)", f"(< (+ {place} 1) N)", f"(<= (+ 1 (- {place} N)) 0)", f"(< (- (* 2 {place}) N) 0)"):      # all but one may wrap
        with pytest.raises(CatenError, match="E483"):
            verify(program(body.format(second=second), params))
    with pytest.raises(CatenError, match="E483"):
        verify(program(body.replace("> ", "< ").format(second=f"(< (- {place} N) 0)"), params))


TILE = "(floordiv (min (- N (* 2048 o)) 2048) {block})"


@pytest.mark.parametrize(("block", "lanes", "beyond", "extent", "passes"), [
    (8, 8, 0, "N", True), (16, 8, 0, "N", True), (64, 32, 4, "(+ N 4)", True), (64, 32, 5, "(+ N 4)", False), (16, 8, -1, "N", False),
    (16, 8, 3, "(+ (* 3 N) 9)", True), (16, 8, 10, "(+ N 9)", False),
])
def test_the_tail_of_a_tile_is_inside_though_arrays_have_many_sizes(block: int, lanes: int, beyond: int, extent: str, passes: bool) -> None:
    """What is known of products of sizes does not hide what numbers say of the index: its parts are not negative."""
    params = f"(size C) (size H) (size N) (buffer A f32 ((+ C 3) (+ (* 3 C) H) {extent}) (0 1 2) in) (buffer Y f32 (C C N) (0 1 2) inout)"
    start = f"(* {block} {TILE.format(block=block)})"
    at = f"(+ (+ {start} (* {lanes} to)) ti)"
    body = f"""(for x 0 C 1 serial (for y 0 C 1 serial (for o 0 (floordiv (+ N 2047) 2048) 1 serial (for u 0 H 1 serial
      (for to 0 (floordiv (+ (- (min (- N (* 2048 o)) 2048) {start}) {lanes - 1}) {lanes}) 1 serial (for ti 0 {lanes} 1 serial
        (if (< {at} (- N (* 2048 o))) ((if (< {at} 2048)
          ((incf (aref Y x y (+ (* 2048 o) {at})) (aref A 0 y (+ (+ (* 2048 o) {at}) {beyond})))))))))))))"""
    if passes:
        verify(program(body, params))
    else:
        with pytest.raises(CatenError, match="E483"):
            verify(program(body, params))


def test_an_index_after_an_early_start_is_inside_though_the_square_of_a_size_is_known() -> None:
    """The tail of the loop over 1 … N begins at 1 or later, for an outer loop has an iteration: its bounds are far from the index."""
    params = "(size N) (buffer D i8 ((+ N 8) (+ N 8)) (0 1) in) (buffer R i8 ((+ N 8) (+ N 8)) (0 1) inout) (ensure 1 (<= N 4096))"
    start = "(* 32 (floordiv (- N 1) 32))"
    place = f"(+ (+ {start} (* 32 to)) ti)"
    body = f"""(for i 0 N 1 serial (for to 0 (floordiv (+ (- (- N 1) {start}) 31) 32) 1 serial (for ti 0 32 1 serial
      (if (< {place} (- N 1)) ((if (< (cast i64 (aref D (+ {place} 3) (+ i 5))) 1)
        ((setf (aref R (+ {place} 1) 2) (aref R (+ {place} LATER) i)))))))))"""
    verify(program(body.replace("LATER", "5"), params))
    verify(program(body.replace("LATER", "0"), params))
    for outside in ("-1", "10"):
        with pytest.raises(CatenError, match="E483"):
            verify(program(body.replace("LATER", outside), params))


@pytest.mark.parametrize("base", ["(- (- (+ (* 3 (* s y)) (* 8 x)) p) s)", "(+ (* 8 x) (* s (* s y)))", "(- (* s p) (* y (* 8 x)))"])
def test_lanes_under_a_mask_are_inside_though_their_base_may_wrap(base: str) -> None:
    params = "(size M) (size N) (scalar s i64) (scalar p i64) (buffer X f32 (N) (0) inout)"
    lanes = f"(ramp 8 {base} 1)"
    mask = f"(and (<= (splat 8 0) {lanes}) (< {lanes} (splat 8 N)))"
    body = "(for y 0 M 1 serial (for x 0 M 1 serial (setf (vref X 8 ({}) -1 {}) (splat 8 0.0))))"
    verify(program(body.format(base, mask), params))
    with pytest.raises(CatenError, match="E483"):
        verify(program(body.format(f"(+ {base} 1)", mask), params))


def test_unchecked_programs_skip_bounds_alone() -> None:
    verify(program("(for i 0 N 1 serial (setf (aref X (+ i 1)) 0.0))", PARAMS + " (unchecked)"))
    with pytest.raises(CatenError, match="E482"):
        verify(program("(for i 0 N 1 serial (setf (aref X (+ i 1)) 0))", PARAMS + " (unchecked)"))
