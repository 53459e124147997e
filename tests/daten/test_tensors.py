"""Lazy tensors: what NumPy gives, gradients, and that a graph like one before compiles nothing."""
from __future__ import annotations

import gc
import operator
import random
import re
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daten
import daten.array_api as xp
from caten.errors import CatenError, UsageError
from daten import Tensor, gradients, realization, realize

rng = np.random.default_rng(3)


def real(*shape: int, dtype: str = "float64") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


X, Y, V = real(4, 6), real(4, 6), real(6)


@pytest.mark.slice(6)
@pytest.mark.parametrize(("made", "expected"), [
    (lambda: Tensor(X) + Tensor(V) * 2 - 1, lambda: X + V * 2 - 1),
    (lambda: 1 / (Tensor(X) ** 2 + 1), lambda: 1 / (X ** 2 + 1)),
    (lambda: Tensor(X) @ Tensor(Y).T, lambda: X @ Y.T),
    (lambda: Tensor(X) @ V, lambda: X @ V), (lambda: V @ Tensor(X).T, lambda: V @ X.T), (lambda: Tensor(V) @ V, lambda: V @ V),
    (lambda: (Tensor(X) - Tensor(X).max(axis=1, keepdims=True)).exp().sum(axis=1), lambda: np.exp(X - X.max(1, keepdims=True)).sum(1)),
    (lambda: Tensor(X)[1:, ::-2], lambda: X[1:, ::-2]), (lambda: Tensor(X)[-1, None, ...], lambda: X[-1, None, ...]),
    (lambda: Tensor(X).reshape(3, -1).softmax(axis=0), lambda: np.exp(X.reshape(3, -1)) / np.exp(X.reshape(3, -1)).sum(0)),
    (lambda: Tensor(X).reshape((2, 2, 6)).transpose(2, 0, 1), lambda: X.reshape(2, 2, 6).transpose(2, 0, 1)),
    (lambda: (Tensor(X) > Tensor(V)).where(Tensor(X), 0.0), lambda: np.where(X > V, X, 0)),
    (lambda: Tensor(X).sort(axis=1) * 2, lambda: np.sort(X, axis=1) * 2),
    (lambda: Tensor(X).take(Tensor(np.array([3, 0, -1])), axis=0), lambda: X[[3, 0, -1]]),
    (lambda: abs(-Tensor(X)).mean(), lambda: np.abs(X).mean()), (lambda: Tensor(X).astype("int32") + 3, lambda: X.astype(np.int32) + 3),
    (lambda: Tensor(X[:0]).sum(axis=0) + Tensor(V), lambda: V), (lambda: Tensor(X).softmax(axis=1).sum(axis=1), lambda: np.ones(4)),
    *[(partial(op, *[Tensor(v) if isinstance(v, np.ndarray) and n == of else v for n, v in enumerate(pair)]), partial(op, *pair))
      for op in (operator.add, operator.mul, operator.and_, operator.or_) for pair, of in (
          ((X > 0, Y > 0), 0), ((X > 0, V > 0), 1), ((X > 0, True), 0), ((False, X > 0), 1), ((X > 0, np.arange(6)), 0), ((X > 0, 2), 0))],
    (lambda: abs(Tensor(X > 0)), lambda: X > 0), (lambda: Tensor(X > 0).sort(axis=0), lambda: np.sort(X > 0, axis=0)),
    (lambda: Tensor(X).topk(k=2)[0], lambda: np.sort(X, 1)[:, :-3:-1])])
def test_what_numpy_gives(made: Any, expected: Any) -> None:
    found = made()
    assert found.shape == expected().shape                          # known before anything is computed
    assert found.dtype == str(expected().dtype)
    np.testing.assert_allclose(found.numpy(), expected(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("at", [
    np.s_[:100], np.s_[-100:], np.s_[100:], np.s_[:-100], np.s_[:, -300:300:3], np.s_[3:1], np.s_[3:-3], np.s_[100::-1], np.s_[2:-100:-1, 3:],
    np.s_[-100::-1], np.s_[::-1, 7:]], ids=str)
def test_slices_are_clipped(at: Any) -> None:
    """Reading, assignment and gradients."""
    x = Tensor(X, requires_grad=True)
    assert x[at].shape == X[at].shape
    np.testing.assert_array_equal(x[at].numpy(), X[at])
    (x[at] * 2).sum().backward()
    changed, there, expected, gradient = Tensor(X) + 0.0, Tensor(X), X.copy(), np.zeros_like(X)
    changed[at], there[at], expected[at], gradient[at] = 1.0, 1.0, 1.0, 2.0
    np.testing.assert_array_equal(changed.numpy(), expected)
    np.testing.assert_array_equal(there.numpy(), expected)
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), gradient)


@pytest.mark.parametrize(("at", "value"), [
    (0, V[:5]), (0, X[:2]), (np.s_[9:], X), (np.s_[:1], X[:0]), (X > 0, V[:2]), (np.array([0, 1]), X[:3]), (np.array([0, 4]), 1.0), (np.array([0, -5]), 1.0),
    ((np.array([0, 1]), np.array([0, 1, 2])), 1.0), (False, V[:3])])
