"""GPT-2 as a program of NumPy, without a word of daten in it; and the same functions, unchanged, as compiled graphs.

    python samples/daten/gpt2_numpy.py                    a small model, from drawn weights
    python samples/daten/gpt2_numpy.py --width 768 --layers 12 --heads 12 --vocabulary 50257
"""
from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, g, b, eps=1e-5):
    return g * (x - np.mean(x, axis=-1, keepdims=True)) / np.sqrt(np.var(x, axis=-1, keepdims=True) + eps) + b


def linear(x, w, b):
    return x @ w + b


def head(q, k, v, mask):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def attention(x, c_attn, c_proj, heads):
    parts = [np.split(part, heads, axis=-1) for part in np.split(linear(x, **c_attn), 3, axis=-1)]
    mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    return linear(np.hstack([head(q, k, v, mask) for q, k, v in zip(*parts, strict=True)]), **c_proj)


def block(x, mlp, attn, ln_1, ln_2, heads):
    x = x + attention(layer_norm(x, **ln_1), **attn, heads=heads)
    return x + linear(gelu(linear(layer_norm(x, **ln_2), **mlp["c_fc"])), **mlp["c_proj"])


def gpt2(tokens, wte, wpe, blocks, ln_f, heads):
    """The logits of the next tokens: tokens[time] -> [time, vocabulary]."""
    x = wte[tokens] + wpe[range(len(tokens))]
    for weights in blocks:
        x = block(x, **weights, heads=heads)
    return layer_norm(x, **ln_f) @ wte.T


def drawn(width: int, layers: int, vocabulary: int, context: int) -> dict[str, Any]:
    """Weights as they are before training."""
    rng = np.random.default_rng(0)

    def dense(rows: int, columns: int) -> dict[str, np.ndarray]:
        drawn = 0.02 * rng.standard_normal((rows, columns))
        return {"w": drawn.astype(np.float32), "b": np.zeros(columns, np.float32)}

    def norm() -> dict[str, np.ndarray]:
        return {"g": np.ones(width, np.float32), "b": np.zeros(width, np.float32)}
    blocks = [{"ln_1": norm(), "attn": {"c_attn": dense(width, 3 * width), "c_proj": dense(width, width)},
               "ln_2": norm(), "mlp": {"c_fc": dense(width, 4 * width), "c_proj": dense(4 * width, width)}}
              for _ in range(layers)]
    return {"wte": dense(vocabulary, width)["w"], "wpe": dense(context, width)["w"], "blocks": blocks, "ln_f": norm()}


def generated(logits_of: Any, tokens: list[int], count: int) -> list[int]:
    """The likeliest tokens behind these, each of all before."""
    tokens = list(tokens)
    for _ in range(count):
        tokens.append(int(np.argmax(np.asarray(logits_of(np.array(tokens)))[-1])))
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description="GPT-2 in NumPy, run by NumPy and compiled")
    for name, value in (("width", 64), ("layers", 4), ("heads", 4), ("vocabulary", 1000), ("context", 256),
                        ("count", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    weights = drawn(given.width, given.layers, given.vocabulary, given.context)

    import daten
    compiled = daten.jit(gpt2)

    for name, function in (("NumPy", gpt2), ("daten", compiled), ("daten again", compiled)):
        start = time.perf_counter()
        tokens = generated(lambda t, f=function: f(t, **weights, heads=given.heads), [1, 2, 3], given.count)
        each = (time.perf_counter() - start) / given.count * 1e3
        print(f"{name:>12}: {each:8.2f} ms a token: {' '.join(map(str, tokens))}")


if __name__ == "__main__":
    main()
