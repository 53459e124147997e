"""Functions that are traced once for many sizes: the results of the function without `jit`, for all of them."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pytest

from daten import Tensor, Var, apply, array_api, jit, nn, no_grad, optim, random, realization
from daten.models.gpt2 import GPT2, Size

N, M = Var("n", 1, 4096), Var("m", 2, 64)


def traced(function: Callable[..., Any], shapes: Any) -> tuple[Callable[..., Any], list[int]]:
    """The function with `jit`, and what it gets each time that its Python runs."""
    ran: list[int] = []

    def counting(x: Tensor, y: Tensor) -> Any:
        ran.append(1)
        return function(x, y)
    return jit(counting, dynamic_shapes=shapes), ran


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "elements": lambda x, y: (x * 2 + y).exp(),
    "reductions": lambda x, y: (x.sum(axis=0), x.mean(axis=1), x.softmax(axis=0), (x * y).max()),
    "products": lambda x, y: (x @ y.T, x.T @ y),
    "reshapes": lambda x, y: (x.reshape(-1), x.reshape(x.shape[0], 2, 3).transpose(1, 0, 2).reshape(2, -1), y.reshape(3 * x.shape[0], 2)),
    "numbers": lambda x, y: (x / x.shape[0], x.sum() - x.size, x * (x.shape[0] + 1) // 2, x.shape[0] % 1,
                            x / x.shape[0] ** 0.5, x * (np.sqrt(x.shape[0]) - 1 / x.shape[0]), 2.5 * x.shape[0] + y),
    "shapes": lambda x, y: (x.reshape(np.prod(x.shape), 1), x.sum() / np.prod(x.shape[:1]), x * np.sum(x.shape), y / np.size(x), x - np.prod((x.shape[0], 2), axis=0),
                            x[:math.ceil(x.shape[0] / 2)], y[:math.floor(x.shape[0] / 2)], x * math.ceil(x.shape[0]), y + np.mean(x.shape)),
    "slices": lambda x, y: (x[1:] - x[:-1], x[-1], x.reshape(-1)[x.shape[0]:2 * x.shape[0] + 1], x[:, ::2]),
    "clipped": lambda x, y: (x[:5000] * 2, x[-5000:], x[x.shape[0] - 1:x.shape[0] + 3], x[:, -300:4:3], y[x.shape[0] + 2:], y[5000::-1]),
    "joined": lambda x, y: (apply("concatenate", x, y, axis=0), np.stack([x, y]), apply("concatenate", x, y, axis=1)[:, 1:-1]),
    "made": lambda x, y: (array_api.arange(x.shape[0]) * x.T, array_api.eye(x.shape[0]) @ x, array_api.zeros_like(x) + y[:1],
                          array_api.full((2, x.shape[0]), x.shape[0])),
    "broadcast": lambda x, y: (array_api.broadcast_to(x[:1], x.shape), *array_api.broadcast_arrays(x[:, :1], y)),
    "masks": lambda x, y: array_api.tril(array_api.ones((x.shape[0], x.shape[0]))) @ x + y,
    "decided": lambda x, y: x + 1 if 0 < x.shape[0] < 5000 and x.shape[0] != 0 else x - 1,
    "sizes": lambda x, y: (x.sum(), x.shape[0] + 1, {"shape": x.shape}),
    "attention": lambda x, y: apply("attention", *[v.reshape(-1, 2, 3).transpose(1, 0, 2) for v in (x, y, x * y)], causal=True),
}


@pytest.mark.slice(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_trace_gives_the_results_of_all_sizes(name: str) -> None:
    draw = np.random.default_rng(len(name))
    function = FUNCTIONS[name]
    once, ran = traced(function, {"x": {0: N}, "y": (N, None)})
    for n in (5, 3, 17, 2, 1, 64, 33):
        x, y = draw.standard_normal((2, n, 6)).astype(np.float32)
        _agree(once(Tensor(x), Tensor(y)), function(Tensor(x), Tensor(y)))
    assert len(ran) == 1, "the Python of the function ran again"


def _agree(made: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(made) == len(wanted)
        for a, b in zip(made, wanted, strict=True):
            _agree(a, b)
    elif isinstance(wanted, dict):
        _agree(list(made.values()), list(wanted.values()))
    else:
        assert isinstance(made, Tensor | int), made
        assert np.shape(made) == np.shape(wanted)
        np.testing.assert_allclose(np.asarray(made), np.asarray(wanted), rtol=1e-5, atol=1e-5)


def test_sizes_that_are_equal_in_the_traced_call_stay_apart() -> None:
    """Both are 6, as is a constant axis: the program is for sizes that differ all the same."""
    def function(x: Tensor, y: Tensor) -> Any:
        return x.sum(axis=1), y @ x.T, x.reshape(-1, 3, 2).sum(axis=0), x.reshape(6, -1) * 2
    once, ran = traced(function, {"x": {0: N}, "y": {0: M}})
    draw = np.random.default_rng(0)
    for n, m in ((6, 6), (4, 9), (9, 4), (6, 2)):
        x, y = (Tensor(draw.standard_normal((e, 6)).astype(np.float32)) for e in (n, m))
        _agree(once(x, y), function(x, y))
    assert len(ran) == 1


@pytest.mark.parametrize("function", [
    lambda x, y: x[:4] * 2, lambda x, y: x[5:] * 2, lambda x, y: (x[-4:] * 2 + y[:4]).sum(axis=0), lambda x, y: x[2:6].sum(),
    lambda x, y: x[1:4] * y[1:4], lambda x, y: x[:3].reshape(-1), lambda x, y: x[:4] + y[:1], lambda x, y: x[4::-2]])
def test_a_bound_that_is_inside_of_some_extents_alone_is_clipped_in_the_others(function: Any) -> None:
    once, ran = traced(function, {"x": {0: N}, "y": {0: N}})
    draw = np.random.default_rng(0)
    for n in (9, 4, 3, 7, 2):
        x, y = (draw.standard_normal((n, 6)).astype(np.float32) for _ in range(2))
        made, wanted = once(Tensor(x), Tensor(y)), function(x, y)
        assert made.shape == wanted.shape
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert len(ran) == 1


@pytest.mark.parametrize("function", [lambda x: x[:x.shape[0] // 2] * 2, lambda x: x[x.shape[0] // 2:], lambda x: x[x.shape[0] - 2:], lambda x: x[-(x.shape[0] // 3):].sum()])
def test_a_bound_may_be_1_in_the_call_that_is_traced(function: Any) -> None:
    calls: list[int] = []

    def counting(x: Any) -> Any:
        calls.append(1)
        return function(x)
    once = jit(counting, dynamic_shapes={"x": {0: Var("n", 3, 64)}})
    for n in (3, 8, 4, 61):
        x = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
        np.testing.assert_allclose(once(x).numpy(), function(x), rtol=1e-5)
    assert len(calls) == 2                                    # the first trace is for a bound of 1


def test_arrays_of_sizes_that_vary_are_no_tensors() -> None:
    for function in (lambda x: x + np.array(x.shape), lambda x: Tensor(np.array(x.shape)), lambda x: x * np.float32(x.shape[0])):
        with pytest.raises(ValueError, match="jit: n is asked for as a value of Python"):
            jit(function, dynamic_shapes={"x": {0: N}})(np.ones((3, 2), np.float32))


def test_a_slice_that_has_to_be_as_long_as_a_constant_axis_needs_bounds_that_say_so() -> None:
    x, w = np.ones((9, 6), np.float32), np.ones((4, 2), np.float32)
    once = jit(lambda x: x[:4].T @ w, dynamic_shapes={"x": {0: Var("n", 4, 99)}})
    np.testing.assert_array_equal(once(x).numpy(), x[:4].T @ w)
    with pytest.raises(ValueError, match=r"\(min 4 n\) and 4 have to be equal here|4 and \(min 4 n\) have to be equal"):
        jit(lambda x: x[:4].T @ w, dynamic_shapes={"x": {0: N}})(x)


def test_values_of_0_and_1_that_come_first_are_traced_apart() -> None:
    once, ran = traced(lambda x, y: x + y, {"x": {0: Var("k")}})
    y, counts = Tensor(np.ones((1, 6), np.float32)), []
    for n in (1, 1, 0, 0, 4, 7, 1, 0):
        made = once(Tensor(np.ones((n, 6), np.float32)), y)
        assert made.shape == (n, 6)
        counts.append(len(ran))
    assert counts == [1, 1, 2, 2, 3, 3, 3, 3]


def test_extents_of_1_that_vary_are_traced_apart() -> None:
    """Of x[1:] with two rows, say: it would be repeated where others are not."""
    def function(x: Tensor, y: Tensor) -> Any:
        return (x[1:] - x[:-1]) * y[1:] + y[:1], (x[1:] * 2).sum(axis=0)
    once, ran = traced(function, {"x": {0: M}, "y": {0: M}})
    draw, counts = np.random.default_rng(0), []
    for n in (2, 2, 5, 9, 2):
        x, y = (Tensor(draw.standard_normal((n, 6)).astype(np.float32)) for _ in range(2))
        _agree(once(x, y), function(x, y))
        counts.append(len(ran))
    assert counts == [1, 1, 2, 2, 2]


class Network(nn.Module):
    def __init__(self) -> None:
        self.conv, self.norm, self.drop, self.last = nn.Conv2d(1, 4, 3), nn.BatchNorm(4), nn.Dropout(0.3), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        made = self.norm(self.conv(x)).relu()
        return self.last(self.drop(made.reshape(x.shape[0], -1)))


def test_a_step_of_training_is_traced_once_for_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    batches = [(draw.standard_normal((n, 1, 6, 6)).astype(np.float32), draw.integers(0, 3, n)) for n in (5, 8, 3, 8, 2)]

    def trained(wrap: Callable[..., Any]) -> tuple[list[float], dict[str, np.ndarray]]:
        random.seed(3)
        model = Network()
        optimizer = optim.AdamW(model.parameters(), lr=0.01)

        def step(x: Tensor, y: Tensor) -> Tensor:
            loss = apply("cross_entropy", model(x), y)
            loss.backward()
            optimizer.step(loss)
            return loss
        called = wrap(step)
        return [called(Tensor(x), Tensor(y)).item() for x, y in batches], model.state_dict()
    losses, parameters = trained(lambda step: step)
    ran: list[int] = []
    usual = realization._operator
    monkeypatch.setattr(realization, "_operator", lambda *args: (ran.append(1), usual(*args))[1])
    own_losses, own_parameters = trained(lambda step: jit(step, dynamic_shapes={"x": {0: N}, "y": {0: N}}))
    assert len(ran) == 1
    np.testing.assert_allclose(own_losses, losses, rtol=1e-5)
    for name, array in parameters.items():
        np.testing.assert_allclose(own_parameters[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "range": (lambda x: [x[i] for i in range(x.shape[0])], "n is asked for as a value of Python"),
    "len": (lambda x: len(x), "n is asked for as a value of Python"),
    "numpy": (lambda x: x * np.arange(x.shape[0]), "is asked for as a value of Python"),
    "if": (lambda x: x if x.shape[0] > 7 else x * 2, "n > 7 is asked for as a value of Python"),
    "float": (lambda x: x * math.sqrt(x.shape[0]), "n is asked for as a value of Python"),
    "fraction": (lambda x: x if x.shape[0] / 2 > 1 else x * 2, r"\(n / 2\) > 1 is asked for"),
    "beside an array": (lambda x: x + x.shape[0] * np.ones(3), r"n beside an array, in np.multiply, is asked for"),
    "constant axis": (lambda x: x + np.ones(8, np.float32), "n and 8 have to be equal here, and are not for n from 1 to 4096"),
    "split": (lambda x: x.reshape(2, -1), r"n // 2 \* 2|2 \* \(n // 2\)"),
    "attribute": (lambda x: apply("broadcast_to", x, shape=(2, x.shape[0])), r"attribute 'shape' of broadcast_to has the size \(2, n\), which varies"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_number_is_refused(name: str) -> None:
    function, text = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=text):
        jit(lambda x: function(x), dynamic_shapes={"x": [N]})(Tensor(np.ones(8, np.float32)))


def test_wrong_sizes_and_declarations_are_refused() -> None:
    once = jit(lambda x, y: x + y, dynamic_shapes={"x": {0: M}, "y": {0: M}})
    ones = [np.ones(n, np.float32) for n in (3, 4, 65)]
    assert once(ones[0], ones[0]).shape == (3,)
    with pytest.raises(ValueError, match="the size m is 3, and 4 by axis 0 of y"):
        once(ones[0], ones[1])
    with pytest.raises(ValueError, match="the size m is from 2 to 64, and not 65"):
        once(ones[2], ones[2])
    with pytest.raises(ValueError, match="x has an array of 0 axes, and none of number 0"):
        once(np.ones((), np.float32), ones[0])
    with pytest.raises(ValueError, match="no argument 'z': it has x, y"):
        jit(lambda x, y: x, dynamic_shapes={"z": {0: M}})
    with pytest.raises(ValueError, match="have one name"):
        jit(lambda x, y: x, dynamic_shapes={"x": {0: M}, "y": {0: Var("m", 1, 3)}})
    with pytest.raises(TypeError, match="a Var or None for each axis"):
        jit(lambda x: x, dynamic_shapes={"x": {0: 4}})
    for name, low, high in (("2n", 0, 1), ("n", 3, 2), ("n", -1, 1)):
        with pytest.raises(ValueError, match="Var"):
            Var(name, low, high)


def test_gpt2_is_traced_once_for_all_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first token with the keys and values of the text, and one trace for all after it."""
    random.seed(0)
    model = GPT2(Size(layers=2, heads=2, width=16, vocabulary=50, context=32))
    ran: list[int] = []
    usual = GPT2.forward

    @wraps(usual)
    def forward(*args: Any, **named: Any) -> Any:
        ran.append(1)
        return usual(*args, **named)
    monkeypatch.setattr(GPT2, "forward", forward)
    made = list(model.generate([5, 17, 2], 9))
    assert len(ran) == 2
    given = [5, 17, 2]
    with no_grad():
        for token in made:
            logits, _ = model.forward(Tensor(np.asarray(given)), last=True)
            assert int(logits.numpy()[0].argmax()) == token
            given.append(token)


