"""Functions of NumPy over tensors give what they give over arrays, as tensors."""
from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daten
from daten import Tensor, jit

A = np.random.default_rng(0).standard_normal((3, 4))
SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "daten" / "gpt2_numpy.py"

OF_ELEMENTS: dict[str, Callable[[Any], Any]] = {
    **{f.__name__: f for f in (np.exp, np.tanh, np.arctan, np.absolute, np.floor, np.rint, np.sign, np.isnan, np.negative, np.reciprocal, np.log1p, np.cbrt,
                               np.exp2, np.square, np.signbit, np.nan_to_num, np.conjugate)},
    "numbers of NumPy": lambda x: np.sqrt(2 / np.pi) * x / np.sqrt(x.shape[-1]), "power": lambda x: np.power(x * x, 1.5), "maximum": lambda x: np.maximum(0, x),
    "an array first": lambda x: A * x, "an array second": lambda x: x - A, "arctan2": lambda x: np.arctan2(x, 1.5), "logaddexp": lambda x: np.logaddexp(x, 1.0),
    "less": lambda x: np.less(x, 0.1), "integers": lambda x: np.sin(np.argmax(x, axis=1)), "where": lambda x: np.where(x > 0, x, 0.1 * x),
    "clip": lambda x: np.clip(x, -0.5, 0.5), "round": lambda x: np.round(x, 2), "zeros_like": np.zeros_like, "full_like": lambda x: np.full_like(x, 2.0),
    "isclose": lambda x: np.isclose(x, x), "divmod": lambda x: np.divmod(x, 0.7), "modf": np.modf, "dtype": lambda x: np.add(x, 1, dtype=np.float32)}
OF_AXES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: np.mean(x, axis=-1, keepdims=True), "sum": lambda x: np.sum(x, 0), "mean of all": np.mean, "max": lambda x: np.max(x, -1, keepdims=True),
    "amin": lambda x: np.amin(x, axis=1), "var": lambda x: np.var(x, axis=1, ddof=1), "std": np.std, "prod": lambda x: np.prod(x, axis=0),
    "any": lambda x: np.any(x > 0, axis=1), "argmin": lambda x: np.argmin(x, axis=0), "cumsum": lambda x: np.cumsum(x, axis=1), "cumprod": np.cumprod,
    "median": lambda x: np.median(x, axis=1), "ptp": lambda x: np.ptp(x, axis=1), "average": lambda x: np.average(x, axis=1), "diff": np.diff,
    "weights": lambda x: np.average(x, axis=1, weights=np.abs(x)),
    "sort": lambda x: np.sort(x, axis=0), "argsort": np.argsort, "reduce": np.add.reduce, "reduce all": lambda x: np.multiply.reduce(x, axis=None), "methods": lambda x: x.sum(1)}
MOVED: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: np.split(x, 2, axis=-1), "split at": lambda x: np.split(x, [1, 2]), "array_split": lambda x: np.array_split(x, 3, axis=1), "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x, x[0]]), "stack": lambda x: np.stack([x, x], axis=1), "concatenate": lambda x: np.concatenate([x, A], axis=0), "reshape": lambda x: np.reshape(x, (2, -1)),
    "transpose": np.transpose, "swapaxes": lambda x: np.swapaxes(x, 0, 1), "moveaxis": lambda x: np.moveaxis(x, 0, 1), "ravel": np.ravel, "squeeze": lambda x: np.squeeze(x[None]),
    "expand_dims": lambda x: np.expand_dims(x, 1), "new axes": lambda x: np.expand_dims(x, (0, -1)), "transpose by a tuple": lambda x: x.transpose((1, 0)),
    "ones_like": lambda x: np.ones_like(x, dtype="int32"), "full_like": lambda x: np.full_like(x, 2.5, dtype=np.float64), "flip": lambda x: np.flip(x, 1), "roll": lambda x: np.roll(x, 1, axis=1), "repeat": lambda x: np.repeat(x, 2, axis=1),
    "tile": lambda x: np.tile(x, 2), "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)), "take": lambda x: np.take(x, [0, 2], axis=1), "a range": lambda x: x[range(2)],
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(A, axis=1), axis=1), "pad": lambda x: np.pad(x, ((0, 1), (2, 0))), "pad edges": lambda x: np.pad(x, 1, mode="edge"),
    "tril": np.tril, "tri": lambda x: x[:, :3] + (1 - np.tri(3, dtype=x.dtype)) * -1e10, "diagonal": np.diagonal, "copy": np.copy, "nonzero": lambda x: np.nonzero(x > 0)}
PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: np.matmul(x, x.T), "dot": lambda x: np.dot(x, x[0]), "einsum": lambda x: np.einsum("ij,kj->ik", x, x), "outer": lambda x: np.outer(x[0], x[1]),
    "add.outer": lambda x: np.add.outer(x[0], x[1]), "tensordot": lambda x: np.tensordot(x, x, axes=([0], [0])), "inner": lambda x: np.inner(x, x), "trace": np.trace,
    "norm": np.linalg.norm, "norms": lambda x: np.linalg.norm(x, axis=1), "inverse": lambda x: np.linalg.inv(x @ x.T), "rfft": np.fft.rfft}


WITH_NAN = np.where(A > 1, np.nan, A)
COUNTS = np.random.default_rng(1).integers(1, 9, (3, 4))
# Functions whose defaults are others than those of the operators that have their names, and arguments that only NumPy has. `f`: of arrays as tensors, or as they are.
OTHERWISE: dict[str, Callable[[Any], Any]] = {
    "median": lambda f: np.median(f(A)), "median of columns": lambda f: np.median(f(A), 0), "medians kept": lambda f: np.median(f(A), axis=1, keepdims=True),
    "quantile": lambda f: np.quantile(f(A), 0.3), "quantile of columns": lambda f: np.quantile(f(A), 0.3, axis=0), "lower": lambda f: np.quantile(f(A), 0.3, method="lower"),
    "quantiles": lambda f: np.quantile(f(A), [0.2, 0.7]), "percentile": lambda f: np.percentile(f(A), 30, axis=1), "nanmedian": lambda f: np.nanmedian(f(WITH_NAN)),
    "nanquantile": lambda f: np.nanquantile(f(WITH_NAN), 0.3), "nancumsum": lambda f: np.nancumsum(f(WITH_NAN)), "nanmax": lambda f: np.nanmax(f(WITH_NAN)),
    "nanmean of columns": lambda f: np.nanmean(f(WITH_NAN), axis=0), "nanvar": lambda f: np.nanvar(f(WITH_NAN), ddof=1), "ptp": lambda f: np.ptp(f(A)),
    "histogram": lambda f: np.histogram(f(A))[0], "bincount": lambda f: np.bincount(f(COUNTS[0])), "vander": lambda f: np.vander(f(A[0])), "vander 2": lambda f: np.vander(f(A[0]), 2),
    "polyder": lambda f: np.polyder(f(A[0])), "polyder twice": lambda f: np.polyder(f(A[0]), 2), "polyint": lambda f: np.polyint(f(A[0])), "polyfit": lambda f: np.polyfit(f(A[0]), f(A[1]), 2),
    "convolve": lambda f: np.convolve(f(A[0]), f(A[1])), "same": lambda f: np.convolve(f(A[0]), f(A[1]), "same"), "angle": lambda f: np.angle(f(A)),
    "average": lambda f: np.average(f(A), axis=0, weights=f(np.abs(A[:, 0]))), "cov": lambda f: np.cov(f(A)), "weighted cov": lambda f: np.cov(f(A), aweights=f(np.abs(A[0]))), "cov of columns": lambda f: np.cov(f(A), rowvar=False),
    "nan_to_num": lambda f: np.nan_to_num(f(WITH_NAN)), "numbers for nan": lambda f: np.nan_to_num(f(WITH_NAN), nan=3.0), "lexsort": lambda f: np.lexsort((f(COUNTS[0]), f(COUNTS[1]))),
    "unravel_index": lambda f: np.unravel_index(f(COUNTS[0]), (3, 4)), "resize": lambda f: np.resize(f(A), (2, 3)), "gcd": lambda f: np.gcd(f(COUNTS), 6), "lcm": lambda f: np.lcm(f(COUNTS), f(COUNTS[0])),
    "packbits": lambda f: np.packbits(f((COUNTS > 4).astype(np.uint8)), axis=1), "i0": lambda f: np.i0(f(A)), "frexp": lambda f: np.frexp(f(A)), "spacing": lambda f: np.spacing(f(A)),
    "meshgrid": lambda f: np.meshgrid(f(A[0]), f(A[:, 0])), "open grid": lambda f: np.meshgrid(f(A[0]), f(A[:, 0]), f(A[1]), sparse=True, indexing="ij"),
    "chain": lambda f: np.linalg.multi_dot([f(A), f(A.T), f(A), f(A[0])]), "weighted counts": lambda f: np.bincount(f(COUNTS[0]), weights=f(A[0])), "least squares": lambda f: np.linalg.lstsq(f(A.T), f(A[0]), rcond=None)[0],
    "select": lambda f: np.select([f(A) > 1, f(A) < -1], [f(A), f(COUNTS)], 5.0), "searchsorted": lambda f: np.searchsorted(f(np.sort(WITH_NAN[0])), f(WITH_NAN), side="right"),
    "piecewise": lambda f: np.piecewise(f(A), [f(A) < 0, f(A) > 1], [lambda v: -v, np.square, 7.0]), "diff of bools": lambda f: np.diff(f(A > 0), axis=0), "diff of more": lambda f: np.diff(f(A), prepend=0, append=f(A)),
    "close to NaN": lambda f: np.isclose(f(WITH_NAN), f(A), rtol=0.1, equal_nan=True), "transform by position": lambda f: np.fft.fft(f(A), 3, 0), "median of integers": lambda f: np.median(f(COUNTS)),
    "sum of integers": lambda f: np.nansum(f(COUNTS), axis=0), "spread of complex numbers": lambda f: np.std(f(A + 2j * A[::-1]), axis=1), "vecmat": lambda f: np.vecmat(f(A[:, 0] + 1j), f(A + 0j)),
    "vdot": lambda f: np.vdot(f(A), f(A)), "singular values": lambda f: np.linalg.svd(f(A), compute_uv=False), "complete": lambda f: np.abs(np.linalg.qr(f(A), "complete")[0]),
    "slogdet": lambda f: np.linalg.slogdet(f(A[:, :3])), "norm of a matrix": lambda f: np.linalg.norm(f(A), "nuc"), "rank": lambda f: np.linalg.matrix_rank(f(A)),
    "pinv": lambda f: np.linalg.pinv(f(A)), "eigvalsh": lambda f: np.linalg.eigvalsh(f(A @ A.T)), "cond": lambda f: np.linalg.cond(f(A)), "nextafter": lambda f: np.nextafter(f(A), f(A + 1))}


