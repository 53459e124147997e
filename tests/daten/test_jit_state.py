"""Functions that `jit` traces beside the same functions without it: which values are read anew in each call, and which
stay those of the first. Each case is a program of some calls; what it returns has to be the same, bit for bit."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import daten
from daten import Tensor, gradients, jit, nn, no_grad, optim, random

ROWS = np.random.default_rng(0).standard_normal((4, 6, 3)).astype(np.float32)
Step = Callable[..., Any]
Wrap = Callable[[Step], Step]
CASES: list[Callable[[Wrap], Any]] = []


@pytest.fixture(autouse=True)
def numpy_runtime() -> Iterator[None]:
    """Nothing is compiled: what is read does not depend on it."""
    daten.use("numpy", opt=daten.settings.options().opt)
    yield
    daten.use()


def case(program: Callable[[Wrap], Any]) -> Callable[[Wrap], Any]:
    CASES.append(program)
    return program


def network() -> nn.Sequential:
    random.seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1))


def trained(wrap: Wrap, net: nn.Module, between: Callable[[int], object] = lambda n: None,
            more: Callable[[Tensor, Tensor], Any] = lambda y, loss: loss) -> list[Any]:
    """The results of some steps, and the state after them. `more`: what a step returns beside; `between`: what happens
    after each call."""
    optimizer = optim.SGD(net.parameters(), 0.1, momentum=0.9)

    def step(x: Tensor) -> Any:
        y = net(x)
        loss = (y * y).mean()
        loss.backward()
        optimizer.step(loss)
        return loss, more(y, loss)
    called, made = wrap(step), list[Any]()
    for n, x in enumerate(ROWS):
        made += [t.numpy() for t in called(Tensor(x))]
        between(n)
    return [*made, *net.state_dict().values(), *optimizer.state_dict().values()]


@case
def forward_without_a_step_before(wrap: Wrap) -> Any:
    net = network()
    net(Tensor(ROWS[0] * 9))                                # its statistics are not computed yet
    return trained(wrap, net)


@case
def parameters_changed_in_place_before(wrap: Wrap) -> Any:
    net = network()
    with no_grad():
        net.layers[0].weight[:] = net.layers[0].weight * 0.5
        net.layers[1].running_mean[0] = net.layers[1].running_mean[0] + 1
    return trained(wrap, net)


@case
def parameters_changed_in_place_between(wrap: Wrap) -> Any:
    net = network()

    def change(n: int) -> None:
        with no_grad():
            net.layers[0].weight[:] = net.layers[0].weight * 0.9
            net.layers[2].bias[0] = 0.25
    return trained(wrap, net, change)


@case
def values_loaded_over_others_that_wait(wrap: Wrap) -> Any:
    net = network()
    state = {name: array.copy() for name, array in net.state_dict().items()}
    net(Tensor(ROWS[0] * 9))
    net.layers[0].weight[:] = 1.0
    net.load_state_dict(state)
    return trained(wrap, net)


@case
def a_copy(wrap: Wrap) -> Any:
    net = network()
    made = trained(wrap, copy.deepcopy(net))
    for mine, new in zip(net.state_dict().values(), network().state_dict().values(), strict=True):
        np.testing.assert_array_equal(mine, new)
    return made


@case
def one_from_pickle(wrap: Wrap) -> Any:
    return trained(wrap, pickle.loads(pickle.dumps(network())))


@case
def another_network_as_the_target(wrap: Wrap) -> Any:
    net = network()
    target = copy.deepcopy(net).eval()

    def change(n: int) -> None:
        if n == 1:
            target.load_state_dict(net.state_dict())
    return trained(wrap, net, change, lambda y, loss: target(y * np.ones(3, np.float32)))


@case
def what_was_computed_before_the_step(wrap: Wrap) -> Any:
    return trained(wrap, network(), more=lambda y, loss: y)


@case
def what_is_computed_after_the_step(wrap: Wrap) -> Any:
    net = network()
    return trained(wrap, net, more=lambda y, loss: net.layers[0].weight.sum() + net.layers[1].running_var.sum())


@case
def the_change_of_a_parameter(wrap: Wrap) -> Any:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = optim.Adam([w], 0.1)

    def step(x: Tensor) -> Tensor:
        before = w.detach()
        loss = ((x * w).sum(axis=1) ** 2).mean()
        loss.backward()
        optimizer.step(loss)
        return w - before
    called = wrap(step)
    return [called(Tensor(x)).numpy() for x in ROWS]


@case
def a_target_that_was_not_computed(wrap: Wrap) -> Any:
    net = network()
    target = (net(Tensor(ROWS[1])) + 1).detach()
    return trained(wrap, net, more=lambda y, loss: y - target)


@case
def earlier_values_of_parameters(wrap: Wrap) -> Any:
    net = network()
    bias = net.layers[2].bias
    old = [bias.detach(), Tensor(bias), bias.reshape(1), bias[:], copy.copy(bias), copy.deepcopy(bias)]
    return trained(wrap, net, more=lambda y, loss: sum([(bias - b.detach()) * n for n, b in enumerate(old)]))


@case
def tensors_that_require_gradients_later(wrap: Wrap) -> Any:
    first, second = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 2.0, 3.0]) * 1.5
    third = Tensor(Tensor([1.0, 2.0, 3.0]) * 0.5, requires_grad=True)
    first.requires_grad = second.requires_grad = True
    fourth = Tensor(first, requires_grad=True)              # of its own from now on
    optimizer = optim.SGD([first, second, third, fourth], 0.1)

    def step(x: Tensor) -> Any:
        loss = ((x * first).sum() + (x * second).sum() + (x * third * third).sum() + (x * fourth).mean()) ** 2 / 1000
        loss.backward()
        optimizer.step(loss)
        return loss
    called = wrap(step)
    return [called(Tensor(x)).numpy() for x in ROWS], first.numpy(), second.numpy(), third.numpy(), fourth.numpy()


@case
def buffers_that_are_set(wrap: Wrap) -> Any:
    last, total = nn.layers.buffer(np.zeros(3, np.float32)), nn.layers.buffer(np.zeros(3, np.float32))

    def step(x: Tensor) -> Any:
        twice = last * 2
        last[:] = x[0]
        total[:] = total + last
        mean = total / 2
        total[0] = 0.0
        return twice, mean, total
    called = wrap(step)
    return [[t.numpy() for t in called(Tensor(x))] for x in ROWS], last.numpy(), total.numpy()


@case
def two_steps_and_two_optimizers(wrap: Wrap) -> Any:
    maker, judge = nn.Linear(3, 2), nn.Linear(2, 1)
    of_maker, of_judge = optim.Adam(maker.parameters(), 0.01), optim.SGD(judge.parameters(), 0.01)
    for t in (*maker.parameters(), *judge.parameters()):
        t.assign(np.linspace(-1, 1, t.size).reshape(t.shape))

    def step(x: Tensor) -> Any:
        made = maker(x)
        loss = (judge(made.detach()) ** 2).mean() - judge(x[:, :2]).mean()
        loss.backward()
        of_judge.step(loss)
        other = -judge(made).mean()
        other.backward()
        of_maker.step(other)
        of_judge.zero_grad()
        return loss, other, made
    called = wrap(step)
    return [[t.numpy() for t in called(Tensor(x))] for x in ROWS]


@case
def an_optimizer_inside(wrap: Wrap) -> Any:
    def fitted(x: Tensor) -> Any:
        w = Tensor(np.zeros(3, np.float32), requires_grad=True)
        optimizer = optim.Adam([w], 0.1)
        for _ in range(3):
            loss = ((x - w) ** 2).sum()
            loss.backward()
            optimizer.step(loss)
        return w * 1, loss
    called = wrap(fitted)
    return [[t.numpy() for t in called(Tensor(x))] for x in ROWS]


@case
def a_parameter_made_of_another_inside(wrap: Wrap) -> Any:
    p = Tensor([2.0, 3.0, 4.0], requires_grad=True)

    def gradient(x: Tensor) -> Any:
        own = Tensor(p, requires_grad=True)
        return gradients((own * own * x).sum(), [own])[0]
    called, made = wrap(gradient), []
    for n, x in enumerate(ROWS):
        made.append(called(Tensor(x)).numpy())
        p.assign(np.full(3, n, np.float32))
    return made


@case
def one_array_given_twice(wrap: Wrap) -> Any:
    x, y = Tensor(ROWS[0]).realize(), Tensor(ROWS[1]).realize()
    w = Tensor(ROWS[2], requires_grad=True)
    called = wrap(lambda a, b: a - 2 * b + 4 * w)
    return [called(*given).numpy() for given in ((x, x), (x, y), (w, w), (y, w), (w.numpy(), x))]


@case
def functions_that_are_traced_inside(wrap: Wrap) -> Any:
    def inner(x: Tensor) -> Tensor:
        return x * 2
    other = wrap(inner)
    called = wrap(lambda x: other(x * 3) + other(x))
    return [called(Tensor(x)).numpy() for x in ROWS]


@case
def a_seed_between_calls(wrap: Wrap) -> Any:
    drop, made = nn.Dropout(0.5), []
    called = wrap(lambda x: drop(x))
    for x in (*ROWS, *ROWS):
        random.seed(5)
        made += [called(Tensor(x)).numpy() for _ in range(2)]
    return made


@case
def parameters_in_exponents_and_indices(wrap: Wrap) -> Any:
    power, places = Tensor(2.0, requires_grad=True), nn.layers.buffer(np.array([0, 2]))
    called, made = wrap(lambda x: (x.abs() ** power)[:, places]), []
    for n, x in enumerate(ROWS):
        made.append(called(Tensor(x)).numpy())
        power.assign(n / 2)
        places.assign([n % 3, 1])
    return made


@case
def results_that_are_parameters(wrap: Wrap) -> Any:
    p = Tensor([1.0, 2.0], requires_grad=True)
    called = wrap(lambda x: (p, p * x))
    called(Tensor(1.0))
    found = [t.detach() for t in called(Tensor(2.0))]
    p.assign([7.0, 7.0])
    other = wrap(lambda x: p * x - found[0] + found[1])
    made = [other(Tensor(3.0)).numpy()]
    p.assign([8.0, 8.0])
    return [*made, other(Tensor(3.0)).numpy(), *[t.numpy() for t in found]]


@case
def constants_that_are_equal_and_differ(wrap: Wrap) -> Any:
    called = wrap(lambda x, c: x * c)
    made = [called(Tensor([1.0]), c).numpy() for c in (0.0, -0.0, 1, True, 1.0, complex(0, -0.0), complex(0, 0.0))]
    return [[m.dtype.name, m.tobytes()] for m in made]


@case
def the_whole_state_from_pickle(wrap: Wrap) -> Any:
    net = network().to("bfloat16")
    state = net, optim.AdamW(net.parameters(), 0.1)

    def steps(state: Any, rows: np.ndarray) -> list[Any]:
        own, optimizer = state

        def step(x: Tensor) -> Any:
            loss = (own(x.astype("bfloat16")) ** 2).mean()
            loss.backward()
            optimizer.step(loss)
            return loss
        called = wrap(step)
        return [called(Tensor(x)).item() for x in rows]
    steps(state, ROWS[:2])
    others = copy.deepcopy(state), pickle.loads(pickle.dumps(state))
    made = steps(state, ROWS[2:])
    assert [steps(other, ROWS[2:]) for other in others] == [made, made]
    return made


@pytest.mark.parametrize("program", [pytest.param(c, id=c.__name__) for c in CASES])
def test_a_program_gives_the_same_with_and_without_jit(program: Callable[[Wrap], Any]) -> None:
    wanted, found = program(lambda f: f), program(jit)
    assert repr(wanted) == repr(found)
    flat = [flattened(v) for v in (wanted, found)]
    assert len(flat[0]) == len(flat[1]) > 1
    for a, b in zip(*flat, strict=True):
        np.testing.assert_array_equal(a, b)


def flattened(value: Any) -> list[Any]:
    return [v for part in value for v in flattened(part)] if isinstance(value, list | tuple) else [value]


def test_what_would_be_in_the_first_call_alone_is_refused() -> None:
    p = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([p], 0.1)

    def step(x: Tensor) -> Tensor:
        loss = (p * x).sum()
        loss.backward()
        optimizer.step(loss)
        return loss
    (p * p).sum().backward()
    with pytest.raises(ValueError, match="has a gradient from before the call"):
        jit(step)(Tensor(1.0))
    with pytest.raises(ValueError, match="has a gradient from before the call"):
        jit(lambda x: optimizer.step())(Tensor(1.0))
    p.grad = Tensor([1.0, 1.0])                      # as one that was set by hand
    for function in (step, lambda x: optimizer.step(), lambda x: optim.clip_norm([p], 1.0)):
        with pytest.raises(ValueError, match="has a gradient from before the call"):
            jit(function)(Tensor(1.0))
    optimizer.zero_grad()
    known = jit(step)
    known(Tensor(1.0))
    (p * p).sum().backward()
    with pytest.raises(ValueError, match="has a gradient from before the call"):
        known(Tensor(1.0))
    with pytest.raises(TypeError, match="has another value each time"):
        jit(lambda x: x * p.item())(Tensor(1.0))


def test_gradients_that_the_function_itself_sets_to_none() -> None:
    p = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([p], 0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (p * x).sum()
        loss.backward()
        optimizer.step(loss)
        return loss
    for wanted in (3.0, 2.8, 2.6):
        (p * p).sum().backward()
        assert step(Tensor(1.0)).item() == pytest.approx(wanted)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_are_tensors_of_their_own(again: Callable[[Tensor], Any]) -> None:
    for dtype in ("float32", "bfloat16", "complex64", "int8"):
        w = Tensor([1, 2]).astype(dtype)
        made = again(w * 2)                                 # which is not computed
        assert (made.dtype, made.tolist(), made.requires_grad) == (w.dtype, [2, 4], False)
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    made = again(w)
    assert (made.requires_grad, made.grad.tolist()) == (True, [2, 4])
    (made * 3).sum().backward()
    assert (made.grad.tolist(), w.grad.tolist()) == ([5, 7], [2, 4])
    made.assign([9, 9])
    assert (w.tolist(), made.numpy().flags.writeable) == ([1, 2], False)


def test_only_floats_can_require_gradients_later() -> None:
    t = Tensor([1, 2])
    with pytest.raises(ValueError, match="only floats have gradients"):
        t.requires_grad = True
    assert not t.requires_grad


def test_gradients_that_are_set_in_a_function() -> None:
    p, ones = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 1.0])
    optimizer = optim.SGD([p], 1.0)

    @jit
    def step(x: Tensor) -> None:
        p.grad = x * ones
        optimizer.step()
        p.grad = ones
        optimizer.step()
    for n in range(3):
        step(Tensor(float(n)))
    assert p.tolist() == [-5.0, -4.0]
    with pytest.raises(TypeError, match=r"a gradient is a tensor or None, not array\(\[1., 1.\]\): Tensor\(…\) makes"):
        p.grad = np.ones(2)
    with pytest.raises(ValueError, match=r"the gradient of Tensor\(float32\[2\]\) has its shape, not \(3,\)"):
        p.grad = Tensor([1.0, 2.0, 3.0])
