"""The structure of operators: the same under all names, another for every other difference."""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from caten import driver, loading
from caten.core import expr, program
from caten.core.expr import Const, Op, Var, index
from caten.core.node import Node
from caten.core.program import Bind, Check, Machine, Setting, Size
from caten.frontend import op
from caten.frontend.op import Body, OpProgram
from caten.frontend.spec import read_file
from caten.frontend.spec_files import SpecText
from caten.frontend.structure import NAMES, NO_PART, spelling, structure, with_names
from caten.loop import statements
from caten.loop.statements import Aref, Fail
from caten.options import Options
from caten.tensor import values
from renamed import declared, other_names, renamed
from spec_texts import GEMM

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.toml"))
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))


def operators(path: Path) -> list[OpProgram]:
    return [p for p in loading.load_programs(read_file(path), OPTIONS) if isinstance(p, OpProgram)]


def tokens(*clauses: Node) -> str:
    return structure(OpProgram("P", clauses)).tokens


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_names_are_no_part_of_it(path: Path) -> None:
    for found in operators(path):
        other, before = renamed(found), structure(found)
        assert other is not found
        assert structure(other).tokens == before.tokens
        assert [other_names(found)[n] for n in before.names] == list(structure(other).names)
        assert set(before.names) == set(declared(found))
        assert spelling(other) != spelling(found)
        assert with_names(found, structure(other).names).without(*NO_PART).replace(name="Other") is other.without(*NO_PART)


def test_samples_differ() -> None:
    # These are the same but for their names, or where the test cases differ.
    found = [(structure(p).tokens, p.name) for path in SAMPLES for p in operators(path)]
    same = {n: {m for text, m in found if text == own} for own, n in found}
    assert {tuple(sorted(names)) for names in same.values() if len(names) > 1} == set()


def test_places_and_words_are_no_part_of_it() -> None:
    def of(text: str) -> OpProgram:
        found, = loading.load_programs(SpecText("gemm.toml", text, "toml"), OPTIONS)
        assert isinstance(found, OpProgram)
        return found
    written = of(GEMM)
    said = of("# a comment\n\n" + GEMM.replace("<- A @ B", "is A times B") + '[test]\ncode = "lambda A, B, C: C + A @ B"\n')
    assert said is not written
    assert structure(said) == structure(written)
    assert spelling(said) != spelling(written)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("sample", ["softmax", "gemm", "histogram"])
def test_no_code_comes_of_what_is_no_part_of_it(sample: str) -> None:
    found, = operators(SAMPLES[0].with_name(f"{sample}.toml"))
    bare = found.without(*NO_PART)
    assert len(bare.clauses) < len(found.clauses)
    whole, without = [driver.advance(p, "loop", OPTIONS) for p in (found, bare)]
    assert [c for c in whole.clauses if not isinstance(c, (*NO_PART, Check))] == [c for c in without.clauses if not isinstance(c, Check)]


def test_nothing_else_is_no_part_of_it() -> None:
    assert {c.__name__ for c in NO_PART} == {"Doc", "Source", "Signature", "AnyAxes", "At", "Attribute", "Reference", "Tolerance", "GradientBody", "GradientSteps", "Case"}


# -- every field ----------------------------------------------------------------------------------------------------------------------------

def classes() -> list[type[Node]]:
    """All that an op program may hold."""
    found = [c for module in (expr, program, statements, op, values) for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Node)]
    outside = (expr.Hole, Setting, OpProgram, statements.LoopProgram, statements.Kernel, values.TensorProgram, values.FusedKernel, values.Pass, values.Along)
    return [c for c in dict.fromkeys(found) if c._fields and c not in outside and c not in NO_PART and not c.__subclasses__()]


