"""Tensor notation: what declarations mean, and every refusal with its place."""
import pytest

from caten.core.text import place_in, show
from caten.errors import CatenError
from caten.frontend.signature import Written, declare


def written(text):
    return Written(text, lambda offset: place_in(text, offset, "spec"))


def signature(inputs, outputs=("A",), requirements=()):
    return declare([written(t) for t in inputs], [written(t) for t in outputs], [written(t) for t in requirements])


def declared(text):
    return signature([text]).tensors[0]


def refusals(inputs, outputs=("A",), requirements=()):
    with pytest.raises(CatenError) as caught:
        signature(inputs, outputs, requirements)
    return caught.value.diagnostics


def test_a_whole_declaration():
    a = declared("A{float}[M K]<1 0>(where K = (* 2 M))")
    assert (a.name, a.dtype, [show(d) for d in a.shape], a.order, a.access, a.grad) == ("A", "f32", ["M", "K"], (1, 0), "inout", False)
    assert a.text == "A{float}[M K]<1 0>(where K = (* 2 M))"


@pytest.mark.parametrize("text", ["A{float}[M K]<0 1>()", "A{Float}[M,K]", "A{FLOAT}[M, K]<0, 1>", " A { float32 } [ M K ] < 0 1 > ( where ) ", "A{f32}[M K]()",
                                  "A{fp32}[M K]", "A{float}[M K] ; a comment"])
def test_spellings_of_one_tensor(text):
    a = declared(text)
    assert (a.name, a.dtype, [show(d) for d in a.shape], a.order) == ("A", "f32", ["M", "K"], (0, 1))


@pytest.mark.parametrize(("word", "dtype"), [
    ("double", "f64"), ("Float64", "f64"), ("fp64", "f64"), ("Int", "i64"), ("INT8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"),
    ("uint8", "u8"), ("UInt16", "u16"), ("uint32", "u32"), ("uint64", "u64"), ("bool", "bool"), ("Boolean", "bool"), ("complex64", "c64"),
    ("complex128", "c128")])
def test_element_types_in_any_case(word, dtype):
    assert declared(f"A{{{word}}}[]").dtype == dtype


def test_grad_is_kept():
    assert declared("A{float grad}[M]").grad
    assert declared("A{float GRAD}[M]").grad


def test_a_scalar_is_passed_by_value_unless_it_is_written():
    s = signature(["A{Float}[]<>()", "B{Float}[]"], ["B"])
    assert [(t.name, t.rank, t.scalar) for t in s.tensors] == [("A", 0, True), ("B", 0, False)]


@pytest.mark.parametrize(("dims", "shown"), [
    ("3 4", ["3", "4"]), ("(* 2 M)", ["(* 2 M)"]), ("(+ M N 1)", ["(+ (+ M N) 1)"]), ("(* 2 3)", ["6"]), ("(floordiv M 2)", ["(floordiv M 2)"]),
    ("(M + 1) (max M N)", ["(+ M 1)", "(max M N)"]), ("(mod M 4)", ["(mod M 4)"]), ("x-size", ["x_size"]), ("0", ["0"])])
def test_dimensions(dims, shown):
    assert [show(d) for d in declared(f"A{{float}}[{dims}]").shape] == shown


def test_an_extent_that_may_be_negative_becomes_a_condition():
    assert [show(c) for c in signature(["A{float}[(- M 1) (+ M 1) (max 0 (- M 2))]"]).conditions] == ["(>= (- M 1) 0)"]


def test_access_and_order_of_tensors_and_sizes():
    s = signature(["A{float}[M K]", "B{float}[K N]"], ["C{float}[M N L]", "b"])
    assert [(t.name, t.access) for t in s.tensors] == [("A", "in"), ("B", "inout"), ("C", "out")]
    assert (s.inputs, s.outputs, s.sizes) == (("A", "B"), ("C", "B"), ("M", "K", "N", "L"))


