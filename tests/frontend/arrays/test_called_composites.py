"""Bodies over whole arrays that call other composites, and bodies in Lisp that call them."""
from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.frontend.generic_signature import read_instance
from caten.frontend.spec import SpecText, load
from caten.options import Options

SOFTMAX = ('Softmax', '"X{float}[M N]"', '"Y{float}[M N]"', "python",
           "E = np.exp(X - X.max(-1, keepdims=True))\nreturn E / E.sum(-1, keepdims=True)")
DOUBLE = ("Double", '"X{float}[M N]"', '"Y{float}[M N]"', "lisp", "(setf Y (* 2 X))")
RELU = ("relu-2d", '"X{float}[M N]"', '"Y{float}[M N]"', "lisp",
        "(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (max (aref X i j) 0.0))))")
AXPY = ("Axpy", '"a{float}[]", "x{float}[N]", "y{float}[N]"', '"y"', "lisp",
        "(dotimes (i N) (incf (aref y i) (* a (aref x i))))")
PREFIX = ("Prefix", '"x{float}[N]"', '"y{float}[N]"', "lisp",
          "(set s 0.0) (dotimes (i N) (incf s (* 0.5 s)) (incf s (aref x i)) (setf (aref y i) s))")
DIVMOD = ("SumAndMax", '"X{float}[M N]"', '"s{float}[M]", "top{float}[M]"', "python", "return X.sum(1), X.max(1)")
HALVES = ("Halves", '"x{float}[N](where N = 2 * H)"', '"y{float}[H]"', "python", "return x[::2] + x[1::2]")
TOTALS = ("Totals", '"j{float}[N]"', '"y{float}[N]"', "python", "return np.cumsum(j)")
COUNTS = ("Counts", '"X{float}[M N]", "i{int}[N]"', '"y{float}[M]"', "lisp",
          "(dotimes (m M) (setf (aref y m) 0)) (dotimes (k N) (when (and (<= 0 (aref i k)) (< (aref i k) M)) "
          "(incf (aref y (aref i k)) (aref X 0 k))))")
ALL = (TOTALS, COUNTS, SOFTMAX, DOUBLE, RELU, AXPY, PREFIX, DIVMOD, HALVES)


def spec(*composites: tuple[str, str, str, str, str]) -> str:
    return "\n".join([f'[[composite]]\nname = "{name}"\ninputs = [{inputs}]\noutputs = [{outputs}]\n'
                      f'[composite.implementation]\nlang = "{lang}"\ncode = """\n{code}\n"""\n'
                      for name, inputs, outputs, lang, code in composites])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def compiled(body: str, lang: str = "python", inputs: str = '"X{float}[M N]"', outputs: str = '"Y{float}[M N]"',
             opt: int = 2) -> Any:
    return caten.compile(spec(*ALL, ("Op", inputs, outputs, lang, body)), opt=opt, config={"OPT": "0"})["Op"]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.slow
@pytest.mark.slice(12)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(("body", "lang", "expected"), [
    ("return Softmax(X)", "python", softmax),
    ("return Softmax(Double(X)) + 1", "python", lambda x: softmax(2 * x) + 1),
    ("return relu_2d(X) * Softmax(X=X)", "python", lambda x: np.maximum(x, 0) * softmax(x)),
    ("for _ in range(3):\n    X = Softmax(relu_2d(X))\nreturn X", "python",
     lambda x: softmax(np.maximum(softmax(np.maximum(softmax(np.maximum(x, 0)), 0)), 0))),
    ("s, m = SumAndMax(X)\nreturn X * s[:, None] - m[:, None]", "python",
     lambda x: x * x.sum(1)[:, None] - x.max(1)[:, None]),
    ("Y = Softmax(X.T).T", "python", lambda x: softmax(x.T).T),
    ("return np.stack([Axpy(2, X[m], X[0]) for m in range(3)])", "python", lambda x: 2 * x + x[0]),
    ("return X + Axpy(X[0, 0], X[0], X[1])", "python", lambda x: x + x[0, 0] * x[0] + x[1]),
    ("return np.stack([Prefix(X[m]) for m in range(3)])", "python", lambda x: prefix(x)),
    ("return X + Totals(X[1])", "python", lambda x: x + np.cumsum(x[1])),
    ("return X + Counts(X, np.arange(N) % 3)[:, None]", "python",
     lambda x: x + np.bincount(np.arange(8) % 3, x[0], 3)[:, None].astype(np.float32)),
    ("return X + np.repeat(Halves(X[1]), 2)", "python", lambda x: x + np.repeat(x[1, ::2] + x[1, 1::2], 2)),
    ("(return (call Softmax (* 3 X)))", "lisp", lambda x: softmax(3 * x)),
    ("(set Z (exp X)) (call softmax Z Y) (setf Y (+ Y 1))", "lisp", lambda x: softmax(np.exp(x)) + 1),
    ("(call RELU-2D X Y) (setf Y (- Y X))", "lisp", lambda x: np.maximum(x, 0) - x),
    ("(array T float (M N)) (call Softmax X T) (call Double T Y) (dotimes (i M) (incf (aref Y i 0)))", "lisp",
     lambda x: 2 * softmax(x) + np.eye(1, x.shape[1], dtype=np.float32)),
])
def test_a_call_gives_what_the_body_gives(body: str, lang: str, expected: Any, opt: int) -> None:
    shapes = ('"X{float}[3 N]"', '"Y{float}[3 N]"') if "range(3)" in body or "Halves" in body else (
        '"X{float}[M N]"', '"Y{float}[M N]"')
    x = drawn(3, 8)
    assert np.allclose(compiled(body, lang, *shapes, opt=opt)(x), expected(x), rtol=1e-5, atol=1e-6)


