"""Specs: what they become, and every refusal of their shape with its place."""
import json
from importlib.resources import files

import pytest
import tomli
from loading import lisp, only, refusals, toml

from caten.core.program import Case, Doc, Reference, Require, Schedule, Setting, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec import decode, load
from caten.options import Options
from spec_texts import GEMM

# Two specs of the ancestor project: scalar tensors, names in other cases, a reference, an empty requirement.
ARANGE = '''\
[composite]
documentation = """
Loads out with ax+b.
"""
name = "Arange"
inputs = ["OUT{Float}[i]<0>()", "A{Float}[]<>()", "B{Float}[]<>()"]
outputs = ["OUT"]

[implementation]
code = """
(dotimes (nth i)
    (setf (aref out nth) (+ (* a nth) b)))
"""

[test]

requirements = [""]
code = """
(lambda (out a b i)
    (dotimes (nth i)
        (setf (aref out nth) (+ (* a nth) b))))
"""
'''
IM2COL = '''\
[composite]
documentation = "Im2Col"
name = "Im2Col"
inputs = ["X{Float}[N C H W]<0 1 2 3>()", "Col{Float}[N C k_h k_w h_out w_out]<0 1 2 3 4 5>()", "STRIDE_H{Int}[]<>()", "STRIDE_W{Int}[]<>()"]

outputs = ["Col"]
# a comment
[implementation]
code = """
(dotimes (batch_n N)
  (dotimes (h_start K_H)
    (set h_end (+ h_start (* stride_h H_out)))
    (dotimes (w_start K_W)
      (set w_end (+ w_start (* stride_w W_out)))
      (set H_out_col 0)
      (loop (H_out_im h_start h_end stride_h)
        (incf H_out_col 1)
        (set W_out_col 0)
        (loop (W_out_im w_start w_end stride_w)
        (incf W_out_col 1)
        (dotimes (cth C)
          (setf (aref col batch_n cth h_start w_start H_out_col W_out_col) (aref X batch_n cth H_out_im W_out_im))))))))
"""
'''


def test_gemm():
    assert show(only(GEMM)) == """\
(op Gemm
  (doc "C <- A @ B + C")
  (source "f.toml")
  (signature "A{float}[M K]<0 1>()" "B{float}[K N]<0 1>()" "C{float}[M N]<0 1>()")
  (outputs C)
  (buffer A f32 (M K) (0 1) in)
  (buffer B f32 (K N) (0 1) in)
  (buffer C f32 (M N) (0 1) inout)
  (size M)
  (size K)
  (size N)
  (at 3 9 "(op Gemm)")
  (at 9 1 "i")
  (at 10 3 "j")
  (at 11 5 "p")
  (at 12 13 "(aref C i j)")
  (at 12 29 "(aref A i p)")
  (at 12 42 "(aref B p j)")
  (body
    (for i 0 M 1 serial
      (for j 0 N 1 serial
        (for p 0 K 1 serial
          (incf (aref C i j) (* (aref A i p) (aref B p j))))))))"""


@pytest.mark.parametrize("text", [GEMM, ARANGE, IM2COL])
def test_programs_print_and_read_back(text):
    program = only(text)
    assert resolve(read(show(program))[0]) is program


def test_windows_line_ends_change_nothing():
    assert only(decode("f.toml", GEMM.replace("\n", "\r\n").encode())) is only(GEMM)


def test_the_ancestors_arange():
    program = only(ARANGE)
    assert [show(p) for p in program.params] == ["(buffer OUT f32 (i) (0) inout)", "(scalar A f32)", "(scalar B f32)", "(size i)"]
    assert program.first(Doc).text == "Loads out with ax+b."
    reference = program.first(Reference)
    assert (reference.lang, reference.line, reference.column) == ("lisp", 19, 1)
    assert reference.code.startswith("(lambda (out a b i)")


def test_the_ancestors_im2col():
    program = only(IM2COL)
    assert program.sizes == ("N", "C", "H", "W", "k_h", "k_w", "h_out", "w_out")
    assert "(for h_start 0 k_h 1 serial" in show(program)


