"""Loops that clang knows to be short are vectorised with a scalar rest where masks would be slower."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options

BODY = '''
[composite]
name = "Rows"
inputs = ["X{%(dtype)s}[M W]", "s{%(dtype)s}[M]", "k{int32}[N]"]
outputs = ["%(out)s"]
implementation = { code = "(dotimes (i M) (dotimes (j N) (setf (aref %(name)s i j) %(value)s)))" }
'''
IN_PLACE, STEPS, PLAIN = "(* (aref X i j) (aref s i))", "(max (aref X i (* 2 j)) (aref X i (+ (* 2 j) 1)))", "(+ (aref X i j) (aref s i))"


def rendered(value: str, out: str = "Y{float}[M N]", dtype: str = "float", march: str = "x86_64_v4", runtime: str = "clang") -> str:
    name = out[0]
    if name == "X":
        out = "X"
    text = BODY % {"dtype": dtype, "out": out.replace("float", dtype), "name": name, "value": value}
    if name == "X":
        text = text.replace("[M W]", "[M N]")
    options = Options(runtime=runtime, config=(("MARCH", march),))
    return driver.render(loading.load_programs(SpecText("f.toml", text, "toml"), options), options)


def is_asked(text: str) -> bool:
    return "CT_WHOLE_VECTORS for" in text


@pytest.mark.parametrize(("value", "out", "march", "asked"), [
    (IN_PLACE, "X", "x86_64_v4", True), (STEPS, "Y{float}[M N]", "x86_64_v4", True), (PLAIN, "Y{float}[M N]", "x86_64_v4", False),
    (PLAIN, "Y{float}[M N]", "x86_64_v3", True), ("(aref X i (aref k j))", "Y{float}[M N]", "x86_64_v3", False), ("(tanh (aref X i j))", "Y{float}[M N]", "x86_64_v3", False),
    ("(aref X i (* 5 j))", "Y{float}[M N]", "x86_64_v3", False)],
    ids=["in place", "steps", "masks are free", "masks take long", "gathers", "functions", "long steps"])
def test_short_rows_have_a_scalar_rest(value: str, out: str, march: str, asked: bool) -> None:
    assert is_asked(rendered(value, out, march=march)) == asked


def test_only_clang_is_asked_and_only_of_what_it_knows_to_be_short() -> None:
    assert not is_asked(rendered(PLAIN, march="x86_64_v3", runtime="gcc"))
    text = rendered(IN_PLACE, "X")
    assert text.count("CT_WHOLE_VECTORS for") == 1
    assert text.index("if (N < 16)") < text.index("CT_WHOLE_VECTORS for")
    assert "#ifdef __clang__\n#define CT_WHOLE_VECTORS" in text
    assert not is_asked(rendered(PLAIN, dtype="int16", march="x86_64_v3"))          # rows below 16 are not its only ones


def test_a_file_without_short_loops_has_no_macro() -> None:
    assert "CT_WHOLE_VECTORS" not in rendered(PLAIN)
