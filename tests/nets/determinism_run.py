"""Run by itself, in a process with its own hash seed, folder or number of threads: prints a digest for every sample."""
from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import numpy as np

from caten import compiler, driver, loading
from caten.core import program as core
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import data

ENOUGH = 70_000          # elements of the largest array: beyond the threshold under which a kernel stays on one thread


def rendered(files: list[Path]) -> None:
    """The text of each sample, in C."""
    for path in files:
        options = Options(config=(("MARCH", "x86_64_v3"),))
        text = driver.render(loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options), options)
        print(path.stem, hashlib.sha256(text.encode()).hexdigest())


def sizes_of(op: OpProgram) -> dict[str, float]:
    """The sizes of the last test case, doubled until the arrays are large enough."""
    case = op.all(core.Case)[-1]
    values = {s.name: float(s.value) for s in case.sizes}
    scalars = {s.name for s in op.all(core.Scalar)}
    if scalars & {"stride", "pad", "dilation"}:
        return values
    sizes = {n: max(2, int(values[n])) for n in op.sizes}
    while max(np.prod([sizes.get(getattr(e, "name", ""), 2) for e in b.shape]) for b in op.buffers.values()) < ENOUGH:
        sizes = {n: v * 2 for n, v in sizes.items()}
    return values | sizes


def library(files: list[Path], cache: str) -> tuple[compiler.Built, list[OpProgram]]:
    options = Options(config=(("OMP", "1"), ("OPT", "0")), cache_dir=cache)
    ops: dict[str, OpProgram] = {}
    for path in files:
        for op in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options):
            if isinstance(op, OpProgram) and op.all(core.Case):
                ops.setdefault(op.name, op)
    return compiler.Compilation(list(ops.values()), options).artifact(), list(ops.values())


def called(files: list[Path], cache: str, counts: list[str]) -> None:
    """The results of each sample's operators with so many threads, each in a process of its own."""
    built, ops = library(files, cache)
    for count in counts:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            os.environ["OMP_NUM_THREADS"] = count
            results(built, ops)
            return
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{count} threads: the process did not end as it should")


def results(built: compiler.Built, ops: list[OpProgram]) -> None:
    """The results of each operator, and how many threads there were in the end."""
    from guarded_calls import Job, call

    from caten.runtime.library import open_library
    opened = open_library(built.artifact, built.manifest)
    for op in ops:
        arguments = data.arguments(op, {k: int(v) if k in op.sizes or v == int(v) else v for k, v in sizes_of(op).items()}, seed=5)
        status, results, wrong = call(opened, Job(op.name, arguments))
        assert not wrong, wrong
        print(op.name, status, hashlib.sha256(b"".join(r.tobytes() for r in results.values())).hexdigest())
    print("threads", len(os.listdir("/proc/self/task")))


if __name__ == "__main__":
    samples = sorted(Path(sys.argv[2]).glob("*.toml"))
    if sys.argv[1] == "render":
        rendered(samples)
    else:
        called(samples, *sys.argv[3:4], sys.argv[4:])
