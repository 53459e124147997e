"""One run reports all errors of a spec, whatever phase finds them: on the command line and from Python alike."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import caten
from caten import loading
from caten.cli.boundary import guarded
from caten.errors import CatenError, PartlyRefused
from caten.frontend.spec import read_file
from caten.options import Options

SPEC = """\
[[composite]]
name = "Signature"
inputs = ["A{flt}[N]"]
outputs = ["A"]

[composite.implementation]
code = "(dotimes (i N (setf (aref A i) 1.0))"

[[composite]]
name = "Syntax"
inputs = ["A{float}[N]"]
outputs = ["A"]

[composite.implementation]
code = "(dotimes (i N) (setf (aref A i) 1.0)"

[[composite]]
name = "Key"
inputs = ["A{float}[N]"]
outputs = ["A"]
colour = "red"

[composite.implementation]
code = "(dotimes (i N) (setf (aref A i) B))"

[[composite]]
name = "Table"
inputs = ["A{float}[N]"]
outputs = ["A"]
test = 5

[composite.implementation]
code = "(dotimes (i N) (setf (aref A (- i 1)) 1.0))"

[[composite]]
name = "Lambda"
inputs = ["A{float}[N]"]
outputs = ["A"]

[composite.implementation]
code = "(call Tabel A) (call Signature A)"

[composite.test]
code = "lambda A: A +* 2"

[[composite.test.case]]
sizes = {M = 3}

[[composite]]
name = "Schedule"
inputs = ["A{float}[N]"]
outputs = ["A"]

[composite.implementation]
code = "(dotimes (i N) (setf (aref A i) 1.0))"

[composite.schedule]
code = "(schedule (split zz 8))"
"""
ERRORS = [
    ("E104", 3), ("E201", 7),       # a signature, and the syntax of its body
    ("E201", 15),                   # syntax
    ("E010", 21), ("E220", 24),     # an unknown key, and a name in the body
    ("E012", 30), ("E400", 33),     # a [test] that is no table, and an index out of bounds
    ("E232", 41), ("E801", 44), ("E020", 47),     # a call, test code, and a case; Signature exists, so calling it is right
    ("E501", 58),                   # a schedule
]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize("command", [["check"], ["build", "-o", "library.so"], ["schedule"]], ids=lambda c: c[0])
def test_the_command_line(spec: Path, command: list[str], capsys: pytest.CaptureFixture[str],
                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spec.parent)
    assert guarded([command[0], "spec.toml", *command[1:], "--diagnostics-format=json"]) == 1
    found = json.loads(capsys.readouterr().err)
    assert [(d["code"], d["line"]) for d in found] == ERRORS


@pytest.mark.parametrize("function", [caten.check, caten.compile], ids=lambda f: f.__name__)
def test_python(spec: Path, function: Callable[[Path], object]) -> None:
    with pytest.raises(CatenError) as refusal:
        function(spec)
    assert [(d.code, d.place and d.place.line) for d in refusal.value.diagnostics] == ERRORS


@pytest.mark.parametrize("text", ["a = 1\na = 2\n[composite]\nnam = 3\n", "[composite\nname = 3\n"])
def test_a_file_that_is_no_toml_has_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    with pytest.raises(CatenError) as refusal:
        caten.check(path)
    assert [d.code for d in refusal.value.diagnostics] == ["E005"]


def test_errors_of_an_included_file_do_not_hide_those_of_its_reader(tmp_path: Path) -> None:
    (tmp_path / "inner.toml").write_text(
        '[composite]\nname = "Inner"\ninputs = ["A{flt}[N]"]\noutputs = ["A"]\n[implementation]\ncode = "(setf (aref A 0) 1.0)"\n')
    path = tmp_path / "outer.toml"
    path.write_text('include = ["inner.toml", "none.toml"]\n[composite]\nname = "Outer"\ninputs = ["A{float}[N]"]\noutputs = ["A"]\n'
                    '[implementation]\ncode = "(call Inner A) (call Unknown A) (setf (aref A 0) B)"\n')
    with pytest.raises(PartlyRefused) as refusal:
        loading.loaded([read_file(path)], Options())
    found = [(d.code, Path(d.place.file).name if d.place else "") for d in refusal.value.diagnostics]
    assert found == [("E016", "outer.toml"), ("E220", "outer.toml"), ("E104", "inner.toml")]


BOTH_WRONG = '''
[composite]
name = "Scale"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* 2.0 (aref z i))))"
[test]
code = "lambda x, y: (x *"
'''


@pytest.mark.parametrize("function", [caten.check, caten.compile], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("text", "codes"), [
    (BOTH_WRONG, ["E220", "E801"]),
    (BOTH_WRONG.replace("(x *", "w * x"), ["E220", "E803"]),
    (BOTH_WRONG.replace("aref z", "aref x"), ["E801"]),
    (BOTH_WRONG.replace("aref z", "aref x").replace("(x *", "w * x"), ["E803"]),
], ids=["body-and-syntax", "body-and-name", "syntax", "name"])
def test_wrong_test_code_is_an_error_of_the_spec(function: Callable[[str], object], text: str, codes: list[str]) -> None:
    with pytest.raises(CatenError) as refusal:
        function(text)
    assert [d.code for d in refusal.value.diagnostics] == codes
