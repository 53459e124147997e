"""Weights lie in huge pages where the system has them."""
from __future__ import annotations

import mmap

import numpy as np
import pytest

from daten import Tensor, nn
from daten.huge_pages import PAGE, copied


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex128, np.int16])
@pytest.mark.parametrize("shape", [(), (0, 7), (3, 5), (700, 1000), (3, 1000, 1000)])
def test_copies_have_the_same_elements_row_by_row(shape: tuple[int, ...], dtype: type) -> None:
    values = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    for given in (values, values.T, values[..., ::2] if shape else values):
        own = copied(given)
        assert own.dtype == given.dtype
        assert own.flags.c_contiguous
        assert own.flags.writeable
        assert not np.shares_memory(own, given)
        assert np.array_equal(own, given)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="needs a system with huge pages")
def test_weights_begin_a_huge_page() -> None:
    weights = np.zeros((1024, 1024), np.float32)
    layer = nn.Linear(1024, 1024)
    layer.load_state_dict(layer.state_dict() | {"weight": weights})
    for tensor in (Tensor(weights, requires_grad=True), layer.weight):
        assert tensor.numpy().ctypes.data % PAGE == 0
    assert not layer.weight.numpy().flags.writeable


def test_a_system_without_huge_pages_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert np.array_equal(copied(np.ones((1024, 1024), np.float32)), np.ones((1024, 1024)))
