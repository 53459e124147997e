"""A map that finishes a product, but stores its elements at other places, is computed with the product."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.loop import verifier
from caten.semantics import interpret
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.fusion import is_contraction
from caten.tensor.lower import lower
from caten.tensor.values import Compute, Read, TensorProgram, reads_of

TARGET = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () false true))'
PHASES = "(read v0 (mod i 2) j (floordiv i 2))"


def program(expr: str, more: str = "(output y v1)", axes: str = "(i (* 2 N)) (j M)", shape: str = "(* 2 N) M", dtype: str = "f32") -> TensorProgram:
    """y of t[phase, j, n], the product of x[phase, n, p] and w[p, j]."""
    return resolve(read(
        f"(tensor T (size N) (size M) (size K) (buffer x f32 (2 N K) (0 1 2) in) (buffer w f32 (K M) (0 1) in) (buffer b f32 (M) (0) in) "
        f"(buffer c f32 ((* 2 N) M) (0 1) in) (buffer y {dtype} ({shape}) ({' '.join(str(n) for n in range(axes.count('(') - axes.count('(*')))}) out) "
        f"{'(buffer z f32 (2 M N) (0 1 2) out)' if 'output z' in more else ''} {TARGET} "
        f"(define v0 (reduce f32 ((i 2) (j M) (k N)) ((p K)) add true (* (read x i k p) (read w p j)))) "
        f"(define v1 (compute {dtype} ({axes}) {expr})) {more})")[0])


def is_early(made: TensorProgram) -> bool:
    """Is what reads the product a map over its axes, and the result a view of that?"""
    definitions = ready_for_fusion(made).definitions
    (total,) = [d.name for d in definitions if is_contraction(d.value)]
    maps = {d.name: d.value for d in definitions if isinstance(d.value, Compute)}
    finished = {name for name, value in maps.items() if {r.index for r in reads_of(value) if r.buffer == total} == {
        tuple([a.var for a in value.axes])}}
    return any(isinstance(value.expr, Read) and value.expr.buffer in finished for value in maps.values())


EARLY = {
    "of the element": f"(tanh {PHASES})",
    "with a bias": f"(max (+ {PHASES} (read b j)) 0.0)",
    "twice": f"(* {PHASES} (sigmoid {PHASES}))",
    "of an axis that keeps its place": f"(where (< j 2) {PHASES} 0.0)",
}
LATE: dict[str, dict[str, str]] = {
    "another array at the places of the result": {"expr": f"(* {PHASES} (read c i j))"},
    "the place itself": {"expr": f"(* {PHASES} (cast f32 i))"},
    "a view": {"expr": PHASES},
    "places that are axes": {"expr": "(tanh (read v0 i j k))", "axes": "(i 2) (j M) (k N)", "shape": "2 M N"},
    "two elements": {"expr": f"(* {PHASES} (read v0 0 j (floordiv i 2)))"},
    "a product that is an output": {"expr": f"(tanh {PHASES})", "more": "(output y v1) (output z v0)"},
    "a product that another value reads": {
        "expr": f"(tanh {PHASES})", "more": "(define v2 (compute f32 ((i 2) (j M) (k N)) (exp (read v0 i j k)))) (output y v1) (output z v2)"},
    "no float": {"expr": f"(cast i32 {PHASES})", "dtype": "i32"},
}


@pytest.mark.parametrize("name", [*EARLY, *LATE])
def test_which_maps_come_first(name: str) -> None:
    assert is_early(program(EARLY[name]) if name in EARLY else program(**LATE[name])) == (name in EARLY)


@pytest.mark.parametrize("name", EARLY)
def test_the_results_are_the_same(name: str) -> None:
    made = program(EARLY[name])
    late, early = lower(made), lower(made, BLOCKS)
    verifier.verify(early)
    for n, m, k in ((0, 2, 2), (1, 1, 1), (3, 4, 0), (5, 3, 2)):
        found = []
        for loops in (late, early):
            rng = np.random.default_rng(0)
            values: dict[str, Any] = {"N": n, "M": m, "K": k, **{a: rng.integers(-3, 4, s).astype(np.float32) for a, s in (
                ("x", (2, n, k)), ("w", (k, m)), ("b", m), ("c", (2 * n, m)))}, "y": np.zeros((2 * n, m), np.float32)}
            assert interpret.run(loops, values) == 0
            found.append(values["y"])
        np.testing.assert_array_equal(*found)
