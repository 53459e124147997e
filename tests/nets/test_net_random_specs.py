"""Random specs: whatever operator is compiled, however it is scheduled and by whichever compiler, computes what the interpreter says."""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spec_batches
from compared_specs import case_of, compared_elements
from spec_batches import ALL, BUILDS, MACHINES, Fault, faults_in, report
from spec_families import FAMILIES, TURNS, drawn_spec
from spec_forms import ALL_WORDS, EXACT, EXTENTS, INEXACT, INTEGRAL, RandomSpec, Tensor

from caten import driver
from caten.core.expr import FALSE, TRUE
from caten.errors import error
from caten.render import helper_bodies, helper_functions
from caten.schedule.primitives import split
from caten.semantics import error_tracking, rounding_bounds

PARTS, NIGHTLY = 10, 500                         # a part is a test: so many specs each in a nightly run
BY_DAY = (1, 4)                                   # at -O2 by clang on threads, and by gcc under sanitizers, each for every second spec
FEW_PARTS, SLICE = 1, len(TURNS) + 1             # and in every run: so many that every form occurs
BATCH = 25                                       # specs to a library

FORMS = tuple(f"form {f.__name__}" for f in FAMILIES)
FEATURES = ("in place", "pure output", "permuted order", "mixed loop order", "negative step", "condition on an index", "condition on data",
            "symbolic window", "constant window", "padded", "dotimes")
ALL_FEATURES = (
    *FEATURES, "sum in a local", "call", "local array", "gather", "scatter", "scatter to few elements", "epilogue", "window", "unpadded", "extent written as a sum", "convolution stride", "convolution dilation", "stride and padding as arguments", "dilated window", "a window used twice", "padding by a value",
    "let around a condition", "start in a nest of its own", "accumulation written out", "sum of what it does not index", "product of all indices",
    "reversed index", "statements at two depths", "step 2", "triangle", "sweeps", "stencil", "stencil in place", "argmax", "argmin", "extreme by NumPy's rule of NaN", "strided",
    "scan under a condition", *[f"convolution {n}-D" for n in (1, 2, 3)], *[f"pooling {f}" for f in ("max", "min", "+")],
    *[f"spelled {w}" for w in ("and", "nested", "mixed", "if", "unless", "cond")], *[f"scan by {w}" for w in ("local", "neighbour", "exclusive", "linear")],
    *[f"triangle {w}" for w in ("product", "rows", "solve", "copy", "symmetric")], *[f"in-place {w}" for w in ("incf", "decf", "mincf", "maxcf", "setf")],
    *[f"softmax {w}" for w in ("online", "passes", "logsumexp", "stored", "online setf", "masked by array", "masked by causal", "masked by window")],
    *[f"norm {w}" for w in ("layer", "rms", "one pass", "max", "l1")], *[f"total {w}" for w in ("+", "max", "min", "*", "-")],
    *[f"reversal {w}" for w in ("swap", "halves", "rotate", "shift", "mirror", "other")], *[f"packed {w}" for w in ("product", "unpack", "pack", "copy", "max")],
    *[f"complex {w}" for w in ("map", "parts", "sum", "choice")], *[f"chain {w}" for w in ("map", "row sum", "two", "neighbour")],
    *[f"choice {w}" for w in ("map", "count", "both", "if else", "cond")], *[f"loaded index {w}" for w in ("plain", "mod", "guarded", "clip")],
    *[f"length {w}" for w in ("whole", "local", "array", "triangle", "from")], "extreme by comparison",
    *[f"begins with {w}" for w in ("identity", "peeled", "first if", "number", "none")], *[f"product {w}" for w in ("+", "max", "min", "-")],
    "falling loop", "strided loop", "triangular loop", "range read from an array", "rank-0 output", "update in place", "scan", "condition around a nest", "set",
    *[f"{w} statement" for w in ("when", "unless", "if", "cond")], *[f"{w} value" for w in ("where", "if", "cond", "let", "cast", "bitcast")],
    "cast to float", "saturating cast", "cast", *[f"rank {n}" for n in range(7)], *[f"extent {n}" for n in EXTENTS],
    *[f"index {k}" for k in ("plain", "back", "mod", "half", "shift", "other")],
    *[f"reduction {k} in {w}" for k in ("add", "sub", "mul", "max", "min", "best", "bits") for w in ("a local", "place")],
    *[f"({fn} …)" for fn in (*EXACT, *INEXACT, *INTEGRAL)])


