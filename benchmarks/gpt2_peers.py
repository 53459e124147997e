"""GPT-2 124M beside torch and ONNX Runtime: `python -m benchmarks.gpt2_peers [--threads 2]`.

The same drawn weights in float32: the logits of all tokens of a text of n, and a token more with the keys and values of
128 before it. Each peer in a process of its own, with as many CPUs as threads; the median of some seconds. The ratio is
that of the best peer to caten: above 1, caten is faster. A token reads all weights but the table of places, so the
bandwidth of the memory limits how fast it can be."""
from __future__ import annotations

import argparse
import json
from math import exp, log
from pathlib import Path
from typing import Any

from .gpt2_peers_worker import CASES, PEERS
from .processes import ran

TOLERANCE = 2e-3                # by which logits may differ, of the greatest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    count = str(words.threads)
    variables = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
    found: dict[str, dict[str, Any]] = {}
    for peer in words.peers.split(","):
        task = {"peer": peer, "threads": words.threads, "layers": words.layers}
        written, why = ran("benchmarks.gpt2_peers_worker", task, variables)
        found[peer] = written if why is None else {"failed": why}
    for peer, result in found.items():
        if "failed" in result:
            print(f"{peer}: {result['failed']}")
    ratios = [r for case in CASES if (r := told(case, found)) is not None]
    if ratios:
        print(f"geometric mean {exp(sum(map(log, ratios)) / len(ratios)):.2f}, {words.threads} threads")
    if (limits := found.get("caten", {}).get("limits")) is not None:
        least = limits["weights"] / limits["bandwidth"]
        print(f"a token reads {limits['weights'] / 1e6:.1f} MB, which takes {1e3 * least:.1f} ms at "
              f"{limits['bandwidth'] / 1e9:.1f} GB/s: caten {least / found['caten']['seconds'][CASES[-1]]:.0%} of that")
    if words.json is not None:
        words.json.write_text(json.dumps({"threads": words.threads, "peers": found}, indent=1))


def told(case: str, found: dict[str, dict[str, Any]]) -> float | None:
    """One line, and the best peer's time beside caten's."""
    own = found.get("caten", {})
    parts, times = [], []
    for peer, result in found.items():
        if "failed" in result:
            continue
        wanted, logits = own.get("logits", {}).get(case, []), result["logits"][case]
        differs = any(abs(a - b) > TOLERANCE * max(map(abs, wanted)) for a, b in zip(wanted, logits, strict=False))
        parts.append(f"{peer} {1e3 * result['seconds'][case]:.1f} ms{' DIFFERS' if differs else ''}")
        if peer != "caten" and not differs:
            times.append(result["seconds"][case])
    if not times or "seconds" not in own:
        print(f"{case}: {', '.join(parts)}")
        return None
    ratio: float = min(times) / own["seconds"][case]
    print(f"{case}: {', '.join(parts)}; {ratio:.2f}")
    return ratio


if __name__ == "__main__":
    main()
