"""A net of mutated specs through the whole pipeline: whatever the text, what comes out is C or diagnostics of exit code 1, soon and in little memory."""
from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from caten import compiler
from caten.errors import error
from caten.frontend.spec_files import SpecText
from caten.options import Options
from growth import Growth
from mutations import outcomes
from pace import slowness

ROOT = Path(__file__).parent.parent
SAMPLES = [p.read_text("utf-8") for p in sorted((ROOT / "samples").glob("*.toml")) if p.stat().st_size < 2500]
SAMPLES += [p.read_text("utf-8") for p in sorted((ROOT / "tests" / "compat").glob("*.toml"))]
OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
WORDS = ("0", "1", "-1", "3", "7", "2.5", "1e30", "9" * 25, "i", "j", "M", "N", "K", "A", "X", "C", "(+ i 1)", "(- i 1)", "(* i 2)", "(floordiv i 2)", "(mod i 3)",
         "(aref X i)", "(aref A i j)", "(set a 0)", "(incf a 1)", "(if (< i 2) 1 0)", "(when (< i 3) ", "(loop (i 3 0 -1) ", "(dotimes (z 4) ", "(array T float (4))",
         "(cast int ", "(schedule (split i 4))", "(where ", "float", "int32", "double", "bool", "int", "nil", "t", "inf", "(exp ", "(sqrt ", "(max ", "(call Gemm ",
         "<1 0>", "(where M = N)", "setf", "incf", "maxcf", "[]", "[N N]", "[4]", "\n", '"', "=", "[[test.case]]", "~", "é", "\0")
SECONDS, MEGABYTES = 4.0, 512
PROOFS = 4.0                     # seconds


TOKENS = (re.compile(r"(?<![\w\"])[A-Za-z]\w*"), re.compile(r"\b\d+(?:\.\d+)?\b"), re.compile(r"(?<=\()(?:[-+*/<>=]+|max|min|floordiv|mod|and|or)(?= )"))


def mutated(rng: random.Random) -> str:
    """A sample with one to four random edits, many of them of one name, number or operator into another one, so that some still compile."""
    text = rng.choice(SAMPLES)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        kind = rng.choice(TOKENS)
        found = list(kind.finditer(text))
        start = rng.randrange(len(text) + 1)
        if rng.random() < 0.5 and found:
            one, other = rng.choice(found), rng.choice(found)
            text = text[:one.start()] + other[0] + text[one.end():]
            continue
        if rng.random() < 0.6:
            while start < len(text) and not text[start].isalnum():
                start += 1
            end = start
            while end < len(text) and text[end].isalnum():
                end += 1
        else:
            end = start + rng.choice((0, 0, 1, 1, 2, 5, 30))
        copied = text[rng.randrange(len(text)):][:rng.randint(1, 40)]
        text = text[:start] + rng.choice((*WORDS, "", "", copied, copied)) + text[end:]
    return text


def compiled(text: str) -> None:
    """To C, without a host compiler."""
    compiler.prepare([SpecText("f.toml", text)], OPTIONS)


def found(seed: int, count: int, make: Callable[[str], None] = compiled) -> tuple[Counter[str], list[str]]:
    return outcomes(seed, count, mutated, make, seconds=SECONDS, never="E48")        # a verifier's: the compiler broke the program


def test_mutated_specs_through_the_pipeline(nightly: bool) -> None:
    growth = Growth()
    codes, faults = found(seed := 3, 30_000 if nightly else 35)
    assert not faults, f"seed {seed}, {len(faults)} faults: {faults[0]}"
    assert codes["ok"] > 6, codes
    assert len(codes) > (10 if nightly else 7)
    assert growth.megabytes < MEGABYTES


def spec(body: str, inputs: str) -> str:
    return f'[composite]\nname = "T"\ninputs = [{inputs}, "X{{float}}[N]", "Y{{float}}[N]"]\noutputs = ["Y"]\n[implementation]\ncode = """{body}"""\n'


def nested(rng: random.Random, depth: int) -> str:
    """An index with choices inside choices."""
    if depth == 0:
        return rng.choice(("i", "j", "N", "M", str(rng.randint(-3, 9)), "(aref I i)"))
    fn = rng.choice(("min", "max", "mod", "floordiv", "where"))
    a, b = nested(rng, depth - 1), nested(rng, depth - 1)
    if fn == "where":
        return f"(where (< {nested(rng, depth - 1)} {nested(rng, depth - 1)}) {a} {b})"
    return f"({fn} {a} {rng.choice((2, 3, 4, 7)) if fn in ('mod', 'floordiv') and rng.random() < 0.6 else b})"


def deep(seed: int) -> str:
    index = nested(random.Random(seed), 4)
    return spec(f"(dotimes (i N) (dotimes (j M) (setf (aref Y i) (aref X {index}))))", '"A{float}[M N]", "I{int}[N]"')


IM2COL = (ROOT / "tests" / "compat" / "im2col.toml").read_text("utf-8")
SLOW = {                                      # they took from 3 s to 19 s
    "a counter's end as an index": IM2COL.replace("(aref col batch_n cth", "(aref col batch_n w_end"),
    "60 gathers in a loop": spec("(dotimes (i N) (setf (aref Y i) (+ " + " ".join(f"(aref X (aref I{k} i))" for k in range(60)) + ")))",
                                 ", ".join(f'"I{k}{{int}}[N]"' for k in range(60))),
    **{f"choices inside choices, {seed}": deep(seed) for seed in (2, 17, 74)},
}


@pytest.mark.slice(3)
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_proofs_end_soon(text: str) -> None:
    start = time.process_time()
    compiled(text)
    assert (took := time.process_time() - start) < PROOFS or took < PROOFS * slowness()


@pytest.mark.parametrize("seed", [62, 166])
def test_an_index_that_simplifies_differently_under_its_check_stays_as_it_was(seed: int) -> None:
    compiled(deep(seed))                      # the verifier could not tell that both are the same


def test_the_net_catches_planted_faults() -> None:
    def takes_a_key_for_granted(text: str) -> None:
        text.split("requirements")[1]

    def breaks_a_program(text: str) -> None:
        raise error("E483", "an access is not shown to be inside")
    _, faults = found(1, 40, takes_a_key_for_granted)
    assert any("IndexError" in f for f in faults)
    _, faults = found(1, 2, breaks_a_program)
    assert len(faults) == 2
