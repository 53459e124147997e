"""Programs before and after raising, and fused: the same results by the meaning of each level."""
from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from test_structure_families import APART, FAMILIES, OPTIONS

from caten import driver, loading
from caten.core.program import resolve
from caten.core.text import read
from caten.frontend.op import OpProgram, in_loops
from caten.frontend.spec_files import SpecText
from caten.loop import bounds_checks
from caten.semantics import interpret, tensor_meaning
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.values import TensorProgram
from index_programs import Sizes, variants
from random_programs import random_program

# Programs whose checks may fail, that write what they read, or that stay nests.
BODIES = {
    "a gather that may fail": ("(buffer k i64 (N) (0) in)", "(for i 0 N 1 serial (if (not (and (<= 0 (aref k i)) (< (aref k i) N))) ((fail 1))) (setf (aref y i) (aref x (aref k i))))"),
    "a recurrence": ("", "(for i 1 N 1 serial (setf (aref y i) (+ (* 0.5 (aref y (- i 1))) (aref y i))))"),
    "in place, shifted": ("", "(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (exp (aref y i)))) (for i_2 1 N 1 serial (setf (aref y i_2) (aref t (- i_2 1))))"),
    "reversed in place": ("", "(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (aref y i))) (for i_2 0 N 1 serial (setf (aref y i_2) (+ (aref x i_2) (aref t (- (- N i_2) 1)))))"),
    "a running total": ("", "(local s f32 () register) (setf (aref s) 0.0) (for i 0 N 1 serial (incf (aref s) (aref x i)) (setf (aref y i) (aref s)))"),
    "bins": ("(buffer k i64 (N) (0) in)", "(for i 0 N 1 serial (if (not (and (<= 0 (aref k i)) (< (aref k i) N))) ((fail 1))) (incf (aref y (aref k i)) (aref x i)))"),
}


def arguments(program: Any, seed: int) -> dict[str, Any]:
    """Random sizes, and arrays whose elements are between 0.5 and 1.5, indices between -1 and 5."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(n) for name, n in zip(program.sizes, rng.integers(1, 5, len(program.sizes)), strict=True)}
    found: dict[str, Any] = dict(sizes)
    for b in program.buffers.values():
        shape = [int(tensor_meaning.element(e, {n: np.int64(v) for n, v in sizes.items()}, {})) for e in b.axes]
        found[b.name] = rng.integers(-1, 5, shape) if b.type == "i64" else (rng.random(shape) + 0.5).astype(np.float32)
    return found


def agree(op: OpProgram, values: TensorProgram, seed: int) -> int:
    """Compare the three levels; the check that fails, or 0. Where several fail, that of values may be another one than that of the loops as written."""
    given = arguments(op, seed)
    ways = [(interpret.run, op), (tensor_meaning.run, values), (interpret.run, lower(values))]
    results = []
    for run, program in ways:
        own = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
        results.append((run(program, own), own))                               # type: ignore[operator]
    rows = [row for row, _ in results]
    assert rows[1] == rows[2], rows
    assert (rows[0] > 0) == (rows[1] > 0), rows
    for _, other in results[1:] if not rows[0] else []:
        for b in op.buffers.values():
            np.testing.assert_allclose(other[b.name], results[0][1][b.name], rtol=2e-4, atol=1e-5)
    return rows[0]


def toml_of(inputs: str, outputs: str, code: str) -> str:
    """A spec of a body over whole arrays."""
    return (f'[composite]\nname = "T"\ninputs = ["{inputs}"]\noutputs = ["{outputs}"]\n[implementation]\nlang = "python"\n'
            f'code = """\n{code}\n"""\n')


def programs(spec: SpecText) -> tuple[OpProgram, TensorProgram]:
    (op,) = loading.load_programs(spec, OPTIONS)
    values = driver.advance(op, "tensor", OPTIONS)
    assert isinstance(op, OpProgram)
    assert isinstance(values, TensorProgram)
    return op, values


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    params, body = BODIES[name]
    op = resolve(read(f"(op T (size N) {params} (buffer x f32 (N) (0) in) (buffer y f32 (N) (0) inout) (check 1 \"outside\") (body {body}))")[0])
    assert isinstance(op, OpProgram)
    failed = [agree(op, raise_op(op), seed) for seed in range(12)]
    assert ("fail" in body) == any(failed)
    assert not all(failed)


def test_families_in_random_spellings(nightly: bool) -> None:
    families = list((FAMILIES | APART).values())
    rng = random.Random(7)
    for n in range(500 if nightly else 15):
        text, _ = rng.choice(families)
        told, spec = variants(text, 2, seed=n)[1]
        if "numbers" not in told:                                              # too large to be interpreted
            agree(*programs(spec), n)


@pytest.mark.slow
def test_random_programs(nightly: bool) -> None:
    """5,000 at night. Those with indices fail, or do not."""
    failed = Counter[bool]()
    for n in range(5000 if nightly else 25):
        text, square, _ = random_program(n)
        _, spec = variants(text, 2, seed=n, sizes=Sizes(square, range(1, 6)))[1]
        op, values = programs(spec)
        failed[agree(bounds_checks.add_checks(in_loops(op)), values, n) > 0] += 1
    assert failed[False] > failed[True] > 0


def test_elements_chosen_by_a_reduction_of_their_row() -> None:
    """The total is in a scalar, the row in an array of the iteration; both are read in one index, in any order."""
    for n, chosen in enumerate(("Z[i, k]", "Z[i, k] + Z[i, L - 1 - k] * Z[i, k // 2]", "Z[i, k // 2] + k", "k + Z[i, k // 2]",
                                "Z[i, (k + Z[i, k // 2].astype(int)) // 9]")):
        text = toml_of("X{float}[M L]", "Y{float}[M]", f"Z = np.exp(X)\nk = (Z < 0).sum(axis=1)\ni = np.arange(M)\nreturn ({chosen}).astype(np.float32)")
        op, values = programs(SpecText("<text>", text, "toml"))
        assert agree(op, values, n) == 0
