"""Functions that are traced once: the same results as without, for all that differs from call to call."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from caten.errors import CatenError
from daten import Tensor, Var, apply, gradients, jit, nn, optim, random, realization


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What it gets each time that a graph is run."""
    ran: list[int] = []
    usual = realization._operator
    monkeypatch.setattr(realization, "_operator", lambda *args: (ran.append(1), usual(*args))[1])
    return ran


class Network(nn.Module):
    def __init__(self) -> None:
        self.first, self.norm, self.drop, self.last = nn.Linear(6, 8), nn.BatchNorm(8), nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.norm(self.first(x)).relu()))


OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "adamw": lambda p: optim.AdamW(p, lr=0.01), "lion": lambda p: optim.Lion(p, lr=0.01)}


@pytest.mark.slice(2)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_are_those_without_it(kind: str, python: list[int]) -> None:
    """Parameters, states, learning rates, random keys and running statistics go on from call to call."""
    draw = np.random.default_rng(0)
    batches = [(draw.standard_normal((5, 6)).astype(np.float32), draw.integers(0, 3, 5)) for _ in range(5)]

    def trained(wrap: Callable[..., Any]) -> tuple[list[float], dict[str, np.ndarray], dict[str, np.ndarray]]:
        random.seed(3)
        model = Network()
        optimizer = OPTIMIZERS[kind](model.parameters())

        def step(x: Tensor, y: Tensor) -> Tensor:
            loss = apply("cross_entropy", model(x), y)
            loss.backward()
            optimizer.step(loss)
            return loss
        called, losses = wrap(step), []
        for n, (x, y) in enumerate(batches):
            optimizer.lr = 0.01 / (n + 1)
            losses.append(called(Tensor(x), Tensor(y)).item())
        return losses, model.state_dict(), optimizer.state_dict()
    eager, parameters, states = trained(lambda step: step)
    python.clear()
    losses, own_parameters, own_states = trained(jit)
    assert len(python) == 1
    assert losses == eager
    for mine, theirs in ((own_parameters, parameters), (own_states, states)):
        assert mine.keys() == theirs.keys()
        for name, array in theirs.items():
            np.testing.assert_array_equal(mine[name], array, err_msg=name)


def test_structures_shapes_and_constants(python: list[int]) -> None:
    calls: list[str] = []

    @jit
    def both(pair: tuple[Tensor, Tensor], scale: float, *, names: dict[str, Tensor]) -> dict[str, Any]:
        calls.append("traced")
        a, b = pair
        return {"sum": (a + b) * scale, "rest": [names["c"], a.sum()], "word": "as it is", "given": a}
    a, b, c = [np.full((2, 3), v, np.float32) for v in (1, 2, 3)]
    for scale, shape, traced in ((2.0, 3, 1), (2.0, 3, 1), (3.0, 3, 2), (2.0, 2, 3), (2.0, 3, 3)):
        made = both((a[:, :shape], Tensor(b[:, :shape])), scale, names={"c": c})
        assert made["word"] == "as it is"
        np.testing.assert_array_equal(made["sum"].numpy(), (a + b)[:, :shape] * scale)
        np.testing.assert_array_equal(made["rest"][0].numpy(), c)
        np.testing.assert_array_equal(made["given"].numpy(), a[:, :shape])
        assert made["rest"][1].item() == a[:, :shape].sum()
        assert len(calls) == traced
        a, b = a + 1, b * 2


def test_arrays_of_the_caller_stay_the_callers() -> None:
    """An argument that is returned is a copy, at the first call and later."""
    same = jit(lambda x: x)
    a = np.ones(3, np.float32)
    made = [same(a) for _ in range(2)]
    a[0] = 5
    assert [t.tolist() for t in made] == [[1, 1, 1]] * 2


def test_tensors_that_stay_are_read_anew() -> None:
    weight = nn.layers.buffer(np.arange(3, dtype=np.float32))

    @jit
    def of(x: Tensor) -> Tensor:
        return weight * x
    x = Tensor(np.ones(3, np.float32))
    assert of(x).tolist() == [0, 1, 2]
    weight.assign([5, 6, 7])
    assert of(x).tolist() == [5, 6, 7]


def test_a_tensor_that_the_function_changes() -> None:
    count = nn.layers.buffer(np.zeros(2, np.float32))

    @jit
    def tick(x: Tensor) -> Tensor:
        count[0] = count[0] + x
        return count * 2
    for n in range(4):
        assert tick(Tensor(1.0)).tolist() == [2 * (n + 1), 0]
        assert count.tolist() == [n + 1, 0]