def test_an_assignment_that_does_not_fit_is_refused_at_once(at: Any, value: Any) -> None:
    with pytest.raises((ValueError, IndexError)) as by_numpy:
        X.copy()[at] = value
    x = Tensor(X)
    with pytest.raises(by_numpy.type, match=r"fit|out of bounds"):
        x[at] = value
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("at", [0, np.array([0, 2]), np.s_[1:, 2]], ids=str)
def test_axes_of_1_in_front_of_a_value_are_left_out(at: Any) -> None:
    x, expected = Tensor(X), X.copy()
    x[at] = Tensor(Y)[at].reshape(1, 1, *Y[at].shape) * 2
    expected[at] = Y[at] * 2
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("at", [np.array(1), (np.array(-2), [2, 0]), (slice(None), None, np.array(1)), (np.array([True, False, True]), np.array(0))])
def test_an_index_without_axes_is_a_number(at: Any) -> None:
    array = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(Tensor(array)[at].numpy(), array[at])
    x = Tensor(array)
    x[at] = 2.5
    array[at] = 2.5
    assert np.array_equal(x.numpy(), array)


def test_numbers_in_indices_compile_nothing_where_the_values_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients go through what was changed, and what an array was before is kept by others."""
    x, w = Tensor(X), Tensor(Y[:, 0], requires_grad=True)
    before, kept, expected = x, x + 0.0, X.copy()
    monkeypatch.setattr(realization, "known_build", None)
    for n in range(3):
        x[n] = float(n)
        x[-1, 1:3] = [n, 2]
        expected[n], expected[-1, 1:3] = n, [n, 2]
        np.testing.assert_array_equal(x.numpy(), expected)
    x[1, :4] = w
    expected[1, :4] = Y[:, 0]
    np.testing.assert_array_equal(x.numpy(), expected)
    monkeypatch.undo()
    assert before is x
    np.testing.assert_array_equal(kept.numpy(), X)
    (x * x).sum().backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), 2 * Y[:, 0])


@pytest.mark.parametrize("axes", [4, 5])
def test_an_array_of_many_axes_is_read_as_one_row(axes: int) -> None:
    array = real(3, 2, 4, 3, 2)[(0,) * (5 - axes)]
    flat, rows = Tensor(array).ravel(), Tensor(array).reshape(-1, 2)
    x = Tensor(array)
    x[..., [1, 0]] = 3.0
    changed = array.copy()
    changed[..., [1, 0]] = 3.0
    realize(made := flat[::-1] * 2, last := rows[::-1] + 1, x)
    assert np.array_equal(made.numpy(), array.ravel()[::-1] * 2)
    assert np.array_equal(last.numpy(), array.reshape(-1, 2)[::-1] + 1)
    assert np.array_equal(x.numpy(), changed)


def test_elements_of_a_padded_array_are_taken() -> None:
    array = np.arange(5.0)
    at = np.array([0, -1, 3, 7])
    made = np.take(np.pad(Tensor(array), ((1, 2),)), at)
    assert np.array_equal(made.numpy(), np.pad(array, ((1, 2),))[at])


def test_no_gradient_goes_through_integers() -> None:
    x = Tensor([1.0, -2.0, 3.0], requires_grad=True)
    mask, best = (x > 0).astype("float32"), x.argmax().astype("float32")
    (made,) = gradients((mask * x * x).sum() + best * x.sum(), [x])
    assert made.tolist() == [4.0, 2.0, 8.0]
    (at,) = gradients((x * Tensor(np.arange(3)).astype("float32")).sum(), [x])
    assert at.tolist() == [0.0, 1.0, 2.0]
    for given in ([1, 2], [True], [1j]):
        with pytest.raises(ValueError, match="only floats have gradients"):
            Tensor(given, requires_grad=True)
    with pytest.raises(CatenError, match="E676: complex_abs has no gradient: gradients of complex numbers are not known"):
        gradients(abs(x * 1j).sum(), [x])


def test_numbers_beside_float64_are_not_rounded() -> None:
    x = Tensor(np.zeros(3))
    x[0] = 0.1
    x[1:] = [0.2, 0.3]
    assert x.tolist() == [0.1, 0.2, 0.3]
    assert np.add(x, [0.1, 0.2, 0.3]).tolist() == [0.2, 0.4, 0.6]
    assert np.maximum(x, [0.7, 0.1, 0.1]).tolist() == [0.7, 0.2, 0.3]
    w = Tensor([1.0], requires_grad=True)
    x[:1] = w * 3
    x.sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0]


def test_lists_of_integers_beyond_a_type_are_refused() -> None:
    x = Tensor(np.zeros(2, np.uint8))
    with pytest.raises(OverflowError):
        x[:1] = [300]
    with pytest.raises(OverflowError):
        Tensor([1, 300], dtype="uint8")


def test_rows_of_data_are_there_at_once_and_have_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over batches compiles nothing for each of them; what is computed from them is differentiated."""
    data = Tensor(X)
    (data[0:2] * 2).sum().item()
    monkeypatch.setattr(realization, "known_build", None)
    for n in (1, 2):
        assert (data[n:n + 2] * 2).sum().item() == pytest.approx(2 * X[n:n + 2].sum())
    assert [row.tolist() for row in data] == X.tolist()
    monkeypatch.undo()
    np.testing.assert_array_equal(daten.grad(lambda x: (x[1] * x[1, 2]).sum())(X).numpy()[[0, 2]], np.zeros((2, 6)))
    assert daten.gradcheck(lambda x: x[1] * x[1, 2] + x[-1], [X]) < 1e-6
    w = Tensor(X, requires_grad=True)
    (w[1] ** 2).sum().backward()
    assert w.grad is not None
    np.testing.assert_array_equal(w.grad.numpy()[1], 2 * X[1])


