"""Shell completion and manual pages."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caten.cli.app import COMMANDS


@pytest.fixture
def complete(caten: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The words that bash would offer for a line that ends in what is being typed."""
    def run(line: str) -> list[str]:
        monkeypatch.setenv("_CATEN_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        result = caten()
        assert (result.code, result.err) == (0, "")
        return [item.removeprefix("plain,") for item in result.out.splitlines()]
    return run


@pytest.mark.parametrize(("line", "expected"), [
    ("caten tes", ["test", "test-runtime", "file,tes"]), ("caten gemm.toml gem", ["file,gem"]), ("caten gemm.toml --runtime g", ["gcc", "file,g"]),
    ("caten gemm.toml -r g", ["gcc", "file,g"]), ("caten --config OM", ["OMP="]), ("caten --config OMP=", ["OMP=0", "OMP=1"]),
    ("caten -r gcc --config OMP=1,OP", ["OMP=1,OPT="]), ("caten --config OPT=", ["OPT=0", "OPT=1", "OPT=2", "OPT=3"]), ("caten explain E30", None),
    ("caten -r no_such --config O", []), ("caten -Q --debu", ["--debug"]), ("caten cache cl", ["clean"]), ("caten -o x", ["file,x"]),
    ("caten --diagnostics-format s", ["sarif"]),
])
def test_what_may_follow(complete: Any, line: str, expected: list[str] | None) -> None:
    offered = complete(line)
    assert offered == expected if expected is not None else "E301" in offered


def test_every_command_is_offered(complete: Any) -> None:
    assert set(COMMANDS) <= set(complete("caten "))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts(caten: Any, shell: str) -> None:
    result = caten("completions", shell)
    assert result.code == 0
    assert f"_CATEN_COMPLETE={shell}_complete" in result.out


def test_bash_itself_completes(caten: Any, tmp_path: Path) -> None:
    (tmp_path / "caten").write_text(f'#!/bin/sh\nexec {sys.executable} -m caten "$@"\n')
    (tmp_path / "caten").chmod(0o755)
    (tmp_path / "asked.sh").write_text(caten("completions", "bash").out + "COMP_WORDS=(caten completions fi)\nCOMP_CWORD=2\n"
                                       f"_caten_completion {tmp_path}/caten\necho ${{COMPREPLY[@]}}\n")
    done = subprocess.run(["bash", str(tmp_path / "asked.sh")], capture_output=True, text=True)
    assert done.stdout == "fish\n", done


def test_an_instruction_that_no_shell_gives(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CATEN_COMPLETE", "tcsh_complete")
    assert caten().code == 1


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_manual_pages_name_every_option(caten: Any, name: str | None) -> None:
    result = caten("man", *([name] if name else []))
    assert result.code == 0
    assert result.out.startswith(".TH ")
    assert "\n.SH NAME\ncaten" in result.out
    for line in caten(name, "--help").out.splitlines() if name else ():
        for word in line.replace(",", " ").split():
            if line.startswith("  -") and word.startswith("--") and word[2:].replace("-", "").isalnum():
                assert word.replace("-", "\\-") in result.out


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", [None, "build", "explain"])
def test_the_macros_take_the_pages(caten: Any, name: str | None) -> None:
    page = caten("man", *([name] if name else [])).out
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-K", "utf8"], input=page, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_pages_are_written(caten: Any, folder: Path) -> None:
    assert caten("man", "-o", "man/man1").code == 0
    assert {f.name for f in (folder / "man" / "man1").iterdir()} == {"caten.1", *[f"caten-{name}.1" for name in COMMANDS]}


def test_the_date_is_the_environments(caten: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert '"1" ""' in caten("man").out
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert '"1970-01-01"' in caten("man").out


def test_an_unknown_command_has_no_page(caten: Any) -> None:
    result = caten("man", "tset")
    assert result.code == 2
    assert "did you mean 'test'?" in result.err
