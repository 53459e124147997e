"""Dependence: answers by hand, and a net against running loops backwards."""
from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from caten.core.program import Program, resolve
from caten.core.text import read
from caten.loop import context, dependence
from caten.loop.dependence import (
    is_reduction_over,
    obstacle_to_fission,
    obstacle_to_merge,
    obstacle_to_parallel,
    obstacle_to_permutation,
)

PARAMS = """(size M) (size N) (size K) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)
  (buffer X f32 (N) (0) inout) (buffer I i64 (N) (0) in)"""


def program(body: str):
    return resolve(read(f"(loop t {PARAMS} (kernel t {body}))")[0])


def obstacle_to_reorder(whole: Program, outer: str, inner: str) -> str | None:
    loop, around = dependence.find_loop(whole, outer)
    chain = [loop.name]
    while chain[-1] != inner:
        chain.append(dependence.find_loop(whole, chain[-1])[0].body[0].name)
    return obstacle_to_permutation(loop, around, chain, [inner, *chain[1:-1], outer])


GEMM = program("(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))")


def test_gemm() -> None:
    assert obstacle_to_parallel(GEMM, "i") is None
    assert obstacle_to_parallel(GEMM, "j") is None
    assert obstacle_to_parallel(GEMM, "p") == "the loop over p is a reduction: every iteration accumulates into (aref C i j)"
    assert is_reduction_over(GEMM, "p")
    assert not is_reduction_over(GEMM, "i")
    assert [obstacle_to_reorder(GEMM, *pair) for pair in (("i", "j"), ("j", "p"), ("i", "p"))] == [None] * 3


@pytest.mark.parametrize(("body", "obstacle"), [
    ("(for i 1 N 1 serial (setf (aref X i) (aref X (- i 1))))",
     "one iteration of i writes (aref X i), and a later one reads (aref X (- i 1)), which may be the same element"),
    ("(for i 0 N 1 serial (setf (aref X i) (+ (aref X i) 1.0)))", None),
    ("(for i 0 (floordiv N 2) 1 serial (setf (aref X (* 2 i)) (aref X (+ (* 2 i) 1))))", None),
    ("(for i 0 N 2 serial (setf (aref X i) (aref X (+ i 1))))", None),
    ("(for i (- N 2) -1 -1 serial (setf (aref X i) (aref X (+ i 1))))",
     "one iteration of i writes (aref X i), and a later one reads (aref X (+ i 1)), which may be the same element"),
    ("(for i 0 N 1 serial (setf (aref X (aref I i)) 0.0))",
     "one iteration of i writes (aref X (aref I i)), and a later one writes (aref X (aref I i)), which may be the same element"),
    ("(for i 0 N 1 serial (incf (aref X (aref I i)) 1.0))", "the loop over i is a reduction: every iteration accumulates into (aref X (aref I i))"),
    ("(for i 0 N 1 serial (incf (aref X 0) 1.0) (incf (aref X 0) 2.0 max))",
     "one iteration of i writes (aref X 0), and a later one writes (aref X 0), which may be the same element"),
    ("(for i 0 N 1 serial (local t f32 () register) (setf (aref t) 0.0) (for j 0 M 1 serial (incf (aref t) (aref C j i))) (setf (aref X i) (aref t)))", None),
    ("(local t f32 () register) (for i 0 N 1 serial (setf (aref t) 0.0) (setf (aref X i) (aref t)))",
     "one iteration of i writes (aref t), and a later one writes (aref t), which may be the same element"),
    ("(for i 0 (floordiv N 8) 1 serial (setf (vref X 8 ((* 8 i))) (splat 8 0.0)))", None),
    ("(for i 0 (floordiv N 8) 1 serial (setf (vref X 8 ((* 4 i))) (splat 8 0.0)))",
     "one iteration of i writes (vref X 8 ((* 4 i))), and a later one writes (vref X 8 ((* 4 i))), which may be the same element"),
    ("(local t f32 (4 8) stack) (for i 0 (floordiv M 4) 1 serial (transpose (vref C 8 ((* 4 i) 0)) 0 (vref t 4 (0 0)) 0))", None),
    ("(local t f32 (4 8) stack) (for i 0 (floordiv M 4) 1 serial (transpose (vref C 8 ((* 3 i) 0)) 0 (vref t 4 (0 0)) 0))",
     "one iteration of i writes (vref C 8 ((* 3 i) 0)), and a later one writes (vref C 8 ((* 3 i) 0)), which may be the same element"),
    ("(for i 0 (* M N) 1 serial (setf (aref C (floordiv i N) (mod i N)) 0.0))", None),
    ("(for i 0 (* (floordiv M 4) (floordiv N 8)) 1 serial (let a i64 (floordiv i (floordiv N 8))) (let b i64 (mod i (floordiv N 8)))"
     "(for ii 0 4 1 serial (for jj 0 8 1 serial (setf (aref C (+ (* 4 a) ii) (+ (* 8 b) jj)) 0.0))))", None),
    ("(for j 0 (floordiv (* M N) 4) 1 serial (for i 0 4 1 serial (setf (aref C (floordiv (+ (* 4 j) i) N) (mod (+ (* 4 j) i) N)) 0.0)))", None),
    ("(for i 0 (* M N) 1 serial (setf (aref X (mod i N)) 0.0))",
     "one iteration of i writes (aref X (mod i N)), and a later one writes (aref X (mod i N)), which may be the same element"),
    ("(for i 0 (* M N) 1 serial (setf (aref C (floordiv i N) 0) 0.0))",
     "one iteration of i writes (aref C (floordiv i N) 0), and a later one writes (aref C (floordiv i N) 0), which may be the same element"),
    ("(for i 0 N 1 serial (if (= N 17) ((setf (aref X (- 16 i)) 0.0)) ((setf (aref X i) 0.0))))", None),
    ("(for i 0 N 1 serial (if (< (aref X i) 0.0) ((fail 1))))", "the loop over i contains a check that may end the call"),
])
def test_parallel_loops(body: str, obstacle: str | None) -> None:
    assert obstacle_to_parallel(program(body), "i") == obstacle


