"""Loops that are split where a condition ceases to hold, and register tiles that are jammed out of scalars."""
from __future__ import annotations

import re

import numpy as np
import pytest

import caten
from caten import compiler
from caten.frontend.spec_files import SpecText
from caten.options import Options

SUM = """[composite]
name = "Sum"
inputs = ["A{{float}}[M K]"]
outputs = ["w{{float}}[M]"]
[implementation]
code = "(dotimes (i M) (set acc 0.0) (dotimes (p K) {}) (setf (aref w i) acc))"
"""
ALL, SOME = "(incf acc (aref A i p))", "(when (and (< p 21) (< (* 2 i) (- K p))) (incf acc (aref A i p)))"
PRODUCT = """[composite]
name = "Product"
inputs = ["A{float}[M K]", "B{float}[K N]"]
outputs = ["C{float}[M N]"]
implementation = { lang = "python", code = "return A @ B" }
"""


def for_avx512(spec: str, **sizes: int) -> str:
    """The C text of a product, which this machine need not be able to run. It begins with the schedule."""
    return compiler.prepare([SpecText("f.toml", spec, "toml")], Options(config=(("MARCH", "x86_64_v4"),), binds=tuple(sizes.items()))).source


def schedule_for_avx512(spec: str, **sizes: int) -> str:
    return " ".join(for_avx512(spec, **sizes).split("*/")[0].replace("*", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize(("term", "steps", "sizes"), [
    (ALL, "(split p 8 pad) (partition po)", range(35)),
    (ALL, "(split p 8 pad) (split po 2 pad) (partition poo)", range(35)),
    (ALL, "(split i 4 pad) (split p 8 pad) (partition po)", range(20)),
    (SOME, "(partition p)", (0, 1, 20, 21, 22, 50)),
    (SOME, "(split p 4 pad) (partition po q)", (0, 1, 20, 21, 22, 50))])
def test_the_parts_are_the_whole_loop(term: str, steps: str, sizes: range) -> None:
    operator = caten.compile(SUM.format(term), schedule=f"(schedule {steps})")
    for k in sizes:
        for m in (0, 1, 3, 9):
            a = np.arange(1, m * k + 1, dtype=np.float32).reshape(m, k)
            kept = np.array([[term == ALL or (p < 21 and 2 * i < k - p) for p in range(k)] for i in range(m)], bool).reshape(m, k)
            np.testing.assert_array_equal(operator(a), np.where(kept, a, 0).sum(1, dtype=np.float32))


@pytest.mark.slow
def test_the_first_part_has_no_condition() -> None:
    source = caten.compile(SUM.format(ALL), schedule="(schedule (split p 8 pad) (partition po))").source
    first, rest = re.search(r"for \(int64_t po = 0; po < K >> 3;(.*)for \(int64_t poe = K >> 3;(.*?)\n\}", source, re.DOTALL).groups()  # type: ignore[union-attr]   # it is there
    assert "if" not in first
    assert "if" in rest


@pytest.mark.slow
def test_lanes_are_added_up_once() -> None:
    """The terms behind the last full vector of a dot product go into the accumulator of the others."""
    skinny = for_avx512(PRODUCT, N=4)
    tile = skinny[skinny.index("CT_UNROLL(6)"):]
    assert tile.index("ct_fold") > tile.index("ct_load_if")
    assert len(re.findall(r"ct_fold_add_f32x16", tile[:tile.index("C[")])) <= 1


@pytest.mark.slow
def test_an_output_that_is_first_set_to_zero_is_only_stored() -> None:
    """A product in place sets each element, tails included: nothing is filled before, and nothing read back."""
    operator = caten.compile(PRODUCT)
    draw = np.random.default_rng(1)
    for m, n, k in ((1, 1, 1), (2, 3, 1), (9, 33, 5), (13, 47, 20), (70, 5, 60), (24, 20, 200), (5, 300, 0), (0, 4, 3), (130, 19, 11)):
        a, b = draw.standard_normal((m, k), dtype=np.float32), draw.standard_normal((k, n), dtype=np.float32)
        c = np.full((m, n), np.nan, np.float32)
        np.testing.assert_allclose(operator(a, b, c), a @ b, rtol=1e-4, atol=1e-5)
    inplace = for_avx512(PRODUCT, K=20, N=47)
    kernel = inplace[:inplace.index("CT_API")]
    assert "C[" not in kernel
    assert not re.search(r"ct_load(_if)?_f32x16\(C \+", kernel)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "lanes"), [(13, 16), (16, 16), (27, 32), (31, 32)])
def test_the_last_columns_are_one_masked_vector_or_two(n: int, lanes: int) -> None:
    schedule = schedule_for_avx512(PRODUCT, N=n, M=80, K=60)
    assert f"(split i 8) (reorder j ii) (parallel io) (split j {lanes} pad)" in re.sub(r"_2", "", schedule)


@pytest.mark.slow
def test_a_single_row_has_several_accumulators_for_each_vector() -> None:
    schedule = schedule_for_avx512(PRODUCT, N=64, M=9, K=60)
    assert "(split pt 2) (stage pto C_partt tree register pti)" in schedule


@pytest.mark.slow
def test_an_operand_along_the_sum_is_transposed_in_registers() -> None:
    spec = PRODUCT.replace("[K N]", "[N K]").replace("A @ B", "A @ B.T")
    schedule = schedule_for_avx512(spec, N=64, M=40, K=64)
    assert "(transpose p_ri j_2_ri)" in schedule


@pytest.mark.slow
@pytest.mark.parametrize(("n", "transposed"), [(33, False), (41, False), (48, False), (40, True)])
def test_three_vectors_of_columns_are_one_tile_that_loads_each_once(n: int, transposed: bool) -> None:
    """Before the rows that they are multiplied with: C compilers would load a masked vector for each of these."""
    spec = PRODUCT.replace("[K N]", "[N K]").replace("A @ B", "A @ B.T") if transposed else PRODUCT
    steps = re.sub(r"_2", "", schedule_for_avx512(spec, N=n, M=30, K=60))
    assert "(split j 48 pad)" in steps
    assert (f"(hoist ii {'B_tile' if transposed else 'B'})" in steps) == (n < 48)                # 48 need no mask
    operator = caten.compile(spec)
    draw = np.random.default_rng(1)
    for m, k in ((1, 9), (8, 4), (30, 60), (11, 33)):
        a, b = draw.standard_normal((m, k), dtype=np.float32), draw.standard_normal((k, n), dtype=np.float32)
        c = np.full((m, n), np.nan, np.float32)
        operator(a, np.ascontiguousarray(b.T) if transposed else b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
