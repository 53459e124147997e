"""Graphs that look up rows and classes at indices outside: the failure that is reported, with the checks of several operators in one kernel."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

import daten
from caten.errors import CatenError
from daten import Tensor, apply, realize

WORDS, PLACES, WIDTH = 9, 11, 4
MESSAGES = {"words": rf"take: x: index 1 \(= \(aref index i\)\) is outside \[-{WORDS}, {WORDS}\)",
            "places": rf"take: x: index 1 \(= \(aref index i\)\) is outside \[-{PLACES}, {PLACES}\)",
            "classes": rf"cross_entropy: .*target.* is outside \[0, {WORDS}\)"}
OUTSIDE = {"words": (WORDS, -WORDS - 1, 1 << 40), "places": (PLACES, -PLACES - 1, -(1 << 62)), "classes": (WORDS, 1 << 40, 20)}      # a class below 0 counts as none


@pytest.fixture(params=[(0, None), (0, {"OMP": 1}), (2, None), (2, {"OMP": 1})], ids=["O0", "O0 on threads", "O2", "O2 on threads"])
def settings(request: pytest.FixtureRequest) -> Iterator[None]:
    opt, config = request.param
    before = daten.settings.options()
    daten.use("gcc", opt=opt, config=config)
    yield
    daten.use(before.runtime, opt=before.opt)


def loss_of(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> list[Tensor]:
    """A small language model: its loss, and the gradients of its tables."""
    words, places = (Tensor(rng.standard_normal((n, WIDTH)).astype(np.float32), requires_grad=True) for n in (WORDS, PLACES))
    x = apply("take", words, Tensor(arrays["words"]), axis=0) + apply("take", places, Tensor(arrays["places"]), axis=0)
    loss = apply("cross_entropy", x @ words.T, Tensor(arrays["classes"]))
    loss.backward()
    return [loss, *[t.grad for t in (words, places) if t.grad is not None]]


@pytest.mark.slice(3)
@pytest.mark.usefixtures("settings")
def test_the_first_operator_with_an_index_outside_is_reported() -> None:
    rng = np.random.default_rng(0)
    for bad in [each for n in range(4) for each in combinations(MESSAGES, n)]:
        for size in (1, int(rng.integers(2, 50)), 70_000):
            arrays = {"words": rng.integers(-WORDS, WORDS, size), "places": rng.integers(-PLACES, PLACES, size), "classes": rng.integers(0, WORDS, size)}
            for name in bad:
                arrays[name][rng.integers(size)] = rng.choice(OUTSIDE[name])
            results = loss_of(arrays, rng)
            if bad:
                with pytest.raises(CatenError, match=MESSAGES[bad[0]]):
                    realize(*results)
            else:
                realize(*results)
                assert np.isfinite(results[0].numpy())
