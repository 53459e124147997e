"""What an operator should give is the same whether the oracle is interpreted or, for large sizes, compiled."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caten
from caten.compiler import build
from caten.core.program import Reference
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import data, reference

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SIZES = {"gemm": "MKN", "softmax": "MN", "argmax": "MN", "quantize": "N", "prefix_sum": "N", "gemm_half": "MKN", "complex_multiply": "N", "gelu": "N"}


@pytest.mark.slice(4)
@pytest.mark.parametrize("name", SIZES)
def test_the_compiled_oracle_agrees_with_the_interpreted_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(runtime="numpy", use_cache=False)
    op = build([SpecText(name, (SAMPLES / f"{name}.toml").read_text(), "toml")], options).ops[0].without(Reference)
    arguments = data.arguments(op, {size: 7 + n for n, size in enumerate(SIZES[name])}, seed=3)
    interpreted = reference.expected_of(op, arguments, options, None)
    monkeypatch.setattr(reference, "INTERPRETED_STEPS", -1)
    monkeypatch.setattr("caten.semantics.interpret.run", None)                # this time it is C
    compiled = reference.expected_of(op, arguments, options, None)
    for output, values in interpreted.values.items():
        np.testing.assert_allclose(compiled.values[output], values, rtol=1e-14)
        np.testing.assert_allclose(compiled.bounds[output], interpreted.bounds[output], rtol=1e-9)
        np.testing.assert_array_equal(compiled.loose[output], interpreted.loose[output])


def test_without_a_compiler_it_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(runtime="numpy", use_cache=False, cc="no-such-compiler")
    op = build([SpecText("axpy", (SAMPLES / "axpy.toml").read_text(), "toml")], options).ops[0].without(Reference)
    monkeypatch.setattr(reference, "INTERPRETED_STEPS", -1)
    expected = reference.expected_of(op, {"N": 2, "a": np.float32(2), "x": np.ones(2, np.float32), "y": np.ones(2, np.float32)}, options, None)
    assert expected.values["y"].tolist() == [3, 3]


NEWTON = """
[composite]
name = "Root"
inputs = ["x{T}[N]"]
outputs = ["y{T}[N]"]

[composite.implementation]
lang = "python"
code = '''
for i in range(N):
    r = x[i] + 1
    for step in range(60):
        if abs(r * r - x[i]) > LIMIT * x[i]:
            r = (r + x[i] / r) / 2
    y[i] = r
'''

[composite.test]
code = "lambda x: np.sqrt(x)"
tolerance = TOLERANCE

[[composite.test.case]]
name = "roots"
instance = "x=float32[N]"
sizes = { N = 3 }
input = { x = [2.0, 3.0, 90000.0] }

[[composite.test.case]]
name = "nought"
instance = "x=float64[N]"
sizes = { N = 2 }
input = { x = [0.0, 0.0] }
"""


@pytest.mark.parametrize(("tolerance", "limit", "passed"), [("4", "3e-7", [True, True]), ("4", "1e-2", [False, True]), ("100000000", "1e-2", [True, True])])
def test_a_spec_states_a_tolerance(tolerance: str, limit: str, passed: list[bool]) -> None:
    cases = caten.test(NEWTON.replace("TOLERANCE", tolerance).replace("LIMIT", limit)).files[0].cases
    assert [c.passed for c in cases] == passed
    assert not any(o.loose for c in cases for o in c.outputs)


def test_integers_have_no_tolerance() -> None:
    spec = """
[composite]
name = "Twice"
inputs = ["k{int32}[N]"]
outputs = ["m{int32}[N]"]
[composite.implementation]
lang = "python"
code = "return k * 2"
[composite.test]
code = "lambda k: k * 2 + 1"
tolerance = 1000
[[composite.test.case]]
name = "three"
sizes = { N = 3 }
"""
    assert [c.status for c in caten.test(spec).files[0].cases] == ["wrong"]


GREATEST = """
[composite]
name = "Greatest"
inputs = ["A{float}[M N]"]
outputs = ["y{int64}[M]"]

[implementation]
lang = "python"
code = "return FORMULA(A * A + A, axis=1)"
"""


@pytest.mark.parametrize("function", ["np.argmax", "np.argmin", "np.nanargmax", "np.nanargmin"])
def test_where_the_greatest_of_computed_elements_is(function: str) -> None:
    """Sure if no other element is as great up to rounding: that it equals itself says nothing."""
    options = Options(runtime="numpy", use_cache=False)
    op = build([SpecText("greatest", GREATEST.replace("FORMULA", function), "toml")], options).ops[0]
    near = np.float32(1.1)
    rows = np.array([[3, 7, 0.1, 9], [1, 0.3, 5, 2], [near, near, near, near], [0, 0, 0, 0], [0, -1, 0, -1], [np.inf, 1, np.inf, 2], [np.inf] * 4], np.float32)
    if "nan" in function:
        rows = np.concatenate([rows, np.array([[np.nan, 2, np.nan, 1.5], [4, np.nan, 0.5, np.nan]], np.float32)])
    else:
        rows = np.concatenate([rows, np.array([[np.nan, 2, np.nan, 3], [4, 0.5, np.nan, np.nan]], np.float32)])
    arguments = {"M": len(rows), "N": 4, "A": rows, "y": np.zeros(len(rows), np.int64)}
    expected = reference.expected_of(op, arguments, options, None)
    loose = expected.loose["y"].astype(bool).tolist()
    assert loose == [False, False, True, False, True, False, False, False, False]
    want = getattr(np, function.removeprefix("np."))(rows * rows + rows, axis=1)
    sure = [n for n, is_loose in enumerate(loose) if not is_loose]
    np.testing.assert_array_equal(expected.values["y"][sure], want[sure])