def drawn(seeds: Sequence[int], folder: Path, builds: Sequence[int] = ALL) -> tuple[list[tuple[Fault, dict[str, str]]], Counter[str]]:
    """Everything wrong with the specs of these seeds, with the machine of its batch, and what was counted."""
    seen: Counter[str] = Counter()
    found: list[tuple[Fault, dict[str, str]]] = []
    for first in range(0, len(seeds), BATCH):
        specs = [drawn_spec(s) for s in seeds[first:first + BATCH]]
        machine = MACHINES[seeds[first] // BATCH % len(MACHINES)]
        for spec in specs:
            seen.update(spec.features)
        found += [(f, machine) for f in faults_in(specs, folder, seen, builds, machine)]
    return found, seen


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(PARTS if metafunc.config.getoption("--nightly") else FEW_PARTS))


def test_random_specs_compute_what_the_interpreter_says(part: int, nightly: bool, tool: Callable[[str], str], tmp_path: Path) -> None:
    tool("gcc")
    count = NIGHTLY if nightly else SLICE
    seeds = range(part * NIGHTLY, part * NIGHTLY + count)
    begin = time.monotonic()
    shares = [(seeds, ALL)] if nightly else [(seeds[n::len(BY_DAY)], (build,)) for n, build in enumerate(BY_DAY)]
    found, seen = [], Counter[str]()
    for some, builds in shares:
        faults, counts = drawn(some, tmp_path, builds)
        found += faults
        seen += counts
    print(f"seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - begin:.0f} s, the longest compilation {seen['longest'] / 1000:.1f} s:", dict(sorted(seen.items())))
    assert not found, f"{len(found)} faults: {[(f.spec.name, f.build, f.kind) for f, _ in found]}\n" + "\n".join(
        report(f, tmp_path, machine=machine) for f, machine in found[:3])
    enough(seen, count, (*FORMS, *FEATURES, *(ALL_WORDS if nightly else ())), ALL if nightly else BY_DAY, 1 / len(shares))


def test_everything_is_drawn() -> None:
    """Every feature, function, type and extent occurs among the specs of a nightly run."""
    seen = Counter(feature for seed in range(PARTS * NIGHTLY) for feature in drawn_spec(seed).features)
    wanted = (*FORMS, *ALL_FEATURES, *ALL_WORDS)
    print({f: seen[f] for f in wanted})
    assert not [f for f in wanted if not seen[f]]


def enough(seen: Counter[str], count: int, wanted: Sequence[str], builds: Sequence[int] = ALL, share: float = 1.0) -> None:
    """Was everything drawn that should be, and something compared? Each build is called for a share of the specs."""
    assert not [f for f in wanted if not seen[f]], f"never occurred: {[f for f in wanted if not seen[f]]}"
    assert seen["call succeeds"] > 0.85 * count
    assert seen["nothing to compare"] < 0.2 * count, "too many specs without an element to compare"
    assert seen["elements"] > 50 * count
    assert seen["loose elements"] < 0.25 * seen["elements"]
    assert seen["warned E943"] < 0.02 * count, "too many nests that are not scheduled"
    for b in builds:
        assert seen[f"called by {BUILDS[b]}"] > 0.9 * count * share


def test_specs_that_compare_nothing_are_seen() -> None:
    """Planted faults: outputs without an element, elements of which any value passes, a form that is never drawn."""
    fine = Counter({"call succeeds": 100, "elements": 9000, "form": 3, **{f"called by {b}": 100 for b in BUILDS}})
    enough(fine, 100, ("form",))
    for less in ({"nothing to compare": 20}, {"elements": 90}, {"loose elements": 5000}, {"warned E943": 5}, {"form": 0}, {"call succeeds": 50}, {f"called by {BUILDS[2]}": 7}):
        with pytest.raises(AssertionError):
            enough(Counter({**fine, **less}), 100, ("form",))


