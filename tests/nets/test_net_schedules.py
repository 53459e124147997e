"""Random schedules: whatever steps a person takes, each is refused with a reason, or leaves a program that is shown to be right and computes the same.

Steps of every primitive are drawn for samples and random specs, one after the other, or a planned schedule is changed here and there. Each accepted
step is verified; what was made is printed, read, replayed, and run: as C in one library, with threads, a share of it under gcc's sanitizers, and by
the interpreter where it is for a device.
"""
from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_specs import Case, case_of
from compared_specs import options as spec_options
from guarded_calls import Called, Job, call_all
from random_specs import random_spec
from random_steps import edited, random_step, stores
from test_net_sanitizers import sanitized

from caten import attach, compiler, driver, loading
from caten.core import program as core
from caten.core.program import Schedule, Target, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.affine import canonical
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import autoscheduler, script, user_steps
from caten.schedule.script import PRIMITIVES, Step
from caten.semantics import comparison, interpret, oracle
from caten.testing import data, sizes_and_scalars

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.toml"))
SLICE, NIGHTLY, BATCH = 40, 3000, 40
MOST_STEPS, TRIES, SECONDS = 8, 30, 10.0                 # taken, and tried; of one step
MOST_STORES, MOST_TILE, MOST_ELEMENTS = 300, 1024, 40_000       # of a program that is gone on with, and of its loops; of the arrays of a call
COMPILERS = (("gcc", {"OPT": "1", "OMP": "1"}), ("clang", {"OPT": "1", "OMP": "1"}))
MARCHES = ("x86_64_v2", "x86_64_v3")
REFUSALS = {f"E{n}" for n in (501, 502, 503, *range(510, 539), 540, 541)}
RARE = {"prefetch_at", "unguard", "transpose", "stream", "precompute", "compute_at", "flatten", "widen", "inline", "hoist"}      # accepted seldom


@dataclass(frozen=True)
class Subject:
    """An operator, a call of it, and what must come out."""

    op: OpProgram
    own: Options
    job: Job
    status: int
    expected: dict[str, tuple[np.ndarray, Any, Any]]


@dataclass(frozen=True)
class Made:
    """A schedule that was taken, and the program after it, which has a name of its own."""

    seed: int
    subject: Subject
    before: LoopProgram
    program: LoopProgram
    steps: tuple[Step, ...]


# -- subjects -------------------------------------------------------------------------------------------------------------------------------

def subject_of(seed: int, rng: random.Random, folder: Path) -> Subject | None:
    """A random spec or a sample with one of its cases; None where the front end refuses the spec, or the case is large."""
    device = rng.random() < 0.15
    march = rng.choice(MARCHES)
    own = Options(runtime="opencl" if device else "gcc", config=() if device else (("MARCH", march),), opt=rng.choice((0, 1, 2)), cache_dir=str(folder / "cache"))
    if rng.random() < 0.5:
        spec = random_spec(70_000 + seed)
        try:
            case: Case = case_of(spec, folder)
        except CatenError:
            return None
        own = replace(own, strided=spec_options(spec, "gcc", {}, 0, folder).strided)
        op = loaded(spec.name, spec.text(), own)[0]
        return Subject(op, own, case.job, case.status, case.expected)
    path = SAMPLES[seed % len(SAMPLES)]
    op = rng.choice(loaded(path.name, path.read_text(), own))
    cases = sorted(op.all(core.Case), key=lambda c: sum(int(float(s.value)) for s in c.sizes))[:3]
    values = data.arguments(op, sizes_and_scalars.case_values(op, rng.choice(cases)), seed=seed)
    wide = comparison.widened(op, values)
    if sum(np.size(v) for v in values.values()) > MOST_ELEMENTS or interpret.run(oracle.bounded(op), wide) != 0:
        return None
    names = [b.name for b in op.buffers.values() if b.access != "in"]
    return Subject(op, own, Job(op.name, values, at_end=seed % 2 == 0), 0, {n: (wide[n], wide.get(f"{n}__bound"), wide.get(f"{n}__loose")) for n in names})


