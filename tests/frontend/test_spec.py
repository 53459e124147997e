"""Specs: what they become, and every refusal of their shape with its place."""
import json
from importlib.resources import files

import pytest
import tomli

from caten.core.program import Case, Doc, Reference, Require, Schedule, Setting, resolve
from caten.core.text import read, show
from caten.errors import CatenError, UsageError
from caten.frontend.spec import SpecText, composites, decode, load, read_file
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


def toml(text, name="f.toml"):
    return SpecText(name, text)


def lisp(text):
    return SpecText("<argument>", text, "lisp")


def only(text, options=None):
    program, = load(text if isinstance(text, SpecText) else toml(text), options or Options())
    return program


def refusals(text, options=None):
    with pytest.raises(CatenError) as caught:
        load(text if isinstance(text, SpecText) else toml(text), options or Options())
    return [(d.code, d.place.line, d.place.column, d.message) for d in caught.value.diagnostics]


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
    ("E018", GEMM + "[gradient]\n", (14, 1), "[gradient] is not supported yet"),
    ("E018", GEMM + "[rewrite]\nx = 1\n", (14, 1), "[rewrite] is not supported yet"),
    ("E018", GEMM.replace("code =", 'lang = "python"\ncode ='), (8, 8), "Python bodies are not supported yet"),
    ("E106", GEMM.replace('"Gemm"', '"../x"'), (3, 9), "not a name"),
    ("E104", GEMM.replace("B{float}", "B{flot}"), (4, 38), "unknown element type 'flot'"),
    ("E105", GEMM.replace("B{float}", "B{T}"), (4, 38), "type variables are not supported yet"),
    ("E111", GEMM.replace("[K N]", "[~ N]"), (4, 45), "not supported yet"),
    ("E118", GEMM + "[test]\nrequirements = ['', '  M']\n", (15, 24), "not a condition"),
    ("E020", GEMM + "[[test.case]]\nsizes = {Q = 1}\nexpect = 'x.npz'\n", (15, 10), "'Q' is neither a size nor a scalar"),
    ("E020", GEMM + "[[test.case]]\nsizes = {M = -1}\nexpect = 'x.npz'\n", (15, 14), "from 0 to 2^40"),
    ("E020", GEMM + "[[test.case]]\nsizes = {M = 1.5}\nexpect = 'x.npz'\n", (15, 14), "whole number"),
    ("E020", GEMM + "[[test.case]]\nsizes = {M = 1}\n", (14, 1), "expects the reference"),
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


# files

def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="E001: cannot read"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="E001"):
        read_file(tmp_path)
    with pytest.raises(UsageError, match="E001"):
        read_file("a\0b")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("caten.frontend.files.MAX_BYTES", 1 << 20)
    (tmp_path / "big.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(CatenError, match=r"E002.*larger than 1 MiB"):
        read_file(tmp_path / "big.toml")
    with pytest.raises(CatenError, match="E002"):
        load(toml("#" * ((1 << 20) + 1)), Options())


def test_bytes_that_are_not_utf_8(tmp_path):
    (tmp_path / "f.toml").write_bytes(b'[composite]\nname = "\xc3\xa9\xff"\n')
    with pytest.raises(CatenError) as caught:
        read_file(tmp_path / "f.toml")
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.line, found.place.column, found.message) == ("E003", 2, 10, "byte 0xff is not UTF-8")


def test_the_language_of_a_file_is_seen_from_its_text(tmp_path):
    (tmp_path / "a").write_text("; a comment\n(composite …)")
    (tmp_path / "b").write_text(GEMM)
    assert [read_file(tmp_path / n).lang for n in "ab"] == ["lisp", "toml"]


RELU = '''\
[composite]
name = "Relu"
inputs = ["X{float}[N]"]
outputs = ["Y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref Y i) (max (aref X i) 0.0)))"
'''
CALLER = '''\
[composite]
name = "Caller"
inputs = ["A{float}[M]", "B{float}[M]"]
outputs = ["B"]
[implementation]
code = "(call Relu A B)"
'''


def test_included_specs_can_be_called_but_are_not_compiled(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "relu.toml").write_text(RELU)
    (tmp_path / "main.toml").write_text('include = ["lib/relu.toml"]\n' + CALLER)
    program = only(read_file(tmp_path / "main.toml"))
    assert program.name == "Caller"
    assert "max (aref A" in show(program)


def test_specs_on_the_include_path_are_found_by_name(tmp_path):
    (tmp_path / "relu.toml").write_text(RELU)
    assert only(CALLER, Options(include_dirs=(str(tmp_path),))).name == "Caller"


@pytest.mark.parametrize("name", ["none.toml", "../outside.toml", "/etc/passwd", "lib", "a\\u0000b", "link.toml"])
def test_includes_stay_below_the_folders(tmp_path, name):
    (tmp_path / "outside.toml").write_text(RELU)
    (tmp_path / "here" / "lib").mkdir(parents=True)
    (tmp_path / "here" / "link.toml").symlink_to(tmp_path / "outside.toml")
    (tmp_path / "here" / "main.toml").write_text(f'include = ["{name}"]\n{GEMM}')
    assert refusals(read_file(tmp_path / "here" / "main.toml"))[0][:3] == ("E016", 1, 12)


def test_an_include_path_opens_another_folder(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "relu.toml").write_text(RELU)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "main.toml").write_text('include = ["relu.toml"]\n' + CALLER)
    assert only(read_file(tmp_path / "here" / "main.toml"), Options(include_dirs=(str(tmp_path / "lib"),))).name == "Caller"


