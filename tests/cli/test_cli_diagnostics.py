"""How diagnostics look."""
from __future__ import annotations

import io
from pathlib import Path

import pytest

from caten.cli.diagnostics import Reporter, lines_of, wants_colour
from caten.echo import escape
from caten.errors import Diagnostic, Place

BODY = "      (incf (aref C i j) (* (aref A i p) (aref B p q))))))"


def text(d: Diagnostic) -> str:
    return "\n".join(["".join([piece for _, piece in line]) for line in lines_of(d)])


def test_text_form() -> None:
    d = Diagnostic("E221", "unknown name 'q'", Place("gemm.toml", 8, 51, BODY), "did you mean 'p'?", (("declared here", Place("gemm.toml", 3, 1,
    "x = 1")), ("a note", None)))
    assert text(d) == (
        "gemm.toml:8:51: error: unknown name 'q' [E221]\n"
        f"    8 | {BODY}\n"
        "      | " + " " * 50 + "^\n"
        "gemm.toml:3:1: note: declared here\n"
        "    3 | x = 1\n"
        "      | ^\n"
        "  note: a note\n"
        "  hint: did you mean 'p'?")


def test_without_a_place_the_program_is_named() -> None:
    assert text(Diagnostic("E902", "no input files")) == "caten: error: no input files [E902]"


@pytest.mark.parametrize(("raw", "shown"), [
    ("a\x1b[31mb", "a\\x1b[31mb"), ("x\u202ey", "x\\u202ey"), ("a\x00\x7f", "a\\x00\\x7f"), ("tab\tstays", "tab\tstays"), ("é→日", "é→日"),
    ("\u2028", "\\u2028"),
])
def test_control_characters_are_escaped(raw: str, shown: str) -> None:
    assert escape(raw) == shown


def test_echoed_text_cannot_reach_the_terminal_raw() -> None:
    d = Diagnostic("E1", "bad \x1b]0;x\x07", Place("f\x1b.toml", 1, 2, "a\x1b[2Jb"), "h\x1b", (("n\x1b", None),))
    assert "\x1b" not in text(d)
    assert "\x07" not in text(d)


def test_the_caret_stands_under_the_column_with_tabs_and_wide_characters() -> None:
    source, caret = text(Diagnostic("E1", "m", Place("f", 1, 4, "\t日x!"))).split("\n")[1:]
    assert source.index("!") + 1 == caret.index("^")          # 日 takes two columns and is one character


def test_long_lines_are_cut_around_the_caret() -> None:
    source, caret = text(Diagnostic("E1", "m", Place("f", 1, 5001, "a" * 5000 + "X" + "b" * 5000))).split("\n")[1:]
    assert len(source) < 200
    assert source[caret.index("^")] == "X"


def test_the_same_diagnostic_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter()
    reporter.show([Diagnostic("E1", "twice"), Diagnostic("E1", "twice")])
    assert capsys.readouterr().err.count("twice") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_on_a_terminal_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_colour_does_not_change_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    d = Diagnostic("E221", "unknown [bold]name[/bold]", Place("gemm.toml", 8, 51, BODY), "hint")
    Reporter().show([d])
    shown = terminal.getvalue()
    assert "\x1b[" in shown
    import re
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).rstrip("\n") == text(d)


def test_a_line_that_was_not_carried_along_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("one\ntwo words\n")
    assert "    2 | two words\n      |     ^" in text(Diagnostic("E1", "m", Place(str(tmp_path / "f.toml"), 2, 5)))
    for name in (str(tmp_path / "none"), "/dev/zero", str(tmp_path), "a\0b"):
        assert "|" not in text(Diagnostic("E1", "m", Place(name, 1, 1)))
