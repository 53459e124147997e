"""Sums whose first part sets what a nest set to nothing before: random tiles of them, and what the plan makes of a
convolution."""
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
SIZES = ((0, 0, 0), (1, 1, 1), (3, 5, 2), (4, 0, 3), (7, 9, 8))


def tiled(text: str, seed: int) -> LoopProgram | None:
    """The product with random tiles and sums that begin in them; None where a step is refused."""
    rng = random.Random(seed)
    node = program(text)
    try:
        for loop in ("i", "j", "p", "io", "ji")[:rng.randrange(2, 6)]:
            node = script.apply(node, [("split", loop, str(pick(rng, [2, 3, 4])), pick(rng, ["min", "min", "pad"]))])
        nest = [loop.name for loop in loops_in(node) if loop.name not in ("a", "b")]
        order = rng.sample(nest, len(nest))
        node = script.apply(node, [("reorder", *order)])
        at = rng.randrange(len(order))
        axes = [name for name in order[at:] if name[0] in "ij"]
        return script.apply(node, [("stage", order[at], "C", "begin", "scratch", *axes)])
    except CatenError:
        return None


@pytest.mark.parametrize("text", [PRODUCT, LEFT_OUT])
@pytest.mark.slow
def test_random_tiles_keep_the_meaning(text: str, nightly: bool) -> None:
    begun = 0
    for seed in range(1000 if nightly else 150):
        after = tiled(text, seed)
        if after is not None:
            begun += 1
            assert_sound(after)
            assert_same(program(text), after, SIZES, seed)
    assert begun > 15


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