def test_loops_of_includes(tmp_path):
    (tmp_path / "a.toml").write_text('include = ["b.toml"]\n' + GEMM)
    (tmp_path / "b.toml").write_text('include = ["a.toml"]\n' + RELU)
    (tmp_path / "c.toml").write_text('include = ["c.toml"]\n' + RELU)
    assert refusals(read_file(tmp_path / "a.toml"))[0][0] == "E017"
    assert refusals(read_file(tmp_path / "c.toml"))[0][0] == "E017"


# the one-line form

ADD = "(composite Add ((A{float}[M, N], B{float}[M, N]) -> (C{float}[M, N]) where M > 0, N < 9) (dotimes (i M) (dotimes (j N) (setf (aref C i j) (+ (aref A i j) (aref B i j))))))"


def test_the_one_line_form():
    program = only(lisp(ADD))
    assert program.name == "Add"
    assert [show(p) for p in program.params] == ["(buffer A f32 (M N) (0 1) in)", "(buffer B f32 (M N) (0 1) in)", "(buffer C f32 (M N) (0 1) out)", "(size M)",
                                                 "(size N)", "(require (> M 0))", "(require (< N 9))"]
    assert f'(at 1 {ADD.index("(aref C") + 1} "(aref C i j)")' in show(program)


def test_the_name_may_be_left_out_and_outputs_returned():
    assert only(lisp("(composite ((A{int}[M]) -> (B{int}[M])) (dotimes (i M) (setf (aref B i) (aref A i))) (return B))")).name == "Main"


def test_conditions_in_parentheses_and_several_forms():
    one = "(composite {0} (() -> (B{{int}}[M]) (where M > 0)) (dotimes (i M) (setf (aref B i) 1)))"
    assert [p.name for p in load(lisp(one.format("One") + "\n" + one.format("Two")), Options())] == ["One", "Two"]


def test_a_one_line_form_becomes_what_the_toml_form_becomes():
    text = "(composite Gemm ((A{float}[M K]<0 1>(), B{float}[K N]<0 1>()) -> (C{float}[M N]<0 1>()))"
    one, = composites(lisp(text + " (setf (aref C 0 0) 1.0))"), Options())
    assert (one.sizes, one.outputs, [t.text for t in one.tensors]) == (("M", "K", "N"), ("C",), [
        "A{float}[M K]<0 1>()", "B{float}[K N]<0 1>()", "C{float}[M N]<0 1>()"])


@pytest.mark.parametrize(("signature", "outputs"), [
    ("(A{float}[M]) -> (A)", ["A"]),
    ("(A{float}[M]) -> ( A , )", ["A"]),
    ("(A{float}[M]) -> (B{float}[M], C{float} [M K] <1 0>)", ["B", "C"]),
    ("(A{float}[M], D{int}[]) -> (A B{float}[(* 2 M)](where M > 0)\n  C-1{int}[])", ["A", "B", "C_1"]),
])
def test_outputs_of_a_one_line_form(signature, outputs):
    one, = composites(lisp(f"(composite ({signature}) (setf (aref {outputs[0]} 0) 1.0))"), Options())
    assert list(one.outputs) == outputs


@pytest.mark.parametrize(("signature", "output"), [
    ("(C{float}[M]) -> (C{float}[M])", "C_out"),
    ("(C{float}[M] C_out{float}[M]) -> (C{float}[M])", "C_out_2"),
    ("(C{float}[C-OUT]) -> (C{float}[C-OUT])", "C_out_2"),
])
def test_an_output_declared_like_an_input_is_a_new_tensor(signature, output):
    one, = composites(lisp(f"(composite ({signature}) (return C))"), Options())
    assert one.outputs == (output,)
    assert (one.tensor("C").access, one.tensor(output).access, one.tensor(output).text[:len(output) + 1]) == ("in", "out", output + "{")


FORMS = [
    ("E019", "", 1, "no composite"),
    ("E023", "hello", 1, "expected (composite"),
    ("E023", "(composit)", 1, "expected (composite"),
    ("E023", "(composite)", 11, "expected the signature"),
    ("E023", "(composite Name)", 16, "expected the signature"),
    ("E023", "(composite (A{float}[M]) 3)", 12, "a signature is"),
    ("E023", "(composite ((A{float}[M]) -> (B{float}[M]) having M > 0) 3)", 44, "expected 'where'"),
    ("E023", "(composite ((A{float}[M]) -> (B{float}[M]) (where M > 0) 4) 3)", 58, "expected the end"),
    ("E105", "(composite ((A{T}[M]) -> (B{T}[M])) 3)", 16, "type variables are not supported yet"),
    ("E106", "(composite inf ((A{float}[M]) -> (B{float}[M])) 3)", 12, "constant"),
    ("E107", "(composite ((C{float}[M]) -> (c{float}[M])) 3)", 31, "declared twice"),
    ("E107", "(composite ((C{float}[M]) -> (D{float}[M] D{float}[M])) 3)", 43, "declared twice"),
    ("E115", "(composite ((A{float}[M]) -> ()) 3)", 12, "no outputs"),
    ("E201", "(composite", 1, "never closed"),
]


@pytest.mark.parametrize(("code", "text", "column", "message"), FORMS, ids=[f"{f[0]}-{f[1][:30]}" for f in FORMS])
def test_refusals_of_the_one_line_form(code, text, column, message):
    found = refusals(lisp(text))
    assert (found[0][0], found[0][2]) == (code, column)
    assert message in found[0][3]


# explanations

CODES = sorted({row[0] for row in (*SHAPE, *FORMS)} | {f"E{n}" for n in ("001", "002", "015", "016", "017", "108", "119", "202", "203", "204", "490")})


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code):
    page = files("caten").joinpath(f"explanations/{code}.md").read_text("utf-8")
    assert page.startswith("# ")
    assert 4 <= len(page.splitlines()) <= 25
