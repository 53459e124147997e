"""Pieces inside of pieces are one, and mean the same."""
from __future__ import annotations

import random

import pytest

from caten import driver, loading
from caten.core.expr import Const, Expr, Op, Var, index
from caten.core.node import substitute
from caten.core.text import read, show
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.nested_pieces import without_nested_pieces
from caten.tensor.values import Axis, Compute, Pieces

ROW, COLUMN = Var("i", "i64"), Var("j", "i64")
NUMBERS = [Const(float(k), "f32") for k in range(4)]


def simplified(text: str) -> str:
    value = Compute("f32", (Axis("i", index(9)), Axis("j", index(9))), read(text)[0])
    return " ".join(show(without_nested_pieces(value).expr, 1 << 20).split())


@pytest.mark.parametrize(("nested", "one"), [
    ("(pieces i ((pieces i (1.0 2.0) 1) 3.0) 2)", "(pieces i (1.0 2.0 3.0) 1 2)"),
    ("(pieces i (1.0 (pieces i (2.0 3.0) 1)) 2)", "(pieces i (1.0 3.0) 2)"),
    ("(pieces i ((pieces i (1.0 2.0) 4) 3.0) 2)", "(pieces i (1.0 3.0) 2)"),
    ("(pieces i ((pieces i (1.0 2.0) 1) 2.0) 2)", "(pieces i (1.0 2.0) 1)"),
    ("(pieces i ((pieces j ((pieces i (1.0 2.0) 5) 3.0) 1) 2.0) 2)", "(pieces i ((pieces j (1.0 3.0) 1) 2.0) 2)"),
    ("(pieces i ((+ 1.0 (pieces i (1.0 2.0) 3)) 2.0) 2)", "(pieces i ((+ 1.0 1.0) 2.0) 2)"),
    ("(pieces 3 (1.0 2.0 3.0) 2 4)", "2.0"),
    ("(pieces (- (+ 4 1) 2) (1.0 2.0 3.0) 2 4)", "2.0"),
    ("(pieces (+ i 1) (1.0 2.0) 2)", "(pieces (+ i 1) (1.0 2.0) 2)"),
    ("(pieces i ((pieces i (1.0 2.0) N) 3.0) 2)", "(pieces i ((pieces i (1.0 2.0) N) 3.0) 2)"),        # is N below 2?
    ("(pieces i (1.0 2.0) N)", "(pieces i (1.0 2.0) N)"),
])
def test_what_an_outer_piece_decides(nested: str, one: str) -> None:
    assert simplified(nested) == one


def drawn(rng: random.Random, depth: int) -> Expr:
    kind = rng.random()
    if depth == 0 or kind < 0.1:
        return rng.choice(NUMBERS)
    if kind < 0.25:
        return Op("add", (drawn(rng, depth - 1), drawn(rng, depth - 1)))
    bounds = sorted(rng.sample(range(8), rng.randint(1, 3)))
    at = rng.choice((ROW, ROW, COLUMN, index(rng.randrange(8))))
    return Pieces(at, tuple([drawn(rng, depth - 1) for _ in range(len(bounds) + 1)]), tuple([index(b) for b in bounds]))


def valued(e: Expr) -> float:
    """The value of an expression of numbers."""
    match e:
        case Const(value=number):
            return float(number)
        case Pieces(at=Const(value=at), arms=arms, bounds=bounds):
            return valued(arms[sum(at >= b.value for b in bounds)])       # type: ignore[attr-defined]
        case Op("add", (x, y)):
            return valued(x) + valued(y)
    raise TypeError(e)


@pytest.mark.slow
def test_the_meaning_stays(nightly: bool) -> None:
    rng, less = random.Random(1), 0
    count = 300 if nightly else 100
    for _ in range(count):
        expr = drawn(rng, 4)
        made = without_nested_pieces(Compute("f32", (Axis("i", index(8)), Axis("j", index(8))), expr))
        assert isinstance(made, Compute)
        less += len(str(made.expr)) < len(str(expr))
        for n in made.expr.unique():
            if isinstance(n, Pieces):
                assert all(a.value < b.value for a, b in zip(n.bounds, n.bounds[1:], strict=False)), n    # type: ignore[attr-defined]
                assert not any(isinstance(arm, Pieces) and arm.at is n.at for arm in n.arms), n
        for i in range(8):
            for j in range(8):
                given = {ROW: index(i), COLUMN: index(j)}
                assert valued(substitute(made.expr, given)) == valued(substitute(expr, given))
    assert less > count // 3


@pytest.mark.parametrize("count", [16, 160])
def test_a_statement_for_each_element(count: int) -> None:
    """The formula is as long as the body."""
    body = "\n".join([f"Y[{k // 16}, {k % 16}] = X[{k // 16}, {k % 16}] + {k}.0" for k in range(count)])
    text = (f'[composite]\nname = "t"\ninputs = ["X{{float}}[10 16]"]\noutputs = ["Y{{float}}[10 16]"]\n'
            f'[implementation]\nlang = "python"\ncode = """\nY[:] = 0\n{body}\n"""\n')
    (op,) = loading.load_programs(SpecText("t", text, "toml"), Options())
    assert len(show(driver.advance(op, "tensor", Options()), 1 << 20)) < 100 * count + 1000
