"""Products of zeros without their conditions: what is not finite gives what it gave."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from schedule_nets import arguments, program

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
