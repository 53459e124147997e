"""A net of mutated texts between the stages: whatever a person edits there, what comes out is C or diagnostics, soon."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from mutated_texts import OPTIONS, mutated, text_of, texts, tree_of

from caten import compiler
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec_files import SpecText
from mutations import outcomes

SECONDS = 3.0


@pytest.fixture(scope="module")
def originals() -> list[str]:
    return texts()


class InternalFailure(CatenError):
    exit_code = 4


def compiled(text: str) -> None:
    """To C, without a host compiler."""
    compiler.prepare([SpecText("text.lisp", text)], OPTIONS)


def found(originals: list[str], seed: int, count: int, make: Callable[[str], None] = compiled) -> tuple[Counter[str], list[str]]:
    return outcomes(seed, count, lambda rng: mutated(rng, originals), make, seconds=SECONDS, exit_codes=(1, 2))


def test_mutated_texts_through_the_pipeline(originals: list[str], nightly: bool) -> None:
    codes, faults = found(originals, seed := 5, 30_000 if nightly else 40)
    assert not faults, f"seed {seed}, {len(faults)} faults: {faults[0]}"
    assert codes["ok"] > 3, codes
    assert len(codes) > (5 if nightly else 3), codes


def test_texts_survive_the_net_unedited(originals: list[str]) -> None:
    assert [tree_of(text_of(tree_of(t))) for t in originals] == [tree_of(t) for t in originals]
    compiled(text_of(tree_of(originals[0])))


def test_the_net_catches_planted_faults(originals: list[str]) -> None:
    def takes_numbers_for_small(text: str) -> None:
        max([int(word) for word in re.findall(r"-?\d+", text)]).to_bytes(8, "little", signed=True)

    def fails_inside(text: str) -> None:
        raise InternalFailure(Diagnostic("E940", "an internal error"))
    _, faults = found(originals, 4, 600, takes_numbers_for_small)
    assert any("OverflowError" in f for f in faults)
    _, faults = found(originals, 1, 2, fails_inside)
    assert len(faults) == 2