def test_a_bound_that_is_nan_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: an infinity has a rounding error, which is infinite, and a slope of 0 times that is NaN."""
    body = ("dotimes", ("i", "N"), ("setf", ("aref", "C", "i"), ("exp", ("-", ("-", "inf"), ("*", ("aref", "A", "i"), "2")))))
    spec = RandomSpec("Vanishes", (Tensor("A", "f32", ("N",), (0,)),), (Tensor("C", "f32", ("N",), (0,)),), (body,), (("N", 5),), 3)
    assert compared_elements(case_of(spec, tmp_path)) == (5, 0)
    monkeypatch.setattr(rounding_bounds, "finite_size", rounding_bounds.size)
    monkeypatch.setattr(rounding_bounds, "is_finite", lambda x: TRUE)
    monkeypatch.setattr(rounding_bounds, "_is_exact_zero", lambda *_: FALSE)
    monkeypatch.setattr(error_tracking, "settled", lambda magnitude, bound, greatest: bound)
    with pytest.raises(AssertionError, match="a bound is NaN"):
        compared_elements(case_of(spec, tmp_path))


# -- planted faults -------------------------------------------------------------------------------------------------------------------------

def sums(extent: int = 33) -> RandomSpec:
    """A spec whose plan has vectors, a tail and a guard: sums of rows, where a condition holds."""
    inputs = (Tensor("A", "f32", ("M", "N"), (0, 1)), Tensor("B", "f32", ("N",), (0,)))
    body = (("dotimes", ("i", "M"), ("setf", ("aref", "C", "i"), "0"),
             ("dotimes", ("j", "N"), ("when", ("<", "j", ("-", "N", "2")), ("incf", ("aref", "C", "i"), ("-", ("aref", "A", "i", "j"), ("aref", "B", "j")))))),)
    return RandomSpec("Sums", inputs, (Tensor("C", "f32", ("M",), (0,)),), body, (("M", 5), ("N", extent)), 3)


def test_the_spec_of_the_planted_faults_is_right(tmp_path: Path) -> None:
    assert not faults_in([sums()], tmp_path)


def test_the_net_catches_a_wrong_spelling_shrinks_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the remainder has the sign of the dividend, as C has it."""
    monkeypatch.setitem(helper_bodies.SCALAR_ROWS, ("mod", "int"), "return b == 0 || b == -1 ? 0 : (T)(a % b);")
    inputs = (Tensor("A", "i32", ("N",), (0,)), Tensor("B", "i32", ("N",), (0,)), Tensor("D", "f32", ("N",), (0,)))
    outputs = (Tensor("C", "i32", ("N",), (0,)), Tensor("E", "f32", ("N",), (0,)))
    body = (("dotimes", ("i", "N"), ("set", "x", ("aref", "A", "i")), ("setf", ("aref", "C", "i"), ("+", ("mod", "x", ("aref", "B", "i")), "1"))),
            ("dotimes", ("j", "N"), ("setf", ("aref", "E", "j"), ("*", ("aref", "D", "j"), "2"))))
    spec = RandomSpec("Planted", inputs, outputs, body, (("N", 33),), 3)
    found = faults_in([spec], tmp_path, None, (0,))
    assert [(f.spec, f.kind) for f in found] == [(spec, "wrong")]
    message = report(found[0], tmp_path, 30)
    kept = (tmp_path / "Planted.toml").read_text()
    assert str(tmp_path / "Planted.toml") in message
    assert "mod" in kept
    assert "setf (aref E" not in kept, "the innocent statement is gone"


def test_a_wrong_schedule_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the lanes of a vector cancel each other when it is summed."""
    monkeypatch.setattr(helper_functions.Helpers, "fold", wrong_fold(helper_functions.Helpers.fold))
    assert not faults_in([sums(256)], tmp_path, None, (0,))
    assert faults_in([sums(256)], tmp_path, None, (1,))


def wrong_fold(right: Any) -> Any:
    def fold(self: Any, fn: str, dtype: str, lanes: int) -> Any:
        name = right(self, fn, dtype, lanes)
        self.texts[name] = self.texts[name].replace("return v[0]", "return v[0] - v[1]")
        return name
    return fold


def product() -> RandomSpec:
    """A spec that has register tiles, padded at their edges."""
    inputs = (Tensor("A", "f32", ("M", "K"), (0, 1)), Tensor("B", "f32", ("K", "N"), (0, 1)), Tensor("C", "f32", ("M", "N"), (0, 1)))
    body = (("dotimes", ("i", "M"), ("dotimes", ("j", "N"), ("dotimes", ("p", "K"), ("incf", ("aref", "C", "i", "j"), (
        "*", ("aref", "A", "i", "p"), ("aref", "B", "p", "j")))))),)
    return RandomSpec("Multiplied", inputs, inputs[2:], body, (("M", 17), ("N", 33), ("K", 8)), 3)


def test_swapped_operands_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a renderer that subtracts the other way round."""
    right = helper_functions.Helpers.apply
    monkeypatch.setattr(helper_functions.Helpers, "apply", lambda self, fn, dtype, lanes, args: right(
        self, fn, dtype, lanes, tuple(args)[::-1] if fn == "sub" and dtype == "f32" else args))
    assert {(f.build, f.kind) for f in faults_in([sums()], tmp_path, None, (0, 1))} == {(0, "wrong"), (1, "wrong")}


