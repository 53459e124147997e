"""A program of many kernels on several threads: a small GPT with layers that are equal, and checks between its kernels."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError

LAYERS, WIDTH, HEADS, INNER, WORDS = 2, 32, 4, 64, 100
SHAPES = {"g": (WIDTH,), "b": (WIDTH,), "Wq": (WIDTH, WIDTH), "Wk": (WIDTH, WIDTH), "Wv": (WIDTH, WIDTH), "Wo": (WIDTH, WIDTH),
          "h": (WIDTH,), "d": (WIDTH,), "W1": (WIDTH, INNER), "c": (INNER,), "W2": (INNER, WIDTH), "e": (WIDTH,)}
LAYER = f'''
def layernorm(x, g, b):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + b

def layer(X, g, b, Wq, Wk, Wv, Wo, h, d, W1, c, W2, e):
    N = layernorm(X, g, b)
    q, k, v = [(N @ w).reshape(X.shape[0], {HEADS}, {WIDTH // HEADS}).transpose(1, 0, 2) for w in (Wq, Wk, Wv)]
    S = np.where(np.arange(X.shape[0])[None, :] <= np.arange(X.shape[0])[:, None], q @ k.transpose(0, 2, 1) * 0.25, -np.inf)
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    A = E / E.sum(axis=-1, keepdims=True) @ v
    R = X + A.transpose(1, 0, 2).reshape(X.shape[0], {WIDTH}) @ Wo
    Z = layernorm(R, h, d) @ W1 + c
    return R + (0.5 * Z * (1 + np.tanh(0.7978845608028654 * (Z + 0.044715 * Z * Z * Z)))) @ W2 + e
'''
WEIGHTS = {f"{name}{n}": shape for n in range(LAYERS) for name, shape in SHAPES.items()}
CALLS = "\n".join([f"X = layer(X, {', '.join([f'{name}{n}' for name in SHAPES])})" for n in range(LAYERS)])
BODY = f"{LAYER}\nX = W[I]\n{CALLS}\nL = X @ W.T\n"
RESULTS = "L, W[np.argmax(L, axis=-1) + D]"                    # the second check needs the results of all kernels before
INPUTS = ", ".join([f'"{name}{{float}}[{" ".join(map(str, shape))}]"' for name, shape in WEIGHTS.items()])
SPEC = (f'[composite]\nname = "Gpt"\ninputs = ["I{{int}}[T]", "D{{int}}[T]", "W{{float}}[{WORDS} {WIDTH}]", {INPUTS}]\n'
        f'outputs = ["L{{float}}[T {WORDS}]", "P{{float}}[T {WIDTH}]"]\n[implementation]\nlang = "python"\n'
        f'code = """{BODY}return {RESULTS}\n"""\n')


def drawn(t: int) -> dict[str, Any]:
    rng = np.random.default_rng(t)
    scaled = {name: rng.standard_normal(shape).astype(np.float32) * np.float32(0.2) for name, shape in WEIGHTS.items()}
    return {"I": rng.integers(0, WORDS, t), "D": np.zeros(t, np.int64),
            "W": rng.standard_normal((WORDS, WIDTH)).astype(np.float32), **scaled}


def expected(arrays: dict[str, Any]) -> np.ndarray:
    """The scores of the words, in float64."""
    names: dict[str, Any] = {"np": np, **{k: a.astype(np.float64) if a.dtype == np.float32 else a for k, a in arrays.items()}}
    exec(BODY, names)
    return np.asarray(names["L"])


def calls(runtime: str) -> None:
    """Call the program with few rows and with many, also with words that are out of bounds, and print a digest of the results."""
    made = caten.compile(SPEC, runtime=runtime, config={"OMP": 1, "OPT": 0})
    digest = hashlib.sha256()
    for t in (1, 7, 1200):
        arrays = drawn(t)
        for late in (False, True):
            wrong = {**arrays, "I": arrays["I"].copy(), "D": arrays["D"].copy()}
            wrong["D" if late else "I"][t // 2] = WORDS
            with pytest.raises(CatenError, match=r"W: index 1 .*\(aref D i\)" if late else r"W: index 1 .*\(aref I i\)"):
                made(*wrong.values())
        scores, rows = made(*arrays.values())
        np.testing.assert_allclose(scores, expected(arrays), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(rows, arrays["W"][np.argmax(scores, axis=-1)])
        digest.update(scores.tobytes() + rows.tobytes())
    print(digest.hexdigest())


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["gcc", "clang"])
def test_kernels_give_the_same_bits_on_any_number_of_threads(runtime: str, tool: Any, nightly: bool) -> None:
    if runtime == "gcc":
        tool("gcc")
    found = [subprocess.run([sys.executable, "-c", f"import test_kernels_on_threads as t; t.calls({runtime!r})"], text=True,
                            check=True, capture_output=True, cwd=os.path.dirname(__file__),
                            env={**os.environ, "OMP_NUM_THREADS": n, "OMP_WAIT_POLICY": "passive"}).stdout for n in (("1", "2", "3") if nightly else ("1", "3"))]
    assert len(found[0]) == 65
    assert set(found) == {found[0]}