@pytest.mark.parametrize(("tile", "block", "lanes"), [(2048, 8, 8), (2048, 16, 8), (1024, 16, 4), (4096, 128, 32), (48, 12, 6)])
@pytest.mark.parametrize("early", [0, 1])
def test_tiles_are_apart_from_the_tails_of_later_tiles(tile: int, block: int, lanes: int, early: int) -> None:
    """The end of a tile is found by a quotient of what is left of the array, which is not negative in any tile. A tail that begins `early`, before
    its tile, is not apart."""
    left = f"(min (- M (* {tile} o)) {tile})"
    start = f"(* {block} (floordiv {left} {block}))"
    at = f"(+ (+ {start} (* {lanes} to)) ti)"
    text = f"""(loop t (size M) (buffer T f32 ((+ M 8) (+ M 8)) (0 1) inout) (kernel t
      (for o 0 (floordiv (+ M {tile - 1}) {tile}) 1 serial
        (for bo 0 (floordiv (- M 1) 8) 1 serial (for i 0 {left} 1 serial (incf (aref T 4 (+ (* {tile} o) i)) (aref T 5 (* 8 bo)))))
        (for b 0 (floordiv {left} {block}) 1 serial (for bi 0 {block} 1 serial
          (incf (aref T 4 (+ (+ (* {tile} o) (* {block} b)) bi)) (aref T 5 b))))
        (for to 0 (floordiv (+ (- {left} {start}) {lanes - 1}) {lanes}) 1 serial (for ti 0 {lanes} 1 serial
          (if (< {at} {left}) ((incf (aref T 4 (- (+ (* {tile} o) {at}) {early})) (aref T 5 to)))))))))"""
    assert (obstacle_to_parallel(resolve(read(text)[0]), "o") is None) == (not early)


