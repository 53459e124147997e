"""The tables [rewrite]: what is refused, and which operators a rule holds for."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten import loading
from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend import spec
from caten.frontend.op import Rewrite
from caten.frontend.spec_files import SpecText
from caten.loop.statements import ExternCall, If
from caten.options import Options

OPERATOR = """[composite]
name = "Scale"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* 2 (aref x i))))"
"""
RULE = """[rewrite]
name = "scale"
inputs = ["x{float}[N]", "a{float}[]"]
outputs = ["y{float}[N]"]
lang = "python"
pattern = "return a * x"
"""
CALL = 'call = "(scale N (int32 (* 2 N 3)) (float 1) (double 0.5) a (double a) x y)"\n'


def rules(text: str, name: str = "s.toml", **options: object) -> tuple[Rewrite, ...]:
    (program,) = loading.load_programs(SpecText(name, text), Options(**options))     # type: ignore[arg-type]
    return program.all(Rewrite)


def test_the_arguments_of_a_call_have_the_types_that_are_written() -> None:
    (rule,) = rules(OPERATOR + RULE + CALL)
    (guard,) = rule.replacement.body                                     # a result without elements needs no call
    assert isinstance(guard, If)
    (call,) = guard.then
    assert isinstance(call, ExternCall)
    assert [show(a) for a in call.args] == ["N", "(cast i32 (* (* 2 N) 3))", "1.0", "0.5:f64", "a", "(cast f64 a)", "(address x read)",
                                            "(address y write)"]


def test_a_rule_is_printed_and_read() -> None:
    (program,) = loading.load_programs(SpecText("s.toml", OPERATOR + RULE + CALL), Options())
    assert resolve(read(show(program))[0]) is program


@pytest.mark.parametrize(("text", "message"), [
    (RULE, "neither"), (RULE + CALL + 'replacement = "return x"\n', "both"),
    (RULE + 'call = ""\n', r"a call is \(FUNCTION"), (RULE + 'call = "(f x y) (f x y)"\n', r"a call is \(FUNCTION"),
    (RULE + 'call = "((f) x y)"\n', r"a call is \(FUNCTION"),
    (RULE + 'call = "(ct_f x y)"\n', "no name of a C function"), (RULE + 'call = "(2f x y)"\n', "no name of a C function"),
    (RULE + 'call = "(f x)"\n', "does not get the output 'y'"), (RULE + 'call = "(f z y)"\n', "'z' is neither a tensor nor a size"),
    (RULE + 'call = "(f 1 y)"\n', "1 has no C type"), (RULE + 'call = "(f (int32 1.5) y)"\n', "1.5 is no i32"),
    (RULE + 'call = "(f (int8 300) y)"\n', "300 is no i8"), (RULE + 'call = "(f (int32 (/ N 2)) y)"\n', "no arithmetic over sizes"),
    (RULE + 'call = "(f (int32 (+ N a)) y)"\n', "over others than sizes"), (RULE + 'call = "(f (int32 N 1) y)"\n', "is no argument"),
    (RULE.replace('["y{float}[N]"]', '["y{float}[N]", "z{float}[N]"]') + CALL, "one output"),
    (RULE.replace('["y{float}[N]"]', '["y{float}[N N]<1 0>"]') + CALL, "row-major"),
])
def test_a_rule_that_is_not_well_formed_is_refused(text: str, message: str) -> None:
    with pytest.raises(CatenError, match=f"E024: .*{message}") as refused:
        rules(OPERATOR + text)
    assert all(d.place is not None and d.place.line > 6 for d in refused.value.diagnostics)


SQUARE = RULE.replace('["x{float}[N]", "a{float}[]"]', '["x{float}[N M]"]').replace("y{float}[N]", "y{float}[N M]").replace("a * x", "-x")


@pytest.mark.parametrize(("code", "needed"), [("return -x.T", r"\(= M N\)"), ("return -x[1:]", r"\(= \(max \(- N 1\) 0\) N\)")])
def test_a_replacement_of_another_shape_is_refused(code: str, needed: str) -> None:
    written = OPERATOR + SQUARE + f'replacement = "{code}"\n'
    with pytest.raises(CatenError, match=rf"E024: this replacement needs {needed}, which does not follow") as refused:
        rules(written)
    (found,) = refused.value.diagnostics
    assert found.place is not None
    assert found.place.line == len(written.splitlines())
    assert "'y' of the shape [N M]" in found.hint


def test_a_rule_may_state_what_its_replacement_needs() -> None:
    assert len(rules(OPERATOR + SQUARE + 'replacement = "return -x.T"\nrequirements = ["N = M"]\n')) == 1


def test_faults_of_patterns_are_those_of_bodies() -> None:
    with pytest.raises(CatenError, match=r"s\.toml:12:\d+: E\d+: .*'z'"):
        rules(OPERATOR + RULE.replace("a * x", "a * z") + CALL)
    with pytest.raises(CatenError, match=r"E010: .*unknown key 'patern'"):
        rules(OPERATOR + RULE + CALL + "patern = 1\n")


def test_rules_of_an_included_file_hold(tmp_path: Path) -> None:
    (tmp_path / "blas.toml").write_text(RULE + CALL)
    text = 'include = ["blas.toml"]\n' + OPERATOR
    assert [r.pattern.name for r in rules(text, str(tmp_path / "s.toml"))] == ["scale"]
    with pytest.raises(CatenError, match="E920"):                       # a file of rules alone has nothing to compile
        loading.loaded([SpecText("blas.toml", RULE + CALL)], Options())


def test_rules_are_left_out_where_they_cannot_hold() -> None:
    text = OPERATOR + RULE + CALL
    assert rules(text, no_rewrite=True) == ()
    assert rules(text, runtime="numpy") == ()
    assert len(rules(OPERATOR + RULE + 'replacement = "return x * a"\n', runtime="numpy")) == 1
    assert rules(text + 'library = "blas"\n') == ()
    assert len(rules(text + 'library = "blas"\n', ldflags=("-lblas",))) == 1


def test_rules_of_a_runtime_are_tables_of_a_spec() -> None:
    text = RULE.replace("[rewrite]", "[[rewrite]]") + CALL
    assert [r.pattern.name for r in spec.runtime_rules(text, "r.py", Options())] == ["scale"]
    for wrong, message in ((OPERATOR, "E010: .*'composite'"), (text.replace("pattern", "patern"), "E010"), (RULE + CALL, "E012")):
        with pytest.raises(CatenError, match=message):
            spec.runtime_rules(wrong, "r.py", Options())
