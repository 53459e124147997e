"""A net of mutated specs: whatever the text, loading ends in programs or in diagnostics, never in another exception."""
import random
from collections import Counter

from test_spec import ADD, ARANGE, CALLER, GEMM, IM2COL

from caten.errors import CatenError
from caten.frontend.spec import SpecText, load
from caten.options import Options

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


def survivors(seed, count, loader=load):
    """How often each code occurred, and the texts whose loading raised anything else."""
    rng, codes, failures = random.Random(seed), Counter(), []
    for _ in range(count):
        text = mutated(rng)
        try:
            loader(SpecText("f", text, "lisp" if text.startswith("(") else "toml"), Options())
            codes["ok"] += 1
        except CatenError as refusal:
            codes.update(d.code for d in refusal.diagnostics)
        except Exception as problem:       # the net looks for exactly these
            failures.append((text, problem))
    return codes, failures


def test_mutated_specs(nightly):
    codes, failures = survivors(seed := 1, 30_000 if nightly else 2_000)
    assert not failures, f"seed {seed}: {failures[0]!r}"
    assert codes["ok"] > 20
    assert len(codes) > 25


def test_the_net_catches_a_planted_fault():
    def faulty(source, options):
        source.text.split("outputs")[1]        # a loader that takes a key for granted
        return load(source, options)
    _, failures = survivors(1, 300, faulty)
    assert {type(problem) for _, problem in failures} == {IndexError}
