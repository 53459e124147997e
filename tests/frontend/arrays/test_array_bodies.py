"""Bodies in Python over whole arrays: what caten computes is what numpy computes."""
from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.numpy_types import named
from caten.errors import CatenError

SIZES = {"M": 4, "N": 6, "K": 3, "B": 2}
SHAPES = {"X": "M N", "Y": "M N", "A": "M K", "W": "K N", "S": "N N", "v": "N", "w": "N", "u": "M", "T": "B M K", "U": "B K N", "P": "2 3 4",
          "I": "N", "J": "M N", "Q": "M N", "F": "M N", "G": "N"}
TYPES = {"I": "int64", "J": "int32", "Q": "bool", "F": "double", "G": "double"}
# name of the result's shape -> expressions of that shape
CASES: dict[str, list[str]] = {
    "M N": [
        "X + Y", "X - v", "X * u[:, None]", "-X", "X / (1 + Y * Y)", "np.exp(X)", "np.tanh(X + v)", "np.maximum(X, Y)", "np.minimum(X, 0.5)",
        "np.where(X > Y, X, -Y)", "np.sqrt(np.abs(X))", "X ** 2", "(X > 0).astype(np.float32) * X", "np.clip(X, -0.5, 0.5)", "A @ W", "np.matmul(A, W) + v",
        "np.einsum('mk,kn->mn', A, W)", "np.einsum('mk,kn', A, W)", "np.tensordot(A, W, axes=1)", "np.outer(u, v)", "u[:, None] * v[None, :]",
        "X[::-1]", "X[:, ::-1]", "X[::-1, ::-1] + Y", "np.flip(X, axis=1)", "np.roll(X, 1, axis=0)", "X.T.T", "np.broadcast_to(v, (M, N))",
        "X - X.mean(axis=0)", "X - X.mean(axis=1, keepdims=True)", "(X - X.mean(axis=-1, keepdims=True)) / np.sqrt(X.var(axis=-1, keepdims=True) + 1e-5)",
        "np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)", "np.exp(X - X.max(axis=0)) / np.exp(X - X.max(axis=0)).sum(axis=0)",
        "X @ S", "X @ S.T", "np.zeros((M, N)) + X", "np.full((M, N), 3.0) * X", "X.reshape(N, M).T.reshape(M, N)", "X.reshape(-1).reshape(M, N)",
        "np.concatenate((X[:2], X[2:]), axis=0)", "np.concatenate((X[:, 3:], X[:, :3]), axis=1)", "np.tril(X)", "np.triu(X, 1)", "np.swapaxes(X.T, 0, 1)",
        "X * np.arange(N).astype(np.float32)", "X + np.eye(M, N)", "np.repeat(u, N).reshape(M, N)", "np.tile(v, (M, 1))", "X[np.arange(M)]", "np.take(X, I % N, axis=1)",
        "X[:, I % N]", "np.pad(X[:, 1:-1], ((0, 0), (1, 1)))", "np.log1p(np.abs(X)) * (np.sin(Y) + np.cos(X))", "X - np.float32(2) * Y", "F.astype(np.float32)",
        "np.cumsum(X, axis=0)", "np.cumsum(X, axis=1)", "X.cumsum().reshape(M, N)", "np.maximum.accumulate(X, axis=1) - v", "np.cumsum(X[:, ::-1], axis=1)[:, ::-1]",
        "np.cumsum(np.exp(X), axis=1) / np.exp(X).sum(axis=1, keepdims=True)", "np.cumprod(X, axis=0)",
    ],
    "N": ["v + 1", "X.sum(axis=0)", "X.max(0)", "X.min(axis=0)", "X.mean(axis=0)", "X.prod(axis=0)", "u @ X", "np.dot(u, X)", "X[1]", "X[-1]", "X[0] + X[M - 1]",
          "np.diagonal(S)", "S.sum(axis=1)", "np.sum(X, axis=0) / M", "v[::-1]", "np.where(v > 0, v, 0.1 * v)", "np.linspace(0.0, 1.0, 6)", "X.std(axis=0)",
          "(v - v.mean()) / v.std()", "v / np.linalg.norm(v)", "v * v.sum()", "np.einsum('mn->n', X)", "np.einsum('nn->n', S)", "np.stack((v, w)).sum(axis=0)",
          "np.stack((v, w), axis=1)[:, 1]", "np.concatenate((v[3:], v[:3]))",
          "np.bincount(I, minlength=N).astype(np.float32) + v", "np.bincount(I % N, weights=v, minlength=N).astype(np.float32)", "v.cumsum() / N"],
    "M": ["X.sum(axis=1)", "X @ v", "X.max(axis=-1)", "np.linalg.norm(X, axis=1)", "X[:, 2]", "(X * Y).sum(axis=1)", "np.einsum('mn,mn->m', X, Y)", "X.var(axis=1)",
          "np.log(np.exp(X).sum(axis=1))", "np.where(np.any(X > 0.9, axis=1), u, -u)", "np.where(np.all(X > -3, axis=1), u, 0)"],
    "N M": ["X.T", "np.transpose(X)", "X.transpose(1, 0) * 2", "np.moveaxis(X, 0, 1)", "X.T + v[:, None]"],
    "": ["v.sum()", "v @ w", "X.max()", "X.mean()", "v[0] * v[-1]", "np.dot(v, w) / N"],
    "B M N": ["T @ U", "np.einsum('bmk,bkn->bmn', T, U)", "np.matmul(T, U) + v", "np.stack((X, Y))", "np.stack((X, Y), axis=0) * 2", "X[None] + np.zeros((B, 1, 1))"],
    "2 12": ["P.reshape(2, 12)", "P.reshape((2, -1)) + 1"], "4 3 2": ["P.T", "P.transpose(2, 1, 0)", "np.transpose(P, (2, 1, 0))"],
    "3 4": ["P[1]", "P.sum(axis=0)", "P[0] - P[1]", "P[..., ::-1][1]"], "2 4": ["P[:, 1]", "P.max(axis=1)", "P[:, -1, :]"],
}
STATEMENTS: list[tuple[str, str, str]] = [
    ("Y", "M N", "Y += A @ W"), ("Y", "M N", "Y *= 2"), ("Y", "M N", "Y[:, 1:] = X[:, :-1]"), ("Y", "M N", "Y[1:-1] += X[1:-1]"), ("Y", "M N", "Y[0] = v"),
    ("R", "M N", "E = np.exp(X - X.max(axis=1, keepdims=True))\nreturn E / E.sum(axis=1, keepdims=True)"),
    ("R", "M N", "t = X\nfor i in range(3):\n    t = np.tanh(t) + v\nreturn t"),
    ("R", "M N", "a, b = X, Y\na, b = b, a\nreturn a - 2 * b"),
    ("R", "M N", "if 2 > 1:\n    s = X\nelse:\n    s = Y\nreturn s * 3"),
    ("R", "M N", "R = np.maximum(A @ W + v, 0)"),
    ("R", "M N", "m = X.mean(axis=-1, keepdims=True)\ns = ((X - m) ** 2).mean(axis=-1, keepdims=True)\nR = (X - m) / np.sqrt(s + 1e-5) * v + w"),
    ("R", "M N", "R[...] = X\nR[:, 0] = 0"), ("Y", "M N", "np.add.at(Y, np.arange(M) // 2, X)"), ("Y", "M N", "np.add.at(Y, (slice(None), I), 1.5 * X)"),
    ("R", "M N", "R[...] = 0\nnp.maximum.at(R, (np.arange(M)[:, None], I % N), X)"),
]


