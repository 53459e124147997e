"""Steps of training with one peer: `python -m benchmarks.training` starts it. Each network is written for daten, torch
and JAX over the same drawn parameters; a step is the loss, its gradients and p ← p - rate · gradient."""
from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .processes import wrote

Arrays = dict[str, np.ndarray]
RATE = 0.01
LEAST_STEPS, MOST_STEPS, SECONDS = 5, 300, 3.0
LAYERS, WIDTH, HEADS, TIME, WORDS = 4, 256, 4, 128, 256           # of the transformer
STEPS, HIDDEN, FEATURES = 16, 64, 32                               # of the LSTM


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:task["threads"]]))
    parameters, batch = NETWORKS[task["network"]](np.random.default_rng(0))
    start = time.perf_counter()
    step = PEERS[task["peer"]](task["network"], parameters, batch, task["threads"])
    losses = [step()]
    first = time.perf_counter() - start
    taken: list[float] = []
    while len(taken) < LEAST_STEPS or (len(taken) < MOST_STEPS and sum(taken) < SECONDS):
        start = time.perf_counter()
        losses.append(step())
        taken.append(time.perf_counter() - start)
    wrote(result, {"seconds": sorted(taken)[len(taken) // 2], "first": first, "losses": losses[:LEAST_STEPS]})


# ---- the networks: parameters, and a batch of inputs with what is to come out ----------------------------------------

def mlp(draw: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    return ({"w1": drawn(draw, 784, 256), "b1": zeros(256), "w2": drawn(draw, 256, 128), "b2": zeros(128),
             "w3": drawn(draw, 128, 10), "b3": zeros(10)}, classes(draw, (128, 784)))


def cnn(draw: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    return ({"k1": drawn(draw, 16, 1, 3, 3), "c1": zeros(16), "k2": drawn(draw, 32, 16, 3, 3), "c2": zeros(32),
             "w": drawn(draw, 512, 10), "b": zeros(10)}, classes(draw, (64, 1, 8, 8)))


def resnet(draw: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    parameters: Arrays = {"k0": drawn(draw, 16, 3, 3, 3)}
    for n in range(2):
        parameters |= {f"k{n}a": drawn(draw, 16, 16, 3, 3), f"k{n}b": drawn(draw, 16, 16, 3, 3)}
    return parameters | {"w": drawn(draw, 16, 10), "b": zeros(10)}, classes(draw, (8, 3, 32, 32))


def transformer(draw: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    parameters: Arrays = {"table": drawn(draw, WORDS, WIDTH), "places": drawn(draw, TIME, WIDTH)}
    for n in range(LAYERS):
        parameters |= {f"g{n}": ones(WIDTH), f"h{n}": zeros(WIDTH), f"qkv{n}": drawn(draw, WIDTH, 3 * WIDTH),
                       f"o{n}": drawn(draw, WIDTH, WIDTH), f"m{n}": ones(WIDTH), f"n{n}": zeros(WIDTH),
                       f"u{n}": drawn(draw, WIDTH, 4 * WIDTH), f"d{n}": drawn(draw, 4 * WIDTH, WIDTH)}
    words = draw.integers(0, WORDS, (4, TIME + 1))
    return parameters, (words[:, :-1].copy(), words[:, 1:].reshape(-1).copy())


def lstm(draw: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    parameters = {"wi": drawn(draw, FEATURES, 4 * HIDDEN), "wh": drawn(draw, HIDDEN, 4 * HIDDEN),
                  "b": zeros(4 * HIDDEN), "w": drawn(draw, HIDDEN, 10), "c": zeros(10)}
    return parameters, classes(draw, (32, STEPS, FEATURES))


NETWORKS: dict[str, Callable[[np.random.Generator], tuple[Arrays, tuple[np.ndarray, np.ndarray]]]] = {
    "mlp": mlp, "cnn": cnn, "resnet": resnet, "transformer": transformer, "lstm": lstm}


def drawn(draw: np.random.Generator, *shape: int) -> np.ndarray:
    inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
    return (draw.standard_normal(shape) / np.sqrt(inputs)).astype(np.float32)


def zeros(extent: int) -> np.ndarray:
    return np.zeros(extent, np.float32)


def ones(extent: int) -> np.ndarray:
    return np.ones(extent, np.float32)


def classes(draw: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return draw.standard_normal(shape).astype(np.float32), draw.integers(0, 10, shape[0])


# ---- daten -----------------------------------------------------------------------------------------------------------

def daten(network: str, given: Arrays, batch: tuple[np.ndarray, np.ndarray], threads: int) -> Callable[[], float]:
    """Steps by daten."""
    from daten import Tensor, apply, jit, optim, use
    if threads > 1:
        use("clang", config={"OMP": 1})
    p = {name: Tensor(a, requires_grad=True) for name, a in given.items()}
    descent = optim.SGD(list(p.values()), lr=RATE)

    def forward(x: Any) -> Any:
        match network:
            case "mlp":
                x = (x @ p["w1"] + p["b1"]).relu()
                return (x @ p["w2"] + p["b2"]).relu() @ p["w3"] + p["b3"]
            case "cnn":
                x = (x.conv2d(p["k1"], padding=(1, 1)) + p["c1"].reshape(-1, 1, 1)).relu()
                x = (x.conv2d(p["k2"], padding=(1, 1), stride=(2, 2)) + p["c2"].reshape(-1, 1, 1)).relu()
                return x.reshape(-1, 512) @ p["w"] + p["b"]
            case "resnet":
                x = x.conv2d(p["k0"], padding=(1, 1)).relu()
                for n in range(2):
                    y = x.conv2d(p[f"k{n}a"], padding=(1, 1)).relu()
                    x = (x + y.conv2d(p[f"k{n}b"], padding=(1, 1))).relu()
                return x.mean(axis=(2, 3)) @ p["w"] + p["b"]
            case "transformer":
                x = p["table"].take(x, axis=0) + p["places"]
                for n in range(LAYERS):
                    y = x.layer_norm(p[f"g{n}"], p[f"h{n}"]) @ p[f"qkv{n}"]
                    q, k, v = [y[..., i * WIDTH:(i + 1) * WIDTH].reshape(-1, TIME, HEADS, WIDTH // HEADS)
                               .transpose(0, 2, 1, 3) for i in range(3)]
                    y = apply("attention", q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(-1, TIME, WIDTH)
                    x = x + y @ p[f"o{n}"]
                    y = (x.layer_norm(p[f"m{n}"], p[f"n{n}"]) @ p[f"u{n}"]).gelu(approximate="tanh")
                    x = x + y @ p[f"d{n}"]
                return x.reshape(-1, WIDTH) @ p["table"].T
            case _:
                h = c = Tensor(np.zeros((len(batch[0]), HIDDEN), np.float32))
                for t in range(STEPS):
                    gates = x[:, t] @ p["wi"] + h @ p["wh"] + p["b"]
                    i, f, g, o = [gates[:, n * HIDDEN:(n + 1) * HIDDEN] for n in range(4)]
                    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                    h = o.sigmoid() * c.tanh()
                return h @ p["w"] + p["c"]

    @jit
    def changed(x: Any, y: Any) -> Any:
        loss = apply("cross_entropy", forward(x), y)
        loss.backward()
        descent.step(loss)
        return loss

    def step() -> float:
        return float(changed(*batch).item())
    return step


# ---- torch -----------------------------------------------------------------------------------------------------------

def torch_eager(network: str, given: Arrays, batch: tuple[np.ndarray, np.ndarray], threads: int,
                compiled: bool = False) -> Callable[[], float]:
    """Steps by torch."""
    import torch
    from torch.nn import functional as F
    torch.set_num_threads(threads)
    p = {name: torch.tensor(a, requires_grad=True) for name, a in given.items()}
    x_batch, y_batch = map(torch.tensor, batch)
    descent = torch.optim.SGD(list(p.values()), lr=RATE)

    def forward(x: Any) -> Any:
        match network:
            case "mlp":
                x = F.relu(x @ p["w1"] + p["b1"])
                return F.relu(x @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]
            case "cnn":
                x = F.relu(F.conv2d(x, p["k1"], p["c1"], padding=1))
                x = F.relu(F.conv2d(x, p["k2"], p["c2"], padding=1, stride=2))
                return x.reshape(-1, 512) @ p["w"] + p["b"]
            case "resnet":
                x = F.relu(F.conv2d(x, p["k0"], padding=1))
                for n in range(2):
                    y = F.relu(F.conv2d(x, p[f"k{n}a"], padding=1))
                    x = F.relu(x + F.conv2d(y, p[f"k{n}b"], padding=1))
                return x.mean(dim=(2, 3)) @ p["w"] + p["b"]
            case "transformer":
                x = F.embedding(x, p["table"]) + p["places"]
                for n in range(LAYERS):
                    y = F.layer_norm(x, (WIDTH,), p[f"g{n}"], p[f"h{n}"]) @ p[f"qkv{n}"]
                    q, k, v = [t.reshape(-1, TIME, HEADS, WIDTH // HEADS).transpose(1, 2) for t in y.split(WIDTH, -1)]
                    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
                    x = x + y.reshape(-1, TIME, WIDTH) @ p[f"o{n}"]
                    y = F.gelu(F.layer_norm(x, (WIDTH,), p[f"m{n}"], p[f"n{n}"]) @ p[f"u{n}"], approximate="tanh")
                    x = x + y @ p[f"d{n}"]
                return x.reshape(-1, WIDTH) @ p["table"].T
            case _:
                h = c = torch.zeros(len(x), HIDDEN)
                for t in range(STEPS):
                    i, f, g, o = (x[:, t] @ p["wi"] + h @ p["wh"] + p["b"]).split(HIDDEN, -1)
                    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                    h = torch.sigmoid(o) * torch.tanh(c)
                return h @ p["w"] + p["c"]

    def loss_of(x: Any, y: Any) -> Any:
        return F.cross_entropy(forward(x), y)
    called = torch.compile(loss_of) if compiled else loss_of

    def step() -> float:
        descent.zero_grad()
        loss = called(x_batch, y_batch)
        loss.backward()
        descent.step()
        return float(loss.item())
    return step


def torch_compiled(network: str, given: Arrays, batch: tuple[np.ndarray, np.ndarray], threads: int
                   ) -> Callable[[], float]:
    """Steps by torch.compile."""
    return torch_eager(network, given, batch, threads, compiled=True)


# ---- JAX -------------------------------------------------------------------------------------------------------------

def jax(network: str, given: Arrays, batch: tuple[np.ndarray, np.ndarray], threads: int) -> Callable[[], float]:
    """Steps by JAX, compiled as a whole."""
    import jax
    from jax import lax, nn
    from jax import numpy as jnp

    def conv(x: Any, k: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(x, k, (stride, stride), ((1, 1), (1, 1)))

    def norm(x: Any, g: Any, b: Any) -> Any:
        c = x - x.mean(-1, keepdims=True)
        return c / jnp.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + b

    def forward(p: Any, x: Any) -> Any:
        match network:
            case "mlp":
                x = nn.relu(x @ p["w1"] + p["b1"])
                return nn.relu(x @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]
            case "cnn":
                x = nn.relu(conv(x, p["k1"]) + p["c1"][:, None, None])
                x = nn.relu(conv(x, p["k2"], 2) + p["c2"][:, None, None])
                return x.reshape(-1, 512) @ p["w"] + p["b"]
            case "resnet":
                x = nn.relu(conv(x, p["k0"]))
                for n in range(2):
                    x = nn.relu(x + conv(nn.relu(conv(x, p[f"k{n}a"])), p[f"k{n}b"]))
                return x.mean((2, 3)) @ p["w"] + p["b"]
            case "transformer":
                x = p["table"][x] + p["places"]
                for n in range(LAYERS):
                    y = norm(x, p[f"g{n}"], p[f"h{n}"]) @ p[f"qkv{n}"]
                    q, k, v = [t.reshape(-1, TIME, HEADS, WIDTH // HEADS) for t in jnp.split(y, 3, -1)]
                    x = x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(-1, TIME, WIDTH) @ p[f"o{n}"]
                    x = x + nn.gelu(norm(x, p[f"m{n}"], p[f"n{n}"]) @ p[f"u{n}"]) @ p[f"d{n}"]
                return x.reshape(-1, WIDTH) @ p["table"].T
            case _:
                def cell(state: Any, row: Any) -> Any:
                    h, c = state
                    i, f, g, o = jnp.split(row @ p["wi"] + h @ p["wh"] + p["b"], 4, -1)
                    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
                    return (nn.sigmoid(o) * jnp.tanh(c), c), None
                start = jnp.zeros((x.shape[0], HIDDEN))
                (h, _), _ = lax.scan(cell, (start, start), x.transpose(1, 0, 2))
                return h @ p["w"] + p["c"]

    @jax.jit
    def changed(p: Any, x: Any, y: Any) -> Any:
        def loss_of(p: Any) -> Any:
            logits = nn.log_softmax(forward(p, x))
            return -jnp.take_along_axis(logits, y[:, None], 1).mean()
        loss, gradients = jax.value_and_grad(loss_of)(p)
        return loss, {name: p[name] - RATE * gradients[name] for name in p}
    state = {"p": {name: jnp.asarray(a) for name, a in given.items()}}
    x_batch, y_batch = map(jnp.asarray, batch)

    def step() -> float:
        loss, state["p"] = changed(state["p"], x_batch, y_batch)
        jax.block_until_ready(state["p"])
        return float(loss)
    return step


PEERS: dict[str, Callable[..., Callable[[], float]]] = {
    "caten": daten, "torch": torch_eager, "torch.compile": torch_compiled, "jax": jax}


if __name__ == "__main__":
    main()