def test_conditions_come_from_where_clauses_and_requirements():
    text = GEMM.replace("<0 1>()\"]", "<0 1>(where M = (* 2 K))\"]") + '\n[test]\nrequirements = ["", "N > 0 and M > 0"]\n'
    assert [show(c) for c in only(text).all(Require)] == ["(require (= M (* 2 K)))", "(require (> N 0))", "(require (> M 0))"]


def test_cases_and_schedules_are_facts():
    text = GEMM + '''
[test]
code = "lambda A, B, C: A @ B + C"
[[test.case]]
name = "small"
sizes = {m = 2, K = 3, N = 0}
tags = ["quick", "t-1"]
[[test.case]]
input = {a = [[1, 2.5], [3, 4]]}
expect = {error = "N > 0"}
[schedule]
code = "(schedule (split i 6 pad) (reorder (i j)))"
[bench.sizes]
S = {M = 8, N = 8, K = 8}
'''
    program = only(text)
    assert program.all(Case) == (
        Case("small", "random", "reference", ("quick", "t-1"), (Setting("M", "2"), Setting("K", "3"), Setting("N", "0"))),
        Case("case 2", '{"A": [[1, 2.5], [3, 4]]}', '{"error": "N > 0"}', (), ()))
    assert program.all(Schedule) == (Schedule((("split", "i", "6", "pad"), ("reorder", ("i", "j")))),)
    assert program.first(Reference).lang == "python"
    assert resolve(read(show(program))[0]) is program


@pytest.mark.parametrize(("runtime", "kept"), [("clang", 1), ("runtimes/clang.py", 1), ("gcc", 0)])
def test_a_schedule_may_be_for_one_runtime(runtime, kept):
    text = GEMM + '[schedule]\nruntime = "clang"\ncode = "(schedule)"\n'
    assert len(only(text, Options(runtime=runtime)).all(Schedule)) == kept


def test_several_composites_have_their_own_sections():
    one = '[[composite]]\nname = "{0}"\ninputs = ["A{{float}}[M]"]\noutputs = ["A"]\n[composite.implementation]\ncode = "(dotimes (i M) (setf (aref A i) {1}))"\n'
    programs = load(toml(one.format("One", "1.0") + one.format("Two", "2.0") + "[composite.test]\nrequirements = ['M > 1']\n"), Options())
    assert [p.name for p in programs] == ["One", "Two"]
    assert [len(p.all(Require)) for p in programs] == [0, 1]


BROKEN = """
[[composite]]
name = "One"
inputs = ["A{float}[M"]
outputs = ["A"]
[composite.implementation]
code = "(dotimes (i M) (setf (aref A i) 1))"
[[composite]]
name = "Two"
inputs = ["A{float}[M]"]
outputs = ["B{float}[M]"]
[composite.implementation]
code = "(call one A B) (setf (aref B q) 0)"
[[composite]]
name = "Three"
inputs = ["A{float}[M]"]
outputs = ["B{float}[M]"]
[composite.implementation]
code = "(call One A B)"
"""
FORMS_BROKEN = """(composite One ((A{float}[M) -> (A)) 3)
(composite Two ((A{float}[M]) -> (B{float}[M])) (call One A B) (setf (aref B q) 0))"""


@pytest.mark.parametrize("source", [toml(BROKEN), lisp(FORMS_BROKEN)], ids=["toml", "lisp"])
def test_a_fault_of_a_signature_hides_no_fault_in_another_body(source):
    assert [row[0] for row in refusals(source)] == ["E101", "E220"]


@pytest.mark.parametrize("printed", ["(schedule (split i 6 cut) (applied))", "(schedule (split i 6 cut))"])
def test_a_schedule_as_it_is_printed_is_still_to_be_taken(printed):
    assert only(GEMM + f'[schedule]\ncode = "{printed}"\n').all(Schedule) == (Schedule((("split", "i", "6", "cut"),)),)


def test_a_single_composite_may_hold_its_sections():
    assert only(GEMM.replace("[implementation]", "[composite.implementation]")) is not None


