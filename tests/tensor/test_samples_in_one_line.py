"""A sample in loops and its formula in NumPy's notation are the same values."""
from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.text import flat, form_of
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Define, FailIf, Output

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SAME = {
    "argmax": "return np.argmax(X, axis=1)",
    "axpy": "return a * x + y",
    "complex_multiply": "return xr * yr - xi * yi, xr * yi + xi * yr",
    "dot": "return np.sum(x * y)",
    "gelu": "return 0.5 * x * (1 + erf(x * np.sqrt(0.5)))",
    "gemm": "return C + A @ B",
    "gemm_batched": "return A @ X",
    "gemm_bias_relu": "return relu(X @ W + b)",
    "gemm_column": "return A @ B",
    "gemv": "return A @ x",
    "logic": "return (x & 255) ^ (y << 3) ^ ~(x >> 2), flag | ((x % 2 == 1) & ~(y < 0))",
    "max_rows": "return X.max(axis=1)",
    "maxpool": "return np.lib.stride_tricks.sliding_window_view(X, (2, 2), axis=(2, 3))[:, :, :2 * OH:2, :2 * OW:2].max(axis=(4, 5))",
    "mlp": "return relu(X @ V + a) @ W + b",
    "prefix_sum": "return np.cumsum(x)",
    "sin": "return np.sin(A)",
    "sincos": "return np.sin(np.cos(x))",
    "softmax": "E = np.exp(X - X.max(axis=1, keepdims=True)); return E * (1.0 / E.sum(axis=1, keepdims=True))",
    "sum_columns": "return X.sum(axis=0)",
    "sum_rows": "return X.sum(axis=1)",
    "transpose": "return A.T",
    "where": "return np.where(x > 0, a, b)",
}
# Which have other values, and why.
OTHERS = {
    "clip": ("return np.minimum(np.maximum(x, low), high)", "`clip` is one operator, with a meaning of its own where low > high or an operand is NaN"),
    "maxpool": ("return X.reshape(N, C, OH, 2, OW, 2).max(axis=(3, 5))", "an index of the reshaped array is divided by `W`, which no condition of the shape says to be 2 OW"),
    "one_hot": ("return (I[:, None] == np.arange(N)).astype(np.float32)", "NumPy compares int32 with int64 as int64, and a bool is converted, not chosen"),
    "softmax": ("E = np.exp(X - X.max(axis=1, keepdims=True)); return E / E.sum(axis=1, keepdims=True)", "a quotient is not a product with 1 / s, which is rounded twice"),
}


def values(text: str, only: str) -> list[str]:
    options = Options()
    program = next(p for p in loading.load_programs(SpecText("sample.toml", text, "toml"), options) if p.name == only)
    made = driver.advance(program, "tensor", options)
    return [flat(form_of(c)) for c in made.clauses if isinstance(c, Define | FailIf | Output)]


def both(sample: str, line: str) -> tuple[list[str], list[str]]:
    """The values of a sample, and those of a body of one line with its signature."""
    text = (SAMPLES / f"{sample}.toml").read_text()
    spec = tomllib.loads(text)["composite"]
    spec = spec[-1] if isinstance(spec, list) else spec
    arrays = [", ".join([f'"{each}"' for each in spec[key]]) for key in ("inputs", "outputs")]
    one = (f'[composite]\nname = "{spec["name"]}"\ninputs = [{arrays[0]}]\noutputs = [{arrays[1]}]\n'
           f'[implementation]\nlang = "python"\ncode = """\n{line}\n"""\n')
    return values(text, spec["name"]), values(one, spec["name"])


@pytest.mark.parametrize("sample", SAME)
def test_a_sample_is_the_same_values_as_its_formula(sample: str) -> None:
    loops, line = both(sample, SAME[sample])
    assert loops == line


@pytest.mark.parametrize("sample", OTHERS)
def test_these_are_other_values(sample: str) -> None:
    loops, line = both(sample, OTHERS[sample][0])
    assert loops != line, "it may move to SAME"


@pytest.mark.parametrize(("choice", "formula"), [
    ("(where (< a b) true false)", "a < b"), ("(where (< a b) false true)", "~(a < b)"), ("(or (< a b) (= b 0))", "(a < b) | (b == 0)"),
    ("(where (< a b) (= b 0) false)", "(a < b) & (b == 0)"), ("(where (< a b) true (where (= b 0) true (< b a)))", "(a < b) | ((b == 0) | (b < a))")])
def test_choices_of_conditions_are_conditions(choice: str, formula: str) -> None:
    head = "[composite]\nname = 'Y'\ninputs = ['a{int}[N]', 'b{int}[N]']\noutputs = ['y{bool}[N]']\n[implementation]\n"
    body = re.sub(r"\b([ab])\b", r"(aref \1 i)", choice).replace("true", "(= 0 0)").replace("false", "(= 0 1)")
    assert values(f"{head}code = '(dotimes (i N) (setf (aref y i) {body}))'", "Y") == values(f"{head}lang = 'python'\ncode = 'return {formula}'", "Y")


@pytest.mark.slow
def test_what_may_be_outside_is_read_where_a_condition_holds_only() -> None:
    spec = ("[composite]\nname = 'Y'\ninputs = ['a{int}[N]', 'y{bool}[M]']\noutputs = ['y']\n[implementation]\n"
            "code = '(dotimes (i M) (setf (aref y i) (or (>= i N) (< (aref a i) 3))))'")
    assert any("(where" in each for each in values(spec, "Y"))
    for opt in (0, 2):
        assert caten.compile(spec, opt=opt)(np.arange(5), np.zeros(6, bool)).tolist() == [True, True, True, False, False, True]
