"""The layout of specs."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.frontend import layout
from caten.frontend.spec import parse
from caten.frontend.spec_files import SpecText, read_file

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted([*(ROOT / "samples").glob("*.toml"), *(ROOT / "tests" / "compat").rglob("*.toml"), *(ROOT / "benchmarks" / "specs").glob("*.toml")])


def laid_out(text: str) -> str:
    return layout.spec(text, *parse(SpecText("s.toml", text)))


@pytest.mark.parametrize("file", SPECS, ids=lambda f: f.name)
def test_the_meaning_stays_and_a_second_time_changes_nothing(file: Path) -> None:
    source = read_file(file)
    document, _ = parse(source)
    once = laid_out(source.text)
    assert layout.same(document, parse(SpecText("s.toml", once))[0])
    assert laid_out(once) == once


@pytest.mark.parametrize("file", [f for f in SPECS if f.parent.name == "samples"], ids=lambda f: f.name)
def test_the_samples_have_it(file: Path) -> None:
    assert laid_out(file.read_text()) == file.read_text()


@pytest.mark.parametrize(("text", "expected"), [
    ("( f   a\n b )", "(f a\n   b)"),
    ("(f\na\n)", "(f\n a)"),
    ("(dotimes (i N)\n        (g i)\n  )", "(dotimes (i N)\n  (g i))"),
    ("(dotimes\n(i N)\n(g i))", "(dotimes\n (i N)\n  (g i))"),
    ("(let ((a 1)\n(b 2))\na)", "(let ((a 1)\n      (b 2))\n  a)"),
    ("(LET ((a 1))\na)", "(LET ((a 1))\n  a)"),
    ("(a);x\n;y\n\n\n(b)", "(a)  ;x\n;y\n\n(b)"),
    ("(f a ; last  \n)", "(f a  ; last\n   )"),
    ("(f ; first\n a)", "(f  ; first\n a)"),
    ("(f \"a  b\" c)", '(f "a  b" c)'),
    ("(f \"a\n  b\"\nc)", '(f "a\n  b"\n   c)'),
    ("\n\n(a)\n\n", "(a)"),
    ("(f a\n\n\n   b)", "(f a\n   b)"),
    ("()", "()"),
])
def test_lisp(text: str, expected: str) -> None:
    assert layout.lisp(text) == expected
    assert layout.lisp(expected) == expected


def test_toml() -> None:
    text = ('# about\n[composite]   \nname = "F"\ninputs  = ["A{float}[N]"]\noutputs = [\n   "A",   \n]\n\n\n\n# the body\n# of F\n[implementation]\n'
            'code = """\n   (dotimes (i N)\n (setf (aref A i) 1.0))"""\n[test]\ncode = """\nlambda A:  A\n\n\n"""\n\n')
    assert laid_out(text) == (
        '# about\n[composite]\nname = "F"\ninputs  = ["A{float}[N]"]\noutputs = [\n   "A",   \n]\n\n# the body\n# of F\n[implementation]\n'
        'code = """\n(dotimes (i N)\n  (setf (aref A i) 1.0))\n"""\n\n[test]\ncode = """\nlambda A:  A\n\n\n"""\n')


def test_a_body_with_escapes_is_left_as_it_is() -> None:
    text = '[composite]\nname = "F"\ninputs = ["A{float}[N]"]\noutputs = ["A"]\n\n[implementation]\ncode = """\n   (dotimes (i N) \\\n (setf (aref A i) 1.0))"""\n'
    assert laid_out(text) == text


@pytest.mark.parametrize(("one", "other", "same"), [
    ({"a": "(f  x)"}, {"a": "(f x)"}, True), ({"a": "(f x)"}, {"a": "(f y)"}, False), ({"a": [1, 2]}, {"a": [1]}, False),
    ({"a": 1}, {"b": 1}, False), ({"a": float("nan")}, {"a": float("nan")}, True), ({"a": 1}, {"a": 2}, False),
])
def test_what_says_the_same(one: object, other: object, same: bool) -> None:
    assert layout.same(one, other) is same