def composites() -> list[tuple[str, str, str, str]]:
    """Name, output, its shape, code."""
    plain = [("R", shape, f"return {text}") for shape, texts in CASES.items() for text in texts]
    return [(f"Op{n}", *row) for n, row in enumerate([*plain, *STATEMENTS])]


def declared(name: str, shape: str, dtype: str = "") -> str:
    return f"{name}{{{dtype or TYPES.get(name, 'float')}}}[{shape}]"


def spec(name: str, output: str, shape: str, code: str) -> str:
    names = [n for n in SHAPES if _mentions(code, n) or n == output]
    inputs = [declared(n, SHAPES[n]) for n in names]
    have = {word for n in names for word in SHAPES[n].split()}
    for size, carrier in (("M", "u"), ("N", "v"), ("B", "T"), ("K", "A")):
        if size not in have and (size in shape.split() or _mentions(code, size)):
            inputs.append(declared(carrier, SHAPES[carrier]))
            names.append(carrier)
            have |= set(SHAPES[carrier].split())
    out = output if output in names else declared(output, shape)
    quoted = [", ".join([f'"{i}"' for i in each]) for each in (inputs, [out])]
    return f'[[composite]]\nname = "{name}"\ninputs = [{quoted[0]}]\noutputs = [{quoted[1]}]\n[composite.implementation]\nlang = "python"\ncode = \'\'\'\n{code}\n\'\'\'\n'


def _mentions(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.']){name}(?![\w'])", code) is not None


def data(name: str) -> np.ndarray:
    rng = np.random.default_rng(sum(map(ord, name)))
    shape = [SIZES.get(e, 0) or int(e) for e in SHAPES[name].split()]
    dtype = TYPES.get(name, "float")
    if dtype in ("int64", "int32"):
        return rng.integers(0, 6, shape).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    return rng.standard_normal(shape).astype(np.float64 if dtype == "double" else np.float32)