@pytest.fixture(autouse=True)
def numpy_runtime() -> Iterator[None]:
    daten.use("numpy", opt=daten.settings.options().opt)
    yield
    daten.use()


@pytest.mark.slice(2)
@pytest.mark.parametrize("cases", [OF_ELEMENTS, OF_AXES, MOVED, PRODUCTS], ids=["elements", "axes", "moved", "products"])
def test_functions(cases: dict[str, Callable[[Any], Any]]) -> None:
    for name, function in cases.items():
        want, found = function(A), function(Tensor(A))
        for a, b in zip(*[v if isinstance(v, list | tuple) else [v] for v in (want, found)], strict=True):
            assert isinstance(b, Tensor), name
            np.testing.assert_allclose(b.numpy(), a, rtol=1e-6, atol=1e-12, err_msg=name)
            assert b.dtype == np.asarray(a).dtype, name


@pytest.mark.slice(10)
@pytest.mark.parametrize("name", OTHERWISE)
def test_what_numpy_means_otherwise(name: str) -> None:
    want, found = OTHERWISE[name](lambda x: x), OTHERWISE[name](Tensor)
    for a, b in zip(*[v if isinstance(v, list | tuple) else [v] for v in (want, found)], strict=True):
        np.testing.assert_allclose(b.numpy() if isinstance(b, Tensor) else b, a, rtol=1e-6, atol=1e-12)
        assert np.shape(a) == b.shape


def test_what_has_a_known_shape_stays_lazy() -> None:
    x, k = Tensor(A), Tensor(COUNTS[0])
    made = [np.linalg.multi_dot([x, x.T, x]), *np.meshgrid(x[0], x[1]), np.select([x > 0], [x], 1.0), np.searchsorted(x[0], x[1]), np.linalg.lstsq(x, x[:, 0])[0],
            np.bincount(k), np.piecewise(x, [x > 0], [1.0]), np.diff(x, append=1.0), np.isclose(x, x, equal_nan=True), np.fft.fft(x, 5), np.nanmax(k), np.median(k)]
    assert all(isinstance(each, Tensor) for each in made)


