"""One process of the side-by-side: some peers on some workloads, interleaved. `python -m benchmarks` starts it."""
from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from caten import pipeline
from caten.bench import limits, timing
from caten.errors import ToolError
from caten.options import Options, environment

from .peers import Call, Peer, caten_peer
from .problems import Problem
from .workloads import WORKLOADS, Workload

SHORT = 50e-6                  # seconds: of a call that is shorter, the kernel's own time is measured too
KERNEL = "caten kernel"        # the C function alone, beside the peers


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if task["threads"] == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    peers, missing = _peers(task["peers"], task["threads"])
    rows: list[dict[str, Any]] = []
    about: dict[str, Any] = {"versions": {p.name: p.version for p in peers}, "missing": missing}
    if "caten" in about["versions"]:
        about |= _limits(task) | caten_peer.compiled_by(WORKLOADS[0].spec)
    for workload in WORKLOADS:
        if re.search(task["only"], workload.name):
            rows.append(_measured(workload, peers, task))
            _say(_line(rows[-1]))
            gc.collect()
            result.write_text(json.dumps(about | {"rows": rows}))


def _limits(task: dict[str, Any]) -> dict[str, Any]:
    """What the machine can do in this run, in this process."""
    try:
        found = limits.measured(pipeline.runtime_of(Options(**environment())), task["threads"], timing.FEW, _plan(task))
    except ToolError as problem:
        return {"limits": None, "why": str(problem)}
    _say(found.line())
    return {"limits": found.as_json()}


def _plan(task: dict[str, Any]) -> timing.Plan:
    return timing.Plan(task["batch"], task["retakes"], task["cpu_time"])


def _peers(names: list[str], threads: int) -> tuple[list[Peer], dict[str, str]]:
    found, missing = [], {}
    for name in names:
        try:
            found.append(Peer(name, threads))
        except Exception as problem:           # whatever the import of somebody else's package raises, the others are measured
            missing[name] = _short(problem)
            _say(f"without {name}: {missing[name]}")
    return found, missing


def _measured(workload: Workload, peers: list[Peer], task: dict[str, Any]) -> dict[str, Any]:
    problem = workload.make()
    calls, facts = {}, {}
    for peer in peers:
        if peer.name == "caten" or problem.kind in peer.calls:
            fact = facts[peer.name] = _prepared(peer, workload, problem, calls)
            if "failed" in fact or fact["error"] > problem.tolerance:
                _say(f"{workload.name}: {peer.name} {fact.get('failed') or 'gives a wrong result'}")
    if "caten" in calls and min([_timed(calls["caten"]) for _ in range(5)]) < SHORT:
        calls[KERNEL], facts[KERNEL] = caten_peer.bound(workload.spec, problem), {}
    samples = timing.rounds(calls, task["rounds"], _plan(task))
    for name, taken in samples.items():
        facts[name] |= {"seconds": [s.seconds for s in taken], "clean": [s.clean for s in taken]}
    return {"workload": workload.name, "odd": workload.odd, "flops": problem.flops, "bytes": problem.bytes, "peers": facts}


def _prepared(peer: Peer, workload: Workload, problem: Problem, calls: dict[str, Call]) -> dict[str, Any]:
    """The call of a peer goes to `calls`, if its first result is right. -> its error, and the seconds until that first result."""
    start = time.perf_counter()
    try:
        call = caten_peer.called(workload.spec, problem) if peer.name == "caten" else peer.calls[problem.kind](problem)
        result = call()
        first = time.perf_counter() - start
        error = problem.error(result.numpy() if hasattr(result, "numpy") else np.asarray(result))
    except Exception as problem_of_it:         # a peer that cannot do this workload is left out of it
        return {"failed": _short(problem_of_it)}
    if error <= problem.tolerance:
        calls[peer.name] = call
    return {"error": error, "first": first}


def _timed(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _line(row: dict[str, Any]) -> str:
    medians = {n: float(np.median([s for s, c in zip(f["seconds"], f["clean"], strict=True) if c] or f["seconds"]))
               for n, f in row["peers"].items() if "seconds" in f}
    listed = "  ".join([f"{n} {medians[n] * 1e3:.4g}" for n in sorted(medians, key=medians.__getitem__)])
    clean = [c for f in row["peers"].values() for c in f.get("clean", ())]
    own = medians.pop("caten", None)
    medians.pop(KERNEL, None)
    ratio = f"{min(medians.values()) / own:5.2f}" if own and medians else "    -"
    return f"{row['workload']:28} {ratio}  [{sum(clean)}/{len(clean)} clean]  ms: {listed}"


def _short(problem: Exception) -> str:
    return (f"{type(problem).__name__}: {problem}".splitlines() or [""])[0][:200]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
