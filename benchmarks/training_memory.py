"""The memory of a step of training: `python -m benchmarks.training_memory [NETWORK…]`.

For daten the bytes of the arrays between the kernels of a step, as they are before and after planning, and the results
(loss and new parameters); for torch (eager) the greatest sum of what its tensors have at one time during a step. The
parameters and the batch, which both have, are left out."""
from __future__ import annotations

import argparse
import warnings
import weakref
from typing import Any

import numpy as np

from .training_worker import NETWORKS, PEERS

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS])
    warnings.simplefilter("ignore")
    print("| network | between kernels | planned | results | caten | torch |\n|---|---|---|---|---|---|")
    for network in parser.parse_args().networks or NETWORKS:
        before, after, results = of_daten(network)
        print(f"| {network} | {before / MIB:.2f} | {after / MIB:.2f} | {results / MIB:.2f} | "
              f"{(after + results) / MIB:.2f} | {of_torch(network) / MIB:.2f} |", flush=True)


def of_daten(network: str) -> tuple[int, int, int]:
    """The bytes of the arrays between kernels, those of all memory of a call after planning, and those of the
    results."""
    from caten.core.numpy_types import numpy_dtype
    from daten import realization
    from daten.listing import Memory
    from daten.lowering import Lowered
    steps: list[Lowered] = []

    usual = realization.program_of

    def kept(wanted: Any, calls: Any, leaves: Any, *more: Any, **options: Any) -> Any:
        program, recipe = usual(wanted, calls, leaves, *more, **options)
        steps.append(Lowered(program, recipe, tuple(leaves), tuple(wanted)))
        return program, recipe
    parameters, batch = NETWORKS[network](np.random.default_rng(0))
    realization.program_of = kept
    try:
        PEERS["caten"](network, parameters, batch, 1)()
    finally:
        realization.program_of = usual
    step = max(steps, key=lambda s: len(s.results))
    memory = Memory(step.program, step.sizes)
    before, after = sum([size for _, size in memory.places.values()]), memory.total
    results = sum([int(np.prod(r.shape)) * numpy_dtype(r.dtype).itemsize for r in step.results])
    return before, after, results


def of_torch(network: str) -> int:
    """The greatest number of bytes that tensors made in a step have together."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    known: set[int] = set()
    now = most = 0

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            for t in made if isinstance(made, tuple | list) else (made,):
                if isinstance(t, torch.Tensor):
                    begin(t.untyped_storage())
            return made

    def begin(storage: Any) -> None:
        nonlocal now, most
        where, size = storage.data_ptr(), storage.nbytes()
        if where in known or not where:
            return
        known.add(where)
        now += size
        most = max(most, now)
        weakref.finalize(storage, end, where, size)

    def end(where: int, size: int) -> None:
        nonlocal now
        if where in known:
            known.discard(where)
            now -= size
    parameters, batch = NETWORKS[network](np.random.default_rng(0))
    step = PEERS["torch"](network, parameters, batch, 1)
    with Counted():
        step()
        now = most = 0
        known.clear()
        step()
    return most


if __name__ == "__main__":
    main()
