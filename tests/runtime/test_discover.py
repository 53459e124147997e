"""Finding runtimes: names, files, broken ones; their options."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.errors import CatenError, UsageError
from caten.runtime import discover
from caten.runtime.protocol import Choice, Flag, Host, Int, Text

MINE = """
from caten.runtime.discover import base
class Mine(base("clang")):
    name = "mine"
"""


def code(info: pytest.ExceptionInfo[CatenError]) -> str:
    return info.value.diagnostics[0].code


def test_the_shipped_ones_are_found_by_name() -> None:
    assert discover.find("clang").name == "clang"
    assert discover.find("gcc").name == "gcc"
    assert {"clang", "gcc"} <= {r.name for r in discover.listing()}
    assert discover.find("clang").file == discover.builtin_folder() / "clang.py"


def test_an_unknown_name_lists_all_with_a_guess() -> None:
    with pytest.raises(UsageError) as info:
        discover.find("clagn")
    assert code(info) == "E602"
    assert info.value.diagnostics[0].hint == "did you mean 'clang'?"
    assert "gcc" in info.value.diagnostics[0].notes[0][0]


def test_a_file_by_its_path_and_on_the_runtime_path(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    assert discover.find(str(tmp_path / "mine.py")).name == "mine"
    assert discover.find("mine", [str(tmp_path)]).name == "mine"
    with pytest.raises(UsageError) as info:
        discover.find(str(tmp_path / "other.py"))
    assert code(info) == "E602"


def test_the_current_directory_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    for path in ([], [""], ["."]):
        with pytest.raises(UsageError):
            discover.find("mine", path)


def test_the_runtime_path_wins_over_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "gcc.py").write_text(MINE.replace('"mine"', '"gcc"').replace("class Mine", "class Own"))
    assert discover.find("gcc", [str(tmp_path)]).file == tmp_path / "gcc.py"


@pytest.mark.parametrize(("text", "said", "line"), [
    ("x = 1\n", "defines no runtime", 0),
    ("x = (\n", "is broken: SyntaxError", 1),
    ("\n\nraise RuntimeError('no')\n", "is broken: RuntimeError: no", 3),
    ("def f():\n    raise KeyError('k')\n\nf()\n", "is broken: KeyError", 2),
    ("from caten.runtime.protocol import Runtime\nclass R(Runtime):\n    name = 'r'\n", "lacks available, compile, load, machine, render", 0),
])
def test_a_broken_file_is_reported_and_harms_no_other(text: str, said: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(text)
    with pytest.raises(UsageError) as info:
        discover.find("r", [str(tmp_path)])
    assert code(info) == "E603"
    assert said in info.value.diagnostics[0].message
    place = info.value.diagnostics[0].place
    assert (place.line if place else 0) == line
    rows = {r.name: r for r in discover.listing([str(tmp_path)])}
    assert said in (rows["r"].problem or "")
    assert (f"(line {line})" in (rows["r"].problem or "")) == bool(line)
    assert rows["clang"].problem is None


def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(MINE + "    api_version = 2\n")
    with pytest.raises(UsageError) as info:
        discover.find("new", [str(tmp_path)])
    assert code(info) == "E604"


def test_options_are_read_and_all_mistakes_are_listed() -> None:
    clang = discover.find("clang").configure((("omp", "1"), ("OPT", "2"), ("MARCH", "znver3"), ("SIMD_LEN", "4")))
    assert clang.settings | {"OMP": True, "OPT": 2, "MARCH": "znver3", "SIMD_LEN": 4} == clang.settings
    assert clang.file is not None
    with pytest.raises(UsageError) as info:
        clang.configure((("OMPP", "1"), ("OPT", "9"), ("MARCH", "native;rm")))
    assert [d.code for d in info.value.diagnostics] == ["E600", "E601", "E601"]
    assert info.value.diagnostics[0].hint == "did you mean 'OMP'?"
    assert info.value.exit_code == 2
    assert clang.hosted(timeout=3.0).host == Host(timeout=3.0)


def test_what_options_take() -> None:
    assert Flag(False).read("ON") is True
    assert Choice(3, of=(0, 3)).read(" 0") == 0
    assert Int(None, least=1, greatest=8).read("8") == 8
    for option, text in ((Flag(False), "2"), (Choice(3, of=(0, 3)), "1"), (Int(None, least=1, greatest=8), "9"), (Int(None), "x"), (Text(""), "$(x)")):
        with pytest.raises(ValueError, match=r"\w"):
            option.read(text)
