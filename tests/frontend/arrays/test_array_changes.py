"""Changes in place: what numpy would show under another name too is refused; copies are free. And random subscripts."""
from __future__ import annotations

import random

import pytest
from test_array_values import SIGNATURE, SIZES, check, compare, drawn, in_numpy
from value_interpreter import evaluated, run

from caten.errors import CatenError
from caten.tensor.values import types_of

REFUSED = [
    ("parts = [X]\nparts[0] += 1\nreturn X", "E225 2:1 'parts' is an input and no output: it cannot be changed"),
    ("return X if X.shape == W.shape else Y", "E326 1:13 whether these shapes are equal is not known when the body is compiled"),
    ("return np.pad(v, 1, constant_values=(1, v))", "E322 1:8 the constants of np.pad are numbers"),
    ("return np.clip(X, 'a', 2)", "E322 1:8 the argument 'a_min' of np.clip is an array or a number, not the text 'a'"),
    ("def f():\n    break\nfor i in range(2):\n    f()\nreturn X", "E243 2:5 this is no Python: 'break' outside a loop"),
    ("continue", "E243 1:1 this is no Python: 'continue' outside a loop"),
    ("l = [1]\nl.append(2, 3)\nreturn X", "E322 2:1 append of a list takes 1 argument, not 2"),
    ("l = [1]\nl.extend(2)\nreturn X", "E326 2:1 the number of items of the number 2 is not known when the body is compiled"),
]
ALLOWED = [
    "x = X * 1\ny = x.copy()\ny[0] = 5\nreturn x + y", "x = X * 1\ny = x.astype(np.float32)\ny[0] = 5\nreturn x + y", "x = X * 1\ny = np.array(x)\ny += 5\nreturn x",
    "x = X * 1\ny = x.flatten()\ny[0] = 5\nreturn x", "x = X * 1\nx[0], x[1] = x[1].copy(), x[0].copy()\nreturn x", "x = X * 1\nx[1:] += x[:-1]\nx[:] = x[::-1]\nreturn x",
    "parts = [X * k for k in range(3)]\nparts[1] += 1\nreturn sum(parts)", "def f(x):\n    x = x * 1\n    x[0] = 0\n    return x\nreturn f(X) + f(Y)", "x, y = X * 1, Y * 1\nx, y = y, x\nreturn x - y * 2",
    "return X * (0 or 3)", "return X[:, 2 and 3:]", "return X + (None or Y)", "return X * int(N / N * 3.7 if 0 else 3.7)", "return np.stack([X] * int(7 / 2))", "return X * float(3)",
    "return X if X.shape == (M, N) else Y", "return X if X.shape == Y.shape and X.shape != v.shape else Y", "return np.clip(X, Y, 1)", "return np.linalg.norm(J * 100000)", "return np.linalg.norm(X, 2, axis=1)",
    "M, N = X.shape\nreturn X * N", "first, *rest = X.shape\nreturn X * rest[0] + first", "*a, b = [X[0], X[1]]\nreturn a[0] * X - b",
    "z = X * 1\nnp.fill_diagonal(z, 0)\nreturn z", "z = S @ S\nnp.fill_diagonal(z, v)\nreturn z", "z = X * 1\nnp.copyto(z, Y)\nreturn z", "z = X * 1\nnp.copyto(z, Y, where=Q)\nreturn z + X",
    "z = X * 1\nnp.putmask(z, z > 0, 0)\nreturn z", "z = X * 1\nz.fill(2.5)\nreturn z", "z = X * 1\nz[0].fill(2.5)\nreturn z", "z = np.zeros_like(X)\nnp.exp(X, out=z)\nreturn z", "z = X * 1\nz = np.add(z, Y, out=z)\nreturn z",
    "z = X * 1\nnp.maximum(z[1:], Y[1:], out=z[1:])\nreturn z", "z = np.zeros((M, N))\nnp.multiply(X, Y, out=z, where=X > 0)\nreturn z", "z = X * 1\ny = np.divide(X, Y, out=np.ones_like(X), where=Y > 0)\nreturn z * y",
    "l = [1]\nl.extend((2, 3))\nreturn X * sum(l)", "for i in range(3):\n    for j in range(3):\n        if j == 1:\n            break\n    if i:\n        break\nreturn X * i + j",
]


