"""Bodies with words changed at random are accepted or refused; nothing else happens, and what is accepted is
well formed and read back as it was printed."""
from __future__ import annotations

import random
import re

import pytest
from lowering import composite, library, lowered

from caten.core.program import Size, Unchecked, resolve
from caten.core.text import read, show
from caten.errors import CatenError, Diagnostic
from caten.frontend.composite import Composite
from caten.frontend.op import Body, OpProgram
from caten.frontend.spec import parameter
from caten.loop.verifier import verify

INPUTS = "X{float}[N]; A{float}[M N]; s{float}[]; J{int32}[N]; K{int8}[N]; B{bool}[N]; D{double}[N]; Z{complex64}[N]"
BODIES = [
    "(dotimes (i N) (set a 0) (dotimes (j M) (incf a (* (aref A j i) (aref X i)))) (setf (aref Y i) (where (< i 3) a 0.5)))",
    "(let ((h 0.5) (k (+ N 1))) (loop (i (- N 1) -1 -1) (when (and (< i k) (aref B i)) (setf (aref Y i) (/ (sqrt (aref X i)) h)))))",
    "(array T float (N 4)) (dotimes (i N) (cond ((= i 1) (setf (aref T i 0) (aref X (aref J i)))) (t (maxcf (aref T i 1) (cast float (aref K i))))) "
    "(setf (aref Y i) (- (aref T i 0))))",
    "(call Relu X Y) (dotimes (i N) (unless (isnan (aref D i)) (decf (aref Y i) (abs (aref Z i))) (progn (mulcf (aref Y i) 2) (divcf (aref Y i) pi))))",
]
RELU = composite("(dotimes (i K) (setf (aref O i) (max (aref A i) 0)))", "A{float}[K]", "O{float}[K]", "Relu")
TOKEN = re.compile(r"[()]|[^\s()]+")


def mutated(code: str, words: list[str], rng: random.Random) -> str:
    tokens = TOKEN.findall(code)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0: tokens[at] = rng.choice(words)
            case 1: tokens.insert(at, rng.choice(words))
            case 2: tokens.pop(at)
            case 3: tokens[at], tokens[at - 1] = tokens[at - 1], tokens[at]
            case 4: tokens = tokens[:at] + TOKEN.findall(rng.choice(BODIES))[:rng.randrange(30)] + tokens[at:]
    opened = tokens.count("(") - tokens.count(")")
    return " ".join(tokens + [")"] * opened)


def program(code: str) -> OpProgram:
    main: Composite = composite(code, INPUTS)
    clauses = (*[parameter(t) for t in main.tensors], *map(Size, main.sizes), Unchecked(), Body(lowered(code, INPUTS, lookup=library(RELU)).stmts))
    return OpProgram("Main", clauses)


@pytest.mark.slow
def test_mutated_bodies(nightly: bool) -> None:
    rng = random.Random(7)
    words = sorted({t for body in BODIES for t in TOKEN.findall(body)} | {
        "1", "2.5", "nil", "t", "inf", "1e400", "99999999999999999999", '"x"', "let", "set", "int8"})
    accepted = refused = 0
    diagnostics: list[Diagnostic] = []
    count = 30_000 if nightly else 1500
    for _ in range(count):
        code = mutated(rng.choice(BODIES), words, rng)
        try:
            op = program(code)
        except CatenError as problem:
            refused += 1
            diagnostics.extend(problem.diagnostics)
        else:
            accepted += 1
            verify(op)                     # every operand has the type that it must have
            assert resolve(read(show(op))[0]) is op, code
    assert all(d.place is not None and d.code < "E48" for d in diagnostics)
    assert accepted > count // 25
    assert refused > 2 * count // 5