def test_functions_that_change_an_array() -> None:
    x, t = A.copy(), Tensor(A)
    for each in (x, t):
        np.fill_diagonal(each, 5.0)
        np.put(each, [1, 7, 1], [2.0, 3.0, 4.0])
        np.put(each, [10], 9.0)
    np.testing.assert_array_equal(t.numpy(), x)
    with pytest.raises(TypeError, match=r"np\.put of a tensor takes"):
        np.put(t, [1, 2, 3], [1.0, 2.0])
    with pytest.raises(TypeError, match=r"np\.fill_diagonal of a tensor takes"):
        np.fill_diagonal(t, 1.0, wrap=True)


def test_numbers_of_numpy_have_no_type_of_their_own() -> None:
    x = Tensor(A.astype(np.float32))
    assert (x * np.sqrt(2 / np.pi)).dtype == (np.float64(2) * x).dtype == np.divide(x, np.sqrt(4)).dtype == "float32"


def test_what_no_operator_computes_numpy_does() -> None:
    """At once; not in a function that is traced, where it would be the same each time."""
    made = np.partition(Tensor(A), 2, axis=1)
    assert isinstance(made, np.ndarray)
    np.testing.assert_array_equal(made, np.partition(A, 2, axis=1))
    with pytest.raises(TypeError, match=r"numpy\.partition is no operator"):
        jit(lambda x: np.partition(x, 2, axis=1))(A)


def test_a_number_of_numpy_takes_the_type_of_the_tensor() -> None:
    for dtype in (np.int32, np.float32, np.uint8):
        for number in (np.int64(3), np.int8(3), np.uint8(3), np.bool_(True)):
            assert (Tensor(np.ones(2, dtype)) * number).dtype == np.dtype(dtype).name
            assert (number * Tensor(np.ones(2, dtype))).dtype == np.dtype(dtype).name
    assert (Tensor(np.ones(2, np.float32)) * np.float64(3)).dtype == "float32"


def test_extremes_of_nothing_are_the_identity() -> None:
    assert Tensor(np.zeros((2, 0), np.float32)).max(axis=1).tolist() == [-np.inf, -np.inf]
    assert Tensor(np.zeros(0, np.int32)).min().item() == 2 ** 31 - 1
    assert Tensor(np.zeros((2, 0), np.float32)).max(axis=0).shape == (0,)


def test_true_is_greater_than_false() -> None:
    x = np.array([[True, False], [False, False]])
    t = Tensor(x)
    for made, wanted in [(t.max(), x.max()), (t.min(axis=1), x.min(axis=1)), (np.max(t, axis=0), x.max(axis=0)), (np.maximum(t, t.T), np.maximum(x, x.T)),
                         (np.argmax(t), np.argmax(x)), (t.argmin(axis=1), x.argmin(axis=1))]:
        assert made.numpy().dtype == wanted.dtype
        assert np.array_equal(made.numpy(), wanted)
    assert not t.max().requires_grad


def test_comparisons_of_whole_arrays_are_bools() -> None:
    assert np.allclose(Tensor(A), A + 1e-12) is True
    assert np.array_equal(A, Tensor(A + 1)) is False


def test_a_function_with_dtype_is_computed_in_that_type() -> None:
    """Not in that of its operands, and then converted."""
    x = np.float32(16777216) + 4 * np.arange(6, dtype=np.float32)
    for function in (lambda v: np.add(v, 1, dtype=np.float64), lambda v: np.multiply(v, v, dtype="float64"), lambda v: np.less(v, 16777220, dtype=bool)):
        made, wanted = function(Tensor(x)), function(x)
        assert isinstance(made, Tensor)
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(made.numpy(), wanted)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' input"):
        np.add(Tensor(x), 1, dtype=np.int64)


def test_results_are_put_where_they_are_asked_for() -> None:
    out = Tensor(np.zeros((3, 4)))
    assert np.add(Tensor(A), 1.0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), A + 1)
    own = A.copy()
    own += Tensor(A)
    np.testing.assert_array_equal(own, 2 * A)


def test_gradients_go_through() -> None:
    x = Tensor(A, requires_grad=True)
    np.sum(np.tanh(np.concatenate([x, x])) * 2).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 4 * (1 - np.tanh(A) ** 2))


