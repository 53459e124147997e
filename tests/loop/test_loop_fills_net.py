"""The net of fills: on random bodies, an output that is said to be set everywhere is, and one that is refused never is."""
from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from caten.core.program import Buffer, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.loop import store_coverage
from caten.loop.zero_fill import fill_outputs
from caten.semantics.interpret import run

SHAPES = ("N", "N", "(* 2 M)", "(+ M N)", "(* 4 M)", "(* M N)", "4", "(+ N 1)")
CONDITIONS = ("(< {i} M)", "(< {i} 2)", "(>= {i} 2)", "(= {i} 0)", "(/= {i} 0)", "(= (mod {i} 2) 0)", "(/= (mod {i} 2) 0)", "(< (aref x 0) 0.5)",
              "(< (aref x (min {i} 1)) 0.5)", "(< M N)", "(>= M N)")


def program(shape: str, body: str) -> OpProgram:
    params = f"(size M) (size N) (buffer x f32 (2) (0) in) (buffer y f32 ({shape}) (0) out)"
    return resolve(read(f"(op net {params} (body {body}))")[0])    # type: ignore[no-any-return]


class Bodies:
    """Makes statements that set y or read it, each with loops of its own."""

    def __init__(self, rng: random.Random, shape: str):
        self.rng, self.shape, self.loops = rng, shape, 0

    def loop(self) -> tuple[str, str]:
        self.loops += 1
        name, e = f"i{self.loops}", self.shape
        heads = [f"0 {e} 1", f"0 {e} 1", f"0 {e} 1", "0 M 1", "0 N 1", f"1 {e} 1", f"0 (- {e} 1) 1", f"(- {e} 1) -1 -1", f"0 {e} 2", f"1 {e} 2",
                 f"0 (floordiv {e} 2) 1", f"(floordiv {e} 2) {e} 1", f"0 (min {e} 2) 1", f"2 {e} 1", f"0 (floordiv {e} 4) 1",
                 f"(* 4 (floordiv {e} 4)) {e} 1"]
        return name, self.rng.choice(heads)

    def place(self, names: list[str]) -> str:
        i, e = names[-1], self.shape
        outer = names[-2] if len(names) > 1 else i
        return self.rng.choice([i, i, i, i, f"(- (- {e} 1) {i})", f"(* 2 {i})", f"(+ (* 2 {i}) 1)", f"(+ (* 2 {outer}) {i})", f"(+ (* 4 {outer}) {i})",
                                f"(+ (* N {outer}) {i})", "0", f"(+ {i} 1)", f"(+ {i} M)", f"(floordiv {i} 2)"])

    def store(self, names: list[str]) -> str:
        value = "1.0"
        if self.rng.random() < 0.25:
            value = f"(+ (aref y {self.place(names)}) 1.0)"
            if self.rng.random() < 0.5:
                value = f"(where {self.condition(names)} {value} 2.0)"
        place = self.place(names)
        if self.rng.random() < 0.1:
            return f"(incf (aref y {place}) 1.0)"
        return f"(setf (aref y {place}) {value})"

    def condition(self, names: list[str]) -> str:
        return self.rng.choice(CONDITIONS).format(i=names[-1])

    def leaf(self, names: list[str]) -> str:
        store = self.store(names)
        match self.rng.random():
            case r if r < 0.15:
                return f"(if {self.condition(names)} ({store}))"
            case r if r < 0.3:
                return f"(if {self.condition(names)} ({store}) ({self.store(names)}))"
            case r if r < 0.4:
                return f"{store} {self.store(names)}"
            case r if r < 0.45:
                self.loops += 1
                return f"(let t{self.loops} i64 (+ {names[-1]} 0)) {self.store([*names, f't{self.loops}'])}"
        return store

    def statement(self) -> str:
        name, head = self.loop()
        if self.rng.random() < 0.35:
            inner = self.rng.choice((f"0 {name} 1", "0 2 1", "0 4 1", "0 N 1", f"{name} {self.shape} 1", "0 3 1"))
            self.loops += 1
            return f"(for {name} {head} serial (for j{self.loops} {inner} serial {self.leaf([name, f'j{self.loops}'])}))"
        return f"(for {name} {head} serial {self.leaf([name])})"


def random_program(rng: random.Random) -> OpProgram:
    shape = rng.choice(SHAPES)
    bodies = Bodies(rng, shape)
    return program(shape, " ".join([bodies.statement() for _ in range(rng.choice((1, 2, 2, 3)))]))


def nothing_left(op: OpProgram, m: int, n: int, x: float) -> bool | None:
    """Does a run from poison leave no element poisoned? None where it leaves the array, or where there are no elements."""
    extent = {"N": n, "(* 2 M)": 2 * m, "(+ M N)": m + n, "(* 4 M)": 4 * m, "(* M N)": m * n, "4": 4, "(+ N 1)": n + 1}[
        show(op.all(Buffer)[1].shape[0])]
    y = np.full(extent, np.nan, np.float32)
    try:
        run(op, {"M": m, "N": n, "x": np.array([x, 1 - x], np.float32), "y": y})
    except CatenError:
        return None
    return None if not extent else not np.isnan(y).any()


def said(op: OpProgram) -> str:
    try:
        return "set" if fill_outputs(op) is op else "filled"
    except CatenError as problem:
        return "refused" if [d.code for d in problem.diagnostics] == ["E403"] else str(problem)


def faults(seed: int, count: int, seen: Counter[str], every: bool = True) -> list[str]:
    rng, found = random.Random(seed), []
    for _ in range(count):
        op = random_program(rng)
        answer = said(op)
        runs = [r for m in range(4) for n in range(5) for x in (0.0, 1.0) if (r := nothing_left(op, m, n, x)) is not None]
        seen[answer] += 1
        seen["filled without need"] += answer == "filled" and len(runs) > 15 and all(runs)
        if (answer == "set" and not all(runs)) or (answer == "refused" and any(runs)) or answer not in ("set", "filled", "refused"):
            found.append(f"{answer}: {show(op)}")
            if not every:
                break
    return found


@pytest.mark.slow
def test_what_is_said_to_be_set_is_and_what_is_refused_never_is(nightly: bool) -> None:
    seen: Counter[str] = Counter()
    assert not faults(7, 4000 if nightly else 250, seen)
    assert min(seen["set"], seen["filled"], seen["refused"]) > 10, seen
    assert seen["filled without need"] < seen["filled"] // 20, seen            # where every read of garbage is overwritten, for example


@pytest.mark.parametrize(("where", "wrong"), [
    ("conditions", lambda store, element: []),                                                       # every store covers everything
    ("without", lambda context, fact: []),                                                           # what one store leaves out needs no other
])
def test_the_net_catches_a_proof_that_says_yes_wrongly(monkeypatch: pytest.MonkeyPatch, where: str, wrong: object) -> None:
    monkeypatch.setattr(store_coverage, where, wrong)
    assert faults(7, 200, Counter(), every=False)


def test_the_net_catches_a_limit_that_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    right = store_coverage.conditions
    monkeypatch.setattr(store_coverage, "conditions", lambda store, element: (facts := right(store, element)) and [f for f in facts if f[0] != ">="])
    assert faults(7, 200, Counter(), every=False)
