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

from caten import attach
from caten.benchmarking import limits, timing
from caten.benchmarking.timing import Sample
from caten.errors import ToolError
from caten.options import Options, environment

from .peers import Call, Peer, caten_peer
from .problems import Problem
from .processes import wrote
from .workloads import WORKLOADS, Workload, sized

SHORT = 50e-6                  # seconds: of a call that is shorter, the kernel's own time is measured too
KERNEL = "caten kernel"        # the C function alone, beside the peers
FAR = 1.5                      # times the time of the best peer: of one that is slower, a few rounds are enough


class Log:
    """The file of results: what was measured so far, and `doing`, the workload and the peer that are next, either
    may be None; `complete`: was everything measured?"""

    def __init__(self, path: Path):
        self.path = path
        self.document: dict[str, Any] = {"versions": {}, "missing": {}, "rows": [], "doing": [None, None]}

    def doing(self, workload: str | None, peer: str | None) -> None:
        self.document["doing"] = [workload, peer]
        wrote(self.path, self.document)


def main() -> None:
    """The task: `peers`, `threads`, `only`, `seed` and `count` of drawn sizes, how to measure, `done` (workloads
    that were measured before), `failed` (by workload, why peers are not tried), `slow` (by workload, the peers that
    are left out)."""
    task, log = json.loads(Path(sys.argv[1]).read_text()), Log(Path(sys.argv[2]))
    if task["threads"] == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    peers = _peers(task["peers"], task["threads"], log)
    log.doing(None, None)
    if "caten" in log.document["versions"]:
        log.document |= _limits(task) | caten_peer.compiled_by(WORKLOADS[0].spec)
    for workload in sized(task["seed"], task["count"]):
        if re.search(task["only"], workload.name) and workload.name not in task["done"]:
            left_out = task["slow"].get(workload.name, ())
            log.document["rows"].append(_measured(workload, [p for p in peers if p.name not in left_out], task, log))
            _say(_line(log.document["rows"][-1]))
            gc.collect()
    log.document["complete"] = True                # what happens to a library when the process ends is of no interest
    log.doing(None, None)


def _limits(task: dict[str, Any]) -> dict[str, Any]:
    """What the machine can do in this run, in this process."""
    try:
        found = limits.measured(attach.runtime_of(Options(**environment())), task["threads"], timing.FEW, _plan(task))
    except ToolError as problem:
        return {"limits": None, "why": str(problem)}
    _say(found.line())
    return {"limits": found.as_json()}


def _plan(task: dict[str, Any]) -> timing.Plan:
    return timing.Plan(task["batch"], task["retakes"], task["cpu_time"])


def _peers(names: list[str], threads: int, log: Log) -> list[Peer]:
    found = []
    for name in names:
        log.doing(None, name)
        try:
            found.append(Peer(name, threads))
            log.document["versions"][name] = found[-1].version
        except Exception as problem:           # whatever an import of another package raises, the others are measured
            log.document["missing"][name] = _short(problem)
            _say(f"without {name}: {log.document['missing'][name]}")
    return found


def _measured(workload: Workload, peers: list[Peer], task: dict[str, Any], log: Log) -> dict[str, Any]:
    problem = workload.make()
    failed: dict[str, str] = task["failed"].get(workload.name, {})
    calls: dict[str, Call] = {}
    facts: dict[str, dict[str, Any]] = {name: {"failed": why} for name, why in failed.items()}
    for peer in peers:
        if (peer.name == "caten" or problem.kind in peer.calls) and peer.name not in failed:
            log.doing(workload.name, peer.name)
            fact = facts[peer.name] = _prepared(peer, workload, problem, calls)
            if "failed" in fact:
                _say(f"{workload.name}: {peer.name} {fact['failed']}")
    log.doing(workload.name, None)
    if "caten" in calls and min([_timed(calls["caten"]) for _ in range(5)]) < SHORT:
        calls[KERNEL], facts[KERNEL] = caten_peer.bound(workload.spec, problem), {}
    for name, taken in _rounds(calls, task).items():
        facts[name] |= {"seconds": [s.seconds for s in taken], "clean": [s.clean for s in taken]}
    return {"workload": workload.name, "odd": workload.odd, "flops": problem.flops, "bytes": problem.bytes,
            "peers": facts}


def _rounds(calls: dict[str, Call], task: dict[str, Any]) -> dict[str, list[Sample]]:
    """A few rounds of everybody, the others without those that are far behind the best peer."""
    first = min(task["rounds"], timing.FEW)
    samples = timing.rounds(calls, first, _plan(task))
    near = near_the_best({name: float(np.median(timing.accepted(taken))) for name, taken in samples.items()})
    for name, taken in timing.rounds({n: c for n, c in calls.items() if n in near}, task["rounds"] - first,
                                     _plan(task)).items():
        samples[name] += taken
    return samples


def near_the_best(times: dict[str, float]) -> set[str]:
    """caten, and the peers that may be the best, by their times."""
    own = {"caten", KERNEL}
    best = min([t for name, t in times.items() if name not in own], default=0.0)
    return {name for name, t in times.items() if name in own or t <= FAR * best}


def _prepared(peer: Peer, workload: Workload, problem: Problem, calls: dict[str, Call]) -> dict[str, Any]:
    """The call of a peer goes to `calls`, if its first result is right. -> its error, and the seconds until that
    first result; or why it failed."""
    start = time.perf_counter()
    try:
        call = caten_peer.called(workload.spec, problem) if peer.name == "caten" else peer.calls[problem.kind](problem)
        result = call()
        first = time.perf_counter() - start
        error = problem.error(result.numpy() if hasattr(result, "numpy") else np.asarray(result))
    except Exception as problem_of_it:         # a peer that cannot do this workload is left out of it
        return {"failed": _short(problem_of_it)}
    if not error <= problem.tolerance:
        return {"failed": "gives a wrong result", "error": error}
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
