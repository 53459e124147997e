"""A target that is no class fails, in the loss and in its gradient, and so does what it is made of: an index of np.arange."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from daten import Tensor, gradients
from daten.tensor import apply

X = np.random.default_rng(0).standard_normal((3, 4))
W = np.random.default_rng(1).standard_normal((4, 4))
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": lambda x, t: apply("cross_entropy", x, t), "nll_loss": lambda x, t: apply("nll_loss", x, t),
    "multi_margin_loss": lambda x, t: apply("multi_margin_loss", x, t), "linear_cross_entropy": lambda x, t: apply("linear_cross_entropy", x, Tensor(W), t)}


@pytest.mark.parametrize("name", LOSSES)
def test_a_target_that_is_no_class_fails(name: str) -> None:
    x, target = Tensor(X), Tensor(np.array([0, 1, 4]))
    with pytest.raises(CatenError, match=r"E711: .*target.* is outside"):
        LOSSES[name](x, target).numpy()
    (gradient,) = gradients(LOSSES[name](x, target), [x])
    with pytest.raises(CatenError, match=r"E711: .*target.* is outside"):
        gradient.numpy()
    assert np.isfinite(LOSSES[name](x, Tensor(np.array([0, 1, 3]))).numpy())


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "multi_margin_loss"])
def test_a_negative_target_is_left_out(name: str) -> None:
    x, some = Tensor(X), Tensor(X[[0, 2]])
    left_out, without = LOSSES[name](x, Tensor(np.array([1, -100, 3], np.int32))), LOSSES[name](some, Tensor(np.array([1, 3])))
    np.testing.assert_allclose(left_out.numpy(), without.numpy(), rtol=1e-12)
    (wide,), (narrow,) = gradients(left_out, [x]), gradients(without, [some])
    np.testing.assert_allclose(wide.numpy()[[0, 2]], narrow.numpy(), rtol=1e-12)
    assert not wide.numpy()[1].any()


def test_a_negative_target_of_a_margin_fails() -> None:
    with pytest.raises(CatenError, match="E711"):
        apply("multi_margin_loss", Tensor(X), Tensor(np.array([0, -1, 3]))).numpy()


def test_a_target_of_many_that_is_no_class_fails() -> None:
    def loss(target: list[list[int]]) -> Tensor:
        return apply("multilabel_margin_loss", Tensor(X), Tensor(np.array(target)))
    rows = [[0, -1, 9, 9], [3, 2, -1, -9], [-1, 4, 4, 4]]         # what is after a negative one is not looked at
    np.testing.assert_allclose(loss(rows).numpy(), loss([[0, -1, 0, 0], [3, 2, -1, -1], [-1, 0, 0, 0]]).numpy())
    with pytest.raises(CatenError, match=r"E711: .*multilabel_margin_loss: .*target.* is outside \["):
        loss([[0, 4, -1, -1], *rows[1:]]).numpy()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_one_of_no_class_fails(dtype: str) -> None:
    made = apply("one_hot", Tensor(np.array([2, 0, 4], dtype)), depth=5)
    np.testing.assert_array_equal(made.numpy(), np.eye(5, dtype=np.float32)[[2, 0, 4]])
    wrong = (5, 100, 255) if dtype == "uint8" else (5, 100, -1)
    for each in wrong:
        with pytest.raises(CatenError, match=r"E711: .*one_hot: .*index.* is outside \["):
            apply("one_hot", Tensor(np.array([2, each], dtype)), depth=5).numpy()


@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("code", ["np.arange(C)[t]", "np.arange(C)[np.where(t < 0, 0, t)] + 1"])
def test_an_index_of_a_range_is_checked(code: str, opt: int) -> None:
    spec = f'[composite]\nname = "Places"\ninputs = ["x{{float}}[C]", "t{{int}}[N]"]\noutputs = ["y{{int}}[N]"]\n\n[implementation]\nlang = "python"\ncode = "return {code}"\n'
    places, x = caten.compile(spec, opt=opt), np.ones(4, np.float32)
    t = np.array([0, 3, -1 if "where" not in code else 2])
    np.testing.assert_array_equal(places(x, t), eval(code, {"np": np, "C": 4, "t": t}))
    for wrong in (4, -5) if "where" not in code else (4,):
        with pytest.raises(CatenError, match=r"E711: Places: .*is outside \["):
            places(x, np.array([0, 1, wrong]))
