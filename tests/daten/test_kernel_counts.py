"""How many kernels operators have with their gradients, in one graph, and that attention has the gradients of its formula."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from caten.tensor.fused_text import fused
from caten.tensor.values import FusedKernel
from daten import Tensor, realization
from daten.tensor import apply, realize

Arrays = tuple[tuple[int, ...], ...]


def kernels(monkeypatch: pytest.MonkeyPatch, wanted: list[Tensor]) -> int:
    """The kernels of the graph that computes some tensors."""
    made: list[Any] = []
    usual = realization.program_of

    def noted(*given: Any) -> Any:
        made.append(usual(*given))
        return made[-1]
    monkeypatch.setattr(realization, "program_of", noted)
    realize(*wanted)
    ((program, _),) = made
    return len(fused(program).all(FusedKernel))


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
