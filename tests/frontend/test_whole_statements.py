"""Bodies in Lisp with loops over elements and statements over whole tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.options import Options


def spec(name: str, inputs: str, outputs: str, code: str) -> str:
    quoted = [", ".join([f'"{d.strip()}"' for d in each.split(";")]) for each in (inputs, outputs)]
    return f"[[composite]]\nname = \"{name}\"\ninputs = [{quoted[0]}]\noutputs = [{quoted[1]}]\n[composite.implementation]\ncode = '''\n{code}\n'''\n"


def softmax(X: Any) -> Any:
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


X = "X{float}[M N]"
PROGRAMS: dict[str, tuple[str, str, str, Callable[..., Any]]] = {
    "a local tensor": (X, "Y{float}[M N]", "(set m (mean X :axis 1))\n(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (- (aref X i j) (aref m i)))))\n(setf Y (* 2 Y))",
                       lambda X: 2 * (X - X.mean(axis=1, keepdims=True))),
    "a row in a loop": (X, "Y{float}[M N]", "(dotimes (i M)\n  (set top (amax (aref X i)))\n  (set s 0.0)\n  (dotimes (j N) (setf (aref Y i j) (exp (- (aref X i j) top))) "
                        "(incf s (aref Y i j)))\n  (dotimes (j N) (divcf (aref Y i j) s)))\n(setf Y (+ Y 1))", lambda X: softmax(X) + 1),
    "an expression that is returned": (X, "y{float}[M]", "(array t float (M))\n(dotimes (i M) (setf (aref t i) (aref X i 0)))\n(return (+ t (sum X :axis 1)))",
                                       lambda X: X[:, 0] + X.sum(axis=1)),
    "two that are returned": (X, "y{float}[M]; z{float}[M]", "(setf y (sum X :axis 1))\n(dotimes (i M) (incf (aref y i) 1))\n(return (values (- y 1) y))",
                              lambda X: (X.sum(axis=1), X.sum(axis=1) + 1)),
    "all elements in a loop": (X, "X", "(dotimes (i 3) (incf X 1.0) (mulcf X 2.0))\n(decf X 1)\n(divcf X 2.0)", lambda X: ((((X + 1) * 2 + 1) * 2 + 1) * 2 - 1) / 2),
    "a number from a tensor": (X, "y{float}[]", "(set n 0.0)\n(dotimes (i M) (incf n (aref X i 0)))\n(incf n (amax X))\n(setf y (* 2 n (aref X 0 0)))",
                               lambda X: 2 * (X[:, 0].sum() + X.max()) * X[0, 0]),
    "an element of an output": (X, "y{float}[M]", "(dotimes (i M) (setf (aref y i) (sum (* 2 (aref X i)))) (incf (aref y i) (amax (aref X i))))", lambda X: 2 * X.sum(axis=1) + X.max(axis=1)),
    "a number of the loop": (X, "Y{float}[M N]", "(setf Y 0)\n(dotimes (i 3) (let ((s (* 0.5 i))) (incf Y (* s X))))", lambda X: 1.5 * X),
}


@pytest.mark.slow
@pytest.mark.parametrize("opt", [0, 2])
def test_what_numpy_computes(opt: int, tool: Any) -> None:
    tool("gcc")
    made = caten.compile("\n".join([spec(f"P{n}", *row[:3]) for n, row in enumerate(PROGRAMS.values())]), runtime="gcc", opt=opt, config={"OPT": "0"})
    given = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
    for n, (what, (_, _, _, expected)) in enumerate(PROGRAMS.items()):
        found, want = made[f"P{n}"](given.copy()), expected(given.astype(np.float64))
        for got, each in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, want)], strict=True):
            np.testing.assert_allclose(got, each, rtol=1e-4, atol=1e-5, err_msg=what)


REFUSED = {
    "(dotimes (i M) (setf (aref y i) 1.0))\n(setf y (+ y X))": "E320 2:7 a value of the shape [M M] does not fit into [M]",
    "(dotimes (i M) (setf (aref y i) (sum X :axis 0)))": "E320 1:33 a value of the shape [M] is no number",
    "(dotimes (i M) (setf X 1.0) (setf (aref y i) 0))": "E225 1:22 'X' is an input and no output",
    "(incf y (sum X :axis 1)) (dotimes (i M) (incf (aref y i) 1))": "E227 1:7 this reads the output 'y'",
    "(set a (summ X)) (dotimes (i M) (setf (aref y i) 1))": "E221 1:8 there is no function or statement 'summ'",
    "(dotimes (i M) (setf (aref X i i) (amax X)) (setf (aref y i) 0))": "E225 1:22 'X' is an input and no output",
    "(dotimes (i M) (set i (sum X)) (setf (aref y i) 1))": "E226 1:21 'i' is a loop variable",
    "(dotimes (i M) (setf z (sum X)) (setf (aref y i) 1))": "E220 1:22 there is no 'z' here",
    "(setf y (* 2 X X)) (dotimes (i M) (setf (aref y i) 1))": "E320 1:9",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(code: str) -> None:
    with pytest.raises(CatenError) as caught:
        load(SpecText("t.toml", spec("Op", "X{float}[M M]", "y{float}[M]", code), "toml"), Options())
    found = caught.value.diagnostics[0]
    assert found.place is not None
    assert f"{found.code} {found.place.line - 6}:{found.place.column} {found.message}".startswith(REFUSED[code])


@pytest.mark.slow
def test_a_body_of_loops_calls_one_with_both(tool: Any) -> None:
    tool("gcc")
    text = spec("Centred", "X{float}[M N]", "Y{float}[M N]", PROGRAMS["a local tensor"][2])
    text += spec("Outer", "X{float}[M N]", "Y{float}[M N]", "(call Centred X Y)\n(dotimes (i M) (setf (aref Y i 0) 0))")
    given = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
    expected = 2 * (given - given.mean(axis=1, keepdims=True))
    expected[:, 0] = 0
    assert np.allclose(caten.compile(text, runtime="gcc")["Outer"](given), expected, rtol=1e-4, atol=1e-5)
