"""The net of contexts: what random assumptions are said to show holds wherever they do, for sizes, indices and elements of arrays of any value."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from caten.core.dtypes import DTYPES
from caten.core.expr import Cast, Const, Expr, Op, Var, index
from caten.loop import simplify as simplifier
from caten.loop.affine import Linear, canonical
from caten.loop.context import Context
from caten.loop.statements import Aref, For
from caten.loop.value_ranges import GREATEST_BYTES, GREATEST_SIZE, Valuation
from caten.mathematics.evaluate import apply, cast, numpy_type

SEEN: Counter[str] = Counter()
N, M, INDEX = Var("N", "i64"), Var("M", "i64"), Var("i", "i64")
ELEMENTS = {dtype: Aref(f"k{dtype}", (), dtype) for dtype in ("i8", "u8", "i32", "u32", "i64")}
SIZES = (0, 1, 2, 3, 5, 8, 9, 33, 1 << 20, GREATEST_SIZE)
INDICES = (-3, -1, 0, 1, 2, 3, 4, 5, 7, 8, 15, (1 << 20) - 1, 1 << 20)
# As elements of smaller types, these are their least and greatest ones, too.
ANY = (-(1 << 63), -(1 << 62), -(1 << 31), -(1 << 7), -100, -3, -1, 0, 1, 2, 3, 5, 8, 100, 127, 1000, (1 << 31) - 1, 1 << 31, 1 << 62, (1 << 63) - 1)
GRID = [a.ravel() for a in np.meshgrid(*[np.array(v, dtype="int64") for v in (SIZES, SIZES, INDICES, ANY)], indexing="ij")]
POINTS: dict[Expr, Any] = {N: GRID[0], M: GRID[1], INDEX: GRID[2], **{k: GRID[3].astype(numpy_type(dtype)) for dtype, k in ELEMENTS.items()}}
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")


class Draw:
    """Random expressions over sizes, an index and elements, with their values at all points."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values: dict[Expr, Any] = dict(POINTS)
        terms = [self.term(2) for _ in range(4)]
        self.terms = [*terms, *[e for t in terms for e in t.unique() if isinstance(e, Op) and e.dtype == "i64"]]

    def value(self, expr: Any) -> Any:
        if expr not in self.values:
            match expr:
                case Const(value=value):
                    self.values[expr] = np.full(len(GRID[0]), value, dtype=numpy_type(expr.type))
                case Cast(dtype, arg):
                    self.values[expr] = cast(self.value(arg), arg.dtype, dtype)
                case _:
                    self.values[expr] = apply(expr.fn, [self.value(a) for a in expr.args], expr.args[-1].dtype)
        return self.values[expr]

    def term(self, depth: int, dtype: str = "i64") -> Expr:
        if depth == 0 or self.rng.random() < 0.2:
            return self.leaf(dtype)
        fn = self.rng.choice(("add", "sub", "mul", "min", "max", "floordiv", "mod", "truncdiv", "truncmod", "and", "shl", "shr", "abs", "neg",
                              "relu", "clip", "where", "small", "small", "by", "by", "by"))
        SEEN[fn] += 1
        a = self.term(depth - 1, dtype)
        match fn:
            case "small":
                other = self.rng.choice([d for d in ELEMENTS if d != dtype])
                return Cast(dtype, self.term(depth - 1, other))
            case "abs" | "neg" | "relu":
                return Op(fn, (a,))
            case "clip":
                return Op(fn, (a, self.number(dtype), self.number(dtype)))
            case "where":
                return Op(fn, (Op(self.rng.choice(COMPARISONS), (a, self.leaf(dtype))), self.leaf(dtype), a))
            case "by":
                return Op(self.rng.choice(("mul", "floordiv", "mod", "min", "max", "and", "truncdiv")), (a, self.number(dtype)))
            case "shl" | "shr":
                return Op(fn, (a, Const(self.rng.choice((1, 3, DTYPES[dtype].bits - 1)), dtype)))
        return Op(fn, (a, self.term(depth - 1, dtype)))

    def leaf(self, dtype: str) -> Expr:
        if dtype != "i64":
            return self.rng.choice((ELEMENTS[dtype], ELEMENTS[dtype], self.number(dtype), Cast(dtype, self.leaf("i64"))))
        return self.rng.choice((N, M, INDEX, INDEX, ELEMENTS[dtype], self.number(dtype)))

    def number(self, dtype: str) -> Const:
        row = DTYPES[dtype]
        return Const(self.rng.choice((0, 1, 2, 3, 7, 8, 100, row.greatest, *(() if row.kind == "uint" else (-1, -2, row.least)))), dtype)

    def comparison(self) -> Expr:
        """Of a term with another one, with a part of it, or with a number or size."""
        a = self.rng.choice(self.terms) if self.rng.random() < 0.7 else self.term(1)
        parts = [e for e in a.unique() if isinstance(e, Expr) and e.dtype == "i64"]
        b = self.rng.choice((self.rng.choice(self.terms), self.rng.choice(parts), self.number("i64"), N, self.term(1)))
        return Op(self.rng.choice(COMPARISONS), (a, b) if self.rng.random() < 0.5 else (b, a))

    def condition(self) -> Expr:
        return self.comparison() if self.rng.random() < 0.7 else Op(self.rng.choice(("and", "or")), (self.comparison(), self.comparison()))