def test_numbers_of_python() -> None:
    x = Tensor([1.26, 2.0])
    assert (round(Tensor(2.6)), round(x, 1).tolist(), [t.tolist() for t in divmod(x, 2)]) == (3, pytest.approx([1.3, 2.0]), [[0.0, 1.0], pytest.approx([1.26, 0.0])])
    assert [x == None, x != None, x == "text"] == [False, True, False]   # noqa: E711
    with pytest.raises(ValueError, match=r"Tensor\(bool\[2\], by greater\) is neither true nor false: x\.any\(\)"):
        bool(x > 1.5)


def test_what_a_tensor_is_computed_by_has_a_name() -> None:
    x = Tensor(Y)
    whole = Tensor([2]) ** 3
    assert [repr(t) for t in (x, x[:, 0], whole, (x + 1).detach())] == [
        "Tensor(float64[4, 6])", "Tensor(float64[4], by getitem)", "Tensor(int64[1], by pow)", "Tensor(float64[4, 6], by detach)"]
    x += 1
    x[0] = 1
    assert repr(x) == "Tensor(float64[4, 6], by setitem)"


def test_a_number_is_formatted_as_one() -> None:
    assert f"{Tensor(2.5) * 2:.2f} {Tensor([1.0])}" == "5.00 Tensor(float32[1])"
    with pytest.raises(TypeError):
        format(Tensor([1.0]), ".2f")


@pytest.mark.parametrize(("given", "dtype"), [
    ([1.0, 2.0], "float32"), ([[1, 2.5]], "float32"), ([1j], "complex64"), ([np.array([1.0, 2.0])], "float64"), ([np.float64(1 / 3), 2.0], "float64"),
    ([[1.0], (np.float64(2),)], "float64"), ([np.complex128(1)], "complex128"), ([np.array([1.0], np.float32), [2.0]], "float32"),
    ([np.float32(1), np.float64(2)], "float64"), ([np.float16(1), 2.0], "float32"), (array("d", [1.0]), "float64")], ids=str)
def test_arrays_in_lists_keep_their_type(given: Any, dtype: str) -> None:
    made = Tensor(given)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.numpy(), np.asarray(given, dtype))


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    x = Tensor(X)
    y = x.exp()
    assert repr(y) == "Tensor(float64[4, 6], by exp)"
    assert y._ref.array is None
    assert np.asarray(y).shape == (4, 6)
    assert repr(y) == "Tensor(float64[4, 6])"
    assert float(Tensor(2.5)) == 2.5
    assert Tensor([1.0, 2.0]).dtype == "float32"
    with pytest.raises(AttributeError, match="no such operator: did you mean 'softmax'"):
        x.softmaks()
    with pytest.raises(AttributeError, match="did you mean 'reshape'"):
        x.reshap(3)
    with pytest.raises(CatenError, match=r"softmax: there is no attribute 'axs'\n.*did you mean 'axis'"):
        x.softmax(axs=0)
    with pytest.raises(CatenError, match=r"sum: there is no attribute 'dim'\n.*did you mean 'axis'"):
        x.sum(dim=0)


def test_an_array_that_changes_later_changes_no_tensor() -> None:
    own = X.copy()
    x = Tensor(own)
    own[...] = 0
    np.testing.assert_array_equal(x.numpy(), X)
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0, 0] = 1


def mlp(x: np.ndarray, parameters: list[np.ndarray]) -> tuple[Tensor, list[Tensor]]:
    w1, b1, w2, b2 = (given := [Tensor(p, requires_grad=True) for p in parameters])
    hidden = (Tensor(x) @ w1 + b1).tanh()
    return -(hidden @ w2 + b2).log_softmax(axis=1)[:, 0].mean(), given


