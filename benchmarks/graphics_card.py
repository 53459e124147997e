"""Kernels on an NVIDIA card beside PyTorch's: `python -m benchmarks.graphics_card`. It needs the card, its driver, and
PyTorch with CUDA.

A call of caten copies its arrays to the card and back; PyTorch's are there already. So what is compared is the time of
the kernels of one call: each is launched again between two events of the driver, and the least of three times counts.
"""
from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import caten
from caten.runtime import discover

ROUNDS, LAUNCHES = 3, 5

Row = tuple[str, dict[str, Any], list[tuple[int, ...]], Callable[..., Any]]


def rows(torch: Any) -> Iterator[Row]:
    """An operator of the library, its attributes, the shapes of its arrays, and the same in PyTorch."""
    of = torch.nn.functional
    for n in (512, 1024, 2048, 4096):
        yield "matmul", {}, [(n, n), (n, n)], torch.matmul
    yield "matmul", {}, [(16, 512, 512), (16, 512, 512)], torch.matmul
    yield "matmul", {}, [(1000, 300), (300, 777)], torch.matmul
    square = (4096, 4096)
    yield "add", {}, [square, square], torch.add
    yield "relu", {}, [square], torch.relu
    yield "exp", {}, [square], torch.exp
    yield "gelu", {}, [square], of.gelu
    yield "transpose", {}, [square], lambda x: x.t().contiguous()
    yield "sum", {}, [square], torch.sum
    for axis in (0, 1):
        yield "sum", {"axis": axis}, [square], lambda x, axis=axis: x.sum(axis)
        yield "softmax", {"axis": axis}, [square], lambda x, axis=axis: torch.softmax(x, axis)
        yield "argmax", {"axis": axis}, [square], lambda x, axis=axis: x.argmax(axis)
        yield "cumsum", {"axis": axis}, [square], lambda x, axis=axis: x.cumsum(axis)
    yield "layer_norm", {}, [square, (4096,), (4096,)], lambda x, w, b: of.layer_norm(x, (4096,), w, b)
    yield "sort", {}, [(256, 4096)], lambda x: torch.sort(x)[0]
    yield "conv2d", {}, [(8, 64, 56, 56), (64, 64, 3, 3)], of.conv2d
    yield "attention", {}, [(8, 12, 512, 64)] * 3, of.scaled_dot_product_attention


class Timer:
    """Times the launches of a call. The class that launches kernels comes with the runtime file."""

    def __init__(self) -> None:
        self.milliseconds: list[float] | None = None             # of the launches, while they are timed
        card = sys.modules[type(discover.find("cuda")).__module__].Card
        self.launch = card.start
        card.start = lambda of, *launch: self.start(of, *launch)

    def start(self, card: Any, *launch: Any) -> None:
        """Launch a kernel, and where it is timed, again between two events: the results are no longer right."""
        self.launch(card, *launch)
        if self.milliseconds is None:
            return
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            card.call("cuEventCreate", ctypes.byref(event), 0)
        self.milliseconds.append(min(self.between(card, events, launch) for _ in range(ROUNDS)))

    def between(self, card: Any, events: list[ctypes.c_void_p], launch: tuple[Any, ...]) -> float:
        """The time of one launch of several."""
        found = ctypes.c_float()
        card.call("cuEventRecord", events[0], None)
        for _ in range(LAUNCHES):
            self.launch(card, *launch)
        card.call("cuEventRecord", events[1], None)
        card.call("cuEventSynchronize", events[1])
        card.call("cuEventElapsedTime", ctypes.byref(found), *events)
        return found.value / LAUNCHES


def theirs(torch: Any, call: Callable[[], Any]) -> float:
    """The time of a call of PyTorch."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(ROUNDS + 1):                                  # the first finds an algorithm
        first.record()
        for _ in range(LAUNCHES):
            call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / LAUNCHES)
    return min(times[1:])


def main() -> None:
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    timer, random, ratios = Timer(), np.random.default_rng(0), []
    print(f"{torch.cuda.get_device_name()}\n\n"
          "| operator | shapes | caten, ms | kernels | PyTorch, ms | PyTorch / caten |"
          "\n|---|---|--:|--:|--:|--:|")
    for name, attributes, shapes, peer in rows(torch):
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        there = [torch.from_numpy(array).cuda() for array in arrays]
        operator = caten.compile(f"ops:{name}", runtime="cuda")
        got = operator(*arrays, **attributes)
        wanted = peer(*there).cpu().numpy()
        if not np.allclose(got, wanted, rtol=1e-3, atol=1e-3):
            sys.exit(f"{name}: the results differ by {np.abs(got - wanted).max()}")
        timer.milliseconds = times = []
        operator(*arrays, **attributes)
        timer.milliseconds = None
        mine, other = sum(times), theirs(torch, partial(peer, *there))
        ratios.append(other / mine)
        words = [f"{name}({', '.join(f'{k}={v}' for k, v in attributes.items())})", ", ".join(map(str, shapes))]
        print(f"| {' | '.join(words)} | {mine:.4f} | {len(times)} | {other:.4f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nGeometric mean: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
