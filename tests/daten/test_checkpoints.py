"""Checkpoints: the same values and gradients, from less memory."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import daten
from caten.core.program import Size
from caten.core.size_formula import evaluate
from caten.render.scratch_memory import scratch_bytes
from caten.tensor.lower import lower
from daten import Func, Tensor, assembly, checkpoint, gradcheck, gradients, graph_keys, nn, no_grad, random, realize

rng = np.random.default_rng(5)
X, W, V = rng.standard_normal((6, 4)), rng.standard_normal((4, 4)), rng.standard_normal((4, 4))


@pytest.fixture(autouse=True)
def numpy_runtime() -> Iterator[None]:
    daten.use("numpy", opt=daten.settings.options().opt)
    yield
    daten.use()


def block(x: Tensor, w: Tensor) -> Tensor:
    return x + ((x @ w).tanh() @ w).sin()


def both(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """A function of a function has the same value and gradients with a checkpoint."""
    plain, kept = [Tensor(a) for a in arrays], [Tensor(a) for a in arrays]
    a, b = function(lambda f: f, *plain), function(checkpoint, *kept)
    found = [a, *gradients(a, plain)], [b, *gradients(b, kept)]
    realize(*found[0])
    realize(*found[1])
    for x, y in zip(*found, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12)


def test_values_and_gradients_are_the_same() -> None:
    both(lambda c, x, w: (c(block)(c(block)(x, w), w) ** 2).sum(), X, W)


def test_tensors_that_a_function_has_otherwise_have_gradients() -> None:
    """Parameters, and values that were computed before."""
    def total(c: Any, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        scaled = v.exp()
        return (c(lambda h: (h @ w).tanh() * scaled.sum(axis=0))(x * 2.0) ** 2).sum() + scaled.mean()
    both(total, X, W, V)
    w = Tensor(W, requires_grad=True)
    checkpoint(lambda h: (h @ w).tanh())(Tensor(X)).sum().backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), X.T @ (1 - np.tanh(X @ W) ** 2))


def test_several_results_and_one_inside_another() -> None:
    def outer(c: Any) -> Callable[..., Any]:
        def two(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = c(block)(x, w)
            return y * 2.0, (y > 0.0).sum(), x
        return two
    both(lambda c, x, w: (c(outer(c))(x, w)[0] * c(outer(c))(x, w)[2]).sum(), X, W)


def test_second_derivatives() -> None:
    def slope(x: Tensor) -> Tensor:
        (g,) = gradients((checkpoint(lambda h: (h * h).sin())(x) * x).sum(), [x])
        return g
    assert gradcheck(slope, [X[0]]) < 1e-6


def test_what_is_drawn_inside_is_drawn_once() -> None:
    def run(c: Any) -> np.ndarray:
        random.seed(3)
        drop, x = nn.Dropout(0.5), Tensor(np.ones(64, np.float32))
        (g,) = gradients(c(lambda h: drop(h) * h)(x).sum(), [x])
        return g.numpy()
    np.testing.assert_array_equal(run(checkpoint), run(lambda f: f))


def test_gradients_by_hand_inside() -> None:
    class Twice(Func):
        def forward(self, *inputs: Tensor) -> Tensor:
            return inputs[0] * 2.0

        def backward(self, inputs: Any, outputs: Any, grads: Any) -> Any:
            return grads[0] * 3.0 * outputs[0] / inputs[0]
    both(lambda c, x: c(lambda h: Twice()(h.exp()).sin())(x).sum(), X)


def test_integers_and_what_needs_no_gradient() -> None:
    both(lambda c, w: (c(lambda at: w.take(at, axis=0).tanh())(Tensor(np.array([2, 0, 2]))) ** 2).sum(), W)
    with no_grad():
        assert checkpoint(block)(X, W).shape == X.shape


def test_less_memory_is_needed() -> None:
    """Of each block its input, not what is inside: one array for each, and a few."""
    def scratch(c: Any, length: int) -> int:
        x, weights = Tensor(X.astype(np.float32)), [Tensor((W + n).astype(np.float32)) for n in range(length)]
        h = x
        for w in weights:
            h = c(lambda h, w=w: (block(h, w).exp() * h).cos())(h)
        loss = (h * h).sum()
        wanted = [loss._ref, *[g._ref for g in gradients(loss, weights)]]
        program, _ = assembly.assembled(wanted, *graph_keys.leaves_of(wanted))
        return int(evaluate(scratch_bytes(lower(program)), {s.name: 512 for s in program.all(Size)}))
    daten.use()                             # what is computed is not run, and not compiled
    kept, plain = (scratch(c, 8) - scratch(c, 4) for c in (checkpoint, lambda f: f))
    assert kept == 4 * 512 * 512 * 4
    assert plain >= 2 * kept