def loaded(name: str, text: str, own: Options) -> list[OpProgram]:
    return [op for op in loading.load_programs(SpecText(name, text, "toml"), own) if isinstance(op, OpProgram)]


def named(program: LoopProgram, seed: int) -> LoopProgram:
    """The same, beside others in one library."""
    return program.replace(name=f"{program.name}_{seed}",
                           clauses=tuple([c.replace(name=f"{c.name}_{seed}") if hasattr(c, "body") else c for c in program.clauses]))


# -- schedules ------------------------------------------------------------------------------------------------------------------------------

def planned(rng: random.Random, base: LoopProgram) -> list[Step | None]:
    """Steps of a changed schedule, and places for drawn ones (None)."""
    if base.opt < 2 or rng.random() < 0.6:
        return [None] * TRIES
    fact = autoscheduler.schedule(base).first(Schedule)
    return [*edited(rng, fact.steps if fact else ())[:40], *[None] * rng.randrange(1, 6)]


def schedule_of(seed: int, subject: Subject, rng: random.Random, counts: Counter[str]) -> Made | None:
    """A random schedule, checked step by step; None where the program itself is one that only careful passes show to be right."""
    base = driver.unscheduled(subject.op, subject.own)
    try:
        verifier.verify(base)
    except CatenError:
        return None
    node, steps, most, begun = base, list[Step](), rng.randrange(1, MOST_STEPS + 1), planned(rng, base)
    for wanted in begun:
        if len(steps) >= most and None in begun[:1]:
            break
        step = wanted or random_step(rng, node)
        after = tried(node, step, counts, f"seed {seed}, {subject.op.name}, {steps}")
        if after is not None and stores(after) <= MOST_STORES and not is_endless(step):
            node = after
            steps.append(step)
    counts["schedules"] += 1
    counts[f"{min(len(steps), 9)} steps"] += 1
    return Made(seed, subject, base, node, tuple(steps))


def is_endless(step: Step) -> bool:
    """Does it make so many iterations that nobody waits for their end?"""
    return step[0] in ("pad", "split") and int(step[2]) > MOST_TILE and step[3:4] != ("cut",)


def tried(node: LoopProgram, step: Step, counts: Counter[str], said: str) -> LoopProgram | None:
    """The program after a step; None where it is refused, with a reason and in time."""
    counts[f"{step[0]} drawn"] += 1
    start, after, refusal = time.process_time(), None, None
    try:
        after = user_steps.taken(node, step)
    except CatenError as refused:
        refusal = refused
    took = time.process_time() - start
    assert took < SECONDS, f"{said}: {step} took {took:.1f} s"
    counts[f"{step[0]} {'accepted' if refusal is None else 'refused'}"] += 1
    for d in refusal.diagnostics if refusal is not None else ():
        assert d.code in REFUSALS, f"{said}: {step}: {refusal}"
        assert len(d.message) > len(step[0]) + 5, f"{said}: {step}: {refusal}"
        if d.code == "E538":
            counts[f"{step[0]} not shown"] += 1
            print(f"{said}: {refusal}")
    return after


def check_texts(made: Made) -> None:
    """Printed and read it is the same, and what is printed as its schedule makes it again."""
    assert resolve(read(show(made.program))[0]) is made.program, f"seed {made.seed}: {made.steps}"
    fact = made.program.first(Schedule)
    if fact is not None and made.steps:
        again = script.apply(made.before, script.parse_schedule(show(fact)).steps)
        assert show(again) == show(made.program), f"seed {made.seed}: {made.steps} replay to another program"


# -- results --------------------------------------------------------------------------------------------------------------------------------

def wrong(subject: Subject, status: int | None, results: dict[str, np.ndarray], also: Sequence[str] = ()) -> str:
    """What is wrong with a call; nothing where it is right."""
    if also or status is None:
        return "; ".join(also) or "crashed"
    if not subject.expected or (status != 0 and subject.status != 0):
        return ""
    if (status == 0) != (subject.status == 0):
        return f"returned {status}, expected {subject.status}"
    for name, (want, bound, loose) in subject.expected.items():
        found = comparison.check(results[name], want, bound, loose, subject.op.buffers[name].type)
        if not found.passed:
            at = found.worst or ()
            return f"{name}{list(at)} is {results[name][at]!r}, expected {np.asarray(want)[at]!r} ({found.ratio:.3g} times its bound)"
    return ""


