"""A transformer that learns to write like the documentation beside it, character by character.

    python samples/daten/characters.py [STEPS]

400 steps take half a minute, after 15 s for the first.
"""
from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from daten import Tensor, apply, jit, nn, no_grad, optim, random

WIDTH, HEADS, LAYERS, TIME, BATCH = 96, 4, 2, 64, 16


class Block(nn.Module):
    """Attention, then two layers with a GELU between, each on normalised rows and added to what came in."""

    def __init__(self) -> None:
        self.norm_1, self.attention = nn.LayerNorm(WIDTH), nn.MultiHeadAttention(WIDTH, HEADS, causal=True)
        self.norm_2, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, time, width], of the same shape."""
        x = x + self.attention(self.norm_1(x))
        return x + self.down(self.up(self.norm_2(x)).gelu(approximate="tanh"))


class Writer(nn.Module):
    """The next character from those before."""

    def __init__(self, characters: int) -> None:
        self.table, self.places = nn.Embedding(characters, WIDTH), nn.Embedding(TIME, WIDTH)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, characters, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens[batch, time], integers, to logits[batch · time, characters]."""
        x = self.table(tokens) + self.places(Tensor(np.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).reshape(tokens.size, -1)


def main(steps: int = 400) -> list[float]:
    """Train, print the loss now and then and a piece of text at the end; the losses."""
    pages = sorted(Path(__file__).parents[2].joinpath("docs").glob("*.md"))
    text = "".join([page.read_text("utf-8") for page in pages])
    characters = sorted(set(text))
    tokens = np.array([characters.index(c) for c in text[:200_000]])
    random.seed(0)
    draw = np.random.default_rng(0)
    model = Writer(len(characters))
    optimizer, rate = optim.AdamW(model.parameters(), lr=0.0), optim.cosine(2e-3, steps, warmup=steps // 10)
    losses: list[float] = []
    start = time.perf_counter()

    @jit
    def learn(given: Tensor, following: Tensor) -> Tensor:
        loss = apply("cross_entropy", model(given), following)
        loss.backward()
        optimizer.step(loss)
        return loss
    for step in range(steps):
        starts = draw.integers(0, len(tokens) - TIME - 1, BATCH)[:, None] + np.arange(TIME)
        optimizer.lr = rate(step)
        losses.append(learn(tokens[starts], tokens[starts + 1].reshape(-1)).item())
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: loss {losses[-1]:.3f}, {time.perf_counter() - start:.1f} s", flush=True)
    written = list(tokens[:TIME])
    with no_grad():
        for _ in range(200):
            logits = model(Tensor(np.array(written[-TIME:])[None])).numpy()[-1]
            weights = np.exp((logits - logits.max()) / 0.8)
            written.append(int(draw.choice(len(weights), p=weights / weights.sum())))
    print("".join([characters[t] for t in written[TIME:]]))
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
