"""The cases: derived from the tables, accepted by the front end, distinct."""
from __future__ import annotations

from collections import Counter

import pytest

from caten import attach
from caten.conformance import execute, suite
from caten.conformance.cases import Case, Kernel, selected
from caten.core.dtypes import DTYPES
from caten.core.scalars import OPERATORS
from caten.options import Options

CASES = suite.all_cases(attach.runtime_of(Options(runtime="numpy")))


def kernels(kind: str) -> list[Kernel]:
    return list(dict.fromkeys([c.kernel for c in CASES if c.kind == kind and c.kernel is not None]))


def test_every_operator_is_crossed_with_every_type_it_accepts() -> None:
    cells = {(c.row, c.column) for c in CASES if c.kind == "operator"}
    assert cells == {(fn, d) for fn, row in OPERATORS.items() for d in DTYPES if row.defined_on(d)}


def test_every_pair_of_types_is_converted() -> None:
    assert {(c.row, c.column) for c in CASES if c.kind == "conversion"} == {(a, b) for a in DTYPES for b in DTYPES if a != b}


def test_every_type_occurs_in_every_kind_of_case() -> None:
    for kind in ("operator", "feature", "conversion"):
        assert {c.column for c in CASES if c.kind == kind} == set(DTYPES)


def test_names_are_distinct() -> None:
    assert [i for i, n in Counter(c.id for c in CASES).items() if n > 1] == []
    names = Counter(k.name for kind in ("operator", "conversion", "bitcast", "feature") for k in kernels(kind))
    assert [name for name, n in names.items() if n > 1] == []


@pytest.mark.slice(2)
@pytest.mark.parametrize("kind", ["operator", "conversion", "bitcast", "feature"])
def test_the_front_end_accepts_every_kernel(kind: str) -> None:
    assert all(execute.plain_ops(k)[-1].name == k.name for k in kernels(kind))


@pytest.mark.parametrize(("pattern", "count"), [("operator/add/f32/nan", 1), ("operator/add/f32", 7), ("no", 0), ("operator/ad", 0), ("operator/add/*/nan", 6)])
def test_what_a_filter_selects(pattern: str, count: int) -> None:
    assert len(selected(CASES, [pattern])) == count


def test_a_filter_takes_any_part() -> None:
    def ids(*patterns: str) -> set[str]:
        return {c.id for c in selected(CASES, patterns)}
    assert ids("add") < ids("operator")
    assert ids("add", "sub") == ids("add") | ids("sub")
    assert ids() == {c.id for c in CASES}
    assert all(isinstance(c, Case) for c in CASES)
