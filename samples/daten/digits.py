"""Two networks that read digits: 1,797 pictures of 8 × 8 that come with scikit-learn (pip install "caten[samples]").

    python samples/daten/digits.py                          both networks, 15 epochs
    python samples/daten/digits.py --picture curves.svg     their learning curves, too
    python samples/daten/digits.py --data digits.npz        only the file for `daten train samples/daten/mlp.toml`
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_digits

from daten import Tensor, apply, jit, nn, no_grad, optim, random

BATCH = 64


class Layers(nn.Module):
    """64 -> 128 -> 64 -> 10."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(64, 128), nn.Linear(128, 64), nn.Linear(64, 10)]

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, 64] to logits[batch, 10]."""
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class Convolutions(nn.Module):
    """Two convolutions of 3 × 3 with a step of 2 behind each, then one layer."""

    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1, stride=2)
        self.last = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, 64] to logits[batch, 10]."""
        x = self.second(self.first(x.reshape(-1, 1, 8, 8)).relu()).relu()
        return self.last(x.reshape(-1, 32 * 4 * 4))


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pictures and digits to learn from, and to be asked about: X[N, 64] between 0 and 1, Y[N]."""
    pictures, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    X, Y = (pictures[order] / 16).astype(np.float32), digits[order]
    return X[:1500], Y[:1500], X[1500:], Y[1500:]


def learned(network: Callable[[], nn.Module], epochs: int) -> tuple[list[float], float]:
    """Train a network: the loss of each step, and the share of the other pictures that it reads right."""
    random.seed(0)
    model = network()
    X, Y, others, truth = data()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    draw, losses = np.random.default_rng(0), list[float]()

    @jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = apply("cross_entropy", model(x), y)
        loss.backward()
        optimizer.step(loss)
        return loss
    for _ in range(epochs):
        order = draw.permutation(len(Y))
        for rows in np.split(order, range(BATCH, len(Y), BATCH)):
            losses.append(step(X[rows], Y[rows]).item())
    with no_grad():
        right = model(Tensor(others)).numpy().argmax(1) == truth
    return losses, float(right.mean())


def drawn(curves: dict[str, list[float]], file: str) -> None:
    """Learning curves as a picture."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    for name, losses in curves.items():
        pyplot.plot(losses, label=name)
    pyplot.yscale("log")
    pyplot.xlabel("step")
    pyplot.ylabel("cross entropy")
    pyplot.legend()
    pyplot.savefig(file)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--picture", metavar="FILE.svg")
    parser.add_argument("--data", metavar="FILE.npz")
    words = parser.parse_args()
    if words.data:
        X, Y, _, _ = data()
        np.savez(words.data, X=X, Y=Y)
        return
    curves: dict[str, list[float]] = {}
    for name, network in (("layers", Layers), ("convolutions", Convolutions)):
        start = time.perf_counter()
        curves[name], right = learned(network, words.epochs)
        print(f"{name}: loss {np.mean(curves[name][-20:]):.4f}, {right:.1%} of the others right, "
              f"{time.perf_counter() - start:.1f} s", flush=True)
    if words.picture:
        drawn(curves, words.picture)


if __name__ == "__main__":
    main()