def differences(f: Any, parameters: list[np.ndarray], h: float = 1e-5) -> list[np.ndarray]:
    found = []
    for n, p in enumerate(parameters):
        g = np.zeros_like(p)
        for at in np.ndindex(p.shape):
            moved = [[q.copy() for q in parameters] for _ in range(2)]
            moved[0][n][at] += h
            moved[1][n][at] -= h
            g[at] = (f(moved[0]) - f(moved[1])) / (2 * h)
        found.append(g)
    return found


def test_the_gradients_of_a_network() -> None:
    x, parameters = real(5, 3), [real(3, 4), real(4), real(4, 2), real(2)]
    loss, given = mlp(x, parameters)
    loss.backward()
    realize(loss, *[p.grad for p in given if p.grad is not None])
    for p, expected in zip(given, differences(lambda ps: mlp(x, ps)[0].item(), parameters), strict=True):
        assert p.grad is not None
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_tensors_in_lists_are_stacked_with_gradients() -> None:
    x = Tensor(V, requires_grad=True)
    made, total = Tensor([[x[0], 3.0, x[1]], [x[1] * 2, x[0], 1]]), x + [x[n] for n in range(6)]
    np.testing.assert_allclose(made.numpy(), [[V[0], 3, V[1]], [V[1] * 2, V[0], 1]])
    (made * made).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [4 * V[0], 10 * V[1], 0, 0, 0, 0])
    np.testing.assert_allclose(daten.gradients(total.sum(), [x])[0].numpy(), np.full(6, 2.0))
    y = Tensor(X)
    y[1] = [x.sum()] * 6
    np.testing.assert_allclose(daten.gradients(y.sum(), [x])[0].numpy(), np.full(6, 6.0))
    assert xp.asarray([Tensor(X), Tensor(Y)]).dtype == "float64"
    assert Tensor([Tensor([1.5]), Tensor([2.5])], dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match=r"one shape, not of \(6,\) and \(4, 6\)"):
        Tensor([x, X])


def test_gradients_add_up_and_can_be_differentiated_again() -> None:
    x = Tensor(V, requires_grad=True)
    y = (x * x * x).sum()
    y.backward()
    y.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 6 * V ** 2)
    assert y.item() == pytest.approx((V ** 3).sum())
    (first,) = daten.gradients(y, [x])                          # of what is computed already, too
    (second,) = daten.gradients(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), 6 * V)
    (none,) = daten.gradients(x.detach().sum() * 2, [Tensor(V)])
    np.testing.assert_array_equal(none.numpy(), 0 * V)
    with pytest.raises(ValueError, match="it is no number"):
        (x * 2).backward()
    (weighted,) = daten.gradients(x * 2, [x], np.arange(6.0))
    np.testing.assert_array_equal(weighted.numpy(), 2 * np.arange(6.0))


def test_no_gradient_goes_through_what_is_detached() -> None:
    for is_computed in (False, True):
        x = Tensor(V, requires_grad=True)
        y = x * 2
        if is_computed:
            y.realize()
        (y.detach() * x + x.detach()).sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), 2 * V)
    z = Tensor(V, requires_grad=True)
    with pytest.raises(ValueError, match="no tensor that it depends on requires gradients"):
        (z * 2).detach().sum().backward()
    with daten.no_grad():
        loss = z.sum()
    with pytest.raises(ValueError, match="made in no_grad"):
        loss.backward()
    assert z.grad is None
    number = Tensor(2.0, requires_grad=True)
    number.backward()
    assert number.grad is not None
    assert number.grad.item() == 1.0


def test_a_parameter_with_a_new_value_is_found_by_that_alone() -> None:
    """What was recorded for the old value is gone with it, and a new node in its place is none of the parameter's."""
    from daten.tensor import _RECORDED
    p, optimizer = (p := Tensor(V, requires_grad=True)), daten.optim.SGD([p], lr=0.1)
    (p * p).sum().backward()
    old = p * 1.0
    optimizer.step()
    gc.collect()
    assert old.sum()._ref.node is not None
    assert _RECORDED.reachable(old.sum()._ref) == []
    assert _RECORDED.reachable((p * 2).sum()._ref) == [p]
    del old
    gc.collect()
    assert sum([any(t is p for t in entry.values()) for entry in _RECORDED.tensors.values()]) == 1


