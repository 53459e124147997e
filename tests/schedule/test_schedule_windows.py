"""What the plans of depthwise convolutions and their gradients make of padding, steps and phases."""
from __future__ import annotations

import pytest
from schedule_nets import assert_same, assert_sound, program

from caten.core.expr import Op
from caten.core.program import Schedule
from caten.loop.statements import Aref, Incf, LoopProgram, Vref
from caten.schedule import autoscheduler

MACHINES = {
    "avx512": '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))',
    "avx2": '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))',
    "neon": '(opt 2) (target "clang" (machine aarch64 16 32 (65536 524288) false))',
}
SIZES = ((0, 0, 0), (1, 1, 1), (2, 5, 4), (3, 9, 19), (1, 20, 35))


def windows(machine: str, taps: int = 5, stride: int = 1, dtype: str = "f32") -> LoopProgram:
    """Y[c y x] of X[c h w] and F[c taps taps], padded by half of a window."""
    h, w = [f"(- (+ (* {p} {stride}) {k}) {taps // 2})" for p, k in (("y", "p"), ("x", "q"))]
    inside = f"(and (and (<= 0 {h}) (< {h} H)) (and (<= 0 {w}) (< {w} W)))"
    lines, columns = [f"(floordiv (+ {n} {stride - 1}) {stride})" for n in "HW"]
    text = (f"(for c 0 C 1 serial (for y 0 {lines} 1 serial (for x 0 {columns} 1 serial (for p 0 {taps} 1 serial"
            f" (for q 0 {taps} 1 serial (if {inside} ((incf (aref Y c y x) (* (aref X c {h} {w}) (aref F c p q))))))))))")
    return program(text, f"""(size C) (size H) (size W) (buffer X {dtype} (C H W) (0 1 2) in)
 (buffer F {dtype} (C {taps} {taps}) (0 1 2) in) (buffer Y {dtype} (C H W) (0 1 2) inout)""", MACHINES[machine])


def copies_lines(after: LoopProgram) -> bool:
    return any(isinstance(n, Vref) and n.buffer == "X_tile" for n in after.unique())


@pytest.mark.parametrize(("machine", "taps", "stride", "dtype"), [
    ("avx512", 5, 1, "f32"), ("avx512", 3, 2, "f32"), ("avx512", 3, 3, "i32"), ("avx2", 5, 1, "f32"), ("avx2", 3, 2, "f64"),
    ("neon", 4, 1, "f32"), ("neon", 3, 2, "f32")])
def test_windows_mean_the_same(machine: str, taps: int, stride: int, dtype: str, nightly: bool) -> None:
    before = windows(machine, taps, stride, dtype)
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert copies_lines(after)
    assert_same(before, after, SIZES if nightly else SIZES[1::2])


def test_few_taps_are_read_where_they_are() -> None:
    after = autoscheduler.schedule(windows("avx512", 3))
    assert not copies_lines(after)
    assert "(interior" in str(after.first(Schedule))


def test_vectors_of_lines_are_under_no_condition() -> None:
    after = autoscheduler.schedule(windows("avx512"))
    sums = [n for n in after.unique() if isinstance(n, Op) and n.fn == "fma"]
    reads = {r for n in sums for r in n.unique() if isinstance(r, Vref) and r.buffer == "X_tile"}
    assert len(reads) == (8 + 4) * 5                        # each line of the image once for eight lines of results
    assert {(r.count, r.mask) for r in reads} == {(16, None)}


def gradient(machine: str, taps: int = 3, stride: int = 1, dtype: str = "f32") -> LoopProgram:
    """F[c taps taps] of X[c h w] and Y[c y x]: the gradient of the weights above."""
    h, w = [f"(- (+ (* {p} {stride}) {k}) {taps // 2})" for p, k in (("y", "p"), ("x", "q"))]
    inside = f"(and (and (<= 0 {h}) (< {h} H)) (and (<= 0 {w}) (< {w} W)))"
    lines, columns = [f"(floordiv (+ {n} {stride - 1}) {stride})" for n in "HW"]
    text = (f"(for c 0 C 1 serial (for p 0 {taps} 1 serial (for q 0 {taps} 1 serial (for n 0 N 1 serial (for y 0 {lines} 1 serial"
            f" (for x 0 {columns} 1 serial (if {inside} ((incf (aref F c p q) (* (aref X n c {h} {w}) (aref Y n c y x)))))))))))")
    return program(text, f"""(size C) (size H) (size W) (size N) (buffer X {dtype} (N C H W) (0 1 2 3) in)
 (buffer F {dtype} (C {taps} {taps}) (0 1 2) inout) (buffer Y {dtype} (N C H W) (0 1 2 3) in)""", MACHINES[machine])


@pytest.mark.parametrize(("machine", "taps", "stride", "dtype"), [
    ("avx512", 3, 1, "f32"), ("avx512", 3, 2, "f32"), ("avx512", 7, 1, "f32"), ("avx2", 5, 1, "f32"), ("avx2", 3, 3, "i32"),
    ("neon", 4, 2, "f32")])