@pytest.mark.parametrize(("early", "apart"), [(3, False), (4, True), (5, True), (6, False)])
def test_rows_whose_last_vector_begins_earlier_are_apart(early: int, apart: bool) -> None:
    """[M N] as one row, in vectors of 4: the last one of a row ends with it, or one before; N is at least 5 then."""
    rows = f"""(if (<= 4 N) ((for i 0 M 1 parallel
      (for j 0 (floordiv N 4) 1 serial (for l 0 4 1 serial (setf (aref Y (+ (+ (* i N) (* 4 j)) l)) (aref D i (+ (* 4 j) l)))))
      (if (< (* 4 (floordiv N 4)) N) ((for l 0 4 1 serial (setf (aref Y (+ (- (+ (* i N) N) {early}) l)) 0.0)))))))"""
    whole = resolve(read(f"""(loop t (size M) (size N) (buffer D f64 (M N) (0 1) in) (buffer Y f64 ((* M N)) (0) out)
      (ensure 1 (<= (* M N) 1099511627776)) (check 1 "large") (kernel t {rows}))""")[0])
    found = obstacle_to_parallel(whole, "i")
    assert (found is None) == apart, found


def test_reordering_is_refused_where_a_later_value_would_be_read_early() -> None:
    skewed = program("(for i 1 M 1 serial (for j 0 (- N 1) 1 serial (setf (aref C i j) (aref C (- i 1) (+ j 1)))))")
    assert obstacle_to_reorder(skewed, "i", "j") == (
        "one iteration of i and j writes (aref C i j), and a later one reads (aref C (- i 1) (+ j 1)), which may be the same element: they would change places")
    straight = program("(for i 1 M 1 serial (for j 1 N 1 serial (setf (aref C i j) (aref C (- i 1) (- j 1)))))")
    assert obstacle_to_reorder(straight, "i", "j") is None
    triangular = program("(for i 0 M 1 serial (for j 0 i 1 serial (setf (aref C i 0) 0.0)))")
    assert obstacle_to_reorder(triangular, "i", "j") == "the bounds of the loop over j depend on i"


def test_fission_and_fusion() -> None:
    fine = program("(for i 0 N 1 serial (setf (aref X i) 1.0) (incf (aref C 0 i) (aref X i)))")
    assert obstacle_to_fission(fine, "i", 1) is None
    ahead = program("(for i 0 (- N 1) 1 serial (setf (aref X i) 1.0) (setf (aref C 0 i) (aref X (+ i 1))))")
    assert obstacle_to_fission(ahead, "i", 1) == (
        "one iteration of i reads (aref X (+ i 1)), and a later one writes (aref X i), which may be the same element")
    named = program("(for i 0 N 1 serial (let t f32 (aref X i)) (setf (aref C 0 i) t))")
    assert obstacle_to_fission(named, "i", 1) == "'t' of the first part of the loop over i is used in the second part"
    guarded = program("(for i 0 N 1 serial (if (< N 3) ((fail 1))) (setf (aref X i) 1.0))")
    assert obstacle_to_fission(guarded, "i", 1) == "a check in the first part of the loop over i guards the second part"
    twice = "(for i 0 N 1 serial (setf (aref X i) 1.0)) (for j 0 N 1 serial (incf (aref C 0 j) (aref X {})))"
    assert obstacle_to_merge(program(twice.format("j")), "i", "j") is None
    assert "may be the same element" in str(obstacle_to_merge(program(twice.format("(- (- N 1) j)")), "i", "j"))
    other = program("(for i 0 N 1 serial (setf (aref X i) 1.0)) (for j 1 N 1 serial (incf (aref C 0 j) (aref X j)))")
    assert obstacle_to_merge(other, "i", "j") == "the loops over i and j have different bounds"
    checked = program("(for i 0 N 1 serial (if (< (aref X i) 0.0) ((fail 1)))) (for j 0 N 1 serial (setf (aref X j) 1.0))")
    assert obstacle_to_merge(checked, "i", "j") == "a check in the loop over i guards the loop over j"
    counted = "(local n i64 () register) (setf (aref n) 3) {} (for i 0 (aref n) 1 serial (setf (aref n) 2){})"
    after = program(counted.format("", ") (for j 0 (aref n) 1 serial (setf (aref n) 3)"))
    assert obstacle_to_merge(after, "i", "j") == "the bounds of the loop over j read what the loop over i writes"
    inside = program(counted.format("", " (setf (aref n) 1)"))
    assert obstacle_to_fission(inside, "i", 1) == "the bounds of the loop over i read what its first part writes"