def test_the_published_schema_accepts_what_the_loader_accepts():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(files("caten.frontend").joinpath("spec.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for text in (GEMM, ARANGE, IM2COL):
        jsonschema.validate(tomli.loads(text), schema)
    for text in (GEMM.replace("name", "nom"), GEMM + "[gradient]\n", GEMM.replace('["C"]', '"C"')):
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(tomli.loads(text)))
        assert refusals(text)


SHAPE = [
    ("E005", "[composite\n", (1, 11), "not TOML"),
    ("E005", '[composite]\nname = "a"\nname = "b"\n', (3, 1), "given twice"),
    ("E005", "[composite]\nname = \n", (2, 8), "Invalid value"),
    ("E004", "x = " + "9" * 5000, (1, 5), "5000 digits"),
    ("E004", "x = " + "[" * 300, (1, 262), "nested deeper"),
    ("E004", ".".join("a" * 65) + " = 1", (1, 1), "dotted key"),
    ("E003", "\ufeff" + GEMM, (1, 1), "byte order mark"),
    ("E003", "[composite]\nname = \"\0\"", (2, 9), "NUL"),
    ("E011", "", (1, 1), "lacks [composite]"),
    ("E010", GEMM.replace("documentation", "documentatoin"), (2, 1), "unknown key 'documentatoin' in [composite]"),
    ("E010", GEMM.replace("[implementation]", "[implementation]\nfoo = 1"), (8, 1), "unknown key 'foo' in [implementation]"),
    ("E010", GEMM + "[tests]\n", (14, 1), "unknown key 'tests' at the top level"),
    ("E011", GEMM.replace('outputs = ["C"]', ""), (1, 1), "[composite] lacks 'outputs'"),
    ("E011", GEMM[:GEMM.index("code =")], (7, 1), "lacks 'code'"),
    ("E012", GEMM.replace('["C"]', '"C"'), (5, 11), "'composite.outputs' must be an array, not a string"),
    ("E012", GEMM.replace('["C"]', '[3]'), (5, 12), "'composite.outputs[0]' must be a string, not a number"),
    ("E012", "composite = 3\n", (1, 13), "must be a table or an array, not a number"),
    ("E012", GEMM.replace('"Gemm"', "true"), (3, 8), "must be a string, not a boolean"),
    ("E012", GEMM.replace('"Gemm"', "1979-05-27"), (3, 8), "must be a string, not a date or time"),
    ("E012", GEMM + "[[test.case]]\nsizes = {M = 'x'}\n", (15, 14), "must be a number or a boolean, not a string"),
    ("E013", GEMM.replace("code =", 'lang = "fortran"\ncode ='), (8, 8), "'implementation.lang' cannot be 'fortran'"),
    ("E013", "composite = []\n", (1, 13), "is empty"),
    ("E014", GEMM.replace("[composite]", "[[composite]]"), (7, 1), "[implementation] would belong to none"),
    ("E014", GEMM + "[composite.implementation]\ncode = ''\n", (14, 1), "both [implementation] and"),
    ("E243", GEMM.replace("code =", 'lang = "python"\ncode ='), (10, 11), "this is no Python"),
    ("E106", GEMM.replace('"Gemm"', '"../x"'), (3, 9), "not a name"),
    ("E104", GEMM.replace("B{float}", "B{flot}"), (4, 38), "unknown element type 'flot'"),
    ("E105", GEMM.replace("B{float}", "B{Tee}"), (4, 38), "is not an element type"),
    ("E111", GEMM.replace("[K N]", "[~ N ~]"), (4, 49), "is there twice"),
    ("E118", GEMM + "[test]\nrequirements = ['', '  M']\n", (15, 24), "not a condition"),
    ("E020", GEMM + "[[test.case]]\nsizes = {Q = 1}\nexpect = 'x.npz'\n", (15, 10), "'Q' is neither a size nor a scalar"),
    ("E020", GEMM + "[[test.case]]\nsizes = {M = -1}\nexpect = 'x.npz'\n", (15, 14), "from 0 to 2^40"),
    ("E020", GEMM + "[[test.case]]\nsizes = {M = 1.5}\nexpect = 'x.npz'\n", (15, 14), "whole number"),
    ("E020", GEMM + "[[test.case]]\ninput = 'data.csv'\nexpect = 'x.npz'\n", (15, 9), "neither 'random' nor an .npz file"),
    ("E020", GEMM + "[[test.case]]\ninput = {Z = [1]}\nexpect = 'x.npz'\n", (15, 10), "not a tensor"),
    ("E020", GEMM + "[[test.case]]\ntags = ['a b']\nexpect = 'x.npz'\n", (15, 9), "not a tag"),
    ("E020", GEMM + "[bench.sizes]\nS = {Q = 4}\n", (15, 6), "'Q' is neither"),
    ("E022", GEMM + "[[test.case]]\nexpect = '../x.npz'\n", (15, 10), "outside the spec's folder"),
    ("E022", GEMM + "[[test.case]]\nexpect = '/x.npz'\n", (15, 10), "outside the spec's folder"),
    ("E021", GEMM + "[schedule]\ncode = '(split i 6)'\n", (15, 9), "one (schedule step…)"),
    ("E021", GEMM + "[schedule]\ncode = ''\n", (15, 9), "one (schedule step…)"),
    ("E021", GEMM + "[schedule]\ncode = '(schedule split)'\n", (15, 19), "a step of a schedule"),
    ("E021", GEMM + "[schedule]\ncode = '(schedule (split \"i\"))'\n", (15, 26), "no strings"),
    ("E201", GEMM + "[schedule]\ncode = '(schedule'\n", (15, 9), "never closed"),
    ("E201", GEMM.replace("))))))\n", ")))))\n"), (9, 1), "never closed"),
    ("E228", GEMM.replace('["C"]', '["C", "B"]'), (4, 36), "the output 'B' is never written"),
    ("E225", GEMM.replace('["C"]', '["B"]').replace("(aref B p j)", "1.0").replace("(aref C i j)", "(aref A i j)"), (12, 13), "'A' is an input and no output"),
]


@pytest.mark.parametrize(("code", "text", "point", "message"), SHAPE, ids=[f"{s[0]}-{s[3][:30]}" for s in SHAPE])
def test_refusals(code, text, point, message):
    found = refusals(text)
    assert found[0][:3] == (code, *point)
    assert message in found[0][3]


def test_all_faults_of_the_shape_are_listed_in_order():
    text = GEMM.replace("name", "nom").replace('["C"]', "3").replace("code", "kode")
    assert [(code, line) for code, line, _, _ in refusals(text)] == [("E011", 1), ("E010", 3), ("E012", 5), ("E011", 7), ("E010", 8)]


def test_faults_of_all_composites_are_listed():
    one = '[[composite]]\nname = "{0}"\ninputs = ["A{{float}}[{1}]"]\noutputs = ["A"]\n[composite.implementation]\ncode = "(setf (aref A {2}) 1.0)"\n'
    assert [r[:3] for r in refusals(one.format("One", "-1", "0") + one.format("Two", "M-1", "0"))] == [("E108", 3, 21), ("E119", 9, 21)]
    assert len(refusals(one.format("One", "M", "q") + one.format("Two", "M", "r"))) == 2


def test_unknown_keys_get_the_closest_known_one():
    with pytest.raises(CatenError) as caught:
        load(toml(GEMM.replace("inputs", "input")), Options())
    assert "did you mean 'inputs'?" in [d.hint for d in caught.value.diagnostics]


def test_two_composites_of_one_name():
    one = '[[composite]]\nname = "{0}"\ninputs = ["A{{float}}[M]"]\noutputs = ["A"]\n[composite.implementation]\ncode = "(setf (aref A 0) 1.0)"\n'
    assert refusals(one.format("relu") + one.format("ReLU"))[0][:3] == ("E015", 8, 9)


def test_echoed_text_is_escaped():
    (_, _, _, message), *_ = refusals(GEMM + '"\\u001b[31m" = 1\n')
    assert "\x1b" not in message
