"""Peak arithmetic rate and memory bandwidth (the roofline), measured by C functions that the kernels' compiler builds.

Arithmetic: fused multiply-adds on independent vector accumulators. Memory, after the STREAM benchmark of J. D. McCalpin
(1995): a sum of eight streams, a copy, and the triad a = b + s·c. Bytes are those that the program loads and stores;
cache lines loaded before a store do not count.
"""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..frozen import frozen
from ..runtime.protocol import Runtime
from . import timing

CHAINS = 12                    # accumulators: more than the latency of an FMA times the number of FMA units
STEPS = 200_000                # FMAs on each accumulator in one call
STREAMS = 8
ELEMENTS = 1 << 24             # per array: 64 MiB, which exceeds the caches of a core
FLOAT = 4
DECLARATIONS = """float fused(int64_t, float, float); float total(int64_t, const float *);
void copied(int64_t, float *, const float *); void triad(int64_t, float *, const float *, const float *, float);"""


@frozen
class Limits:
    """Peak float32 FLOP/s, and bandwidth in bytes per second, with `threads` threads."""

    threads: int
    flops: float
    read: float
    copy: float
    triad: float

    @property
    def bandwidth(self) -> float:
        """The highest of the three bandwidths."""
        return max(self.read, self.copy, self.triad)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        """One line of text."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (f"limits of this machine, {threads}: {self.flops / 1e9:.0f} GFLOP/s; "
                f"read {self.read / 1e9:.1f}, copy {self.copy / 1e9:.1f}, triad {self.triad / 1e9:.1f} GB/s")


def limits_from(json: dict[str, Any]) -> Limits:
    """The inverse of `as_json`."""
    return Limits(int(json["threads"]), *[float(json[n]) for n in ("flops", "read", "copy", "triad")])


def measured(runtime: Runtime, threads: int, rounds: int, plan: timing.Plan, elements: int = ELEMENTS) -> Limits:
    """Measure the limits with the C compiler of a runtime; the fastest round counts. ToolError without a compiler."""
    lanes = runtime.machine().vector_bytes // FLOAT
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "limits.so")
        runtime.hosted(cflags=(*runtime.host.cflags, "-ffp-contract=fast")).compile(source(lanes), library, "so")
        work = _work(library, threads, elements)
        with ThreadPoolExecutor(threads) as pool:
            calls: dict[str, timing.Call] = {name: partial(_together, pool, parts) for name, parts in work.items()}
            if threads == 1:
                calls = {name: parts[0] for name, parts in work.items()}
            taken = timing.rounds(calls, rounds, plan)
    least = {name: min(timing.accepted(samples)) for name, samples in taken.items()}
    size = elements * FLOAT
    return Limits(threads, 2 * lanes * CHAINS * STEPS * threads / least["fused"], size / least["total"],
                  2 * size / least["copied"],
                  3 * size / least["triad"])


def _work(library: Path, threads: int, elements: int) -> dict[str, list[Callable[[], Any]]]:
    """The calls of each function, one per thread."""
    import cffi
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    c: Any = ffi.dlopen(str(library))
    part = elements // threads
    work: dict[str, list[Callable[[], Any]]] = {name: [] for name in ("fused", "total", "copied", "triad")}
    for _ in range(threads):
        arrays = [np.ones(part, np.float32) for _ in range(3)]
        x, y, z = [ffi.from_buffer("float *", a) for a in arrays]
        work["fused"].append(partial(c.fused, STEPS, 0.999, 0.001))
        work["total"].append(partial(c.total, part, x))
        work["copied"].append(partial(c.copied, part, y, x))
        work["triad"].append(partial(c.triad, part, y, x, z, 3.0))
    return work


def _together(pool: ThreadPoolExecutor, parts: list[Callable[[], Any]]) -> None:
    for done in [pool.submit(part) for part in parts]:
        done.result()


def source(lanes: int) -> str:
    """The C source of the measured functions, for vectors of `lanes` floats."""
    chains, streams = range(CHAINS), range(STREAMS)
    return f"""#include <stdint.h>
typedef float vector __attribute__((vector_size({lanes * FLOAT}), aligned(4)));
#define EXPORT __attribute__((visibility("default")))
static float sum(vector v) {{ float s = 0; for (int i = 0; i < {lanes}; i++) s += v[i]; return s; }}

EXPORT float fused(int64_t n, float m, float c) {{
  vector a = (vector){{0}} + m, b = (vector){{0}} + c;
  vector {', '.join([f'x{k} = a + {k}' for k in chains])};
  for (int64_t i = 0; i < n; i++) {{ {' '.join([f'x{k} = x{k} * a + b;' for k in chains])} }}
  return sum({' + '.join([f'x{k}' for k in chains])});
}}

EXPORT float total(int64_t n, const float *x) {{
  int64_t part = n / {STREAMS};
  vector {', '.join([f's{k} = {{0}}' for k in streams])};
  for (int64_t i = 0; i + {lanes} <= part; i += {lanes}) {{
    {' '.join([f's{k} += *(const vector *)(x + {k} * part + i);' for k in streams])}
  }}
  return sum({' + '.join([f's{k}' for k in streams])});
}}

EXPORT void copied(int64_t n, float *y, const float *x) {{
  for (int64_t i = 0; i + {lanes} <= n; i += {lanes}) *(vector *)(y + i) = *(const vector *)(x + i);
}}

EXPORT void triad(int64_t n, float *y, const float *x, const float *z, float s) {{
  for (int64_t i = 0; i + {lanes} <= n; i += {lanes})
    *(vector *)(y + i) = *(const vector *)(x + i) + s * *(const vector *)(z + i);
}}
"""
