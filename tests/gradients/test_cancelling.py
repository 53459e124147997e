"""Maxima that are subtracted in front of exponentials have no gradient; others have."""
from __future__ import annotations

import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.gradients import cancelling
from caten.gradients.cancelling import cancelling_maxima
from caten.options import Options
from caten.tensor.values import TensorProgram

IN, OUT = '"x{float64}[M N]"', '"y{float64}[...]"'
SHIFTED = "top = x.max(axis=1, keepdims=True)\ne = np.exp(x - top)\n"
CANCEL = {
    "softmax": SHIFTED + "return e / e.sum(axis=1, keepdims=True)",
    "logsumexp": SHIFTED + "return np.log(e.sum(axis=1)) + top[:, 0]",
    "log softmax": SHIFTED + "return x - top - np.log(e.sum(axis=1, keepdims=True))",
    "masked": "s = np.where(np.arange(N) <= np.arange(M)[:, None], x, -np.inf)\ne = np.exp(s - s.max(axis=1, keepdims=True))\nreturn e / e.sum(axis=1, keepdims=True)",
    "a mean of rows": SHIFTED + "return (np.log(e.sum(axis=1)) + top[:, 0] - x[:, 0]).mean()",
    "attention": SHIFTED + "return (e / e.sum(axis=1, keepdims=True)) @ (x.T @ x).T",
    "left out": SHIFTED + "return np.where(x > 0, e, 0).sum(axis=1) / e.sum(axis=1)",
    "squares": SHIFTED + "return (e * e).sum(axis=1) / (e.sum(axis=1) * e.sum(axis=1))"}
STAY = {
    "the exponentials": SHIFTED + "return e", "the maximum": "return x.max(axis=1)", "twice": SHIFTED + "return np.log(e.sum(axis=1)) + 2 * top[:, 0]",
    "of another row": SHIFTED + "return e / e.sum(axis=1, keepdims=True)[::-1]", "a sum over rows": SHIFTED + "return e.sum(axis=0) / e.sum()",
    "beside one": SHIFTED + "return e.sum(axis=1) / (e.sum(axis=1) + 1)", "a condition": SHIFTED + "return np.where(top[:, 0] > 0, x[:, 0], 2 * x[:, 0])",
    "a sine": SHIFTED + "return np.sin(x - top)", "different powers": SHIFTED + "return (e * e).sum(axis=1) / e.sum(axis=1)",
    "kept beyond": SHIFTED + "return np.where(x > 0, e, 1.0).sum(axis=1) / e.sum(axis=1)"}


def spec(code: str) -> SpecText:
    return SpecText("t.toml", f'[composite]\nname = "T"\ninputs = [{IN}]\noutputs = [{OUT}]\n[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n'
                              '[composite.test]\n[[composite.test.case]]\nname = "case"\nsizes = { M = 4, N = 4 }\n', "toml")


def found(code: str) -> int:
    (program,) = [driver.advance(p, "tensor", Options(runtime="numpy")) for p in loading.loaded([spec(code)], Options(runtime="numpy"))]
    assert isinstance(program, TensorProgram)
    return len(cancelling_maxima(program))


@pytest.mark.parametrize("name", CANCEL)
def test_maxima_that_cancel(name: str) -> None:
    assert found(CANCEL[name]) == 1


@pytest.mark.parametrize("name", STAY)
def test_maxima_that_do_not(name: str) -> None:
    assert found(STAY[name]) == 0


@pytest.mark.slice(6)
@pytest.mark.parametrize("name", [*CANCEL, *STAY])
def test_the_gradients_are_those_of_differences(name: str) -> None:
    results = caten.test(spec({**CANCEL, **STAY}[name]).text, grad=True, runtime="numpy")
    assert [c.status for f in results.files for c in f.cases] == ["ok"], results


def test_a_maximum_that_is_wrongly_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelling, "_cancels", lambda *_: True)
    results = caten.test(spec(STAY["the exponentials"]).text, grad=True, runtime="numpy")
    assert [c.status for f in results.files for c in f.cases] != ["ok"]
