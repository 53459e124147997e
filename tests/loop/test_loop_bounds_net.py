"""The net of run-time checks: on random loop nests, the checked program fails exactly when the unchecked one leaves an array."""
from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from caten.core.program import Program, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.loop import bounds_checks, check_hoisting
from caten.loop.simplify import simplify_program
from caten.loop.verifier import verify
from caten.semantics.interpret import run

SEEN: Counter[str] = Counter()
PARAMS = "(size M) (size N) (buffer X f32 (N) (0) inout) (buffer A f32 (M N) (0 1) in) (buffer I i64 (N) (0) in) (buffer Z f32 () () inout)"


def program(body: str) -> OpProgram:
    return resolve(read(f"(op net {PARAMS} (body {body}))")[0])    # type: ignore[no-any-return]


def random_body(rng: random.Random) -> tuple[str, str]:
    """A nest with one store that may leave X, and the same nest with a mark instead of the store."""
    names: list[str] = []
    heads: list[str] = []
    for name in ("i", "j", "p")[: rng.choice((1, 2, 2, 3))]:
        outer = rng.choice(names) if names else "1"
        lo = rng.choice(("0", "0", "0", "1", "-1", outer))
        hi = rng.choice(("N", "M", "M", "(- N 1)", "3", "(+ M 1)", "(min N M)", "(floordiv N 2)", f"(+ {outer} 1)"))
        step = rng.choice(("1", "1", "1", "2", "3"))
        if rng.random() < 0.15:
            lo, hi, step = f"(- {hi} 1)", f"(- {lo} 1)", rng.choice(("-1", "-2"))
            SEEN["falling loop"] += 1
        if outer in (lo, *hi.split()) and outer != "1":
            SEEN["triangular loop"] += 1
        heads.append(f"(for {name} {lo} {hi} {step} serial ")
        names.append(name)
    terms = [f"(* {rng.choice((-1, 1, 1, 1, 2))} {n})" for n in names if rng.random() < 0.7]
    place = str(rng.choice((-1, 0, 0, 1)))
    for t in terms:
        place = f"(+ {place} {t})"
    kind = rng.choice(("plain", "plain", "plain", "if", "where", "gather", "size", "counter", "let"))
    SEEN[kind] += 1
    before = after = ""
    match kind:
        case "if":
            before, after = f"(if (< {names[0]} {rng.choice(('M', '2', '(- N 1)'))}) (", "))"
        case "size":
            place = f"(+ {place} {rng.choice(('M', '(- M N)', '(- N M)'))})"
        case "gather":
            place = f"(aref I {place})"
        case "let":
            before, place = f"(let t i64 {place})", "(+ t 0)"
    value = marked = "1.0"
    if kind == "where":
        cond = f"(< {names[-1]} {rng.choice(('N', 'M', '2'))})"
        value, place, marked = f"(where {cond} (aref X {place}) 0.0)", "0", f"(where {cond} 1.0 (aref Z))"
        heads.insert(0, "(if (< 0 N) (")
        after += "))"
    done = "(incf (aref c) 1)" if kind == "counter" else ""
    if kind == "counter":
        place = "(aref c)"
    store, mark = f"(setf (aref X {place}) {value})", f"(setf (aref Z) {marked})"
    start = "(local c i64 () register) (setf (aref c) 0) " if kind == "counter" else ""
    closing = ")" * len(names)
    return tuple(start + "".join(heads) + before + s + done + after + closing for s in (store, mark))  # type: ignore[return-value]


def arguments(m: int, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"M": m, "N": n, "X": np.zeros(n, "f4"), "A": np.zeros((m, n), "f4"), "I": rng.integers(-1, n + 1, n), "Z": np.zeros((), "f4")}


def leaves_an_array(p: Program, args: dict[str, Any]) -> bool:
    try:
        run(p, args)
    except CatenError as problem:
        if problem.diagnostics[0].code != "E485":
            raise
        return True
    return False


def compare(seed: int) -> None:
    rng = random.Random(seed)
    body, marked = random_body(rng)
    unchecked, mark = program(body), program(marked)
    trials = [(m, n, s) for m in range(5) for n in range(5) for s in range(2 if "aref I" in body else 1)]
    try:
        checked = bounds_checks.add_checks(unchecked)
    except CatenError as refused:
        if refused.diagnostics[0].code != "E400":
            raise
        SEEN["refused"] += 1
        for trial in trials:
            args = arguments(*trial)
            runs = leaves_an_array(mark, args) or args["Z"] > 0
            assert not runs or leaves_an_array(unchecked, arguments(*trial)), f"seed {seed}: refused, but fine at {trial}: {body}"
        return
    verify(checked)
    simple = simplify_program(checked)
    verify(simple)
    SEEN["guard" if "fail" in show(checked) else "entry"] += 1
    for trial in trials:
        leaves = leaves_an_array(unchecked, arguments(*trial))
        for tried in (checked, simple):
            failed = run(tried, arguments(*trial))
            assert bool(failed) == leaves, f"seed {seed} at {trial}: left {leaves}, row {failed}:\n{body}\n{show(tried)}"
        SEEN["fails" if leaves else "passes"] += 1


def compare_all(count: int) -> None:
    for seed in range(count):
        compare(seed)


@pytest.mark.slow
def test_checks_fail_exactly_when_an_array_would_be_left(nightly: bool) -> None:
    SEEN.clear()
    compare_all(3000 if nightly else 100)
    print(dict(SEEN))
    for feature in ("falling loop", "triangular loop", "plain", "if", "where", "gather", "size", "counter", "let", "refused", "guard", "entry", "fails", "passes"):
        assert SEEN[feature], f"no random program had: {feature}"


def test_the_net_catches_a_check_that_is_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: conditions at entry ask for one element more than is used."""
    true_comparison = check_hoisting.comparison
    monkeypatch.setattr(check_hoisting, "comparison", lambda form: true_comparison(form.shifted(-1)))
    with pytest.raises((AssertionError, CatenError)):
        compare_all(60)


def test_the_net_catches_a_guard_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: every index counts as proven."""
    monkeypatch.setattr(bounds_checks, "is_inside", lambda context, position, extent: True)
    with pytest.raises((AssertionError, CatenError)):
        compare_all(60)
