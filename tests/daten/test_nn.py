"""Layers: what they compute, their names, and that networks of them learn."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daten import Tensor, Var, apply, jit, nn, optim, random

rng = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


class Net(nn.Module):
    def __init__(self) -> None:
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4)
        self.layers = [nn.Linear(16, 8), nn.Dropout(0.5)]
        self.named = {"out": nn.Linear(8, 3)}

    def forward(self, x: Tensor) -> Tensor:
        x = apply("max_pool2d", apply("relu", self.norm(self.conv(x))), kernel=(2, 2))
        for layer in self.layers:
            x = layer(x if isinstance(layer, nn.Dropout) else x.reshape(x.shape[0], -1))
        made = self.named["out"](x)
        assert isinstance(made, Tensor)
        return made


def test_names_and_modes() -> None:
    net = Net()
    names = [name for name, _ in net.named_tensors()]
    assert names == ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
                     "layers.0.weight", "layers.0.bias", "named.out.weight", "named.out.bias"]
    assert len(net.parameters()) == 8
    assert repr(net) == "Net(211 parameters)"
    assert not any(m.training for m in net.eval().modules())
    other = Net()
    other.load_state_dict(net.state_dict())
    x = Tensor(real(5, 1, 4, 4))
    np.testing.assert_array_equal(net(x).numpy(), other.eval()(x).numpy())
    with pytest.raises(ValueError, match=r"lacks conv\.bias"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="has the shape"):
        other.load_state_dict(net.state_dict() | {"conv.bias": np.zeros(3)})
    with pytest.raises(ValueError, match=r"has no conv\.batches"):
        other.load_state_dict(net.state_dict() | {"conv.batches": np.zeros(3)})


def test_a_network_learns_and_gathers_statistics() -> None:
    random.seed(1)
    net = Net()
    x, y = real(24, 1, 4, 4), rng.integers(0, 3, 24)
    x += y[:, None, None, None]
    optimizer = optim.AdamW(net.parameters(), lr=3e-2)
    losses = []
    for _ in range(20):
        loss = apply("cross_entropy", net(Tensor(x)), Tensor(y))
        loss.backward()
        optimizer.step(loss)
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert np.abs(net.norm.running_mean.numpy()).max() > 0.01
    assert net.norm.running_mean._ref.array is not None                   # computed with the step
    kept = optimizer.state_dict()
    again = optim.AdamW(net.parameters(), lr=3e-2)
    again.load_state_dict(kept)
    assert again.steps == 20
    np.testing.assert_array_equal(again.kept[0][1].numpy(), optimizer.kept[0][1].numpy())


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_recurrent_layers() -> None:
    x = real(2, 3, 4)
    lstm, gru = nn.LSTM(4, 5), nn.GRU(4, 5)
    h, c = np.zeros((2, 5)), np.zeros((2, 5))
    w, u, b = [v.numpy() for v in (lstm.cell.weight_ih, lstm.cell.weight_hh, lstm.cell.bias_ih + lstm.cell.bias_hh)]
    for t in range(3):
        i, f, g, o = np.split(x[:, t] @ w.T + h @ u.T + b, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    found, (last, _) = lstm(Tensor(x))
    assert found.shape == (2, 3, 5)
    np.testing.assert_allclose(last.numpy(), h, rtol=1e-5)
    np.testing.assert_allclose(found.numpy()[:, 2], h, rtol=1e-5)
    h = np.zeros((2, 5))
    w, u, bi, bh = [v.numpy() for v in (gru.cell.weight_ih, gru.cell.weight_hh, gru.cell.bias_ih, gru.cell.bias_hh)]
    for t in range(3):
        ours, theirs = np.split(x[:, t] @ w.T + bi, 3, axis=1), np.split(h @ u.T + bh, 3, axis=1)
        reset, update = sigmoid(ours[0] + theirs[0]), sigmoid(ours[1] + theirs[1])
        h = (1 - update) * np.tanh(ours[2] + reset * theirs[2]) + update * h
    np.testing.assert_allclose(gru(Tensor(x))[1][0].numpy(), h, rtol=1e-5)
    rnn, h = nn.RNN(4, 5), np.zeros((2, 5))
    w, u, b = [v.numpy() for v in (rnn.cell.weight_ih, rnn.cell.weight_hh, rnn.cell.bias_ih + rnn.cell.bias_hh)]
    for t in range(3):
        h = np.tanh(x[:, t] @ w.T + h @ u.T + b)
    np.testing.assert_allclose(rnn(Tensor(x))[1][0].numpy(), h, rtol=1e-5)
    for layer, given in ((lstm, x[:, :0]), (rnn, x[:, :0]), (gru, x[:, :0]), (lstm, x[0])):
        with pytest.raises(ValueError, match=type(layer).__name__ + r" takes x\[batch, time, inputs\] with one step or more"):
            layer(Tensor(given))


@pytest.mark.slice(2)
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_long_sequence_is_one_operator_with_the_same_results(kind: type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]) -> None:
    """As all steps of it are, with its gradients, also where its length varies."""
    layer, x = kind(4, 5, unrolled=3), real(2, 5, 4)

    def results() -> list[np.ndarray]:
        given = Tensor(x, requires_grad=True)
        outputs, last = layer(given)
        ((outputs * outputs).sum() + sum(((k + 2.0) * state for k, state in enumerate(last)), Tensor(0.0)).sum()).backward()
        found = [outputs, *last, given.grad, *[p.grad for p in layer.parameters()]]
        for p in layer.parameters():
            p.grad = None
        return [t.numpy() for t in found if t is not None]
    long = results()
    varying = jit(dynamic_shapes={"x": {1: Var("steps", 1, 9)}})(lambda x: layer(x)[0])
    np.testing.assert_array_equal(varying(x).numpy(), long[0])
    layer.unrolled = 5
    unrolled = results()
    assert len(long) == len(unrolled) == 2 + layer.cell.states + 4
    for a, b in zip(long, unrolled, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_cell_without_a_state_begins_with_zeros() -> None:
    """Of the type of its input; also where the batch is a size that varies."""
    x = real(2, 4)
    for cell, layer in ((nn.RNNCell(4, 5), nn.RNN(4, 5)), (nn.LSTMCell(4, 5), nn.LSTM(4, 5)), (nn.GRUCell(4, 5), nn.GRU(4, 5))):
        wanted = cell(Tensor(x), cell.start(2))
        for made in (cell(Tensor(x)), cell(Tensor(x), None)):
            for a, b in zip(made, wanted, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
        assert {str(t.dtype) for t in cell.start(2, "float64")} == {"float64"}
        layer.cell = cell
        step = jit(dynamic_shapes={"rows": {0: Var("batch", 1, 8)}})(lambda rows, layer=layer: layer(rows)[0])
        for batch in (2, 5):
            rows = real(batch, 3, 4)
            np.testing.assert_allclose(step(rows).numpy(), layer(Tensor(rows))[0].numpy(), rtol=1e-6)
        layer.to("bfloat16")
        outputs, last = layer(Tensor(real(2, 3, 4)).astype("bfloat16"))
        assert {str(t.dtype) for t in (outputs, *last)} == {"bfloat16"}


def test_the_state_of_a_gru_cell_may_be_a_tensor() -> None:
    cell, x, h = nn.GRUCell(4, 5), Tensor(real(1, 4)), Tensor(real(1, 5))
    (wanted,) = cell(x, (h,))
    found = cell(x, h)
    assert found.shape == (1, 5)
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    with pytest.raises(ValueError, match=r"the state of LSTMCell is 2 tensors, each \[batch, 5\], not 1 tensor"):
        nn.LSTMCell(4, 5)(x, h)


def test_attention_of_several_heads() -> None:
    layer, x = nn.MultiHeadAttention(8, 2, causal=True), real(3, 5, 8)
    q, k, v = np.split(x @ layer.qkv.weight.numpy().T + layer.qkv.bias.numpy(), 3, axis=-1)
    heads: list[Any] = [m.reshape(3, 5, 2, 4).transpose(0, 2, 1, 3) for m in (q, k, v)]
    scores = np.where(np.tri(5, dtype=bool), heads[0] @ heads[1].swapaxes(-1, -2) / 2, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    seen = (weights / weights.sum(-1, keepdims=True) @ heads[2]).transpose(0, 2, 1, 3).reshape(3, 5, 8)
    expected = seen @ layer.projection.weight.numpy().T + layer.projection.bias.numpy()
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-6)
    mask = Tensor(np.tri(5, dtype=bool))
    np.testing.assert_allclose(layer(Tensor(x), mask).numpy(), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="cannot be divided"):
        nn.MultiHeadAttention(8, 3)


def test_a_seed_gives_the_same_network() -> None:
    random.seed(7)
    first = nn.Linear(3, 4).weight.numpy()
    random.seed(7)
    np.testing.assert_array_equal(nn.Linear(3, 4).weight.numpy(), first)


def test_schedules() -> None:
    rate = optim.cosine(1.0, 110, warmup=10, last=0.1)
    assert [round(rate(n), 3) for n in (0, 9, 10, 60, 110, 200)] == [0.1, 1.0, 1.0, 0.55, 0.1, 0.1]
    rate = optim.linear(1.0, 110, warmup=10)
    assert [round(rate(n), 3) for n in (0, 9, 60, 110)] == [0.1, 1.0, 0.5, 0.0]


def test_a_state_of_pytorch_counts_batches() -> None:
    norm = nn.BatchNorm(2)
    values = {"weight": real(2), "bias": real(2), "running_mean": real(2), "running_var": real(2) ** 2}
    norm.load_state_dict(values | {"num_batches_tracked": np.array(7)})
    for name, tensor in norm.named_tensors():
        np.testing.assert_array_equal(tensor.numpy(), values[name])
    net = Net()
    net.load_state_dict(net.state_dict() | {"norm.num_batches_tracked": np.array(7)})


@pytest.mark.parametrize(("make", "message"), [
    (lambda: nn.Linear(-3, 4), "inputs is a whole number from 1 on, not -3"), (lambda: nn.Linear(3, 2.5), "outputs is a whole number from 1 on, not 2.5"),
    (lambda: nn.Embedding(0, 4), "count is a whole number from 1 on, not 0"), (lambda: nn.Conv2d(3, 4, 0), "kernel is a whole number from 1 on, not 0"),
    (lambda: nn.Conv1d(3, 4, 3, groups=2), "3 inputs and 4 outputs cannot be divided among 2 groups"), (lambda: nn.LSTM(3, True), "width is a whole number"),
    (lambda: nn.GroupNorm(3, 4), "4 channels cannot be divided among 3 groups"), (lambda: nn.MultiHeadAttention(8, 0), "heads is a whole number from 1 on"),
    (lambda: nn.Dropout(1.5), "p is a probability, from 0 to 1, not 1.5")])
def test_numbers_that_no_layer_has(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("given", "what"), [(nn.Linear(2, 3), r"Linear\(9 parameters\)"), (Tensor(1.0), "Tensor"), ([np.ones(3)], "of array"), (None, "None")])
def test_what_is_no_list_of_parameters(given: Any, what: str) -> None:
    with pytest.raises(TypeError, match=rf"takes a list of tensors, as module\.parameters\(\) gives, not {what}"):
        optim.SGD(given)


def test_parts_of_a_network() -> None:
    net = nn.Sequential(nn.Linear(2, 3), np.tanh, nn.Linear(3, 1))
    assert (len(net), net[1], list(net)[2] is net[-1], [type(m) for m in net[:1]]) == (3, np.tanh, True, [nn.Linear])
    net[0].bias.requires_grad = False
    assert [name for name, _ in net.named_parameters()] == ["layers.0.weight", "layers.2.weight", "layers.2.bias"]
    (net(Tensor(real(4, 2))) ** 2).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize(("axes", "settings"), [(1, {"stride": 2}), (2, {"stride": (2, 1), "padding": 1, "output_padding": (1, 0)}), (3, {"dilation": 2, "bias": False})])
def test_a_transposed_convolution_is_the_adjoint_of_a_convolution(axes: int, settings: dict[str, Any]) -> None:
    """⟨conv(y), x⟩ = ⟨y, transposed(x)⟩ without the bias, with one array of weights."""
    layer = [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d][axes - 1](2, 3, 3, **settings)
    x = Tensor(real(2, 2, *[4, 5, 3][:axes]))
    made = layer(x)
    y = Tensor(real(*made.shape))
    windows = {name: value for name, value in settings.items() if name in ("stride", "padding", "dilation")}
    back = apply(f"conv{axes}d", y, layer.weight, **windows)
    plain = made if layer.bias is None else made - layer.bias.reshape(-1, *[1] * axes)
    np.testing.assert_allclose((back * x).sum().item(), (plain * y).sum().item(), rtol=1e-4)


@pytest.mark.parametrize(("name", "text"), [("ReLU", r"lambda x: x\.relu\(\)"), ("ModuleList", "lists and dicts of modules"), ("BatchNorm2d", "BatchNorm is for any")])
def test_layers_of_other_libraries_are_told_what_there_is(name: str, text: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'daten.nn' has no attribute '{name}': .*{text}"):
        getattr(nn, name)


RANDOM: dict[str, tuple[Any, Any]] = {
    "normal": (lambda: random.normal((2, 3)), lambda y: y.shape == (2, 3)),
    "uniform": (lambda: random.uniform(5, low=2.0, high=3.0), lambda y: y.shape == (5,) and ((y >= 2) & (y < 3)).all()),
    "randint": (lambda: random.randint(3, 6, 40), lambda y: set(y.tolist()) == {3, 4, 5}),
    "bernoulli": (lambda: random.bernoulli((50,), p=0.5), lambda y: 10 < y.sum() < 40),
    "permutation": (lambda: random.permutation(9), lambda y: sorted(y.tolist()) == list(range(9))),
    "dropout": (lambda: Tensor(np.ones(20, np.float32)).dropout(p=0.5), lambda y: set(y.tolist()) == {0.0, 2.0})}


@pytest.mark.slice(3)
@pytest.mark.parametrize("name", RANDOM)
def test_random_tensors_are_others_in_each_call(name: str) -> None:
    make, fits = RANDOM[name]
    draw = jit(make)
    random.seed(4)
    first, second = draw().numpy(), draw().numpy()
    assert (first != second).any()
    assert fits(second)
    random.seed(4)
    np.testing.assert_array_equal(draw().numpy(), first)
