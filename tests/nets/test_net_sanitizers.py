"""Generated code under gcc's address and undefined-behaviour sanitizers, and between pages that no one may touch: nothing is found."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guarded_calls import Job, call_all
from spec_batches import sanitized

from caten import attach, compiler, driver, loading, passes
from caten.core import program as core
from caten.core.program import Program, Scalar, Target, resolve
from caten.core.text import read
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import data

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.toml"))
LARGEST = 200_000                       # elements of a sample's test case that is run here


def options(folder: Path, runtime: str = "gcc", opt: int = 2, **config: str) -> Options:
    return Options(runtime=runtime, config=tuple(config.items()), opt=opt, cache_dir=str(folder / "cache"))


def sample_jobs(op: OpProgram) -> list[Job]:
    """The sample's own cases, and all sizes 0 and 1."""
    settings = [{s.name: s.value for s in c.sizes} for c in op.all(core.Case)]
    scalars = {k: v for k, v in settings[0].items() if k not in op.sizes} if settings else {}
    settings += [dict.fromkeys(op.sizes, str(n)) | scalars for n in (0, 1)]
    jobs = []
    for own in settings:
        arguments = data.arguments(op, {k: int(v) if v.lstrip('-').isdigit() else float(v) for k, v in own.items()}, seed=1)
        if sum(np.size(v) for v in arguments.values()) <= LARGEST:
            jobs += [Job(op.name, arguments, at_end=end) for end in (True, False)]
    return jobs


def samples(own: Options, nightly: bool) -> tuple[list[OpProgram], list[Job]]:
    """The operators of the samples, by day of every fifth, and calls of each."""
    found: dict[str, OpProgram] = {}
    for path in SAMPLES[::1 if nightly else 5]:
        for op in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), own):
            assert isinstance(op, OpProgram)
            found.setdefault(op.name, op)
    ops = [op for op in found.values() if not any(s.name.endswith("_stride") for s in op.all(Scalar))]
    return ops, [job for op in ops for job in sample_jobs(op)]


def library(programs: Sequence[Program], own: Options) -> compiler.Built:
    target = attach.target_of(own)
    return compiler.Compilation([p.without(Target).adding(target) for p in programs], own).artifact()


@pytest.mark.nightly                      # by day every second random spec is
def test_samples_under_the_sanitizers(tool: Any, nightly: bool, tmp_path: Path) -> None:
    tool("gcc")
    for opt in (0, 2) if nightly else (2,):
        own = options(tmp_path, opt=opt, SANITIZE="address+undefined", OPT="1" if nightly else "0")
        ops, jobs = samples(own, nightly)
        assert len(ops) >= (30 if nightly else 6)
        print(f"-O{opt}: {len(jobs)} calls of {len(ops)} operators")
        built = library([driver.advance(op, "loop", own) for op in ops], own)
        assert not (report := sanitized(built, jobs, tmp_path)), report


def test_samples_between_forbidden_pages(nightly: bool, tmp_path: Path) -> None:
    for opt in (0, 2) if nightly else (2,):
        own = options(tmp_path, "clang", opt, OPT="1" if nightly else "0")
        ops, jobs = samples(own, nightly)
        built = library([driver.advance(op, "loop", own) for op in ops], own)
        wrong = [f"{job.name}: {called.wrong} {called.status}" for job, called in zip(jobs, call_all(built.artifact, built.manifest, jobs), strict=True)
                 if called.wrong or (called.status or 0) < 0]
        assert not wrong, "\n".join(wrong)


OUTSIDE = """(loop Outside (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (size N)
  (kernel main (for i 0 N 1 serial (setf (aref Y i) (aref X (+ i 1))))))"""


def outside(own: Options) -> compiler.Built:
    return compiler.Compilation([resolve(read(OUTSIDE)[0]).adding(attach.target_of(own))], own).artifact()


def jobs_outside() -> list[Job]:
    x = np.ones(64, np.float32)
    return [Job("Outside", {"X": x, "Y": np.zeros_like(x), "N": 64})]


def test_a_read_outside_is_found_by_the_sanitizer(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    monkeypatch.setitem(passes.VERIFIERS, "loop", lambda program: None)
    own = options(tmp_path, SANITIZE="address+undefined", OPT="0")
    assert "heap-buffer-overflow" in sanitized(outside(own), jobs_outside(), tmp_path)


def test_a_read_outside_is_found_by_the_forbidden_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(passes.VERIFIERS, "loop", lambda program: None)
    own = options(tmp_path, "clang", OPT="0")
    built = outside(own)
    called = call_all(built.artifact, built.manifest, jobs_outside())[0]
    assert called.status is None
    assert "crash SIGSEGV" in called.wrong[0]


def test_a_stray_write_is_seen(tmp_path: Path) -> None:
    """Bytes between the elements of a strided array that change are reported."""
    text = OUTSIDE.replace("(aref X (+ i 1))", "(aref X i)").replace("(buffer Y f32 (N) (0) out)", "(buffer Y f32 (N 1) (0 1) out)").replace("(aref Y i)", "(aref Y i 0)")
    own = options(tmp_path, "clang", OPT="0")
    built = compiler.Compilation([resolve(read(text)[0]).adding(attach.target_of(own))], own).artifact()
    x = np.ones(8, np.float32)
    job = Job("Outside", {"X": x, "Y": np.zeros((8, 1), np.float32), "N": 8}, {"Y": (3, 1)})       # the kernel writes densely
    assert any("between the elements" in w for w in call_all(built.artifact, built.manifest, [job])[0].wrong)
