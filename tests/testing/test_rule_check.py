"""Rules with functions of a library: the function is called, a wrong rule is refused, a right one is tried once."""
from __future__ import annotations

import ctypes
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.program import Case
from caten.errors import CatenError
from caten.runtime import discover, work_formulas
from caten.testing import rule_check
from spec_texts import MAP

C = """int calls;
void product(int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    calls++;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++) sum += a[i * lda + p] * b[p * ldb + j];
            c[i * ldc + j] = alpha * sum;
        }
}
void crash(const float *x, float *y) { *(volatile int *)0 = 1; }
"""
SPEC = """[composite]
name = "Layer"
inputs = ["X{float}[M K]", "W{float}[K N]", "bias{float}[N]"]
outputs = ["Y{float}[M N]"]
[implementation]
lang = "python"
code = "return np.maximum(np.tanh(X) @ W + bias, 0)"
[[rewrite]]
name = "product"
inputs = ["A{float}[M K]", "B{float}[K N]"]
outputs = ["C{float}[M N]"]
lang = "python"
pattern = "return A @ B"
call = "(product (int32 M) (int32 N) (int32 K) (float 1) A (int32 K) B (int32 N) C (int32 N))"
"""
NUMBERS = count()
PYTHON = 'lang = "python"\npattern = "return np.exp(x)"'
LISP = 'lang = "lisp"\npattern = "(set s 0.0) (dotimes (i N) (set s (sin (+ s (aref x i)))) (setf (aref y i) s))"'


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """The library of C, linked with what is compiled, and loaded here."""
    runtime = discover.find("clang")
    name = f"product{next(NUMBERS)}"               # a process loads a library of one name once
    file = tmp_path / f"lib{name}.so"
    (tmp_path / "product.c").write_text(C)
    subprocess.run([*runtime.compiler().words, "-O1", "-shared", "-fPIC", str(tmp_path / "product.c"), "-o", str(file)], check=True)
    monkeypatch.setenv("LDFLAGS", f"-L{tmp_path} -l{name} -Wl,-rpath,{tmp_path}")
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    return ctypes.CDLL(str(file))


def calls(library: ctypes.CDLL) -> int:
    return ctypes.c_int.in_dll(library, "calls").value


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [2, 1])
def test_the_function_is_called(product: ctypes.CDLL, opt: int) -> None:
    layer, plain = caten.compile(SPEC, opt=opt), caten.compile(SPEC, opt=opt, rewrite=False)
    rng = np.random.default_rng(0)
    for number, (m, n, k) in enumerate([(3, 5, 4), (17, 33, 19), (1, 1, 1), (4, 3, 0)], 1):
        x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (n,)))
        got = layer(x, w, b)
        assert calls(product) == number
        np.testing.assert_allclose(got, np.maximum(np.tanh(x) @ w + b, 0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got, plain(x, w, b), rtol=1e-4, atol=1e-5)
        assert calls(product) == number
    assert layer(np.zeros((0, 2), np.float32), np.zeros((2, 3), np.float32), np.zeros(3, np.float32)).shape == (0, 3)
    assert calls(product) == 4                           # nothing is called for a result without elements


def test_a_size_that_does_not_fit_is_refused(product: ctypes.CDLL) -> None:
    layer = caten.compile(SPEC)
    wide = np.broadcast_to(np.zeros((1, 1), np.float32), (0, 1 << 31))
    with pytest.raises(CatenError, match="K is too large for product, which takes i32"):
        layer(np.ascontiguousarray(wide), np.zeros((1 << 31, 0), np.float32), np.zeros(0, np.float32))


@pytest.mark.slice(4)
@pytest.mark.parametrize(("wrong", "message"), [
    (SPEC.replace("(float 1)", "(float 2)"), r"computes something else than its pattern: C at \[\d+, \d+\]: .* the reference says .* .with M = 5"),
    (SPEC.replace("(int32 K) B", "(int32 N) B"), "computes something else"),
    (SPEC.replace("(product", "(products"), "cannot be compiled and run|does not run.*products"),
    (MAP + 'call = "(crash x y)"\n', "does not run .*SIGSEGV"),
    (MAP + 'replacement = "return np.exp(x) * 1.001"\n', r"computes something else than its pattern: y at \[\d+\]"),
    (MAP.replace(PYTHON, LISP) + 'replacement = "(dotimes (i N) (setf (aref y i) 0))"\n', "never applies"),
])
def test_a_wrong_rule_is_refused_with_its_place(product: ctypes.CDLL, wrong: str, message: str) -> None:
    with pytest.raises(CatenError, match=f"(?s):{wrong[:wrong.index('rewrite]')].count(chr(10)) + 2}:.*E670: the rule '.*' ({message})"):
        caten.compile(wrong)
    caten.compile(wrong, rewrite=False)


def test_a_rule_is_tried_once_for_each_state_of_the_library(product: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    from caten.testing import rule_check
    tried: list[str] = []
    whole = rule_check._run
    monkeypatch.setattr(rule_check, "_run", lambda rule, op, options: (tried.append(rule.pattern.name), whole(rule, op, options))[1])
    caten.compile(SPEC)
    caten.compile(SPEC.replace("Layer", "Other"))
    assert tried == ["product"]
    caten.compile(SPEC.replace("(float 1)", "(float 1.0)").replace("Layer", "Third"))     # the same rule, written otherwise
    caten.compile(SPEC.replace("A @ B", "np.matmul(A, B)").replace("(int32 N) C", "(int32 (+ N 0)) C"))
    assert tried == ["product", "product"]


def test_sizes_are_those_of_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty and more along each of the five axes of a convolution would be seven thousand million steps."""
    taken: list[int] = []

    def run_cases(built: Any, options: Any) -> list[Any]:
        (op,) = built.ops
        (case,) = op.all(Case)
        taken.append(work_formulas.at(work_formulas.steps(op), {s.name: int(s.value) for s in case.sizes}))
        return []
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(rule_check, "run_cases", run_cases)
    caten.check('include = ["winograd.toml"]\n' + MAP.split("[rewrite]")[0])
    assert 1 << 24 < max(taken) <= rule_check.MOST_STEPS
    assert len(taken) > 5