def interpreted(made: Made, order: str) -> str:
    values = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in made.subject.job.arguments.items()}
    status = interpret.run(made.program, values, order)
    return wrong(made.subject, status, {n: values[n] for n in made.subject.expected} if status == 0 else {})


def library(made: Sequence[Made], runtime: str, config: dict[str, str], folder: Path) -> tuple[compiler.Built, list[Job]]:
    """One library of all programs, and a call of each."""
    march = dict(made[0].subject.own.config)["MARCH"]
    own = Options(runtime=runtime, config=(("MARCH", march), *config.items()), cache_dir=str(folder / "cache"))
    target = attach.target_of(own)
    programs = [named(m.program, m.seed).without(Target).adding(target) for m in made]
    jobs = [replace(m.subject.job, name=p.name) for m, p in zip(made, programs, strict=True)]
    return compiler.Compilation(programs, own).artifact(), jobs


def faults_of(made: Sequence[Made], number: int, threads: int, sanitize: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong with programs that run as C, on one machine of MARCHES."""
    if not made:
        return []
    runtime, config = COMPILERS[number]
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    built, jobs = library(made, runtime, config, folder)
    called: list[Called] = call_all(built.artifact, built.manifest, jobs)
    texts = [(m, wrong(m.subject, c.status, c.results, c.wrong)) for m, c in zip(made, called, strict=True)]
    found = [f"seed {m.seed}, {runtime}, {threads} threads, {m.subject.op.name} -O{m.subject.own.opt}: {m.steps}: {text}" for m, text in texts if text]
    share = [m for m in made if not m.subject.job.strides][:: 1 if sanitize else 6]
    if share and not found:
        built, jobs = library(share, "gcc", {"SANITIZE": "address+undefined", "OPT": "0"}, folder)
        report = sanitized(built, jobs, folder)
        found += [f"sanitizers, seeds {[m.seed for m in share]}: {report}"] if report else []
    return found


# -- the net --------------------------------------------------------------------------------------------------------------------------------

def drawn(seeds: Sequence[int], folder: Path, counts: Counter[str]) -> list[Made]:
    """The schedules of these seeds that have steps."""
    found = []
    for seed in seeds:
        rng = random.Random(f"schedule {seed}")
        subject = subject_of(seed, rng, folder)
        made = schedule_of(seed, subject, rng, counts) if subject is not None else None
        if made is not None and made.steps:
            check_texts(made)
            found.append(made)
    return found


def faults_in(seeds: Sequence[int], folder: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything wrong with what the schedules of these seeds make."""
    made, found = drawn(seeds, folder, counts), list[str]()
    for m in [m for m in made if m.subject.own.runtime == "opencl"]:
        if interpreted(replace(m, program=m.before), "forward"):              # it overflows as it is written, which the wide reference does not
            counts["not comparable"] += 1
            continue
        found += [f"seed {m.seed}, interpreter {order}: {m.steps}: {text}" for order in ("forward", "reverse") if (text := interpreted(m, order))]
        counts["interpreted"] += 1
    for n, march in enumerate(MARCHES):
        there = [m for m in made if ("MARCH", march) in m.subject.own.config]
        batch = seeds[0] // len(seeds) + n
        found += faults_of(there, batch % len(COMPILERS), 1 + batch % 3, batch % 8 == 0, folder, monkeypatch)
        counts["run as C"] += len(there)
        counts["run as C with threads"] += sum("parallel" in [s[0] for s in m.steps] for m in there)
    return found


def table(counts: Counter[str]) -> str:
    rows = [f"{name:12} " + " ".join(f"{counts[f'{name} {what}']:6} {what}" for what in ("drawn", "accepted", "refused", "not shown")) for name in PRIMITIVES]
    return "\n".join([*rows, str({k: v for k, v in sorted(counts.items()) if k.split()[0] not in PRIMITIVES})])


def test_random_schedules(tool: Any, nightly: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    counts: Counter[str] = Counter()
    found: list[str] = []
    for start in range(0, NIGHTLY if nightly else SLICE, BATCH):
        found += faults_in(range(start, start + BATCH), tmp_path, counts, monkeypatch)
    print(table(counts))
    assert not found, "\n".join(found)
    assert all(counts[f"{name} drawn"] and counts[f"{name} refused"] for name in PRIMITIVES), "a primitive was never drawn, or never refused"
    missing = [name for name in PRIMITIVES if (nightly or name not in RARE) and not counts[f"{name} accepted"]]
    assert len(missing) <= (0 if nightly else 2), f"never accepted: {missing}"            # a slice is small
    steps, unknown = (sum(n for what, n in counts.items() if what.endswith(end)) for end in (" accepted", " not shown"))
    assert unknown <= 0.01 * steps + 3, "the verifier refused too much of what primitives made"
    assert counts["run as C"] > 0
    assert counts["interpreted"] > 0


# -- planted faults -------------------------------------------------------------------------------------------------------------------------

def planted(name: str, steps: Sequence[Step], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the net finds wrong with a schedule of a sample."""
    path = next(p for p in SAMPLES if p.stem == name)
    own = Options(runtime="gcc", config=(("MARCH", MARCHES[1]),), opt=1, cache_dir=str(folder / "cache"))
    op = loaded(path.name, path.read_text(), own)[0]
    values = data.arguments(op, dict.fromkeys(op.sizes, 13) | {"a": 2.0}, seed=1)
    wide = comparison.widened(op, values)
    assert interpret.run(oracle.bounded(op), wide) == 0
    names = [b.name for b in op.buffers.values() if b.access != "in"]
    subject = Subject(op, own, Job(op.name, values), 0, {n: (wide[n], wide.get(f"{n}__bound"), wide.get(f"{n}__loose")) for n in names})
    node = base = driver.unscheduled(op, own)
    for step in steps:
        node = user_steps.taken(node, step)
    made = Made(0, subject, base, node, tuple(steps))
    check_texts(made)
    return faults_of([made], 0, 2, True, folder, monkeypatch)


@pytest.mark.slice(2)
@pytest.mark.parametrize(("steps", "place", "fault"), [
    ((("split", "i", "4"),), "caten.schedule.primitives.split.tidied", lambda made: made[:1]),
    ((("fuse", "i", "j"),), "caten.schedule.primitives.fuse.tidied", lambda made: tuple([s.replace(hi=canonical(s.hi - 1)) for s in made])),
    ((("pad", "i", "4"),), "caten.schedule.primitives.pad.guarded", lambda stmts, conds: ()),
    ((("split", "j", "8"), ("vectorize", "ji"), ("parallel", "i")), "", None),
], ids=["a rest that is forgotten", "an iteration less", "stores that are gone", "none"])
def test_a_wrong_primitive_is_caught(tool: Any, steps: tuple[Step, ...], place: str, fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults: programs that the verifier accepts, and that compute something else. Without one, nothing is found."""
    tool("gcc")
    if fault is None:
        assert not planted("gemm", steps, tmp_path, monkeypatch)
        return
    monkeypatch.setattr(place, fault)
    assert planted("gemm", steps, tmp_path, monkeypatch)


def test_a_loop_that_threads_may_not_share_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: `parallel` asks nothing. The verifier finds what its iterations share, and the step is refused with the reason."""
    monkeypatch.setattr("caten.schedule.primitives.parallel.obstacle_to_parallel", lambda *_: None)
    with pytest.raises(CatenError, match=r"E538: \(parallel p\).*carries a dependence"):
        planted("gemm", (("parallel", "p"),), tmp_path, monkeypatch)


def test_a_schedule_that_does_not_replay_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the record of a step leaves a word out."""
    right = script.recorded
    monkeypatch.setattr(script, "recorded", lambda program, steps: right(program, [s[:3] if s[0] == "split" else s for s in steps]))
    with pytest.raises((AssertionError, CatenError)):
        planted("gemm", (("split", "i", "4", "pad"), ("parallel", "io")), tmp_path, monkeypatch)
