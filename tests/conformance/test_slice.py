"""A slice of the conformance suite on every runtime that can be used here; the committed reports say the same."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from caten import attach
from caten.conformance import execute, markdown_report, record, samples, suite
from caten.conformance.cases import selected
from caten.core.program import Case
from caten.frontend import operator_library
from caten.frontend.spec import read_file
from caten.loading import load_programs
from caten.options import Options, environment
from caten.runtime import discover, plugin_checks

REPORTS = Path(__file__).resolve().parents[2] / "docs" / "reports"
RUNTIMES = sorted(p.stem for p in discover.builtin_folder().glob("*.py"))
COMMITTED = sorted(p.parent.name for p in REPORTS.glob("*/reports.json"))
SLICE = ("operator/add/f32", "operator/add/i8", "operator/max/f32", "operator/floordiv/i32", "operator/exp/f32", "operator/where/bool", "conversion/f32/i8",
         "conversion/i4/f32", "feature/tail-of-a-sum/f32/N=17", "feature/gather/f32", "feature/index-too-large/f32", "feature/local-array/i4",
         "feature/bool-of-any-byte", "feature/several-outputs/i32/N=7", "sample/Axpy", "rejection")
# With the options that give a machine its vectors, and what those compute in another way.
WIDE = {"wasm": (("SIMD", "1"),), "riscv": (("VECTOR", "1"),)}
OF_VECTORS = ("operator/add/f32", "operator/exp/f32", "conversion/i4/f32", "feature/tail-of-a-sum/f32/N=17", "feature/gather/f32", "sample/Axpy", "operator/where/f32", "operator/le/bool", "operator/tan/f32", "operator/isinf/f32", "conversion/bool/f32", "feature/branches/i32")
FUNCTIONS = tuple([f"operator/{fn}/{dtype}" for fn in ("exp", "sigmoid", "tanh", "log", "sin", "cos", "tan") for dtype in ("f16", "f32", "f64")])
GOOD = ("PASS", "QUALITY", "UNSUPPORTED", "XFAIL", "NOT-RUN")


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, str]]:
    """By runtime, the status of each case of the slice."""
    return {}


def sliced(name: str, config: tuple[tuple[str, str], ...] = (), patterns: tuple[str, ...] = SLICE, families: tuple[str, ...] | None = None) -> dict[str, str]:
    options = Options(runtime=name, config=config, opt=2 if families is None else 0, **environment())
    runtime = attach.runtime_of(options)
    cases = selected(suite.all_cases(runtime), patterns) if families is None else list(samples.library_cases(families))
    found = execute.run(cases, execute.Plan(options, runtime, 1, 60.0, plugin_checks.why_unavailable(runtime)), lambda done, of, case: None)
    return {c.id: found[c.id].status + f" {found[c.id].note}" * (found[c.id].status not in ("PASS", "UNSUPPORTED", "NOT-RUN")) for c in cases}


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_slice_of_the_suite(name: str, verdicts: dict[str, dict[str, str]]) -> None:
    verdicts[name] = sliced(name)
    assert {i: status for i, status in verdicts[name].items() if status.split()[0] not in GOOD} == {}


@pytest.mark.slice(3)
@pytest.mark.parametrize("name", RUNTIMES)
def test_the_library_of_operators(name: str, nightly: bool) -> None:
    found = sliced(name, families=() if nightly else ("rounding", "sparse"))
    assert {i: status for i, status in found.items() if status.split()[0] not in GOOD} == {}
    assert len(found) > (600 if nightly else 10)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", WIDE)
def test_a_slice_with_vectors(name: str, nightly: bool) -> None:
    found = sliced(name, WIDE[name], ("*",) if nightly else OF_VECTORS)
    assert {i: status for i, status in found.items() if status.split()[0] not in GOOD} == {}


def test_functions_by_their_fast_forms_are_as_near_as_those_promise(nightly: bool) -> None:
    found = sliced("clang", (("MATH", "fast"), ("OPT", "1")), ("operator",) if nightly else FUNCTIONS)
    assert {i: status for i, status in found.items() if status.split()[0] != "PASS"} == {}
    assert len(found) > 100


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_report_is_that_of_its_record(name: str) -> None:
    assert (REPORTS / name / "Reports.md").read_text() == markdown_report.markdown(record.read(str(REPORTS / name / "reports.json")))


@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_record_says_what_a_fresh_run_says(name: str, verdicts: dict[str, dict[str, str]]) -> None:
    fresh = verdicts.get(name) or sliced(name)
    committed = {r.id: r.verdict.status for r in record.read(str(REPORTS / name / "reports.json")).rows}
    if set(fresh.values()) & {"NOT-RUN"}:
        pytest.skip(f"needs what the runtime {name} needs")
    assert {i: s.split()[0] for i, s in fresh.items()} == {i: committed[i] for i in fresh}


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_record_knows_the_operators_that_its_runtime_lacks(name: str) -> None:
    found = record.read(str(REPORTS / name / "reports.json"))
    native = attach.runtime_of(Options(runtime=name, **environment())).ops
    assert list(found.decomposed or ()) == list(dict.fromkeys([r.row for r in found.of_kind("operator") if r.row not in native]))


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_record_has_no_gap(name: str) -> None:
    found = record.read(str(REPORTS / name / "reports.json"))
    assert not {"FAIL", "CRASH", "TIMEOUT", "UNDECLARED", "XPASS", "NOT-RUN"} & set(found.counts())
    assert os.sep not in str(found.provenance["compiler"])


def test_cases_of_the_library_are_known_without_reading_bodies() -> None:
    """They are those of the programs."""
    for family in ("rounding", "indexing"):
        programs = load_programs(read_file(str(operator_library.FOLDER / f"{family}.toml")), Options(case_instances=True))
        found = [(op.name, case.name) for op in programs for case in op.all(Case)]
        assert [(case.row, case.name) for case in samples.library_cases([family])] == found
        assert len({row for row, _ in found}) > 3
