"""Second derivatives of operators whose gradients are no formulas of single elements, against differences in float64."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from daten import Tensor, gradcheck, gradients
from daten.array_api import concat
from daten.tensor import apply

POINTS = 20                                      # at most as many elements as this: differences are taken at each


def check(function: Callable[..., Tensor], inputs: Sequence[np.ndarray], order: int = 2) -> None:
    """Compare all derivatives up to an order, of all inputs by all inputs, with differences of those before."""
    assert sum(x.size for x in inputs) <= POINTS
    draw = np.random.default_rng(1)

    def derived(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
        weights = draw.uniform(0.5, 1.5, f(*[Tensor(x) for x in inputs]).shape)
        return lambda *xs: concat([g.reshape(-1) for g in gradients(f(*xs), list(xs), Tensor(weights))])
    for _ in range(order):
        assert gradcheck(function, inputs) < 1e-6
        function = derived(function)


def factors(shape: tuple[int, ...], *zeros: tuple[int, ...]) -> np.ndarray:
    draw = np.random.default_rng(len(shape))
    made = draw.uniform(0.5, 1.5, shape) * draw.choice([-1.0, 1.0], shape)
    for at in zeros:
        made[at] = 0.0
    return made


PRODUCTS: dict[str, tuple[np.ndarray, Any]] = {
    "a vector": (factors((7,)), 0), "one zero": (factors((7,), (3,)), 0), "two zeros": (factors((7,), (2,), (5,)), 0),
    "zeros at both ends": (factors((7,), (0,), (6,)), 0), "three zeros": (factors((7,), (0,), (3,), (6,)), 0),
    "rows": (factors((3, 5), (0, 1), (1, 1), (1, 3), (2, 0), (2, 2), (2, 4)), 1),
    "columns": (factors((5, 3), (1, 0), (1, 1), (3, 1)), 0),
    "the middle axis": (factors((2, 4, 2), (0, 1, 0), (1, 0, 1), (1, 3, 1)), 1),
    "one element": (factors((1, 3)), 0)}
BY_DAY = ("two zeros", "rows", "the middle axis")


@pytest.mark.slice(8)
@pytest.mark.parametrize("name", ["prod", "nanprod", "cumprod", "nancumprod"])
@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c in BY_DAY else pytest.mark.nightly) for c in PRODUCTS])
def test_products(name: str, case: str) -> None:
    x, axis = PRODUCTS[case]
    check(lambda t: apply(name, t, axis=axis), [x])


@pytest.mark.nightly
@pytest.mark.parametrize("axis", [None, (0, 2), (-1, 0)])
def test_products_over_several_axes(axis: Any) -> None:
    check(lambda t: t.prod(axis=axis), [factors((2, 3, 3), (0, 0, 0), (0, 1, 1), (1, 1, 2))])


@pytest.mark.parametrize("zeros", [(), (1,), (1, 3), (0, 2, 4)])
def test_derivatives_of_a_product_of_every_order_are_products_of_the_others(zeros: tuple[int, ...]) -> None:
    """The n-th derivative by n different factors is the product of the others; by one factor twice it is 0."""
    x = factors((5,), *[(n,) for n in zeros])
    given = Tensor(x)
    for running in (False, True):
        y = given.cumprod(axis=0)[-1] if running else given.prod()
        for taken in ((1, 3), (0, 2, 4), (1, 1)):
            found = y
            for n in taken:
                (found,) = (g[n] for g in gradients(found, [given]))
            others = 0.0 if len(set(taken)) < len(taken) else np.prod(np.delete(x, taken))
            np.testing.assert_allclose(found.item(), others, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (3, 1)])
def test_products_of_few_elements(shape: tuple[int, ...]) -> None:
    x = Tensor(np.ones(shape))
    (first,) = gradients(x.cumprod(axis=-1).sum(), [x])
    (second,) = gradients((first * first).sum(), [x])
    assert first.tolist() == np.ones(shape).tolist()
    assert second.tolist() == np.zeros(shape).tolist()


def test_products_of_shorter_floats() -> None:
    """They are computed in float32."""
    for dtype in ("float16", "bfloat16"):
        x = Tensor(np.array([2.0, 0.0, 3.0, 0.0, 5.0])).astype(dtype)
        (first,) = gradients(x.cumprod(axis=0).sum(), [x])
        (second,) = gradients((first * first).sum(), [x])
        assert [g.astype("float32").tolist() for g in (first, second)] == [[1, 8, 0, 0, 0], [64, 8, 32, 576, 0]]


def rows(*shape: int) -> np.ndarray:
    """Elements in no order that are at least 0.5 apart."""
    count = int(np.prod(shape))
    return (np.random.default_rng(count).permutation(count) * 0.5 - 2.0).reshape(shape)


SORTED: dict[str, tuple[Callable[..., Tensor], tuple[np.ndarray, ...]]] = {
    "sort": (lambda x: (x * x * x).sort(axis=-1), (rows(9),)),
    "sort of columns": (lambda x: (x * x * x).sort(axis=0, descending=True), (rows(4, 3),)),
    "sort of the middle axis": (lambda x: (x * x * x).sort(axis=1), (rows(2, 4, 2),)),
    "median": (lambda x: (x * x * x).median(axis=-1), (rows(3, 5),)),
    "median of columns": (lambda x: (x * x * x).median(axis=0, keepdims=True), (rows(4, 3),)),
    "quantile": (lambda x: (x * x * x).quantile(q=0.3, axis=1), (rows(3, 5),)),
    "topk": (lambda x: apply("topk", x * x * x, k=2, axis=0)[0], (rows(5, 3),))}


@pytest.mark.slice(3)
@pytest.mark.parametrize("case", SORTED)
def test_sorting(case: str) -> None:
    """The permutation is constant, and all else is as without it."""
    check(*SORTED[case])


def regular(*shape: int) -> np.ndarray:
    """Matrices that are far from singular, and so are their leading parts."""
    return np.random.default_rng(shape).standard_normal(shape) + 3 * np.eye(*shape[-2:])


def definite(x: Tensor) -> Tensor:
    return x @ x.mT + 2 * Tensor(np.eye(x.shape[-1]))


LINEAR_ALGEBRA: dict[str, tuple[Callable[..., Tensor], tuple[np.ndarray, ...]]] = {
    "solve": (lambda a, b: a.solve(b), (regular(3, 3), regular(3, 2))),
    "one matrix, several right sides": (lambda a, b: a.solve(b), (regular(1, 2, 2), regular(3, 2, 1))),
    "a matrix by itself": (lambda a: a.solve(a * a), (regular(2, 2),)),
    "triangular_solve": (lambda a, b: a.triangular_solve(b), (regular(3, 3), regular(3, 2))),
    "upper, with ones": (lambda a, b: a.triangular_solve(b, lower=False, unit=True), (regular(2, 2), regular(3, 2, 1))),
    "inverse": (lambda a: a.inverse(), (regular(2, 3, 3),)),
    "det": (lambda a: a.det(), (regular(3, 3),)), "det of a stack": (lambda a: a.det(), (regular(2, 2, 2),)),
    "slogdet": (lambda a: a.slogdet()[1], (regular(2, 3, 3),)),
    "cholesky": (lambda a: definite(a).cholesky(), (regular(3, 3),)),
    "cholesky of a stack": (lambda a: definite(a).cholesky(), (regular(2, 2, 2),)),
    "Q": (lambda a: a.qr()[0], (regular(4, 3),)), "R": (lambda a: a.qr()[1], (regular(4, 3),)),
    "Q and R of a stack": (lambda a: a.qr()[0] * a.qr()[1].sum(), (regular(2, 3, 2),)),
    "lu": (lambda a: a.lu()[0], (regular(3, 3),)), "lu of a stack, with exchanges": (lambda a: a.lu()[0], (regular(2, 3, 3)[:, ::-1].copy(),)),
    "wide R": (lambda a: a.qr()[1], (regular(2, 4),)),
    "eigvalsh": (lambda a: (a + a.mT).eigvalsh(), (regular(3, 3),)), "svdvals": (lambda a: a.svdvals(), (regular(4, 3),)),
    "lstsq": (lambda a, b: a.lstsq(b), (regular(4, 2), regular(4, 1))), "cond": (lambda a: a.cond(p=1), (regular(3, 3),))}


@pytest.mark.slice(6)
@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
def test_linear_algebra(case: str) -> None:
    check(*LINEAR_ALGEBRA[case])


@pytest.mark.parametrize("wrt", [(0,), (1,)])
def test_a_gradient_by_hand_of_some_of_the_inputs(wrt: tuple[int, ...]) -> None:
    """What is computed in the place of a gradient that is not asked for is computed elsewhere."""
    given = [regular(4, 4).reshape(2, 2, 4), regular(2, 2)]

    def of(*some: Tensor) -> Tensor:
        own = iter(some)
        return apply("tensorsolve", *[next(own) if n in wrt else Tensor(x) for n, x in enumerate(given)])
    check(of, [given[n] for n in wrt])
