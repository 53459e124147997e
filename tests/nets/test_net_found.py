"""Specs on which the random nets once found a fault, as they were shrunk: they stay right."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compared_specs import case_of, loaded
from spec_batches import faults_in
from spec_forms import ALL_WORDS, RandomSpec, Tensor

from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.semantics import interpret
from caten.testing import isolate

LANES = RandomSpec(
    "ReadsALocalInAnIndex", (), (Tensor("C", "i32", ("N",), (0,)), Tensor("D", "i64", ("N",), (0,))),
    (("dotimes", ("i", "N"), ("set", "x", ("+", "i", "2")), ("setf", ("aref", "C", "i"), ("cast", "int32", ("cast", "uint32", "x")))),
     ("dotimes", ("j", "N"), ("set", "y", "1"), ("let", (("z", ("+", "j", "y")),), ("set", "y", "5"), ("setf", ("aref", "D", "j"), "z")))),
    (("N", 19),), 0)


WHILE_SUMMED = RandomSpec(
    "SumsWhatItOverwrites", (Tensor("A", "i32", ("N", "5"), (0, 1)),), (Tensor("A", "i32", ("N", "5"), (0, 1)),),
    (("dotimes", ("i", "N"), ("dotimes", ("j", "5"), ("set", "x", "1"),
                              ("dotimes", ("k", "7"), ("incf", "x", ("aref", "A", "i", "j"))), ("setf", ("aref", "A", "i", "j"), "x"))),),
    (("N", 3),), 1)
GREATEST = RandomSpec(
    "GreatestOfWhatItOverwrites", (Tensor("A", "f32", ("N", "5"), (0, 1)),), (Tensor("A", "f32", ("N", "5"), (0, 1)),),
    (("dotimes", ("i", "N"), ("dotimes", ("j", "5"), ("set", "x", ("cast", "float", ("-", "inf"))),
                              ("dotimes", ("k", "7"), ("maxcf", "x", ("aref", "A", "i", "j"))), ("setf", ("aref", "A", "i", "j"), "x"))),),
    (("N", 3),), 2)


@pytest.mark.parametrize("spec", [LANES, WHILE_SUMMED, GREATEST], ids=lambda s: s.name)
def test_results_stay_right(spec: RandomSpec, tmp_path: Path) -> None:
    case = case_of(spec, tmp_path)
    own = Options(cache_dir=str(tmp_path / "cache"), verify=True, only=(spec.name,))
    program = driver.advance(loaded(spec, own), "loop", own)
    assert isinstance(program, LoopProgram)
    run = {k: v.copy() if hasattr(v, "copy") else v for k, v in case.job.arguments.items()}
    assert interpret.run(program, run) == case.status
    for name, bits in case.bits.items():
        assert (run[name] == bits).all()


def divided(fn: str, wide: str, seed: int) -> RandomSpec:
    """Loads at a place that is divided to be the same in a whole row, of which the first elements are none of them."""
    inputs = (Tensor("A", wide, ("N",), (0,)), Tensor("S", "f16", ("N",), (0,)), Tensor("C", "i8", ("N", "17"), (0, 1)))
    chosen = ("xor", ("<", "j", "N"), (">", ("aref", "S", "i"), "100"))
    load = ("aref", "A", ("mod", (fn, ("*", "3", "i"), "N"), "N"))
    body = (("loop", ("i", "1", "N"), ("dotimes", ("j", "17"), ("setf", ("aref", "C", "i", "j"), (
        "where", chosen, ("cast", "int8", "3"), ("if", ("/=", "100", load), ("cast", "int8", "1"), ("cast", "int8", load)))))),)
    return RandomSpec(f"Divides_{fn}_{wide}_{seed}", inputs, inputs[2:], body, (("N", 3),), seed)


def test_a_division_that_some_elements_of_a_row_make_is_made_for_them(tmp_path: Path, nightly: bool) -> None:
    """A C compiler that makes vectors of loops divided for the first element alone, and loaded from what it never computed."""
    specs = [divided(fn, wide, seed) for seed in ((2, 3) if nightly else (2,)) for n, fn in enumerate(("mod", "floordiv", "truncdiv", "truncmod"))
             for wide in (("i64", "i32") if nightly else ("i64", "i32")[n % 2:][:1])]
    assert not faults_in(specs, tmp_path, None, (0, 1))


def truncated(of: str, by: str, seed: int) -> RandomSpec:
    """Numbers without their fraction, by way of an integer: that has no -0, as the sign of what is divided by it shows."""
    inputs = (Tensor("A", of, ("N",), (0,)), Tensor("C", of, ("N",), (0,)))
    body = (("loop", ("i", "0", "N", "2"), ("setf", ("aref", "C", "i"), ("/", ("aref", "C", "i"), ("cast", ALL_WORDS[of], ("cast", ALL_WORDS[by], ("aref", "A", "i")))))),)
    return RandomSpec(f"Truncates_{of}_{by}_{seed}", inputs, inputs[1:], body, (("N", 33),), seed)


def test_a_float_that_was_an_integer_is_no_negative_zero(tool: Callable[[str], str], tmp_path: Path, nightly: bool) -> None:
    """A C compiler rounded towards zero in place of both conversions, and -0.5 became -0.0."""
    tool("gcc")
    specs = [truncated(of, by, seed) for seed in ((3, 10) if nightly else (3,)) for of in ("f64", "f32", "f16") for by in ("i64", "i32", "i8", "u8", "u64")][::1 if nightly else 2]
    assert not faults_in(specs, tmp_path, None, (0, 1, 2, 3))


def correlated(dtype: str, seed: int) -> RandomSpec:
    """Sums of products onto what an array holds."""
    inputs = (Tensor("A", dtype, ("N", "K"), (0, 1)), Tensor("B", dtype, ("K", "M"), (0, 1)), Tensor("C", dtype, ("N", "M"), (0, 1)))
    body = (("dotimes", ("i", "N"), ("dotimes", ("j", "M"), ("dotimes", ("k", "K"), ("incf", ("aref", "C", "i", "j"), (
        "*", ("aref", "A", "i", "k"), ("aref", "B", "k", "j")))))),)
    return RandomSpec(f"Correlates_{dtype}_{seed}", inputs, inputs[2:], body, (("N", 7), ("M", 16), ("K", 2)), seed)


@pytest.mark.slice(3)
@pytest.mark.parametrize("dtype", ["c64", "f32", "f64"])
def test_sums_of_infinities_and_products_that_overflow(dtype: str, tmp_path: Path, nightly: bool) -> None:
    """Whether a product overflows depends on whether it is fused; an infinite part of a complex number says nothing of the other."""
    specs = [correlated(dtype, seed) for seed in ((10, 20, 30) if nightly else (10,))]
    seen: Counter[str] = Counter()
    assert not faults_in(specs, tmp_path, seen, (1,))
    assert seen["loose elements"] < 0.25 * seen["elements"]


# What it was -> inputs, outputs, body. Each was refused by a verifier.
PROVEN = {
    "a check that reads what an earlier check guards": (
        ["A{double}[N N]", "B{double}[M M]", "D{double}[M N]", "I{int64}[5]", "C{double}[M]"], "C",
        "(loop (i 1 -1 -1) (setf (aref C 1) (cond ((< (aref B i i) (aref B 3 i)) (aref C i)) "
        "((/= (cast double (aref I 2)) (aref D i (aref I 4))) (aref A (mod i N) (aref I 0))) (t (cast double 3.0)))))"),
    "a load that was checked under another name": (
        ["A{int64}[N N]", "I{int16}[17]", "C{int32}[N 33 M]"], "S{int32}[33]",
        "(dotimes (i 33) (setf (aref S i) (cond ((< (aref A (aref I (mod i 17)) i) 1) (cast int32 3)) ((/= 3 (cast int64 i)) (cast int32 2)) "
        "(t (aref C (aref I (mod i 17)) 1 i)))))"),
    "a read under a condition of one lane, in a parallel loop": (
        ["A{double}[5]", "I{int64}[M]"], "C{double}[3 M]",
        "(dotimes (i 3) (dotimes (j M) (setf (aref C i j) (where (/= j 4) (aref A 0) (aref C (mod (aref I j) 3) j)))))"),
    "a condition of several lazy parts": (
        ["I{uint8}[M]"], "C{int32}[7]",
        "(dotimes (i 7) (setf (aref C i) (cast int32 i))) (loop (i 1 -1 -1) (setf (aref C i) (where (or (and (/= (aref C 3) (aref C 0)) "
        "(< (aref C i) (aref C i))) (>= (aref C i) 100)) (aref C (cast int (aref I (mod i M)))) (aref C 2))))"),
    "a conversion that keeps all values only where a condition holds": (
        ["A{int8}[N 5]"], "C{int32}[M]",
        "(dotimes (i M) (set x (cast int32 i)) (setf (aref C i) (cast int32 (where (and (<= i 1) (> (cast int32 100) x)) (aref A (mod i N) 0) "
        "(cast int8 2)))))"),
    "a tile of which one index is a remainder and one a quotient": (
        ["A{uint64}[N 17 N]<1 2 0>"], "C{uint64}[N N]<1 0>",
        "(dotimes (i N) (dotimes (j N) (setf (aref C j i) (aref A i (mod j 17) (floordiv j 2)))))"),
    "a check apart from what relies on it, in a padded tail": (
        ["A{int64}[K]"], "C{int64}[1 33]",
        "(dotimes (i 33) (dotimes (j 1) (setf (aref C j i) (cond ((isnan (cast float 0.1)) (aref A j)) ((<= 0 3) (aref A j)) (t (cast int64 i))))))"),
    "an index as an int32, of which its own array says how great it is at most": (
        ["A{int32}[1 7 N]", "I{int16}[M]", "B{bfloat16}[7 M 1]", "C{bfloat16}[N N]<1 0>"], "C",
        "(dotimes (i N) (dotimes (j N) (setf (aref C j 1) (cond ((>= (cast int32 j) (cast int32 2)) (cast bfloat16 i)) "
        "((/= (aref A 0 j i) (cast int32 (aref I i))) (cast bfloat16 (aref I i))) (t (aref B 5 i 0))))))"),
    "a case that no numbers allow, among several": (
        ["A{int64}[M M 5]", "S{int64}[]", "I{int32}[N]"], "C{int64}[M]",
        "(dotimes (i M) (setf (aref C i) (cond ((and (= S S) (>= (cast int32 7) (cast int32 3))) 0) ((<= (aref A i 3 4) (aref A (- M 1) i 0)) (logior S i)) "
        "(t (cast int64 (aref I (mod i N)))))))"),
    "two loops as one around another, whose names are parts of it": (
        ["X{double}[33 16 C]", "Y{double}[33 16 C]"], "Y",
        "(dotimes (j 16) (dotimes (k C) (set s (cast double 0)) (loop (i 1 -1 -1) (setf (aref Y i j k) s))))"),
    "lanes that are left out, of the one row that an iteration of several at once writes": (
        ["A{int8}[5 H W]"], "A",
        "(dotimes (t 3) (dotimes (i 5) (dotimes (j H) (dotimes (k W) (if (and (>= i 2) (< i (- 5 2)) (<= 2 j) (< j H) (< 1 k) (> W k)) "
        "(setf (aref A i j k) (aref A i j k)))))))"),
    "an index below which nothing is, by way of two comparisons of loaded values": (
        ["I{int16}[2]", "B{float}[M]", "C{float}[N N N]"], "C",
        "(dotimes (i N) (dotimes (j N) (dotimes (k N) (set s 0.0) (dotimes (p k) (dotimes (q N) (incf s (- (cond ((<= (aref C p (aref I q) k) "
        "(aref C i q (aref I 0))) (aref C q 1 j)) ((> (aref C p p (mod (+ (* 3 p) 2) N)) (aref C (floordiv j 2) p j)) (aref C k i k)) (t (aref C i j p))) "
        "(cond ((< (aref I 1) (aref I 0)) (aref C (aref I 1) (mod (+ (* 3 k) 2) N) k)) ((/= (aref C (floordiv k 2) (- (- N 1) q) j) "
        "(aref C q i (- (- N 1) j))) (cond ((<= (aref C p p (mod (+ (* 3 k) 2) N)) (aref C k (aref I (mod q 2)) p)) (cast float k)) ((not (= i M)) "
        "(fmin (aref C k i (aref I 1)) (aref C (floordiv k 2) (mod j N) p))) (t (cast float j)))) (t (- (aref B (mod p M)) "
        "(aref C (floordiv i 2) (aref I (mod p 2)) (min i (- N 1)))))))))) (setf (aref C j k i) s))))"),
    "sums of rows in blocks of their own, under conditions on loaded values": (
        ["A{int8}[N N]<1 0>", "B{bool}[N N]", "C{int64}[N]"], "C",
        "(dotimes (i N) (dotimes (j N) (when (and (= (mod i 3) 1) (or (aref B i j) (< (aref A i j) 2))) (incf (aref C i) 1))))"),
    "an accumulation in one iteration of a loop, whose condition becomes a mask": (
        ["A{int32}[2 M N]", "X{int32}[2 M N]", "C{int64}[2]"], "X\", \"C",
        "(dotimes (i 2) (dotimes (j M) (dotimes (k N) (when (and (> k 1) (= (mod i 3) 1)) (setf (aref X i j k) (aref A i j k)) (incf (aref C i) 1)))))"),
    "stores in one iteration of a loop, whose condition becomes a mask in memory": (
        ["A{int32}[3 33]", "B{bool}[3 33]", "X{int32}[3 33]", "C{int64}[3]"], "X\", \"C",
        "(dotimes (i 3) (dotimes (j 33) (when (and (= (mod i 3) 1) (aref B i j)) (setf (aref X i j) (aref A i j)) (incf (aref C i) 1))))"),
    "one element that one iteration of a parallel loop adds to": (
        ["A{int32}[2 M N]", "X{int32}[2 M N]", "C{int64}[2]"], "X;C",
        "(dotimes (i 2) (dotimes (j M) (dotimes (k N) (when (and (> k 1) (= i 1)) (setf (aref X i j k) (aref A i j k)) (incf (aref C 1) 1)))))"),
}


@pytest.mark.slice(8)
@pytest.mark.parametrize("what", list(PROVEN))
@pytest.mark.parametrize(("level", "config"), [(0, ()), (1, ()), (2, ()), (2, (("MARCH", "x86_64_v4"), ("OMP", "1")))], ids=["-O0", "-O1", "-O2", "threads"])
def test_every_pass_is_verified(what: str, level: int, config: tuple[tuple[str, str], ...]) -> None:
    inputs, output, body = PROVEN[what]
    text = f'[composite]\nname = "Found"\ninputs = {inputs}\noutputs = {output.split(";")}\n[implementation]\ncode = """{body}"""\n'.replace("'", '"')
    options = Options(opt=level, verify=True, config=config)
    program = loading.load_programs(SpecText("found.toml", text, "toml"), options)[0]
    assert isinstance(driver.advance(program, "loop", options), LoopProgram)


FOUND = sorted((Path(__file__).parent / "found").glob("*.toml"))


@pytest.mark.slice(6)
@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
@pytest.mark.parametrize("config", [(), (("MARCH", "x86_64_v3"), ("OMP", "1")), (("SIMD_LEN", "4"),)], ids=["native", "v3", "narrow"])
def test_what_once_failed_or_never_ended_compiles(path: Path, config: tuple[tuple[str, str], ...]) -> None:
    """Specs whose compilation once failed inside or did not end, as a user compiles them."""
    own = Options(config=config)

    def work() -> tuple[dict[str, str], dict[str, np.ndarray]]:
        return {"text": driver.render(loading.load_programs(SpecText(path.name, path.read_text(), "toml"), own), own)}, {}
    outcome = isolate.run(work, 600, cpu=20)
    assert outcome.status == "ok", outcome.diagnostics
    assert "CT_API" in outcome.facts["text"]
