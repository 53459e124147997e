"""Thirty networks, each written once over the functions that daten and torch have in common: are the losses, and the
gradients with respect to all parameters, those of torch?

    python -m benchmarks.networks            daten beside torch, now
    python -m benchmarks.networks --store    what torch computes, for the tests

Each has drawn parameters and inputs in float64."""
from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).resolve().parent.parent / "tests" / "daten" / "networks.npz"
Shapes = dict[str, tuple[int, ...]]
# The parameters, the shape of the input, and the loss.
Network = tuple[Shapes, tuple[int, ...], Callable[[Any, Any, Any], Any]]


def attention(L: Any, p: Any, x: Any, heads: int, causal: bool) -> Any:
    batch, time, width = x.shape
    q, k, v = [L.permute((x @ p[n]).reshape(batch, time, heads, width // heads), (0, 2, 1, 3))
               for n in ("wq", "wk", "wv")]
    return L.permute(L.attention(q, k, v, causal), (0, 2, 1, 3)).reshape(batch, time, width) @ p["wo"]


def encoder(L: Any, p: Any, x: Any) -> Any:
    x = x + attention(L, p, L.layer_norm(x, p["g"], p["h"]), 2, False)
    return L.mean((x + L.gelu(L.layer_norm(x, p["g2"], p["h2"]) @ p["u"]) @ p["d"]) ** 2)


def lstm(L: Any, p: Any, x: Any) -> Any:
    h = c = x[:, 0, :4] * 0.0
    for t in range(3):
        gates = x[:, t] @ p["wi"] + h @ p["wh"] + p["b"]
        i, f, g, o = [gates[:, 4 * n:4 * n + 4] for n in range(4)]
        c = L.sigmoid(f) * c + L.sigmoid(i) * L.tanh(g)
        h = L.sigmoid(o) * L.tanh(c)
    return L.mean(h * c)


def gru(L: Any, p: Any, x: Any) -> Any:
    h = x[:, 0, :4] * 0.0
    for t in range(3):
        a, b = x[:, t] @ p["wi"], h @ p["wh"]
        r, z = L.sigmoid(a[:, :4] + b[:, :4]), L.sigmoid(a[:, 4:8] + b[:, 4:8])
        h = (1 - z) * L.tanh(a[:, 8:] + r * b[:, 8:]) + z * h
    return L.mean(h ** 2)


def inception(L: Any, p: Any, x: Any) -> Any:
    parts = [L.relu(L.conv2d(x, p["a"], 0, 1)), L.relu(L.conv2d(x, p["b"], 1, 1)),
             L.avg_pool(L.conv2d(x, p["c"], 1, 1), 1)]
    return L.mean(L.cat(parts, 1) ** 2)


def squeeze(L: Any, p: Any, x: Any) -> Any:
    y = L.conv2d(x, p["k"], 1, 1)
    gate = L.sigmoid(L.relu(L.mean(y, (2, 3)) @ p["a"]) @ p["b"])
    return L.mean((y * gate.reshape(*gate.shape, 1, 1)) ** 2)


def experts(L: Any, p: Any, x: Any) -> Any:
    shares = L.softmax(x @ p["gate"], -1)
    return L.mean(sum(shares[:, n:n + 1] * L.silu(x @ p[f"e{n}"]) for n in range(3)) ** 2)


def variational(L: Any, p: Any, x: Any) -> Any:
    mean, log = x @ p["m"], x @ p["s"]
    again = L.tanh((mean + L.exp(0.5 * log) * 0.3) @ p["d"])
    return L.mean((again - x) ** 2) - 0.5 * L.mean(1 + log - mean ** 2 - L.exp(log))


def unet(L: Any, p: Any, x: Any) -> Any:
    down = L.relu(L.conv2d(x, p["a"], 1, 1))
    deep = L.relu(L.conv2d(L.max_pool(down, 2), p["b"], 1, 1))
    up = L.conv_transpose(deep, p["u"], 2)
    return L.mean(L.conv2d(L.cat([down, up], 1), p["c"], 1, 1) ** 2)


def contrastive(L: Any, p: Any, x: Any) -> Any:
    a, b = [e / L.sqrt(L.sum(e ** 2, -1, True)) for e in (x @ p["a"], L.tanh(x) @ p["b"])]
    return L.cross_entropy(a @ L.permute(b, (1, 0)) * 5.0, np.arange(6))


MATRICES = {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, 8)}
CLASSES = np.array([0, 2, 1, 2, 0, 1])
NETWORKS: dict[str, Network] = {
    "linear": ({"w": (5, 3), "b": (3,)}, (6, 5), lambda L, p, x: L.mean((x @ p["w"] + p["b"]) ** 2)),
    "classes": ({"w": (5, 3), "b": (3,)}, (6, 5), lambda L, p, x: L.cross_entropy(x @ p["w"] + p["b"], CLASSES)),
    "layers": ({"w": (5, 7), "b": (7,), "v": (7, 3)}, (6, 5),
        lambda L, p, x: L.cross_entropy(L.relu(x @ p["w"] + p["b"]) @ p["v"], CLASSES)),
    "deep tanh": ({f"w{n}": (5, 5) for n in range(5)}, (6, 5),
        lambda L, p, x: L.mean(_chain(x, [lambda h, n=n: L.tanh(h @ p[f"w{n}"]) for n in range(5)]))),
    "residual layers": ({f"w{n}": (5, 5) for n in range(4)}, (6, 5),
        lambda L, p, x: L.mean(_chain(x, [lambda h, n=n: h + L.gelu(h @ p[f"w{n}"]) for n in range(4)]) ** 2)),
    "highway": ({"w": (5, 5), "t": (5, 5)}, (6, 5),
        lambda L, p, x: L.mean((L.sigmoid(x @ p["t"]) * L.relu(x @ p["w"]) + (1 - L.sigmoid(x @ p["t"])) * x) ** 2)),
    "gated": ({"a": (5, 8), "b": (5, 8), "d": (8, 5)}, (6, 5),
        lambda L, p, x: L.mean(((L.silu(x @ p["a"]) * (x @ p["b"])) @ p["d"]) ** 2)),
    "bilinear": ({"w": (5, 4), "v": (5, 4)}, (6, 5),
        lambda L, p, x: L.mean(L.sum((x @ p["w"]) * (L.tanh(x) @ p["v"]), -1) ** 2)),
    "softmax": ({"w": (5, 4)}, (6, 5), lambda L, p, x: L.mean(L.softmax(x @ p["w"], -1) ** 3)),
    "entropy": ({"w": (5, 4)}, (6, 5),
        lambda L, p, x: -L.mean(L.softmax(x @ p["w"], -1) * L.log_softmax(x @ p["w"], -1))),
    "layer norm": ({"w": (5, 4), "g": (4,), "h": (4,)}, (6, 5),
        lambda L, p, x: L.mean(L.layer_norm(x @ p["w"], p["g"], p["h"]) ** 3)),
    "rms norm": ({"w": (5, 4), "g": (4,)}, (6, 5),
        lambda L, p, x: L.mean((x @ p["w"] / L.sqrt(L.mean((x @ p["w"]) ** 2, -1, True) + 1e-5) * p["g"]) ** 3)),
    "batch statistics": ({"w": (5, 4)}, (6, 5),
        lambda L, p, x: L.mean(L.tanh((x @ p["w"] - L.mean(x @ p["w"], 0, True)) / L.sqrt(
            L.mean((x @ p["w"] - L.mean(x @ p["w"], 0, True)) ** 2, 0, True) + 1e-5)) ** 3)),
    "embedding": ({"t": (5, 4), "w": (4, 3)}, (6, 5),
        lambda L, p, x: L.cross_entropy(L.take(p["t"], np.array([1, 4, 1, 0, 2, 1])) @ p["w"], CLASSES)),
    "tied": ({"t": (3, 4), "w": (4, 4)}, (6, 5),
        lambda L, p, x: L.cross_entropy(L.tanh(L.take(p["t"], CLASSES) @ p["w"]) @ L.permute(p["t"], (1, 0)),
                                        CLASSES[::-1].copy())),
    "convolution": ({"k": (4, 2, 3, 3)}, (2, 2, 6, 6), lambda L, p, x: L.mean(L.relu(L.conv2d(x, p["k"], 1, 1)) ** 2)),
    "strided": ({"k": (4, 2, 3, 3), "l": (3, 4, 3, 3)}, (2, 2, 7, 7),
        lambda L, p, x: L.mean(L.conv2d(L.relu(L.conv2d(x, p["k"], 1, 2)), p["l"], 1, 2) ** 2)),
    "pooled": ({"k": (4, 2, 3, 3), "w": (36, 3)}, (6, 2, 6, 6),
        lambda L, p, x: L.cross_entropy(L.max_pool(L.relu(L.conv2d(x, p["k"], 1, 1)), 2).reshape(6, 36) @ p["w"],
                                        CLASSES)),
    "residual block": ({"k": (2, 2, 3, 3), "l": (2, 2, 3, 3)}, (2, 2, 5, 5),
        lambda L, p, x: L.mean(L.relu(x + L.conv2d(L.relu(L.conv2d(x, p["k"], 1, 1)), p["l"], 1, 1)) ** 2)),
    "group norm": ({"k": (4, 2, 3, 3), "g": (4,), "h": (4,)}, (2, 2, 5, 5),
        lambda L, p, x: L.mean(L.group_norm(L.conv2d(x, p["k"], 1, 1), 2, p["g"], p["h"]) ** 3)),
    "inception": ({"a": (2, 2, 1, 1), "b": (2, 2, 3, 3), "c": (3, 2, 3, 3)}, (2, 2, 6, 6), inception),
    "squeeze and excite": ({"k": (4, 2, 3, 3), "a": (4, 2), "b": (2, 4)}, (2, 2, 5, 5), squeeze),
    "unet": ({"a": (2, 1, 3, 3), "b": (3, 2, 3, 3), "u": (3, 2, 2, 2), "c": (1, 4, 3, 3)}, (2, 1, 4, 4), unet),
    "attention": (MATRICES, (2, 5, 8), lambda L, p, x: L.mean(attention(L, p, x, 2, False) ** 2)),
    "causal attention": (MATRICES, (2, 5, 8), lambda L, p, x: L.mean(attention(L, p, x, 4, True) ** 2)),
    "encoder": ({**MATRICES, "g": (8,), "h": (8,), "g2": (8,), "h2": (8,), "u": (8, 16), "d": (16, 8)}, (2, 5, 8),
                encoder),
    "lstm": ({"wi": (5, 16), "wh": (4, 16), "b": (16,)}, (6, 3, 5), lstm),
    "gru": ({"wi": (5, 12), "wh": (4, 12)}, (6, 3, 5), gru),
    "experts": ({"gate": (5, 3), "e0": (5, 4), "e1": (5, 4), "e2": (5, 4)}, (6, 5), experts),
    "variational": ({"m": (5, 2), "s": (5, 2), "d": (2, 5)}, (6, 5), variational),
    "contrastive": ({"a": (5, 4), "b": (5, 4)}, (6, 5), contrastive)}


def _chain(x: Any, steps: list[Callable[[Any], Any]]) -> Any:
    for step in steps:
        x = step(x)
    return x


def drawn(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The parameters and the input of a network."""
    shapes, shape, _ = NETWORKS[name]
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    return {n: draw.standard_normal(s) * 0.5 for n, s in shapes.items()}, draw.standard_normal(shape)


class Torch:
    """The functions, of torch."""

    def __init__(self) -> None:
        import torch
        from torch.nn import functional as F
        self.torch, self.F = torch, F
        self.relu, self.silu, self.tanh, self.sigmoid = F.relu, F.silu, torch.tanh, torch.sigmoid
        self.exp, self.sqrt, self.gelu = torch.exp, torch.sqrt, F.gelu
        self.softmax, self.log_softmax, self.permute, self.cat = F.softmax, F.log_softmax, torch.permute, torch.cat

    def mean(self, x: Any, axis: Any = None, keep: bool = False) -> Any:
        return x.mean() if axis is None else x.mean(axis, keepdim=keep)

    def sum(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return x.sum(axis, keepdim=keep)

    def layer_norm(self, x: Any, g: Any, h: Any) -> Any:
        return self.F.layer_norm(x, g.shape, g, h)

    def group_norm(self, x: Any, groups: int, g: Any, h: Any) -> Any:
        return self.F.group_norm(x, groups, g, h)

    def conv2d(self, x: Any, k: Any, padding: int, stride: int) -> Any:
        return self.F.conv2d(x, k, padding=padding, stride=stride)

    def conv_transpose(self, x: Any, k: Any, stride: int) -> Any:
        return self.F.conv_transpose2d(x, k, stride=stride)

    def max_pool(self, x: Any, n: int) -> Any:
        return self.F.max_pool2d(x, n)

    def avg_pool(self, x: Any, n: int) -> Any:
        return self.F.avg_pool2d(x, n, stride=1)

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        return self.F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def take(self, t: Any, at: Any) -> Any:
        return t[self.torch.tensor(at)]

    def cross_entropy(self, x: Any, y: Any) -> Any:
        return self.F.cross_entropy(x, self.torch.tensor(y))


class Daten:
    """The functions, of daten; those that are not here are operators of the library."""

    def __getattr__(self, name: str) -> Any:
        from daten import apply
        return lambda x: apply(name, x)

    def __init__(self) -> None:
        from daten import apply
        self.apply = apply

    def softmax(self, x: Any, axis: int) -> Any:
        return x.softmax(axis=axis)

    def log_softmax(self, x: Any, axis: int) -> Any:
        return x.log_softmax(axis=axis)

    def permute(self, x: Any, axes: Any) -> Any:
        return x.transpose(*axes)

    def cat(self, parts: Any, axis: int) -> Any:
        return np.concatenate(parts, axis=axis)

    def mean(self, x: Any, axis: Any = None, keep: bool = False) -> Any:
        return x.mean(axis=axis, keepdims=keep)

    def sum(self, x: Any, axis: Any, keep: bool = False) -> Any:
        return x.sum(axis=axis, keepdims=keep)

    def layer_norm(self, x: Any, g: Any, h: Any) -> Any:
        return self.apply("layer_norm", x, g, h)

    def group_norm(self, x: Any, groups: int, g: Any, h: Any) -> Any:
        return self.apply("group_norm", x, g, h, groups=groups)

    def conv2d(self, x: Any, k: Any, padding: int, stride: int) -> Any:
        return self.apply("conv2d", x, k, padding=(padding, padding), stride=(stride, stride))

    def conv_transpose(self, x: Any, k: Any, stride: int) -> Any:
        return self.apply("conv_transpose2d", x, k, stride=(stride, stride))

    def max_pool(self, x: Any, n: int) -> Any:
        return self.apply("max_pool2d", x, kernel=(n, n), stride=(n, n))

    def avg_pool(self, x: Any, n: int) -> Any:
        return self.apply("avg_pool2d", x, kernel=(n, n), stride=(1, 1))

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        return self.apply("attention", q, k, v, causal=causal)

    def take(self, t: Any, at: Any) -> Any:
        return t.take(at, axis=0)

    def cross_entropy(self, x: Any, y: Any) -> Any:
        return self.apply("cross_entropy", x, y)


def of_torch(name: str) -> dict[str, np.ndarray]:
    """The loss, under the network's name, and the gradients, under that and the parameter's."""
    import torch
    arrays, x = drawn(name)
    p = {n: torch.tensor(a, requires_grad=True) for n, a in arrays.items()}
    loss = NETWORKS[name][2](Torch(), p, torch.tensor(x))
    loss.backward()
    return {name: loss.detach().numpy(), **{f"{name} {n}": t.grad.numpy() for n, t in p.items()}}


def of_daten(name: str) -> dict[str, np.ndarray]:
    """The same."""
    from daten import Tensor, gradients, realize
    arrays, x = drawn(name)
    p = {n: Tensor(a) for n, a in arrays.items()}
    loss = NETWORKS[name][2](Daten(), p, Tensor(x))
    found = gradients(loss, list(p.values()))
    realize(loss, *found)
    return {name: loss.numpy(), **{f"{name} {n}": g.numpy() for n, g in zip(p, found, strict=True)}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__.partition("\n")[0])
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name} for the tests")
    if parser.parse_args().store:
        np.savez_compressed(STORED, **{n: value for name in NETWORKS for n, value in of_torch(name).items()})
        return
    print("network: the largest error of the loss and of any gradient, relative to the largest element")
    for name in NETWORKS:
        ours, theirs = of_daten(name), of_torch(name)
        errors = {n: float(np.abs(ours[n] - theirs[n]).max() / max(np.abs(theirs[n]).max(), 1e-30)) for n in theirs}
        worst = max(errors, key=lambda n: errors[n])
        print(f"{name}: {errors.pop(name):.1e}, {max(errors.values(), default=0.0):.1e}"
              + (f" ({worst.removeprefix(name).strip()})" if worst != name else ""))


if __name__ == "__main__":
    main()
