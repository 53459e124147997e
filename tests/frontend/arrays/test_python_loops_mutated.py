"""Programs in Python with loops, changed at random: caten refuses one with a diagnostic, or computes what Python computes."""
from __future__ import annotations

import ast
import random
import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from python_programs import PROGRAMS, PythonProgram
from test_python_loops import arrays_of, by_python, sizes_of, spec

from caten import driver, loading
from caten.errors import CatenError
from caten.frontend.arrays import python_memory
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.semantics import interpret

NIGHTLY, SLICE = 3000, 30
WORDS = {"for", "in", "range", "if", "else", "elif", "and", "or", "not", "def", "return", "lambda", "pass", "np"}
TOKEN = re.compile(r"\n\s*|[A-Za-z_]\w*|\d+\.?\d*|[^\w\s]+|[ ]")
LEVELS = [Options(runtime="gcc", opt=opt) for opt in (0, 2)]
SAME_SHAPE = [p for p in PROGRAMS.values() if "half" not in p.inputs]


def kind(token: str) -> int:
    """Names, numbers and operators are exchanged with their like."""
    if token in WORDS or not token.strip():
        return 0
    return 1 if token[0].isalpha() or token[0] == "_" else 2 if token[0].isdigit() else 3 if token[0] not in "()[]{}:,." else 0


def mutated(seed: int) -> PythonProgram:
    rng = random.Random(seed)
    program = rng.choice(SAME_SHAPE)
    tokens = TOKEN.findall(program.code)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice([n for n, token in enumerate(tokens) if kind(token)])
        tokens[at] = rng.choice([token for token in TOKEN.findall(program.code) if kind(token) == kind(tokens[at])])
    return program._replace(code="".join(tokens))


def outcomes(program: PythonProgram, seed: int) -> list[str]:
    """What becomes of a program at each level: `refused`, `fails`, `same`, or `different`. A call may fail where Python fails, or has other shapes."""
    try:
        made = [driver.advance(loading.load_programs(SpecText("t.toml", spec("P", program), "toml"), own)[0], "loop", own) for own in LEVELS]
    except CatenError as problem:
        return ["refused" if all(d.place for d in problem.diagnostics) else "refused without a place"]
    sizes = sizes_of(program)
    given = arrays_of(program.inputs, sizes, seed)
    outputs = {n: np.zeros_like(a) for each in program.outputs.split(";") if "{" in each for n, a in arrays_of(each, sizes).items()}
    try:
        expected = by_python(program, given, outputs, sizes)
    except (AttributeError, IndexError, ValueError, TypeError, NameError, ArithmeticError):
        return ["Python fails"]
    found = []
    for level in made:
        values: dict[str, Any] = {n: a.copy() for n, a in given.items()} | {n: np.array(a + 7, a.dtype) for n, a in outputs.items()} | sizes
        if interpret.run(level, values):
            found.append("fails")
            continue
        names = [each.split("{")[0].strip() for each in program.outputs.split(";")]
        found.append("same" if all(np.allclose(np.asarray(values[n], float), np.asarray(e, float), rtol=2e-3, atol=2e-3, equal_nan=True)
                                   for n, e in zip(names, expected, strict=True)) else "different")
    return found


@pytest.mark.slow
def test_mutated_programs(nightly: bool) -> None:
    seen, different = Counter[str](), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                             # of numpy, and of Python about texts
        for seed in range(NIGHTLY if nightly else SLICE):
            found = outcomes(program := mutated(seed), seed)
            seen.update(found)
            if "different" in found:
                different.append(f"seed {seed}, {found}:\n{program.code}")
    print(dict(seen))
    assert not different, "\n".join(different)
    assert seen["same"] > 0.5 * sum(seen.values()) - seen["refused"]
    assert seen["fails"] < 0.05 * seen["same"]
    assert seen["refused"] > 0
    assert not seen["refused without a place"]


def test_a_difference_that_is_added_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(python_memory.ACCUMULATIONS, ast.Sub, ("add", False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcomes(PROGRAMS["lu"], 0) == ["different", "different"]