def test_a_graph_like_one_before_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Built anew from other arrays, for a batch of another size too, also where it happens to be that of a parameter."""
    def run(n: int) -> Tensor:
        loss, given = mlp(real(n, 4), [real(4, 7), real(7), real(7, 3), real(3)])
        loss.backward()
        realize(loss, *[p.grad for p in given if p.grad is not None])
        return loss
    run(5)
    monkeypatch.setattr(realization, "known_build", None)
    assert np.isfinite(run(5).item())
    assert np.isfinite(run(7).item())
    assert np.isfinite(run(4).item())


def test_a_reshape_keeps_sizes_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is split into sizes of the graph stays free; what is split into other extents is a number of the program."""
    def heads(batch: int, time: int, count: int) -> None:
        a = real(batch, time, 12)
        made = ((Tensor(a) * 2).reshape(batch, time, count, 12 // count).transpose(0, 2, 1, 3) + 1).reshape(batch * count, -1)
        expected = (a * 2).reshape(batch, time, count, -1).transpose(0, 2, 1, 3) + 1
        np.testing.assert_allclose(made.numpy(), expected.reshape(batch * count, -1))

    def there_and_back(m: int, n: int) -> None:
        a = real(m, n)
        np.testing.assert_allclose(((Tensor(a) + 1).reshape(-1) * 2).reshape(m, n).numpy(), (a + 1) * 2)
    heads(2, 5, 3)
    there_and_back(3, 4)
    monkeypatch.setattr(realization, "known_build", None)
    heads(4, 6, 3)
    heads(3, 3, 3)
    there_and_back(7, 5)
    there_and_back(4, 4)
    with pytest.raises(AttributeError, match="loaded"):
        heads(2, 5, 4)                                          # another number of heads is another program


def test_what_cannot_be_differentiated_says_so() -> None:
    x = Tensor(X, requires_grad=True)
    with pytest.raises(CatenError, match=r"E676: nextafter.*has no gradient"):
        xp.nextafter(x, x + 1).sum().backward()


@pytest.mark.parametrize(("made", "text"), [
    (lambda: xp.concat([Tensor(X), Tensor(X[:, :5])], axis=0), "concatenate: axis 1 of x has to be equal to axis 1 of y: axis 1 of x is 6, axis 1 of y is 5"),
    (lambda: np.einsum("ij,jk->ik", Tensor(X), Tensor(X)), "einsum: axis 1 of x has to be equal to axis 0 of y: axis 1 of x is 6, axis 0 of y is 4"),
    (lambda: daten.apply("squeeze", Tensor(X), axis=0), "squeeze: axis 0 of x has to be 1, and is 4"),
    (lambda: Tensor(X).broadcast_to(shape=(4, 5)), "broadcast_to: axis 1 of x has to be 5, and is 6"),
    (lambda: Tensor(X).topk(k=9, axis=1), "topk: axis 1 of x has to be at least 9, and is 6"),
    (lambda: Tensor(X) @ Tensor(X), "matmul: axis 0 of y has to be equal to axis 1 of x: axis 0 of y is 4, axis 1 of x is 6"),
    (lambda: Tensor(np.ones((1, 5, 8, 8))).conv2d(np.ones((4, 2, 3, 3)), groups=2),
     "conv2d: axis 1 of x has to be equal to 2 * axis 1 of weight: axis 1 of x is 5, axis 1 of weight is 2"),
    (lambda: daten.nn.Conv2d(3, 4, 5)(Tensor(np.ones((1, 3, 3, 8), np.float32))),
     "conv2d: y would have the shape (1, 4, -1, 4): axis 2 of x is 3, axis 2 of weight is 5")])
def test_extents_that_do_not_fit_are_refused_where_the_operator_is_written(made: Any, text: str) -> None:
    with pytest.raises(CatenError, match=f"^E675: {re.escape(text)}$"):
        made()


def test_integers_beyond_a_type_are_refused_and_compare() -> None:
    own = np.array([-3, 0, 100], np.int8)
    x = Tensor(own)
    refused: list[Any] = [lambda x: x + 300, lambda x: -129 * x, lambda x: x.__setitem__(0, 300)]
    for function in refused:
        for given in (own.copy(), x):
            with pytest.raises(OverflowError, match="out of bounds for int8"):
                function(given)
    for n in (300, -300, 100, -3, 1 << 70):
        for found, expected in ((x < n, own < n), (n < x, n < own), (x == n, own == n), (n != x, n != own), (np.less_equal(x, n), own <= n)):
            np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal((x + 27).numpy(), own + 27)
    np.testing.assert_array_equal(np.clip(x, -1000, 50).numpy(), np.clip(own, -1000, 50))


@pytest.mark.parametrize("function", [lambda x, t: x ** -1, lambda x, t: x ** t([2, -1]), lambda x, t: 2 ** t([3, -1])])
def test_negative_powers_of_integers_are_refused(function: Any) -> None:
    for of in (np.array, Tensor):
        with pytest.raises(ValueError, match="negative integer powers"):
            function(of([2, 3]), of)


def test_a_step_of_0_is_refused() -> None:
    for count in (5, 0):
        with pytest.raises(ValueError, match="step is 0"):
            xp.arange(0, count, 0)


def test_a_check_fails_as_in_the_operator() -> None:
    with pytest.raises(CatenError, match="outside"):
        Tensor(X).take(Tensor(np.array([7])), axis=0).numpy()
    picked = Tensor(X).take(Tensor(np.array([1, 3])), axis=0)
    for at, fits in ((1, True), (2, False)):                      # two checks of one kind have numbers of their own
        both = picked.take(Tensor(np.array([at])), axis=0) + Tensor(X).take(Tensor(np.array([3])), axis=0)
        if fits:
            np.testing.assert_array_equal(both.numpy(), X[[3]] * 2)
        else:
            with pytest.raises(CatenError, match="outside"):
                both.numpy()


SPEC = """[[composite]]
name = "Running"
inputs = ["x{float64}[N]"]
outputs = ["y{float64}[N]"]

[composite.implementation]
lang = "python"
code = '''
y[0] = x[0]
for i in range(1, N):
    y[i] = 0.5 * y[i - 1] + x[i]
'''

[composite.gradient]
lang = "python"
code = '''
g = np.empty_like(x)
g[N - 1] = grad_y[N - 1]
for i in range(1, N):
    g[N - 1 - i] = grad_y[N - 1 - i] + 0.5 * g[N - i]
return g
'''

[composite.test]
requirements = ["N > 0"]

[[composite]]
name = "Twice"
inputs = ["x{float64}[N]"]
outputs = ["y{float64}[N]"]

[composite.implementation]
lang = "python"
code = "return 2 * x"
"""


def test_an_operator_of_a_spec_with_a_gradient_by_hand() -> None:
    running = daten.operator(SPEC, "Running")
    x = Tensor(V, requires_grad=True)
    y = running(x * 2)
    (y * y).sum().backward()
    expected = [0.0]
    for v in 2 * V:
        expected.append(0.5 * expected[-1] + v)
    np.testing.assert_allclose(y.numpy(), expected[1:])
    jacobian = np.array([[0.5 ** (i - j) if j <= i else 0 for j in range(6)] for i in range(6)])
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * jacobian.T @ (2 * np.array(expected[1:])))
    with pytest.raises(ValueError, match="name one of them"):
        daten.operator(SPEC)
    with pytest.raises(CatenError, match="x has elements of type float32, not float64"):
        running(Tensor([1.0]))
    with pytest.raises(CatenError, match="has 1 input, not 2"):
        running(x, x)


def test_an_operator_of_a_file_is_applied_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "cube.toml").write_text('''
[composite]
name = "Cube"
attributes = ["factor = 1.0"]
inputs = ["x{Floating}[N]"]
outputs = ["y{Floating}[N]"]
[implementation]
lang = "python"
code = "return factor * x ** 3"
''')
    for apply in (Tensor.apply, daten.apply, Tensor(V).apply):
        for name in (tmp_path / "cube.toml", str(tmp_path / "cube.toml")):
            np.testing.assert_allclose(apply(name, V, factor=2.0).numpy(), 2 * V ** 3)
        np.testing.assert_array_equal(apply("negative", V).numpy(), -V)
    with pytest.raises(CatenError, match=r"cannot read 'none\.toml'"):
        Tensor.apply("none.toml", V)


