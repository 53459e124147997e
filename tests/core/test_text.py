"""The reader and the printer of all levels: what is printed reads back to the identical node, and every refusal names its place."""
import pytest

from caten.core.expr import Cast, Const, Op, Var
from caten.core.program import Bind, Buffer, Case, Doc, Schedule, Setting, Size, resolve
from caten.core.text import MAX_DEPTH, MAX_FORMS, read, read_forms, show
from caten.errors import CatenError
from caten.frontend.op import Body, OpProgram
from caten.loop.statements import (
    Aref,
    Fail,
    Fold,
    If,
    Incf,
    Let,
    Local,
    Prefetch,
    Setf,
    Shuffle,
    Splat,
    Transpose,
    Vref,
    dotimes,
)

i, M = Var("i", "i64"), Var("M", "i64")
a = Aref("A", (i,), "f32")


def program(*body, facts=()):
    return OpProgram("Test", (Buffer("A", "f32", (M,), (0,), "inout"), Size("M"), *facts, Body(body)))


@pytest.mark.parametrize("node", [
    Const(3, "i64"), Const(-3, "i64"), Const(3, "i32"), Const(255, "u8"), Const(0.5, "f32"), Const(0.5, "f64"), Const(1e-30, "f32"),
    Const(-0.0, "f32"),
    Const(float("inf"), "f32"), Const(float("-inf"), "f64"), Const(True, "bool"), Const(False, "bool"), Const(1e300, "f64"), Const(1 << 62, "i64"),
    Const(1 + 2j, "c64"), Const(complex(-0.0, -1e-30), "c128"), Const(complex(float("inf"), float("nan")), "c64"), Const(2j, "c64"), Bind("M", 4), Doc('a "quoted"\n\ttext with \\ and é'), Case("c 1", "random", '{"error": "x"}', ("slow", "t"), (Setting("M", "2"),)),
    Schedule((("split", "i", "6", "pad"), ("reorder", ("i", "j")))), Fail(3), Size("M"),
])
def test_what_is_printed_reads_back_to_the_identical_node(node):
    assert read(show(node)) == [node]


def test_nan_reads_back():
    nan = Const(float("nan"), "f64")
    assert show(nan) == "nan:f64"
    assert read("nan:f64")[0] is nan


@pytest.mark.parametrize("statement", [
    Setf(a, Cast("f32", i)), Incf(a, Const(1.0, "f32")), Incf(a, Const(1.0, "f32"), "max"), Let("x", "i64", i + 1), Local("t", "f32", (), "register"),
    Local("t", "f32", (M, Const(4)), "scratch"), Prefetch(a), If(i < 3, (Fail(1),)), If(i < 3, (Fail(1),), (Setf(a, a),)), dotimes("k", M),
    Setf(Vref("A", 8, (i,), -1, None, "f32"), Splat(8, a)), Setf(Vref("A", 4, (i,), 0, Splat(4, i < M), "f32"), Shuffle(Splat(4, a), (3, 2, 1, 0))),
    Transpose(Vref("A", 8, (i, i), -1, None, "f32"), 0, Vref("A", 16, (i, i), -1, None, "f32"), 0), Setf(a, Fold("add", Splat(8, a))), Setf(a, Op("where", (i < 3, a, Const(0.0, "f32")))),
])
def test_statements_read_back_with_their_types(statement):
    op = program(dotimes("i", M, statement, statement))
    assert resolve(read(show(op))[0]) is op


@pytest.mark.parametrize("width", [1, 20, 60, 200])
def test_line_breaks_do_not_change_the_text(width):
    op = program(dotimes("i", M, If(i < 3, (Setf(a, a + a * a),), (Setf(a, a),))), facts=(Doc("x" * 50),))
    assert resolve(read(show(op, width))[0]) is op


def test_the_printed_form():
    assert show(program(dotimes("i", M, Incf(a, Const(1.0, "f32"))), facts=(Doc("adds 1"),))) == """\
(op Test
  (buffer A f32 (M) (0) inout)
  (size M)
  (doc "adds 1")
  (body
    (for i 0 M 1 serial
      (incf (aref A i) 1.0))))"""


def test_comments_and_several_forms():
    assert read("; one\n(size M) ; two\n(size N)") == [Size("M"), Size("N")]


def test_holes_read_as_pattern_variables():
    assert [n.name for n in read("(+ ?x ?y)")[0].args] == ["x", "y"]


def test_offsets_of_forms():
    outer, = read_forms('  (a "b" (c))')
    assert (outer.pos, outer.end) == (2, 12)
    assert [part.pos for part in outer] == [3, 5, 9]


REFUSALS = [
    ("E201", "(size M", 1, 1, "never closed"),
    ("E202", "(size M))", 1, 9, "closes nothing"),
    ("E203", '(doc "x)', 1, 6, "never closed"),
    ("E204", "(" * (MAX_DEPTH + 1), 1, MAX_DEPTH + 1, "nested deeper"),
    ("E210", "(size M)\n()", 2, 1, "expected (head"),
    ("E210", "((size M))", 1, 1, "expected (head"),
    ("E211", "(sise M)", 1, 1, "unknown head 'sise'"),
    ("E212", "(+ 1 2 3)", 1, 1, "takes 2 operands, not 3"),
    ("E212", "(size)", 1, 1, "'name' is missing"),
    ("E212", "(size M N)", 1, 1, "more parts"),
    ("E212", "(opt two)", 1, 6, "expected an integer"),
    ("E212", "(opt (2))", 1, 6, "expected a symbol"),
    ("E212", "(doc (a (b)))", 1, 6, "expected a quoted text here, not (a (b))"),
    ("E212", "(buffer A f32 M (0) in)", 1, 1, "expected a list for 'shape'"),
    ("E212", "(if)", 1, 1, "malformed (if"),
    ("E212", "(setf 3 1.0)", 1, 1, "'ref' holds 3, which is no place"),
    ("E212", "(setf (aref A 0) (barrier))", 1, 1, "'value' holds (barrier), which is no expression"),
    ("E212", "(for i 0 N 1 serial (+ i 1))", 1, 1, "'body' holds (+ i 1), which is no statement"),
    ("E212", "(+ 1 (size N))", 1, 1, "'args' holds (size N), which is no expression"),
    ("E213", "(+ 1..2 3)", 1, 4, "neither a name nor a number"),
    ("E213", "3:f33", 1, 1, "neither a name nor a number"),
    ("E213", "a-b", 1, 1, "neither a name nor a number"),
]


@pytest.mark.parametrize(("code", "text", "line", "column", "message"), REFUSALS, ids=[f"{r[0]}-{r[1][:12]}" for r in REFUSALS])
def test_refusals(code, text, line, column, message):
    with pytest.raises(CatenError) as caught:
        read(text, "f")
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.file, found.place.line, found.place.column) == (code, "f", line, column)
    assert message in found.message


def test_too_many_symbols(monkeypatch):
    monkeypatch.setattr("caten.core.text.MAX_FORMS", 10)
    assert MAX_FORMS == 1_000_000
    with pytest.raises(CatenError, match="E204: more than"):
        read_forms("a " * 11)


def test_unknown_heads_get_a_hint():
    with pytest.raises(CatenError) as caught:
        read("(sise M)")
    assert caught.value.diagnostics[0].hint == "did you mean 'size'?"
