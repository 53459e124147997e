"""The loop of the nets that mutate texts: what each becomes, and what must never come of it."""
from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from caten.errors import CatenError
from pace import slowness


def outcomes(seed: int, count: int, mutated: Callable[[random.Random], str], make: Callable[[str], None], *, seconds: float,
             exit_codes: tuple[int, ...] = (1,), never: str = "no code") -> tuple[Counter[str], list[str]]:
    """How often each code came of `make(mutated(…))`, and the faults: exceptions that are no diagnostics, diagnostics of other exit codes or whose
    codes begin with `never`, and what took more seconds of processor time, on a machine that is not slowed down."""
    rng, codes, faults = random.Random(seed), Counter[str](), []
    for n in range(count):
        text = mutated(rng)
        start = time.process_time()
        try:
            make(text)
            codes["ok"] += 1
        except CatenError as refusal:
            codes.update({d.code for d in refusal.diagnostics})
            if refusal.exit_code not in exit_codes or any(d.code.startswith(never) for d in refusal.diagnostics):
                faults.append(f"#{n}: {refusal} (exit {refusal.exit_code})\n{text}")
        except Exception as problem:       # the nets look for exactly these
            faults.append(f"#{n}: {type(problem).__name__}: {problem}\n{text}")
        if (took := time.process_time() - start) > seconds and took > seconds * slowness():
            faults.append(f"#{n}: took {took:.1f} s\n{text}")
    return codes, faults