VALUES: dict[str, tuple[Any, Any]] = {          # annotation -> a value and another
    "str": ("f32", "f64"), "Text": ("f32", "f64"), "int": (1, 2), "bool": (False, True),
    "Expr": (index(3), index(4)), "Expr | None": (None, expr.TRUE), "Ref": (Aref("A", ()), Aref("A", (index(0),))),
    "Address": (statements.Address("A", "read"), statements.Address("A", "write")),
    "Vref": (statements.Vref("A", 4, ()), statements.Vref("A", 8, ())), "Machine": (Machine("a", 8, 8, ()), Machine("b", 8, 8, ())),
    "tuple[Expr, ...]": ((index(3),), (index(3), index(3))), "tuple[int, ...]": ((0, 1), (1, 0)), "tuple[str, ...]": (("a", "b"), ("b", "a")),
    "tuple[tuple[str, str], ...]": ((("a", "b"),), (("b", "a"),)),
    "tuple[Stmt, ...]": ((Fail(1),), (Fail(1), Fail(1))), "tuple[Any, ...]": (("split", ("i",)), ("split", "i")),
    "Value": (values.Compute("i64", (), index(3)), values.Compute("i64", (), index(4))),
    "tuple[Axis, ...]": ((values.Axis("i", index(3)),), (values.Axis("i", index(4)),)), "tuple[Out, ...]": ((values.Out("c", "f32", ()),), ()),
    "tuple[From, ...]": ((statements.From("X", (index(1),)),), ()),
    "OpProgram": (OpProgram("A", ()), OpProgram("B", ())), "tuple[Config, ...]": ((program.Config("a", "1"),), ()),
}


def instance(cls: type[Node], **changes: Any) -> Node:
    values = {f: VALUES[cls._types[f]][0] for f in cls._fields if cls._types[f] in VALUES}
    values |= {"value": 1, "type": "i64"} if cls is Const else {"fn": "abs", "args": (index(3),)} if cls is Op else {}
    return cls(**values | changes)


@pytest.mark.parametrize("cls", classes(), ids=lambda c: c.__name__)
def test_every_field_is_a_part_of_it(cls: type[Node]) -> None:
    for field in cls._fields:
        if field in NAMES.get(cls, ()):
            continue
        kind = cls._types[field]
        other = {"value": 1.0} if cls is Const and field == "value" else {field: VALUES[kind][1]} if field != "fn" else {"fn": "neg"}
        assert tokens(instance(cls)) != tokens(instance(cls, **other)), f"{cls.__name__}.{field}"


@pytest.mark.parametrize("cls", NAMES, ids=lambda c: c.__name__)
def test_of_names_it_is_a_part_which_are_the_same(cls: type[Node]) -> None:
    def with_name(name: str) -> str:
        node = instance(cls, **{field: (name,) if cls._types[field].startswith("tuple") else name for field in NAMES[cls]})
        return tokens(Size("a"), Size("b"), node)
    assert len({with_name(name) for name in "abc"}) == 3
    assert with_name("c") == with_name("d")


def test_the_classes_are_found() -> None:
    found = {c.__name__ for c in classes()}
    assert {"Size", "Buffer", "Opt", "Target", "Machine", "Config", "Var", "Const", "Op", "Cast", "Bitcast", "For", "If", "Let", "Setf", "Incf", "Local",
            "Aref", "Vref", "Body", "Schedule", "Bind", "Unchecked", "InOrder", "Lines"} <= found | {"Unchecked", "InOrder", "Lines"}


@pytest.mark.parametrize("pair", [
    (Const(0, "f32"), Const(0.0, "f32")), (Const(0.0, "f32"), Const(-0.0, "f32")), (Const(1, "i64"), Const(True, "i64")), (Const(1, "i64"), Const(1, "i32")),
    (Op("sub", (Var("a", "i64"), Var("b", "i64"))), Op("sub", (Var("a", "i64"), Var("a", "i64")))),
    (program.Unchecked(), program.InOrder()), (program.Config("a", "1:2"), program.Config("a:1", "2")), (Bind("M", 1), Bind("M", 11)),
    (Body((Fail(1), Fail(2))), Body((Fail(2), Fail(1)))),
], ids=str)
def test_near_misses(pair: tuple[Node, Node]) -> None:
    assert tokens(pair[0]) != tokens(pair[1])


def test_clauses_are_not_run_into_each_other() -> None:
    assert tokens(Body((Fail(1),)), Body((Fail(2),))) != tokens(Body((Fail(1), Fail(2))))
    assert tokens(program.Schedule((("a", "b"), ("c",)))) != tokens(program.Schedule((("a",), ("b", "c"))))
    assert tokens(program.Outputs(("a", "b")), Size("a")) != tokens(program.Outputs(("a", "b")), Size("b"))


def test_shared_parts_are_written_once() -> None:
    value: expr.Expr = Var("a", "i64")
    for _ in range(2000):                    # written out, this would be 2^2000 nodes, and deeper than Python's stack
        value = Op("add", (value, value))
    assert len(tokens(Body((statements.Let("x", "i64", value),)))) < 200_000
