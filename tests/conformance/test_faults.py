"""A runtime that is wrong on purpose: each of its faults turns its own cells red, and only those."""
from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from faults import FAULTS, Fault, applied
from wrong_runtime import TYPE

from caten import attach, compiler, loading
from caten.conformance import execute, suite
from caten.conformance.cases import Case, Kernel, selected
from caten.conformance.verdicts import Verdict
from caten.options import Options

WRONG = str(Path(__file__).parent / "wrong_runtime.py")
SECONDS = 2.0                     # the time limit of a call: one fault hangs
# What is run with every fault, whether it is about that or not.
SAMPLE = ("operator/add/i32", "operator/lt/f32", "operator/max/f32", "operator/floordiv/i32", "operator/where/f32", "conversion/f32/i32", "bitcast/f32/i32",
          "feature/symbolic-bounds/f32", "feature/tail-of-a-sum/i32", "feature/rank-0/f32", "feature/gather/f32", "feature/index-too-large/f32",
          "feature/permuted/f32")
WITH_FLAGS = [name for name, fault in FAULTS.items() if fault.flags]
# At -O2 kernels take longer to compile, and are fewer.
VECTORS = ("operator/add/i32", "operator/add/f32", "feature/tail-of-a-copy/f32", "feature/gather/f32", "feature/threads-map/f32", "feature/misaligned/f32")
MOST = 3                          # kernels of what is red for many


EVERYTHING = [c for c in suite.all_cases(attach.runtime_of(Options())) if c.kernel is not None]


def plan_of(fault: str, opt: int) -> execute.Plan:
    options = Options(runtime=WRONG, config=(("FAULT", fault), ("OPT", "0" if opt == 0 and fault not in WITH_FLAGS else "1")), opt=opt, cc=os.environ.get("CC"))
    return execute.Plan(options, attach.runtime_of(options), 1, SECONDS)


def run(fault: str, cases: Sequence[Case], opt: int = 0) -> dict[str, Verdict]:
    return execute.run(cases, plan_of(fault, opt), lambda done, of, name: None)


@cache
def rendered(kernel: Kernel, opt: int) -> compiler.Rendered:
    """A kernel without a fault."""
    options = execute.options_of(kernel, plan_of("none", opt))
    return compiler.Compilation(loading.loaded([kernel.source], options), options).rendered


def touches(fault: Fault, kernel: compiler.Rendered) -> bool:
    """Does a fault change a kernel? What it leaves as it is has the verdicts of a run without it."""
    if fault.threads and not kernel.runtime.settings["OMP"]:
        return False
    return bool(fault.flags) or (fault.program is not None and any(applied(fault.program, p) is not p for p in kernel.programs)) or (
        fault.text is not None and fault.text(kernel.source) != kernel.source)


def changed(name: str, kernels: set[Kernel]) -> set[Kernel]:
    """The kernels that a fault changes, but for one that without its check never ends."""
    return {k for k in kernels if not k.name.startswith("k_symbolic_step") and touches(FAULTS[name], rendered(k, FAULTS[name].opt))}


def kernels_of(cases: Sequence[Case]) -> set[Kernel]:
    return {c.kernel for c in cases if c.kernel}


def cases_of(name: str, nightly: bool) -> list[Case]:
    """The sample, and all that the fault changes or a few of those that must be red."""
    fault = FAULTS[name]
    everything = EVERYTHING
    if nightly:
        kernels = changed(name, kernels_of(everything))
        own = [c for c in everything if c.kernel in kernels]
    else:
        own = [c for pattern in fault.red for c in narrowed(selected(everything, [pattern]))]
    chosen = {c.id for c in [*selected(everything, SAMPLE if fault.opt == 0 else VECTORS), *own]}
    return [c for c in everything if c.id in chosen]


def narrowed(cases: list[Case]) -> list[Case]:
    """Those of a few kernels, of float32 where there are such."""
    kernels = sorted({c.kernel.name: c.column != "f32" for c in cases if c.kernel}.items(), key=lambda item: item[1])
    return [c for c in cases if c.kernel and c.kernel.name in dict(kernels[:MOST])]


def may_be_red(name: str) -> tuple[str, ...]:
    """Patterns of the cells outside of which nothing is red: 16-bit floats are computed as float32, and where there are vectors, complex numbers by
    their parts."""
    own = FAULTS[name].red + FAULTS[name].may
    computed = [("f32", "f16"), ("f32", "bf16"), *([("f32", "c64"), ("f64", "c128")] if FAULTS[name].opt else [])]
    return (*own, *[p.replace(part, other) for p in own for part, other in computed if part in p])


def test_a_fault_of_vectors_of_doubles_is_one_of_complex_numbers() -> None:
    """They are computed by their parts; of other operators nothing is red."""
    cases = selected(EVERYTHING, ["feature/nested-reductions/c128", "operator/real/c128"])
    found = run("rest of a vector dropped", cases, 2)
    red = [c for c in cases if found[c.id].status not in ("PASS", "QUALITY")]
    assert red
    assert selected(red, may_be_red("rest of a vector dropped")) == red


@pytest.mark.parametrize("name", ["floor cuts off", "rest of a vector dropped", "C that does not compile"])
def test_the_kernels_that_a_fault_changes_are_known(name: str) -> None:
    """At night a fault is run with these: those that must be red, and not every one."""
    for pattern in FAULTS[name].red:
        assert changed(name, kernels_of(narrowed(selected(EVERYTHING, [pattern]))))
    assert changed(name, kernels_of(selected(EVERYTHING, ["operator/add/i32", "feature/gather/f32"]))) == set()


@pytest.mark.slice(16)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_turns_its_own_cells_red_and_only_those(name: str, nightly: bool) -> None:
    cases = cases_of(name, nightly)
    found = run(name, cases, FAULTS[name].opt)
    # some functions of the C library are of less QUALITY without a fault, too
    usual = {case: verdict.status for case, verdict in run("none", cases, FAULTS[name].opt).items()} if nightly else {}
    late = [c for c in cases if found[c.id].status == "TIMEOUT" and not selected([c], may_be_red(name))]
    found |= run(name, late, FAULTS[name].opt)                 # on a busy machine a call may take longer than SECONDS
    red = [c for c in cases if found[c.id].status not in ("PASS", "XFAIL", usual.get(c.id))]
    assert [c.id for c in red if not selected([c], may_be_red(name))] == []
    assert [pattern for pattern in FAULTS[name].red if not selected(red, [pattern])] == []


def test_without_a_fault_nothing_is_red() -> None:
    cases = cases_of("comparison flipped", False)
    assert {v.status for v in run("none", cases).values()} == {"PASS"}


def test_a_type_that_is_claimed_and_refused_is_undeclared() -> None:
    cases = selected(EVERYTHING, ["feature/rank-0"])
    verdicts = run("type refused", cases)
    found = {c.column: verdicts[c.id].status for c in cases}
    assert {column for column, status in found.items() if status == "UNDECLARED"} == {TYPE}
    assert {status for column, status in found.items() if column != TYPE} == {"PASS"}


def test_options_that_are_not_refused_fail() -> None:
    options = Options(runtime=WRONG, config=(("FAULT", "options not refused"),))
    runtime = attach.runtime_of(options)
    cases = [c for c in suite.all_cases(runtime) if c.refused]
    found = execute.run(cases, execute.Plan(options, runtime, 1, SECONDS), lambda done, of, name: None)
    assert {c.column for c in cases if found[c.id].status == "FAIL"} == {"NO_SUCH_KEY"}