@pytest.mark.parametrize(("text", "shown"), [
    ("", []), ("  ", []), ("M > 0", ["(> M 0)"]), ("(> M 0)", ["(> M 0)"]), ("K = (* 2 M)", ["(= K (* 2 M))"]), ("K == 2 * M", ["(= K (* 2 M))"]),
    ("M > 0, K > 0", ["(> M 0)", "(> K 0)"]), ("M > 0 and K > 0", ["(> M 0)", "(> K 0)"]), ("(and (> M 0) (> K 0))", ["(> M 0)", "(> K 0)"]),
    ("0 < M <= 4", ["(< 0 M)", "(<= M 4)"]), ("(< 0 M 4)", ["(< 0 M)", "(< M 4)"]), ("M mod 4 = 0", ["(= (mod M 4) 0)"]), ("M % 4 == 0", ["(= (mod M 4) 0)"]),
    ("M + 2 * K - 1 >= 3", ["(>= (- (+ M (* 2 K)) 1) 3)"]), ("(M + 1) * 2 != K", ["(/= (* (+ M 1) 2) K)"]), ("(M > 0)", ["(> M 0)"]),
    ("m > k", ["(> M K)"]), ("M // 2 > 0", ["(> (floordiv M 2) 0)"]), ("-M < 0", ["(< (- 0 M) 0)"]), ("s > 0", ["(> s 0)"]), ("b > 0", ["(> (cast i64 b) 0)"])])
def test_conditions(text, shown):
    s = signature(["A{float}[M K]", "s{int}[]", "b{int8}[]"], ["A"], [text])
    assert [show(c) for c in s.conditions] == shown


def test_where_clauses_may_speak_of_sizes_declared_later():
    s = signature(["A{float}[M](where M = (* 2 N))", "B{float}[N](N > 1, N < 9)"])
    assert [show(c) for c in s.conditions] == ["(= M (* 2 N))", "(> N 1)", "(< N 9)"]


REFUSALS = [
    ("E101", "{float}[M]", 1, "the name of a tensor"),
    ("E101", "A{float", 8, "'}'"),
    ("E101", "A{float}[M", 11, "']'"),
    ("E101", "A{float}[M](where M = 1", 12, "')'"),
    ("E101", "A{float}[M]{float}", 12, "wrong place"),
    ("E101", "A{float foo}[M]", 9, "only 'grad'"),
    ("E101", "A{float}[M!]", 11, "no meaning"),
    ("E101", "A{float}[\x07]", 10, "\\x07"),
    ("E102", "A[M]", 2, "element type of 'A' is missing"),
    ("E102", "A{}[M]", 3, "element type of 'A' is missing"),
    ("E103", "A{float}", 9, "shape of 'A' is missing"),
    ("E104", "A{flaot}[M]", 3, "unknown element type 'flaot'"),
    ("E104", "A{3}[M]", 3, "not an element type"),
    ("E105", "A{Tee}[M]", 3, "is not an element type"),
    ("E105", "A{Sparse}[M]", 3, "Sparse"),
    ("E106", "A{float}[\N{CYRILLIC CAPITAL LETTER EM}]", 10, "CYRILLIC CAPITAL LETTER EM"),
    ("E106", "A{float}[2x]", 10, "do not start with a digit"),
    ("E106", "A{float}[x-]", 10, "not a name"),
    ("E106", "A{float}[nan]", 10, "name of a constant"),
    ("E106", "A" * 65 + "{float}[M]", 1, "longer than 64"),
    ("E107", "A{float}[M m]", 12, "'M' and 'm' are the same name"),
    ("E107", "A{float}[k_h K-h]", 14, "same name"),
    ("E107", "A{float}[a]", 10, "name of the tensor 'A'"),
    ("E108", "A{float}[-1]", 10, "cannot be negative"),
    ("E108", "A{float}[(- 1 3)]", 10, "cannot be negative"),
    ("E109", "A{float}[1099511627777]", 10, "2^40"),
    ("E109", f"A{{float}}[{'9' * 5000}]", 10, "too large"),
    ("E109", "A{float}[(* 4611686018427387904 2)]", 11, "too large"),
    ("E110", "A{float}[M K]<0 0>", 14, "each of 0…1 once"),
    ("E110", "A{float}[M K]<1>", 14, "each of 0…1 once"),
    ("E110", "A{float}[M]<>", 12, "must list 0"),
    ("E110", "A{float}[]<0>", 11, "must list nothing"),
    ("E110", "A{float}[M]<x>", 13, "number of an axis"),
    ("E111", "A{float}[~ M ~]", 14, "is there twice"),
    ("E111", "A{float}[M]<0 ~>", 15, "there is none"),
    ("E112", "A{float}[(/ M 2)]", 11, "fraction"),
    ("E112", "A{float}[(M / 2)]", 13, "fraction"),
    ("E112", "A{float}[(foo M)]", 11, "'foo' is not an operator"),
    ("E112", "A{float}[(floordiv M)]", 11, "takes two"),
    ("E112", "A{float}[(+)]", 11, "one or more"),
    ("E112", "A{float}[2.5]", 10, "whole numbers"),
    ("E116", "A{float}[M](where Q = 1)", 19, "'Q' is not a size"),
    ("E116", "A{float}[M](where A = 1)", 19, "'A' is a tensor"),
    ("E117", "A{float}[M](where M = )", 23, "expected a number"),
    ("E117", "A{float}[M](where M = 1 or M = 2)", 25, "'or' is not part"),
    ("E117", "A{float}[M](where M = 1 M = 2)", 25, "expected a comma"),
    ("E118", "A{float}[M](where M)", 19, "not a condition"),
    ("E118", "A{float}[M](where (= M))", 19, "two operands"),
    ("E119", "A{float}[M-1]", 10, "would be one name"),
    ("E120", f"A{{float}}[{'1 ' * 33}]", 74, "more than 32 axes"),
    ("E004", "A{float}[" + "M " * (1 << 15) + "]", 1, "more than 65536 characters"),
    ("E120", " ".join(f"A{n}{{float}}[]" for n in range(1001)), 13891, "more than 1000 tensors"),
    ("E004", f"A{{float}}[{'(+ ' * 70}M{')' * 70}]", 205, "nested deeper"),
]


