"""The layers of GPT-2 as composites that call composites: few kernels however many layers, and what NumPy gives."""
from __future__ import annotations

import time

import numpy as np
import pytest
from benchmarks.gpt2 import shapes, spec
from test_repeated_kernels import lowered

import caten
from caten.loop.statements import LoopProgram, Repeat
from caten.render.scratch_memory import layout

HEADS, WIDTH = 2, 8
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def layers_of(count: int) -> LoopProgram:
    return lowered(spec(count, HEADS, WIDTH), name="Layers")


@pytest.mark.slow
def test_any_number_of_layers_has_the_same_kernels_and_the_same_memory() -> None:
    few, many = layers_of(3), layers_of(12)
    assert len(few.kernels) == len(many.kernels) <= 12
    assert len(many.kernels) + len(many.all(Repeat)) == 12 / 3 * (len(few.kernels) + len(few.all(Repeat)))
    assert layout(few).shared is layout(many).shared


@pytest.mark.nightly
def test_the_time_of_all_passes_grows_less_than_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """48 layers take at most 4.6 times as long as 12, on one core."""
    monkeypatch.setattr("caten.cores.available", lambda: 1)

    def seconds(layers: int) -> float:
        start = time.process_time()
        planned = lowered(spec(layers), opt=2, name="Layers")
        assert len(planned.kernels) <= 12
        return time.process_time() - start
    seconds(2)
    few = min(seconds(12), seconds(12))
    assert seconds(48) <= 4.6 * few


def normalised(x: Array, g: Array, b: Array) -> Array:
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + b


def layer(x: Array, p: dict[str, Array]) -> Array:
    n = normalised(x, p["g1"], p["b1"])
    q, k, v = [(n @ p[f"W{name}"] + p[f"b{name}"]).reshape(-1, HEADS, WIDTH).transpose(1, 0, 2) for name in "qkv"]
    scores = np.where(np.tri(len(x), dtype=bool), q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    a = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
    r = x + a @ p["Wo"] + p["bo"]
    z = normalised(r, p["g2"], p["b2"]) @ p["W1"] + p["c1"]
    return r + 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z ** 3))) @ p["W2"] + p["c2"]


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("config", [{}, {"OMP": 1}])
def test_layers_give_what_numpy_gives(config: dict[str, int]) -> None:
    rng, count = np.random.default_rng(3), 3
    run = caten.compile(spec(count, HEADS, WIDTH), runtime="clang", config=config, only=["Layers"])
    drawn = [{name: rng.standard_normal(shape) * 0.2 + (name[0] == "g") for name, shape in shapes(HEADS, WIDTH).items()} for _ in range(count)]
    for tokens in (1, 5, 33):
        x = expected = rng.standard_normal((tokens, HEADS * WIDTH))
        for p in drawn:
            expected = layer(expected, p)
        found = run(x.astype(np.float32), *[a.astype(np.float32) for p in drawn for a in p.values()])
        assert np.allclose(found, expected, rtol=2e-4, atol=2e-5)
