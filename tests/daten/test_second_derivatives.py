"""Second derivatives of operators whose gradients are no formulas of single elements, against differences in float64."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from daten import Tensor, gradcheck, gradients, realize
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


@pytest.mark.slice(6)
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
    "tensorsolve": (lambda a, b: apply("tensorsolve", a, b), (regular(4, 4).reshape(2, 2, 4), regular(2, 2))),
    "tensorsolve, several unknowns": (lambda a, b: apply("tensorsolve", a, b), (regular(4, 4).reshape(4, 2, 2), regular(4, 1)[:, 0])),
    "lstsq": (lambda a, b: a.lstsq(b), (regular(4, 2), regular(4, 1))), "cond": (lambda a: a.cond(p=1), (regular(3, 3),))}


@pytest.mark.slice(8)
@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
def test_linear_algebra(case: str) -> None:
    check(*LINEAR_ALGEBRA[case])


@pytest.mark.slice(2)
@pytest.mark.parametrize("wrt", [(1,), (0,)])
def test_a_gradient_by_hand_of_some_of_the_inputs(wrt: tuple[int, ...]) -> None:
    """What is computed in the place of a gradient that is not asked for is computed elsewhere."""
    given = [regular(4, 4).reshape(2, 2, 4), regular(2, 2)]

    def of(*some: Tensor) -> Tensor:
        own = iter(some)
        return apply("tensorsolve", *[next(own) if n in wrt else Tensor(x) for n, x in enumerate(given)])
    check(of, [given[n] for n in wrt])


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.uniform(-1.0, 1.0, shape) for shape in shapes]


def weighted(name: str, **attributes: Any) -> Callable[..., Tensor]:
    """A number of all elements of all results of an operator, each with a weight of its own."""
    def function(*given: Tensor) -> Tensor:
        made = apply(name, *given, **attributes)
        return total(made if isinstance(made, tuple | list) else [made])
    return function


def total(made: Sequence[Tensor]) -> Tensor:
    parts = [(y * y * Tensor(w)).sum() for y, w in zip(made, drawn(4, *[y.shape for y in made]), strict=True)]
    return sum(parts[1:], parts[0])


def check_in_one_direction(function: Callable[..., Tensor], inputs: Sequence[np.ndarray]) -> None:
    """Compare the derivatives of a number, and those of its derivative in a direction, with differences."""
    def along(*given: Tensor) -> Tensor:
        return total(gradients(function(*given), list(given)))
    assert gradcheck(function, inputs) < 1e-6
    assert gradcheck(along, inputs) < 1e-6


@pytest.mark.slice(2)
@pytest.mark.parametrize(("shape", "axis", "reverse"), [((7,), 0, False), ((7,), 0, True), ((2, 3), -1, False),
                                                        ((4, 2), 0, True), ((1, 3), 0, False), ((2, 2, 2), 1, True)])
def test_linear_recurrence(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    check_in_one_direction(weighted("linear_recurrence", axis=axis, reverse=reverse), drawn(1, shape, shape))


def test_linear_recurrence_with_one_factor() -> None:
    check_in_one_direction(weighted("linear_recurrence"), drawn(1, (1,), (2, 3)))


def gated(steps: int, components: int, gates: int, batch: int, width: int) -> list[np.ndarray]:
    states = (steps, components, batch, width)
    return drawn(2, (steps, components, *states[1:]), (steps, components, gates, batch, width), (gates * width, width),
                 states, states[1:])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gated_recurrence", "gated_recurrence_adjoint"])
@pytest.mark.parametrize("sizes", [(3, 1, 1, 1, 1), (1, 2, 1, 1, 1), (2, 1, 2, 1, 1)])
def test_gated_recurrences(name: str, sizes: tuple[int, int, int, int, int]) -> None:
    check_in_one_direction(weighted(name), gated(*sizes))


def test_a_gated_recurrence_and_its_adjoint() -> None:
    """What one does to changes, the other does to gradients: ⟨T(b, s0), (g, e)⟩ = ⟨(b, s0), T*(g, e)⟩."""
    mix, add, weights, b, s0 = gated(4, 2, 3, 2, 2)
    _, _, _, g, e = [x[::-1] for x in gated(4, 2, 3, 2, 2)]
    s, sn = [y.numpy() for y in apply("gated_recurrence", *map(Tensor, (mix, add, weights, b, s0)))]
    d, d0 = [y.numpy() for y in apply("gated_recurrence_adjoint", *map(Tensor, (mix, add, weights, g.copy(), e.copy())))]
    np.testing.assert_allclose((s * g).sum() + (sn * e).sum(), (b * d).sum() + (s0 * d0).sum(), rtol=1e-12)


def layer(name: str, steps: int, batch: int, inputs: int, width: int) -> list[np.ndarray]:
    """The inputs of a recurrent layer."""
    gates, biases, states = {"rnn": (1, 1, 1), "lstm": (4, 1, 2), "gru": (3, 2, 1)}[name]
    return drawn(3, (steps, batch, inputs), (gates * width, inputs), (gates * width, width),
                 *[(gates * width,)] * biases, *[(batch, width)] * states)


@pytest.mark.slice(6)
@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 1, 1, 1)])
def test_recurrent_layers(name: str, sizes: tuple[int, int, int, int]) -> None:
    check_in_one_direction(weighted(name), layer(name, *sizes))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("sizes", [(2, 2, 1, 2)])
def test_second_derivatives_of_an_operator_over_time_are_those_of_its_steps(
        name: str, sizes: tuple[int, int, int, int]) -> None:
    given = [Tensor(x) for x in layer(name, *sizes)]

    def second(made: Sequence[Tensor]) -> list[np.ndarray]:
        return [g.numpy() for g in gradients(total(gradients(total(made), given)), given)]
    for found, want in zip(second(apply(name, *given)), second(unrolled(name, *given)), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


def unrolled(name: str, x: Tensor, ours: Tensor, theirs: Tensor, *more: Tensor) -> list[Tensor]:
    """The formulas of the layers, one step after the other: all states, and the last ones."""
    width = theirs.shape[1]
    h, c = (more[-2], more[-1]) if name == "lstm" else (more[-1], more[-1])
    states = []
    for t in range(x.shape[0]):
        z, m = x[t] @ ours.mT + more[0], h @ theirs.mT
        if name == "gru":
            m = m + more[1]
        a, b = [[part[:, n * width:(n + 1) * width] for n in range(part.shape[1] // width)] for part in (z, m)]
        if name == "rnn":
            h = (z + m).tanh()
        elif name == "lstm":
            c = (a[1] + b[1]).sigmoid() * c + (a[0] + b[0]).sigmoid() * (a[2] + b[2]).tanh()
            h = (a[3] + b[3]).sigmoid() * c.tanh()
        else:
            kept = (a[1] + b[1]).sigmoid()
            h = (1 - kept) * (a[2] + (a[0] + b[0]).sigmoid() * b[2]).tanh() + kept * h
        states.append(h.reshape(1, *h.shape))
    return [concat(states), h, *([c] if name == "lstm" else [])]


SMOOTH = {                                       # of x, with the first and the second derivative at 0
    "softplus": (lambda x: x.softplus(beta=2.0), 0.5, 0.5), "log_sigmoid": (lambda x: x.log_sigmoid(), 0.5, -0.25),
    "mish": (lambda x: x.mish(), 0.6, 0.64),
    "logaddexp": (lambda x: apply("logaddexp", x, np.zeros(2)), 0.5, 0.25),
    "logaddexp from the other side": (lambda x: apply("logaddexp", np.zeros(2), x), 0.5, 0.25),
    "logaddexp2": (lambda x: apply("logaddexp2", x, np.zeros(2)), 0.5, 0.25 * np.log(2.0)),
    "log_cosh_loss": (lambda x: apply("log_cosh_loss", x, np.zeros(2), reduction="sum"), 0.0, 1.0),
    "binary_cross_entropy_with_logits": (
        lambda x: x.binary_cross_entropy_with_logits(np.ones(2), reduction="sum"), -0.5, 0.25),
    "soft_margin_loss": (lambda x: x.soft_margin_loss(np.ones(2), reduction="sum"), -0.5, 0.25)}


@pytest.mark.slice(4)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_that_are_computed_in_two_branches(name: str) -> None:
    """log(1 + e^x) is x + log(1 + e^-x) above 0. Where the branches meet, as at logits that start with zeros, a
    derivative is that of the function: (0 + 1) / 2, and not that of one of the summands."""
    function, *wanted = SMOOTH[name]
    x = Tensor(np.zeros(2), requires_grad=True)
    (first,) = gradients(function(x).sum(), [x])
    (second,) = gradients(first.sum(), [x])
    realize(first, second)
    np.testing.assert_allclose([first.tolist(), second.tolist()], [[w, w] for w in wanted], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums_of_infinities(name: str) -> None:
    x, y = np.array([np.inf, -np.inf, -np.inf, 0.0, np.inf]), np.array([np.inf, -np.inf, 1.0, -np.inf, -np.inf])
    np.testing.assert_array_equal(apply(name, x, y).numpy(), getattr(np, name)(x, y))


def test_sinc_is_smooth_at_zero() -> None:
    check(lambda x: x.sinc(), [np.array([0.0, 1e-4, 0.15, 0.17, -1.0])], 3)
