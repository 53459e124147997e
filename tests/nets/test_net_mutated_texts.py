"""A net of mutated texts between the stages: whatever a person edits there, what comes out is C or diagnostics, soon."""
from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable

import pytest
from mutated_texts import OPTIONS, mutated, text_of, texts, tree_of

from caten import build
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec import SpecText

SECONDS = 3.0


@pytest.fixture(scope="module")
def originals() -> list[str]:
    return texts()


class InternalFailure(CatenError):
    exit_code = 4


def compiled(text: str) -> None:
    """To C, without a host compiler."""
    build.prepare([SpecText("text.lisp", text)], OPTIONS)


def outcomes(originals: list[str], seed: int, count: int, make: Callable[[str], None] = compiled) -> tuple[Counter[str], list[str]]:
    """How often each code came, and what must not happen: other exceptions, other exit codes than 1 and 2, too much time."""
    rng, codes, faults = random.Random(seed), Counter[str](), []
    for n in range(count):
        text = mutated(rng, originals)
        start = time.process_time()
        try:
            make(text)
            codes["ok"] += 1
        except CatenError as refusal:
            codes.update({d.code for d in refusal.diagnostics})
            if refusal.exit_code not in (1, 2):
                faults.append(f"#{n}: {refusal} (exit {refusal.exit_code})\n{text}")
        except Exception as problem:       # the net looks for exactly these
            faults.append(f"#{n}: {type(problem).__name__}: {problem}\n{text}")
        if (took := time.process_time() - start) > SECONDS:
            faults.append(f"#{n}: took {took:.1f} s\n{text}")
    return codes, faults


def test_mutated_texts_through_the_pipeline(originals: list[str], nightly: bool) -> None:
    codes, faults = outcomes(originals, seed := 5, 30_000 if nightly else 700)
    assert not faults, f"seed {seed}, {len(faults)} faults: {faults[0]}"
    assert codes["ok"] > 40, codes
    assert len(codes) > 5, codes


def test_texts_survive_the_net_unedited(originals: list[str]) -> None:
    assert [tree_of(text_of(tree_of(t))) for t in originals] == [tree_of(t) for t in originals]
    compiled(text_of(tree_of(originals[0])))


def test_the_net_catches_planted_faults(originals: list[str]) -> None:
    def takes_numbers_for_small(text: str) -> None:
        max([int(word) for word in re.findall(r"-?\d+", text)]).to_bytes(8, "little", signed=True)

    def fails_inside(text: str) -> None:
        raise InternalFailure(Diagnostic("E940", "an internal error"))
    _, faults = outcomes(originals, 1, 10_000, takes_numbers_for_small)
    assert any("OverflowError" in f for f in faults)
    _, faults = outcomes(originals, 1, 2, fails_inside)
    assert len(faults) == 2
