"""Optimizers, beside their formulas in NumPy."""
from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from daten import Tensor, jit, nn, no_grad, optim, realization
from daten.optim import SGD, Adam, AdamW, Lion, RMSprop

X = np.random.default_rng(5).standard_normal((6, 3))
W = np.random.default_rng(6).standard_normal(3)


def gradient(w: np.ndarray) -> np.ndarray:
    """Of Σ tanh(X w)²."""
    t = np.tanh(X @ w)
    return X.T @ (2 * t * (1 - t * t))


def sgd(w: np.ndarray, n: int, state: dict[str, Any]) -> np.ndarray:
    g = gradient(w) + 0.1 * w
    state["v"] = 0.9 * state.get("v", 0) + g
    return w - 0.05 * (g + 0.9 * state["v"])


def adam(w: np.ndarray, n: int, state: dict[str, Any], decoupled: bool = False) -> np.ndarray:
    g = gradient(w) + (0 if decoupled else 0.1 * w)
    state["m"], state["v"] = 0.9 * state.get("m", 0) + 0.1 * g, 0.999 * state.get("v", 0) + 0.001 * g * g
    step = 0.05 * state["m"] / (1 - 0.9 ** n) / (np.sqrt(state["v"] / (1 - 0.999 ** n)) + 1e-8)
    return w * (1 - 0.05 * 0.1 if decoupled else 1) - step


def lion(w: np.ndarray, n: int, state: dict[str, Any]) -> np.ndarray:
    g, m = gradient(w), state.get("m", 0)
    state["m"] = 0.99 * m + 0.01 * g
    return w - 0.05 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * w)


def rmsprop(w: np.ndarray, n: int, state: dict[str, Any], momentum: float = 0.0) -> np.ndarray:
    g = gradient(w) + 0.1 * w
    state["v"] = 0.9 * state.get("v", 0) + 0.1 * g * g
    state["b"] = momentum * state.get("b", 0) + g / (np.sqrt(state["v"]) + 1e-8)
    return w - 0.05 * state["b"]


def trained(make: Any, steps: int) -> tuple[np.ndarray, list[float]]:
    w = Tensor(W, requires_grad=True)
    optimizer, losses = make([w]), []
    for _ in range(steps):
        loss = ((Tensor(X) @ w).tanh() ** 2).sum()
        loss.backward()
        optimizer.step(loss)
        losses.append(loss.item())
        assert w.grad is None
    return w.numpy(), losses


@pytest.mark.slice(2)
@pytest.mark.parametrize(("make", "formula"), [
    (lambda ps: optim.SGD(ps, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1), sgd),
    (lambda ps: optim.SGD(ps, lr=0.05), lambda w, n, state: w - 0.05 * gradient(w)),
    (lambda ps: optim.Adam(ps, lr=0.05, weight_decay=0.1), adam), (lambda ps: optim.AdamW(ps, lr=0.05, weight_decay=0.1), lambda w, n, state: adam(w, n, state, True)),
    (lambda ps: optim.Lion(ps, lr=0.05, weight_decay=0.1), lion),
    (lambda ps: optim.RMSprop(ps, lr=0.05, alpha=0.9, weight_decay=0.1), rmsprop),
    (lambda ps: optim.RMSprop(ps, lr=0.05, alpha=0.9, momentum=0.8, weight_decay=0.1), lambda w, n, state: rmsprop(w, n, state, 0.8))])
def test_steps_are_those_of_the_formula(make: Any, formula: Any) -> None:
    expected, state = W, dict[str, Any]()
    for n in range(1, 5):
        expected = formula(expected, n, state)
    found, losses = trained(make, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert losses[-1] < losses[0]


def test_a_step_compiles_once_whatever_the_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    w = Tensor(W, requires_grad=True)
    optimizer = optim.AdamW([w], lr=0.1)
    for n in range(4):
        if n == 1:
            monkeypatch.setattr(realization, "known_build", None)
        loss = ((Tensor(X) @ w).tanh() ** 2).sum()
        loss.backward()
        optimizer.lr *= 0.9
        optimizer.step(loss)


def test_gradients_are_clipped_together() -> None:
    a, b = Tensor(np.array([3.0, 0.0]), requires_grad=True), Tensor(np.array([4.0]), requires_grad=True)
    ((a * a).sum() + (b * b).sum()).backward()
    norm = optim.clip_norm([a, b], 1.0)
    assert norm.item() == pytest.approx(10.0)
    assert a.grad is not None
    assert b.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), [0.6, 0.0])
    np.testing.assert_allclose(b.grad.numpy(), [0.8])
    with pytest.raises(ValueError, match="requires no gradient"):
        optim.SGD([Tensor(1.0)])