@pytest.mark.parametrize(("code", "text", "column", "message"), REFUSALS, ids=[f"{r[0]}-{r[1][:24]!a}" for r in REFUSALS])
def test_refusals(code, text, column, message):
    found = refusals([text])[0]
    assert (found.code, found.place.column) == (code, column)
    assert message in found.message


@pytest.mark.parametrize(("code", "inputs", "outputs", "message"), [
    ("E107", ["A{float}[M]", "a{float}[M]"], ["A"], "'a' is declared twice: it is the same name as 'A'"),
    ("E107", ["A{float}[M]"], ["A{float}[M]"], "'A' is declared twice"),
    ("E113", ["Alpha{float}[M]"], ["Alhpa"], "'Alhpa' is not an input"),
    ("E114", ["A{float}[M]"], ["A", "a"], "listed twice"),
    ("E115", ["A{float}[M]"], [], "no outputs"),
    ("E120", [f"A{n}{{float}}[M]" for n in range(2100)], ["A0"], "more than 1000 tensors"),
    ("E120", [f"A{n}{{float}}[M{n}]" for n in range(513)], ["A0"], "more than 1024 tensors and sizes together"),
    ("E101", ["A{float}[M]"], ["", "A"], "expected the name of an input"),
    ("E101", ["A{float}[M]"], ["B{float}[M] C{float}[M]"], "one declaration"),
])
def test_refusals_of_outputs(code, inputs, outputs, message):
    found = refusals(inputs, outputs)
    assert [d.code for d in found] == [code]
    assert message in found[0].message


def test_all_faults_of_a_signature_are_listed():
    assert [d.code for d in refusals(["A{flaot}[M]", "B{float}[-1]"], ["A", "C{Sparse}[M]"])] == ["E104", "E108", "E105"]
    assert [d.code for d in refusals(["A{float}[M](Q = 1)"], ["A"], ["M", "R > 1"])] == ["E116", "E118", "E116"]


@pytest.mark.parametrize(("text", "hint"), [("A{flaot}[M]", "did you mean 'float'?"), ("A{float}[width](where widht = 1)", "did you mean 'width'?"),
                                            ("A{float}[M-1]", "write (- M 1), or rename the size")])
def test_hints(text, hint):
    assert refusals([text])[0].hint == hint
