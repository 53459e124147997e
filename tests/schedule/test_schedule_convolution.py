"""What the plan of convolutions makes of windows of one and two directions, at their edges and with values that are not
finite."""
from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schedule_nets import arguments, assert_same, assert_sound, program

from caten import driver, loading
from caten.core.expr import Const, Var
from caten.core.program import Schedule, Size, Target
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.loop.affine import canonical
from caten.loop.statements import Aref, If, Incf, Local, LoopProgram, Setf, Transpose, Vref
from caten.options import Options
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import loops_in
from caten.schedule.planning_log import Tried
from caten.schedule.plans.plan import OTHER_SIZES
from caten.semantics.interpret import run

ROOT = Path(__file__).resolve().parents[2]
MACHINES = {
    "avx512": '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))',
    "avx2": '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))',
    "neon": '(opt 2) (target "clang" (machine aarch64 16 32 (65536 524288) false))',
}
LARGEST = (3, 9, 8, 17, 1)
SIZES = ((0, 0, 0, 0, 1), (1, 1, 1, 1, 1), (2, 3, 5, 4, 2), LARGEST, (9, 2, 13, 9, 3), (2, 2, 9, 18, 2))


def windows(machine: str, dtype: str = "f32", stride: int | str = 1, dilation: int = 1, is_back: bool = False,
            lines: int | str = "H", pixels: int | str = "W") -> LoopProgram:
    """Y[o y x] of X[c h w] and F[o c 3 3], padded by 1; the taps of a window are from the last pixel to the first, if
    `is_back`."""
    h, w = [f"(+ (- (* {p} {stride}) (* {k} {dilation})) 1)" if is_back else f"(- (+ (* {p} {stride}) (* {k} {dilation})) 1)"
            for p, k in (("y", "p"), ("x", "q"))]
    inside = f"(and (and (<= 0 {h}) (< {h} {lines})) (and (<= 0 {w}) (< {w} {pixels})))"
    text = (f"(for o 0 M 1 serial (for c 0 C 1 serial (for y 0 {lines} 1 serial (for x 0 {pixels} 1 serial (for p 0 3 1 serial (for q 0 3 1 serial"
            f" (if {inside} ((incf (aref Y o y x) (* (aref X c {h} {w}) (aref F o c p q)))))))))))")
    return program(text,
                   f"""(size M) (size C) (size H) (size W) (size S) (buffer X {dtype} (C {lines} {pixels}) (0 1 2) in) (buffer F {dtype} (M C 3 3) (0 1 2 3) in)
 (buffer Y {dtype} (M {lines} {pixels}) (0 1 2) inout)""", MACHINES[machine])


def line(machine: str) -> LoopProgram:
    """Y[o x] of X[c w] and F[o c 3], not padded."""
    text = """(for o 0 M 1 serial (for c 0 C 1 serial (for x 0 W 1 serial (for q 0 3 1 serial
 (incf (aref Y o x) (* (aref X c (+ x q)) (aref F o c q)))))))"""
    return program(text,
                   """(size M) (size C) (size W) (buffer X f32 (C (+ W 2)) (0 1) in) (buffer F f32 (M C 3) (0 1 2) in)
 (buffer Y f32 (M W) (0 1) inout)""", MACHINES[machine])


@cache
def scheduled(before: LoopProgram) -> LoopProgram:
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert script.apply(before, script.parse_schedule(show(taken(after))).steps) is after
    return after


def taken(node: LoopProgram) -> Schedule:
    fact = node.first(Schedule)
    assert fact is not None
    return fact


@pytest.mark.slice(6)
@pytest.mark.parametrize(("machine", "dtype", "stride", "dilation"), [
    ("avx512", "f32", 1, 1), ("avx512", "f32", 2, 1), ("avx512", "f32", 3, 1), ("avx512", "f32", 1, 2),
                                                                      ("avx512", "f64", 1, 1), ("avx512", "i32", 2, 1),
    ("avx2", "f32", 1, 1), ("avx2", "f64", 1, 1), ("avx2", "i32", 1, 1), ("neon", "f32", 1, 1)])
@pytest.mark.slow
def test_windows_mean_the_same(machine: str, dtype: str, stride: int, dilation: int, nightly: bool) -> None:
    before = windows(machine, dtype, stride, dilation)
    assert_same(before, scheduled(before), SIZES if nightly else [s for s in SIZES if s != LARGEST][::2])


def test_a_line_means_the_same() -> None:
    before = line("avx512")
    assert_same(before, scheduled(before), tuple([(m, c, w) for m, c, _, w, _ in SIZES]))


@pytest.mark.slow
def test_a_step_that_is_not_known_has_copies_that_are_vectors(nightly: bool) -> None:
    before = windows("avx512", stride="S")
    after = scheduled(before)
    strides = [step[2] for step in taken(after).steps if step[0] == "specialize" and step[2][0] == "="]
    assert strides == 2 * [("=", "S", "1"), ("=", "S", "2")]                               # in wide tiles and in the others
    reads = {v.count for loop in loops_in(after) if loop.name.endswith(("_1", "_2"))
             for v in loop.unique() if isinstance(v, Vref) and v.buffer == "X"}
    assert reads == {8, 16, 32}
    assert_same(before, after, SIZES if nightly else ((9, 2, 4, 9, 3), (2, 2, 5, 18, 2), (2, 1, 3, 18, 1)))


