"""Gradients of functions, by hand and against differences."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daten import Func, Tensor, apply, grad, gradcheck, gradients, jit, operator, realize, value_and_grad

rng = np.random.default_rng(11)
X, W = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))


class Clipped(Func):
    """The number itself, of which the gradient is clipped; and how many were."""

    def forward(self, *inputs: Tensor) -> Any:
        (x,) = inputs
        return x * 1.0, (abs(x) > 1).sum()

    def backward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Any:
        assert inputs[0].shape == outputs[0].shape
        return apply("clip", grads[0], -0.5, 0.5)


class Wrong(Func):
    def forward(self, *inputs: Tensor) -> Any:
        return inputs[0] * inputs[1]

    def backward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Any:
        return (grads[0],)


def test_a_gradient_by_hand() -> None:
    x = Tensor(X, requires_grad=True)
    made, count = Clipped()(x * 2)
    ((made * made).sum()).backward()
    assert x.grad is not None
    realize(made, count, x.grad)
    np.testing.assert_allclose(made.numpy(), 2 * X)
    assert int(count) == (np.abs(2 * X) > 1).sum()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.clip(4 * X, -0.5, 0.5))
    with pytest.raises(ValueError, match="1 gradient for 2 inputs"):
        grad(lambda a, b: Wrong()(a, b).sum())(Tensor(X), Tensor(X))

    class Narrow(Clipped):
        def backward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Any:
            return grads[0][0]
    with pytest.raises(ValueError, match=r"^Narrow.backward gives a gradient of shape \(.*\) for input 0, which has the shape \("):
        grad(lambda a: Narrow()(a)[0].sum())(Tensor(X))


def test_gradients_of_functions() -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        return ((x @ w).tanh() ** 2).sum()
    inner = np.tanh(X @ W)
    expected = 2 * inner * (1 - inner ** 2)
    np.testing.assert_allclose(grad(f)(X, W).numpy(), expected @ W.T)
    both = grad(f, argnums=(0, 1))(X, W)
    np.testing.assert_allclose(both[1].numpy(), X.T @ expected)
    second = grad(lambda x: grad(lambda y: (y ** 3).sum())(x).sum())(Tensor(X))
    np.testing.assert_allclose(second.numpy(), 6 * X)


def test_gradients_with_respect_to_structures() -> None:
    """A dict of parameters has a dict of gradients; other arguments, also by name, stay what they are."""
    def loss(p: dict[str, Any], x: Tensor, power: int = 2, how: str | None = None) -> Tensor:
        made = x @ p["layers"][0] * p["scale"]
        return (made ** power).sum() if how is None else made.sum()
    found = grad(loss)({"layers": (W, None), "scale": 2.0, "name": "net"}, X, power=3)
    np.testing.assert_allclose(found["layers"][0].numpy(), 24 * X.T @ (X @ W) ** 2)
    assert (found["layers"][1], found["name"]) == (None, None)
    assert found["scale"].item() == pytest.approx(12 * ((X @ W) ** 3).sum(), rel=1e-5)
    parts = grad(lambda parts: (parts[0] * parts[1].sum()).sum())([Tensor(X), Tensor(W)])
    np.testing.assert_allclose(parts[1].numpy(), np.full(W.shape, X.sum()))
    assert grad(lambda x: (x ** 2).sum())([1.0, 2.0]).tolist() == [2.0, 4.0]
    np.testing.assert_allclose(grad(loss)({"layers": [W], "scale": 1.0}, X, 2, "sum")["layers"][0].numpy(), X.T @ np.ones((3, 2)))


def test_values_beside_gradients() -> None:
    def loss(p: dict[str, Any], x: Tensor) -> Any:
        made = (x @ p["w"]).tanh()
        return (made ** 2).sum(), {"made": made, "how": "tanh"}
    expected = np.tanh(X @ W)
    gradient = X.T @ (2 * expected * (1 - expected ** 2))
    for wrap in (lambda f: f, jit):
        (value, aux), found = wrap(value_and_grad(loss, has_aux=True))({"w": W}, X)
        assert (value.item(), aux["how"]) == (pytest.approx((expected ** 2).sum()), "tanh")
        np.testing.assert_allclose(aux["made"].numpy(), expected)
        np.testing.assert_allclose(found["w"].numpy(), gradient)
    value, (of_p, of_x) = value_and_grad(lambda p, x: loss(p, x)[0], argnums=(0, 1))({"w": W}, X)
    assert value.item() == pytest.approx((expected ** 2).sum())
    assert of_x.shape == X.shape
    np.testing.assert_allclose(of_p["w"].numpy(), gradient)
    found, aux = grad(loss, has_aux=True)({"w": W}, X)
    np.testing.assert_allclose(found["w"].numpy(), gradient)
    assert aux["how"] == "tanh"


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: grad(lambda x: (x * 2).sum())(np.arange(3)), ValueError, r"argument 0 is Tensor\(int64\[3\]\)"),
    (lambda: grad(lambda x, y: x.sum(), 1)(X, "text"), ValueError, "argument 1 is 'text'"),
    (lambda: grad(lambda x: x.sum(), (0, 2))(X), IndexError, "no argument 2 among 1 argument by position"),
    (lambda: grad(lambda x: (x.sum(), x))(X), ValueError, r"returns \(Tensor.*has_aux=True is for a scalar beside other results"),
    (lambda: value_and_grad(lambda x: x.sum(), has_aux=True)(X), ValueError, "value_and_grad: with has_aux the function returns a pair of a scalar"),
    (lambda: value_and_grad(lambda x: (3.0, x), has_aux=True)(X), ValueError, "returns 3.0, which is no tensor of a pair"),
    (lambda: grad(lambda x: 3.0)(X), ValueError, "returns 3.0, which is no tensor")])
def test_what_grad_cannot_differentiate_says_so(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_gradients_of_what_is_no_number_are_refused() -> None:
    x = Tensor(X, requires_grad=True)
    for function, call in (("gradients", lambda: gradients(x * 2, [x])), ("gradients", lambda: grad(lambda x: x * 2)(X)), ("backward", (x * 2).backward)):
        with pytest.raises(ValueError, match=rf"{function} of Tensor\(float64\[.*\], by multiply\): it is no number; give the gradient"):
            call()
    for refused in (lambda: gradients(x * 2, [x], np.ones(7)), lambda: (x * 2).backward(np.ones(7)), lambda: (x * 2).sum().backward(np.ones(1))):
        with pytest.raises(ValueError, match=r"the gradient with respect to it has the same shape, not \("):
            refused()
    (found,) = gradients(x * 2, [x], X)
    np.testing.assert_array_equal(found.numpy(), 2 * X)


def test_gradients_are_compared_with_differences() -> None:
    assert gradcheck(lambda x, w: (x @ w).softmax(axis=1), (X, W)) < 1e-6
    with pytest.raises(ValueError, match="the gradient with respect to input 0 at"):
        gradcheck(lambda x: Clipped()(x * 5)[0] * x, (X,))


def test_a_parameter_is_found_through_views_alone() -> None:
    """Indices, shapes and types of a parameter are uses of it."""
    for use in (lambda p: p[:2], lambda p: p.reshape(-1), lambda p: p.astype("float32"), lambda p: p.T, lambda p: p[np.array([0, 0])]):
        p = Tensor(X, requires_grad=True)
        use(p).sum().backward()
        assert p.grad is not None
        assert float(p.grad.sum()) == use(p).size


@pytest.mark.parametrize("values", [(2, 2.0), (2.0, 2), (0.0, -0.0), (-0.0, 0.0), (True, 1), ((1, 2), (1.0, 2))])
def test_attributes_that_are_equal_in_python_are_told_apart(tmp_path: Path, values: tuple[Any, Any]) -> None:
    """2 · x of int32 overflows, 2.0 · x does not."""
    first = "a[0]" if isinstance(values[0], tuple) else "a"
    (tmp_path / "scaled.toml").write_text(
        '[composite]\nname = "Scaled"\ninputs = ["x{i32}[N]"]\noutputs = ["y{f64}[N]"]\nattributes = ["a = 1"]\n[composite.implementation]\n'
        f'lang = "python"\ncode = "return np.copysign(1.0, {first} * 1.0) * ((x * {first}) * 0.5)"\n')
    x, scaled = np.array([2147483647, -5], np.int32), operator(str(tmp_path / "scaled.toml"))
    for a in values:
        known = a[0] if isinstance(a, tuple) else a
        with np.errstate(over="ignore"):
            product = x * (np.float64(known) if isinstance(known, float) else np.int32(known))
        np.testing.assert_array_equal(scaled(x, a=a).numpy(), np.copysign(1.0, known * 1.0) * (product * 0.5))


@pytest.mark.slice(2)
@pytest.mark.parametrize(("name", "at", "updates"), [("scatter", np.array([1, -2, 1, 5]), 4), ("scatter_nd", np.array([[0, 1], [2, 1], [0, 1]]), 3)])
def test_assigned_elements_have_second_derivatives(name: str, at: np.ndarray, updates: int) -> None:
    """Where the gradient of one does not depend on the other, its differences are what rounding leaves."""
    x, u = rng.standard_normal(6), rng.standard_normal(updates)
    for n in range(2):
        def first(x: Tensor, u: Tensor, n: int = n) -> Tensor:
            made = apply(name, x if name == "scatter" else x.reshape(3, 2), at, u)
            return gradients((made ** 3).sum(), [x, u])[n]
        gradcheck(first, [x, u])