def prefix(x: np.ndarray) -> np.ndarray:
    found, s = np.empty_like(x), np.zeros(len(x))
    for i in range(x.shape[1]):
        s = 1.5 * s + x[:, i]
        found[:, i] = s
    return found


@pytest.mark.slow
def test_calls_fuse_with_their_callers() -> None:
    kernels = caten.compile(spec(*ALL, ("Op", '"X{float}[M N]"', '"Y{float}[M N]"', "python",
                                        "return Softmax(relu_2d(X)) * 2")))["Op"]
    alone = caten.compile(spec(("Op", '"X{float}[M N]"', '"Y{float}[M N]"', "python",
                                "X = np.maximum(X, 0)\nE = np.exp(X - X.max(-1, keepdims=True))\n"
                                "return E / E.sum(-1, keepdims=True) * 2")))
    x = drawn(5, 9)
    assert np.array_equal(kernels(x), alone(x))


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("body", "code", "message"), [
    ("return Softmax(X, X)", "E322", "Softmax takes 1 argument, not 2"),
    ("return Softmax(Z=X)", "E322", "Softmax has no input 'Z'"),
    ("return Softmax(X[0])", "E314", "has the number of axes 2, not 1"),
    ("return Softmax(X.astype(np.int32))", "E314", "has the type float, not int32"),
    ("return X + Axpy(1, X[0], X[0, :2])", "", ""),
    ("return X[:, :3] + Halves(np.zeros(5, np.float32))", "E315", ""),
    ("return Softmx(X)", "E220", "there is no 'Softmx' here"),
    ("return Softmax + X", "E322", "not a composite"),
    ("return Op(X)", "E233", "Op calls Op: recursion is not possible"),
])
def test_refusals(body: str, code: str, message: str) -> None:
    if not code:
        kernel = compiled(body)                                     # a condition of the call
        with pytest.raises(CatenError):
            kernel(drawn(3, 8))
        return
    with pytest.raises(CatenError) as refused:
        compiled(body)
    assert refused.value.diagnostics[0].code == code
    assert message in str(refused.value)


def test_two_composites_that_call_each_other_are_refused() -> None:
    one = ("One", '"x{float}[N]"', '"y{float}[N]"', "python", "return Two(x)")
    two = ("Two", '"x{float}[N]"', '"y{float}[N]"', "python", "return One(x)")
    three = ("Three", '"x{float}[N]"', '"y{float}[N]"', "lisp", "(call Three x y)")
    for composites in ((one, two), (three,)):
        with pytest.raises(CatenError) as refused:
            caten.compile(spec(*composites))
        assert {d.code for d in refused.value.diagnostics} == {"E233"}


@pytest.mark.slow
def test_a_composite_of_an_included_file_and_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "Softmax.toml").write_text(spec(SOFTMAX))
    (tmp_path / "main.toml").write_text(spec(("Op", '"X{float}[M N]"', '"Y{float}[M N]"', "python",
                                              "return Softmax(X)")))
    kernel = caten.compile(tmp_path / "main.toml", include_dirs=[tmp_path])
    x = drawn(2, 4)
    assert np.allclose(kernel(x), softmax(x), rtol=1e-6)
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(x), kernel(x))


LINEAR = ("Linear", '"X{float}[~ K]", "W{float}[K N]"', '"Y{float}[...]"', "python", "return X @ W")
NETWORK = ("Network", '"X{float}[~ K]", "W{float}[K K]"', '"Y{float}[...]"', "python",
           "return Linear(Linear(X, W), W) + Twice(X)[..., :K]")
TWICE = ("Twice", '"X{float}[~ K]"', '"Y{float}[...]"', "python", "return np.concatenate((X, X), axis=-1)")


@pytest.mark.parametrize("composites", [(LINEAR, TWICE, NETWORK), (NETWORK, TWICE, LINEAR)])
def test_outputs_of_any_shape_follow_from_composites_of_the_same_file(composites: Any) -> None:
    found = {op.name: op for op in load(SpecText("<text>", spec(*composites)), Options())}
    assert repr(found["Network"].buffers["Y"]) == "(buffer Y f32 (axis0 K) (0 1) out)"
    assert repr(found["Twice"].buffers["Y"]) == "(buffer Y f32 (axis0 (* 2 K)) (0 1) out)"


def test_instances_of_a_composite_are_called_by_its_name() -> None:
    asked = [read_instance(text) for text in ("Linear: X=float32[A,K]", "Linear: X=float32[A,B,K]",
                                              "Network: X=float32[A,K]", "Network: X=float32[A,B,K]")]
    found = load(SpecText("<text>", spec(LINEAR, TWICE, NETWORK)), Options(instances=tuple(asked)))
    assert [op.name for op in found] == ["Linear_f32_2d", "Linear_f32_3d", "Twice", "Network_f32_2d", "Network_f32_3d"]


@pytest.mark.parametrize(("body", "code", "message"), [
    ("return Network(X, W)", "E233", "Network calls Linear calls Network: recursion is not possible"),
    ("return np.matmull(X, W)", "E221", "there is no np.matmull in a body"),
])
def test_an_error_of_a_composite_that_others_call_is_told_once(body: str, code: str, message: str) -> None:
    with pytest.raises(CatenError) as refused:
        load(SpecText("<text>", spec(NETWORK, TWICE, (*LINEAR[:4], body))), Options())
    assert [(d.code, d.message) for d in refused.value.diagnostics] == [(code, message)]