@pytest.mark.slow
def test_the_sums_in_registers_are_under_no_condition() -> None:
    after = scheduled(windows("avx512"))
    nest = next(loop for loop in loops_in(after) if loop.name == "ci")
    assert not any(isinstance(n, If) for n in nest.walk())
    assert {v.count for v in nest.unique() if isinstance(v, Vref)} == {16}
    assert not any(v.mask for v in nest.unique() if isinstance(v, Vref))


def test_two_lines_or_more_are_one_tile() -> None:
    steps = taken(scheduled(windows("avx2"))).steps
    versions = [step[2] for step in steps if step[0] == "split" and step[1][0] == "y" and step[3:] == ("pad",)]
    assert sorted(map(str, versions)) == ["2", "2", "4"]       # direct, tall, narrow; the direct one fuses none
    assert sum([step[0] == "fuse" and step[1][0] == "y" for step in steps]) == 2 * 3


def test_filters_are_transposed_while_they_are_packed() -> None:
    after = scheduled(windows("avx512"))
    blocks = [n for n in after.unique() if isinstance(n, Transpose)]
    assert [(b.ref.buffer, b.ref.count, b.value.buffer, b.value.count) for b in blocks] == [
        ("F_tile", 16, "F", 16), ("Y_part_tile", 16, "Y_part", 16), ("F_tile_2", 4, "F", 16), ("F_tile_3", 8, "F", 16),
        ("F_tile_4", 8, "F", 16)]
    assert after.buffers["F"].axes == (Var("M", "i64"), canonical(Var("C", "i64") * Const(9, "i64")))


def test_images_that_wide_tiles_cover_better_have_a_nest_of_their_own(nightly: bool) -> None:
    before = windows("avx512")
    after = scheduled(before)
    (copy,) = [step for step in taken(after).steps if step[0] == "specialize" and step[3] == "h"]
    assert copy[1:] == ("o", ("<", ("*", ("floordiv", ("+", "H", "1"), "2"), ("floordiv", ("+", "W", "15"), "16")),
                              ("*", ("floordiv", ("+", "H", "3"), "4"), ("floordiv", ("+", "W", "7"), "8"))), "h")
    assert_same(before, after, ((3, 2, 14, 14, 1), (9, 1, 1, 9, 1), (2, 33 if nightly else 3, 10, 16, 1), (1, 2, 13, 13, 1)))


def test_images_that_narrow_tiles_cover_clearly_better_have_a_nest_of_their_own(nightly: bool) -> None:
    before = windows("avx2")
    after = scheduled(before)
    (copy,) = [step for step in taken(after).steps if step[0] == "specialize" and step[3] == "a"]
    narrow = ("*", ("floordiv", ("+", "H", "3"), "4"), ("floordiv", ("+", "W", "3"), "4"))
    tall = ("*", ("floordiv", ("+", "H", "1"), "2"), ("floordiv", ("+", "W", "7"), "8"))
    assert copy[1:] == ("o", ("and", ("<=", "65", "M"), ("<=", ("*", narrow, "10"), ("*", tall, "9"))), "a")
    few = ((65, 1, 4, 12, 1), (66, 2, 3, 4, 1))
    assert_same(before, after, (*few, (70, 33, 5, 20, 1), (65, 3, 12, 11, 2)) if nightly else few)


@pytest.mark.parametrize(("dtype", "narrow"), [("f32", False), ("f64", True)])
def test_lines_of_pixels_are_copied_half_a_vector_at_a_time_or_more(dtype: str, narrow: bool) -> None:
    copies = [step for step in taken(scheduled(windows("avx512", dtype))).steps if step[0] == "specialize"]
    assert any(step[3] == "a" for step in copies) == narrow


MANY = ((32, 33, 3, 7, 1), (40, 32, 1, 14, 1), (32, 70, 2, 7, 1))               # filters, channels, lines, pixels
FEW = ((32, 12, 2, 7, 1), (33, 12, 1, 9, 1))


@pytest.mark.slice(3)
@pytest.mark.parametrize(("machine", "dtype"), [("avx512", "f32"), ("avx512", "f64"), ("neon", "f32")])
@pytest.mark.slow
def test_the_vectors_are_filters_where_pixels_would_leave_lanes_empty(machine: str, dtype: str, nightly: bool) -> None:
    before = windows(machine, dtype)
    after = scheduled(before)
    (copy,) = [step for step in taken(after).steps if step[0] == "specialize" and step[3] == "v"]
    conds = {show_condition(part) for part in parts_of(copy[2])}
    assert "(<= (* H W) 2048)" in conds
    assert any(c.startswith("(or (<= 12 C) (and (<= 6 C) ") for c in conds), conds
    packed = [step for step in taken(after).steps if step[0] == "stage" and step[2] == "X" and isinstance(step[-1], tuple)]
    halos = [(("yvi", "pv"), ("xvi", "qv")), (("ydi", "pd"), ("xdo", "xdi", "qd"))]       # each pixel once
    assert [step[6:] for step in packed] == halos[:1 if machine == "neon" else 2]
    assert_same(before, after, MANY if nightly else FEW if machine == "avx512" else FEW[:1])


