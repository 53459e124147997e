"""Sums whose first part sets what a nest set before, and whose last part is mapped as a nest did behind: random tiles
of them, and what the plans make of a convolution and of a product."""
from __future__ import annotations

import random

import pytest
from schedule_nets import assert_same, assert_sound, pick, program

from caten.core.text import show
from caten.errors import CatenError
from caten.loop.statements import LoopProgram
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import loops_in

PRODUCT = ("(for a 0 M 1 serial (for b 0 K 1 serial (setf (aref C a b) 0.0)))"
           "(for i 0 M 1 serial (for j 0 K 1 serial (for p 0 N 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))")
LEFT_OUT = PRODUCT.replace("(incf", "(if (< (+ i (* 2 j)) M) ((incf").replace("(aref B p j))))))",
                                                                              "(aref B p j))))))))")
STARTED = PRODUCT.replace("0.0)))", "(aref w a))))")
RESCALED = PRODUCT.replace("0.0)))", "(* 0.5 (aref C a b)))))")
EPILOGUE = ("(for r 0 M 1 serial (for q 0 K 1 serial (let t f32 (+ (aref C r q) (aref w r)))"
            " (setf (aref C r q) (* t t))))")


def in_blocks(text: str) -> str:
    """The same for blocks of four rows, in a loop around all nests."""
    for row in "air":
        text = text.replace(f"(for {row} 0 M", f"(for {row} 0 (min (- M (* 4 z)) 4)")
        text = text.replace(f"(aref C {row}", f"(aref C (+ (* 4 z) {row})").replace(f"(aref A {row}", f"(aref A (+ (* 4 z) {row})")
        text = text.replace(f"(aref w {row})", f"(aref w (+ (* 4 z) {row}))")
    return f"(for z 0 (floordiv (+ M 3) 4) 1 serial {text})"


SIZES = ((0, 0, 0), (1, 1, 1), (3, 5, 2), (4, 0, 3), (7, 9, 8))


def tiled(text: str, seed: int, how: str) -> LoopProgram | None:
    """The product with random tiles and sums that begin in them; None where a step is refused."""
    rng = random.Random(seed)
    node = program(text)
    try:
        for loop in ("i", "j", "p", "io", "ji")[:rng.randrange(2, 6)]:
            node = script.apply(node, [("split", loop, str(pick(rng, [2, 3, 4])), pick(rng, ["min", "min", "pad"]))])
        nest = [loop.name for loop in loops_in(node) if loop.name not in ("a", "b", "r", "q", "z")]
        order = rng.sample(nest, len(nest))
        node = script.apply(node, [("reorder", *order)])
        at = rng.randrange(len(order))
        axes = [name for name in order[at:] if name[0] in "ij"]
        return script.apply(node, [("stage", order[at], "C", how, "scratch", *axes)])
    except CatenError:
        return None


@pytest.mark.slice(8)
@pytest.mark.parametrize(("text", "how"), [
    (PRODUCT, "begin"), (LEFT_OUT, "begin"), (STARTED, "begin"), (RESCALED, "begin"), (in_blocks(RESCALED), "begin"),
    (PRODUCT + EPILOGUE, "finish"), (LEFT_OUT + EPILOGUE, "finish"), (STARTED + EPILOGUE, "finish"),
    (in_blocks(PRODUCT), "begin"), (in_blocks(STARTED), "begin"), (in_blocks(PRODUCT + EPILOGUE), "finish"),
    (in_blocks(LEFT_OUT + EPILOGUE), "finish"), (in_blocks(STARTED + EPILOGUE), "finish")])
@pytest.mark.slow
def test_random_tiles_keep_the_meaning(text: str, how: str, nightly: bool) -> None:
    begun = 0
    for seed in range(1000 if nightly else 60):
        after = tiled(text, seed, how)
        if after is not None:
            begun += 1
            assert_sound(after)
            assert_same(program(text), after, SIZES, seed)
    assert begun > (15 if nightly else 6)


@pytest.mark.parametrize(("K", "stays"), [("C", True), ("4", False)])
@pytest.mark.slow
def test_a_convolution_sets_its_result_once(K: str, stays: bool) -> None:
    text = f"""(for z 0 M 1 serial (for x 0 W 1 serial (setf (aref Y z x) 0.0)))
 (for o 0 M 1 serial (for x_2 0 W 1 serial (for c 0 {K} 1 serial (for q 0 3 1 serial
 (incf (aref Y o x_2) (* (aref X c (+ x_2 q)) (aref F o c q)))))))"""
    before = program(text,
                     f"""(size M) (size C) (size W) (buffer X f32 ({K} (+ W 2)) (0 1) in) (buffer F f32 (M {K} 3) (0 1 2) in)
 (buffer Y f32 (M W) (0 1) out)""", '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')
    after = autoscheduler.schedule(before)
    assert "Y begin register" in show(after)
    assert ("z" in [loop.name for loop in loops_in(after)]) == stays
    assert_sound(after)
    assert_same(before, after, ((0, 0, 0), (3, 0, 5), (3, 9, 8), (9, 40, 33)))


