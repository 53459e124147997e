"""Operators in hand-written C, and calls of them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from caten.errors import CatenError
from caten.runtime.call import Operator, callables
from caten.runtime.library import Library

Native = Callable[..., Library]

GEMM = ("(loop Gemm (size M) (size K) (size N) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)"
        ' (check 1 "M is 13") (doc "C <- A @ B + C") (kernel gemm))')
GEMM_C = """
int32_t ct_gemm(const float *A, const float *B, float *C, int64_t M, int64_t K, int64_t N) {
  if (M == 13) return 1;
  if (M == 14) return -1;
  for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < N; j++) for (int64_t p = 0; p < K; p++) C[i*N+j] += A[i*K+p] * B[p*N+j];
  return 0;
}
"""
# B is column major, y is a pure output of twice the length, alpha a number.
SCALE = ("(loop Scale (size M) (buffer X f64 (M 3) (1 0) in) (scalar alpha f64)"
         " (buffer Y f64 (M 3) (0 1) out) (buffer S f64 () () out) (kernel s))")
SCALE_C = """
int32_t ct_scale(const double *X, double alpha, double *Y, double *S, int64_t M) {
  *S = alpha;
  for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < 3; j++) Y[i*3+j] = alpha * X[j*M+i];
  return 0;
}
"""
FILL = "(loop Fill (size N) (scalar v i8) (scalar b bool) (scalar z c64) (buffer Y i32 ((* 2 N)) (0) out) (kernel f))"
FILL_C = """
typedef struct { float re, im; } ct_c64;
int32_t ct_fill(int8_t v, uint8_t b, ct_c64 z, int32_t *Y, int64_t N) {
  for (int64_t i = 0; i < 2 * N; i++) Y[i] = v + 100 * b + (int32_t)(1000 * z.re + 10000 * z.im);
  return 0;
}
"""
STRIDED = ("(loop Copy (size M) (size N) (buffer A f32 (M N) (0 1) in A_stride0 1)"
           " (buffer B f32 (M N) (0 1) inout) (scalar A_stride0 i64) (kernel c))")
STRIDED_C = """
int32_t ct_copy(const float *A, float *B, int64_t M, int64_t N, int64_t sA) {
  for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < N; j++) B[i*N+j] = A[i*sA+j] + 1000 * (sA != N);
  return 0;
}
"""
SWAP = "(loop Swap (outputs Q P) (size N) (buffer P i32 (N) (0) inout) (buffer Q i32 (N) (0) inout) (kernel s))"
SWAP_C = "int32_t ct_swap(int32_t *P, int32_t *Q, int64_t N) { for (int64_t i = 0; i < N; i++) { int32_t t = P[i]; P[i] = Q[i]; Q[i] = t; } return 0; }\n"
TAKE = "(loop Shifted (size N) (buffer X i32 (N) (0) in) (buffer Y i32 (N) (0) inout) (kernel s))"
TAKE_C = "int32_t ct_shifted(const int32_t *X, int32_t *Y, int64_t N) { for (int64_t i = 0; i < N; i++) Y[i] = (i ? X[i-1] : 0) + 1; return 0; }\n"


def one(native: Native, c: str, text: str) -> Operator:
    found = callables(native(c, text))
    assert isinstance(found, Operator)
    return found


def matrices(m: int = 5, k: int = 4, n: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    return tuple(rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))  # type: ignore[return-value]


def refused(code: str, text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(CatenError) as caught:
        call()
    assert caught.value.diagnostics[0].code == code, caught.value
    assert text in caught.value.diagnostics[0].message, caught.value
