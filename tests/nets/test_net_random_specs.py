"""Random specs: whatever operator is compiled, however it is scheduled and by whichever compiler, computes what the interpreter says."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guarded_calls import Called, Job, bits_equal, call_all
from random_specs import random_spec
from shrinking import shrink
from spec_forms import EXACT, EXTENTS, INEXACT, INTEGRAL, WORDS, RandomSpec, Tensor

from caten import build, pipeline
from caten.core.dtypes import DTYPES, FORMATS
from caten.core.expr import FALSE, TRUE, Var
from caten.core.formula import evaluate
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Buffer, Program, Scalar, Target
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec import SpecText
from caten.loop import bounds, comparison, interpret, oracle, rounding, tracked
from caten.options import Options
from caten.render import bodies, helpers

SLICE, NIGHTLY, BATCH = 40, 1500, 50
# Runtime, its options, and the level of optimisation; each library holds all specs of a batch.
BUILDS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("clang", {"OPT": "1"}, 0), ("clang", {"OMP": "1", "OPT": "2"}, 2), ("gcc", {"OPT": "1", "OMP": "1"}, 0), ("gcc", {"OPT": "2"}, 2),
)
SPECIAL = {**{d: (np.nan, np.inf, -np.inf, -0.0, 0.0, FORMATS[d][2], 2.0**FORMATS[d][1], 257.0) for d in ("f16", "bf16")},
           "f32": (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 3e38, 16777217.0), "f64": (np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e308, 2.0**53 + 1)}


@dataclass(frozen=True)
class Case:
    """A spec as the front end understands it, with data and what must come out. `bits`: what the interpreter computes in the declared types."""

    spec: RandomSpec
    op: OpProgram
    job: Job
    status: int
    expected: dict[str, tuple[np.ndarray, Any, Any]]
    bits: dict[str, np.ndarray]


@dataclass(frozen=True)
class Fault:
    """What went wrong with a spec, and with which build (-1: before any)."""

    spec: RandomSpec
    build: int
    text: str


def options(spec: RandomSpec | None, runtime: str, config: dict[str, str], opt: int, folder: Path) -> Options:
    return Options(runtime=runtime, config=tuple(config.items()), opt=opt, strided=spec.strided if spec else (), cache_dir=str(folder / "cache"), verify=True)


# -- data -----------------------------------------------------------------------------------------------------------------------------------

def draw(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], below: int | None, special: bool) -> np.ndarray:
    """Elements of a type: some whole, some not, some at the ends of its range; indices mostly inside their axis."""
    d = DTYPES[dtype]
    if below is not None:
        top = max(1, min(below, d.greatest + 1))
        values = rng.integers(0, top, shape)
        return np.where(rng.random(shape) < 0.002, top, values).astype(numpy_dtype(dtype))
    if d.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if d.kind == "float":
        values = rng.integers(-16, 17, shape) / 4 if rng.random() < 0.5 else rng.uniform(-3, 3, shape)
        result = np.asarray(values).astype(numpy_dtype(dtype))
        if special:
            result = np.where(rng.random(shape) < 0.15, rng.choice(np.array(SPECIAL[dtype]).astype(numpy_dtype(dtype)), shape), result).astype(numpy_dtype(dtype))
        return np.asarray(result)
    if special or rng.random() < 0.3:
        return rng.integers(d.least, d.greatest, shape, dtype=d.numpy, endpoint=True)
    return rng.integers(max(d.least, -9), 10, shape).astype(numpy_dtype(dtype))


def arguments(spec: RandomSpec, op: OpProgram) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Numbers and arrays by name, and the strides of those that pass them."""
    rng = np.random.default_rng(spec.seed)
    special = spec.seed % 10 == 0
    below = {t.name: int(t.below) if t.below.isdigit() else dict(spec.sizes).get(t.below, 1) for t in spec.inputs if t.below}
    values: dict[str, Any] = dict(spec.sizes)
    strides: dict[str, tuple[int, ...]] = {}
    for param in op.params:
        if isinstance(param, Scalar) and param.name not in values and "_stride" not in param.name:
            values[param.name] = draw(rng, param.type, (1,), None, special)[0]
        elif isinstance(param, Buffer):
            shape = tuple(int(evaluate(e, dict(spec.sizes))) for e in param.shape)
            values[param.name] = draw(rng, param.type, shape, below.get(param.name), special)
            if param.strides:
                step, own = 1, [1] * len(shape)
                for axis in reversed(param.order):
                    own[axis] = step * (1 if axis == param.order[-1] else int(rng.choice((1, -1))))
                    step *= max(1, shape[axis]) + int(rng.integers(0, 3))
                strides[param.name] = tuple(own)
                values |= {e.name: own[axis] for axis, e in enumerate(param.strides) if isinstance(e, Var)}
    return values, strides


