"""The library of operators: what each file says of itself, and its cases."""
from __future__ import annotations

import re

import pytest
import tomli

import caten
from caten.cli.boundary import guarded
from caten.frontend import operator_library as library

ENTRIES = library.entries()
FAMILIES = sorted({entry.family for entry in ENTRIES})


def test_names_are_unique_and_every_operator_is_described_and_has_a_case():
    names = [entry.name for entry in ENTRIES]
    assert sorted(set(names)) == sorted(names)
    assert len(names) >= 180
    for entry in ENTRIES:
        table = tomli.loads(entry.source)["composite"][0]
        assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.name)
        assert table["documentation"] == entry.documentation
        assert table["documentation"].endswith((".", "?"))
        assert table["test"]["case"], entry.name


# Everyday without schedules: these take a minute each to plan, or their float64 oracles do.
PLAIN = ("attention", "convolutions", "pooling", "products", "reductions", "special")
SLOW = ("rejection",)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in SLOW])
def test_the_cases_of_a_family(family):
    holds(family, 0 if family in PLAIN else 2)


@pytest.mark.nightly
@pytest.mark.parametrize("family", [*PLAIN, *SLOW])
def test_the_cases_of_a_slow_family(family):
    holds(family, 2)


def holds(family, opt):
    found = caten.test(library.FOLDER / f"{family}.toml", opt=opt)
    assert found.passed, "\n".join([f"{c.op} {c.case}: {c.status} {c.note}" for f in found.files for c in f.cases if not c.passed]
                                   + [str(d) for f in found.files for d in f.diagnostics])
    assert [d for f in found.files for d in f.diagnostics] == []          # E942 would be a fault of caten's that no case shows


def test_the_files_have_the_format_of_caten_fmt(capsys):
    assert guarded(["fmt", "--check", *[str(path) for path in sorted(library.FOLDER.glob("*.toml"))]]) == 0, capsys.readouterr().out


def test_what_coverage_names_is_there():
    names = {entry.name for entry in ENTRIES}
    for each in tomli.loads((library.FOLDER.parents[2] / "docs" / "coverage.toml").read_text())["library"]:
        assert set(each["covered"].values()) <= names
        assert not set(each["covered"]) & set(each["missing"])


def test_the_command_lists_shows_and_refuses(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "softmax"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("softmax(x{Floating}[~], axis=-1) -> y{Floating}[~]\n")
    assert library.find("softmax").source in shown
    assert guarded(["ops"]) == 0
    assert capsys.readouterr().out.endswith(f"\n{len(ENTRIES)} operators\n")
    assert guarded(["ops", "--family", "rounding", "--source"]) == 0
    assert capsys.readouterr().out.count("[[composite]]") == 4
    for words, hint in ((["softmaks"], "did you mean 'softmax'?"), (["build"], "caten ops lists them"), (["build", "softmaks"], "did you mean 'softmax'?")):
        assert guarded(["ops", *words]) == 2
        said = capsys.readouterr().err
        assert "[E902]" in said
        assert hint in said
    assert guarded(["ops", "build", "relu", "abs", "-o", "two.so"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"two.so", "two.h", "two.json"}