def test_shapes_that_do_not_fit_are_refused_at_once() -> None:
    with pytest.raises(CatenError, match="E675"):
        Tensor(X) @ Tensor(X)


def test_a_sine_is_learned() -> None:
    draw = np.random.default_rng(0)
    x = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    parameters = [draw.standard_normal(s).astype("f4") for s in ((1, 16), (16,), (16, 1), (1,))]
    losses = []
    for _ in range(300):
        w1, b1, w2, b2 = (tensors := [Tensor(p, requires_grad=True) for p in parameters])
        error = (Tensor(x) @ w1 + b1).tanh() @ w2 + b2 - Tensor(np.sin(x))
        loss = (error * error).mean()
        loss.backward()
        realize(loss, *[p.grad for p in tensors if p.grad is not None])
        parameters = [t.numpy() - 0.05 * t.grad.numpy() for t in tensors if t.grad is not None]
        losses.append(loss.item())
    assert losses[-1] < 0.02 < 1 < losses[0]


MAPS = ("tanh", "exp", "sigmoid", "relu", "abs", "softplus", "square", "negative")


def drawn(draw: random.Random, leaves: list[np.ndarray], tensors: bool) -> tuple[list[Any], Any]:
    """A graph of ten operators over float64 matrices [4 4], by daten or by itself again: the same draws."""
    given = [Tensor(a, requires_grad=True) for a in leaves] if tensors else list(leaves)
    pool = list(given)
    for _ in range(10):
        a, b, kind = draw.choice(pool), draw.choice(pool), draw.randrange(8)
        fn, axis, at = draw.choice(MAPS), draw.randrange(2), draw.randrange(3)
        if kind == 0:
            made = getattr(a, fn)()
        elif kind in (1, 2):
            made = a * b if kind == 1 else a - b * 0.5
        elif kind == 3:
            made = (a @ b) * 0.25
        elif kind == 4:
            made = a.softmax(axis=axis)
        elif kind == 5:
            made = a.T + b.mean(axis=axis, keepdims=True)
        elif kind == 6:
            made = a[at:at + 1] * b.reshape(2, 8).reshape(4, 4)
        else:
            made = a.concatenate(b, axis=axis).reshape(2, 4, 4).sum(axis=0)
        pool.append(made)
    return given, (pool[-1] * pool[-2]).tanh().sum()