# -- expectations ---------------------------------------------------------------------------------------------------------------------------

def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}


def case_of(spec: RandomSpec, folder: Path) -> Case:
    """Read a spec and find what it computes. CatenError where the front end refuses it."""
    program = pipeline.load_programs(SpecText(f"{spec.name}.toml", spec.text(), "toml"), options(spec, *BUILDS[0], folder))[0]
    assert isinstance(program, OpProgram)
    checked: OpProgram = bounds.add_checks(program)
    values, strides = arguments(spec, program)
    plain = copied(values)
    status = interpret.run(checked, plain)
    wide = comparison.widened(checked, values)
    wide_status = interpret.run(oracle.bounded(checked), wide)
    names = [b.name for b in program.buffers.values() if b.access != "in"]
    expected = {n: (wide[n], wide.get(f"{n}__bound"), wide.get(f"{n}__loose")) for n in names}
    if wide_status != status:                                # a float decides whether the call fails: only crashes count
        expected = {}
    return Case(spec, program, Job(spec.name, values, strides, spec.seed % 2 == 0), status, expected, {n: plain[n] for n in names})


def verdict(case: Case, called: Called, level: int) -> str:
    """What is wrong with the result of a call; nothing where it is right."""
    if called.wrong:
        return "; ".join(called.wrong)
    assert called.status is not None
    if not case.expected:
        return ""
    if (called.status == 0) != (case.status == 0):
        return f"returned {called.status}, the interpreter {case.status}"
    if case.status != 0:
        return ""
    for name, (want, bound, loose) in case.expected.items():
        dtype = case.op.buffers[name].type
        got = called.results[name]
        if level == 0 and case.spec.tame and not bits_equal(got, case.bits[name]):
            where = np.argwhere(~((got == case.bits[name]) | ((got != got) & (case.bits[name] != case.bits[name]))))
            at = tuple(int(i) for i in where[0]) if len(where) else ()
            return f"{name} differs from the interpreter at {at}: {got[at]!r} for {case.bits[name][at]!r}"
        result = comparison.check(got, want, bound, loose, dtype)
        if not result.passed:
            at = result.worst or ()
            return f"{name}{list(at)} is {got[at]!r}, expected {np.asarray(want)[at]!r} ({result.ratio:.3g} times its bound)"
    return ""


# -- builds ---------------------------------------------------------------------------------------------------------------------------------