def parts_of(cond: tuple[object, ...]) -> list[tuple[object, ...]]:
    """The conditions of a conjunction."""
    return [p for part in cond[1:] if isinstance(part, tuple) for p in parts_of(part)] if cond[0] == "and" else [cond]


def show_condition(cond: object) -> str:
    return f"({' '.join(map(show_condition, cond))})" if isinstance(cond, tuple) else str(cond)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("code", ["conv2d(X, F, padding=(1, 1), stride=(2, 2))", "conv2d(X, F)"])
def test_extents_that_follow_from_sizes_choose_plans_as_sizes_do(code: str) -> None:
    """H - 2 and (H + 1) // 2 are known before the nest; a halo is read as far as the last pixel needs it."""
    made = of_spec(code)
    endings = [step[3] for step in taken(made).steps if step[0] == "specialize"]
    assert endings[:3] == ["v", "d", "h"] if "stride" not in code else ["v", "h"]
    rng = np.random.default_rng(0)
    given = {"N": 1, "C": 12, "H": 3, "W": 9, "O": 32}
    Y = np.zeros((1, 32, 1, 7) if "stride" not in code else (1, 32, 2, 5), np.float32)
    data = {"X": rng.integers(-4, 5, (1, 12, 3, 9)), "F": rng.integers(-4, 5, (32, 12, 3, 3)), "b": np.zeros(32)}
    one, other = [{name: a.astype(np.float32) for name, a in data.items()} | {"Y": Y.copy()} for _ in range(2)]
    run(made, one | given)
    run(of_spec(code, 0), other | given)
    np.testing.assert_array_equal(one["Y"], other["Y"])
    assert one["Y"].any()


@pytest.mark.slow
def test_whole_tiles_of_a_known_number_of_filters_are_packed_as_of_any_number() -> None:
    """Only the last tile of 66 filters has some beyond the edge; an image of 30 × 30 is no reason for half tiles."""
    spec = CONV.replace("CODE", "conv2d(X, F, padding=(1, 1))").replace("[N C EXTENTS]", "[1 2 30 30]").replace("[O C 3 3]", "[66 2 3 3]")
    options = Options(config=(("MARCH", "x86_64_v4"),))
    made = driver.advance(loading.load_programs(SpecText("conv.toml", spec, "toml"), options)[0], "loop", options)
    assert isinstance(made, LoopProgram)
    assert [(b.ref.buffer, b.ref.count) for b in made.unique() if isinstance(b, Transpose)] == [("F_tile", 8)]
    data: dict[str, Any] = {"X": np.zeros((1, 2, 30, 30), np.float32), "F": np.zeros((66, 2, 3, 3), np.float32), "b": np.zeros(66, np.float32),
            "Y": np.zeros((1, 66, 30, 30), np.float32)}
    data["F"][65, 0] = np.arange(9).reshape(3, 3)
    data["F"][7, 1, 1, 2] = 3
    data["X"][0, :, 29, 0], data["X"][0, 1, 7, 8] = 1, 2
    run(made, data | {"O": 66})
    want = np.zeros((66, 30, 30), np.float32)
    want[65, 28:, :2] = [[7, 6], [4, 3]]
    want[7, 7, 7] = 6
    np.testing.assert_array_equal(data["Y"][0], want)


def test_few_registers_have_the_pixels_in_vectors() -> None:
    assert not any(step[0] == "specialize" and step[3] == "v" for step in taken(scheduled(windows("avx2"))).steps)


EVEN = ((4, 2, 4, 16, 1), (5, 3, 3, 7, 1), (8, 1, 5, 17, 1), (3, 2, 1, 1, 1))
DEEP = ((4, 65, 3, 16, 1), (12, 9, 9, 30, 1))          # channels for two visits, and several tiles


@pytest.mark.slice(3)
@pytest.mark.parametrize(("machine", "dtype", "dilation", "lines"), [
    ("avx2", "f32", 1, 2), ("avx512", "f32", 1, 4), ("avx2", "f64", 2, 2), ("avx2", "i32", 1, 2), ("avx512", "f32", 3, 4)])
@pytest.mark.slow
def test_few_filters_read_their_windows_in_packed_lines(
        machine: str, dtype: str, dilation: int, lines: int, nightly: bool) -> None:
    """Each line is packed once for a row of tiles, with its halo, and vectors begin wherever a window does."""
    before = windows(machine, dtype, dilation=dilation)
    after = scheduled(before)
    (copy,) = [step for step in taken(after).steps if step[0] == "specialize" and step[3] == "d"]
    assert {"(<= M 64)"} < {show_condition(part) for part in parts_of(copy[2])}
    nest = next(loop for loop in loops_in(after) if loop.name == "cdi")
    reads = [n for n in nest.unique() if isinstance(n, Vref) and n.buffer.startswith("X_tile")]
    assert reads
    assert all(n.mask is None for n in reads)
    assert not any(isinstance(n, If) for n in nest.unique())
    (tile,) = [n for n in after.unique() if isinstance(n, Local) and n.name == reads[0].buffer]
    assert tile.shape[1] == Const(lines + 2 * dilation, "i64")
    assert_same(before, after, EVEN + DEEP if nightly else EVEN)