def test_gradients_of_weights_mean_the_same(machine: str, taps: int, stride: int, dtype: str, nightly: bool) -> None:
    before = gradient(machine, taps, stride, dtype)
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert copies_lines(after)
    sizes = [(*some, images) for some, images in zip(SIZES, (1, 2, 0, 2, 1), strict=True)]
    assert_same(before, after, sizes if nightly else sizes[1::2])


@pytest.mark.parametrize(("taps", "at_once"), [(3, 9), (7, 7)])
def test_taps_that_fit_the_registers_are_added_at_once(taps: int, at_once: int) -> None:
    """Each sum is under no condition, and what is not finite is known from the sums: nothing else is tested."""
    after = autoscheduler.schedule(gradient("avx512", taps))
    sums = [n for n in after.unique() if isinstance(n, Op) and n.fn == "fma" and "X_tile" in str(n) and n.lanes == 16]
    assert len({n.args[2] for n in sums}) == at_once
    assert not [r for n in sums for r in n.unique() if isinstance(r, Vref) and r.mask is not None]
    tested = {n.buffer for n in after.unique() if isinstance(n, Aref) and n.buffer.endswith("_sum")}
    assert len(tested) == 1
    assert tested.isdisjoint({"X_tile_sum", "Y_tile_sum"})


PHASES = """(for i 0 2 1 serial (for c 0 C 1 serial (for m 0 H 1 serial (setf (aref Y i c m) 0.0))))
 (for i_2 0 2 1 serial (for c_2 0 C 1 serial (for m_2 0 H 1 serial (for q 0 2 1 serial
  (if (and (and (<= 0 (- (+ m_2 {half}) q)) (< (- (+ m_2 {half}) q) H)) (< (+ (* 2 q) {first}) 3))
   ((incf (aref Y i_2 c_2 m_2) (* (aref X c_2 (- (+ m_2 {half}) q)) (aref F c_2 (+ (* 2 q) {first}))))))))))"""


def phases(half: str, first: str) -> LoopProgram:
    """The gradient of windows with step 2, in phases."""
    return program(PHASES.format(half=half, first=first), """(size C) (size H) (buffer X f32 (C H) (0 1) in)
 (buffer F f32 (C 3) (0 1) in) (buffer Y f32 (2 C H) (0 1 2) inout)""", MACHINES["avx512"])


@pytest.mark.parametrize(("half", "first"), [("(floordiv (+ i_2 1) 2)", "(mod (+ i_2 1) 2)"), ("i_2", "i_2")])
def test_sums_over_phases_are_nests_of_their_own(half: str, first: str) -> None:
    """One tap in one phase and two in the other; each sum begins in registers, and vectors have no conditions inside."""
    before = phases(half, first)
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert_same(before, after, ((1, 1), (2, 5), (3, 40)))
    assert "(unroll i full)" in str(after.first(Schedule))
    stores = {str(n) for n in after.unique() if isinstance(n, Vref) and n.buffer == "Y" and n.count == 16}
    assert {n for n in "01" if any(f"({n} c" in store for store in stores)} == {"0", "1"}
    assert not [n for kernel in after.kernels for n in kernel.unique() if isinstance(n, Incf) and "aref Y" in str(n)]


def test_phases_of_lines_and_columns_are_nests_of_their_own() -> None:
    """Four nests, in which no tap depends on a loop over phases."""
    taps = "(- (+ m_2 (floordiv (+ i_2 1) 2)) q)", "(- (+ n_2 (floordiv (+ j_2 1) 2)) r)"
    ends = [f"(+ (* 2 {tap}) (mod (+ {phase} 1) 2))" for tap, phase in (("q", "i_2"), ("r", "j_2"))]
    conds = [f"(and (<= 0 {t}) (and (< {t} {extent}) (< {e} 3)))" for t, extent, e in zip(taps, "HW", ends, strict=True)]
    text = f"""(for i 0 2 1 serial (for j 0 2 1 serial (for m 0 H 1 serial (for n 0 W 1 serial (setf (aref Y i j m n) 0.0)))))
 (for i_2 0 2 1 serial (for j_2 0 2 1 serial (for m_2 0 H 1 serial (for n_2 0 W 1 serial (for q 0 2 1 serial (for r 0 2 1 serial
  (if (and {conds[0]} {conds[1]}) ((incf (aref Y i_2 j_2 m_2 n_2) (* (aref X {taps[0]} {taps[1]}) (aref F {ends[0]} {ends[1]})))))))))))"""
    before = program(text, """(size H) (size W) (buffer X f32 (H W) (0 1) in) (buffer F f32 (3 3) (0 1) in)
 (buffer Y f32 (2 2 H W) (0 1 2 3) inout)""", MACHINES["avx512"])
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert_same(before, after, ((1, 1), (5, 4), (3, 40)))
    assert {n.buffer for n in after.unique() if isinstance(n, Vref) and n.count == 16} >= {"X", "Y"}
    assert not [n for n in after.unique() if isinstance(n, Op) and n.fn == "mod"]
