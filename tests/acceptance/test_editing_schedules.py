"""The schedule that was printed, copied into the spec and edited by hand."""
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from command_line import caten

GEMM = Path(__file__).resolve().parents[2] / "samples" / "gemm.toml"


@cache
def chosen_steps() -> str:
    """The steps that the compiler chooses for gemm, as it prints them."""
    printed = caten("schedule", str(GEMM), "-march=x86_64_v3").out
    return printed[printed.index("\n  (schedule") + 1:].rstrip().removesuffix(")")


def edited(folder: Path, old: str = "", new: str = "") -> str:
    """gemm with the schedule that the compiler chose as its own, and one step changed."""
    steps = chosen_steps()
    assert old in steps
    (folder / "mine.toml").write_text(f'{GEMM.read_text()}\n[schedule]\ncode = """\n{steps.replace(old, new, 1)}\n"""\n')
    return "mine.toml"


def rendered(file: str) -> str:
    return caten("render", file, "-march=x86_64_v3").out


def test_the_printed_schedule_gives_the_same_code(folder: Path) -> None:
    own, chosen = [rendered(f).replace(f, "") for f in (edited(folder), str(GEMM))]
    assert own == chosen


def test_another_tile_changes_the_code_and_not_the_result(folder: Path, tool: Any) -> None:
    tool("gcc")
    before = rendered(edited(folder))
    assert rendered(edited(folder, "(split ii 6 pad)", "(split ii 4 pad)")) != before
    tried = caten("test", "mine.toml", "-march=x86_64_v3", "--config", "CC=gcc")
    assert tried.code == 0, tried.err
    assert all(line.startswith("caten: testing ") for line in tried.err.splitlines()), tried.err        # where it takes long it says how far it is
    assert "6 of 6 passed" in tried.out


def test_an_illegal_edit_is_refused_where_it_stands(folder: Path) -> None:
    refused = caten("check", edited(folder, "(parallel jio)", "(parallel po)"))
    assert refused.code == 1
    assert "the loop over po is a reduction" in refused.err
    assert "(parallel po)\n" in refused.err
