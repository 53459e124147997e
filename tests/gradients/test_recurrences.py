"""Linear recurrences as loop nests: they are recognised whatever their names, and nothing else is."""
from __future__ import annotations

from itertools import product

import pytest

from caten.core.expr import Var
from caten.core.node import substitute
from caten.core.unique_names import Names
from caten.gradients.recurrences import Recurrence, recurrence_of
from caten.loop.statements import Aref, If, Setf
from caten.tensor.values import Nest

SHAPE = Var("M", "i64"), Var("N", "i64"), Var("K", "i64")
FORMS = [Recurrence("a", "b", "f32", SHAPE[:rank], along, direction, is_shifted) for rank in (1, 2, 3)
         for along, direction, is_shifted in product(range(rank), ("up", "down"), (False, True))]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f"{len(f.shape)}-{f.along}-{f.direction}-{f.is_shifted}")
def test_every_recurrence_is_recognised(form: Recurrence) -> None:
    for is_guarded in (False, True):
        nest = form.nest(Names({"h", "i_2", "j"}).fresh, is_guarded)
        assert isinstance(nest.stmts[0], If) == (is_guarded and form.along == 0)
        assert recurrence_of(nest) == form
    one = form.__class__("a", "a", *[getattr(form, name) for name in ("type", "shape", "along", "direction", "is_shifted")])
    assert recurrence_of(one.nest(Names().fresh, True)) == one


def test_the_order_of_operands_does_not_matter() -> None:
    form = FORMS[4]
    nest = form.nest(Names().fresh, False)
    _, step = [n for s in nest.stmts for n in s.walk() if isinstance(n, Setf)]
    total = step.value
    turned = total.replace(args=total.args[::-1])              # type: ignore[attr-defined]
    assert recurrence_of(substitute(nest, {total: turned})) == form


def test_other_nests_are_no_recurrences() -> None:
    nest = FORMS[0].nest(Names().fresh, False)
    begun, step = [n for s in nest.stmts for n in s.walk() if isinstance(n, Setf)]
    for old, new in ((step.value, step.value * step.value), (begun.value, begun.value + begun.value),
                     (begun.ref, Aref("h", (SHAPE[0] - 1,), "f32"))):
        other = substitute(nest, {old: new})
        assert isinstance(other, Nest)
        assert recurrence_of(other) is None
    assert recurrence_of(nest.replace(outs=nest.outs * 2)) is None