def test_several_graphs_in_one_trace_and_arrays_without_axes() -> None:
    """What is computed in between has extents as formulas, too."""
    def function(x: Tensor, y: Tensor) -> Any:
        both = apply("concatenate", x, x, axis=0).realize()
        return (both[x.shape[0]:] + x) * y, both.shape
    once, ran = traced(function, {"x": {0: N}})
    for n in (4, 9, 2):
        x, y = np.ones((n, 6), np.float32), np.asarray(3, np.float32)
        made, shape = once(x, y)
        np.testing.assert_array_equal(made.numpy(), 6 * x)
        assert shape == (2 * n, 6)
    assert len(ran) == 1


def test_a_method_with_sizes_that_vary() -> None:
    class Scaled:
        factor = 3

        @jit(dynamic_shapes={"x": {-1: N}})
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.factor

    scaled = Scaled()
    for n in (5, 7):
        np.testing.assert_array_equal(scaled(np.ones((2, n), np.float32)).numpy(), np.full((2, n), 3, np.float32))


def test_a_size_of_1_that_comes_first_leaves_the_others_free() -> None:
    """As when tokens come one at a time, and the keys and values before them grow."""
    def function(x: Tensor, y: Tensor) -> Any:
        return x @ y.T, (x.sum(axis=0) + y.mean(axis=0)) * x.shape[0]
    once, ran = traced(function, {"x": {0: Var("n", 1)}, "y": {0: Var("m", 1)}})
    draw, counts = np.random.default_rng(0), []
    for n, m in ((1, 5), (1, 6), (1, 3), (4, 3), (2, 9), (1, 8), (4, 1), (1, 1), (1, 1)):
        x, y = (Tensor(draw.standard_normal((e, 6)).astype(np.float32)) for e in (n, m))
        _agree(once(x, y), function(x, y))
        counts.append(len(ran))
    assert counts == [1, 1, 1, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(("extent", "bounds"), [(1, (2, 16)), (17, (2, 16)), (0, (1, 4096)), (5, (6, 6))])
def test_an_extent_out_of_the_range_is_refused_in_the_first_call_and_in_later_ones(extent: int, bounds: tuple[int, int]) -> None:
    once = jit(lambda x: x.sum(axis=0), dynamic_shapes={"x": {0: Var("rows", *bounds)}})
    for _ in range(2):
        with pytest.raises(ValueError, match=f"jit: the size rows is from {bounds[0]} to {bounds[1]}, and not {extent}"):
            once(np.ones((extent, 3), np.float32))
        assert once(np.ones((bounds[0], 3), np.float32)).shape == (3,)


def test_the_bounds_of_a_size_are_integers() -> None:
    for low, high in ((1.5, 16), ("1", 16), (1, None), (1, 16.0)):
        with pytest.raises(TypeError, match="Var: the bounds of the size n are integers, not"):
            Var("n", low, high)                               # type: ignore[arg-type]
    made = Var("n", np.int64(1), np.int32(16))                # type: ignore[arg-type]
    assert (made, type(made.low), type(made.high)) == (Var("n", 1, 16), int, int)
    with pytest.raises(ValueError, match="Var: the size n cannot be from 16 to 1"):
        Var("n", 16, 1)
