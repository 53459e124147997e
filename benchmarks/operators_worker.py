"""One operator of the library at three sizes, beside those who have it. `python -m benchmarks.operators` starts it."""
from __future__ import annotations

import json
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import caten
from caten import loading
from caten.benchmarking import timing
from caten.errors import CatenError
from caten.frontend import operator_library
from caten.frontend.generic_signature import tensors
from caten.frontend.op import OpProgram
from caten.options import Options
from caten.testing import data

from . import operator_peers, sampling
from .processes import wrote

SIZES = 3
SMALL = 64                     # extents below it stay as they are
TOLERANCE = 2e-3               # by which results may differ, as a part of the greatest element


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    entry = operator_library.entry_of(task["operator"])
    table = entry.table
    rows: list[dict[str, Any]] = []
    try:
        op = loading.load_programs(entry.spec, Options())[0]
        assert isinstance(op, OpProgram)
        for sizes in drawn_sizes(table, random.Random(f"{task['seed']} {entry.name}")):
            row: dict[str, Any] = {"sizes": sizes, "left_out": {}}
            row["seconds"] = times(entry.name, table, op, sizes, task, row["left_out"])
            rows.append(row)
            wrote(result, {"rows": rows})
    except (CatenError, MemoryError) as refused:
        wrote(result, {"rows": rows, "failed": str(refused).splitlines()[0]})


def drawn_sizes(table: Mapping[str, Any], draw: random.Random) -> Iterator[dict[str, int]]:
    """Sizes between a tenth of those of the spec and themselves, of all that are not small by the same factor."""
    known = list(table.get("bench", {}).get("sizes", {}).values())
    for n in range(SIZES if known else 0):
        base = known[n % len(known)]
        factor = 10 ** draw.uniform(-1, 0)
        yield {name: v if v < SMALL else max(SMALL, round(v * factor)) for name, v in base.items()}


def times(name: str, table: Mapping[str, Any], op: OpProgram, sizes: dict[str, int],
          task: Mapping[str, Any], left_out: dict[str, str]) -> dict[str, float]:
    """Seconds of each who gives caten's result. `left_out` gets the reasons of the others."""
    arguments = data.arguments(op, sizes, task["seed"])
    inputs = [arguments[t.name] for t in tensors(table["inputs"])]
    if name == "searchsorted":
        inputs[0].sort()                                   # what it asks for; all find the same there
    operator = getattr(caten.ops, name)
    expected = operator(*inputs)
    calls: dict[str, Callable[[], Any]] = {"caten": lambda: operator(*inputs)}
    for peer, made in operator_peers.calls(name, table, op, arguments, inputs):
        try:
            call = calls.get(peer) or made()
            if peer not in calls and agrees(call(), expected):
                calls[peer] = owning(call, inputs)
            elif peer not in calls:
                left_out[peer] = "has another result"
        except Exception as problem:                       # most have another signature
            left_out[peer] = f"{type(problem).__name__}: {problem}"[:200]
    plan = sampling.plan(dict(task))
    found = timing.rounds(calls, task["rounds"], plan)
    return {peer: median(timing.accepted(samples)) for peer, samples in found.items()}


def owning(call: Callable[[], Any], inputs: list[Any]) -> Callable[[], Any]:
    """The call, with a copy of a result that is a view of the inputs: caten's result is an array of its own."""
    made = call()
    found = made if isinstance(made, tuple | list) else (made,)
    if not any(np.may_share_memory(np.asarray(y), x) for y in found for x in inputs if isinstance(x, np.ndarray)):
        return call
    if len(found) > 1:
        return lambda: [each.clone() if hasattr(each, "clone") else each.copy() for each in call()]
    return lambda: call().clone() if hasattr(made, "clone") else call().copy()


def agrees(found: Any, expected: Any) -> bool:
    """Are two results, or tuples of them, the same but for rounding?"""
    ours = expected if isinstance(expected, tuple) else (expected,)
    theirs = tuple(found) if isinstance(found, tuple | list) else (found,)
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return False
        wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, b)]
        scale = np.max(np.abs(wide[0]), initial=1.0, where=np.isfinite(wide[0]))
        if not np.allclose(*wide, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            return False
    return True


if __name__ == "__main__":
    main()