def assumptions(draw: Draw) -> tuple[Context, Any, list[str]]:
    """A context, the points at which its assumptions hold, and these as text."""
    rng, told = draw.rng, list[str]()
    known = Context({"N": (0, GREATEST_SIZE), "M": (0, GREATEST_SIZE)})
    holds = np.full(len(GRID[0]), True)

    def given(count: int) -> None:
        nonlocal known, holds
        for _ in range(count):
            cond = draw.condition()
            value = draw.value(cond)
            truth = bool(value[rng.choice(np.flatnonzero(holds))]) if holds.any() else True
            known, holds = known.given(cond, truth), holds & (value == truth)
            told.append(f"{cond!r} is {truth}")

    if rng.random() < 0.5:
        shape = rng.choice(((N, M), (N, N, M), (N, M, M), (N + 1, M), (2 * N, M)))
        known, count = known.holding_array("f32", shape), np.full(len(holds), 4.0)
        for extent in shape:
            count = count * draw.value(extent)
        holds &= count <= GREATEST_BYTES
        told.append(f"an array of {shape!r}")
    given(rng.randint(0, 2))
    if rng.random() < 0.6:
        outside = [N, M, index(0), index(1), index(8), *[t for t in draw.terms if INDEX not in t.unique()]]
        lo, hi, step = rng.choice((index(0), index(1), rng.choice(outside))), rng.choice(outside), index(rng.choice((1, 1, 2, 3, -1)))
        known = known.inside(For("i", lo, hi, step, "serial", ()))
        first, end, i = draw.value(lo), draw.value(hi), draw.value(INDEX)
        holds &= ((first <= i) & (i < end) if step.value > 0 else (end < i) & (i <= first)) & ((i - first) % abs(step.value) == 0)
        told.append(f"in a loop from {lo!r} to {hi!r} by {step!r}")
    given(rng.randint(0, 2))
    return known, holds, told


def faults(seed: int) -> Iterator[str]:
    """What is said to hold, or to be the same, and is not."""
    draw = Draw(seed)
    known, holds, told = assumptions(draw)
    if not holds.any():
        return
    SEEN["contexts"] += 1

    def fault(what: str, wrong: Any) -> Iterator[str]:
        for n in np.flatnonzero(wrong & holds)[:1]:
            yield f"seed {seed}: {told}: {what}, but not at {({repr(a): int(v[n]) for a, v in POINTS.items()})}"

    if known.unreachable:
        yield from fault("nothing", holds)
    for cond in [draw.comparison() for _ in range(12)]:
        value = draw.value(cond)
        for shown, what, wrong in ((known.proves(cond), "holds", ~value), (known.refutes(cond), "fails", value)):
            if shown:
                SEEN[f"{what}, as always" if not wrong.any() else what] += 1
                yield from fault(f"{cond!r} {what}", wrong)
    for expr in (*draw.terms[:3], draw.condition()):
        for how, same in (("simplified", simplifier.simplify(expr, known)), ("in canonical form", canonical(expr))):
            if same is not expr:
                SEEN[how] += 1
                yield from fault(f"{expr!r} is {how} {same!r}", draw.value(same) != draw.value(expr))


def found(seeds: range) -> list[str]:
    with np.errstate(all="ignore"):
        return [text for seed in seeds for text in faults(seed)]


@pytest.mark.slow
def test_what_is_shown_holds(nightly: bool) -> None:
    SEEN.clear()
    wrong = found(range(10_000 if nightly else 80))
    assert not wrong, "\n".join(wrong[:5])
    print(dict(SEEN))
    assert min(SEEN[what] for what in ("holds", "fails", "simplified", "in canonical form", "contexts")) > 10


def wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums and products are taken for what they would be without wrapping."""
    monkeypatch.setattr(Valuation, "_fitting", lambda self, form, expr: form)


def rounds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of a form is taken for narrower by one."""
    true_interval: Callable[[Valuation, Linear], tuple[int, int]] = Valuation.interval
    monkeypatch.setattr(Valuation, "interval", lambda self, form: (true_interval(self, form)[0], max(true_interval(self, form)[1] - 1, true_interval(self, form)[0])))


@pytest.mark.slow
@pytest.mark.parametrize("plant", [wraps, rounds_up])
def test_the_net_catches_planted_faults(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(found(range(seed, seed + 1)) for seed in range(60))
