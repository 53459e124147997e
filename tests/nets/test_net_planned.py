"""The operators of the library and their gradients, planned for machines of three vector lengths, on one thread and two: what is made is verified."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from caten import driver
from caten.differentiation import gradient_of
from caten.errors import CatenError
from caten.frontend import operator_library as library
from caten.frontend.generic_signature import read_instance
from caten.frontend.operator_instances import instances_of
from caten.loading import loaded
from caten.options import Instance, Options
from caten.tensor.values import TensorProgram

ENTRIES = {e.name: e for e in library.entries()}
MACHINES = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
OURS = ("E47", "E48", "E94", "E99")                # what a verifier says, and faults
LONG = ("fft", "svd", "lstsq", "eig", "polyfit", "pinv", "tensorinv")       # these take long; one instance of each
# An operator, its instance, a machine and whether on threads: what was refused once.
FOUND = [("matmul_int4", "", "x86-64-v3", "0"), ("interp", "x=float16[A] xp=float16[N] fp=float16[N]", "x86-64-v3", "0"),
         ("im2col", "x=float32[N,C,H,W]", "x86-64-v2", "1"), ("tensorinv", "x=float64[A,B,C] ind=1", "x86-64-v4", "1"),
         ("scatter_max", "x=float16[M] updates=float16[K]", "x86-64-v4", "1")]


def instances(entry: library.Entry) -> list[Instance]:
    own = [replace(read_instance(written), of=entry.name) for case in entry.table["test"]["case"] if (written := case.get("instance"))]
    made = list(dict.fromkeys([*own, *instances_of(entry, ["f32"], [2]), *instances_of(entry, ["f16"], [1])]))
    return made[:1 if any(part in entry.name for part in LONG) else 5]


def refusals(entry: library.Entry, own: Options) -> Iterator[str]:
    """What the verifiers say of an operator and its gradient. Instances that are none, and what has no gradient, are refused before."""
    try:
        (program, *_) = loaded([entry.spec], own)
        driver.advance(program, "loop", own)
        values = driver.advance(program, "tensor", own)
        if isinstance(values, TensorProgram):
            driver.advance(gradient_of(values, own), "loop", own)
    except CatenError as problem:
        if problem.diagnostics[0].code.startswith(OURS):
            yield f"{entry.name} {own.instances} {own.config}: {problem}"


@pytest.mark.parametrize(("name", "instance", "march", "threads"), [pytest.param(*row, id=row[0], marks=[pytest.mark.nightly] if row[0] in (*LONG, "matmul_int4") else []) for row in FOUND])
def test_what_was_refused_once(name: str, instance: str, march: str, threads: str) -> None:
    of = (replace(read_instance(instance), of=name),) if instance else ()
    assert not [*refusals(ENTRIES[name], Options(config=(("MARCH", march), ("OMP", threads)), instances=of))]


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(16))
def test_the_library(part: int) -> None:
    found, count = list[str](), 0
    for k, entry in enumerate(ENTRIES.values()):
        if k % 16 == part:
            for n, instance in enumerate(instances(entry) or [None]):
                own = Options(config=(("MARCH", MACHINES[(k + n) % 3]), ("OMP", str((k + n) % 2))), instances=(instance,) if instance else ())
                found, count = [*found, *refusals(entry, own)], count + 1
    assert not found, "\n".join(found)
    assert count > 30