@pytest.mark.parametrize("make", [SGD, Adam, AdamW, Lion, RMSprop])
def test_a_parameter_is_given_once(make: Any) -> None:
    """Two layers may share it; the module of both gives it once."""
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)
    other.weight = one.weight
    with pytest.raises(ValueError, match=r"the parameters at 0 and 2 are one tensor of the shape \[3, 3\]: give it once"):
        make([*one.parameters(), *other.parameters()], lr=0.1)
    assert len(make(nn.Sequential(one, other).parameters(), lr=0.1).parameters) == 3
    same = [Tensor(np.ones(2), requires_grad=True) for _ in range(2)]             # equal values are not one tensor
    assert len(make(same, lr=0.1).parameters) == 2


def test_a_parameter_that_is_clipped_twice_counts_once() -> None:
    a = Tensor(np.array([3.0, 4.0]), requires_grad=True)
    (a * a).sum().backward()
    assert optim.clip_norm([a, a], 1.0).item() == pytest.approx(10.0)
    assert a.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), [0.6, 0.8])


@pytest.mark.parametrize(("make", "message"), [
    *[(partial(make, **{name: value}), f"{name} is a number from 0 on, not {re.escape(repr(value))}") for make in (SGD, Adam, AdamW, Lion, RMSprop)
      for name, value in (("lr", -1), ("lr", float("nan")), ("lr", [0.1]), ("lr", None), ("weight_decay", -0.1))],
    (partial(SGD, momentum=-0.9), "momentum is a number from 0 on, not -0.9"), (partial(Adam, eps=-1e-8), "eps is a number from 0 on"),
    *[(partial(make, betas=betas), "betas are two numbers from 0 on and below 1") for make in (Adam, AdamW, Lion)
      for betas in ((0.9, 1.0), (-0.1, 0.9), (1.5, 0.9), (0.9, 0.99, 0.999), 0.9)]])
