"""Convolutions of drawn sizes and their two gradients beside torch, one thread:
`python -m benchmarks.convolution_gradients [--seed N] [--count N] [--arguments]`.

The weights are parameters, as in a model; with `--arguments` they are arguments of the compiled function, as in a
functional step. Each in the same process, over the same random arrays: the first quartile of the times of half a
second. The ratio is torch's time to daten's: above 1, daten is faster."""
from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from math import exp, log
from typing import Any

import numpy as np

LEAST_FLOPS, MOST_FLOPS = 2e6, 4e8
SECONDS = 0.5
KINDS = ("forward", "by the image", "by the weights")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--arguments", action="store_true")
    words = parser.parse_args()
    draw = random.Random(words.seed)
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(words.count):
        shape = drawn(draw)
        found = measured(shape, number, words.arguments)
        print(", ".join([described(shape), *[f"{kind} {other / own:.2f} ({flops_of(shape) / own / 1e9:.0f} GFLOP/s)"
                                             for kind, (own, other) in found.items()]]), flush=True)
        for kind, (own, other) in found.items():
            ratios[kind].append(other / own)
    for kind, each in ratios.items():
        mean = exp(sum(map(log, each)) / len(each))
        print(f"{kind}: 5 % {np.percentile(each, 5):.2f}, 25 % {np.percentile(each, 25):.2f}, "
              f"median {np.percentile(each, 50):.2f}, geometric mean {mean:.2f}")


def drawn(draw: random.Random) -> dict[str, int]:
    """Images, channels, filters, height and width of an image, window, step, padding and groups."""
    while True:
        n, c, o = draw.choice([1, 2, 4, 8, 16]), draw.choice([3, 8, 16, 24, 32, 64, 96, 128]), draw.choice(
            [8, 16, 24, 32, 64, 96, 128])
        h = draw.choice([7, 8, 12, 14, 16, 20, 28, 32, 40, 56, 64])
        k, s = draw.choice([1, 3, 3, 3, 5]), draw.choice([1, 1, 1, 2])
        groups = draw.choice([1, 1, 1, 1, c])
        shape = {"images": n, "channels": c, "filters": c if groups == c else o, "height": h,
                 "width": h + draw.choice([0, 0, 0, 1, 3, -2]), "window": k, "step": s,
                 "padding": draw.choice([k // 2, k // 2, 0]), "groups": groups}
        if min(pixels(shape)) > 0 and LEAST_FLOPS < flops_of(shape) < MOST_FLOPS:
            return shape


def pixels(s: dict[str, int]) -> tuple[int, int]:
    """The height and the width of the result."""
    height, width = [(s[e] + 2 * s["padding"] - s["window"]) // s["step"] + 1 for e in ("height", "width")]
    return height, width


def flops_of(s: dict[str, int]) -> int:
    """Floating-point operations of each of the three."""
    height, width = pixels(s)
    return 2 * s["images"] * s["filters"] * s["channels"] // s["groups"] * s["window"] ** 2 * height * width


def described(s: dict[str, int]) -> str:
    """One draw, as in `4 × 16 × 14 × 15, 8 filters 3 × 3, step 1, padding 1, groups 1`."""
    return (f"{s['images']} × {s['channels']} × {s['height']} × {s['width']}, {s['filters']} filters "
            f"{s['window']} × {s['window']}, step {s['step']}, padding {s['padding']}, groups {s['groups']}")


def measured(s: dict[str, int], seed: int, as_arguments: bool) -> dict[str, tuple[float, float]]:
    """The seconds of daten and of torch for each kind."""
    import torch

    from daten import Tensor, grad, jit
    torch.set_num_threads(1)
    normal = np.random.default_rng(seed)
    image, weights, seeds = [normal.standard_normal(shape).astype(np.float32) for shape in (
        (s["images"], s["channels"], s["height"], s["width"]),
        (s["filters"], s["channels"] // s["groups"], s["window"], s["window"]),
        (s["images"], s["filters"], *pixels(s)))]

    def convolved(x: Any, w: Any) -> Any:
        return x.conv2d(w, padding=(s["padding"],) * 2, stride=(s["step"],) * 2, groups=s["groups"])

    def total(x: Any, w: Any, g: Any) -> Any:
        return (convolved(x, w) * g).sum()
    functions: list[Callable[..., Any]] = [lambda x, w, _: convolved(x, w), grad(total), grad(total, 1)]
    parameter = Tensor(weights, requires_grad=True)                     # its extents are known
    given = [Tensor(a) for a in ((image, weights, seeds) if as_arguments else (image, seeds))]
    own = [jit(f if as_arguments else lambda x, g, f=f: f(x, parameter, g)) for f in functions]
    x, w, g = [torch.tensor(a) for a in (image, weights, seeds)]
    two = {"stride": [s["step"]] * 2, "padding": [s["padding"]] * 2, "dilation": [1, 1]}
    backward = torch.ops.aten.convolution_backward

    def of_torch(wanted: list[bool]) -> Callable[[], Any]:
        return lambda: backward(g, x, w, None, *two.values(), False, [0, 0], s["groups"], wanted)
    peers = [lambda: torch.conv2d(x, w, groups=s["groups"], **two),
             of_torch([True, False, False]), of_torch([False, True, False])]
    return {kind: (seconds_of(lambda f=f: f(*given).numpy()), seconds_of(peer))
            for kind, f, peer in zip(KINDS, own, peers, strict=True)}


def seconds_of(run: Callable[[], Any]) -> float:
    """A call: the first quartile."""
    for _ in range(2):
        run()
    taken: list[float] = []
    while len(taken) < 5 or sum(taken) < SECONDS:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return float(np.percentile(taken, 25))


if __name__ == "__main__":
    main()
