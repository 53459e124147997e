"""The matcher and the rewriter: bindings, tests on holes, order, sharing, and an end."""
import pytest

from caten.core.expr import Const, Op, Var, index
from caten.core.rewrite import Rules, fill, holes, match, rewrite
from caten.errors import CatenError


def is_const(node: object) -> bool:
    return isinstance(node, Const)


x, y = holes("x y")
c, = holes("c", is_const)
a, b = Var("a", "i64"), Var("b", "i64")


def test_holes_bind_what_stands_in_their_place():
    assert match(x + y, a + 1, {}) == {"x": a, "y": index(1)}
    assert match(x + y, a * 1, {}) is None


def test_a_hole_that_occurs_twice_binds_one_thing():
    assert match(x - x, a - a, {}) == {"x": a}
    assert match(x - x, a - b, {}) is None


def test_a_test_restricts_a_hole():
    assert match(x + c, a + 1, {}) == {"x": a, "c": index(1)}
    assert match(x + c, a + b, {}) is None


def test_constants_match_by_type_as_well():
    assert match(x + Const(0, "i64"), a + 0, {}) is not None
    assert match(x + Const(0.0, "f32"), a + 0, {}) is None


def test_matching_leaves_the_environment_alone():
    env = {"x": a}
    assert match(x + y, a + b, env) == {"x": a, "y": b}
    assert env == {"x": a}


def test_fill_is_the_inverse_of_match():
    pattern = (x + y) * x
    node = (a + b) * a
    assert fill(pattern, match(pattern, node, {})) is node


SIMPLIFY = Rules(
    (x + 0, x),                                                                   # x + 0 = x
    (x * 1, x),                                                                   # x * 1 = x
    (x - x, index(0)),                                                            # x - x = 0
    (Op("mul", (c, x)), lambda c, x: None if is_const(x) else x * c),             # constants to the right
)


def test_rewrite_reaches_a_fixed_point_bottom_up():
    assert rewrite(((a * 1 + 0) - a) + b, SIMPLIFY) is index(0) + b
    assert rewrite(index(2) * a, SIMPLIFY) is a * 2


def test_the_first_rule_that_fires_wins_and_a_declining_one_does_not():
    rules = Rules((x + y, lambda x, y: None), (x + y, x), (x + y, y))
    assert rewrite(a + b, rules) is a
    assert Rules((x + y, x)).step(a * b) is None


def test_rule_sets_compose():
    more = SIMPLIFY + Rules((Op("neg", (Op("neg", (x,)),)), x))                   # --x = x
    assert len(more) == len(SIMPLIFY) + 1
    assert rewrite(Op("neg", (Op("neg", (a + 0,)),)), more) is a


def test_shared_parts_are_rewritten_once():
    calls = []
    rules = Rules((x + 0, lambda x: calls.append(x) or x))
    node = a + 0
    for _ in range(20):
        node = node * node
    rewrite(node, rules)
    assert calls == [a]


def test_a_tuple_of_nodes_is_rewritten_element_by_element():
    assert rewrite((a + 0, b * 1), SIMPLIFY) == (a, b)


def test_rules_that_undo_each_other_are_stopped(monkeypatch):
    monkeypatch.setattr("caten.core.rewrite.MAX_STEPS", 50)
    with pytest.raises(CatenError, match="E490: rewriting did not end after 50 steps"):
        rewrite(a + b, Rules((x + y, y + x)))


def test_the_variables_that_a_node_reads():
    assert (a + b * a).variables == {"a", "b"}