@pytest.mark.parametrize(("code", "message"), REFUSED)
def test_refused_changes(code: str, message: str) -> None:
    with pytest.raises(CatenError) as caught:
        evaluated(SIGNATURE, code)
    found, = caught.value.diagnostics
    assert found.place is not None
    assert f"{found.code} {found.place.line}:{found.place.column} {found.message}" == message


@pytest.mark.parametrize("code", ALLOWED)
def test_allowed_changes(code: str) -> None:
    sizes = SIZES[0]
    given = drawn(3, sizes)
    expected = in_numpy(code, given, sizes)
    dtype = "f64" if expected.dtype.itemsize == 8 else "f32"
    declared = SIGNATURE.replace("out R f32 M N", f"out R {dtype} {' '.join(map(str, expected.shape))}")
    compare(run(evaluated(declared, code), sizes, given)[0], expected, dtype)


def test_max_with_an_axis_is_a_reduction_in_lisp_too() -> None:
    declared = "X f32 M N; out R f32 M N"
    lisp = evaluated(declared, "(return (- X (max X :axis 1 :keepdims t)))", lang="lisp")
    assert lisp.definitions == evaluated(declared, "return X - X.max(axis=1, keepdims=True)").definitions


def test_decimals_make_ranges_of_decimals() -> None:
    assert [types_of(d.value) for d in evaluated("a f64; out R f64 3", "return np.arange(3.0)").definitions] == [("f64",)]


def drawn_subscript(seed: int) -> str:
    """A subscript of an array of two to four axes: slices, elements, new axes, lists, arrays of indices."""
    rng = random.Random(seed)
    name, extents = rng.choice([("P", (2, 3, 4)), ("P", (2, 3, 4)), ("X", (4, 6)), ("np.ones((2, 3, 1, 2)) * np.arange(3.0)[:, None, None]", (2, 3, 1, 2))])
    known = name != "X"
    parts: list[str] = []
    gathers = 0
    count = rng.randrange(1, len(extents) + 1)
    for extent in extents[:count]:
        kind = rng.randrange(7)
        bound = [str(n) for n in range(-extent - (2 if known else 0), extent + (3 if known else 1))] + [""] * 3
        step = rng.choice(["", "", ":1", ":2", ":-1", ":-2", ":3"]) if known else rng.choice(["", ":1"])
        if kind == 0:
            parts.append(str(rng.randrange(-extent, extent)))
        elif kind == 1 and gathers < 2:
            gathers += 1
            parts.append(str([rng.randrange(-extent, extent) for _ in range(2)]))
        elif kind == 2 and gathers < 2:
            gathers += 1
            parts.append(rng.choice([f"J[:2, 0] % {extent}", f"-1 - J[:2, 1] % {extent}", f"J[0, 0] % {extent}", f"J[:1, :2] % {extent}"]))
        elif known or rng.random() < 0.3:
            parts.append(f"{rng.choice(bound)}:{rng.choice(bound)}{step}" if known else rng.choice([":", "1:", ":-1", "::2", "::-1", "-2:", "1:-1", "::-2"]))
        else:
            parts.append(":")
        if rng.random() < 0.15:
            parts.append("None")
    if rng.random() < 0.3:
        parts.insert(rng.randrange(len(parts) + 1) if count == len(extents) else len(parts), "...")
    return f"({name})[{', '.join(parts)}]"


@pytest.mark.slow
def test_random_subscripts() -> None:
    for seed in range(300):
        check(drawn_subscript(seed), SIZES[0], seed)
