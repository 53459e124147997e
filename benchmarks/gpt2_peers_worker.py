"""GPT-2 with one peer: `python -m benchmarks.gpt2_peers` starts it. The model is written for daten and for torch, from
which ONNX Runtime has it, over the same drawn weights."""
from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .processes import wrote

LENGTHS, BEFORE, TOKENS = (10, 128, 512), 128, 24
CASES = (*[f"n = {n}" for n in LENGTHS], "a token")
SECONDS, LEAST_RUNS = 3.0, 3
Run = Callable[[np.ndarray, Any], tuple[np.ndarray, Any]]        # tokens and what is kept, to logits and what is kept


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:task["threads"]]))
    found: dict[str, Any] = {"seconds": {}, "logits": {}}
    weights = drawn(task["layers"])
    forward, more = PEERS[task["peer"]](weights, task["threads"])
    text = np.random.default_rng(1).integers(0, 50257, max(LENGTHS))
    for case, length in zip(CASES, LENGTHS, strict=False):
        found["logits"][case] = sample(forward(text[:length], None)[0])
        taken: list[float] = []
        while len(taken) < LEAST_RUNS or sum(taken) < SECONDS:
            start = time.perf_counter()
            forward(text[:length], None)
            taken.append(time.perf_counter() - start)
        found["seconds"][case] = sorted(taken)[len(taken) // 2]
    taken = []
    for _ in range(2):                                              # the first time compiles
        kept, taken = forward(text[:BEFORE], None)[1], []
        for token in text[BEFORE:BEFORE + TOKENS]:
            start = time.perf_counter()
            logits, kept = more(np.array([token]), kept)
            taken.append(time.perf_counter() - start)
    found["logits"][CASES[-1]] = sample(logits)
    found["seconds"][CASES[-1]] = sorted(taken)[len(taken) // 2]
    if task["peer"] == "caten":
        found["limits"] = {"weights": sum(a.nbytes for name, a in weights.items() if name != "wpe.weight"),
                           "bandwidth": bandwidth(task["threads"])}
    wrote(result, found)


def sample(logits: np.ndarray) -> list[float]:
    return [float(x) for x in logits[-1, ::1000]]


def drawn(layers: int) -> dict[str, np.ndarray]:
    """The weights, by their published names."""
    from daten import random
    from daten.models.gpt2 import GPT2, Size
    random.seed(0)
    return GPT2(Size(layers=layers)).state_dict()


def bandwidth(threads: int) -> float:
    """Bytes a second that this machine reads, of an array that no cache holds."""
    from caten.api import options_of
    from caten.attach import runtime_of
    from caten.benchmarking import limits, timing
    runtime = runtime_of(options_of("compile"))
    return float(limits.measured(runtime, threads, 5, timing.Plan(1, 3)).bandwidth)


# ---- the peers: the logits of all tokens, and of one more ------------------------------------------------------------

def with_caten(weights: dict[str, np.ndarray], threads: int) -> tuple[Run, Run]:
    import daten
    from daten.models.gpt2 import GPT2, Cache, size_of
    daten.use(config={"OMP": "1"} if threads > 1 else {})
    network = GPT2(size_of(weights))
    network.load_state_dict(weights)
    new, before = daten.Var("new", 1, network.size.context), daten.Var("before", 1, network.size.context)
    step = daten.jit(network.forward, dynamic_shapes={"tokens": {0: new}, "past": {0: before}})

    def run(tokens: np.ndarray, kept: Any) -> tuple[np.ndarray, Any]:
        with daten.no_grad():
            logits, rows = step(tokens, kept.past if kept else None)
        return logits.numpy(), (kept or Cache(network.size.context)).append(rows)
    return run, run


def torch_model(weights: dict[str, np.ndarray]) -> Any:
    """The model for torch: tokens, and keys and values of each layer, to logits and keys and values."""
    import torch
    from torch import nn
    from torch.nn import functional
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("h."))
    width = weights["wte.weight"].shape[1]
    heads = width // 64

    given = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}

    class Norm(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.weight, self.bias = (nn.Buffer(given[f"{name}.{part}"]) for part in ("weight", "bias"))

        def forward(self, x: Any) -> Any:
            return functional.layer_norm(x, (width,), self.weight, self.bias)

    class Dense(Norm):
        def forward(self, x: Any) -> Any:
            return torch.addmm(self.bias, x, self.weight)

    class Layer(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = Norm(f"{name}.ln_1"), Norm(f"{name}.ln_2")
            self.c_attn, self.proj = Dense(f"{name}.attn.c_attn"), Dense(f"{name}.attn.c_proj")
            self.c_fc, self.c_proj = Dense(f"{name}.mlp.c_fc"), Dense(f"{name}.mlp.c_proj")

        def forward(self, x: Any, kept: Any) -> Any:
            q, k, v = [t.reshape(-1, heads, 64).transpose(0, 1) for t in self.c_attn(self.ln_1(x)).split(width, -1)]
            if kept:
                k, v = torch.cat([kept[0], k], 1), torch.cat([kept[1], v], 1)
            seen = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=not kept)[0]
            x = x + self.proj(seen.transpose(0, 1).reshape(-1, width))
            return x + self.c_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")), k, v

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Buffer(given["wte.weight"]), nn.Buffer(given["wpe.weight"])
            self.layers, self.ln_f = nn.ModuleList([Layer(f"h.{n}") for n in range(layers)]), Norm("ln_f")

        def forward(self, tokens: Any, places: Any, *kept: Any) -> Any:
            x, made = self.wte[tokens] + self.wpe[places], []
            for n, layer in enumerate(self.layers):
                x, k, v = layer(x, kept[2 * n:2 * n + 2])
                made += [k, v]
            return (self.ln_f(x) @ self.wte.T, *made)
    return Model().eval()


def with_torch(weights: dict[str, np.ndarray], threads: int, compiled: bool = False) -> tuple[Run, Run]:
    import torch
    torch.set_num_threads(threads)
    model = torch_model(weights)
    if compiled:
        model = torch.compile(model, dynamic=True)

    def run(tokens: np.ndarray, kept: Any) -> tuple[np.ndarray, Any]:
        start = kept[0].shape[1] if kept else 0
        with torch.no_grad():
            logits, *made = model(torch.from_numpy(tokens), torch.arange(start, start + len(tokens)), *(kept or ()))
        return logits.numpy(), made
    return run, run


def with_torch_compile(weights: dict[str, np.ndarray], threads: int) -> tuple[Run, Run]:
    return with_torch(weights, threads, compiled=True)


def with_onnxruntime(weights: dict[str, np.ndarray], threads: int) -> tuple[Run, Run]:
    import onnxruntime
    import torch
    model = torch_model(weights)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = threads
    arrays = sum(name.endswith("attn.c_attn.weight") for name in weights) * 2
    names = [f"kept{n}" for n in range(arrays)]
    made = [f"made{n}" for n in range(arrays)]

    def session(folder: str, kept: int) -> Any:
        path = str(Path(folder, f"model{kept}.onnx"))
        given = [torch.zeros(12, 7, 64) for _ in range(arrays)] if kept else []
        tokens = torch.zeros(1 if kept else 5, dtype=torch.int64)
        axes = {name: {1: "before"} for name in names} if kept else {}
        torch.onnx.export(model, (tokens, tokens, *given), path, opset_version=17, dynamo=False,
                          input_names=["tokens", "places", *(names if kept else [])], output_names=["logits", *made],
                          dynamic_axes={"tokens": {0: "n"}, "places": {0: "n"}, **axes})
        return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        sessions = [session(folder, kept) for kept in (0, 1)]

    def run(tokens: np.ndarray, kept: Any) -> tuple[np.ndarray, Any]:
        start = kept[0].shape[1] if kept else 0
        given = {"tokens": tokens, "places": np.arange(start, start + len(tokens))}
        given |= dict(zip(names, kept, strict=True)) if kept else {}
        logits, *rest = sessions[1 if kept else 0].run(None, given)
        return logits, rest
    return run, run


PEERS: dict[str, Callable[[dict[str, np.ndarray], int], tuple[Run, Run]]] = {
    "caten": with_caten, "torch": with_torch, "torch.compile": with_torch_compile, "onnxruntime": with_onnxruntime}

if __name__ == "__main__":
    main()
