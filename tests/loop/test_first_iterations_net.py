"""Random bodies in which a loop does something in its first iteration alone: the same results before and after that has moved before the loop."""
from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
from op_bodies import body_text, checked_program

from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.loop.accumulations import normalise
from caten.semantics import interpret

SPEC = '''[composite]
name = "W"
inputs = ["x{float}[6]", "k{int}[6]", "U{float}[M N]", "y{float}[P](where P > 6)", "c{int}[]"]
outputs = ["y"]
[implementation]
code = """%s"""
'''
NESTS = [("i",), ("i", "j"), ("j", "i"), ("i", "j", "l")]
SIZES = [{"M": 1, "N": 1}, {"M": 3, "N": 4}, {"M": 4, "N": 2}, {"M": 0, "N": 2}, {"M": 2, "N": 0}]
DAY, NIGHT = 120, 12_000


class Body:
    """A body: loops around statements that set, add to, or choose by the first iteration; most of one element."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.loops = rng, rng.choice(NESTS)
        self.element = self.target(self.loops)

    def text(self) -> str:
        return f"(set t 2) (set u 1) {self.nest(())} (setf (aref y 0) (+ (+ t u) (aref y 0)))"

    def nest(self, inside: tuple[str, ...]) -> str:
        parts = [self.statement(inside) for _ in range(self.rng.choice([0, 0, 0, 0, 1]) if len(inside) < len(self.loops) else self.rng.choice([1, 1, 2, 2, 3]))]
        if len(inside) == len(self.loops):
            return self.with_let(" ".join(parts), inside)
        loop = self.loops[len(inside)]
        bound = self.rng.choice(["M" if loop == "i" else "N"] * 4 + ([f"(+ {inside[-1]} 1)", "(aref k 1)"] if inside else []))
        parts.insert(self.rng.choice([0, len(parts)]), f"(dotimes ({loop} {bound}) {self.nest((*inside, loop))})")
        return " ".join(parts)

    def with_let(self, body: str, inside: tuple[str, ...]) -> str:
        return f"(let ((q {self.value(inside)})) {body.replace('(aref x 1)', 'q')})" if self.rng.random() < 0.3 else body

    def target(self, inside: tuple[str, ...]) -> str:
        return self.rng.choice(["t", "(aref y 0)", *[f"(aref y {loop})" for loop in inside], *[f"(aref y (aref k {loop}))" for loop in inside[:1]]])

    def loop_of(self, inside: tuple[str, ...], ref: str) -> str:
        """The loop whose first iteration is asked for: mostly one that the element is the same in."""
        others = [loop for loop in inside if f" {loop})" not in ref]
        return self.rng.choice(others if others and self.rng.random() < 0.8 else inside)

    def value(self, inside: tuple[str, ...]) -> str:
        return self.rng.choice(["0.0", "1.0", "(aref x 0)", "(aref x 1)", "(aref y 1)", "t", "u", *[f"(aref x {loop})" for loop in inside]])

    def statement(self, inside: tuple[str, ...]) -> str:
        usable = all(loop in inside for loop in self.loops if f" {loop})" in self.element)
        ref = self.element if usable and self.rng.random() < 0.9 else self.target(inside)
        value, other = self.value(inside), self.value(inside)
        if not inside:
            return setf(ref, value)
        cond = self.rng.choice(["(= {} 0)", "(= 0 {})", "(< {} 1)", "(> {} 0)", "(/= {} 0)", "(<= {} 0)", "(= {} 1)", "(<= {} c)"]).format(self.loop_of(inside, ref))
        return self.rng.choice([
            f"(when {cond} {setf(ref, value)})", f"(if {cond} {setf(ref, value)} (incf {ref} {value}))", f"(if {cond} (incf {ref} {value}) {setf(ref, value)})",
            setf(ref, f"(if {cond} {value} (+ {ref} {value}))"), setf(ref, f"(+ (if {cond} {value} {ref}) {other})"),
            setf(ref, f"(+ (if {cond} {ref} {value}) {other})"), setf(ref, f"(* (if {cond} {value} {ref}) {ref})"), f"(incf {ref} {value})",
            f"(set u {value})" if ref != "t" else "(incf u 1.0)", f"(if {cond} {setf(ref, value)} (incf {ref} {other}))"])


def setf(ref: str, value: str) -> str:
    return f"(set {ref} {value})" if ref == "t" else f"(setf {ref} {value})"


def outcome(op: OpProgram, sizes: dict[str, int]) -> tuple[int, np.ndarray]:
    """What a call returns, and the array that it updates. The numbers are small integers, whose sums are exact in any order."""
    given: dict[str, Any] = {**sizes, "P": 9, "x": np.arange(1, 7, dtype=np.float32), "k": np.array([2, 3, 2, 1, 0, 2]),
                             "U": np.zeros((sizes["M"], sizes["N"]), np.float32), "y": np.arange(10, 19, dtype=np.float32), "c": np.int64(0)}
    with np.errstate(all="ignore"):
        return interpret.run(op, given), given["y"]


def moved(seed: int) -> bool:
    """Compare one body with its normal form. Returns whether fewer conditions are left."""
    code = Body(Random(seed)).text()
    try:
        made = checked_program(SPEC % code)
    except CatenError:                                 # a name outside its loop
        return False
    normal = normalise(made)
    for sizes in SIZES:
        (code_before, before), (code_after, after) = outcome(made, sizes), outcome(normal, sizes)
        assert code_before == code_after, (seed, sizes, code)
        if code_before == 0:
            np.testing.assert_array_equal(after, before, err_msg=f"{seed} {sizes} {code}")
    return conditions(normal) < conditions(made)


def conditions(op: OpProgram) -> int:
    """The conditions in a body, but for those whether a loop runs at all."""
    return len(re.findall(r"\((if|where) (?!\(< 0 [MN(])", body_text(op)))


def test_random_bodies_keep_their_results(nightly: bool) -> None:
    count = NIGHT if nightly else DAY
    found = sum(map(moved, range(count)))
    assert found > count // 20