GRADIENTS = {
    "images": ("""(for o 0 M 1 serial (for c 0 C 1 serial (for p 0 3 1 serial (for q 0 2 1 serial (for n 0 N 1 serial (for y 0 H 1 serial (for x 0 W 1 serial
 (if (and (<= 0 (- (+ y p) 1)) (< (- (+ y p) 1) H))
 ((incf (aref F o c p q) (* (aref G n o y x) (aref X n c (- (+ y p) 1) (+ x q)))))))))))))""",
               """(size N) (size M) (size C) (size H) (size W) (buffer X f32 (N C H (+ W 1)) (0 1 2 3) in) (buffer G f32 (N M H W) (0 1 2 3) in)
 (buffer F f32 (M C 3 2) (0 1 2 3) inout)"""),
    "four images, the loops in another order": ("""(for q 0 2 1 serial (for x 0 W 1 serial (for y 0 H 1 serial (for p 0 3 1 serial (for o 0 M 1 serial
 (for n 0 4 1 serial (for c 0 C 1 serial (if (and (<= 0 (- (+ y p) 1)) (< (- (+ y p) 1) H))
 ((incf (aref F o c p q) (* (aref G n o y x) (aref X n c (- (+ y p) 1) (+ x q)))))))))))))""",
                                                """(size M) (size C) (size H) (size W) (buffer X f32 (4 C H (+ W 1)) (0 1 2 3) in) (buffer G f32 (4 M H W) (0 1 2 3) in)
 (buffer F f32 (M C 3 2) (0 1 2 3) inout)"""),
    "signals": ("""(for o 0 M 1 serial (for c 0 C 1 serial (for q 0 2 1 serial (for x 0 W 1 serial (for n 0 N 1 serial
 (incf (aref F o c q) (* (aref G o n x) (aref X (+ x (* 3 q)) n c))))))))""",
                """(size N) (size M) (size C) (size H) (size W) (buffer X f32 ((+ W 3) N C) (0 1 2) in) (buffer G f32 (M N W) (0 1 2) in)
 (buffer F f32 (M C 2) (0 1 2) inout)""")}


@pytest.mark.slow
@pytest.mark.parametrize("of", GRADIENTS)
def test_gradients_of_weights_have_channels_in_vectors(of: str) -> None:
    """Whatever the order of their sums: blocks are of lines of an image, or of a signal, with the images around them."""
    before = program(*GRADIENTS[of], MACHINES["avx2"])
    after = scheduled(before)
    copies = [step for step in taken(after).steps if step[0] == "specialize" and step[3] == "t"]
    assert [show_condition(step[2]) for step in copies] == ["(<= 6 C)"]
    transposed = {n.value.buffer for n in after.unique() if isinstance(n, Transpose)}
    assert transposed == ({"G"} if of == "signals" else {"G", "X"})             # signals have channels in vectors as they are
    sizes = ((2, 7, 17, 5, 6), (1, 3, 9, 18, 2), (1, 1, 8, 1, 1), (2, 2, 3, 3, 3), (0, 1, 9, 1, 1))
    assert_same(before, after, [each[5 - len(before.all(Size)):] for each in sizes])


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "pixels"), [(4, 9), (20, 11)])
def test_gradients_of_weights_transpose_pixels_of_images_all_of_whose_tiles_are_at_edges(lines: int, pixels: int) -> None:
    text, names = [re.sub(r"\bH\b", str(lines), re.sub(r"\bW\b", str(pixels), part)) for part in GRADIENTS["images"]]
    before = program(text, names.replace(f"(size {lines}) (size {pixels})", ""), MACHINES["avx2"])
    after = scheduled(before)
    assert {n.value.buffer for n in after.unique() if isinstance(n, Transpose)} == {"G", "X"}
    assert [step for step in taken(after).steps if step[0] == "interior"] == [("interior", "yti_r_2w")]  # no test is around it
    assert_same(before, after, ((1, 3, 8), (2, 2, 9) if lines < 9 else (1, 1, 6)))


@pytest.mark.slow
def test_gradients_of_weights_transpose_pixels_of_tiles_at_edges_beside_those_at_none() -> None:
    """Three tiles of 16 lines: only that in the middle is at no edge."""
    extents = {"C": "8", "H": "48", "W": "9"}
    text, names = [re.sub(r"\b[CHW]\b", lambda m: extents[m[0]], part) for part in GRADIENTS["images"]]
    before = program(text, re.sub(r"\(size \d+\)", "", names), MACHINES["avx2"])
    after = scheduled(before)
    tiles = {loop.name for loop in loops_in(after) if loop.name.startswith("yi_r") and any(
        isinstance(n, Transpose) and n.value.buffer == "X" for n in loop.unique())}
    assert tiles == {"yi_r_2", "yi_re_2"}
    assert_same(before, after, ((1, 2),))


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["avx512", "avx2"])
def test_images_smaller_than_a_tile_are_packed_in_windows(machine: str) -> None:
    before = windows(machine, lines=3, pixels=3)
    after = scheduled(before)
    assert {("split", "y", "4", "pad"), ("split", "x", "4", "pad"), ("fuse", "yi", "xi")} <= {*taken(after).steps}
    assert_same(before, after, ((3, 2, 0, 0, 1), (17, 33, 0, 0, 1), (8, 1, 0, 0, 1), (2, 0, 0, 0, 1)))