def test_gpt2_of_numpy_unchanged() -> None:
    """The functions of the sample, over arrays and traced, at lengths that are compiled once."""
    spec = importlib.util.spec_from_file_location("gpt2_numpy", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    weights = sample.drawn(width=16, layers=2, vocabulary=11, context=8)
    compiled = jit(sample.gpt2)
    for length in (2, 5, 2):
        tokens = np.arange(length) + 3
        made = compiled(tokens, **weights, heads=2)
        assert made.dtype == "float32"
        np.testing.assert_allclose(made.numpy(), sample.gpt2(tokens, **weights, heads=2), rtol=1e-4, atol=1e-6)
    assert sum(map(len, daten.realization.COMPILED.values())) == 1
    assert sample.generated(lambda t: compiled(t, **weights, heads=2), [1, 2], 3) == sample.generated(lambda t: sample.gpt2(t, **weights, heads=2), [1, 2], 3)


@pytest.mark.parametrize("subscripts", ["ij,jk,kl->il", "ij,jk,kl->", "ij,jk,kl", "ij,jk,kl,li->ik", "ij , jk, kl -> lji", "i...,...k,kl->...l"])
def test_einsum_of_many_arrays_is_contracted_in_pairs_with_gradients(subscripts: str) -> None:
    draw = np.random.default_rng(1)
    extents = dict(zip("ijkl", (3, 4, 2, 5), strict=True))
    shapes = [[extents[c] for c in term.replace("...", "j")] for term in subscripts.replace(" ", "").partition("->")[0].split(",")]
    arrays = [draw.standard_normal(shape) for shape in shapes]
    tensors = [Tensor(a, requires_grad=True) for a in arrays]
    made, wanted = np.einsum(subscripts, *tensors), np.einsum(subscripts, *arrays)
    assert isinstance(made, Tensor)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-9)
    made.sum().backward()
    for n, (t, a) in enumerate(zip(tensors, arrays, strict=True)):
        moved = draw.standard_normal(a.shape)                           # the function is linear in each array
        assert t.grad is not None
        expected = np.einsum(subscripts, *[moved if k == n else b for k, b in enumerate(arrays)]).sum()
        np.testing.assert_allclose((t.grad.numpy() * moved).sum(), expected, rtol=1e-9)


def test_extents_that_differ_in_einsum_of_many_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="'j'"):
        np.einsum("ij,jk,kl->il", *[Tensor(np.ones((3, 4)))] * 3)


@pytest.mark.parametrize("call", ["x.cumsum()", "x.cumsum(axis=1)", "x.cumprod(axis=-1)", "x.repeat(2)", "x.repeat(2, axis=1)", "x.take([0, 2])",
                                  "x.take([0, 2], axis=1)", "x.dot(x.T)", "x.clip(min=0)", "x.clip(None, 1)", "x.clip(-1, 1)", "x.flatten()", "x.nonzero()[1]",
                                  "x.item(3)", "x.item(1, 2)", "x.squeeze()", "x[None, :, None].squeeze()", "x[None, :, None].squeeze(0)",
                                  "x[None, :, None].squeeze((0, -2))", "x[:, None, :1].squeeze(axis=1)", "x.diagonal()", "x.diagonal(1)",
                                  "np.diagonal(x[:, :, None] * x[0])", "np.diagonal(x[:, :, None] * x[0], -1, 2, 0)",
                                  "np.trace(x[:, :, None] * x[0])", "np.trace(x[:, :, None] * x[0], 1, 1, 2)"])
def test_methods_mean_what_those_of_arrays_mean(call: str) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    got, wanted = (np.asarray(eval(call, {"x": x, "np": np})) for x in (Tensor(a), a))
    np.testing.assert_array_equal(got, wanted)
    assert got.shape == wanted.shape


def test_an_axis_that_is_not_1_stays() -> None:
    with pytest.raises(ValueError, match=r"squeeze leaves out axes of extent 1, and axis 1 of Tensor\(float32\[1, 3\]\) has 3"):
        Tensor(np.zeros((1, 3), np.float32)).squeeze(1)


def test_assigning_to_a_flattened_tensor_leaves_the_other() -> None:
    x = Tensor(np.zeros((2, 2), np.float32))
    flat = x.flatten()
    flat[0] = 1
    assert x.numpy().sum() == 0
    assert flat.tolist() == [1, 0, 0, 0]
