"""Many specs at once: each is read, interpreted and scheduled under a limit of time, all become one library of each build, and each is called."""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_specs import Case, arguments, case_of, compared_elements, loaded, options, verdict
from guarded_calls import Called, Job, bits_equal, call_all
from shrinking import shrink
from spec_forms import RandomSpec

from caten import attach, compiler, driver
from caten.core.program import Program, Target, resolve
from caten.core.text import read, show
from caten.errors import CatenError, Diagnostic
from caten.frontend.op import OpProgram
from caten.render import translation_unit
from caten.tensor import long_scans
from caten.testing import isolate

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30                           # of processor time, for one spec from its text to the text in C
VERIFIED = 4                           # times as many where the whole program is verified after each step of its schedule
WALL = 600.0                           # of wall time, for one that sleeps


@dataclass(frozen=True)
class Build:
    """A way to compile: runtime, its options, the level, and the numbers of threads with which each kernel is called."""

    runtime: str
    config: tuple[tuple[str, str], ...]
    level: int
    threads: tuple[int, ...] = ()
    sanitized: bool = False

    def __str__(self) -> str:
        return f"{self.runtime} -O{self.level}" + "".join(f" {k}={v}" for k, v in self.config)


BUILDS: tuple[Build, ...] = (
    Build("clang", (("OPT", "1"),), 0), Build("clang", (("OMP", "1"), ("OPT", "2")), 2, (1, 2, 3)),
    Build("gcc", (("OMP", "1"), ("OPT", "1")), 0), Build("gcc", (("OPT", "2"),), 2), Build("gcc", (("OPT", "0"), ("SANITIZE", "address+undefined")), 2, (), True),
)
ALL = tuple(range(len(BUILDS)))
MACHINES: tuple[dict[str, str], ...] = ({}, {"MARCH": "x86_64_v3"}, {"SIMD_LEN": "4"}, {})
# What a spec may be refused with, and why that is right.
LEGAL: Mapping[str, str] = {"E400": "a spec like no one would write may index outside at every size"}


@dataclass(frozen=True)
class Fault:
    """What went wrong with a spec, with which build (-1: reading or interpreting it, -2 and -4: scheduling it at -O0 and -O2)."""

    spec: RandomSpec
    build: int
    kind: str
    text: str


