"""Networks of all kinds beside what torch computed: losses, and gradients of all parameters."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from benchmarks.networks import NETWORKS, STORED, of_daten

import daten


@pytest.fixture(autouse=True)
def numpy_runtime() -> Iterator[None]:
    daten.use("numpy", opt=daten.settings.options().opt)
    yield
    daten.use()


@pytest.mark.slice(12)
@pytest.mark.parametrize("name", NETWORKS)
def test_losses_and_gradients_are_those_of_torch(name: str) -> None:
    stored: Any = np.load(STORED)
    for n, value in of_daten(name).items():
        np.testing.assert_allclose(value, stored[n], **({"rtol": 1e-9} if n == name else {"rtol": 1e-7, "atol": 1e-10}), err_msg=n)
