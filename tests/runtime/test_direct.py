"""Direct calls: the C function beside an operator that Python calls takes what is exactly right, and leaves everything else to the long way."""
from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from caten.bindings.cpython import C_TYPES, ELEMENTS, direct_c, operator_c
from caten.core.dtypes import DTYPES, is_packed
from caten.core.numpy_types import numpy_dtype
from caten.errors import CatenError
from caten.runtime import cpython_loader
from caten.runtime.call import Operator, callables
from caten.runtime.library import Library

Native = Callable[..., Library]

# Every argument kind at once: an array by columns, numbers, an output that is returned.
MIX = ("(loop Mix (size M) (size N) (buffer X f64 (M N) (1 0) in) (scalar a f32) (scalar n i8) (scalar u u64)"
       " (buffer Y f64 (N (+ M 1)) (0 1) out) (kernel mix))")
MIX_C = """
int32_t ct_mix(const double *X, float a, int8_t n, uint64_t u, double *Y, int64_t M, int64_t N) {
  for (int64_t j = 0; j < N; j++) for (int64_t i = 0; i <= M; i++) Y[j * (M + 1) + i] = i < M ? a * X[j * M + i] + n : (double)u;
  return 0;
}
"""
PAIR = "(loop Pair (outputs Q P) (size N) (buffer X i32 (N) (0) in) (buffer P i32 (N) (0) out) (buffer Q i32 (N) (0) out) (kernel pair))"
PAIR_C = """
int32_t ct_pair(const int32_t *X, int32_t *P, int32_t *Q, int64_t N) {
  if (N == 13) return 1;
  for (int64_t i = 0; i < N; i++) { P[i] = X[i]; Q[i] = -X[i]; }
  return 0;
}
"""


def watched(native: Native, c: str, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Operator, list[Any]]:
    """An operator, and a list that grows with every call that goes the long way."""
    found = callables(native(c, text))
    assert isinstance(found, Operator)
    long: list[Any] = []
    way = found._called
    monkeypatch.setattr(found, "_called", lambda *given: (long.append(given), way(*given))[1])
    return found, long


@pytest.fixture
def mix(native: Native, monkeypatch: pytest.MonkeyPatch) -> tuple[Operator, list[Any]]:
    return watched(native, MIX_C, MIX, monkeypatch)


def given(m: int = 3, n: int = 2) -> Any:
    return np.asfortranarray(np.arange(m * n, dtype=np.float64).reshape(m, n))


def expected(x: Any, a: float, n: int, u: int) -> Any:
    return np.concatenate([a * x.T + n, np.full((x.shape[1], 1), float(u))], 1)


def test_the_second_call_is_direct_for_all_kinds_of_arguments(mix: tuple[Operator, list[Any]]) -> None:
    call, long = mix
    for x in (given(), given(4, 1), given(0, 2), given(3, 0)):
        np.testing.assert_array_equal(call(x, 0.5, -3, 7), expected(x, 0.5, -3, 7))
        y = np.empty((x.shape[1], x.shape[0] + 1))
        assert call(x, 2, u=2**63 - 1, n=1, out=y) is y
        np.testing.assert_array_equal(y, expected(x, 2.0, 1, 2**63 - 1))
    assert len(long) == 1


def test_an_output_in_its_place_is_taken_directly(mix: tuple[Operator, list[Any]]) -> None:
    call, long = mix
    x, y = given(), np.empty((2, 4))
    for _ in range(2):
        assert call(x, 0.5, -3, 7, y) is y
        np.testing.assert_array_equal(y, expected(x, 0.5, -3, 7))
    assert len(long) == 1
    np.testing.assert_array_equal(call(x, 0.5, 1, 7, None), expected(x, 0.5, 1, 7))
    for twice in ({"out": y}, {"Y": y}):
        with pytest.raises(CatenError, match="given twice"):
            call(x, 0.5, -3, 7, y, **twice)
    with pytest.raises(CatenError, match="E705"):
        call(x, 0.5, -3, 7, y[:1])
    with pytest.raises(CatenError, match="E700"):
        call(x, 0.5, -3, 7, y, y)