@pytest.mark.slow
def test_an_epilogue_is_applied_to_the_register_tile() -> None:
    """Also its other output is stored there, and no nest passes over the result again."""
    before = program("""(for a 0 M 1 serial (for b 0 N 1 serial (setf (aref Y a b) 0.0)))
 (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref Y i j) (* (aref X i p) (aref W p j))))))
 (for r 0 M 1 serial (for s 0 N 1 serial (let t f32 (+ (* (aref Y r s) (aref D r)) (aref B s)))
  (setf (aref Z r s) t) (setf (aref Y r s) (+ (max t 0.0) (aref R r s)))))""",
                     """(size M) (size N) (size K) (buffer X f32 (M K) (0 1) in) (buffer W f32 (K N) (0 1) in)
 (buffer B f32 (N) (0) in) (buffer D f32 (M) (0) in) (buffer R f32 (M N) (0 1) in) (buffer Z f32 (M N) (0 1) out)
 (buffer Y f32 (M N) (0 1) out)""",
                     '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')
    after = autoscheduler.schedule(before)
    assert "Y finish register" in show(after)
    assert "(vectorize jii_fei)" in show(after)                     # masked, at the edge of the result
    packed = script.apply(before, [("split", "i", "4", "pad"), ("split", "j", "8", "pad"), ("split", "p", "3", "min"),
                                   ("reorder", "po", "io", "jo", "pi", "ii", "ji"),
                                   ("stage", "pi", "Y", "finish", "register", "ii", "ji")])
    for each in (after, packed):
        assert_sound(each)
        assert_same(before, each, ((0, 0, 0), (3, 5, 0), (3, 0, 5), (5, 17, 7), (9, 40, 33)))


@pytest.mark.slow
def test_threads_share_the_panels_of_a_small_product_and_of_its_epilogue() -> None:
    before = program("""(for a 0 M 1 serial (for b 0 N 1 serial (setf (aref Y a b) 0.0)))
 (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref Y i j) (* (aref X i p) (aref W p j))))))
 (for r 0 M 1 serial (for s 0 N 1 serial (setf (aref Y r s) (max (aref Y r s) (aref B s)))))""",
                     """(size M) (size N) (size K) (buffer X f32 (M K) (0 1) in) (buffer W f32 (K N) (0 1) in)
 (buffer B f32 (N) (0) in) (buffer Y f32 (M N) (0 1) out)""",
                     '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true () true))')
    after = autoscheduler.schedule(before)
    assert "(<= (* (* M N) K) 16777216)" in show(after)
    assert ("jno", "parallel") in [(loop.name, loop.mark) for loop in loops_in(after)]
    assert_sound(after)
    assert_same(before, after, ((30, 128, 3), (7, 150, 130), (1, 129, 140)))


@pytest.mark.slow
def test_an_epilogue_is_applied_to_the_tiles_of_a_convolution() -> None:
    before = program("""(for z 0 M 1 serial (for x 0 W 1 serial (setf (aref Y z x) 0.0)))
 (for o 0 M 1 serial (for x_2 0 W 1 serial (for c 0 C 1 serial (for q 0 3 1 serial
 (if (and (<= 0 (- (+ x_2 q) 1)) (< (- (+ x_2 q) 1) W))
  ((incf (aref Y o x_2) (* (aref X c (- (+ x_2 q) 1)) (aref F o c q)))))))))
 (for r 0 M 1 serial (for l 0 W 1 serial (setf (aref Y r l) (max (+ (* (aref Y r l) (aref S r)) (aref D r)) 0.0))))""",
                     """(size M) (size C) (size W) (buffer X f32 (C W) (0 1) in) (buffer F f32 (M C 3) (0 1 2) in)
 (buffer S f32 (M) (0) in) (buffer D f32 (M) (0) in) (buffer Y f32 (M W) (0 1) out)""",
                     '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')
    after = autoscheduler.schedule(before)
    assert all(text in show(after) for text in ("Y finish register", "(unguard ", "(vectorize x_2i_fei)"))
    assert_sound(after)
    assert_same(before, after, ((0, 0, 0), (3, 0, 5), (3, 9, 8), (9, 40, 33)))
