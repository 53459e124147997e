"""Random specs under other names: one structure, and what was compiled under the one computes under the other."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_specs import arguments, copied, loaded
from spec_families import drawn_spec
from spec_forms import RandomSpec

import caten
from caten import driver
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.structure import structure
from caten.kernels.known_kernels import LOADED
from caten.options import Options
from renamed import other_names, renamed


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    LOADED.clear()
    yield
    LOADED.clear()


def program_of(spec: RandomSpec) -> OpProgram | None:
    """The operator of a random spec; None where it is refused."""
    try:
        found = loaded(spec, Options(runtime="gcc", opt=1, only=(spec.name,)))
    except CatenError:
        return None
    assert isinstance(found, OpProgram)
    return found


def called(function: Any, values: dict[str, Any]) -> list[np.ndarray] | str:
    """The results of a call, or the code of its failure."""
    wanted = [*[a["name"] for a in function._arguments.inputs], *function._keywords]
    try:
        results = function(**{n: v for n, v in copied(values).items() if n in wanted})
    except CatenError as problem:
        return problem.diagnostics[0].code
    return [*results] if isinstance(results, tuple) else [results]


def test_names_are_no_part_of_the_structure(nightly: bool) -> None:
    seen: dict[str, int] = {}
    for seed in range(2000 if nightly else 80):
        if (program := program_of(drawn_spec(seed))) is None:
            continue
        other = renamed(program)
        assert structure(other).tokens == structure(program).tokens, seed
        assert [other_names(program)[n] for n in structure(program).names] == list(structure(other).names), seed
        seen[structure(program).tokens] = seed
    assert len(seen) > (900 if nightly else 40)                       # and most of them are different operators


def test_a_kernel_computes_under_other_names(nightly: bool, cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = 0
    usual = driver.advance
    for seed in range(7, 400 if nightly else 19):
        spec = drawn_spec(seed)
        if (program := program_of(spec)) is None:
            continue
        names = other_names(program)
        try:
            one = caten.compile(show(program))
        except CatenError:
            continue
        values, _ = arguments(spec, program)
        with monkeypatch.context() as found:
            found.setattr(driver, "advance", None)                  # nothing is scheduled
            other = caten.compile(show(renamed(program)))
        assert driver.advance is usual
        results, again = called(one, values), called(other, {names.get(n, n): v for n, v in values.items()})
        if isinstance(results, str) or isinstance(again, str):
            assert results == again, seed
            continue
        computed += 1
        for a, b in zip(results, again, strict=True):
            assert a.tobytes() == b.tobytes(), seed
        if nightly or seed % 4 == 0:
            caten.compile(show(renamed(program)), verify=True)
    assert computed >= 5
