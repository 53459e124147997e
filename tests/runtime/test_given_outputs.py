"""Outputs of a call: by position, by name, in `out=` as an array, a tuple or a dict; and contradictions among these."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_calls import FILL, FILL_C, SCALE, SCALE_C, SWAP, SWAP_C, Native, one, refused

from caten.errors import CatenError

# Declared in one order, returned in the other.
PAIR = "(loop Pair (outputs Q P) (size N) (buffer X i32 (N) (0) in) (buffer P i32 (N) (0) out) (buffer Q i32 (N) (0) out) (kernel pair))"
PAIR_C = "int32_t ct_pair(const int32_t *X, int32_t *P, int32_t *Q, int64_t N) { for (int64_t i = 0; i < N; i++) { P[i] = X[i]; Q[i] = -X[i]; } return 0; }\n"
# An output that is called out.
DOUBLE = "(loop Double (size N) (buffer X i32 (N) (0) in) (buffer out i32 (N) (0) out) (kernel double))"
DOUBLE_C = "int32_t ct_double(const int32_t *X, int32_t *out, int64_t N) { for (int64_t i = 0; i < N; i++) out[i] = 2 * X[i]; return 0; }\n"
X = np.array([1, 2], np.int32)

WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "by position": lambda pair, q, p: pair(X, q, p),
    "by name": lambda pair, q, p: pair(X, P=p, Q=q),
    "by position and by name": lambda pair, q, p: pair(X, q, P=p),
    "a tuple": lambda pair, q, p: pair(X, out=(q, p)),
    "a dict": lambda pair, q, p: pair(X, out={"P": p, "Q": q}),
    "out= and by name": lambda pair, q, p: pair(X, P=p, out={"Q": q}),
    "out= and by position": lambda pair, q, p: pair(X, q, out=(None, p)),
}


@pytest.mark.parametrize("way", WAYS)
def test_outputs_are_given_in_every_way(native: Native, way: str) -> None:
    pair, p, q = one(native, PAIR_C, PAIR), np.zeros(2, np.int32), np.zeros(2, np.int32)
    for _ in range(3):                                                       # from the second call on it goes another way
        p[:], q[:] = 0, 0
        first, second = WAYS[way](pair, q, p)
        assert first is q
        assert second is p
        assert (q.tolist(), p.tolist()) == ([-1, -2], [1, 2])
    assert WAYS[way](pair.bind, q, p)()[0] is q


def test_outputs_that_are_not_given_are_allocated(native: Native) -> None:
    pair, p = one(native, PAIR_C, PAIR), np.zeros(2, np.int32)
    for got in (pair(X, P=p), pair(X, None, p), pair(X, out={"P": p}), pair(X, out=(None, p)), pair(X, out={"P": p, "Q": None})):
        assert got[1] is p
        assert got[0].tolist() == [-1, -2]
    assert pair(X, out=None)[1].tolist() == [1, 2]


def test_outputs_of_any_layout_are_written_through_a_copy(native: Native) -> None:
    scale, x = one(native, SCALE_C, SCALE), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    wide, s = np.zeros((2, 6)), np.zeros(())
    for call in (lambda: scale(x, 2, wide[:, ::2], s), lambda: scale(x, 2, Y=wide[:, ::2]), lambda: scale(x, 2, out={"Y": wide[:, ::2]})):
        wide[:] = 0
        call()
        np.testing.assert_array_equal(wide[:, ::2], 2 * x)
        assert not wide[:, 1::2].any()


def test_an_output_may_be_called_out(native: Native) -> None:
    double, y = one(native, DOUBLE_C, DOUBLE), np.zeros(2, np.int32)
    for got in (double(X, y), double(X, out=y), double(X, out=(y,)), double(X, out={"out": y})):
        assert got is y
        assert y.tolist() == [2, 4]
    refused("E700", "out was given twice", lambda: double(X, y, out=y))
    refused("E700", "out was given twice", lambda: double(X, y, out=(y,)))


def test_contradictions_are_refused(native: Native) -> None:
    pair, p, q = one(native, PAIR_C, PAIR), np.zeros(2, np.int32), np.zeros(2, np.int32)
    refused("E700", "Q was given twice", lambda: pair(X, q, Q=q))
    refused("E700", "the output Q was given twice, once in out=", lambda: pair(X, q, out=(q, p)))
    refused("E700", "the output P was given twice, once in out=", lambda: pair(X, P=p, out={"P": p}))
    refused("E700", "Pair takes 3 arguments, X, Q, P; 4 were given", lambda: pair(X, q, p, p))
    refused("E700", "out= has the key 'R', which is no output", lambda: pair(X, out={"R": p}))
    refused("E700", "out= has the key 0, which is no output", lambda: pair(X, out={0: p}))
    refused("E713", "out= takes 2 arrays, Q, P; 1 were given", lambda: pair(X, out=p))
    refused("E713", "out= takes 2 arrays, Q, P; 3 were given", lambda: pair(X, out=(p, q, p)))
    refused("E713", "the outputs P and Q share memory", lambda: pair(X, p, p))
    refused("E701", "Y must be an array", lambda: one(native, FILL_C, FILL)(1, False, 0, 7, N=1))
    swap = one(native, SWAP_C, SWAP)
    refused("E700", "Swap has no argument out", lambda: swap(p, q, out={"P": p}))
    with pytest.raises(CatenError, match="the call updates Q, P in place"):
        swap(p, q, out={"P": p})
    with pytest.raises(CatenError) as caught:
        one(native, SCALE_C, SCALE)(np.zeros((1, 3)), 1, out={"alpha": p})
    assert caught.value.diagnostics[0].hint == "alpha is an input: give it in its place"
