"""A net of mutated specs: whatever the text, loading ends in programs or in diagnostics, never in another exception."""
import pytest
from test_spec import ARANGE, GEMM, IM2COL
from test_spec_files import CALLER
from test_spec_one_line import ADD

from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.options import Options
from mutations import outcomes

SECONDS = 2.0
TEXTS = (GEMM, ARANGE, IM2COL, CALLER, ADD, GEMM + "[[test.case]]\nsizes = {M = 1}\ntags = ['a']\n[schedule]\ncode = '(schedule (split i 6 pad))'\n")
PIECES = ('"', "'''", '"""', *"[]{}()<>=~-\\\n,.\0é0#", "9" * 30, "where", "inf", "M", "true", "[[composite]]", "[test]", "1.5", "and", "\\u0041", "\\\n  ",
          "(if ", "(let ((x ", "(aref A ", "(call Gemm A)", "{T}", "half", "nil", "1e999", ";")


def mutated(rng):
    """A spec with one to three random edits."""
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        copied = text[rng.randrange(len(text)):][:rng.randint(1, 30)]
        text = text[:start] + rng.choice((*PIECES, "", "", copied)) + text[start + rng.choice((0, 0, 1, 1, 3, 10, 40)):]
    return text


def loaded(text):
    load(SpecText("f", text, "lisp" if text.startswith("(") else "toml"), Options())


@pytest.mark.slow
def test_mutated_specs(nightly):
    codes, faults = outcomes(seed := 1, 30_000 if nightly else 2_000, mutated, loaded, seconds=SECONDS)
    assert not faults, f"seed {seed}, {len(faults)} faults: {faults[0]}"
    assert codes["ok"] > 20
    assert len(codes) > 25


def test_the_net_catches_a_planted_fault():
    def faulty(text):
        text.split("outputs")[1]               # a loader that takes a key for granted
        loaded(text)
    _, faults = outcomes(1, 500, mutated, faulty, seconds=SECONDS)
    assert any("IndexError" in f for f in faults)