def test_numbers_that_no_optimizer_takes(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make([Tensor(np.ones(3, np.float32), requires_grad=True)])
    for fitting in (SGD, Adam, AdamW, Lion, RMSprop):
        fitting([Tensor(np.ones(3, np.float32), requires_grad=True)], lr=0.0)


@pytest.mark.parametrize(("make", "name", "wrong"), [
    *[(make, name, -1) for make in (SGD, Adam, AdamW, Lion, RMSprop) for name in ("lr", "weight_decay")],
    (SGD, "momentum", float("nan")), (Adam, "eps", -1e-8), (RMSprop, "alpha", 1.0), *[(make, "betas", (0.9, 1.0)) for make in (Adam, AdamW, Lion)]])
def test_settings_that_change_are_checked_as_at_first(make: Any, name: str, wrong: Any) -> None:
    optimizer = make([Tensor(np.ones(3, np.float32), requires_grad=True)])
    before = getattr(optimizer, name)
    with pytest.raises(ValueError, match=f"{name} (is a number|are two numbers) from 0 on"):
        setattr(optimizer, name, wrong)
    assert getattr(optimizer, name) == before
    setattr(optimizer, name, before)


def test_momentum_begins_with_the_optimizer() -> None:
    w = Tensor(np.ones(3, np.float32), requires_grad=True)
    optimizer = SGD([w])
    optimizer.momentum = 0.9
    (w * w).sum().backward()
    with pytest.raises(ValueError, match=r"SGD\(parameters, momentum=…\) has it"):
        optimizer.step()


@pytest.mark.parametrize("is_traced", [False, True])
def test_a_parameter_that_is_updated_in_no_grad_stays_one(is_traced: bool) -> None:
    """`for p in parameters: p -= …` changes the parameters, and not what the loop calls p."""
    parameters = [Tensor(W, requires_grad=True), Tensor(W * 2, requires_grad=True)]

    def step() -> Tensor:
        loss = sum(((Tensor(X) @ p).tanh() ** 2).sum() for p in parameters)
        loss.backward()
        with no_grad():
            for p in parameters:
                p -= 0.05 * p.grad
                p.grad = None
        return loss
    run, expected = jit(step) if is_traced else step, [W, W * 2]
    losses = [run().item() for _ in range(3)]
    for _ in range(3):
        expected = [w - 0.05 * gradient(w) for w in expected]
    for p, w in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(p.numpy(), w, rtol=1e-6)
    assert losses[2] < losses[0]
    before = parameters[0]
    total = before
    total += 1.0                                     # beside it, a new tensor, through which gradients flow
    assert total is not before
    assert before.tolist() == parameters[0].tolist()


def test_what_clips_and_steps_cannot_take() -> None:
    p = Tensor([3.0, 4.0], requires_grad=True)
    optimizer = optim.SGD([p])
    for call, error, message in ((lambda: optim.clip_norm([p], -1.0), ValueError, "the greatest norm is a number from 0 on, not -1.0"),
                                 (lambda: optim.clip_norm(p, 1.0), TypeError, "clip_norm takes a list of tensors"),
                                 (lambda: optimizer.step(3.0), TypeError, "step takes tensors to compute"),
                                 (lambda: optim.SGD([]), ValueError, "takes one parameter or more, and the list is empty"),
                                 (lambda: optim.SGD([{"params": [p]}, p]), TypeError, "or one of groups alone, not both"),
                                 (lambda: optim.SGD([{"weights": [p]}]), ValueError, "group 0 has no \"params\", a list of tensors: it has 'weights'"),
                                 (lambda: optim.SGD([{"params": 3}]), TypeError, '"params" of group 0 takes a list of tensors'),
                                 (lambda: optim.SGD([{"params": p, "lr": -1}]), ValueError, "lr is a number from 0 on"),
                                 (lambda: optim.SGD([{"params": p, "betas": (0, 0)}]), KeyError, "SGD has no setting 'betas': a group has params, lr, weight_decay, momentum"),
                                 (lambda: optim.SGD([p], nesterov="no"), ValueError, "nesterov is True or False, not 'no'")):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(("make", "is_traced"), [
    (partial(SGD, momentum=0.9), True), (partial(Adam, weight_decay=0.1), False), (AdamW, True), (Lion, False), (RMSprop, False)])
def test_groups_have_settings_of_their_own(make: Any, is_traced: bool) -> None:
    """As an optimizer for each group; a setting that a group has not is that of the optimizer."""
    def trained_by(make_all: Any) -> list[Any]:
        first, second = parameters = [Tensor(W, requires_grad=True), Tensor(W * 2, requires_grad=True)]
        optimizers = make_all(first, second)

        def step() -> Tensor:
            loss = sum(((Tensor(X) @ p).tanh() ** 2).sum() for p in parameters)
            loss.backward()
            for each in optimizers:
                each.step(loss)
            return loss
        run = jit(step) if is_traced else step
        for _ in range(2):
            run()
            for each in optimizers:
                each.lr = 0.05                     # that of the second alone: the first has one of its own
        return [p.numpy() for p in parameters]
    own = {"lr": 0.02, "weight_decay": 0.3}
    together = trained_by(lambda p, q: [make([{"params": p, **own}, {"params": [q]}], lr=0.1)])
    apart = trained_by(lambda p, q: [make([{"params": [p], **own}]), make([q], lr=0.1)])
    np.testing.assert_allclose(together, apart, rtol=1e-6)


def test_a_group_is_as_a_dict() -> None:
    p, q = [Tensor(np.ones(2, np.float32), requires_grad=True) for _ in range(2)]
    optimizer = AdamW([{"params": [p], "lr": 0.5}, {"params": [q]}], lr=0.25)
    assert optimizer.parameters == [p, q]
    assert dict(optimizer.param_groups[0]) == {"params": [p], "lr": 0.5, "weight_decay": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.125]
    with pytest.raises(ValueError, match="lr is a number from 0 on, not -1"):
        optimizer.param_groups[0]["lr"] = -1
    (p * q).sum().backward()
    optimizer.step()
    other = AdamW([p, q])
    other.load_state_dict(optimizer.state_dict())               # the states are by position, in all groups
    np.testing.assert_array_equal(other.kept[1][0].numpy(), optimizer.kept[1][0].numpy())


@pytest.mark.parametrize(("make", "change"), [
    (partial(Adam, lr=0.05), {"betas": (0.5, 0.7)}), (partial(Adam, lr=0.05), {"eps": 0.5}), (partial(SGD, lr=0.05, momentum=0.9), {"momentum": 0.2}),
    (partial(SGD, lr=0.05, momentum=0.9), {"nesterov": True}), (partial(SGD, lr=0.05), {"weight_decay": 0.5}), (partial(RMSprop, lr=0.05), {"alpha": 0.5})])
def test_settings_that_change_have_an_effect_in_what_jit_traced(make: Any, change: dict[str, Any]) -> None:
    found = []
    for wrap in (jit, lambda f: f):
        w = Tensor(W, requires_grad=True)
        optimizer = make([w])

        def step(w: Tensor = w, optimizer: Any = optimizer) -> Tensor:
            loss = ((Tensor(X) @ w).tanh() ** 2).sum()
            loss.backward()
            optimizer.step(loss)
            return loss
        run: Any = wrap(lambda step=step: step())
        run()
        for name, value in change.items():
            setattr(optimizer, name, value)
        run()
        found.append(w.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_momentum_that_jit_has_not_traced_is_refused() -> None:
    w = Tensor(W, requires_grad=True)
    optimizer = SGD([w])

    @jit
    def step() -> Tensor:
        loss = (w * w).sum()
        loss.backward()
        optimizer.step(loss)
        return loss
    step()
    optimizer.momentum = 0.9
    with pytest.raises(ValueError, match=r"SGD\(parameters, momentum=…\) has it"):
        step()