def test_gradients_of_random_graphs(nightly: bool) -> None:
    compared = 0
    for seed in range(200 if nightly else 4):
        leaves = [np.random.default_rng(seed + n).uniform(-1, 1, (4, 4)) for n in range(3)]
        given, loss = drawn(random.Random(seed), leaves, True)
        loss.backward()
        wanted = [p for p in given if p.grad is not None]
        realize(loss, *[p.grad for p in wanted if p.grad is not None])
        for n, p in enumerate(given):
            if p.grad is None:
                continue
            for at in ((0, 0), (1, 3), (3, 2)):
                values = []
                for h in (-1e-5, 1e-5):
                    moved = [a.copy() for a in leaves]
                    moved[n][at] += h
                    values.append(drawn(random.Random(seed), moved, True)[1].item())
                slope = (values[1] - values[0]) / 2e-5
                assert abs(p.grad.numpy()[at] - slope) < 1e-6 * max(1, abs(slope)), (seed, n, at)
                compared += 1
    assert compared > 10
    gc.collect()


def test_what_is_computed_without_gradients_keeps_nothing() -> None:
    import weakref
    x = Tensor(X)
    with daten.no_grad():
        y = x * 2
        z = (y + 1).reshape(6, 4)[::-1].astype("float32")
    old = weakref.ref(x._ref.node)
    assert z.realize().shape == (6, 4)
    del x, y
    gc.collect()
    assert old() is None
    np.testing.assert_allclose(z.numpy(), (X * 2 + 1).reshape(6, 4)[::-1], rtol=1e-6)
    kept = Tensor(X, requires_grad=True)
    with daten.no_grad():
        loss = (kept * 2).sum()
    (loss * kept).sum().backward()                          # loss is a number here
    assert kept.grad is not None
    np.testing.assert_allclose(kept.grad.numpy(), np.full(X.shape, X.sum() * 2))


def test_loops_of_an_operator_have_names_of_their_own(nightly: bool) -> None:
    """A nest declares names; values, arrays and sizes of the graph have others."""
    nest = daten.operator("""
[composite]
name = "Nest"
inputs = ["x{Floating}[N]"]
outputs = ["y{Floating}[N]"]

[implementation]
code = '''
(let ((v0 0.0) (v1 1.0) (in0 2.0) (out0 3.0))
  (dotimes (size0 N)
    (set v0 (+ v0 (aref x size0)))
    (set v1 (* v1 in0))
    (setf (aref y size0) (+ v0 (* out0 v1)))))
'''
""")
    own = real(5)
    expected = np.cumsum(own * 2 + 1) + 3 * 2.0 ** np.arange(1, 6)
    np.testing.assert_allclose((nest(Tensor(own) * 2 + 1) - Tensor(own)).numpy(), expected - own)
    if not nightly:                            # seconds of planning; the operator by itself is in tests/ops by day, too
        return
    complex_ = real(3, 7) + 1j * real(3, 7)
    np.testing.assert_allclose((Tensor(complex_) * 2 + 1).fft().numpy(), np.fft.fft(complex_ * 2 + 1), atol=1e-12)


def test_sizes_that_happen_to_be_equal_are_asked_for() -> None:
    """A library for two arrays of one shape, or for equal products, is not taken for others."""
    def joined(m: int, n: int) -> None:
        a, b = real(m), real(n)
        np.testing.assert_allclose((Tensor(a) * 2).concatenate(Tensor(b) + 1).numpy(), np.concatenate((a * 2, b + 1)))

    def paired(shape: tuple[int, int], other: tuple[int, int]) -> None:
        a, b = real(*shape), real(*other)
        np.testing.assert_allclose((Tensor(a).T.reshape(-1) * Tensor(b).reshape(-1)).numpy(), a.T.reshape(-1) * b.reshape(-1))
    for m, n in ((4, 4), (3, 6), (6, 3), (5, 5)):
        joined(m, n)
    for shape, other in (((3, 4), (4, 3)), ((2, 6), (3, 4)), ((6, 2), (2, 6)), ((5, 7), (7, 5))):
        paired(shape, other)


def test_an_option_that_there_is_not_is_named() -> None:
    with pytest.raises(TypeError, match=r"use\(\) has no option 'debug'; the options are .*opt"):
        daten.use(debug=1)


