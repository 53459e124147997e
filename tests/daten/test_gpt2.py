"""GPT-2 of a small size against NumPy, with and without the cache of keys and values."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from daten import Tensor, apply, no_grad, random, realization, realize, weights
from daten.models.gpt2 import GPT2, Cache, Size, size_of

SMALL = Size(layers=2, heads=2, width=128, vocabulary=97, context=64)


def norm(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


Weights = dict[str, np.ndarray]


def of(model: GPT2) -> Weights:
    return {name: value.astype(np.float64) for name, value in model.state_dict().items()}


def expected(p: Weights, tokens: list[int]) -> np.ndarray:
    x = p["wte.weight"][tokens] + p["wpe.weight"][:len(tokens)]
    for n in range(SMALL.layers):
        h = norm(x, p[f"h.{n}.ln_1.weight"], p[f"h.{n}.ln_1.bias"]) @ p[f"h.{n}.attn.c_attn.weight"] + p[f"h.{n}.attn.c_attn.bias"]
        q, k, v = [m.reshape(len(tokens), SMALL.heads, -1).transpose(1, 0, 2) for m in np.split(h, 3, axis=-1)]
        s = np.where(np.tri(len(tokens), dtype=bool), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        seen = (e / e.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(tokens), -1)
        x = x + seen @ p[f"h.{n}.attn.c_proj.weight"] + p[f"h.{n}.attn.c_proj.bias"]
        h = norm(x, p[f"h.{n}.ln_2.weight"], p[f"h.{n}.ln_2.bias"]) @ p[f"h.{n}.mlp.c_fc.weight"] + p[f"h.{n}.mlp.c_fc.bias"]
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h ** 3)))
        x = x + h @ p[f"h.{n}.mlp.c_proj.weight"] + p[f"h.{n}.mlp.c_proj.bias"]
    logits: np.ndarray = norm(x, p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T
    return logits


def test_gpt2_is_what_numpy_computes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    random.seed(3)
    model, tokens = GPT2(SMALL), [5, 17, 2, 96, 40]
    with no_grad():
        logits, _ = model(Tensor(np.array(tokens)))
    np.testing.assert_allclose(logits.numpy(), expected(of(model), tokens), rtol=1e-4, atol=1e-5)
    made = list(model.generate(tokens, 6))
    greedy = list(tokens)
    for _ in range(6):
        greedy.append(int(expected(of(model), greedy)[-1].argmax()))
    assert made == greedy[5:]
    weights.save({f"transformer.{n}": v for n, v in model.state_dict().items()}, tmp_path / "model.safetensors")
    values = weights.load(tmp_path / "model.safetensors")
    assert size_of(values) == SMALL
    other = GPT2(size_of(values))
    other.load_published(values | {"h.0.attn.bias": np.ones(1)})
    monkeypatch.setattr(realization, "known_build", None)                  # other lengths compile nothing
    assert list(other.generate(tokens, 6)) == made
    drawn = list(model.generate(tokens[:3], 5, temperature=1.0, top_k=10, seed=1))
    assert drawn == list(model.generate(tokens[:3], 5, temperature=1.0, top_k=10, seed=1))
    assert drawn != list(model.generate(tokens[:3], 5, temperature=1.0, top_k=10, seed=2))


def loss_of(p: Weights, tokens: list[int]) -> float:
    logits = expected(p, tokens[:-1])
    top = logits.max(-1, keepdims=True)
    return float(np.mean(top[:, 0] + np.log(np.exp(logits - top).sum(-1)) - logits[np.arange(len(tokens) - 1), tokens[1:]]))


@pytest.mark.scheduled
def test_its_gradients_are_those_of_numpy_s_loss() -> None:
    """Along drawn directions in all parameters at once, by central differences."""
    random.seed(4)
    model, tokens = GPT2(SMALL), [int(t) for t in np.random.default_rng(0).integers(0, SMALL.vocabulary, 33)]
    logits, _ = model(Tensor(np.array(tokens[:-1])))
    loss = apply("cross_entropy", logits, Tensor(np.array(tokens[1:])))
    loss.backward()
    gradients = [t.grad for t in model.parameters() if t.grad is not None]
    assert len(gradients) == len(model.parameters())
    realize(loss, *gradients)
    p = of(model)
    assert float(loss.numpy()) == pytest.approx(loss_of(p, tokens), rel=1e-5)
    draw = np.random.default_rng(1)
    for _ in range(3):
        along = {name: draw.standard_normal(v.shape) for name, v in p.items()}
        slope = sum([float((g.numpy() * step).sum()) for g, step in zip(gradients, along.values(), strict=True)])
        more, less = [loss_of({name: v + step * along[name] for name, v in p.items()}, tokens) for step in (1e-6, -1e-6)]
        assert slope == pytest.approx((more - less) / 2e-6, rel=1e-3)


def test_a_cache_keeps_the_rows_of_all_tokens_and_no_more_than_fit() -> None:
    draw = np.random.default_rng(0)
    cache, given = Cache(5), [[tuple(Tensor(draw.standard_normal((n, 2, 3))) for _ in range(2)) for _ in range(3)] for n in (2, 1, 2)]
    with pytest.raises(ValueError, match="knows 5 places"):
        cache.append([tuple(Tensor(np.zeros((6, 2, 3))) for _ in range(2))] * 3)
    assert cache.past is None
    for rows in given:
        cache.append(rows)
    assert cache.past is not None
    for layer, kept in enumerate(cache.past):
        for part in range(2):
            np.testing.assert_array_equal(kept[part], np.concatenate([rows[layer][part].numpy() for rows in given]))
    with pytest.raises(ValueError, match="knows 5 places"):
        cache.append([tuple(t[:1] for t in pair) for pair in given[0]])
    assert cache.length == 5
