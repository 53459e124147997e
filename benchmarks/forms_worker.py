"""One group of forms: compiled, checked, measured. `python -m benchmarks.forms` starts it."""
from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import caten
from caten.benchmarking import timing

from . import sampling
from .forms import GROUPS, Form
from .peers import Call
from .processes import wrote

TOLERANCE = 2e-5               # of the greatest element of a result


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    facts: dict[str, dict[str, Any]] = {}
    calls: dict[str, Call] = {}
    for form in [form for form in GROUPS[task["group"]] if form.title in task["forms"]]:
        facts[form.title] = _prepared(form, calls)
        wrote(result, {"forms": facts})
    plan = sampling.plan(task)
    for title, samples in timing.rounds(calls, task["rounds"], plan).items():
        facts[title]["seconds"] = [s.seconds for s in samples]
    wrote(result, {"forms": facts})


def _prepared(form: Form, calls: dict[str, Call]) -> dict[str, Any]:
    """The call of a form goes to `calls`, if its result is right."""
    given, name, reference = form.make()
    wanted = reference(*[np.asarray(x, np.float64) for n, x in given.items() if not form.sets or n != name])
    try:
        call: Call = caten.compile(form.spec).bind(**{"out" if form.sets and n == name else n: x
                                                      for n, x in given.items()}, **form.sizes)
        call()
    except caten.CatenError as refused:
        return {"failed": refused.diagnostics[0].message}
    if not np.max(np.abs(given[name] - wanted)) <= TOLERANCE * np.max(np.abs(wanted)):
        return {"failed": "gives a wrong result"}
    calls[form.title] = call
    return {}


if __name__ == "__main__":
    main()
