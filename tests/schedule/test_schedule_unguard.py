"""Products of zeros without their conditions: what is not finite gives what it gave."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from schedule_nets import arguments, program

from caten.loop.statements import If, LoopProgram
from caten.schedule import script
from caten.semantics.interpret import run

WINDOWS = """(for i 0 N 1 serial (for k 0 3 1 serial (if (and (<= 0 (- (+ i k) 1)) (< (- (+ i k) 1) N))
 ((incf (aref v i) (* (aref u (- (+ i k) 1)) (aref R k 0)))))))"""
STEPS = "(schedule (split i 4 pad) (reorder io k ii) (stage k u read stack k ii) (stage k v partial register ii) (unguard io u_tile) (vectorize ii))"
SPECIAL = (float("inf"), float("-inf"), float("nan"), 3e38, -0.0)


@pytest.mark.parametrize(("value", "place"), tuple(product(SPECIAL, ("u first", "u last", "R 0", "R 1", "R 2", "R 3"))))
def test_what_is_not_finite_gives_what_it_gave(value: float, place: str) -> None:
    before = program(WINDOWS)
    after = script.apply(before, script.parse_schedule(STEPS).steps, verify=True)
    results = []
    for node in (before, after):
        given = arguments(node, {"M": 1, "N": 7, "K": 1}, 1)
        name, where = place.split()
        if name == "u":
            given["u"][0 if where == "first" else -1] = value
        else:
            given["R"][int(where), 0] = value
        run(node, given)
        results.append(given["v"])
    assert np.array_equal(results[0], results[1], equal_nan=True)


TAPS = """(for k 0 3 1 serial (for i 0 N 1 serial (if (and (<= 0 (- (+ i k) 1)) (< (- (+ i k) 1) N))
 ((incf (aref S k 0) (* (aref u (- (+ i k) 1)) (aref V 0 i 0)))))))"""
OF_TWO_TILES = """(schedule (split i 4 pad) (split k 3) (stage ko V read scratch io ii) (stage ki u read scratch (io ii ki))
 (stage io S partial register) (unguard ko u_tile))"""


def sums_of_tests(node: LoopProgram) -> list[str]:
    return [str(n.cond) for n in node.unique() if isinstance(n, If) and "_sum" in str(n.cond)]


def assert_same_sums(before: LoopProgram, after: LoopProgram, value: float, place: tuple[str, int]) -> None:
    """Both give the same sums where one element is this value."""
    results = []
    for node in (before, after):
        given = arguments(node, {"M": 1, "N": 7, "K": 1}, 1)
        name, where = place
        (given[name] if name == "u" else given[name][0, :, 0])[where] = value
        run(node, given)
        results.append(given["S"])
    assert np.allclose(results[0], results[1], equal_nan=True)


@pytest.mark.parametrize(("value", "place"), [(0.0, ("u", 0)), *product(SPECIAL, (("u", 0), ("u", -1), ("V", 0), ("V", -1)))])
def test_conditions_for_which_either_tile_holds_zeros_go(value: float, place: tuple[str, int]) -> None:
    """Seven elements in blocks of four: behind them lies a zero of V's tile, beside what u's tile holds for the first tap."""
    before = program(TAPS)
    after = script.apply(before, script.parse_schedule(OF_TWO_TILES).steps, verify=True)
    (cond,) = sums_of_tests(after)
    assert [name for name in ("u_tile_sum", "V_tile_sum") if name in cond] == ["u_tile_sum", "V_tile_sum"]
    assert_same_sums(before, after, value, place)


RESTARTED = """(schedule (split i 4 pad) (split k 3) (reorder ko io ii ki) (stage io V read scratch io ii)
 (stage io u read scratch (io ii ki)) (stage io S partial register ki) (unguard io u_tile))"""


@pytest.mark.parametrize(("value", "place"), [(0.0, ("u", 0)), *product(SPECIAL, (("u", 0), ("u", -1), ("V", 0), ("V", -1)))])
def test_sums_that_begin_before_the_loop_are_tested_behind_it(value: float, place: tuple[str, int]) -> None:
    """No operand is tested: sums that are not finite are added up again with the conditions."""
    before = program(TAPS)
    after = script.apply(before, script.parse_schedule(RESTARTED).steps, verify=True)
    (cond,) = sums_of_tests(after)
    assert "S_part_sum" in cond
    assert "tile_sum" not in cond
    assert_same_sums(before, after, value, place)
