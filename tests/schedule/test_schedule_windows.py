"""What the plan of depthwise convolutions makes of padding and steps, and of values that are not finite."""
from __future__ import annotations

import pytest
from schedule_nets import assert_same, assert_sound, program

from caten.core.expr import Op
from caten.core.program import Schedule
from caten.loop.statements import LoopProgram, Vref
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
    assert len(reads) == 25
    assert {(r.count, r.mask) for r in reads} == {(16, None)}
