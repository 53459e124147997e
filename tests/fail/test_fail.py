"""Specs that must fail: each file here is refused, with the codes, places and messages of the `.txt` beside it.

    tests/fail/types_differ.toml     a spec, `.lisp` for one-line forms, `.text` for texts of the stages
    tests/fail/types_differ.txt      CODE line:column message, then its hint and notes

A line `# with: …` (or `; with: …`) gives options as on the command line. `pytest tests/fail --update-goldens` writes what comes out.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from caten import compiler, driver, loading
from caten.core.program import Reference
from caten.errors import CatenError, Diagnostic, Place
from caten.frontend.lambdas import reference_program
from caten.frontend.op import OpProgram
from caten.frontend.spec import read_file
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing.numpy_lambda import Lambda

HERE = Path(__file__).parent
SPECS = sorted(p for p in HERE.iterdir() if p.suffix in (".toml", ".lisp", ".text"))
PAGES = HERE.parent.parent / "src" / "caten" / "explanations"
EXITS = {"usage": 2, "nothing": 5}               # by the first word of a file's name; 1 for the others
BASE = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))


def options_of(text: str) -> tuple[Options, list[str]]:
    """The options that a spec's `with` line gives, and its other words."""
    found = re.search(r"^[#;] with: (.*)$", text, re.MULTILINE)
    words = iter(found[1].split()) if found else iter(())
    fields: dict[str, object] = {}
    rest: list[str] = []
    for word in words:
        match word[:2], word:
            case _, "--only": fields["only"] = (next(words),)
            case _, "--runtime": fields["runtime"] = next(words)
            case _, "--config": fields["config"] = (*BASE.config, tuple(next(words).split("=", 1)))
            case "-D", _: fields["binds"] = ((word[2:].split("=")[0], int(word.split("=")[1])),)
            case "-O", _: fields["opt"] = int(word[2:])
            case "-f", _: fields["strided"] = (word.removeprefix("-fstrided="),)
            case _: rest.append(word)
    return Options(**({"runtime": BASE.runtime, "config": BASE.config} | fields | {"given": frozenset(fields)})), rest  # type: ignore[arg-type]


def compiled(source: SpecText) -> None:
    """All that a spec goes through before a host compiler sees it; with `--test` its reference too, with `--stage` up to that one."""
    options, rest = options_of(source.text)
    if "--stage" in rest:
        for program in loading.load_programs(source, options):
            driver.advance(program, rest[-1], options)
    elif "--test" in rest:
        for program in loading.load_programs(source, options):
            assert isinstance(program, OpProgram)
            reference = program.first(Reference)
            if reference is not None and reference.lang == "python":
                Lambda(reference.code, Place(source.name, reference.line, reference.column))
            else:
                reference_program(program)
    else:
        compiler.prepare([source], options)


def refused(path: Path) -> CatenError:
    """How a spec is refused."""
    with pytest.raises(CatenError) as problem:
        compiled(read_file(path))
    return problem.value


def place(at: Place | None, name: str) -> str:
    if at is None:
        return "-"
    return f"{'' if Path(at.file).name == name else Path(at.file).name + ':'}{at.line}:{at.column}"


def golden(problem: CatenError, name: str) -> str:
    """Every diagnostic of a refusal; with an exit code other than 1, that first."""
    lines = [f"exit {problem.exit_code}"] if problem.exit_code != 1 else []
    for d in problem.diagnostics:
        lines.append(f"{d.code} {place(d.place, name)} {d.message}")
        lines += [f"    note {place(at, name)} {text}" for text, at in d.notes]
        lines += [f"    hint {d.hint}"] if d.hint else []
    return "\n".join(lines).replace(str(HERE), "…") + "\n"


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.name)
def test_refused(path: Path, update_goldens: bool) -> None:
    problem = refused(path)
    out, expected = golden(problem, path.name), path.with_suffix(".txt")
    if update_goldens:
        expected.write_text(out, "utf-8")
    assert out == expected.read_text("utf-8")
    assert problem.exit_code == EXITS.get(path.name.split("_")[0], 1)
    for d in problem.diagnostics:
        check(d, path)


def check(d: Diagnostic, path: Path) -> None:
    """What holds for every diagnostic: it has a page, its place is in the file, its text is printable."""
    assert (PAGES / f"{d.code}.md").is_file()
    assert d.message.isprintable(), "text from outside is echoed escaped"
    for at in [d.place, *[p for _, p in d.notes]]:
        if at is not None and Path(at.file) == path:
            lines = path.read_bytes().decode("utf-8", "replace").split("\n")
            assert 1 <= at.line <= len(lines)
            assert 1 <= at.column <= len(lines[at.line - 1]) + 1
            assert not at.text or at.text == lines[at.line - 1]


def goldens() -> Iterator[tuple[Path, str]]:
    for path in SPECS:
        yield path, path.with_suffix(".txt").read_text("utf-8")


# The caret of these points at a value or at the place of something missing, and not at the name that the message quotes.
AT_A_VALUE = {"E012", "E013", "E020", "E101", "E102", "E103", "E120", "E306", "E310", "E316"}


def test_the_caret_points_at_the_token_that_the_message_quotes() -> None:
    """At the token, or at the form that holds it, wherever the line of the caret has it."""
    compared = 0
    for path, text in goldens():
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
        for code, row, column, message in re.findall(r"^(E\d{3}) (\d+):(\d+) (.*)$", text, re.MULTILINE):
            line = lines[int(row) - 1]
            quoted = tuple(t for t in re.findall(r"'([^']+)'", message) if t in line)
            if quoted and code not in AT_A_VALUE:
                compared += 1
                found = line[int(column) - 1:]
                in_form = found.startswith("(") and any(t in found for t in quoted)
                assert in_form or found.lstrip("\"'[({").startswith(quoted), f"{path.name}: {code} {message}: {found}"
    assert compared >= 80


def test_the_net_is_wide() -> None:
    codes = {code for _, text in goldens() for code in re.findall(r"^(E\d{3}) ", text, re.MULTILINE)}
    assert len(SPECS) >= 200
    assert len(codes) >= 95


def test_most_refusals_say_what_to_do() -> None:
    lines = [text for _, text in goldens()]
    assert sum("    hint " in text for text in lines) > 0.6 * len(lines)


def test_every_golden_has_its_spec() -> None:
    assert {p.stem for p in HERE.glob("*.txt")} == {p.stem for p in SPECS}
    assert len({p.stem for p in SPECS}) == len(SPECS)


def test_a_spec_that_compiles_is_noticed(tmp_path: Path) -> None:
    spec = tmp_path / "fine.toml"
    spec.write_text((HERE.parent / "compat" / "gemm.toml").read_text())
    with pytest.raises(pytest.fail.Exception):
        refused(spec)
