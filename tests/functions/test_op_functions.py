"""`@caten.op`: functions compute what Python and NumPy compute with them, and are refused at their lines."""
# ruff: noqa: F722, F821, UP037
from __future__ import annotations

import inspect
import math
import multiprocessing
import pickle
import random
import re
from collections.abc import Callable
from math import sinh
from types import FunctionType
from typing import Annotated, Any

import numpy as np
import numpy as numeric
import numpy.linalg as la
import pytest
from numpy import exp as e_to_the
from numpy.linalg import norm

import caten
from caten.errors import CatenError

EPSILON = 1e-5
POWERS = (1, 2, 3)
WEIGHTS = np.ones(3, np.float32)


def centred(x: Any) -> Any:
    return x - mean_of_last(x)


def mean_of_last(x: Any) -> Any:
    """A function that a function calls."""
    return numeric.mean(x, axis=-1, keepdims=True)


def layer_norm(x: caten.f32["M N"], g: caten.f32["N"], b: caten.f32["N"]) -> caten.f32["M N"]:
    """Layer norm of each row."""
    c = centred(x)
    return c / np.sqrt(mean_of_last(c * c) + EPSILON) * g + b


def softmax(x, *, axis=-1):
    e = e_to_the(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def add_scaled(a, x, y):
    for i in range(len(x)):
        y[i] += a * x[i]


def dot_and_sum(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total, x + y


def product(A, B): return A @ B


def polynomial(x):
    total = np.zeros_like(x)
    for p in POWERS:
        total = total + x ** p
    return total


def changed_and_returned(x, y):
    y += x
    return y.sum()


def returned_first(x, y):
    y += x
    return y, y.sum()


def returned_last(x, y):
    y[0] = x[1]
    return x * 2, y


def of_modules(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = math.sqrt(abs(x[i])) * sinh(x[i]) + math.pi
    return y / norm(x) + la.norm(x)


def thresholds(x, low: float = -0.5, *, high=0.5, keep=True):
    inside = np.where(x < low, low, np.where(x > high, high, x))
    return inside if keep else inside * 0


def column_major(A: Annotated[np.ndarray, caten.float32("M", "K <1 0>")], b: caten.f32("K")):
    return A @ b


def by_size(x: caten.f64["N"]):
    y = np.zeros(N)
    for i in range(N):
        y[i] = x[i] * i
    return y


def integers(x, n: int):
    return x // n + x % n


rng = np.random.default_rng(4)
X, S = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal((4, 4)).astype(np.float32)
V, W = rng.standard_normal(5).astype(np.float32), rng.standard_normal(5).astype(np.float32)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (layer_norm, (X, V, W), {}), (softmax, (X,), {}), (softmax, (X,), {"axis": 0}), (softmax, (V,), {"axis": 0}), (softmax, (X.astype(np.float64),), {}),
    (add_scaled, (2.0, V, W), {}), (dot_and_sum, (V, W), {}), (product, (X, S[:1].repeat(5, 0)), {}), (product, (S, S), {}), (product, (S, X[:, :4].T), {}),
    (product, (X.astype(np.float16).T.copy(), X.astype(np.float16)), {}), (polynomial, (X,), {}), (polynomial, (np.float32(2),), {}),
    (of_modules, (V,), {}), (changed_and_returned, (V, W), {}), (returned_first, (V, W), {}), (returned_last, (V, W), {}), (thresholds, (X,), {}), (thresholds, (X, -1.0), {"high": 0.25}), (thresholds, (X,), {"keep": False}),
    (thresholds, (X,), {"low": 0.0}), (column_major, (X, V), {}), (integers, (np.arange(7), 3), {}), (integers, (np.arange(7, dtype=np.uint8), np.uint8(3)), {}),
    (softmax, (X[:, :1],), {}),
]


def with_gcc(function: Callable[..., Any]) -> caten.OpFunction:
    """Made in a test, whose level it has."""
    return caten.op(function, runtime="gcc")


@pytest.fixture(scope="module")
def operators() -> dict[Any, caten.OpFunction]:
    return {f: with_gcc(f) for f, _, _ in CALLS}


@pytest.mark.slice(8)
@pytest.mark.parametrize("n", range(len(CALLS)), ids=[f"{f.__name__}{n}" for n, (f, _, _) in enumerate(CALLS)])
def test_what_python_computes(n: int, operators: dict[Any, caten.OpFunction], tool: Any) -> None:
    tool("gcc")
    function, arguments, named = CALLS[n]
    for _ in range(2):                                                       # the second call finds the kernel
        own, others = ([np.copy(a, order="K") if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
        wanted = function(*own, **named)
        made = operators[function](*others, **named)
        changed = [(a, b) for a, b in zip(own, others, strict=True) if isinstance(a, np.ndarray) and not np.array_equal(a, b)]
        assert not [1 for a, b in changed if not np.allclose(a, b, rtol=1e-5)]
        if function is add_scaled:
            assert made is None
            continue
        if function is returned_first:
            assert made[0] is others[1]
        assert isinstance(made, tuple) == isinstance(wanted, tuple)
        for mine, theirs in zip(made if isinstance(made, tuple) else (made,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert mine.shape == np.shape(theirs)
            assert mine.dtype == np.asarray(theirs).dtype or function in (dot_and_sum, changed_and_returned, returned_first)
            np.testing.assert_allclose(mine, theirs, rtol=2e-3 if mine.dtype == np.float16 else 2e-5, atol=1e-6)


def own_names(x, count):
    """Names that stand for something else from a line on, and are no arrays of the caller's."""
    count += 1
    x = x - mean_of_last(x)
    x /= 2
    x[0] = 0

    def squared(y):
        y = y * y
        y += count
        return y
    y = squared(x)
    return y


@caten.op
def decorated(x):
    return x + 1.0


def calls_decorated(x):
    return decorated(x) * 2


shape = np.ones(3)


def own_shape(x):
    """Its variable has the name of an attribute, and of an array of the module."""
    shape = x.shape[0] * 1.0
    return x / shape


def test_what_is_changed_is_the_caller_s_array_until_its_name_is_given_away(tool: Any) -> None:
    tool("gcc")
    given = X.copy()
    np.testing.assert_allclose(with_gcc(own_names)(given, 2.0), own_names(X.copy(), 2.0), rtol=1e-5)
    assert np.array_equal(given, X)
    with pytest.raises(CatenError, match="E671: 'x' is changed in place, and stands for something else later"):
        caten.op(given_away)(X)


def given_away(x):
    x += 1
    x = x * 2
    return x


def test_names_of_the_module(tool: Any) -> None:
    tool("gcc")
    np.testing.assert_allclose(with_gcc(own_shape)(X), own_shape(X), rtol=1e-5)
    np.testing.assert_allclose(with_gcc(calls_decorated)(X), (X + 1) * 2, rtol=1e-6)


def raised(x, *, by=1):
    return x * by


def test_static_values_that_are_equal_and_not_the_same(tool: Any) -> None:
    """1, 1.0 and True."""
    tool("gcc")
    f, whole = with_gcc(raised), np.arange(3)
    assert f(whole, by=2).tolist() == [0, 2, 4]
    assert [f(whole, by=by).dtype for by in (2.0, 2)] == [np.float64, np.int64]


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_sizes_by_name(tool: Any) -> None:
    tool("gcc")
    assert with_gcc(by_size)(np.ones(4)).tolist() == [0, 1, 2, 3]


def test_a_kernel_for_each_kind_of_arguments(tool: Any) -> None:
    """Types, ranks, extents of one and equal extents make a kernel; other extents do not."""
    tool("gcc")
    f = with_gcc(product)

    def operator(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return f.operator(*[np.ones(s, dtype) for s in shapes])
    first = operator((2, 3), (3, 4))
    assert operator((7, 5), (5, 6)) is first
    assert operator((3, 3), (3, 4)) is not first
    assert operator((2, 1), (1, 4)) is not first
    assert operator((2, 3), (3, 4), dtype=np.float64) is not first
    assert "N0 N1" in f.spec


def test_the_spec_is_what_it_stands_for(tool: Any) -> None:
    tool("gcc")
    text = with_gcc(layer_norm).spec
    assert 'inputs = ["x{f32}[M N]", "g{f32}[N]", "b{f32}[N]"]' in text
    assert "Layer norm of each row." in text
    np.testing.assert_allclose(caten.compile(text, runtime="gcc")(X, V, W), layer_norm(X, V, W), rtol=1e-5, atol=1e-6)
    f = with_gcc(softmax)
    assert 'outputs = ["result{f64}[N0]"]' in f.spec_of(np.ones(3), axis=0)
    with pytest.raises(CatenError, match=r"E673: the type of 'x' is not known before the first call"):
        _ = f.spec
    f(X)
    assert "axis = -1" in f.spec


def test_nothing_is_executed(tool: Any) -> None:
    tool("gcc")
    seen = []

    @with_gcc
    def noted(x):
        return x + 1.0
    assert noted(V).shape == (5,)
    assert not seen
    assert noted.__name__ == "noted"
    assert inspect.signature(noted).parameters.keys() == {"x"}


def test_options_of_compile(tool: Any) -> None:
    tool("gcc")
    f = caten.op(runtime="gcc", opt=0)(softmax)
    np.testing.assert_allclose(f(X), softmax(X), rtol=1e-5)
    assert f.operator(X).manifest["runtime"] == "gcc"
    with pytest.raises(CatenError, match=r"E668: caten.op: opt is 9"):
        caten.op(opt=9)


def in_process(x: np.ndarray) -> Any:
    return with_gcc(softmax)(x)


def test_other_processes(tool: Any) -> None:
    tool("gcc")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_allclose(pool.map(in_process, [X])[0], softmax(X), rtol=1e-5)


def line_of(word: str) -> int:
    return next(n for n, line in enumerate(inspect.getsource(inspect.getmodule(line_of)).splitlines(), 1) if re.search(word, line))


def wrong_function(x):
    return np.sofmax(x)                                                      # here: sofmax


def wrong_shapes(x: caten.f32["3 M"], y: caten.f32["2 M"]):
    return x + y                                                             # here: shapes


def wrong_helper(x):
    return fails_inside(x)


def fails_inside(x):
    return x.nothing()                                                       # here: nothing


def of_array(x):
    return x * WEIGHTS                                                       # here: WEIGHTS


def of_module(x):
    return random.random() * x                                               # here: random


def nothing_returned(x):                                                     # here: returns nothing
    y = 2 * x                                                                # noqa: F841


def open_ended(x):
    if x[0, 0] > 0:
        return x * 2                                                         # here: open ended


def many(*x):                                                                # here: many
    return x


def uneven(x):
    if x.shape[0] == 1:
        return x, x                                                          # here: uneven
    return x


def generator(x):
    yield x                                                                  # here: generator


def bad_annotation(x: caten.f32["M ]"]):       # here: annotation
    return x


def gathers(x, at):
    y = np.zeros(at.shape[0], np.float32)
    for i in range(at.shape[0]):
        y[i] = x[at[i]]                                                      # here: outside
    return y


@pytest.mark.parametrize(("function", "code", "word"), [
    (wrong_function, "E221", "here: sofmax"), (wrong_shapes, "E320", "here: shapes"), (wrong_helper, "E221", "here: nothing"),
    (of_array, "E672", "here: WEIGHTS"), (of_module, "E672", "here: random"), (nothing_returned, "E674", "here: returns nothing"), (many, "E671", "here: many"), (open_ended, "E671", "here: open ended"),
    (uneven, "E671", "here: uneven"), (generator, "E671", "here: generator"), (bad_annotation, "E1", "here: annotation"),
])
def test_errors_at_the_lines_of_the_function(function: Any, code: str, word: str) -> None:
    f = caten.op(function)
    arguments = [X, X[:2]][:len(inspect.signature(function).parameters)]
    with pytest.raises(CatenError) as caught:
        f(*arguments)
    (first, *_) = caught.value.diagnostics
    assert first.code.startswith(code), first
    assert first.place is not None
    assert (first.place.file, first.place.line) == (__file__, line_of(word)), first
    assert first.place.text[first.place.column - 1:].strip(), "the caret is below a word"


def test_a_failing_call_tells_the_line(tool: Any) -> None:
    tool("gcc")
    with pytest.raises(CatenError, match=rf"test_op_functions.py:{line_of('here: outside')}:.*outside"):
        with_gcc(gathers)(V, np.array([0, 9]))


@pytest.mark.parametrize(("made", "message"), [
    (lambda: caten.op(lambda x: x)(X), "E671: caten.op takes a function that 'def' makes, not a lambda"),
    (lambda: caten.op(len)(X), "E671"),
    (lambda: caten.op(FunctionType(product.__code__.replace(co_filename="nowhere"), {}))(X, X), "E671: the source of"),
    (lambda: caten.op(softmax)([1.0, 2.0]), r"E673: 'x' is \[1.0, 2.0\], a list; a kernel takes arrays and numbers"),
    (lambda: caten.op(softmax)(np.array(["a"])), "E673: 'x' has elements of type <U1"),
    (lambda: caten.op(softmax)(X, axis=X), "(?s)E673: 'axis' is .* an? ndarray; what is known .* is a number, a text or a tuple"),
])
def test_what_is_refused(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(CatenError, match=message):
        made()


def test_arguments_as_of_any_function() -> None:
    with pytest.raises(TypeError, match=r"missing a required argument"):
        caten.op(product)(X)
    with pytest.raises(TypeError, match=r"multiple values|unexpected"):
        caten.op(product)(X, X, A=X)


def test_a_function_that_writes_out_how_many_elements_there_are_has_a_kernel_for_each_shape() -> None:
    """Its indices are no quotients of sizes then."""
    @caten.op(runtime="gcc")
    def heads(x: Any) -> Any:
        return x.transpose(0, 2, 1, 3).reshape(6, 4, 5)

    for shape in ((2, 4, 3, 5), (3, 4, 2, 5), (1, 10, 3, 4)):
        x = np.arange(120, dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(heads(x), x.transpose(0, 2, 1, 3).reshape(6, 4, 5))
        assert {*heads.operator(x).manifest["binds"].values()} == {n for n in shape if n != 1}
        assert "floordiv" not in heads.operator(x).manifest["schedule"]
    with pytest.raises(caten.CatenError, match="does not hold"):
        heads(np.zeros((1, 2, 3, 4), np.float32))

    @caten.op(runtime="gcc")
    def known(x: Any) -> Any:
        return x.reshape(x.shape[0] * x.shape[1])
    assert known(np.ones((2, 3))).shape == (6,)
    assert known.operator(np.ones((2, 3))).manifest["binds"] == {}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_loop_without_iterations_leaves_what_it_changes_elsewhere(count: int) -> None:
    """An extent of 1 is a number for the kernel, so that the loop is known to be empty."""
    @caten.op(runtime="numpy")
    def differences(x):
        for i in range(1, len(x)):
            x[i] -= x[i - 1]

    @caten.op(runtime="numpy")
    def transpose(a):
        for i in range(a.shape[0]):
            for j in range(i):
                a[i, j], a[j, i] = a[j, i], a[i, j]
    x = np.arange(count).astype(np.float32) ** 2
    want = x.copy()
    for i in range(1, count):
        want[i] -= want[i - 1]
    differences(x)
    np.testing.assert_array_equal(x, want)
    square = np.arange(count * count).astype(np.float32).reshape(count, count)
    want = square.T.copy()
    transpose(square)
    np.testing.assert_array_equal(square, want)


def ends(x: Any) -> Any:
    y = np.zeros_like(x)
    y[-3:] = x[:3]
    y[5:] += 1
    return y, x[:5], x[-5:], x[2:100] * 2, x[5::-2], x[1:] - x[:-1], (x[:4] * x[-4:]).sum()


@pytest.mark.parametrize("count", [9, 5, 3, 1, 0])
def test_slices_end_with_the_array(count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    for made, wanted in zip(caten.op(ends)(x), ends(x), strict=True):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((3,), (2, 4)), ((2, 3), (4,)), ((2, 3), (4, 5)), ((2, 1, 3), (4, 5)), ((), (3,)), ((0,), (3,))])
def test_kronecker_products(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes)

    def kron(x: Any, y: Any) -> Any:
        return np.kron(x, y)
    np.testing.assert_array_equal(caten.op(kron)(x, y), np.kron(x, y))


def slopes_too(x): return 2 * x, *np.gradient(x)
def in_two_parts(x): return np.modf(x)
def under_a_name(x):
    parts = np.gradient(x)
    return parts
def in_either_branch(x):
    if x.sum() > 0:
        return np.modf(x)
    return x, 2 * x
def after_a_change(x):
    x[0] = 1
    return x, *np.gradient(x)
def of_what_was_changed(x):
    x[0] = 1
    return np.modf(x)


@pytest.mark.parametrize("function", [slopes_too, in_two_parts, under_a_name, in_either_branch, after_a_change, of_what_was_changed])
def test_as_many_values_are_returned_as_the_body_has(function: Callable[..., Any]) -> None:
    x, y = (np.linspace(-1.0, 2.0, 12).reshape(4, 3) for _ in range(2))
    for found, wanted in zip(caten.op(function, runtime="numpy")(x), function(y), strict=True):
        np.testing.assert_allclose(found, wanted)
    np.testing.assert_array_equal(x, y)
