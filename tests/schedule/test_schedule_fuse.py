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