def random_loop(rng: random.Random) -> tuple[str, list[tuple[int, int, str]]]:
    """A loop over i in [0, 6), its text and its subscripts a·i + b with what they do."""
    uses = [(rng.choice((-2, -1, 0, 1, 1, 2, 3)), rng.randint(0, 6), rng.choice(("w", "r", "+"))) for _ in range(rng.randint(1, 3))]
    spell = {"w": "(setf (aref Y (+ 12 (+ (* {a} i) {b}))) 0.0)", "+": "(incf (aref Y (+ 12 (+ (* {a} i) {b}))) 1.0)",
             "r": "(setf (aref Z i) (aref Y (+ 12 (+ (* {a} i) {b}))))"}
    return " ".join(spell[kind].format(a=a, b=b) for a, b, kind in uses), uses


def compare(seed: int) -> str:
    body, uses = random_loop(random.Random(seed))
    text = f"(loop t (buffer Y f32 (64) (0) inout) (buffer Z f32 (6) (0) inout) (kernel t (for i 0 6 1 serial {body})))"
    p = resolve(read(text)[0])
    strict = any(a * i + b == c * k + d and (kind != "r" or other != "r") and not kind == other == "+"
                 for a, b, kind in uses for c, d, other in uses for i in range(6) for k in range(6) if i != k)
    commuting = any(a * i + b == c * k + d and kind == other == "+" for a, b, kind in uses for c, d, other in uses for i in range(6) for k in range(6) if i != k)
    found = obstacle_to_parallel(p, "i")
    assert (found is not None) == (strict or commuting), f"seed {seed}: {body}: {found}"
    assert is_reduction_over(p, "i") == (commuting and not strict), f"seed {seed}: {body}"
    return "strict" if strict else "commuting" if commuting else "free"


def compare_all(count: int) -> Counter[str]:
    return Counter(compare(seed) for seed in range(count))


def test_every_conflict_of_two_iterations_is_found_and_no_other(nightly: bool) -> None:
    seen = compare_all(10_000 if nightly else 400)
    print(dict(seen))
    assert set(seen) == {"strict", "commuting", "free"}


def test_the_net_catches_a_lost_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a later iteration is taken to be at least two later."""
    true_before = dependence.before
    monkeypatch.setattr(dependence, "before", lambda loop, context: tuple(
        [dependence.Constraint(c.linear.shifted(-1), c.equal) for c in true_before(loop, context)]))
    with pytest.raises(AssertionError):
        compare_all(400)


# Every store asks what the `where` may be, that asks what its bounds may be, and so on in circles.
NESTED = """(loop t (size L) (size N) (size K) (size M) (buffer A i8 (L N) (0 1) in) (buffer B i32 (K) (0) in) (buffer C i8 (N K M) (0 1 2) out)
  (kernel t (for i (- N 1) -1 -1 serial (for j 1 K 2 serial (for k 0 M 1 serial
    (if (> (max (cast i8 j) 100:i8) (where (> (aref A (mod i L) (mod k N)) 0:i8) (cast i8 i) (cast i8 (aref B j)))) ((setf (aref C (min i N) (min j K) (min k M)) (cast i8 i)))))))))"""


def test_proofs_inside_proofs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[context.Context, tuple[Any, ...], bool, bool]] = []

    def counted(known: context.Context, goal: tuple[Any, ...], widely: bool = False) -> bool:
        answer = refuted(known, goal, widely)
        asked.append((known, goal, widely, answer))
        return answer
    refuted = context.refuted
    monkeypatch.setattr(context, "refuted", counted)
    nested = resolve(read(NESTED)[0])
    assert [obstacle_to_parallel(nested, name) for name in "ijk"] == [None] * 3
    assert 4 < len(asked) < 200
    for known, goal, widely, answer in asked[:80:2]:              # and what was asked before changes no answer
        assert refuted(replace(known, memo={}), goal, widely) == answer