def test_members_that_arrays_of_numpy_have() -> None:
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = Tensor(given, requires_grad=True)
    changed = x.copy()
    changed[0] = 9
    (changed * changed).sum().backward()
    assert np.array_equal(x, given)
    assert x.grad is not None
    assert np.array_equal(x.grad, np.where(np.arange(2)[:, None] == 0, 0, 2 * given))
    assert (x.nbytes, x.itemsize, x.ravel().shape, x.swapaxes(0, -1).shape) == (24, 4, (6,), (3, 2))
    z = Tensor(np.array([1 + 2j, np.inf - 1j], np.complex64))
    assert [z.real.tolist(), z.imag.tolist()] == [[1, np.inf], [2, -1]]
    assert [z.real.real.tolist(), z.real.imag.tolist()] == [[1, np.inf], [0, 0]]


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_graphs_have_the_level_that_is_asked_for(opt: int) -> None:
    daten.use(opt=opt)
    try:
        a, b = Tensor(np.ones((3, 4))), Tensor(np.ones((3, 4)))
        loss = (a * b).tanh().sum()
        realize(loss, *daten.gradients(loss, [a, b]))
        ((_, operator),) = [each for known in daten.realization.COMPILED.values() for each in known]
        assert ("vectorize" in operator.schedule) == (opt == 2)
    finally:
        daten.use()


@pytest.mark.parametrize(("made", "text"), [
    (lambda i: i.bincount(5), "bincount: .* is outside [0, 5)"),
    (lambda i: Tensor(np.array([1, 2])).bincount(3).sum() + i.bincount(5).sum(), "bincount: .* is outside [0, 5)"),
    (lambda i: daten.nn.Embedding(5, 3)(i + 4), "take: x: index 1 (= (aref index i)) is outside [-5, 5)"),
    (lambda i: Tensor(np.ones((6, 2))).take(i + 4, axis=0), "take: x: index 1 .* is outside [-size"),
    (lambda i: Tensor(np.ones((6, 2)))[i + 4], "x[…]: x0: index 1 .* is outside [-size"),
    (lambda i: Tensor(np.ones((3, 4), np.float32)).cross_entropy(i + 2), "cross_entropy: .*target.* is outside [0, size"),
    (lambda i: Tensor(np.ones(6)).scatter(i + 4, np.ones(3)), "scatter: .* is outside [-size1, size1)")])
def test_a_check_of_the_data_names_the_operator_and_the_extent(made: Any, text: str) -> None:
    pattern = ".*".join([re.escape(part) for part in text.split(".*")])
    with pytest.raises(CatenError, match=f"^E711: Graph: {pattern}"):
        made(Tensor(np.array([1, -2, 3]))).numpy()


@pytest.mark.parametrize(("given", "error", "text"), [
    (lambda: daten.use("clagn"), UsageError, "E602: there is no runtime called 'clagn'\n(.*\n)*.*did you mean 'clang'"),
    (lambda: daten.use("nosuchruntime"), UsageError, "E602: there is no runtime called 'nosuchruntime'"),
    (lambda: daten.use("clang", config={"NOSUCH": 1}), UsageError, "E600: runtime clang has no option 'NOSUCH'"),
    (lambda: daten.use("clang", optt=1), TypeError, r"use\(\) has no option 'optt'; did you mean 'opt'")])
def test_a_wrong_use_is_refused_at_once_and_changes_nothing(given: Callable[[], Any], error: type[Exception], text: str) -> None:
    before = daten.settings.options()
    with pytest.raises(error, match=text):
        given()
    assert daten.settings.options() is before


@pytest.mark.parametrize("shape", [(2.5, 2), ((2.5, 2),), (3.0, 4), ("a", 2), (None, 4)])
def test_an_extent_is_an_integer(shape: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"an extent is an integer, not (2\.5|3\.0|'a'|None)"):
        Tensor(np.ones((3, 4))).reshape(*shape)
    assert Tensor(np.ones((3, 4))).reshape(np.int32(2), np.array(6)).shape == (2, 6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: x.sum(axis=5), "E321: sum: there is no axis 5: the array has 2 axes"),
    (lambda x: x.transpose(0, 0), "E321: transpose: the axes (0, 0) name an axis twice"),
    (lambda x: np.einsum("ij,kl->iz", x, x), "E325: einsum: the result has 'z', which no operand has")])
def test_an_error_of_an_operator_of_the_library_names_it_and_not_its_text(call: Any, message: str) -> None:
    with pytest.raises(CatenError, match=re.escape(message)) as told:
        call(Tensor(X))
    assert ".toml" not in str(told.value)


@pytest.mark.parametrize(("make", "text"), [
    (lambda x: x.view(6), r"Tensor has no 'view', .*: x\.reshape"), (lambda x: x.unsqueeze(0), r"np\.expand_dims"),
    (lambda x: x.float(), r'x\.astype\("float32"\)'), (lambda x: x.masked_select(x > 0), r"x\[mask\]"), (lambda x: x.softmaxx(), "did you mean 'softmax'"),
    (lambda x: x.sum(dim=1), "no attribute 'dim'\n  hint: did you mean 'axis'"), (lambda x: x.sum(keepdim=True), "did you mean 'keepdims'"),
    (lambda x: daten.zeros(3), r"'daten' has no attribute 'zeros': daten\.array_api\.zeros"), (lambda x: daten.nothing, "has no attribute 'nothing'$")])
def test_names_of_other_libraries_are_told_what_there_is(make: Any, text: str) -> None:
    with pytest.raises((AttributeError, CatenError), match=text):
        make(Tensor(X))