def test_an_image_of_known_extents_has_no_copies_that_no_call_reaches() -> None:
    """12 × 12 pixels are no fewer tiles of 2 × 16 than of 4 × 8; tiles of 2 × 7 that cover 4 × 16 compute more, of however
    many filters."""
    for lines, pixels, out in ((12, 12, ["wide tiles"]), (4, 16, ["filters in vectors", "wide tiles"])):
        log = autoscheduler.drafted(windows("avx512", lines=lines, pixels=pixels)).log
        assert [e.what for e in log if isinstance(e, Tried) and e.why_not == OTHER_SIZES] == [f"the plan '{name}'" for name in out]


@pytest.mark.parametrize("machine", ["avx2", "avx512"])
@pytest.mark.slow
def test_windows_of_gradients_by_the_image_are_packed_with_their_halo(machine: str) -> None:
    """Their pixels move against the taps, so that a halo counts the taps from the last one."""
    before = windows(machine, is_back=True)
    after = scheduled(before)
    assert "d" in [step[3] for step in taken(after).steps if step[0] == "specialize"]
    nest = next(loop for loop in loops_in(after) if loop.name == "cdi")
    reads = [n for n in nest.unique() if isinstance(n, Vref) and n.buffer.startswith("X_tile")]
    assert reads
    assert not any(isinstance(n, If) for n in nest.unique())
    assert_same(before, after, EVEN)


@pytest.mark.parametrize(("stride", "dilation"), [(2, 1), (3, 2)])
def test_windows_that_begin_at_every_second_pixel_are_copied(stride: int, dilation: int) -> None:
    assert "d" not in [step[3] for step in taken(scheduled(windows("avx2", "f32", stride, dilation))).steps if step[0] == "specialize"]


@pytest.mark.slow
def test_windows_of_few_filters_in_three_dimensions() -> None:
    text = """(for n 0 N 1 serial (for o 0 M 1 serial (for z 0 D 1 serial (for y 0 H 1 serial (for x 0 W 1 serial (for c 0 C 1 serial
 (for r 0 2 1 serial (for p 0 3 1 serial (for q 0 2 1 serial (if (and (< (- (+ y p) 1) H) (<= 0 (- (+ y p) 1)))
 ((incf (aref Y n o z y x) (* (aref X n c (+ z r) (- (+ y p) 1) (+ x q)) (aref F o c r p q))))))))))))))"""
    before = program(text, """(size N) (size M) (size C) (size D) (size H) (size W) (buffer X f32 (N C (+ D 1) H (+ W 1)) (0 1 2 3 4) in)
 (buffer F f32 (M C 2 3 2) (0 1 2 3 4) in) (buffer Y f32 (N M D H W) (0 1 2 3 4) inout)""", MACHINES["avx2"])
    after = scheduled(before)
    assert any(step[0] == "stage" and step[5:] == ("cdi", "rd", ("ydi", "pd"), ("xdo", "xdi", "qd")) for step in taken(after).steps)
    assert_same(before, after, ((2, 5, 1, 1, 3, 9), (1, 4, 1, 2, 4, 8)))


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "fits"), [
    ("avx2", {"(<= M 64)", "(<= W 1024)", "(<= 4 H)"}), ("avx512", {"(<= M 64)", "(<= W 1024)", "(<= 8 H)"})])
def test_conditions_of_direct_convolutions_are_of_one_size_each(machine: str, fits: set[str]) -> None:
    """Long lines would not fit a cache. What is known of products of sizes makes the plans of all other calls slow."""
    (copy,) = [step for step in taken(scheduled(windows(machine))).steps if step[0] == "specialize" and step[3] == "d"]
    conds = [show_condition(part) for part in parts_of(copy[2])]
    assert fits < set(conds)
    assert all(sum(size in cond for size in "MCHW") == 1 for cond in conds), conds


