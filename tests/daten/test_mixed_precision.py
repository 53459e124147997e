"""Parameters and activations in 16 bits: networks learn as in float32, for the optimizer keeps what rounding takes."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import daten
from caten.core.numpy_types import numpy_dtype
from daten import Tensor, apply, nn, optim
from daten.cli import cli
from daten.element_types import type_named
from daten.weights import load, save

SHORT = ("bfloat16", "float16")
STEP = {"bfloat16": 2.0 ** -8, "float16": 2.0 ** -11}                  # the relative error of rounding
OPTIMIZERS: dict[str, Callable[..., optim.Optimizer]] = {
    "sgd": lambda ps: optim.SGD(ps, 0.05, momentum=0.9), "adamw": lambda ps: optim.AdamW(ps, 3e-3), "lion": lambda ps: optim.Lion(ps, 1e-3)}


def network(dtype: str) -> nn.Sequential:
    daten.random.seed(0)
    made = nn.Sequential(nn.Linear(20, 64), lambda x: apply("relu", x), nn.LayerNorm(64), nn.Linear(64, 2))
    made.to(dtype)
    return made


def data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((256, 20)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def losses(dtype: str, optimizer: str, steps: int = 30) -> tuple[list[float], nn.Sequential, optim.Optimizer]:
    net = network(dtype)
    made = OPTIMIZERS[optimizer](net.parameters())
    x, y = data()

    @daten.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = apply("cross_entropy", net(x.astype(dtype)), y)
        loss.backward()
        made.step(loss)
        return loss
    return [float(step(x, y).numpy()) for _ in range(steps)], net, made


@pytest.mark.slice(4)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_learning_curves_are_those_of_float32(optimizer: str, nightly: bool) -> None:
    wide, _, _ = losses("float32", optimizer)
    assert wide[-1] < 0.8 * wide[0]
    for dtype in SHORT if nightly else SHORT[:1]:
        short, net, _ = losses(dtype, optimizer)
        assert all(p.dtype == dtype for p in net.parameters())
        np.testing.assert_allclose(short, wide, rtol=8 * STEP[dtype])


@pytest.mark.parametrize("dtype", SHORT)
def test_steps_smaller_than_the_last_bit_count(dtype: str) -> None:
    """A hundred steps of 1/64 of the last bit of 1, which rounding alone would lose, are as many as they are."""
    p = Tensor(np.ones(3, numpy_dtype(type_named(dtype))), requires_grad=True)
    optimizer = optim.SGD([p], lr=STEP[dtype] / 32)
    for _ in range(128):
        p.sum().backward()
        optimizer.step()
    assert p.numpy().astype(np.float64) == pytest.approx(1 - 4 * STEP[dtype])


def test_the_parameter_and_its_rest_are_the_float32_parameter() -> None:
    wide, ours = losses("float32", "sgd", 1)[1:], losses("bfloat16", "sgd", 1)[1:]
    for n, (a, b) in enumerate(zip(wide[0].parameters(), ours[0].parameters(), strict=True)):
        rest = ours[1].rests[n].numpy()
        assert rest.dtype == np.float32
        whole = b.numpy().astype(np.float32) + rest
        np.testing.assert_array_equal(whole.astype(b.numpy().dtype), b.numpy())            # nothing is kept that rounds away
        np.testing.assert_allclose(whole, a.numpy(), atol=2e-3, rtol=STEP["bfloat16"])


def test_states_are_float32_and_saved(tmp_path: Path) -> None:
    _, net, made = losses("bfloat16", "adamw", 5)
    assert {a.dtype for name, a in made.state_dict().items() if name != "steps"} == {np.dtype(np.float32)}
    save(made.state_dict(), tmp_path / "state.safetensors")
    save(net.state_dict(), tmp_path / "net.safetensors")
    other = network("bfloat16")
    other.load_state_dict(load(tmp_path / "net.safetensors"))
    again = OPTIMIZERS["adamw"](other.parameters())
    again.load_state_dict(load(tmp_path / "state.safetensors"))
    x, y = data()
    for n, o in ((net, made), (other, again)):
        apply("cross_entropy", n(Tensor(x).astype("bfloat16")), y).backward()
        o.step()
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_modules_are_floats() -> None:
    net = network("float32")
    assert net.to("float64").parameters()[0].dtype == "float64"
    with pytest.raises(ValueError, match="parameters are floats, not int32"):
        net.to("int32")


def gradients(name: str, dtype: str, arrays: list[np.ndarray], **attributes: Any) -> list[np.ndarray]:
    given = [Tensor(a.astype(numpy_dtype(type_named(dtype))) if a.dtype == np.float32 else a, requires_grad=a.dtype == np.float32)
             for a in arrays]
    made = apply(name, *given, **attributes)
    assert made.dtype == dtype
    weight = np.random.default_rng(5).standard_normal(made.shape).astype(np.float32)
    (made.astype("float32") * weight).sum().backward()
    return [t.grad.numpy().astype(np.float64) for t in given if t.grad is not None]


OPERATORS = {
    "linear": ([(9, 40), (7, 40), (7,)], {}), "softmax": ([(5, 30)], {}), "layer_norm": ([(6, 32), (32,), (32,)], {}),
    "conv2d": ([(2, 3, 9, 9), (4, 3, 3, 3)], {"padding": (1, 1)}), "max_pool2d": ([(2, 3, 8, 8)], {"kernel": (2, 2)}), "cumsum": ([(4, 20)], {"axis": 1}),
    "prod": ([(4, 6)], {"axis": 1}), "max": ([(4, 20)], {"axis": 1}), "cummax": ([(4, 20)], {"axis": 1}), "gelu": ([(50,)], {}), "add": ([(4, 5), (5,)], {}),
    "where": ([(4, 5), (4, 5)], {}), "mean": ([(8, 40)], {"axis": 0}), "attention": ([(2, 6, 8), (2, 7, 8), (2, 7, 8)], {})}


@pytest.mark.slice(12)
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_are_those_of_float32_but_for_rounding(name: str, dtype: str) -> None:
    shapes, attributes = OPERATORS[name]
    draw = np.random.default_rng(1)
    arrays = [draw.standard_normal(s).astype(numpy_dtype(type_named(dtype))).astype(np.float32) for s in shapes]
    if name == "where":
        arrays.insert(0, draw.random(shapes[0]) < 0.5)
    wide, short = (gradients(name, each, arrays, **attributes) for each in ("float32", dtype))
    assert len(short) == len(shapes)
    for a, b in zip(wide, short, strict=True):
        np.testing.assert_allclose(b, a, rtol=8 * STEP[dtype], atol=8 * STEP[dtype] * np.abs(a).max())


def test_sums_of_gradients_are_float32_inside() -> None:
    """Of 4,096 ones: added in bfloat16 they would come to 256."""
    bias = Tensor(np.zeros(3, numpy_dtype("bf16")), requires_grad=True)
    (Tensor(np.ones((4096, 3), numpy_dtype("bf16"))) + bias).astype("float32").sum().backward()
    assert bias.grad is not None
    np.testing.assert_array_equal(bias.grad.numpy().astype(np.float32), 4096)


def test_programs_declare_types_of_16_bits(tmp_path: Path) -> None:
    x, y = data()
    np.savez(tmp_path / "data.npz", X=x, Y=y)
    (tmp_path / "net.toml").write_text("""
