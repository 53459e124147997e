"""Functions of NumPy on whole programs: what `caten.op` makes of a function is what NumPy computes."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError

RNG = np.random.default_rng(7)
X, Y = (RNG.standard_normal((5, 7)).astype(np.float32) for _ in range(2))
Z = (RNG.standard_normal(40) + 1j * RNG.standard_normal(40)).astype(np.complex64)
Z[:6] = 0, -4, 4j, -2j, 2, -1 + 1e-3j


def exponentials(z: Any) -> Any:
    return np.exp(z), np.log(z + 5), np.exp(2j * np.pi * np.arange(8) / 8)


def roots(z: Any) -> Any:
    return np.sqrt(z), z ** 0.5, np.correlate(z, z[:3])


def of_angles(z: Any) -> Any:
    return np.sin(z), np.cos(z), np.sinh(z), np.cosh(z)


def covariances(x: Any, y: Any) -> Any:
    return np.cov(x), np.cov(x, y), np.cov(x, rowvar=False), np.cov(x[0]), np.cov(x, bias=True), np.cov(x[0], y[0].astype(np.float64), ddof=0), np.cov(np.arange(6).reshape(2, 3))


def correlations(x: Any, y: Any) -> Any:
    return np.corrcoef(x), np.corrcoef(x[0], y[0]), np.corrcoef(x, rowvar=False)


def powers(x: Any, y: Any) -> Any:
    return np.vander(x[0]), np.vander(x[0], 3), np.vander(x[0], 4, increasing=True), np.vander(np.arange(4), 3)


def parts(x: Any, y: Any) -> Any:
    a, b, c = np.array_split(x, 3, axis=1)
    d, e = np.array_split(x, 2)
    return a, b, c, d, e, sum([p.sum() * n for n, p in enumerate(np.array_split(x.ravel(), 8))])


def solved(x: Any, y: Any) -> Any:
    a = x[:, :5] + 5 * np.eye(5, dtype=np.float32)
    return np.linalg.solve(a, y[:, 0]), np.linalg.solve(a, y)


def correlated(x: Any, y: Any) -> Any:
    a, b = x.ravel(), y[0]
    return np.correlate(a, b), np.correlate(a, b[:4], "same"), np.correlate(a, b, mode="full"), np.convolve(a, b[:2], "same")


def of_matrices(x: Any, y: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False), np.linalg.multi_dot([x.T, x, y.T])


def of_two_axes(x: Any, y: Any) -> Any:
    return np.fft.fft2(x)


def turned(x: Any, y: Any) -> Any:
    return np.flipud(x), np.fliplr(y), np.rot90(x)


def pooled(x: Any, y: Any) -> Any:
    """Of a shape whose product is known, and each extent is not."""
    return x.reshape(5, 7, 1).max(axis=(0, 2))


def stored(x: Any, y: Any) -> Any:
    result = np.zeros((7, 5), np.float32)
    result[np.arange(5), np.arange(5)] = x[:, 0]
    return result @ y


def stored_in_bools(x: Any, y: Any) -> Any:
    mask = x > 0
    mask[y > 1] = 0
    mask[0] = 1
    return mask


def in_a_type(x: Any, y: Any) -> Any:
    i = np.arange(7) - 3
    return (np.add(x, y, dtype=np.float64), np.exp(x, dtype="float64"), np.divide(i, 3, dtype=np.float32), np.multiply(i, 50, dtype=np.int8), np.square(i, dtype=np.float32),
            np.add(x > 0, y > 0, dtype=np.int64), np.add(i, 2, dtype=np.complex64), np.maximum(i, 0, dtype=np.float32), np.subtract(x[x > 0], 1, dtype=np.float64).sum(), np.abs(x, dtype=np.float64), np.power(i, 2, dtype=np.float64))


def running(x: Any, y: Any) -> Any:
    i = np.arange(1, 6, dtype=np.int32)
    return (np.cumulative_sum(x, axis=1), np.cumulative_sum(x, axis=0, include_initial=True), np.cumulative_sum(x > 0, axis=-1, include_initial=True), np.cumulative_prod(i),
            np.cumulative_prod(i, include_initial=True, dtype=np.float32), np.cumulative_prod(y, axis=1, dtype=np.float64))


def norms(x: Any, y: Any) -> Any:
    z = x + 1j * y
    return (np.linalg.vector_norm(x), np.linalg.vector_norm(x, axis=1, ord=1), np.linalg.vector_norm(x[None], axis=(0, 2), ord=3, keepdims=True), np.linalg.vector_norm(z, ord=np.inf),
            np.linalg.vector_norm(np.arange(6).reshape(2, 3), axis=0), np.linalg.matrix_norm(x), np.linalg.matrix_norm(x[None], ord=1, keepdims=True), np.linalg.matrix_norm(z, ord=-np.inf))


def shifted(x: Any, y: Any) -> Any:
    return np.fft.fftshift(x, axes=1), np.fft.ifftshift(x, 0), np.fft.fftshift(x, axes=(0, -1)), np.fft.ifftshift(x, axes=-1), np.fft.fftshift(x)


def taken(x: Any, y: Any) -> Any:
    i = np.arange(30).reshape(5, 6) - 15
    return (np.take(x, i, axis=0, mode="wrap"), np.take(x, i, mode="clip"), x.take(i, axis=1, mode="clip"), np.take(x, [-9, 3, 40], axis=1, mode="wrap"), np.take(x, 99, axis=0, mode="clip"),
            np.take(x, i.astype(np.int8), axis=-1, mode="wrap"), np.take(x, -1, mode="clip"), np.take(x, i[3] % 5, axis=0, mode="raise"))


def chosen(x: Any, y: Any) -> Any:
    i = np.arange(35).reshape(5, 7) - 15
    return (np.choose(i % 3, [x, y, 0], mode="clip"), np.choose(i, [x, y], mode="wrap"), np.choose(i, (i, x[0], y), mode="clip"), np.choose((x[0] > 0).astype(np.int8), [x, y + 1], mode="wrap"),
            np.choose(i % 3, [x, y, 0]), np.choose((y > 0).astype(np.uint8), [x[0], i]))


def of_complex_numbers(z: Any) -> Any:
    w = z[::-1]
    return (np.sign(z), np.tan(z), np.tanh(z), np.arcsin(z), np.arccos(z), np.arctan(z / 5), np.arcsinh(z), np.arccosh(z), np.arctanh(z / 5), np.exp2(z), np.expm1(z), np.log2(z + 9),
            np.log10(z + 9), np.log1p(z + 9), np.rint(z), np.maximum(z, w), np.minimum(z, 1), z < w, z >= w, np.var(z), np.std(z, ddof=1), np.angle(z, deg=True), np.isclose(z, w), np.vecmat(z[:2], np.stack([z, w])))


def of_integers(x: Any, y: Any) -> Any:
    i = np.arange(7) - 3
    s = i.astype(np.int8)
    return (i ** abs(s), 3 ** abs(i), np.power(s, abs(s)), (i > 0) ** (i > 1), np.round(i * 7, -1), np.reciprocal(abs(i) + 1), np.fabs(s), np.float_power(s, 2), np.fmod(i > 0, i < 2), np.fmax(i > 0, i < 2),
            np.nansum(s), np.nanmax(i), np.nancumsum(s), np.nan_to_num(s), np.conj(i > 0), np.degrees(i > 0), (i > 0) ** 0.5, np.max(i > 2, initial=0), np.median(i), np.diff(i > 0), np.diff(s, prepend=s, append=i), np.ediff1d(i, to_end=9))


def spread(x: Any, y: Any) -> Any:
    z = x[:0, 0]
    return (np.var(x, ddof=1, axis=1), np.var(x, where=y > 0), np.std(x, axis=1, where=y > 0, ddof=1), np.std(x, mean=np.mean(x)), np.var(x, correction=1), np.var(x, dtype=np.float64), np.var(z, ddof=1),
            np.average(x, axis=1, weights=np.abs(y), returned=True)[1], np.diagonal(x), np.diagonal(x, -2), np.trace(x[None], 1, 1, 2), np.diag(x, 3))


def ordered(x: Any, y: Any) -> Any:
    z = np.where(x > 1, np.nan, np.where(x < -1, -np.inf, x))
    q = np.quantile(x, [0.2, 0.7])
    return (np.quantile(z, 0.3, axis=1), np.nanquantile(z, 0.3, axis=0), q, np.quantile(x, 0.3, method="lower"), np.percentile(x, 40, axis=0, method="nearest"), np.quantile(x, 0.7, method="midpoint", keepdims=True), np.quantile((x * 9).astype(np.int8) + np.int8(90), 0.4, method="midpoint"),
            np.searchsorted(np.sort(z[0]), z[1]), np.searchsorted(np.sort(z[0]), z[1], side="right"), np.isclose(z, z, equal_nan=True), np.array_equal(z, z, equal_nan=True), np.array_equal(x, x[0]), np.array_equiv(x, x))


def ordered_by_methods(x: Any, y: Any) -> Any:
    z = np.where(x > 1, np.inf, x)
    return [np.quantile(each, q, axis=1, method=method) for each in (x, z) for q in (0, 0.25, 0.37, 1) for method in (
        "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
        "median_unbiased", "normal_unbiased")]


def of_singular_values(x: Any, y: Any) -> Any:
    z = np.stack([x, y])
    return (np.linalg.norm(x, 2), np.linalg.norm(y, -2), np.linalg.norm(z, "nuc", axis=(0, 2), keepdims=True), np.linalg.matrix_norm(z, ord=2), np.linalg.cond(x), np.linalg.matrix_rank(x, tol=1.5),
            np.linalg.matrix_rank(z, np.array([0.5, 2.0])), np.logaddexp.reduce(x), np.logaddexp.reduce(np.where(x > 0, -np.inf, y), axis=1))


def padded_beyond(x: Any, y: Any) -> Any:
    z, one = x[:, :3], x[:1, :1]
    return [np.pad(each, 7, mode=mode) for each in (z, one) for mode in ("wrap", "symmetric", "reflect")]


def counted(x: Any, y: Any) -> Any:
    a, b = np.histogram(x, 4, (-2.0, 2.0))
    c, d = np.histogram(x, bins=[-2.0, 0.0, 0.5, 3.0], weights=y)
    e, f = np.histogram(np.arange(9), 5)
    g, _ = np.histogram(x, 5, density=True)
    return a, b, c, d, e, f, g, np.histogram_bin_edges(x, 3), np.histogram(x[:0], 3)[0], np.histogram(x, 9, weights=y > 1)[0]


def in_pieces(x: Any, y: Any) -> Any:
    at = (np.abs(y[0]) * 2).astype(np.int64)
    return (np.piecewise(x, [x < 0, x > 1], [lambda v: -v, np.square, 7]), np.piecewise(np.arange(5), [np.arange(5) > 2], [2.7]), np.add.reduceat(x, [0, 3, 1, 4]), np.maximum.reduceat(x, at, axis=1),
            np.multiply.reduceat(x, np.array([5, 0, 2]), axis=-1), np.logical_or.reduceat(x > 1, [0, 2]), np.logical_and.accumulate(x > -1, axis=1), np.logical_xor.accumulate(x[0]), np.logical_or.outer(x[0], y[:, 0]))


def put_together(x: Any, y: Any) -> Any:
    q, r = divmod(x, 0.7)
    return (np.concatenate(x), np.concatenate(x[None], axis=1), np.stack(x.T, axis=1), np.concatenate([x, y], dtype=np.float64), np.unstack(np.stack([x, y]), axis=0)[1], np.atleast_3d(x), np.rollaxis(x[None], 2), q, r,
            x + math.gcd(12, 8) + math.isqrt(17), np.gcd(len(x), 10), x * np.euler_gamma, np.broadcast_to(x.sum(), ()))


OF_NUMPYS_TYPES = (of_complex_numbers, of_integers, spread, ordered, ordered_by_methods, padded_beyond, counted, in_pieces, put_together, in_a_type, running, norms, shifted, taken, chosen)


@pytest.mark.slow
@pytest.mark.slice(5)
@pytest.mark.parametrize(("function", "given"), [
    *[(f, (Z,)) for f in (exponentials, roots, of_angles, of_complex_numbers)], *[(f, (X, Y)) for f in (covariances, correlations, powers, parts, solved, correlated, of_matrices, turned, of_two_axes, pooled, stored, in_a_type, running, norms, shifted, taken, chosen, of_integers, spread, ordered, ordered_by_methods, of_singular_values, padded_beyond, stored_in_bools, counted, in_pieces, put_together)]],
    ids=lambda each: getattr(each, "__name__", ""))
def test_what_numpy_computes(function: Callable[..., Any], given: tuple[Any, ...], recwarn: pytest.WarningsRecorder) -> None:
    wanted = function(*given)
    recwarn.clear()                                # NumPy warns of divisions by 0
    found = caten.op(function, runtime="gcc")(*given)
    for a, b in zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple | list) else (wanted,), strict=True):
        assert np.shape(a) == np.shape(b)
        if function in OF_NUMPYS_TYPES:
            assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert not recwarn.list


def beside_cuts(z: Any) -> Any:
    return np.sqrt(z), np.arcsinh(z), np.arcsin(z), np.arctan(z), np.arctanh(z), np.arccos(z), np.arccosh(z)


def test_the_sign_of_a_zero_says_which_side_of_a_branch_cut_is_meant() -> None:
    z = np.array([complex(*place) for a in (0.0, -0.0) for b in (2, -2, 0.5, -0.5) for place in ((a, b), (b, a))], np.complex64)
    for found, wanted in zip(caten.op(beside_cuts, runtime="numpy")(z), beside_cuts(z), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert np.signbit(found.imag).tolist() == np.signbit(wanted.imag).tolist()


def mirrored_beyond(x: Any) -> Any:
    return np.pad(x[:, :3], 7, mode="reflect"), np.pad(x, 7, mode="reflect"), np.pad(x[1:, ::2], 9, mode="symmetric")


@pytest.mark.parametrize("shape", [(2, 1), (5, 7), (9, 2)])
def test_what_is_mirrored_more_than_once_is_seen_to_be_inside(shape: tuple[int, int], recwarn: pytest.WarningsRecorder) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for found, wanted in zip(caten.op(mirrored_beyond, runtime="numpy")(x), mirrored_beyond(x), strict=True):
        assert found.tolist() == wanted.tolist()
    assert not recwarn.list


def outermost(z: Any, i: Any) -> Any:
    return (np.quantile(z, 1), np.quantile(z, 1.0), np.quantile(z, [0, 1], axis=1), np.quantile(z, [0.0, 1], axis=1), np.percentile(z, 100), np.quantile(i, 1), np.quantile(i, 1.0),
            np.quantile(z, 1, method="hazen"), np.quantile(z, 1, method="higher"))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_whole_share_is_an_element_and_there_is_nothing_between_infinities() -> None:
    given = np.where(X > 1, np.inf, X).astype(np.float32), np.arange(5)
    for found, wanted in zip(caten.op(outermost, runtime="numpy")(*given), outermost(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        assert found.dtype == wanted.dtype


def of_no_rows(x: Any) -> Any:
    return x[:0].ravel() * 2, np.sort(x[:0], axis=None), np.histogram(x[:0], 3)[0]


def test_a_loop_that_never_runs_reaches_nothing_outside() -> None:
    """Of no rows the elements are read at column 0, which an array without columns lacks."""
    for x in (X, X[:, :0]):
        assert [a.tolist() for a in caten.op(of_no_rows, runtime="numpy")(x)] == [[], [], [0, 0, 0]]


def of_two_types(x: Any) -> Any:
    return np.array([0.1, 0.5]), x.astype(np.float64), x


def test_decimals_have_the_type_that_the_results_make_of_the_signature() -> None:
    found = caten.op(of_two_types, runtime="numpy")(X)
    assert [a.dtype for a in found] == [np.float64, np.float64, np.float32]
    assert found[0].tolist() == [0.1, 0.5]


def transformed(x: Any, z: Any) -> Any:
    return np.fft.fft(z, n=5), np.fft.ifft(z, 64), np.fft.rfft(x, 4, axis=0), np.fft.irfft(z, n=9), np.fft.irfft(z[:3], 12), np.fft.fft2(x, s=(4, 8)), np.fft.rfftn(x, norm="ortho"), np.fft.ihfft(np.arange(7), 6)


@pytest.mark.nightly
def test_transforms_of_a_given_length() -> None:
    for found, wanted in zip(caten.op(transformed, runtime="numpy")(X, Z), transformed(X, Z), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def cut(z: Any) -> Any:
    return np.fft.fft(z, n=5)


def test_a_transform_is_of_the_elements_that_there_are() -> None:
    for z in (Z[:3], Z):
        np.testing.assert_allclose(caten.op(cut, runtime="numpy")(z), np.fft.fft(z, n=5), rtol=1e-4, atol=1e-4)


def negative(x: Any) -> Any:
    return 3 ** x


def test_a_negative_power_of_an_integer_makes_the_call_fail() -> None:
    raised = caten.op(negative, runtime="numpy")
    assert raised(np.array([0, 5])).tolist() == [1, 243]
    with pytest.raises(CatenError, match=r"is outside \[0, 4611686018427387904\)"):
        raised(np.array([2, -1]))


def wraps_nothing(x: Any) -> Any:
    return np.take(x[:, :0], [1, 2], axis=1, mode="wrap")


def some_weights(x: Any) -> Any:
    return np.cov(x, aweights=x[:, :2])


def three_axes(x: Any) -> Any:
    return np.corrcoef(x[None])


@pytest.mark.parametrize(("function", "message"), [
    (wraps_nothing, "E323: np.take with the mode 'wrap' takes elements of an empty axis"),
    (some_weights, "E330: weights of observations have one axis"), (three_axes, "E330: variables are a matrix or a vector, not an array of the shape [1 N0 N1]")])
def test_refusals(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(CatenError) as refused:
        caten.op(function, runtime="gcc")(X)
    assert message in str(refused.value)