class Batch:
    """Specs on their way through the compiler: read, interpreted and scheduled in a process for each, then compiled and called together."""

    def __init__(self, specs: Sequence[RandomSpec], folder: Path, builds: Sequence[int] = ALL, machine: Mapping[str, str] | None = None,
                 seconds: float = SECONDS):
        self.specs, self.folder, self.builds, self.machine, self.seconds = specs, folder, builds, machine or {}, seconds
        self.seen: Counter[str] = Counter()
        self.found: list[Fault] = []

    def run(self) -> list[Fault]:
        ready: dict[int, list[tuple[Case, Program]]] = {}
        for spec in self.specs:
            case, programs = self.alone(spec)
            for level, program in programs.items():
                assert case is not None
                ready.setdefault(level, []).append((case, program))
        for b in self.builds:
            self.compare(b, ready.get(BUILDS[b].level, []))
        return self.found

    def fault(self, spec: RandomSpec, where: int, kind: str, text: str) -> None:
        self.found.append(Fault(spec, where, kind, text))

    def alone(self, spec: RandomSpec) -> tuple[Case | None, dict[int, Program]]:
        """The case and its program at each level, made under the limit in a process of its own; what came to light there is noted."""
        levels = {BUILDS[b].level: b for b in reversed(self.builds)}
        case: Case | None = None
        programs: dict[int, Program] = {}
        limit = self.seconds * (VERIFIED if options(spec, "c", {}, 0, self.folder).verify else 1)
        for where, work in [(-1, lambda: kept(case_of(spec, self.folder))), *[(-2 - v, partial(self.scheduled, spec, b)) for v, b in sorted(levels.items())]]:
            try:
                outcome = isolate.run(work, WALL, cpu=round(limit))
            except RuntimeError as internal:
                self.fault(spec, where, f"internal error {str(internal).strip().splitlines()[-1].split(':')[0]}", str(internal)[-1500:])
                if where == -1:
                    break
                continue
            if outcome.status == "ok" and where == -1:
                case = restored(spec, outcome.facts, outcome.arrays, self.folder)
                self.count(case)
            elif outcome.status == "ok":
                programs[-2 - where] = resolve(read(outcome.facts["text"])[0])
                self.seen["scan in blocks"] += "_chunk" in outcome.facts["text"]
                self.seen.update(f"warned {code}" for code in outcome.facts["warnings"])
                if "E942" in outcome.facts["warnings"]:
                    self.fault(spec, where, "a fault that the build went on after", "")
                self.seen["milliseconds"] += int(outcome.facts["seconds"] * 1000)
                self.seen["longest"] = max(self.seen["longest"], int(outcome.facts["seconds"] * 1000))
            elif outcome.status == "error":
                code = outcome.diagnostics[0].code
                self.seen[f"refused {code}"] += 1
                if code not in LEGAL:
                    self.fault(spec, where, f"refused {code}", str(CatenError(*outcome.diagnostics)))
            else:
                late = outcome.status == "timeout"
                self.fault(spec, where, "never ends" if late else "process died", f"after {limit} s" if late else outcome.signal)
            if where == -1 and case is None:
                break
        return case, programs

    def count(self, case: Case) -> None:
        self.seen["call fails" if case.status else "call succeeds"] += 1
        compared, loose = compared_elements(case)
        self.seen["elements"] += compared
        self.seen["loose elements"] += loose
        self.seen["nothing to compare"] += compared == 0

    def own(self, b: int, spec: RandomSpec | None) -> Any:
        made = BUILDS[b]
        return options(spec, made.runtime, {**self.machine, **dict(made.config)}, made.level, self.folder)

    def scheduled(self, spec: RandomSpec, b: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The program at the loop level, as a text. It is rendered, too, so that what cannot be rendered is known by its name."""
        own = self.own(b, spec)
        warnings: list[Diagnostic] = []
        begin = time.process_time()
        with scans_in_short_blocks():
            program = driver.advance(loaded(spec, own), "loop", own, warnings.append)
        compiler.render_programs([program], own)
        return {"text": show(program), "seconds": time.process_time() - begin, "warnings": [w.code for w in warnings]}, {}

    def library(self, b: int, programs: Sequence[Program]) -> compiler.Built:
        own = self.own(b, None)
        target = attach.target_of(own)
        with every_loop_on_threads():
            return compiler.Compilation([p.without(Target).adding(target) for p in programs], own).artifact()

    def compare(self, b: int, ready: Sequence[tuple[Case, Program]]) -> None:
        """Call every kernel of one library; where it does not compile, of its halves."""
        if not ready:
            return
        made = BUILDS[b]
        try:
            built = self.library(b, [p for _, p in ready])
        except CatenError as problem:
            if len(ready) == 1:
                return self.fault(ready[0][0].spec, b, f"compiler {problem.diagnostics[0].code}", str(problem)[-2000:])
            half = len(ready) // 2
            self.compare(b, ready[:half])
            return self.compare(b, ready[half:])
        jobs = [c.job for c, _ in ready]
        self.seen[f"called by {made}"] += len(jobs)
        if made.sanitized:
            return self.sanitize(b, built, ready)
        first: list[Called] = []
        for threads in made.threads or (1,):
            called = call_all(built.artifact, built.manifest, jobs, threads=threads)
            for (case, _), result in zip(ready, called, strict=True):
                if text := verdict(case, result, made.level):
                    self.fault(case.spec, b, "crash" if result.status is None else "wrong", f"{threads} threads: {text}")
            first = first or called
            for (case, _), one, other in zip(ready, first, called, strict=True):
                if one.status is not None and other.status is not None and not same(one, other):
                    self.fault(case.spec, b, "threads", f"{threads} threads give other bits than one")

    def sanitize(self, b: int, built: compiler.Built, ready: Sequence[tuple[Case, Program]]) -> None:
        report = sanitized(built, [c.job for c, _ in ready], self.folder)
        if not report:
            return
        if len(ready) == 1:
            return self.fault(ready[0][0].spec, b, "sanitizer", report)
        half = len(ready) // 2
        before = len(self.found)
        self.sanitize(b, built, ready[:half])
        self.sanitize(b, built, ready[half:])
        if len(self.found) == before:
            self.fault(ready[0][0].spec, b, "sanitizer", f"only when {len(ready)} are called in a row: {report}")


def same(one: Called, other: Called) -> bool:
    return one.status == other.status and all(bits_equal(v, other.results[k]) for k, v in one.results.items())


@contextmanager
def every_loop_on_threads() -> Iterator[None]:
    """Parallel loops run on threads however short they are."""
    before = translation_unit.threshold
    translation_unit.threshold = lambda program: 0
    try:
        yield
    finally:
        translation_unit.threshold = before


@contextmanager
def scans_in_short_blocks() -> Iterator[None]:
    """Scans are in blocks of 4 elements, in chunks of 16, from 8 elements on."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("BLOCK", 4), ("CHUNK", 16), ("LONG", 8)):
            patch.setattr(long_scans, name, value)
        yield


def sanitized(built: compiler.Built, jobs: Sequence[Job], folder: Path) -> str:
    """What the sanitizers report; nothing where all is well."""
    path = folder / f"jobs{os.getpid()}"
    path.write_bytes(pickle.dumps([Job(j.name, {k: np.ascontiguousarray(v) if np.ndim(v) else v for k, v in j.arguments.items()}, j.strides) for j in jobs]))
    preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                   "PYTHONPATH": f"{ROOT / 'src'}:{Path(__file__).parent}"}
    done = subprocess.run([sys.executable, str(Path(__file__).parent / "sanitized_calls.py"), str(built.artifact), str(path)],
                          capture_output=True, text=True, env=environment, timeout=600)
    path.unlink()
    bad = done.returncode != 0 or "all called" not in done.stdout or "runtime error" in done.stderr
    return (done.stderr[-3000:] or f"exit code {done.returncode}") if bad else ""


