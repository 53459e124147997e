"""Calls that are refused: each with its code and text."""
from __future__ import annotations

import numpy as np
import pytest
from native_calls import FILL, FILL_C, SCALE, SCALE_C, Native, matrices, one, refused

import caten
from caten.errors import CatenError, OutOfMemory
from caten.runtime.call import Operator


def test_wrong_arguments_are_refused(gemm: Operator) -> None:
    a, b, c = matrices()
    frozen = c.copy()
    frozen.flags.writeable = False
    refused("E700", "C missing", lambda: gemm(a, b))
    refused("E700", "takes 3 arguments", lambda: gemm(a, b, c, c))
    refused("E700", "A was given twice", lambda: gemm(a, b, A=c))
    refused("E700", "no argument D", lambda: gemm(a, b, c, D=1))
    refused("E700", "no argument out", lambda: gemm(a, b, c, out=c))
    refused("E701", "A must be an array of float32[M, K], not None", lambda: gemm(None, b, c))
    refused("E701", "B must be an array of float32[K, N], not a list", lambda: gemm(a, [[1.0]], c))
    gemm(a, b, c)
    refused("E701", "A is a masked array", lambda: gemm(np.ma.masked_array(a), b, c))
    refused("E702", "B must have elements of type float32, and has float64", lambda: gemm(a, b.astype(float), c))
    refused("E702", "in the other byte order", lambda: gemm(a, b.astype(">f4"), c))
    refused("E703", "A must be float32[M, K], and has the shape (20,)", lambda: gemm(a.ravel(), b, c))
    refused("E705", "the size K is 4 by axis 1 of A, and 3 by axis 0 of B", lambda: gemm(a, b[:3], c))
    refused("E706", "C is written, but the given array is read-only", lambda: gemm(a, b, frozen))
    gemm(a, b, c)
    refused("E706", "read-only", lambda: gemm(a, b, frozen))  # also where calls are direct
    refused("E705", "the size K", lambda: gemm(a, b[:3], c))


def test_literal_extents_are_compared(native: Native) -> None:
    scale = one(native, SCALE_C, SCALE)
    refused("E704", "axis 1 of X must be 3, and is 4", lambda: scale(np.zeros((2, 4)), 1))


def test_scalars_are_checked(native: Native) -> None:
    fill, scale = one(native, FILL_C, FILL), one(native, SCALE_C, SCALE)
    out = np.empty(2, np.int32)
    for _ in range(2):
        refused("E708", "v must be an integer, not a float", lambda: fill(1.0, True, 0, out=out))
        refused("E709", "v is 128, outside the range of int8, -128 to 127", lambda: fill(128, True, 0, out=out))
        refused("E708", "b must be True or False, not a int", lambda: fill(1, 1, 0, out=out))
        refused("E708", "z must be a complex number, not a str", lambda: fill(1, True, "0", out=out))
        fill(1, True, 0, out=out)
    x = np.zeros((1, 3))
    for bad in ("1", None, 1j, np.complex64(1), object()):
        refused("E708", "alpha must be a number", lambda bad=bad: scale(x, bad))
    refused("E709", "alpha", lambda: scale(x, 10**400))
    assert np.isnan(scale(x, float("nan"))[1])


def test_a_failed_check_carries_its_text(gemm: Operator) -> None:
    for _ in range(2):
        a, b, c = matrices(13)
        refused("E711", "Gemm: M is 13", lambda a=a, b=b, c=c: gemm(a, b, c))
    with pytest.raises(CatenError) as caught:
        gemm(*matrices(13))
    assert caught.value.diagnostics[0].notes == (("called with M = 13, K = 4, N = 3", None),)


def test_memory_that_cannot_be_had(gemm: Operator, native: Native) -> None:
    with pytest.raises(OutOfMemory) as caught:
        gemm(*matrices(14))
    assert isinstance(caught.value, MemoryError)
    assert caught.value.diagnostics[0].code == "E712"
    fill = one(native, FILL_C, FILL)
    refused("E712", "Y of shape", lambda: fill(1, True, 0, N=1 << 40))


@pytest.mark.parametrize(("body", "told"), [
    ("Y = X[np.arange(M), L]", r"X: index 2 \(= \(aref L i\)\) is outside \[-N, N\)"),
    ("Y = X[L, 0]", r"X: index 1 \(= \(aref L i\)\) is outside \[-M, M\)"),
    ("Y = np.take_along_axis(X, L[:, None], 1)[:, 0]", r"X: index 2 \(= \(aref L i\)\) is outside \[-N, N\)"),
    ("Y[:] = 0; np.maximum.at(Y, L, X[:, 0])", r"Y: index 1 \(= \(aref L i\w*\)\) is outside \[-M, M\)"),
    ("for i in range(M):\n  Y[i] = X[i, L[i]]", r"X: index 2 \(= \(aref L i\)\) is outside \[-N, N\)")])
def test_an_index_from_the_end_is_told_as_it_is_written(body: str, told: str) -> None:
    """At -O0 as at -O2."""
    text = f"[composite]\nname = 'Pick'\ninputs = ['X{{float}}[M N]', 'L{{int}}[M]']\noutputs = ['Y{{float}}[M]']\n[implementation]\nlang = 'python'\ncode = '''\n{body}\n'''"
    for opt in (0, 1, 2):
        pick = caten.compile(text, opt=opt)
        for label in (9, -9):
            with pytest.raises(caten.CatenError, match=f"E711: Pick: .*{told}"):
                pick(np.ones((3, 4), np.float32), np.array([0, label, -1]))
        assert pick(np.ones((3, 4), np.float32), np.array([0, -2, 2])).max() == 1