def test_methods_and_what_is_refused() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @jit
        def of(self, x: Tensor) -> Tensor:
            return x * self.scale
    one, two = Model(2.0), Model(3.0)
    for x in (1.0, 4.0):
        assert (one.of(Tensor(x)).item(), two.of(Tensor(x)).item()) == (2 * x, 3 * x)
    with pytest.raises(TypeError, match="has another value each time"):
        jit(lambda x: x if (x * 2).item() > 0 else -x)(Tensor(1.0))
    with pytest.raises(TypeError, match="has another value each time"):
        jit(lambda x: x[np.asarray(x) > 0])(Tensor([1.0, 2.0]))
    p = Tensor([1.0], requires_grad=True)

    @jit
    def left(x: Tensor) -> Tensor:
        loss = (p * x).sum()
        loss.backward()
        return loss
    with pytest.raises(ValueError, match="a gradient is left"):
        left(Tensor([2.0]))
    p.grad = None
    assert jit(lambda x: x + float(np.float32(1)))(Tensor(1.0)).item() == 2                   # after an error, nothing is traced any more
    with pytest.raises(TypeError, match="jit takes tensors, arrays and hashable values"):
        jit(lambda x: x)({1, 2})


class Pair(NamedTuple):
    a: Any
    b: Any


def test_tuples_with_names_keep_them() -> None:
    swapped = jit(lambda p: Pair(p.b + 1, p.a))
    for n in (1.0, 5.0):
        found = swapped(Pair(Tensor([n]), Tensor([2.0])))
        assert isinstance(found, Pair)
        assert (found.a.tolist(), found.b.tolist()) == ([3.0], [n])


def test_an_index_may_be_a_number_that_differs() -> None:
    """A cache of keys, to which each call writes at its place."""
    @jit
    def written(cache: Tensor, new: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        cache[:, at] = new
        return cache, cache[:, at - 1], cache[1, at], cache[[0, 1], at]
    cache, draw = np.zeros((2, 4, 3)), np.random.default_rng(0)
    for at in (2, 0, -1):
        new = draw.standard_normal((2, 3))
        found = written(cache, new, Tensor(np.int64(at)))
        cache[:, at] = new
        for a, b in zip(found, (cache, cache[:, at - 1], cache[1, at], cache[[0, 1], at]), strict=True):
            np.testing.assert_array_equal(a.numpy(), b)
    with pytest.raises(CatenError, match=r"E711: .* is outside \[-"):
        written(cache, new, Tensor(np.int64(4)))


def test_gradients_from_before_stay_where_the_function_does_not_touch_them() -> None:
    p = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def leaves_one(x: Tensor) -> None:
        (p * x).sum().backward()
    for _ in range(2):                                       # the first failure leaves nothing behind
        with pytest.raises(ValueError, match="a gradient is left in"):
            leaves_one(Tensor(1.0))
        assert p.grad is None
    (p * p).sum().backward()
    assert jit(lambda x: (p * x).sum())(2.0).item() == 6.0
    assert jit(lambda x: gradients((p * x).sum(), [p])[0])(Tensor(3.0)).tolist() == [3.0, 3.0]
    assert p.grad is not None
    assert p.grad.tolist() == [2.0, 4.0]


def test_a_batch_norm_takes_batches_of_any_size() -> None:
    """Also of one row, whose variance has no unbiased estimate."""
    norms = nn.BatchNorm(3), nn.BatchNorm(3)
    step = jit(lambda x: norms[0](x), dynamic_shapes={"x": {0: Var("n", 1, 64)}})
    for n in (5, 1, 2, 7):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_allclose(step(x).numpy(), norms[1](Tensor(x)).numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(norms[0].running_var.numpy(), norms[1].running_var.numpy(), rtol=1e-5)


def test_a_condition_that_differs_is_refused_with_what_there_is() -> None:
    with pytest.raises(TypeError, match=r"by greater\) is true in some calls(.|\n)*np.where"):
        jit(lambda x: x if x.sum() > 0 else -x)(np.ones(3))
    with pytest.raises(TypeError, match="jit takes a function, not 3"):
        jit(3)                                               # type: ignore[call-overload]


@pytest.mark.scheduled
def test_gradients_of_a_convolution_whose_windows_are_columns() -> None:
    """Its filters [O C 3 1] are transposed while they are packed, along the axis before those of extent 1."""
    draw = np.random.default_rng(0)
    x, w = [Tensor(draw.standard_normal(shape).astype(np.float32), requires_grad=True) for shape in ((3, 5, 18, 7), (3, 5, 3, 1))]
    of_x, of_w = jit(lambda: gradients(apply("conv2d", x, w, stride=(2, 1), padding=(1, 1)).sum(), [x, w]))()
    padded = np.pad(x.numpy(), [(0, 0), (0, 0), (1, 1), (1, 1)])
    wanted = [padded[:, :, k:k + 17:2].sum(axis=(0, 2, 3)) for k in range(3)]
    np.testing.assert_allclose(of_w.numpy()[..., 0], np.broadcast_to(np.stack(wanted, axis=1), (3, 5, 3)), rtol=1e-4, atol=1e-4)
    taps = w.numpy().sum(axis=0)[..., 0]                     # of each line 2 · i + k - 1 of x
    lines = np.stack([taps[:, 1] if line % 2 == 0 else taps[:, 0] * (line < 17) + taps[:, 2] for line in range(18)], axis=1)
    np.testing.assert_allclose(of_x.numpy(), np.broadcast_to(lines[None, :, :, None], x.shape), rtol=1e-4, atol=1e-4)