def by_numpy(code: str, arrays: dict[str, np.ndarray], output: str, shape: str) -> np.ndarray:
    """What numpy makes of the body."""
    text = f"def body({', '.join(arrays)}, {', '.join(SIZES)}, R):\n{textwrap.indent(code, '    ')}\n    return {output}\n"
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    whole = np.zeros([SIZES.get(e, 0) or int(e) for e in shape.split()], np.float32)
    given = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    return np.asarray(scope["body"](**given, **SIZES, R=whole.astype(np.float64)))


ALL = composites()


@pytest.fixture(scope="module", params=[0, pytest.param(2, marks=pytest.mark.nightly)])
def operators(request: pytest.FixtureRequest) -> Any:
    return caten.compile("\n".join([spec(*row) for row in ALL]), runtime="gcc", opt=request.param, config={"OPT": "0"})


@pytest.mark.slow
@pytest.mark.parametrize("row", ALL, ids=[row[3].replace("\n", "; ") for row in ALL])
def test_what_numpy_computes(row: tuple[str, str, str, str], tool: Any, operators: Any) -> None:
    tool("gcc")
    name, output, shape, code = row
    operator = operators[name]
    arrays = {n: data(n) for n in operator.inputs} if hasattr(operator, "inputs") else {n: data(n) for n in SHAPES if f'"{n}{{' in spec(*row)}
    want = by_numpy(code, {n: a.copy() for n, a in arrays.items()}, output, shape)
    got = operator(**arrays)
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=3e-5, atol=3e-5)


def test_a_typo_is_named_with_its_place() -> None:
    with pytest.raises(CatenError) as caught:
        caten.compile(spec("T", "R", "M N", "return np.expp(X)"))
    assert "exp" in str(caught.value)
    assert "^" in str(caught.value)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CatenError, match="E320"):
        caten.compile(spec("T", "R", "M N", "return P + np.zeros((5, 5))"))


REFUSED = {
    "E243": "return X +", "E244": "import numpy", "E245": "a = [X + 1]\nb = a[0]\na[0] += 1\nreturn b", "E320": "return P + np.zeros((5, 5))", "E321": "return X.sum(axis=2)",
    "E322": "return np.sum(X, axes=0)", "E323": "return X[..., ...]", "E324": "return P.reshape(5, 5)", "E325": "return np.einsum('mn->z', X)",
    "E326": "return np.arange(v[0])", "E327": "return np.random.rand(3) + v", "E328": "return X[X > 0]", "E330": "return np.tril(v)", "E221": "return np.expp(X)",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_have_a_place(code: str) -> None:
    with pytest.raises(CatenError) as caught:
        caten.compile(spec("T", "R", "M N", REFUSED[code]))
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.place is not None
    assert found.place.line >= 7


LISP = [("(setf Z (+ A B)) (return Z)", lambda a, b: a + b), ("(return (relu (* 2 (- A B))))", lambda a, b: np.maximum(2 * (a - b), 0)),
        ("(setf Z (exp A)) (setf Z (/ Z B))", lambda a, b: np.exp(a) / b)]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "numpy"), LISP, ids=[code for code, _ in LISP])
def test_whole_tensors_in_lisp(code: str, numpy: Any, tool: Any) -> None:
    tool("gcc")
    text = (f'[composite]\nname = "T"\ninputs = ["A{{float}}[M N]", "B{{float}}[N]"]\noutputs = ["Z{{float}}[M N]"]\n'
            f'[implementation]\ncode = """\n{code}\n"""\n')
    a, b = data("X"), np.abs(data("v")) + 1
    np.testing.assert_allclose(caten.compile(text, runtime="gcc")(a, b), numpy(a, b), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("fn", "start"), [("add", 0), ("maximum", -2), ("multiply", 1)])
def test_16_bit_floats_are_accumulated_in_float32(dtype: str, fn: str, start: int) -> None:
    spec = f"""[composite]
name = "at"
inputs = ["x{{{dtype}}}[A]", "i{{int}}[A]"]
outputs = ["y{{{dtype}}}[N]"]
[composite.implementation]
lang = "python"
code = '''
y[...] = {start}
np.{fn}.at(y, i, x)
'''
"""
    rng = np.random.default_rng(3)
    x, i = (1 + rng.normal(size=40) / 8).astype(named(dtype)), rng.integers(-5, 5, 40)
    y = np.empty(5, x.dtype)
    caten.compile(spec)(x, i, out=y)
    wide = np.full(5, start, np.float32)
    getattr(np, fn).at(wide, i, x.astype(np.float32))
    assert y.dtype == x.dtype
    assert np.allclose(y.astype(np.float32), wide.astype(x.dtype).astype(np.float32), rtol=2.0 ** (-9 if dtype == "float16" else -6), atol=0)
    assert np.ptp(wide) > 0.1