[modules]
L1 = "linear"
R = "relu"
L2 = "linear"
CrossEntropy = "cross_entropy"
[inputs]
X = "X{bfloat16}[B 20]"
Y = "Y{int64}[B]"
[parameters]
W1 = "W1{bfloat16 grad}[32 20]"
W2 = "W2{bfloat16 grad}[2 32]"
b1 = "b1{bfloat16 grad}[32]"
b2 = "b2{bfloat16 grad}[2]"
[main]
loss = "L"
code = "(set L (CrossEntropy (L2 (R (L1 X W1 b1)) W2 b2) Y))"
[train]
lr = 1e-2
epochs = 4
data = "data.npz"
""")
    done = CliRunner().invoke(cli, ["train", str(tmp_path / "net.toml"), "-o", str(tmp_path / "w.safetensors")])
    assert done.exit_code == 0, done.output
    found = [float(line.split("loss ")[1].split(",")[0]) for line in done.output.splitlines()]
    assert found[-1] < 0.9 * found[0]
    assert {a.dtype.name for a in load(tmp_path / "w.safetensors").values()} == {"bfloat16"}


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", SHORT)
def test_gpt2_in_16_bits(dtype: str) -> None:
    from daten.models.gpt2 import GPT2, Size
    found = []
    for each in ("float32", dtype):
        daten.random.seed(3)
        net = GPT2(Size(2, 2, 32, 50, 16))
        net.to(each)
        logits, cache = net(Tensor(np.array([3, 1, 4, 1, 5])))
        assert logits.dtype == each
        more, _ = net(Tensor(np.array([9])), cache)
        found.append((logits.numpy().astype(np.float32), more.numpy().astype(np.float32)))
        assert len(list(net.generate([1, 2], 3))) == 3
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=0.02 * np.abs(a).max())


@pytest.mark.parametrize(("other", "made"), [("float16", "float32"), ("int8", "bfloat16"), ("int32", "float64"), ("uint16", "float32"), ("float64", "float64")])
def test_bfloat16_is_promoted_beside_every_type(other: str, made: str) -> None:
    """As by NumPy, and as float32 where NumPy has no rule."""
    found = Tensor([1.5]).astype("bfloat16") + Tensor(np.ones(1, other))
    assert (str(found.dtype), found.tolist()) == (made, [2.5])
