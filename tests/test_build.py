"""From programs to a library: what is rendered before it was verified is verified while the compiler runs, and what is refused is made again."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from caten import compiler, driver, loading, passes
from caten.cli.outputs import TEXTS, Production
from caten.cli.signals import _descendants
from caten.core.program import Program
from caten.errors import CatenError, Diagnostic, ToolError, error
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.statements import Vref
from caten.options import Options

AXPY = Path(__file__).resolve().parent.parent / "samples" / "axpy.toml"
SOURCE = SpecText("axpy.toml", AXPY.read_text(), "toml")


def without_vectors(program: Program) -> None:
    """A verifier that cannot follow vectors."""
    verifier.verify(program)
    if any(isinstance(n, Vref) for n in program.walk()):
        raise error("E483", "not shown to be inside")


def refuse_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(passes.VERIFIERS, "loop", without_vectors)


def refuse(program: Program) -> None:
    """One that shows nothing."""
    raise error("E483", "not shown to be inside")


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache_dir=str(tmp_path / "cache"), given=frozenset(), strict=False)


def children() -> set[int]:
    """The processes that this one has started."""
    return set(_descendants(os.getpid()))


def production(options: Options, warn: Callable[[Diagnostic], None] = driver.ignore) -> Production:
    return Production(SimpleNamespace(options=options, warn=warn, verbose=False, inputs=("axpy.toml",)), [SOURCE])  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["clang", "numpy"])
def test_the_verifier_runs_beside_the_compiler(options: Options, monkeypatch: pytest.MonkeyPatch, runtime: str) -> None:
    running: list[bool] = []
    before = children()

    def verify(program: Program) -> None:
        running.append(children() > before)
        verifier.verify(program)
    monkeypatch.setitem(passes.VERIFIERS, "loop", verify)
    assert not compiler.build([SOURCE], replace(options, runtime=runtime)).from_cache
    assert compiler.build([SOURCE], replace(options, runtime=runtime)).from_cache
    assert running == [runtime == "clang", False]           # from the cache too, where there is nothing to wait for


def test_what_is_refused_is_made_plainly_and_reported(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = compiler.build([SOURCE], options)
    refuse_vectors(monkeypatch)
    heard: list[Diagnostic] = []
    plain = compiler.build([SOURCE], options, heard.append)
    assert plain.source != usual.source
    assert plain.source == driver.render(loading.load_programs(SOURCE, options), options)
    assert [d.code for d in heard] == ["E942"]
    assert "E483" in Path(re.search(r"are in (\S+)", heard[0].notes[0][0])[1]).read_text()  # type: ignore[index]
    out = plain.runtime.load(plain.artifact, plain.manifest)(2.0, np.ones(5, np.float32), np.ones(5, np.float32))
    assert out.tolist() == [3.0] * 5


def test_in_tests_a_refusal_is_raised(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_vectors(monkeypatch)
    with pytest.raises(CatenError, match="not shown to be inside"):
        compiler.build([SOURCE], replace(options, strict=True))


@pytest.mark.parametrize("products", [["so", "header", "c"], ["c", "so"], ["header"]])
def test_a_command_line_too(options: Options, monkeypatch: pytest.MonkeyPatch, products: list[str]) -> None:
    refuse_vectors(monkeypatch)
    expected = driver.render(loading.load_programs(SOURCE, options), options)
    heard: list[Diagnostic] = []
    made = production(options, heard.append)
    for product in products:
        if product == "so":
            assert made.built("so").source == expected
        else:
            text = TEXTS[product](made)
            assert product != "c" or text == expected
    assert made.rendered.source == expected
    assert [d.code for d in heard] == ["E942"]


@pytest.mark.parametrize("product", ["so", "c", "header", "manifest"])
def test_nothing_leaves_that_no_step_makes_right(options: Options, monkeypatch: pytest.MonkeyPatch, product: str) -> None:
    monkeypatch.setitem(passes.VERIFIERS, "loop", refuse)
    made = production(options)
    with pytest.raises(CatenError, match="not shown to be inside"):
        _ = made.built("so") if product == "so" else TEXTS[product](made)
    with pytest.raises(CatenError, match="not shown to be inside"):
        compiler.build([SOURCE], options)


def test_what_a_compiler_says_of_a_refused_program_is_not_told(options: Options, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = tmp_path / "cc"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    with pytest.raises(ToolError, match="E626"):
        compiler.build([SOURCE], replace(options, cc=str(failing)))
    monkeypatch.setitem(passes.VERIFIERS, "loop", refuse)
    with pytest.raises(CatenError, match="E483"):
        compiler.build([SOURCE], replace(options, cc=str(failing)))


def test_a_fault_of_the_verifier_is_told_and_ends_the_compiler(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()

    def broken(program: Program) -> None:
        assert children() > before
        raise ZeroDivisionError
    monkeypatch.setitem(passes.VERIFIERS, "loop", broken)
    with pytest.raises(ZeroDivisionError):
        compiler.build([SOURCE], options)
    assert children() == before


def test_rendering_that_fails_after_a_refusal_is_made_again(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_vectors(monkeypatch)
    render = driver.render

    def of_verified(programs: list[Program], given: Options) -> str:
        if any(isinstance(n, Vref) for p in programs for n in p.walk()):
            raise AssertionError("an index without a meaning")
        return render(programs, given)
    monkeypatch.setattr(driver, "render", of_verified)
    assert compiler.build([SOURCE], options).source
