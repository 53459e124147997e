"""Operators of a user, with a gradient by hand, as layers of a network that is trained."""
from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import caten
from daten import Tensor, Var, checkpoint, gradcheck, gradients, jit, nn, operator, optim

SPEC = """
[composite]
name = "Gated"
inputs = ["X{Floating}[B I]", "W{Floating}[I O]", "b{Floating}[O]"]
outputs = ["Y{Floating}[B O]"]
[composite.implementation]
lang = "python"
code = "z = X @ W + b; return z * np.tanh(z)"
[composite.gradient]
lang = "python"
code = '''
z = X @ W + b
t = np.tanh(z)
g = grad_Y * (t + z * (1 - t * t))
return g @ W.T, X.T @ g, g.sum(axis=0)
'''
"""
GATED = operator(SPEC)
THREADS = """
from daten import use
use(config={"OMP": 1})
from test_user_operators import curve
print(*[loss.hex() for loss in curve("jit", 5)[0]])
"""


class Gated(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        draw = np.random.default_rng(inputs)
        self.weight = Tensor(draw.standard_normal((inputs, outputs)).astype(np.float32) * 0.3, requires_grad=True)
        self.bias = Tensor(np.zeros(outputs, np.float32), requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return GATED(x, self.weight, self.bias)


def network() -> nn.Sequential:
    return nn.Sequential(Gated(4, 16), Gated(16, 8), Gated(8, 1))


def curve(way: str, steps: int) -> tuple[list[float], nn.Sequential]:
    """The losses of a training, and what is trained."""
    made, draw = network(), np.random.default_rng(1)
    optimizer = optim.Adam(made.parameters(), lr=1e-2)
    x = draw.standard_normal((32, 4)).astype(np.float32)
    y = np.abs(x.sum(axis=1, keepdims=True))

    def step(x: Tensor, y: Tensor) -> Any:
        forward = checkpoint(made) if way == "checkpoint" else made
        loss = ((forward(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step(loss)
        return loss
    if way == "jit":
        step = jit(step)
    if way == "jit of a size":
        step = jit(step, dynamic_shapes={name: {0: Var("n", 1, 64)} for name in "xy"})
    return [step(Tensor(x), Tensor(y)).item() for _ in range(steps)], made


@pytest.mark.slow
def test_a_network_of_them_is_trained_in_every_way() -> None:
    plain, made = curve("plain", 30)
    assert plain[-1] < 0.5 * plain[0]
    for way in ("jit", "jit of a size", "checkpoint"):
        np.testing.assert_allclose(curve(way, 30)[0], plain, rtol=1e-4, err_msg=way)
    other, x = network(), Tensor(np.ones((3, 4), np.float32))
    other.load_state_dict(made.state_dict())
    np.testing.assert_array_equal(other(x).numpy(), made(x).numpy())


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit_of_them() -> None:
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    curves = [subprocess.run([sys.executable, "-c", THREADS], env=os.environ | {"OMP_NUM_THREADS": str(n), "PYTHONPATH": path}, capture_output=True, text=True,
                             check=True, timeout=300).stdout.split() for n in (1, 2)]
    assert len(curves[0]) == 5
    assert curves[0] == curves[1]


@pytest.mark.slow
def test_their_gradients_are_those_by_differences_and_have_gradients() -> None:
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(shape) for shape in ((3, 4), (4, 5), (5,))]
    assert gradcheck(GATED, arrays) < 1e-6
    assert gradcheck(lambda x, w, b: gradients(GATED(x, w, b).sum(), [w])[0], arrays) < 1e-6


@caten.op
def normalized(x, *, axis=-1, eps=1e-5):
    return x / np.sqrt((x * x).sum(axis=axis, keepdims=True) + eps)


@caten.op
def chosen(x, index, scale):
    rows = x[index] * scale
    return rows, rows.sum(axis=0)


def test_python_functions_are_nodes_of_a_graph() -> None:
    draw = np.random.default_rng(2)
    x, index = draw.standard_normal((5, 3)), np.array([0, 2, 2, 4])
    rows, total = chosen(Tensor(x), index, 2.0)
    assert rows.tolist() == (x[index] * 2).tolist()
    np.testing.assert_allclose(total.numpy(), (x[index] * 2).sum(axis=0))
    assert gradcheck(lambda x: (chosen(x, index, 2.0)[0] ** 2).sum() + (chosen(x, Tensor(index), 2.0)[1] ** 3).sum(), [x]) < 1e-6
    w = Tensor(x, requires_grad=True)
    (normalized(w, axis=0)[0] ** 3).sum().backward()
    assert w.grad is not None
    inner = jit(lambda x: gradients((normalized(x, axis=0)[0] ** 3).sum(), [x])[0])
    np.testing.assert_allclose(inner(x).numpy(), w.grad.numpy())
    np.testing.assert_allclose(inner(2 * x).numpy(), w.grad.numpy() / 2, rtol=1e-3)         # but for eps


def test_a_python_function_serves_sizes_that_are_equal_by_chance() -> None:
    n, m = Var("n", 0, 64), Var("m", 0, 64)
    products = caten.op(product)
    f = jit(lambda x, y: (products(x, y), normalized(x)), dynamic_shapes={"x": {0: n}, "y": {0: m}})
    draw = np.random.default_rng(3)
    for a, b in ((3, 3), (3, 5), (4, 2), (1, 4), (1, 1), (2, 0), (7, 7)):
        x, y = draw.standard_normal((a, 3)), draw.standard_normal((b, 3))
        made, rows = f(x, y)
        np.testing.assert_allclose(made.numpy(), x @ y.T + 1)
        np.testing.assert_allclose(rows.numpy(), x / np.sqrt((x * x).sum(axis=1, keepdims=True) + 1e-5))


def product(x, y):
    return x @ y.T + 1


def test_a_python_function_that_changes_a_tensor_is_refused_at_its_parameter() -> None:
    @caten.op
    def add_to(y, x):
        y += x
    with pytest.raises(caten.CatenError, match=r"E673: 'y' is changed in place, and a lazy array cannot be(.|\n)*hint: make a copy and return it"):
        add_to(Tensor([1.0, 2.0]), np.ones(2, np.float32))
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        add_to(Tensor([1.0]))


def test_a_number_of_an_operator_may_be_computed_and_an_index() -> None:
    """Its value is known when the graph runs, which checks it then."""
    pick = operator('''
[composite]
name = "Pick"
inputs = ["x{f64}[N M]", "i{i64}[]", "scale{f64}[]"]
outputs = ["y{f64}[M]"]
[implementation]
lang = "python"
code = "return x[i] * scale"
''')
    x = np.arange(6.0).reshape(3, 2)
    for i in (1, np.int64(1), Tensor(np.int64(1)), Tensor(np.array([3, -2])).sum()):
        assert pick(x, i, 2).tolist() == [4.0, 6.0]
    with pytest.raises(caten.CatenError, match=r"E711: .*index 1 \(= i\) is outside"):
        pick(x, Tensor(np.array([2, 2])).sum(), 2.0).numpy()
    assert gradcheck(lambda x: pick(x, Tensor(np.array([3, -2])).sum(), 2.0), [x]) < 1e-6