def test_numbers_of_numpy_are_taken_directly(mix: tuple[Operator, list[Any]]) -> None:
    call, long = mix
    for a in (0.5, -0.25, float("nan"), float("inf")):
        np.testing.assert_array_equal(call(given() + 1, np.float32(a), 1, 1), expected(given() + 1, a, 1, 1))
    assert len(long) == 1


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64"])
def test_numbers_of_numpy_of_the_same_type_are_taken_directly(native: Native, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    kind, word = numpy_dtype(dtype).type, C_TYPES[dtype]
    fill = f"int32_t ct_fill({word} a, {word} *Y, int64_t N) {{ for (int64_t i = 0; i < N; i++) Y[i] = a; return 0; }}"
    call, long = watched(native, fill, f"(loop Fill (size N) (scalar a {dtype}) (buffer Y {dtype} (N) (0) inout) (kernel fill))", monkeypatch)
    y = np.zeros(2, kind)
    for a in (kind(3), kind(-7), 5, kind(2)):
        assert call(a, y).tolist() == [a, a]
    assert len(long) == 1


FILL = "int32_t ct_fill(const float *X, float *Y, {sizes}) {{ for (int64_t i = 0; i < {count}; i++) Y[i] = X[0] + i; return 0; }}"


@pytest.mark.parametrize(("shape", "formula", "sizes", "cases"), [
    ("((* 2 N))", "(N)", "N", [((2,), (1,)), ((6,), (3,)), ((0,), (0,))]),
    ("(N)", "((+ (floordiv (- N 3) 2) 1))", "N", [((3,), (1,)), ((8,), (3,)), ((9,), (4,)), ((1,), (0,))]),
    ("(N)", "((+ (mod (- N 3) 4) (max 0 (min N 5))))", "N", [((1,), (3,)), ((7,), (5,))]),
    ("(M N)", "((* M N))", "M N", [((2, 3), (6,)), ((1, 0), (0,))]),
    ("(N M)", "((* M (* N 2)))", "M N", [((2, 3), (12,))]),
])
def test_shapes_that_are_computed_are_taken_directly(native: Native, monkeypatch: pytest.MonkeyPatch, shape: str, formula: str, sizes: str,
                                                     cases: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    axes = " ".join(map(str, range(len(sizes.split()))))
    text = f"(loop Fill {' '.join(f'(size {n})' for n in sizes.split())} (buffer X f32 {shape} ({axes}) in) (buffer Y f32 {formula} (0) out) (kernel fill))"
    for given_shape, made in cases:
        c = FILL.format(sizes=", ".join(f"int64_t {n}" for n in sizes.split()), count=made[0] if 0 not in given_shape else 0)
        call, long = watched(native, c, text, monkeypatch)
        for _ in range(3):
            assert call(np.ones(given_shape, np.float32)).shape == made
        assert len(long) == 1
    if shape == "((* 2 N))":
        with pytest.raises(CatenError, match=r"2 N|\(\* 2 N\)"):
            call(np.ones(5, np.float32))


class Own(np.ndarray[Any, Any]):
    """An array of another class."""


class Claims(Own):
    """An array that says of itself what is not so."""

    ndim = 3


@pytest.mark.parametrize("other", [
    lambda x, y: (x.view(Own), 1.0, 1, 1, y),
    lambda x, y: (np.ascontiguousarray(x), 1.0, 1, 1, y),
    lambda x, y: (np.asfortranarray(np.repeat(x, 2, 0))[::2], 1.0, 1, 1, y),
    lambda x, y: (memoryview(x), 1.0, 1, 1, y),
    lambda x, y: (x, np.float64(1), 1, 1, y),
    lambda x, y: (x, 1.0, np.int8(1), 1, y),
    lambda x, y: (x, True, 1, 1, y),
    lambda x, y: (x, 1.0, 1, 2**64 - 1, y),
    lambda x, y: (x, 1.0, 1, 1, np.asfortranarray(y)),
])
def test_what_is_merely_valid_goes_the_long_way_to_the_same_result(mix: tuple[Operator, list[Any]], other: Any) -> None:
    call, long = mix
    call(given(), 1.0, 1, 1)
    x, a, n, u, y = other(given(), np.empty((2, 4)))
    np.testing.assert_array_equal(call(x, a, n, u, out=y), expected(given(), float(a), int(n), u))
    assert len(long) == 2


@pytest.mark.parametrize(("code", "wrong"), [
    ("E700", lambda call, x, y: call(x, 1.0, 1)), ("E700", lambda call, x, y: call(x, 1.0, 1, 1, y, y)), ("E700", lambda call, x, y: call(x, 1.0, 1, 1, a=1.0)),
    ("E700", lambda call, x, y: call(x, 1.0, 1, 1, b=1)), ("E701", lambda call, x, y: call([1.0], 1.0, 1, 1)),
    ("E701", lambda call, x, y: call(np.ndarray, 1.0, 1, 1)),
    ("E702", lambda call, x, y: call(x.astype(">f8"), 1.0, 1, 1)), ("E702", lambda call, x, y: call(x.view("M8[s]"), 1.0, 1, 1)),
    ("E702", lambda call, x, y: call(x.view(np.int64), 1.0, 1, 1)), ("E703", lambda call, x, y: call(x[0], 1.0, 1, 1)),
    ("E704", lambda call, x, y: call(x, 1.0, 1, 1, out=y[:, :3])), ("E708", lambda call, x, y: call(x, "1", 1, 1)),
    ("E708", lambda call, x, y: call(x, 1.0, 1.0, 1)), ("E709", lambda call, x, y: call(x, 1e39, 1, 1)), ("E709", lambda call, x, y: call(x, 10**400, 1, 1)),
    ("E709", lambda call, x, y: call(x, 1.0, 128, 1)), ("E709", lambda call, x, y: call(x, 1.0, -129, 1)), ("E709", lambda call, x, y: call(x, 1.0, 1, -1)),
    ("E709", lambda call, x, y: call(x, 1.0, 1, 2**64)), ("E704", lambda call, x, y: call(np.empty((2**41, 0), order="F"), 1.0, 1, 1)),
])
def test_what_is_wrong_is_refused_as_ever(mix: tuple[Operator, list[Any]], code: str, wrong: Any) -> None:
    call, _ = mix
    call(given(), 1.0, 1, 1)
    with pytest.raises(CatenError) as caught:
        wrong(call, given(), np.empty((2, 4)))
    assert caught.value.diagnostics[0].code == code, caught.value


def test_a_read_only_output_is_refused(mix: tuple[Operator, list[Any]]) -> None:
    call, _ = mix
    y = call(given(), 1.0, 1, 1)
    y.flags.writeable = False
    with pytest.raises(CatenError, match="read-only"):
        call(given(), 1.0, 1, 1, out=y)


def test_an_output_over_an_input_is_computed_from_a_copy(mix: tuple[Operator, list[Any]]) -> None:
    call, _ = mix
    call(given(), 1.0, 1, 1)
    memory = np.arange(9.0)
    x, y = memory[:6].reshape(2, 3).T, memory[1:].reshape(2, 4)
    np.testing.assert_array_equal(call(x, 1.0, 0, 1, out=y), expected(np.arange(6.0).reshape(2, 3).T, 1.0, 0, 1))


def test_infinity_and_nan_are_numbers(mix: tuple[Operator, list[Any]]) -> None:
    call, long = mix
    for a in (1.0, float("inf"), float("nan")):
        np.testing.assert_array_equal(call(given() + 1, a, 0, 0), expected(given() + 1, a, 0, 0))
    assert len(long) == 1


def test_several_outputs_are_returned_in_the_order_of_the_spec(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, long = watched(native, PAIR_C, PAIR, monkeypatch)
    for _ in range(3):
        q, p = pair(np.array([1, 2], np.int32))
        assert (q.tolist(), p.tolist()) == ([-1, -2], [1, 2])
    assert len(long) == 1


def test_a_failed_check_is_raised(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, long = watched(native, PAIR_C, PAIR, monkeypatch)
    pair(np.zeros(1, np.int32))
    for _ in range(2):
        with pytest.raises(Exception, match=r"Pair: check 1") as caught:
            pair(np.zeros(13, np.int32))
        assert caught.value.diagnostics[0].code == "E711"  # type: ignore[attr-defined]
    assert len(long) == 1


def test_nothing_is_kept_of_arguments_and_results(native: Native) -> None:
    pair = callables(native(PAIR_C, PAIR))
    assert isinstance(pair, Operator)
    x, thirteen = np.zeros(3, np.int32), np.zeros(13, np.int32)

    def counts() -> list[int]:
        q, p = pair(x)
        for wrong in (thirteen, x[::2], None):
            with contextlib.suppress(CatenError):
                pair(wrong)
        gc.collect()
        return [sys.getrefcount(a) for a in (x, thirteen, q, p, pair)]
    first = counts()
    assert [counts() for _ in range(5)] == [first] * 5


def test_an_operator_may_be_forgotten_and_its_library_closed(native: Native) -> None:
    found = callables(native(PAIR_C, PAIR))
    assert isinstance(found, Operator)
    found(np.zeros(1, np.int32))
    found(np.zeros(1, np.int32))
    gone = weakref.ref(found)
    del found
    gc.collect()
    assert gone() is None


def test_a_library_without_direct_functions_is_called_the_long_way(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    library = native(PAIR_C, PAIR)
    found = callables(replace(library, entries={n: replace(e, direct=None) for n, e in library.entries.items()}))
    assert isinstance(found, Operator)
    for _ in range(3):
        assert found(np.array([4], np.int32))[0].tolist() == [-4]


def test_the_table_of_element_types_has_all_that_numpy_has() -> None:
    assert set(ELEMENTS) == {d.name for d in DTYPES.values() if d.numpy in (d.kind, f"{d.kind}{d.bits}") and not is_packed(d.name)}


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_every_element_type_of_numpy_is_taken_directly(native: Native, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    size, numpy_type = DTYPES[dtype].bytes, numpy_dtype(dtype)
    copy = f"#include <string.h>\nint32_t ct_copy(const void *X, void *Y, int64_t N) {{ memcpy(Y, X, (size_t)N * {size}); return 0; }}"
    call, long = watched(native, copy, f"(loop Copy (size N) (buffer X {dtype} (N) (0) in) (buffer Y {dtype} (N) (0) out) (kernel copy))", monkeypatch)
    x = np.array([1, 0, 1]).astype(numpy_type)
    same = [t for letter in np.typecodes["All"] if (t := np.dtype(letter)).name == numpy_type.name]      # `long` and `long long` may be two of them
    for t in (numpy_type, *same):
        np.testing.assert_array_equal(call(x.astype(t)), x)
    assert len(long) == 1
    with pytest.raises(CatenError):
        call(x.astype("f4" if dtype != "f32" else "f8"))


def test_where_arrays_lie_otherwise_in_memory_calls_go_the_long_way(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpython_loader, "_lie_as_expected", lambda *_: False)
    cpython_loader._python.cache_clear()
    try:
        pair, long = watched(native, PAIR_C, PAIR, monkeypatch)
        assert [pair(np.array([n], np.int32))[1].tolist() for n in range(3)] == [[0], [1], [2]]
        assert len(long) == 3
    finally:
        cpython_loader._python.cache_clear()


def test_what_lies_otherwise_is_found() -> None:
    array = np.zeros((2, 3), np.float32)
    assert cpython_loader._lie_as_expected(array)
    assert not cpython_loader._lie_as_expected(array, array.view(Claims))


@pytest.mark.parametrize("text", [
    "(loop S (size M) (size N) (buffer A f32 (M N) (0 1) in A_stride0 1) (buffer B f32 (M N) (0 1) inout) (scalar A_stride0 i64) (kernel c))",
    "(loop S (size N) (scalar v i8) (buffer Y i32 (N) (0) out) (kernel f))",
    "(loop S (size N) (scalar z c64) (buffer Y c64 (N) (0) inout) (kernel f))",
    "(loop S (size N) (buffer X f32 (N) (0) inout) (buffer Y f32 ((floordiv 64 (max N 1))) (0) inout) (kernel f))",
    "(loop S (size N) (buffer Y f32 ((+ N N)) (0) inout) (kernel f))",
    "(loop S (size M) (size N) (size K) (buffer Y f32 (M N K) (1 0 2) inout) (kernel f))",
])
def test_operators_that_take_more_have_no_direct_function(describe: Callable[..., dict[str, Any]], text: str) -> None:
    manifest = describe(text)
    assert operator_c(manifest) == ""
    assert direct_c([manifest]) == ""


@pytest.mark.parametrize(("extent", "term"), [("(+ N 1)", 1), ("(+ 2 N)", 2), ("(- N 1)", -1)])
def test_a_size_may_be_an_extent_but_for_a_constant(native: Native, monkeypatch: pytest.MonkeyPatch, extent: str, term: int) -> None:
    call, long = watched(native, """
int32_t ct_ends(const double *X, double *Y, int64_t N) { Y[0] = N; return N < 0 ? 1 : 0; }
""", f"(loop Ends (size N) (buffer X f64 ({extent}) (0) in) (buffer Y f64 ({extent}) (0) inout) (kernel ends))", monkeypatch)
    for length in (5, 3, 9):
        assert call(np.zeros(length), np.zeros(length))[0] == length - term
    assert len(long) == 1
    for wrong in ((np.zeros(3), np.zeros(4)), (np.zeros(0), np.zeros(0)))[:2 if term > 0 else 1]:
        with pytest.raises(CatenError) as caught:
            call(*wrong)
        assert caught.value.diagnostics[0].code == "E704"