def kept(case: Case) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A case as a process sends it."""
    arrays = {f"bits {n}": a for n, a in case.bits.items()}
    for name, found in case.expected.items():
        arrays |= {f"{what} {name}": np.asarray(a) for what, a in zip(("wide", "bound", "loose"), found, strict=True) if a is not None}
    return {"status": case.status}, arrays


def restored(spec: RandomSpec, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray], folder: Path) -> Case:
    """The case that was sent."""
    op = loaded(spec, options(spec, "clang", {}, 0, folder))
    assert isinstance(op, OpProgram)
    values, strides = arguments(spec, op)
    by = {what: {k.split(" ", 1)[1]: a for k, a in arrays.items() if k.startswith(what + " ")} for what in ("bits", "wide", "bound", "loose")}
    expected = {n: (a, by["bound"].get(n), by["loose"].get(n)) for n, a in by["wide"].items()}
    return Case(spec, op, Job(spec.name, values, strides, spec.seed % 2 == 0), int(facts["status"]), expected, by["bits"])


def faults_in(specs: Sequence[RandomSpec], folder: Path, seen: Counter[str] | None = None, builds: Sequence[int] = ALL, machine: Mapping[str, str] | None = None,
              seconds: float = SECONDS) -> list[Fault]:
    """Everything wrong with these specs."""
    batch = Batch(specs, folder, builds, machine, seconds)
    found = batch.run()
    if seen is not None:
        longest = max(seen["longest"], batch.seen["longest"])
        seen.update(batch.seen)
        seen["longest"] = longest
    return found


def report(fault: Fault, folder: Path, tries: int = 150, machine: Mapping[str, str] | None = None, seconds: float = SECONDS) -> str:
    """The fault with the simplest spec that has it, which is kept in a file."""
    builds = (fault.build,) if fault.build >= 0 else (1,) if fault.build == -4 else (0,) if fault.build > -3 else ALL

    def like(candidate: RandomSpec) -> list[Fault]:
        return [f for f in faults_in([candidate], folder, None, builds, machine, seconds) if (f.build, f.kind) == (fault.build, fault.kind)]
    least = shrink(fault.spec, like, tries)
    text = next((f.text for f in like(least)), fault.text + " (not seen again alone)")
    kept = folder / f"{least.name}.toml"
    kept.write_text(least.text())
    where = str(BUILDS[fault.build]) if fault.build >= 0 else {-1: "reading and interpreting", -2: "-O0", -4: "-O2"}[fault.build]
    return f"seed {fault.spec.seed}, {where}: {fault.kind}: {text}\nkept in {kept}:\n{least.text()}"
