"""Networks of all kinds beside what torch computed: losses, and gradients of all parameters."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from networks import NETWORKS, STORED, drawn

import daten
from daten import Tensor, apply, gradients, realize


class Daten:
    def __getattr__(self, name: str) -> Any:
        return lambda x: apply(name, x)

    softmax = staticmethod(lambda x, axis: x.softmax(axis=axis))
    log_softmax = staticmethod(lambda x, axis: x.log_softmax(axis=axis))
    permute = staticmethod(lambda x, axes: x.transpose(*axes))
    cat = staticmethod(lambda parts, axis: np.concatenate(parts, axis=axis))
    mean = staticmethod(lambda x, axis=None, keep=False: x.mean(axis=axis, keepdims=keep))
    sum = staticmethod(lambda x, axis, keep=False: x.sum(axis=axis, keepdims=keep))
    layer_norm = staticmethod(lambda x, g, h: apply("layer_norm", x, g, h))
    group_norm = staticmethod(lambda x, groups, g, h: apply("group_norm", x, g, h, groups=groups))
    conv2d = staticmethod(lambda x, k, padding, stride: apply("conv2d", x, k, padding=(padding, padding), stride=(stride, stride)))
    conv_transpose = staticmethod(lambda x, k, stride: apply("conv_transpose2d", x, k, stride=(stride, stride)))
    max_pool = staticmethod(lambda x, n: apply("max_pool2d", x, kernel=(n, n), stride=(n, n)))
    avg_pool = staticmethod(lambda x, n: apply("avg_pool2d", x, kernel=(n, n), stride=(1, 1)))
    attention = staticmethod(lambda q, k, v, causal: apply("attention", q, k, v, causal=causal))
    take = staticmethod(lambda t, at: t.take(at, axis=0))
    cross_entropy = staticmethod(lambda x, y: apply("cross_entropy", x, y))


@pytest.fixture(autouse=True)
def numpy_runtime() -> Iterator[None]:
    daten.use("numpy", opt=daten.settings.options().opt)
    yield
    daten.use()


@pytest.mark.slice(12)
@pytest.mark.parametrize("name", NETWORKS)
def test_losses_and_gradients_are_those_of_torch(name: str) -> None:
    stored: Any = np.load(STORED)
    arrays, x = drawn(name)
    p = {n: Tensor(a) for n, a in arrays.items()}
    loss = NETWORKS[name][2](Daten(), p, Tensor(x))
    found = gradients(loss, list(p.values()))
    realize(loss, *found)
    np.testing.assert_allclose(loss.numpy(), stored[name], rtol=1e-9)
    for n, g in zip(p, found, strict=True):
        np.testing.assert_allclose(g.numpy(), stored[f"{name} {n}"], rtol=1e-7, atol=1e-10, err_msg=n)
