"""Steps of training beside torch and JAX: `python -m benchmarks.training [--threads 2] [NETWORK…]`.

Each network and peer in a process of its own, with as many CPUs as threads; the median of the steps of some seconds,
the same parameters and losses. The ratio is that of the best peer to caten: above 1, caten is faster."""
from __future__ import annotations

import argparse
import json
from math import exp, log
from pathlib import Path
from typing import Any

from .processes import ran
from .training_worker import NETWORKS, PEERS

TOLERANCE = 2e-3                # by which losses may differ


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for network in words.networks or NETWORKS:
        found[network] = measured(network, words.peers.split(","), words.threads)
        print(line(network, found[network]), flush=True)
    ratios = [r for row in found.values() if (r := ratio(row)) is not None]
    if ratios:
        print(f"geometric mean {exp(sum(map(log, ratios)) / len(ratios)):.2f}, {words.threads} threads")
    if words.json is not None:
        words.json.write_text(json.dumps({"threads": words.threads, "rows": found}, indent=1))


def measured(network: str, peers: list[str], threads: int) -> dict[str, Any]:
    """What each peer took: seconds of a step and until the first, or why there are none."""
    count = str(threads)
    variables = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count,
                 "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"}
    rows: dict[str, Any] = {}
    for peer in peers:
        task = {"network": network, "peer": peer, "threads": threads}
        written, why = ran("benchmarks.training_worker", task, variables)
        rows[peer] = written if why is None else {"failed": why}
    wanted = rows.get("caten", {}).get("losses", [])
    for row in rows.values():
        if any(abs(a - b) > TOLERANCE * max(1, abs(b)) for a, b in zip(row.get("losses", []), wanted, strict=False)):
            row["differs"] = True
    return rows


def ratio(row: dict[str, Any]) -> float | None:
    """The best peer's time beside caten's."""
    times = [r["seconds"] for peer, r in row.items() if peer != "caten" and "seconds" in r and "differs" not in r]
    return min(times) / row["caten"]["seconds"] if times and "seconds" in row.get("caten", {}) else None


def line(network: str, row: dict[str, Any]) -> str:
    """One network."""
    parts = [f"{peer} {1e3 * r['seconds']:.2f} ms (first {r['first']:.1f} s){' DIFFERS' if 'differs' in r else ''}"
             if "seconds" in r else f"{peer}: {r['failed']}" for peer, r in row.items()]
    share = ratio(row)
    return f"{network}: {', '.join(parts)}" + (f"; {share:.2f}" if share is not None else "")


if __name__ == "__main__":
    main()
