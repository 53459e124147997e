"""How many kernels operators have with their gradients, in one graph, and that attention has the gradients of its formula."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from caten.loop.statements import Kernel
from caten.loop.verifier import verify
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.fused_text import fused
from caten.tensor.lower import lower
from caten.tensor.values import FusedKernel, reads_of
from daten import Tensor, nn, random, realization
from daten.models.gpt2 import GPT2, Size
from daten.tensor import apply, realize

Arrays = tuple[tuple[int, ...], ...]


class Noted(Exception):
    """The program is known, and need not be compiled."""


def program_of(monkeypatch: pytest.MonkeyPatch, wanted: list[Tensor], compiled: bool = True) -> Any:
    """The program of the graph that computes some tensors."""
    made: list[Any] = []
    usual = realization.program_of

    def noted(*given: Any, **options: Any) -> Any:
        made.append(usual(*given, **options))
        if not compiled:
            raise Noted
        return made[-1]
    monkeypatch.setattr(realization, "program_of", noted)
    with nullcontext() if compiled else pytest.raises(Noted):
        realize(*wanted)
    ((program, _),) = made
    return program


def kernels(monkeypatch: pytest.MonkeyPatch, wanted: list[Tensor]) -> int:
    """The kernels of the graph that computes some tensors."""
    return len(fused(program_of(monkeypatch, wanted)).all(FusedKernel))


def tensors(shapes: Arrays) -> list[Tensor]:
    draw = np.random.default_rng(0)
    return [Tensor(draw.standard_normal(shape).astype(np.float32), requires_grad=True) for shape in shapes]


@pytest.mark.slice(2)
@pytest.mark.parametrize(("shapes", "forward", "most"), [
    (((2, 3, 40, 16),) * 3, lambda q, k, v: apply("attention", q, k, v), 4),
    (((2, 3, 40, 16),) * 3, lambda q, k, v: apply("attention", q, k, v, causal=True), 4),
    (((5, 1, 8), (5, 70, 8), (5, 70, 8)), lambda q, k, v: apply("attention", q, k, v), 4),
    (((30, 50), (50,), (50,)), lambda x, g, b: apply("layer_norm", x, g, b), 3),
    (((30, 50), (50, 20)), lambda x, w: x @ w, 3),
    (((30, 50), (50, 20), (20,)), lambda x, w, b: x @ w + b, 4),            # the gradient of the bias is a sum over rows
], ids=["attention", "causal attention", "attention of one query", "layer norm", "product", "linear"])
def test_an_operator_and_its_gradients(shapes: Arrays, forward: Callable[..., Tensor], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of the result is given."""
    inputs = tensors(shapes)
    y = forward(*inputs)
    (given,) = tensors((y.shape,))
    (y * given).sum().backward()
    gradients = [x.grad for x in inputs]
    assert kernels(monkeypatch, [y, *[g for g in gradients if g is not None]]) <= most


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention(causal: bool) -> None:
    """More rows than a block has."""
    q, k, v = tensors(((2, 150, 8),) * 3)
    y = apply("attention", q, k, v, causal=causal)
    (given,) = tensors(((2, 150, 8),))
    (y * given).sum().backward()
    Q, K, V, D = (x.numpy().astype(np.float64) for x in (q, k, v, given))
    S = Q @ K.transpose(0, 2, 1) / np.sqrt(8)
    S = np.where(np.tri(150, dtype=bool), S, -np.inf) if causal else S
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    dP = D @ V.transpose(0, 2, 1)
    dS = P * (dP - (dP * P).sum(axis=-1, keepdims=True)) / np.sqrt(8)
    wanted = (P @ V, dS @ K, dS.transpose(0, 2, 1) @ Q, P.transpose(0, 2, 1) @ D)
    realize(y, *[x.grad for x in (q, k, v) if x.grad is not None])
    for found, value in zip((y, q.grad, k.grad, v.grad), wanted, strict=True):
        assert found is not None
        np.testing.assert_allclose(found.numpy(), value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("most", "target"), [(4, "classes"), (3, "probabilities")])
def test_softmax_and_cross_entropy_with_its_gradient(most: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of the operator, for the numbers of the classes; and by its formula."""
    (logits,) = tensors(((30, 10),))
    classes = np.random.default_rng(0).integers(0, 10, 30)
    if target == "classes":
        loss = apply("cross_entropy", logits, Tensor(classes))
    else:
        loss = -(logits.softmax(axis=1).log() * Tensor(np.eye(10, dtype=np.float32)[classes])).sum(axis=1).mean()
    loss.backward()
    assert logits.grad is not None
    assert kernels(monkeypatch, [loss, logits.grad]) <= most


def test_dropout_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thirty values in registers are no arrays of the kernel. The key has another kernel, of one number."""
    (x,) = tensors(((20, 30),))
    key = Tensor(np.array([1, 2], np.uint32))
    assert kernels(monkeypatch, [apply("dropout", key, x)]) == 2


@pytest.mark.parametrize(("layers", "tokens"), [pytest.param(12, 32, marks=pytest.mark.nightly), (5, 7)])
def test_the_layers_of_gpt2_share_their_kernels_and_its_indices_one_check(layers: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the gradients of a loss. Words, places and classes are looked at by one kernel."""
    random.seed(3)
    model = GPT2(Size(layers=layers, heads=2, width=128, vocabulary=97, context=64))
    text = np.random.default_rng(0).integers(0, 97, tokens + 1)
    logits, _ = model(Tensor(text[:-1]))
    loss = apply("cross_entropy", logits, Tensor(text[1:]))
    loss.backward()
    program = program_of(monkeypatch, [loss, *[t.grad for t in model.parameters() if t.grad is not None]], compiled=False)
    assert len(lower(program, blocks=BLOCKS).all(Kernel)) <= 40
    whole = fused(program)
    checked = {r.buffer for c in whole.checks for r in reads_of(c.cond)}
    assert sum([any(d.name in checked for d in k.definitions) for k in whole.all(FusedKernel)]) == 1


@pytest.mark.slice(2)
@pytest.mark.parametrize(("cell", "most"), [(nn.LSTM, 12), (nn.GRU, 15)])
def test_the_steps_of_a_recurrent_network_share_their_kernels(cell: Any, most: int, nightly: bool) -> None:
    """However many there are: each reads x[:, t], which is x from another element on. Without biases, the gradients of
    which are one kernel for few steps."""
    counts = set()
    for steps in (8, 32 if nightly else 16):
        model = cell(32, 64, unrolled=steps)
        (x,) = tensors(((5, steps, 32),))
        y = model(x)[0][:, -1]
        (y * y).mean().backward()
        with pytest.MonkeyPatch.context() as patch:
            program = program_of(patch, [model.cell.weight_ih.grad, model.cell.weight_hh.grad], compiled=False)
        made = lower(program, blocks=BLOCKS)
        verify(made)
        assert len(made.runs) >= 6 * steps
        counts.add(len(made.all(Kernel)))
    assert len(counts) == 1
    assert counts.pop() <= most
