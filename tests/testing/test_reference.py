"""What an operator should give is the same whether the oracle is interpreted or, for large sizes, compiled."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caten.compiler import build
from caten.core.program import Reference
from caten.frontend.spec import SpecText
from caten.options import Options
from caten.testing import data, reference

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SIZES = {"gemm": "MKN", "softmax": "MN", "argmax": "MN", "quantize": "N", "prefix_sum": "N", "gemm_half": "MKN", "complex_multiply": "N", "gelu": "N"}


@pytest.mark.slice(2)
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
