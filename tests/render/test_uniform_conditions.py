"""A choice between two loads by one condition for all lanes is a branch: a masked load of lanes that are off is slow where no page is."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.program import resolve
from caten.core.text import read
from caten.loop.statements import LoopProgram
from caten.render.cstyle import CStyle

CHOICE = "(where (splat 8 (< i 1)) (vref X 8 ((+ i 1) j) -1 {yes}) (vref X 8 ((- i 1) j) -1 {no}))"
TAIL = "(< (ramp 8 j 1) (splat 8 N))"


def text(yes: str, no: str) -> str:
    value = CHOICE.format(yes=yes, no=no)
    program = resolve(read(f"(loop P (buffer X f32 (M N) (0 1) in) (buffer Y f32 (M N) (0 1) out) (size M) (size N) (kernel main (for i 0 M 1 serial "
                           f"(for j 0 N 8 serial (setf (vref Y 8 (i j) -1 {TAIL}) {value})))))")[0])
    assert isinstance(program, LoopProgram)
    (line,) = re.findall(r"ct_store_if_f32x8\(.*", CStyle().render(program).split("main(")[1])
    return line


def test_arms_whose_masks_are_the_condition_have_none() -> None:
    line = text("(splat 8 (< i 1))", "(not (splat 8 (< i 1)))")
    assert line.count("ct_load_f32x8(") == 2
    assert "i < 1 ? ct_load_f32x8(X + (i + 1) * N + j) : ct_load_f32x8(X + (i - 1) * N + j)" in line


def test_what_else_a_mask_says_stays() -> None:
    line = text(f"(and {TAIL} (splat 8 (< i 1)))", f"(and (not (splat 8 (< i 1))) {TAIL})")
    assert line.count("ct_load_if_f32x8(") == 2
    assert "i < 1 ? ct_load_if_f32x8(X + (i + 1) * N + j, ct_until_i32x8(j, N)) : ct_load_if_f32x8(X + (i - 1)" in line
    assert text(TAIL, "(not (splat 8 (< i 1)))").count("ct_load_if_f32x8(") == 1


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
def test_shifts_around_the_edges(runtime: str) -> None:
    def heat(u: Any) -> Any:
        for _ in range(2):
            u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
        return u
    for shape in ((1, 1), (2, 40), (17, 37), (64, 64)):
        u = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(caten.op(heat, runtime=runtime)(u), heat(u), rtol=1e-5, atol=1e-6)
