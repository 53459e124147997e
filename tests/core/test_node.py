"""Interning: equal nodes are one object, and values that Python calls equal are not equal nodes."""
import gc
import os
import subprocess
import sys
import weakref
from itertools import combinations

import pytest

from caten.core.expr import Cast, Const, Op, Var, index, number
from caten.core.node import Node, contains, idempotent_for, kept, kept_for, substitute
from caten.core.program import Schedule
from caten.loop.statements import Aref, For, If, Setf, dotimes

i, j = Var("i", "i64"), Var("j", "i64")


def store(*at):
    return Setf(Aref("A", at, "f32"), Const(1.0, "f32"))


def test_equal_nodes_are_the_same_object():
    assert i + 1 is i + 1
    assert store(i, j) is store(i, j)
    assert i + 1 is not i + 2


ZEROS = [Const(0, "i64"), Const(0.0, "f32"), Const(False, "bool"), Const(-0.0, "f32"), Const(0, "i32"), Const(0.0, "f64"), Const(float("nan"), "f32")]


@pytest.mark.parametrize(("a", "b"), list(combinations(ZEROS, 2)))
def test_zeros_of_every_kind_are_different_nodes(a, b):
    assert a is not b


def test_nan_is_interned_although_it_does_not_equal_itself():
    assert Const(float("nan"), "f32") is Const(float("nan"), "f32")


def test_keywords_and_defaults_give_the_same_object():
    assert Const(value=3) is Const(3, "i64")
    assert If(i < j, (store(i),)) is If(cond=i < j, then=(store(i),), otherwise=())


@pytest.mark.parametrize("wrong", [lambda: Var(), lambda: Var("a", "i64", 3), lambda: Var("a", kind="i64")])
def test_wrong_fields_are_refused(wrong):
    with pytest.raises(TypeError, match="Var"):
        wrong()


def test_nodes_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        i.name = "k"


def test_unused_nodes_are_forgotten():
    from caten.core.node import _POOL
    name = "a_name_that_no_other_test_uses"
    Var(name, "i64")
    gc.collect()
    assert not [key for key in list(_POOL) if name in key]


def test_map_keeps_identity_when_nothing_changes():
    loop = dotimes("i", j, store(i))
    assert loop.map(lambda n: n) is loop


def test_map_splices_a_tuple_into_the_list_a_statement_stood_in():
    loop = dotimes("i", j, store(i), store(j))
    doubled = loop.map(lambda n: (n, n) if n is store(i) else n)
    assert doubled.body == (store(i), store(i), store(j))
    assert loop.map(lambda n: () if isinstance(n, Setf) else n).body == ()


def test_walk_repeats_shared_nodes_and_unique_does_not():
    x = i + j
    both = x * x
    assert [n for n in both.walk() if n is x] == [x, x]
    assert list(both.unique()) == [both, x, i, j]


def test_replace_changes_the_named_fields_alone():
    loop = dotimes("i", j, store(i))
    assert loop.replace(mark="unroll") is For("i", index(0), j, index(1), "unroll", (store(i),))


def test_substitute_reaches_everything_and_splices_statements():
    assert substitute(dotimes("i", j, store(i)), {j: index(4)}) is dotimes("i", index(4), store(i))
    assert substitute((store(i), store(j)), {store(i): (store(j), store(j))}) == (store(j), store(j), store(j))


def test_contains():
    assert contains(i * 2 + j, j)
    assert not contains(i * 2, j)


@pytest.mark.parametrize(("value", "dtype", "shown"), [(1, "f32", "1.0"), (2.0, "i64", "2"), (1, "bool", "true"), (1, "u8", "1:u8")])
def test_number_converts_to_the_type(value, dtype, shown):
    assert repr(number(value, dtype)) == shown


def test_types_of_operators():
    x, c = Var("x", "f64"), Var("c", "bool")
    assert Op("lt", (x, x)).dtype == "bool"
    assert Op("where", (c, x, x)).dtype == "f64"
    assert Op("abs", (Var("z", "c64"),)).dtype == "f32"
    assert Cast("i32", x).dtype == "i32"


