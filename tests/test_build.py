"""From programs to a library: what is rendered before it was verified is verified while the compiler runs, and what is refused is made again."""
from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from caten import build, pipeline
from caten.cli.production import TEXTS, Production
from caten.core.program import Program
from caten.errors import CatenError, ToolError, error
from caten.frontend.spec import SpecText
from caten.loop import level
from caten.loop.statements import Vref
from caten.options import Options

AXPY = Path(__file__).resolve().parent.parent / "samples" / "axpy.toml"
SOURCE = SpecText("axpy.toml", AXPY.read_text(), "toml")


def without_vectors(program: Program) -> None:
    """A verifier that cannot follow vectors."""
    level.verify(program)
    if any(isinstance(n, Vref) for n in program.walk()):
        raise error("E483", "not shown to be inside")


def refuse_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pipeline.VERIFIERS, "loop", without_vectors)
    monkeypatch.setattr("caten.schedule.script.verify_program", without_vectors)


def refuse(program: Program) -> None:
    """One that shows nothing."""
    raise error("E483", "not shown to be inside")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache_dir=str(tmp_path / "cache"), given=frozenset())


def production(options: Options) -> Production:
    return Production(SimpleNamespace(options=options, warn=pipeline.ignore, verbose=False, inputs=("axpy.toml",)), [SOURCE])  # type: ignore[arg-type]


def test_the_verifier_runs_beside_the_compiler(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[threading.Thread] = []

    def verify(program: Program) -> None:
        where.append(threading.current_thread())
        level.verify(program)
    monkeypatch.setitem(pipeline.VERIFIERS, "loop", verify)
    built = build.build([SOURCE], options)
    assert len(where) == 1
    assert where[0] is not threading.main_thread()
    assert not built.from_cache
    build.build([SOURCE], options)
    assert len(where) == 2                                  # from the cache too


def test_what_is_refused_is_made_with_care(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = build.build([SOURCE], options)
    refuse_vectors(monkeypatch)
    careful = build.build([SOURCE], options)
    assert careful.source != usual.source
    assert careful.source == pipeline.render(pipeline.load_programs(SOURCE, options), options)
    out = careful.runtime.load(careful.artifact, careful.manifest)(2.0, np.ones(5, np.float32), np.ones(5, np.float32))
    assert out.tolist() == [3.0] * 5


@pytest.mark.parametrize("products", [["so", "header", "c"], ["c", "so"], ["header"]])
def test_a_command_line_too(options: Options, monkeypatch: pytest.MonkeyPatch, products: list[str]) -> None:
    refuse_vectors(monkeypatch)
    expected = pipeline.render(pipeline.load_programs(SOURCE, options), options)
    made = production(options)
    for product in products:
        if product == "so":
            assert made.built("so").source == expected
        else:
            text = TEXTS[product](made)
            assert product != "c" or text == expected
    assert made.rendered.source == expected


@pytest.mark.parametrize("product", ["so", "c", "header", "manifest"])
def test_nothing_leaves_that_no_step_makes_right(options: Options, monkeypatch: pytest.MonkeyPatch, product: str) -> None:
    monkeypatch.setitem(pipeline.VERIFIERS, "loop", refuse)
    made = production(options)
    with pytest.raises(CatenError, match="not shown to be inside"):
        _ = made.built("so") if product == "so" else TEXTS[product](made)
    with pytest.raises(CatenError, match="not shown to be inside"):
        build.build([SOURCE], options)


def test_what_a_compiler_says_of_a_refused_program_is_not_told(options: Options) -> None:
    def refused() -> None:
        raise error("E483", "not shown to be inside")
    with pytest.raises(build.Refused), build.settled_meanwhile([refused]):
        raise ToolError(error("E620", "the compiler fails").diagnostics[0])


def test_a_fault_of_the_verifier_is_told() -> None:
    def broken() -> None:
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), build.settled_meanwhile([broken]):
        pass


def test_rendering_that_fails_after_a_refusal_is_made_again(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_vectors(monkeypatch)
    render = pipeline.render

    def of_verified(programs: list[Program], given: Options) -> str:
        if any(isinstance(n, Vref) for p in programs for n in p.walk()):
            raise AssertionError("an index without a meaning")
        return render(programs, given)
    monkeypatch.setattr(pipeline, "render", of_verified)
    assert build.build([SOURCE], options).source