def scheduled(case: Case, level: int, folder: Path) -> Program:
    """The case's program at the loop level, for the first runtime with this level of optimisation."""
    runtime, config, _ = BUILDS[level // 2]
    own = options(case.spec, runtime, config, level, folder)
    program = pipeline.load_programs(SpecText(f"{case.spec.name}.toml", case.spec.text(), "toml"), own)[0]
    return pipeline.advance(program, "loop", own)


def run_build(number: int, cases: Sequence[Case], programs: Sequence[Program], folder: Path) -> list[Called]:
    """One library of all cases, each called once."""
    runtime, config, level = BUILDS[number]
    own = options(None, runtime, config, level, folder)
    target = pipeline.target_of(own)
    built = build.build_programs((), [p.without(Target).adding(target) for p in programs], own)
    return call_all(built.artifact, built.manifest, [c.job for c in cases])


def faults_in(specs: Sequence[RandomSpec], folder: Path, seen: Counter[str], builds: Sequence[int] = tuple(range(len(BUILDS)))) -> list[Fault]:
    """Everything wrong with these specs."""
    found: list[Fault] = []
    cases: list[Case] = []
    for spec in specs:
        try:
            cases.append(case_of(spec, folder))
        except CatenError as problem:
            code = problem.diagnostics[0].code
            seen[f"refused {code}"] += 1
            if code not in ("E400",):
                found.append(Fault(spec, -1, f"refused: {problem}"))
    for case in cases:
        seen["call fails" if case.status else "call succeeds"] += 1
        count_compared(case, seen)
    for level in sorted({BUILDS[b][2] for b in builds}):
        ready: list[tuple[Case, Program]] = []
        for case in cases:
            try:
                ready.append((case, scheduled(case, level, folder)))
            except CatenError as problem:
                found.append(Fault(case.spec, -1 - level, f"-O{level}: {problem}"))
        for number in [b for b in builds if BUILDS[b][2] == level]:
            found += compared(number, ready, folder)
    return found


def count_compared(case: Case, seen: Counter[str]) -> None:
    """How much of what a spec computes is compared: a bound that is infinite lets anything pass, and one that is NaN is a fault of the oracle."""
    found = [comparison.check(want, want, bound, loose, "f64" if np.asarray(want).dtype.kind == "f" else case.op.buffers[name].type)
             for name, (want, bound, loose) in case.expected.items()]
    for _, bound, _ in case.expected.values():
        assert bound is None or not np.isnan(bound).any(), f"{case.spec.name}, seed {case.spec.seed}: a bound is NaN"
    elements, free = sum(c.loose + c.compared for c in found), sum(c.loose for c in found)
    seen["elements"] += elements
    seen["loose elements"] += free
    if case.status == 0 and found:
        seen["specs without elements" if not elements else "specs of which nothing is compared" if elements == free else "specs that are compared"] += 1


def compared(number: int, ready: Sequence[tuple[Case, Program]], folder: Path) -> list[Fault]:
    """The faults of one library; where it does not compile, of its halves."""
    if not ready:
        return []
    try:
        called = run_build(number, [c for c, _ in ready], [p for _, p in ready], folder)
    except CatenError as problem:
        if len(ready) == 1:
            return [Fault(ready[0][0].spec, number, str(problem))]
        half = len(ready) // 2
        return compared(number, ready[:half], folder) + compared(number, ready[half:], folder)
    texts = [(case.spec, verdict(case, result, BUILDS[number][2])) for (case, _), result in zip(ready, called, strict=True)]
    return [Fault(spec, number, text) for spec, text in texts if text]


def report(fault: Fault, folder: Path) -> str:
    """The fault with the simplest spec that has it, which is kept in a file."""
    builds = (fault.build,) if fault.build >= 0 else (0,) if fault.build == -1 else (1,)

    def still(candidate: RandomSpec) -> bool:
        try:
            again = faults_in([candidate], folder, Counter(), builds)
        except (AssertionError, KeyError, ValueError, IndexError):
            return False
        return any(f.build == fault.build and (f.build >= 0 or f.text[:30] == fault.text[:30]) for f in again)

    least = shrink(fault.spec, still)
    text = next((f.text for f in faults_in([least], folder, Counter(), builds)), fault.text)
    kept = folder / f"{least.name}.toml"
    kept.write_text(least.text())
    build_of = f"{BUILDS[fault.build]}" if fault.build >= 0 else "the passes"
    return f"seed {fault.spec.seed}, {build_of}: {text}\nkept in {kept}:\n{least.text()}"


# -- the net --------------------------------------------------------------------------------------------------------------------------------

STATEMENTS = ("dotimes", "falling loop", "strided loop", "window", "triangular loop", "in place", "rank-0 output", "update in place", "scan", "scatter",
              "local array", "condition around a nest", "gather", "set", "when statement", "unless statement", "if statement", "cond statement",
              "where value", "if value", "cond value", "let value", "cast value", "bitcast value", "cast to float", "saturating cast", "cast",
              "permuted order", "strided", *[f"rank {n}" for n in range(7)], *WORDS, *[f"extent {n}" for n in EXTENTS],
              *[f"index {k}" for k in ("plain", "back", "mod", "half", "shift", "other")])
REDUCTIONS = tuple(f"reduction {k} in {w}" for k in ("add", "sub", "mul", "max", "min", "best", "bits") for w in ("a local", "place"))


def test_random_specs_compute_what_the_interpreter_says(nightly: bool, tmp_path: Path) -> None:
    count = NIGHTLY if nightly else SLICE
    seen: Counter[str] = Counter()
    found: list[Fault] = []
    for first in range(0, count, BATCH):
        specs = [random_spec(seed) for seed in range(first, min(first + BATCH, count))]
        for spec in specs:
            seen.update(spec.features)
        found += faults_in(specs, tmp_path, seen)
    print(f"seeds 0 to {count - 1}:", dict(sorted(seen.items())))
    assert not found, f"{len(found)} faults\n" + "\n".join(report(f, tmp_path) for f in found[:3])
    wanted = STATEMENTS + (REDUCTIONS + tuple(f"({fn} …)" for fn in (*EXACT, *INEXACT, *INTEGRAL)) if nightly else ())
    assert not [f for f in wanted if not seen[f]], f"never occurred: {[f for f in wanted if not seen[f]]}"
    assert seen["call succeeds"] > 0.8 * count
    assert seen["loose elements"] < 0.1 * seen["elements"]
    assert seen["specs of which nothing is compared"] < 0.1 * count
    assert seen["specs that are compared"] > 0.5 * count


def test_a_bound_that_is_nan_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: an infinity has a rounding error, which is infinite, and a slope of 0 times that is NaN."""
    body = ("dotimes", ("i", "N"), ("setf", ("aref", "C", "i"), ("exp", ("-", ("-", "inf"), ("*", ("aref", "A", "i"), "2")))))
    spec = RandomSpec("Vanishes", (Tensor("A", "f32", ("N",), (0,)),), (Tensor("C", "f32", ("N",), (0,)),), (body,), (("N", 5),), 3)
    seen: Counter[str] = Counter()
    assert not faults_in([spec], tmp_path, seen, (0,))
    assert (seen["specs that are compared"], seen["loose elements"]) == (1, 0)
    monkeypatch.setattr(rounding, "finite_size", rounding.size)
    monkeypatch.setattr(rounding, "is_finite", lambda x: TRUE)
    monkeypatch.setattr(rounding, "_is_exact_zero", lambda *_: FALSE)
    monkeypatch.setattr(tracked, "settled", lambda magnitude, bound, greatest: bound)
    with pytest.raises(AssertionError, match="a bound is NaN"):
        faults_in([spec], tmp_path, seen, (0,))


def test_the_net_catches_a_wrong_spelling_shrinks_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the remainder has the sign of the dividend, as C has it."""
    monkeypatch.setitem(bodies.SCALAR_ROWS, ("mod", "int"), "return b == 0 || b == -1 ? 0 : (T)(a % b);")
    inputs = (Tensor("A", "i32", ("N",), (0,)), Tensor("B", "i32", ("N",), (0,)), Tensor("D", "f32", ("N",), (0,)))
    outputs = (Tensor("C", "i32", ("N",), (0,)), Tensor("E", "f32", ("N",), (0,)))
    body = (("dotimes", ("i", "N"), ("set", "x", ("aref", "A", "i")), ("setf", ("aref", "C", "i"), ("+", ("mod", "x", ("aref", "B", "i")), "1"))),
            ("dotimes", ("j", "N"), ("setf", ("aref", "E", "j"), ("*", ("aref", "D", "j"), "2"))))
    spec = RandomSpec("Planted", inputs, outputs, body, (("N", 33),), 3)
    found = faults_in([spec], tmp_path, Counter(), (0,))
    assert [f.spec for f in found] == [spec]
    message = report(found[0], tmp_path)
    kept = (tmp_path / "Planted.toml").read_text()
    assert str(tmp_path / "Planted.toml") in message
    assert "mod" in kept
    assert "setf (aref E" not in kept, "the innocent statement is gone"


def test_a_wrong_schedule_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the lanes of a vector cancel each other when it is summed."""
    monkeypatch.setattr(helpers.Helpers, "fold", wrong_fold(helpers.Helpers.fold))
    body = (("setf", "s", "0"), ("dotimes", ("i", "N"), ("incf", "s", ("aref", "A", "i"))))
    spec = RandomSpec("Sum", (Tensor("A", "f32", ("N",), (0,)),), (Tensor("s", "f32", (), ()),), body, (("N", 256),), 3)
    assert not faults_in([spec], tmp_path, Counter(), (0,))
    assert faults_in([spec], tmp_path, Counter(), (1,))


def wrong_fold(right: Any) -> Any:
    def fold(self: Any, fn: str, dtype: str, lanes: int) -> Any:
        name = right(self, fn, dtype, lanes)
        self.texts[name] = self.texts[name].replace("return v[0]", "return v[0] - v[1]")
        return name
    return fold
