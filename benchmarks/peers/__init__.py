"""The peers, one module each. A module has `VERSION`, `prepare(threads)` and `CALLS`: by the kind of a problem, what
makes of a problem a call without arguments that gives the result."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..problems import Problem

Call = Callable[[], Any]

# Peer -> its module in this package.
PEERS: dict[str, str] = {
    "caten": "caten_peer", "numpy": "numpy_peer", "torch": "torch_peer", "inductor": "inductor_peer", "jax": "jax_peer",
    "onnxruntime": "onnxruntime_peer", "numba": "numba_peer", "numexpr": "numexpr_peer", "tinygrad": "tinygrad_peer",
}


class Peer:
    """A peer, ready to run on so many threads. ImportError where it is not installed."""

    def __init__(self, name: str, threads: int):
        module = import_module(f".{PEERS[name]}", __package__)
        module.prepare(threads)
        self.name = name
        self.version: str = module.VERSION
        self.calls: Mapping[str, Callable[[Problem], Call]] = module.CALLS


def environment(threads: int, alone: bool) -> dict[str, str]:
    """What a process of the side-by-side must find in its environment. glibc keeps freed memory, so that nobody pays
    page faults for new outputs; `alone`: one peer has the process for itself, and keeps its own way of waiting for
    work."""
    count = str(threads)
    variables = {f"{name}_NUM_THREADS": count for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}
    variables |= {"NUMEXPR_MAX_THREADS": count, "NUM_CPU_THREADS": count, "DEV": "CPU", "JAX_PLATFORMS": "cpu",
                  "TORCHINDUCTOR_COMPILE_THREADS": "1",
                  "MALLOC_MMAP_THRESHOLD_": str(1 << 33), "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                  "MALLOC_TOP_PAD_": str(1 << 26)}
    if threads == 1:
        variables["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return variables if alone else variables | {"KMP_BLOCKTIME": "1"}
