"""What is scattered at an index that can be inverted is a sum for each element, with the same results."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.core.expr import Const, Expr, Var, index
from caten.core.node import substitute
from caten.core.program import resolve
from caten.core.text import read
from caten.loop import verifier
from caten.loop.affine import canonical
from caten.semantics import interpret
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.lower import lower
from caten.tensor.values import Compute, Reduce, Scatter, TensorProgram

SIZES = [{"N": n, "K": k, "B": b, "S": s} for n, k, b, s in (
    (0, 3, 5, 1), (1, 1, 1, 1), (4, 3, 9, 2), (5, 4, 11, 3), (3, 5, 4, 2), (7, 2, 40, 4), (2, 6, 3, 1))]
TARGET = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () false true))'


def program(axes: str, at: str, cond: str = "true", expr: str = "(* (read x i) (read w j))", shape: str = "B", start: str = "0.0",
            fn: str = "add", source: str = "v0") -> TensorProgram:
    """y[index] += expr over axes where the index is inside."""
    parts = [f"(and (<= 0 {i}) (< {i} {e}))" for i, e in zip(split(at), split(shape), strict=True)]
    inside = cond
    for part in reversed(parts):
        inside = f"(and {part} {inside})"
    outer = " ".join(f"({name} {e})" for name, e in zip("ijkl", split(shape), strict=False))
    return resolve(read(
        f"(tensor T (size N) (size K) (size B) (size S) (buffer x f32 ((* 40 (+ N K))) (0) in) (buffer w f32 ((* 40 (+ N K))) (0) in) "
        f"(buffer y f32 ({shape}) ({' '.join(str(n) for n in range(len(split(shape))))}) {'out' if source == 'v0' else 'inout'}) {TARGET} "
        f"(define v0 (compute f32 ({outer}) {start})) "
        f"(define v1 (scatter f32 {source} ({shape}) ({axes}) {fn} ({at}) {inside} {expr})) (output y v1))")[0])


def split(forms: str) -> list[str]:
    """The forms of a list, as texts."""
    found, depth, start = [], 0, 0
    for n, c in enumerate(forms + " "):
        depth += (c == "(") - (c == ")")
        if c == " " and not depth:
            found.append(forms[start:n])
            start = n + 1
    return [f for f in found if f]


def extent(e: Expr, sizes: dict[str, int]) -> int:
    form = canonical(substitute(e, {Var(name, "i64"): index(n) for name, n in sizes.items()}))
    assert isinstance(form, Const)
    return int(form.value)


def is_gathered(made: TensorProgram) -> bool:
    return not any(isinstance(d.value, Scatter) for d in ready_for_fusion(made).definitions)


GATHERED: dict[str, dict[str, str]] = {
    "a window": {"axes": "(i N) (j K)", "at": "(+ i j)"},
    "a window backwards": {"axes": "(i N) (j K)", "at": "(+ (- i j) 2)"},
    "a window of known length": {"axes": "(i N) (j 3)", "at": "(- (+ i j) 1)"},
    "steps of two": {"axes": "(i N) (j K)", "at": "(- (+ (* 2 i) j) 1)"},
    "steps of two, four taps": {"axes": "(i N) (j 4)", "at": "(- (+ (* 2 i) j) 1)"},
    "steps of two, from the second tap on": {"axes": "(i N) (j 5)", "at": "(- (+ (* 2 i) j) 2)"},
    "steps of three": {"axes": "(i N) (j K)", "at": "(- (+ (* 3 i) j) 2)"},
    "steps behind an edge": {"axes": "(i N) (j 5)", "at": "(+ (+ (* 3 i) j) 1)"},
    "a product in windows that do not overlap": {"axes": "(i N) (j 2)", "at": "(+ (* 2 i) j)", "shape": "(* 2 N)"},
    "windows that do not overlap": {"axes": "(i N) (j 2)", "at": "(+ (* 2 i) j)", "shape": "(* 2 N)", "expr": "(read x i)"},
    "a product in windows with a step between them": {"axes": "(i N) (j 2)", "at": "(+ (* 3 i) j)"},
    "groups": {"axes": "(i N) (j K)", "at": "(+ (* K i) j)", "shape": "(* N K)"},
    "groups of three levels": {"axes": "(i N) (j K) (k 3)", "at": "(+ (+ (* (* 3 K) i) (* 3 j)) k)", "shape": "(* (* 3 N) K)"},
    "a sum within groups": {"axes": "(i N) (j K) (k S)", "at": "(+ (* K i) j)", "shape": "(* N K)", "expr": "(* (read x i) (* (read w j) (cast f32 k)))"},
    "an image in steps": {"axes": "(i 3) (j N) (k 3) (l K)", "at": "(- (+ (* 2 i) k) 1) (+ (* 2 j) l)", "shape": "6 B",
                          "expr": "(* (read x (+ (* N i) j)) (read w (+ (* K k) l)))"},
    "a condition besides": {"axes": "(i N) (j K)", "at": "(+ i j)", "cond": "(< i (+ j 2))"},
    "added to something": {"axes": "(i N) (j K)", "at": "(+ i j)", "start": "3.0"},
}
SCATTERED: dict[str, dict[str, str]] = {
    "places between elements": {"axes": "(i N)", "at": "(* 2 i)", "expr": "(read x i)"},
    "windows with a step between them": {"axes": "(i N) (j 2)", "at": "(+ (* 3 i) j)", "expr": "(read x i)"},
    "an unknown step": {"axes": "(i N) (j K)", "at": "(+ (* S i) j)"},
    "a diagonal": {"axes": "(i N)", "at": "i i", "shape": "B B", "expr": "(read x i)"},
    "one row": {"axes": "(i N) (j K)", "at": "2 j", "shape": "4 B"},
    "an array of the caller": {"axes": "(i N) (j K)", "at": "(+ i j)", "source": "y"},
    "a maximum": {"axes": "(i N) (j K)", "at": "(+ i j)", "fn": "max"},
    "a place that is read": {"axes": "(i N) (j K)", "at": "(max 0 (min (- B 1) (+ j (cast i64 (read x i)))))"},
}


@pytest.mark.parametrize("name", [*GATHERED, *SCATTERED])
def test_what_is_gathered(name: str) -> None:
    assert is_gathered(program(**GATHERED.get(name) or SCATTERED[name])) == (name in GATHERED)


@pytest.mark.parametrize("name", GATHERED)
def test_the_results_are_the_same(name: str) -> None:
    made = program(**GATHERED[name])
    scattered, gathered = lower(made), lower(made, BLOCKS)
    assert scattered.kernels != gathered.kernels
    verifier.verify(gathered)
    for sizes in SIZES:
        found = []
        for loops in (scattered, gathered):
            rng = np.random.default_rng(0)
            length = 40 * (sizes["N"] + sizes["K"])
            shape = next(b for b in loops.buffers.values() if b.name == "y").shape
            values: dict[str, Any] = {**sizes, "x": rng.integers(-9, 9, length).astype(np.float32), "w": rng.integers(-9, 9, length).astype(np.float32),
                                      "y": np.full([extent(e, sizes) for e in shape], 7, np.float32)}
            assert interpret.run(loops, values) == 0
            found.append(values["y"])
        np.testing.assert_array_equal(*found)


def test_windows_with_a_step_have_no_taps_that_are_skipped() -> None:
    """Four taps in steps of two are two for each phase, however wide the edge is."""
    for edge in (0, 1, 2, 3):
        made = ready_for_fusion(program("(i N) (j 4)", f"(- (+ (* 2 i) j) {edge})"))
        (total,) = [d.value for d in made.definitions if isinstance(d.value, Reduce)]
        assert [a.extent.value for a in total.over] == [2]
        assert [a.extent.value for a in total.axes if not a.extent.variables] == [2]


def test_a_sum_in_the_place_of_zeros_adds_none() -> None:
    last = ready_for_fusion(program("(i N) (j K)", "(+ i j)")).definitions[-1].value
    assert isinstance(last, Reduce)
    last = ready_for_fusion(program("(i N) (j K)", "(+ i j)", start="(read x i)")).definitions[-1].value
    assert isinstance(last, Compute)


def test_a_sum_is_over_the_part_of_the_window_in_a_phase() -> None:
    """A tap of every second place is one of (K + 1) // 2, of unknown sizes the window's and not the image's."""
    for made in (program("(i N) (j K)", "(+ (* 2 i) j)"), program("(j K) (i N)", "(+ (* 2 i) j)")):
        sums = [d.value for d in ready_for_fusion(made).definitions if isinstance(d.value, Reduce)]
        assert [a.extent.variables for s in sums for a in s.over] == [frozenset("K")]