def test_what_is_kept_is_found_once_for_a_node() -> None:
    asked: list[Node] = []

    @kept
    def size(node: Node) -> int:
        asked.append(node)
        return len(node.children)

    whole = index(3) + Var("kept_once", "i64")
    assert [size(whole), size(whole), size(index(3))] == [2, 2, 0]
    assert asked == [whole, index(3)]


def test_a_node_that_is_its_own_answer_is_not_held_by_it() -> None:
    @kept
    def same(node: Node) -> Node:
        return node

    node = Var("is_its_own_answer", "i64")
    gone = weakref.ref(node)
    assert same(node) is node is same(node)
    gc.disable()
    try:
        del node
        assert gone() is None
    finally:
        gc.enable()


def test_a_change_to_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(TypeError, match="Var has no field nome"):
        Var("x", "i64").replace(nome="y")


def test_a_statement_that_is_its_own_answer_alone_is_not_held_by_it() -> None:
    @kept
    def flattened(node):
        return (node,)
    node = Cast("f64", Var("the_only_statement", "f32"))
    assert flattened(node) == flattened(node) == (node,)
    held = weakref.ref(node)
    gc.disable()
    try:
        del node
        assert held() is None
    finally:
        gc.enable()


def test_what_is_kept_for_an_owner_is_computed_anew_for_another() -> None:
    owners, asked = [object(), object()], []

    @kept_for(lambda: owners[0])
    def spelled(node):
        asked.append(node)
        return str(node)
    assert spelled(i) == spelled(i) == "i"
    assert len(asked) == 1
    owners.reverse()
    assert spelled(i) == "i"
    assert len(asked) == 2


def test_the_result_of_an_idempotent_function_is_not_computed_again() -> None:
    owners, asked = [object(), object()], []

    @idempotent_for(lambda: owners[0])
    def more(node):
        asked.append(node)
        return node + 1
    once = more(Var("rising", "i64"))
    assert more(once) is once
    assert len(asked) == 1
    owners.reverse()
    assert more(once) is not once


def test_types_and_lanes_of_deep_expressions_need_no_recursion() -> None:
    total = Var("x", "f32")
    for _ in range(5000):
        total = Op("add", (total, Const(1.0, "f32")))
    assert (total.dtype, total.lanes, total.depth, total.written_out) == ("f32", 1, 5001, 10001)
    assert total.variables == {"x"}


STEPS = [Schedule(()), Schedule((("split", "i", "4"),)), Schedule((("split", "i", "8"),)), Schedule((("split", ("i", "4")),))]
CHOICES = [If(i < j, (store(i), store(j))), If(i < j, (store(i),), (store(j),)), If(i < j, (store(j), store(i)))]


@pytest.mark.parametrize("nodes", [ZEROS, STEPS, CHOICES, [i, Var("i", "i32"), Op("add", (i, j)), Op("mul", (i, j))]])
def test_different_nodes_have_different_digests(nodes):
    """Constants, words of steps, types that the text does not show, and which list a node stands in are told apart."""
    assert len({node.digest for node in nodes}) == len(nodes)


def test_a_digest_is_the_same_in_every_process_and_looks_at_shared_parts_once():
    doubled = Var("x", "i64")
    for _ in range(200):
        doubled = Op("add", (doubled, doubled))
    code = ("from caten.core.expr import Op, Var\nx = Var('x', 'i64')\n"
            "for _ in range(200):\n    x = Op('add', (x, x))\nprint(x.digest)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert done.stdout.strip() == doubled.digest


def test_an_outline_is_a_digest_without_numbers() -> None:
    """The steps of a recurrence read at other numbers, and have their operands in the same order."""
    one, two = [Op("add", (Var("i", "i64"), Const(n, "i64"))) for n in (1, 2)]
    assert one.outline == two.outline != Op("mul", one.args).outline
    assert one.digest != two.digest
