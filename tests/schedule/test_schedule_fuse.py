"""Loops whose number of iterations only the arrays inside bound."""
from __future__ import annotations

from schedule_nets import SIZES, assert_same, assert_sound, kernel_text, program

from caten.schedule import script

CUBE = "(size M) (size N) (size K) (scalar x f32) (buffer Y f32 (M N K) (0 1 2) inout) (buffer w f32 (M) (0) inout)"


def test_the_number_of_iterations_is_asked_for_where_only_the_arrays_inside_bound_it() -> None:
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (setf (aref Y i j p) x))))", CUBE)
    after = script.apply(before, [("fuse", "i", "j"), ("parallel", "ij")], verify=True)
    assert kernel_text(after) == """\
(if (<= M (floordiv 4611686018427387904 (max N 1)))
  ((for ij 0 (* M N) 1 parallel
     (for p 0 K 1 serial
       (setf (aref Y (floordiv ij N) (mod ij N) p) x)))))"""
    assert_sound(after)
    assert_same(before, after, SIZES)


MATRIX = "(size M) (size N) (scalar x f32) (buffer w f32 (N) (0) inout) (buffer Y f32 (M N) (0 1) inout)"
SMALL = tuple([(m, n) for m in (0, 1, 2, 5) for n in (0, 1, 3)])


def test_what_is_multiplied_by_a_size_needs_no_bound_of_its_own() -> None:
    before = program("(for i 0 (- M 2) 1 serial (for j 0 N 1 serial (setf (aref Y i j) x)))", MATRIX)
    after = script.apply(before, [("fuse", "i", "j")], verify=True)
    assert kernel_text(after) == """\
(for ij 0 (- (* M N) (* 2 N)) 1 serial
  (setf (aref Y (floordiv ij N) (mod ij N)) x))"""
    assert_same(before, after, SMALL)


def test_of_two_ranges_that_may_both_end_before_they_begin_each_is_bounded() -> None:
    before = program("(for i 0 (- M 2) 1 serial (for j 0 (- N 2) 1 serial (setf (aref Y i j) x)))", MATRIX)
    after = script.apply(before, [("fuse", "i", "j")], verify=True)
    assert kernel_text(after).startswith("(for ij 0 (* (max (- M 2) 0) (max (- N 2) 0)) 1 serial")
    assert_same(before, after, SMALL)
