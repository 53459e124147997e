"""GPT-2 (Radford et al., Language models are unsupervised multitask learners, 2019), with the names and shapes of its
published weights."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import random
from ..array_api.creation_functions import arange
from ..huge_pages import zeros
from ..jitted import jit
from ..nn import Embedding, LayerNorm, Module, parameter
from ..symbolic_sizes import Var
from ..tensor import Tensor, apply, no_grad

Rows = Sequence[tuple[Any, Any]]                # keys and values of the layers, [time, heads, width / heads]


@dataclass(frozen=True)
class Size:
    """The size of a model."""

    layers: int = 12
    heads: int = 12
    width: int = 768
    vocabulary: int = 50257
    context: int = 1024


SIZES = {"124M": Size(), "355M": Size(24, 16, 1024), "774M": Size(36, 20, 1280), "1558M": Size(48, 25, 1600)}


def size_of(weights: Mapping[str, np.ndarray]) -> Size:
    """The size of the model with these published weights; every head has a width of 64. ValueError where they are those
    of another model."""
    found = {name.removeprefix("transformer."): value.shape for name, value in weights.items()}
    layers = 1 + max([int(m[1]) for name in found if (m := re.match(r"h\.(\d+)\.", name))], default=-1)
    for name in ("wte.weight", "wpe.weight"):
        if len(found.get(name, ())) != 2:
            raise ValueError(f"it has no matrix {name}")
    if not layers:
        raise ValueError("it has no layers, whose names begin with 'h.0.'")
    (vocabulary, width), (context, _) = found["wte.weight"], found["wpe.weight"]
    if width > 64 and width % 64:
        raise ValueError(f"its width of {width} is no multiple of 64, the width of a head")
    return Size(layers, max(1, width // 64), width, vocabulary, context)


class Conv1D(Module):
    """The linear layer x W + b with weight[inputs, outputs]; it has the name that the published code gives it."""

    def __init__(self, inputs: int, outputs: int, deviation: float = 0.02) -> None:
        self.weight = parameter(random.current().normal((inputs, outputs), deviation))
        self.bias = parameter(np.zeros(outputs, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """x[..., inputs] to [..., outputs]."""
        return x @ self.weight + self.bias


class Attention(Module):
    """Causal multi-head self-attention."""

    def __init__(self, size: Size) -> None:
        self._heads = size.heads
        self.c_attn = Conv1D(size.width, 3 * size.width)
        self.c_proj = Conv1D(size.width, size.width, 0.02 / (2 * size.layers) ** 0.5)

    def forward(self, x: Tensor, past: tuple[Any, Any] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x[time, width] to the same shape, and the keys and values. `past`: those of the tokens before."""
        time, width = x.shape
        made = self.c_attn(x).reshape(time, 3, self._heads, width // self._heads)
        q, k, v = [made[:, n] for n in range(3)]
        if past is None:
            by_head = [rows.transpose(1, 0, 2) for rows in (q, k, v)]
            seen = apply("attention", *by_head, causal=True).transpose(1, 0, 2)
        else:
            seen = apply("attention_with_past", q, k, v, *past)
        return self.c_proj(seen.reshape(time, width)), (k, v)


class MLP(Module):
    """Two layers with a GELU between."""

    def __init__(self, size: Size) -> None:
        self.c_fc = Conv1D(size.width, 4 * size.width)
        self.c_proj = Conv1D(4 * size.width, size.width, 0.02 / (2 * size.layers) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, [time, width]."""
        made = self.c_proj(apply("gelu", self.c_fc(x), approximate="tanh"))
        assert isinstance(made, Tensor)
        return made


class Block(Module):
    """A layer of the transformer."""

    def __init__(self, size: Size) -> None:
        self.ln_1, self.attn = LayerNorm(size.width), Attention(size)
        self.ln_2, self.mlp = LayerNorm(size.width), MLP(size)

    def forward(self, x: Tensor, past: tuple[Any, Any] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As `Attention`."""
        seen, rows = self.attn(self.ln_1(x), past)
        x = x + seen
        return x + self.mlp(self.ln_2(x)), rows


class Cache:
    """The keys and values of the tokens so far (KV cache), with room for `context` tokens. Adding a token copies only
    its own keys and values."""

    def __init__(self, context: int) -> None:
        self.context, self.length = context, 0
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []

    def append(self, rows: Rows) -> Cache:
        """Append the keys and values that `GPT2.forward` returned for the next tokens. ValueError if they do not
        fit."""
        new = [(keys.numpy(), values.numpy()) for keys, values in rows]
        start, count = self.length, len(new[0][0])
        self.fit(count)
        self._rows = self._rows or [(self._room(keys), self._room(values)) for keys, values in new]
        self.length += count
        for own, pair in zip(self._rows, new, strict=True):
            for array, added in zip(own, pair, strict=True):
                array[start:self.length] = added
        return self

    def fit(self, count: int) -> None:
        """Check that there is room for `count` more tokens; else ValueError."""
        if self.length + count > self.context:
            raise ValueError(f"the model knows {self.context} places")

    @property
    def past(self) -> Rows | None:
        """The keys and values of each layer, as `GPT2.forward` takes them; None if there are no tokens."""
        return [(k[:self.length], v[:self.length]) for k, v in self._rows] if self._rows else None

    def _room(self, like: np.ndarray) -> np.ndarray:
        return zeros((self.context, *like.shape[1:]), like.dtype)


class GPT2(Module):
    """The GPT-2 model. Its weights start with random values; `load_published` sets them."""

    def __init__(self, size: Size | str = "124M") -> None:
        self._size = size = SIZES[size] if isinstance(size, str) else size
        self.wte, self.wpe = Embedding(size.vocabulary, size.width), Embedding(size.context, size.width)
        for table, deviation in ((self.wte, 0.02), (self.wpe, 0.01)):
            table.weight = parameter(random.current().normal(table.weight.shape, deviation))
        self.h = [Block(size) for _ in range(size.layers)]
        self.ln_f = LayerNorm(size.width)

    @property
    def size(self) -> Size:
        """The numbers of layers, heads and so on."""
        return self._size

    def forward(self, tokens: Tensor, past: Rows | None = None, last: bool = False) -> tuple[Tensor, Rows]:
        """tokens[time], integers, to the pair of logits[time, vocabulary] and the keys and values of these tokens.
        `past`: the keys and values of the tokens before. `last`: only the logits of the last token, [1, vocabulary]."""
        start = past[0][0].shape[0] if past else 0
        x = self.wte(tokens) + self.wpe(arange(start, start + tokens.shape[0]))
        rows = []
        for n, block in enumerate(self.h):
            x, each = block(x, past[n] if past else None)
            rows.append(each)
        if last:
            x = x[-1:]
        return self.ln_f(x) @ self.wte.weight.T, rows

    def load_published(self, weights: Mapping[str, np.ndarray]) -> None:
        """Set the weights to those of a published file. The prefix "transformer." of names, causal masks and `lm_head`
        are ignored. ValueError as from `load_state_dict`."""
        found = {name.removeprefix("transformer."): value for name, value in weights.items()}
        self.load_state_dict({n: v for n, v in found.items()
                              if not n.endswith((".attn.bias", ".attn.masked_bias")) and n != "lm_head.weight"})

    def generate(self, tokens: Sequence[int], count: int, temperature: float = 0.0, top_k: int = 0,
                 seed: int = 0) -> Iterator[int]:
        """Yield `count` new token ids, one at a time. `temperature` 0: always the most likely token; else a sample from
        the softmax of logits / temperature, restricted to the `top_k` most likely tokens if it is not 0. `seed`: the
        seed of the sampling. ValueError for an empty prompt, for a negative number, and if the context of the model is
        full."""
        if not temperature >= 0 or top_k < 0 or count < 0:
            raise ValueError(f"temperature, top_k and count are 0 or more, not {temperature}, {top_k} and {count}")
        draw = np.random.default_rng(seed)
        step = jit(self.forward, dynamic_shapes={"past": {0: Var("before", 1, self.size.context)}})
        next_ones, cache = list(tokens), Cache(self.size.context)
        if not next_ones:
            raise ValueError("there has to be a first token")
        for _ in range(count):
            cache.fit(len(next_ones))
            with no_grad():
                logits, rows = step(np.asarray(next_ones), cache.past, last=True)
            next_ones = [chosen(logits.numpy()[0], temperature, top_k, draw)]
            yield next_ones[0]
            cache.append(rows)


def chosen(logits: np.ndarray, temperature: float, top_k: int, draw: Any) -> int:
    """A token id, chosen by the logits as in `GPT2.generate`."""
    if not temperature:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    if 0 < top_k < len(scaled):
        scaled[scaled < np.partition(scaled, -top_k)[-top_k]] = -np.inf
    weights = np.exp(scaled - scaled.max())
    return int(draw.choice(len(weights), p=weights / weights.sum()))