@pytest.mark.slice(4)
@pytest.mark.slow
@pytest.mark.parametrize(("threads", "images", "filters", "weight"), [(False, 5, 32, np.inf), (True, 1, 130, 1.0)])
@pytest.mark.parametrize("code", ["np.maximum(conv2d(X, F, padding=(1, 1)) + b[:, None, None], 0)", "conv2d(X, F, padding=(1, 1))"])
def test_results_of_filters_in_vectors_are_transposed(code: str, threads: bool, images: int, filters: int, weight: float) -> None:
    """With more images than are kept at once, more than a panel of filters, an epilogue, and a weight that is not
    finite."""
    made, plain = of_spec(code, OMP=str(int(threads))), of_spec(code, 0)
    assert any(isinstance(n, Transpose) and n.value.buffer == "Y_part" for n in made.unique())
    shared = [loop.name for loop in loops_in(made) if loop.mark == "parallel"]
    assert [name[1:] for name in shared if "v" in name][:2] == ["_2vo", "_2vo"]
    rng = np.random.default_rng(3)
    given = {"X": rng.integers(-4, 5, (images, 6, 1, 7)), "F": rng.integers(-4, 5, (filters, 6, 3, 3)),
             "b": rng.integers(-4, 5, filters)}
    data: dict[str, Any] = {name: a.astype(np.float32) for name, a in given.items()}
    data |= {"Y": np.full((images, filters, 1, 7), 9, np.float32), "N": images, "C": 6, "H": 1, "W": 7, "O": filters}
    data["F"][filters // 2, 3, 1, 0] = weight
    other = {name: np.copy(a) if isinstance(a, np.ndarray) else a for name, a in data.items()}
    run(made, data)
    run(plain, other)
    np.testing.assert_array_equal(data["Y"], other["Y"])


CONV = """[composite]
name = "Conv"
inputs = ["X{float}[N C EXTENTS]", "F{float}[O C 3 3]", "b{float}[O]"]
outputs = ["Y{float}[...]"]

[implementation]
lang = "python"
code = "return CODE"
"""


@cache
def of_spec(code: str, opt: int = 2, extents: str = "H W", **config: str) -> LoopProgram:
    """An image padded by 1 convolved by 3 x 3 filters, as a spec."""
    options = Options(opt=opt, config=(("MARCH", "x86_64_v4"), *config.items()))
    (start,) = loading.load_programs(SpecText("conv.toml", CONV.replace("CODE", code).replace("EXTENTS", extents), "toml"), options)
    after = driver.advance(start, "loop", options)
    assert isinstance(after, LoopProgram)
    return after


@pytest.mark.slow
def test_edges_that_are_set_are_vectors_and_those_that_add_are_not(nightly: bool) -> None:
    """A load under a mask would wait for the store under a mask before it."""
    made = of_spec("conv2d(X, F, padding=(1, 1))")
    stores = [n for n in made.unique() if isinstance(n, Setf) and isinstance(n.ref, Vref) and n.ref.buffer == "Y"]
    assert any(n.ref.mask for n in stores if isinstance(n.ref, Vref))
    added = [n for n in made.unique() if isinstance(n, Incf) and isinstance(n.ref, Vref) and n.ref.buffer == "Y"]
    assert added
    assert not any(n.ref.mask for n in added if isinstance(n.ref, Vref))
    assert any(isinstance(n, Incf) and isinstance(n.ref, Aref) and n.ref.buffer == "Y" for n in made.unique())
    for sizes in ((1, 3, 5, 7, 9), (2, 33, 4, 9, 3), (1, 1, 17, 18, 8)) if nightly else ((1, 33, 4, 9, 3), (1, 1, 5, 18, 8)):
        n, c, h, w, o = sizes
        given = {"N": n, "C": c, "H": h, "W": w, "O": o}
        rng = np.random.default_rng(1)
        data = {"X": rng.integers(-4, 4, (n, c, h, w)), "F": rng.integers(-4, 4, (o, c, 3, 3)), "b": np.zeros(o),
                "Y": np.full((n, o, h, w), 7.0)}
        whole = {name: a.astype(np.float32) for name, a in data.items()}
        other = {name: a.copy() for name, a in whole.items()}
        run(made, other | given)
        run(of_spec("conv2d(X, F, padding=(1, 1))", 0), whole | given)
        np.testing.assert_array_equal(other["Y"], whole["Y"])


@pytest.mark.slow
@pytest.mark.parametrize("extents", ["H W", "3 3"])
def test_a_padded_convolution_has_its_epilogue_in_registers(extents: str) -> None:
    """However the extent of the result is computed: (H + 2 - 3) // 1 + 1 is H. 3 × 3 pixels are at the edge of their tile."""
    made = of_spec("np.maximum(conv2d(X, F, padding=(1, 1)) + b[:, None, None], 0)", extents=extents)
    sums = [step for step in taken(made).steps if step[0] == "stage" and step[2] == "Y" and step[3] != "accumulate"]   # what maps rows in place
    assert {step[3] for step in sums} == {"finish"}


def test_integers_need_no_other_copy() -> None:
    after = scheduled(windows("avx2", "i32"))
    assert not any(loop.name.endswith("g") for loop in loops_in(after))


def test_the_lines_of_the_result_are_shared_by_threads() -> None:
    after = scheduled(windows("avx512"))
    assert "yo" in [loop.name for loop in loops_in(after) if loop.mark == "parallel"]


@pytest.mark.slow
def test_many_filters_of_few_pixels_are_shared_by_threads(nightly: bool) -> None:
    alone = windows("avx512")
    target = alone.first(Target)
    assert target is not None
    before = alone.without(Target).adding(target.replace(machine=target.machine.replace(threads=True)))
    after = scheduled(before)
    assert [loop.name for loop in loops_in(after) if loop.mark == "parallel" and loop.name.startswith("oo")] == ["ooo"]
    assert_same(before, after, ((130, 2, 2, 3, 1), (128, 1, 3, 9, 1)) if nightly else ((130, 2, 1, 3, 1),))


def test_threads_share_the_tiles_of_all_images_of_a_pointwise_convolution() -> None:
    """There may be one image."""
    before = program("(for n 0 B 1 serial (for o 0 M 1 serial (for x 0 W 1 serial (for c 0 C 1 serial (incf (aref Y n o x) (* (aref F o c) (aref X n c x)))))))",
                     """(size B) (size M) (size C) (size W) (buffer X f32 (B C W) (0 1 2) in) (buffer F f32 (M C) (0 1) in) (buffer Y f32 (B M W) (0 1 2) inout)""",
                     '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true () true))')
    after = scheduled(before)
    shared = [loop.name for loop in loops_in(after) if loop.mark == "parallel"]
    assert ("n", "xo") in pairwise(shared)
    assert_same(before, after, ((0, 1, 1, 1), (1, 9, 3, 70), (3, 2, 5, 33)))


@pytest.mark.slice(6)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("place", ["X corner", "X middle", "F corner", "F middle"])
@pytest.mark.parametrize(("is_back", "lines"), [(False, 6), (True, 9)])          # with copied windows, and packed lines
@pytest.mark.slow
def test_what_is_not_finite_gives_what_it_gave(value: float, place: str, is_back: bool, lines: int) -> None:
    before = windows("avx512", is_back=is_back)
    results = []
    for node in (before, scheduled(before)):
        given = arguments(node, {"M": 3, "C": 2, "H": lines, "W": 16 if is_back else 9, "S": 1}, 1)
        name, where = place.split()
        at = (0, 0) if where == "corner" else (1, 1)
        given[name][(..., *at)] = value
        run(node, given)
        results.append(given["Y"])
    assert np.array_equal(results[0], results[1], equal_nan=True)


@pytest.mark.slice(3)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.slow
def test_windows_of_one_place_have_a_nest_of_their_own(machine: str) -> None:
    h, w = "(- (+ (* y S) p) 1)", "(- (+ (* x S) q) 1)"
    text = f"""(for o 0 M 1 serial (for y 0 H 1 serial (for x 0 W 1 serial (for c 0 C 1 serial (for p 0 P 1 serial (for q 0 Q 1 serial
 (if (and (and (<= 0 {h}) (< {h} H)) (and (<= 0 {w}) (< {w} W))) ((incf (aref Y o y x) (* (aref X c {h} {w}) (aref F o c p q)))))))))))"""
    before = program(text,
                     """(size M) (size C) (size H) (size W) (size S) (size P) (size Q) (buffer X i32 (C H W) (0 1 2) in)
 (buffer F i32 (M C P Q) (0 1 2 3) in) (buffer Y i32 (M H W) (0 1 2) inout)""", MACHINES[machine])
    after = scheduled(before)
    assert "(specialize o (and (= P 1) (= Q 1)) p)" in " ".join(show(taken(after)).split())
    assert_same(before, after, ((3, 2, 5, 9, 1, 1, 1), (9, 9, 5, 10, 2, 1, 1), (2, 3, 4, 9, 1, 1, 2),
                                (2, 3, 4, 9, 1, 2, 3), (0, 1, 1, 1, 1, 1, 1)))


def test_a_window_that_is_written_as_one_place() -> None:
    """A product under a condition: no loop over whole tiles stores its result."""
    spec = (ROOT / "benchmarks" / "specs" / "conv7x7s2.toml").read_text()
    for old, new in (("(* y 2) kh) 3)", "y kh) 0)"), ("(* x 2) kw) 3)", "x kw) 0)"), ("(kh 7)", "(kh 1)"),
                     ("(kw 7)", "(kw 1)"), ("C 7 7]", "C 1 1]")):
        assert old in spec
        spec = spec.replace(old, new)
    options = Options(config=(("MARCH", "x86_64_v4"),))
    before = driver.unscheduled(loading.load_programs(SpecText("one.toml", spec, "toml"), options)[0], options)
    after = autoscheduler.schedule(before)
    assert_sound(after)
    assert any(isinstance(n, Vref) for n in after.unique())


def places(machine: str, stride: int, guard: str = "") -> LoopProgram:
    """Y[o y x] of X[c stride·y stride·x] and F[o c]: a product whose columns are the places of a picture."""
    add = f"(incf (aref Y o y x) (* (aref X c (* {stride} y) (* {stride} x)) (aref F o c)))"
    text = f"""(for o 0 M 1 serial (for c 0 C 1 serial (for y 0 H 1 serial (for x 0 W 1 serial {f'(if {guard} ({add}))' if guard else add}))))"""
    extents = "H_in W_in" if guard else f"(* {stride} H) (* {stride} W)"
    return program(text,
                   f"""(size M) (size C) (size H) (size W) {'(size H_in) (size W_in)' if guard else ''} (buffer X i32 (C {extents}) (0 1 2) in)
 (buffer F i32 (M C) (0 1) in) (buffer Y i32 (M H W) (0 1 2) inout)""", MACHINES[machine])


@pytest.mark.slice(2)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.slow
def test_the_tiles_of_small_pictures_are_of_several_lines(machine: str) -> None:
    before = places(machine, 1)
    after = scheduled(before)
    text = " ".join(show(taken(after)).split())
    if machine == "neon":                # whose tiles are of 8 columns
        assert "specialize" not in text
    else:
        narrow, lines = {"avx512": (128, 4), "avx2": (64, 2)}[machine]
        assert f"(specialize o (and (< W {narrow}) (<= {lines} H)) l)" in text
        assert "(fuse yli xli)" in text
    assert_same(before, after, ((3, 2, 5, 9), (9, 3, 3, 9), (9, 3, 4, 8), (8, 2, 1, 130), (2, 2, 9, 127), (2, 0, 4, 4)))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.slow
def test_conditions_on_every_second_place_end_loops(machine: str) -> None:
    before = places(machine, 2, "(and (< (* 2 y) H_in) (< (* 2 x) W_in))")
    after = scheduled(before)
    asked = [n for n in after.unique() if isinstance(n, If) and len(n.then) == 1 and isinstance(n.then[0], Incf)]
    assert not asked                     # around single places, as there is no loop over them
    assert_same(before, after, ((3, 2, 5, 9, 9, 17), (9, 2, 5, 9, 10, 18), (9, 2, 5, 9, 3, 4), (2, 1, 4, 35, 7, 66),
                                (2, 1, 4, 35, 0, 0), (1, 1, 2, 140, 3, 200)))


@pytest.mark.slow
def test_the_pixels_of_a_pointwise_convolution_are_one_loop() -> None:
    """So whole vectors of pixels are stored, however short the lines of an image are."""
    before = program("""(for i 0 M 1 serial (for j 0 H 1 serial (for k 0 W 1 serial (for p 0 C 1 serial
 (incf (aref Y i j k) (* (aref F i p) (aref X p j k)))))))""",
                     """(size M) (size C) (size H) (size W) (buffer X f32 (C H W) (0 1 2) in) (buffer F f32 (M C) (0 1) in)
 (buffer Y f32 (M H W) (0 1 2) inout)""", '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')
    after = autoscheduler.schedule(before)
    assert "(fuse j k)" in show(after)
    assert_same(before, after, ((0, 0, 0, 0), (3, 4, 5, 7), (9, 40, 7, 7), (17, 70, 3, 30)))


def test_filters_and_not_phases_are_the_rows_of_tiles() -> None:
    """Y[o a y x] of X[c h w] and F[o c 2*p+a q]: of rows, the longest fill the register tile, wherever they are."""
    order = {"first": ("o 0 M", "a 0 2"), "last": ("a 0 2", "o 0 M")}
    heights = {}
    for name, (one, other) in order.items():
        text = (f"(for {one} 1 serial (for {other} 1 serial (for c 0 C 1 serial (for y 0 H 1 serial (for x 0 W 1 serial (for p 0 2 1 serial (for q 0 3 1 serial"
                " (incf (aref Y o a y x) (* (aref X c (+ y p) (+ x q)) (aref F o c (+ (* 2 p) a) q))))))))))")
        after = scheduled(program(text, """(size M) (size C) (size H) (size W) (buffer X f32 (C (+ H 1) (+ W 2)) (0 1 2) in)
 (buffer F f32 (M C 4 3) (0 1 2 3) in) (buffer Y f32 (M 2 H W) (0 1 2 3) inout)""", MACHINES["avx2"]))
        heights[name] = {loop.hi.value for loop in loops_in(after) if loop.mark == "unroll" and loop.name.startswith("o") and isinstance(loop.hi, Const)}
    assert heights["first"] == heights["last"] == {6}


def test_the_taps_of_a_window_as_large_as_an_image_are_sums_along_its_lines() -> None:
    """W[c k l] of X[c h w] and G[c h w], the gradient of the weights of a depthwise convolution: lanes lie along w."""
    inside = "(and (and (<= 0 (- (+ k q) 1)) (< (- (+ k q) 1) H)) (and (<= 0 (- (+ l r) 1)) (< (- (+ l r) 1) W)))"
    text = (f"(for c 0 C 1 serial (for k 0 3 1 serial (for l 0 3 1 serial (for q 0 H 1 serial (for r 0 W 1 serial (if {inside}"
            " ((incf (aref F c k l) (* (aref X c (- (+ k q) 1) (- (+ l r) 1)) (aref G c q r)))))))))) ")
    before = program(text, """(size M) (size C) (size H) (size W) (buffer X f32 (C H W) (0 1 2) in) (buffer G f32 (C H W) (0 1 2) in)
 (buffer F f32 (C 3 3) (0 1 2) inout)""", MACHINES["avx2"])
    after = scheduled(before)
    along = {n.buffer for n in after.unique() if isinstance(n, Vref)}
    assert {"X", "G"} <= along
    assert_same(before, after, ((1, 0, 0, 0), (1, 1, 1, 1), (1, 3, 5, 4), (1, 2, 3, 17), (1, 1, 9, 40)))