def test_a_dropped_tail_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a loop is cut into tiles, and what is left of it is not run."""
    monkeypatch.setattr(split, "copied", lambda body, suffix, names: ((), {}))
    tensors = [Tensor(name, "f32", ("N",), (0,)) for name in "AC"]
    body = (("dotimes", ("i", "N"), ("setf", ("aref", "C", "i"), ("*", ("aref", "A", "i"), "2"))),)
    spec = RandomSpec("Doubled", tuple(tensors[:1]), tuple(tensors[1:]), body, (("N", 33),), 3)
    assert [(f.build, f.kind) for f in faults_in([spec], tmp_path, None, (0, 3))] == [(3, "wrong")]


def test_a_wrong_guard_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the stores of a padded tile stay one short of the edge."""
    right = split.below
    monkeypatch.setattr(split, "below", lambda at, hi, inside: right(at, hi - 1, inside))
    assert {f.kind for f in faults_in([product()], tmp_path, None, (3,), {"MARCH": "x86_64_v2"})} == {"wrong"}


def test_a_compilation_that_never_ends_is_ended_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a question that is answered in C, where no signal is heard. The other specs go on."""
    right = driver.advance
    monkeypatch.setattr(driver, "advance", lambda program, *rest, **more: sum(repeat(0)) if program.name == "Multiplied" else right(program, *rest, **more))
    seen: Counter[str] = Counter()
    found = faults_in([product(), sums()], tmp_path, seen, (3,), seconds=1)
    assert [(f.spec.name, f.kind) for f in found] == [("Multiplied", "never ends")]
    assert seen[f"called by {BUILDS[3]}"] == 1


@pytest.mark.parametrize(("problem", "kind"), [
    (KeyError("x"), "internal error KeyError"), (error("E480", "an access is not shown to be in bounds"), "refused E480"), (RecursionError(), "internal error RecursionError")])
def test_an_internal_error_is_caught(problem: Exception, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults: an exception that is no diagnostic, and a diagnostic that blames the compiler."""
    def fail(program: Any, *rest: Any, **more: Any) -> Any:
        raise problem
    monkeypatch.setattr(driver, "advance", fail)
    found = faults_in([sums()], tmp_path, None, (3,))
    assert [f.kind for f in found] == [kind]
    message = report(found[0], tmp_path, 4)
    assert kind in message
    assert (tmp_path / "Sums.toml").exists()


def test_other_bits_on_another_number_of_threads_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a sum is rounded as often as there are threads."""
    right = spec_batches.call_all

    def called(artifact: Path, manifest: Any, jobs: Any, threads: int = 1) -> Any:
        found = right(artifact, manifest, jobs, threads=threads)
        for one in found:
            one.results["C"][0] = np.nextafter(one.results["C"][0], np.float32(9)) if threads == 3 else one.results["C"][0]
        return found
    monkeypatch.setattr(spec_batches, "call_all", called)
    assert [f.kind for f in faults_in([sums()], tmp_path, None, (1,))] == ["threads"]


def test_a_read_outside_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the text in C reads one element beyond its array."""
    right = driver.render
    monkeypatch.setattr(driver, "render", lambda *given: right(*given).replace(
        "    ct_sums_sums(", "    if (A[M * N] == 1e30f) return 1;\n    ct_sums_sums("))
    assert [f.kind for f in faults_in([sums()], tmp_path, None, (4,))] == ["sanitizer"]
    assert [f.kind for f in faults_in([replace(sums(), seed=4)], tmp_path, None, (3,))] == ["crash"]
