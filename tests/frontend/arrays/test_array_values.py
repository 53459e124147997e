"""Values of whole-array bodies against numpy, element by element, at small sizes."""
from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from array_drawing import drawn_expression
from value_interpreter import OutsideError, evaluated, run, tolerance

from caten.core.dtypes import DTYPES
from caten.core.numpy_types import numpy_dtype
from caten.frontend.arrays import elementwise_functions as elementwise
from caten.frontend.arrays.whole_arrays import Evaluated

SIGNATURE = ("X f32 M N; Y f32 M N; D f64 M N; v f32 N; u f32 M; A f32 M K; W f32 K N; S f32 N N; T f32 2 M K; P f32 2 3 4; "
             "I i64 K; J i32 M N; J2 i32 M N; U u8 M; Q bool M N; q bool N; H f16 M N; a f32; n i64; d f64; out R f32 M N")
PLAIN = "X f32 M N; Y f32 M N; P f32 2 3 4; a f32; out R f32 M N"              # of random expressions: decimals are float32
SIZES = ({"M": 4, "N": 6, "K": 3}, {"M": 2, "N": 3, "K": 2})

EXPRESSIONS = """
Q + q ;; Q * q ;; np.add(Q, q) ;; np.multiply(Q, q) ;; Q + True ;; np.clip(Q, False, True) ;; np.clip(Q, q, True) ;; Q.clip(True, None) ;; abs(Q) ;; Q / 2 ;; Q / q ;; J / q ;; Q / Q.sum() ;; 1 / (Q + 1)
Q // q ;; Q % q ;; Q ** 2 ;; Q ** 3 ;; np.square(Q) ;; np.exp(Q) ;; np.sqrt(Q + q) ;; np.isnan(Q) ;; np.floor(Q) ;; np.ceil(J) ;; np.trunc(U) ;; sum([Q, Q, q]) ;; sum([Q, q], True) ;; np.add.outer(q, q) ;; q @ Q.T
X + Y ;; X - v ;; X * u[:, None] ;; -X ;; +X ;; X / (1 + Y * Y) ;; abs(X) ;; X // 0.25 ;; X % 0.3 ;; X % Y ;; J // 3 ;; J % 3 ;; -J // 2 ;; J & 7 ;; J | J2 ;; J ^ J2 ;; ~J ;; J << 2
J >> 1 ;; ~Q ;; Q & q ;; Q | q ;; Q ^ Q ;; X < Y ;; X <= 0.5 ;; 0 > X ;; X >= v ;; J == J2 ;; J != 3 ;; (X > 0) & (Y < 0.5) ;; J / 2 ;; J / J2 ;; J * 2 + 1 ;; X ** 2 ;; X ** 3
np.abs(X) ** 0.5 ;; (X + 3) ** -1 ;; J ** 2 ;; J ** 3 ;; 2 * X + 1.5 ;; X * a + a ;; a * a * X ;; X * N ;; X / M ;; X * (N - M) + N // 2 ;; X + M / N ;; X * (M * N) ;; X / np.sqrt(N)
np.exp(X) ;; np.tanh(X + v) ;; np.sin(X) * np.cos(Y) ;; np.log(np.abs(X) + 1) ;; np.sqrt(np.abs(D)) ;; np.arctan2(X, Y) ;; np.hypot(X, Y) ;; np.floor(X * 3) ;; np.ceil(X * 3)
np.rint(X * 3) ;; np.round(X * 3) ;; np.round(X, 1) ;; np.trunc(X * 3) ;; np.sign(X) ;; np.maximum(X, Y) ;; np.minimum(X, 0.5) ;; np.fmax(X, 0) ;; np.clip(X, -0.5, 0.5) ;; X.clip(0, None)
np.power(np.abs(X), 1.5) ;; np.expm1(X) ;; np.log1p(np.abs(X)) ;; np.exp2(X) ;; np.cbrt(X) ;; np.square(X) ;; np.reciprocal(X + 4) ;; np.isnan(X) ;; np.isfinite(X) ;; np.logical_and(Q, X)
np.logical_not(J) ;; np.logical_or(Q, q) ;; np.where(X > Y, X, -Y) ;; np.where(Q, 1.0, X) ;; np.where(J > 2, J, 0) ;; np.where(q, X, 0) ;; np.where(Q, X, Y) ;; np.where(Q, 1, 0)
X.astype(np.float64) + D ;; J.astype(np.float32) * X ;; (X * 5).astype(np.int32) ;; X.astype("float64") ;; Q.astype(np.float32) ;; Q.astype(int) ;; np.float64(X) ;; U.astype(np.int16) + 1
X.sum() ;; X.sum(axis=0) ;; X.sum(1) ;; X.sum(axis=-1, keepdims=True) ;; np.sum(X, axis=(0, 1)) ;; T.sum(axis=(0, 2)) ;; T.sum(axis=(-1, 0), keepdims=True) ;; J.sum() ;; J.sum(axis=0)
Q.sum(axis=1) ;; U.sum() ;; X.prod(axis=0) ;; J.prod(axis=1) ;; X.max() ;; X.max(axis=0) ;; np.max(X, -1) ;; np.amin(X, axis=1) ;; X.min(axis=-1, keepdims=True) ;; J.max(axis=0)
Q.max() ;; Q.max(axis=1) ;; np.min(Q, axis=0, keepdims=True) ;; np.maximum(Q, q) ;; np.minimum(Q, True) ;; np.maximum(Q, 2) ;; np.maximum.accumulate(Q, axis=1) ;; np.minimum.reduce(Q, 1, initial=True, where=X > 0)
Q[X > -9].max() ;; Q[Q].min() ;; np.maximum.outer(q, q) ;; X.mean() ;; X.mean(axis=0) ;; np.mean(X, axis=1, keepdims=True) ;; J.mean(axis=0) ;; X.var(axis=1) ;; X.std(axis=0) ;; np.var(X, ddof=1) ;; J.std() ;; Q.any(axis=0) ;; Q.all() ;; np.any(X > 0.5, axis=1)
X.argmax(axis=1) ;; np.argmin(X, axis=0) ;; np.argmax(X) ;; J.argmin(-1, keepdims=True) ;; Q.argmax(axis=1) ;; Q.argmin() ;; np.argmax(P, axis=1) ;; H.argmax(0) ;; np.where(X > 0.3, np.nan, X).argmin(axis=1)
np.argmax(a) ;; np.all(J) ;; np.linalg.norm(X) ;; np.linalg.norm(X, axis=1) ;; X - X.max(axis=-1, keepdims=True) ;; H.sum(axis=0) ;; H + H ;; H.mean() ;; X.sum(dtype=np.float64)
np.cumsum(X, axis=0) ;; np.cumsum(X, axis=-1) ;; X.cumsum() ;; np.cumsum(v) ;; J.cumsum(axis=1) ;; U.cumsum() ;; Q.cumsum(axis=0) ;; np.cumsum(H, axis=1) ;; J.cumsum(1, dtype=np.int32) ;; np.cumprod(X, axis=1)
v.cumprod() ;; J.cumprod() ;; np.maximum.accumulate(X, axis=1) ;; np.minimum.accumulate(X) ;; np.add.accumulate(P, axis=1) ;; np.add.accumulate(J, axis=0) ;; np.multiply.accumulate(P, 2, dtype=np.float64)
np.bitwise_or.accumulate(J, axis=1) ;; np.cumsum(P[..., ::-1], axis=-1)[..., ::-1] ;; np.exp(v).cumsum() / np.exp(v).sum() ;; np.cumsum(X * Y, axis=1) + v ;; np.cumsum(np.cumsum(X, 0), 1)
np.bincount(I % 5, minlength=5) ;; np.bincount(U, minlength=9) ;; np.bincount(I % N, minlength=N) ;; np.bincount(U, minlength=12, weights=u) ;; np.bincount(J[0] % 7, v * 2, 7) ;; np.bincount(J.ravel(), minlength=N + 9)
A @ W ;; np.matmul(A, W) ;; A @ W[:, 0] ;; A[0] @ W ;; v @ v ;; T @ W ;; T @ T.swapaxes(1, 2) ;; np.dot(A, W) ;; np.dot(T, W) ;; np.dot(v, v) ;; np.dot(X, 2.0) ;; J @ J2.T ;; H @ H.T ;; Q @ Q.T
np.einsum("ij,jk->ik", A, W) ;; np.einsum("ij,jk", A, W) ;; np.einsum("ij->ji", X) ;; np.einsum("ij->", X) ;; np.einsum("ii->i", S) ;; np.einsum("ii", S) ;; np.einsum("i,j->ij", u, v)
np.einsum("bij,jk->bik", T, W) ;; np.einsum("...ij,jk->...ik", T, W) ;; np.einsum("...ij->...ji", T) ;; np.einsum("...ij,...kj", T, A) ;; np.einsum("ij,ij->i", X, Y) ;; np.einsum("ij,jk,k->i", A, W, v)
np.einsum("ba", X) ;; np.tensordot(A, W, axes=1) ;; np.tensordot(X, Y, axes=([0, 1], [0, 1])) ;; np.tensordot(X, Y, axes=([0], [0])) ;; np.tensordot(u, v, axes=0) ;; np.outer(u, v) ;; np.outer(X, v) ;; np.trace(S)
X[0] ;; X[-1] ;; X[:, 1] ;; X[0, -1] ;; X[1:] ;; X[:-1] ;; X[1:-1, ::2] ;; X[::-1] ;; X[:, ::-1] ;; X[::-2, 1::2] ;; X[:2] ;; X[-2:] ;; X[:, -3:-1] ;; X[M - 1] ;; X[:, N // 2:] ;; X[None] ;; X[:, None] ;; X[..., 0]
X[:5] ;; X[-5:] ;; X[2:100, :-4] ;; X[5:] ;; X[:, :-5] ;; X[5::-1, -9:5:2] ;; X[::-4, 99:-99:-2] ;; X[:3] + X[-3:] ;; X[3:][:2] ;; X[:9] * 2 - X
np.add.reduce(X, where=X > 0, initial=2) ;; np.multiply.reduce(X, axis=(0, 1), where=Q) ;; np.maximum.reduce(X, 1, initial=0.5, where=Q) ;; np.bitwise_xor.reduce(J, axis=1, keepdims=True) ;; np.logical_or.reduce(X > 0, where=Q)
X[..., None] ;; a[..., None] ;; a[None, None] * X ;; np.pad(Q, 1) ;; X[None, ..., 1:] ;; P[1, ::-1, 2] ;; P[..., ::-3] ;; P[:, 10:] ;; P[:, ::-1][:, 0] ;; P[-1, -2] ;; X[1:] - X[:-1] ;; X[:, 1:] + X[:, :-1] ;; X[:1] + X ;; X[0:0]
X[I % M] ;; X[:, I % N] ;; X[I % 2, 0] ;; X[0, I % N] ;; X[I % M][:, I % N] ;; T[0, :, I % K] ;; T[:, 0, I % K] ;; np.take(X, I % M, axis=0) ;; X.take(I % N, axis=1) ;; np.take(X, 1, axis=0) ;; X[[0, 1]] ;; X[:, [1, 0, 1]]
X[-1 - I % M] ;; X[(I % M)[:, None], (I % N)[None, :]] ;; X[n % 2] ;; X[I % M, I % N] ;; np.take(X, [0, -1], axis=1) ;; P[:, [2, 0]][..., 1:]
X.T ;; np.transpose(X) ;; T.transpose(2, 0, 1) ;; T.transpose((1, 0, 2)) ;; T.T ;; np.swapaxes(T, 0, 2) ;; np.moveaxis(T, 0, -1) ;; np.moveaxis(T, (0, 1), (2, 0)) ;; np.expand_dims(X, 1) ;; np.expand_dims(X, (0, 3))
np.squeeze(X[None]) ;; np.ascontiguousarray(X.T) ;; X[None].squeeze(0) ;; np.squeeze(X[:, None, :, None], axis=(1, -1)) ;; np.broadcast_to(v, (M, N)) ;; np.broadcast_to(u[:, None], X.shape) ;; np.flip(X) ;; np.flip(X, 0) ;; np.flip(X, axis=(0, 1)) ;; T.mT if 0 else T
np.diagonal(S) ;; np.diag(S) ;; np.diag(X) ;; np.diag(S, 1) ;; np.diag(X, -1) ;; np.diag(X, 4) ;; np.diag(X, -3) ;; np.diag(v) ;; np.diag(v, 2) ;; np.diag(u, -1) ;; X @ np.diag(v) ;; X.reshape(N, M) ;; X.reshape(-1) ;; X.ravel() ;; X.flatten() ;; np.reshape(X, (M, 1, N)) ;; X.reshape((1, -1)) ;; T.reshape(2 * M, K) ;; T.reshape(2 * M, -1).reshape(2, M, K) ;; P.reshape(4, 6) ;; P.reshape(6, 4)
P.reshape(2, 12) ;; P.reshape(24)[::-1] ;; P.reshape(3, 2, 4) ;; P.reshape(2, 3, 2, 2) ;; P.reshape(8, 3) ;; X.T.reshape(-1) ;; X.reshape(1, M * N, 1) ;; T.reshape(-1, K) + W[:, 0] ;; T.ravel().reshape(T.shape) ;; P.reshape(1, 2, 1, 12)
X.reshape(M // 2, 2, N) ;; X.reshape(2, -1, N) ;; X.reshape(-1, M // 2, N) ;; T.reshape(2, 2, M // 2, K) ;; T.reshape(2, -1, 2, K) ;; T.reshape(-1, M // 2, K) ;; T.reshape(M // 2, -1, K) ;; X.reshape(M // 2, -1)
np.concatenate((X, Y)) ;; np.concatenate([X, Y, X], axis=1) ;; np.concatenate((X, v[None])) ;; np.concatenate((X, Y), axis=None) ;; np.stack((X, Y)) ;; np.stack([X, Y], axis=-1) ;; np.stack((v, v, v), axis=1) ;; np.vstack((v, v))
np.hstack((u, v)) ;; np.hstack((X, Y)) ;; np.split(X, 2, axis=0)[1] ;; np.split(P, 3, axis=1)[2] ;; np.split(v, [1, 2])[1] ;; np.pad(X, 1) ;; np.pad(X, ((1, 0), (0, 2)), constant_values=2) ;; np.pad(v, (2, 1)) ;; np.pad(X, ((1, 2),), "constant") if 0 else X
np.column_stack((u, X)) ;; np.column_stack([v, v]) ;; np.dstack([X, Y]) ;; np.dstack((v, v)) ;; np.block([[X, Y], [Y, X]]) ;; np.block([v, v]) ;; np.block([[X, u[:, None]], [v, 2.0]]) ;; np.block(X) ;; np.concat([X, Y])
np.append(v, u) ;; np.append(X, v[None], axis=0) ;; np.append(X, Y) ;; np.insert(v, 0, 0) ;; np.insert(v, -1, u) ;; np.insert(X, 1, 0.5, axis=1) ;; np.insert(X, 0, v, axis=0) ;; np.insert(X, 1, X[:, 0], axis=1) ;; np.insert(X, 1, 3) ;; np.insert(v, 1, [1.5, 2.5])
np.delete(v, 0) ;; np.delete(X, 1, axis=0) ;; np.delete(X, -1, axis=1) ;; np.delete(X, 1) ;; np.atleast_1d(a) ;; np.atleast_2d(v) ;; np.atleast_2d(X) ;; np.broadcast_arrays(X, v)[1] ;; np.r_[0.5, v, u] ;; np.r_[True, Q[0]] ;; np.c_[u, X] ;; np.c_[v, v]
np.vsplit(X, 2)[1] ;; np.hsplit(v, [1])[1] ;; np.hsplit(X, [1, 2])[1] ;; np.dsplit(P, 2)[0] ;; np.indices((M, N)) ;; np.indices(X.shape, sparse=True)[1] ;; np.mgrid[:M, 1:N] ;; np.mgrid[0:N:2] ;; np.ogrid[:M, :N][0] + np.ogrid[:M, :N][1] ;; X[np.s_[1:, ::2]] ;; S[np.ix_(I % N, I % N)]
np.triu_indices(N)[0] ;; np.triu_indices(N, 1)[1] ;; np.triu_indices(N, k=2)[0] ;; np.triu_indices(N, 3)[1] ;; np.tril_indices(N)[1] ;; np.tril_indices(N, -1)[0] ;; np.tril_indices(N, -2)[1] ;; np.tril_indices(9)[0] ;; S[np.triu_indices(N, 1)] ;; S[np.diag_indices(N)] ;; np.unravel_index(J % (M * N), (M, N))[0] ;; np.unravel_index(X.argmax(), X.shape)[1]
np.ravel_multi_index((I % M, I % N), X.shape) ;; np.logical_xor.reduce(Q, axis=1) ;; np.logical_xor.reduce(X > 0) ;; np.logical_and.reduce([X > 0, Y > 0, Q]) ;; np.minimum.reduce([X, Y, X * Y]) ;; np.max([X, Y], axis=0) ;; np.mean((X, Y), axis=0) ;; np.sum([v, 2 * v]) ;; np.clip(X, min=0) ;; X.clip(max=Y) ;; np.clip(X, min=-0.1, max=0.1)
np.trace(S, offset=1) ;; np.trace(X, -1) ;; np.diagonal(S, 1) ;; np.diagonal(X, offset=-1) ;; np.diagonal(P[:, :2], axis1=1, axis2=0) ;; np.diagflat(u) ;; np.diagflat(X, 1) ;; X.ravel("F") ;; X.flatten(order="F") ;; X.reshape(-1, order="F") ;; P.reshape(4, 6, order="F") ;; np.reshape(X, (N, M), order="F") ;; np.ravel(T, order="C") ;; X.copy(order="C") ;; X.astype(np.float64, copy=False) ;; X[0, 0].item() * Y
np.roll(X, N // 2, axis=1) ;; np.roll(X, M) ;; np.roll(X, -N - 1, axis=1) ;; np.roll(X, n % 3, axis=0) ;; np.roll(X, I[0] - 2, axis=1) ;; np.roll(X, -I[0], axis=0) ;; np.roll(X, np.array([1, -2])[1], axis=1) ;; np.roll(X, (np.array([2, 0])[0], 1), axis=(0, 1)) ;; np.roll(X[:0], n, axis=0) ;; np.permute_dims(P, (2, 0, 1))
np.linspace(0, 1, N) ;; np.linspace(-1.0, 2.0, N, endpoint=False) ;; np.linspace(0, N, M + 1) ;; np.linspace(0, 1, 1) ;; np.linspace(0, 1, N // N) ;; np.einsum("ij,jk->ik", A, W, optimize=True) ;; np.divide(X, Y, out=np.zeros_like(X), where=Y > 0) ;; np.log(X, out=np.full_like(X, -1.0), where=X > 0) ;; ord("a") * X ;; divmod(17, 5)[1] * X
np.roll(X, 1) ;; np.roll(X, 1, axis=0) ;; np.roll(X, -2, axis=1) ;; np.roll(X, (1, -1), axis=(0, 1)) ;; np.roll(P, 5, axis=2) ;; np.roll(X, 7, axis=0) ;; np.roll(X, (-5, 9), (0, 1)) ;; np.roll(X, -30) ;; np.roll(X[:0], 1, axis=0) ;; np.roll(X[:, :0], -2, axis=1) ;; np.repeat(v, 2) ;; np.repeat(X, 3, axis=1) ;; np.tile(v, 2) ;; np.tile(X, (2, 1)) ;; np.tile(v, (2, 2)) ;; np.tile(X, (3, 2)) ;; np.tile(v, 9) ;; np.tile(X, (1, 8))
np.arange(N) ;; np.arange(1, N) ;; np.arange(0, 10, 3) ;; np.arange(10, 0, -4) ;; np.arange(N)[None] * np.arange(M)[:, None] ;; np.arange(3, dtype=np.float32) ;; np.zeros((M, N), dtype=np.float32) + X ;; np.ones(N, dtype=v.dtype) * v ;; np.full((M, 2), 7) ;; np.full(N, 0.5) ;; np.full(3, v[0]) ;; np.full((2, N), v, dtype=np.float64)
np.zeros_like(X) ;; np.ones_like(J) ;; np.full_like(X, 2) ;; np.eye(3) ;; np.eye(M, N, k=1) ;; np.tri(M, N, 1) ;; np.tri(3, dtype=bool) ;; np.tril(X) ;; np.triu(X, 1) ;; np.tril(X, -1) ;; np.linspace(0, 1, 5) ;; np.linspace(0.0, 2.0, 4, endpoint=False) ;; np.array([1, 2, 3]) ;; np.array([[1.0, 2.0], [3.0, 4.0]])
np.inner(X, Y) ;; np.inner(X, v) ;; np.inner(v, v) ;; np.inner(a, X) ;; np.inner(P, W[:0].T) if 0 else np.inner(P, P[0]) ;; np.vdot(X, Y) ;; np.linalg.norm(X, 1) ;; np.linalg.norm(X, -np.inf) ;; np.linalg.norm(X, "fro") ;; np.linalg.norm(P, -1, axis=(2, 0), keepdims=True)
np.linalg.norm(X, np.inf, axis=(1, 0)) ;; np.linalg.norm(X, 1, axis=1) ;; np.linalg.norm(X, 0, axis=0) ;; np.linalg.norm(v, 3) ;; np.linalg.norm(v, -np.inf) ;; np.linalg.norm(X, np.inf, axis=1, keepdims=True) ;; np.linalg.norm(J, 0.5, axis=1) ;; np.linalg.norm(P)
np.lib.stride_tricks.sliding_window_view(X, (2, 2)) ;; np.lib.stride_tricks.sliding_window_view(v, 2).max(-1) ;; np.lib.stride_tricks.sliding_window_view(P, (4, 1), axis=(2, 1)) ;; np.lib.stride_tricks.sliding_window_view(X, 2, axis=-1).mean(axis=-1) ;; np.lib.stride_tricks.sliding_window_view(X, M, 0)
np.array([1, 2], dtype=np.int32) ;; np.identity(2) ;; np.pi * X ;; np.e + X ;; np.where(X > 0, X, -np.inf) ;; X.shape[0] * X ;; X * len(X) ;; X + X.ndim ;; X * X.size ;; sum([X, Y, X]) ;; [X, Y][1] ;; max(2, 3) * X ;; min(M, N) * X
(lambda x, y: x * y + 1)(X, Y) ;; sum([X * k for k in range(3)]) ;; np.stack([X[i] for i in range(2)]) ;; X if True or M > 0 else Y ;; [k * X for k in range(4) if k % 2][1] ;; sum(X[i] * i for i in range(2)) ;; (X, Y)[-1] ;; X if 1 < 2 < 3 else Y
np.exp(X - X.max(axis=-1, keepdims=True)) / np.exp(X - X.max(axis=-1, keepdims=True)).sum(-1, keepdims=True) ;; (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * v ;; D * d + d ;; J - U[:, None].astype(np.int32)
"""
STATEMENTS = [
    ("inout R f32 M N", "R += A @ W"), ("inout R f32 M N", "R *= 2"), ("inout R f32 M N", "R[:, 1:] = X[:, :-1]"), ("inout R f32 M N", "R[1:-1] += X[1:-1]"),
    ("inout R f32 M N", "R[0] = v"), ("inout R f32 M N", "R[::2] = 1"), ("inout R f32 M N", "R[1::2, ::-1] = X[1::2]"), ("inout R f32 M N", "R[:, -1] = u"),
    ("inout R f32 M N", "R[Q] = 0"), ("inout R f32 M N", "R[X > 0] = 0.5"), ("inout R f32 M N", "R[0, 1] = 5\nR[-1, 0] += 1"), ("inout R f32 M N", "R[::-1] = X"),
    ("inout R f32 M N", "np.add.at(R, I % M, X[0])"), ("inout R f32 M N", "np.maximum.at(R, (I % M, I % N), 0.5)"), ("inout R f32 M N", "np.add.at(R, (slice(None), I % N), u[:, None])"),
    ("out R i32 9", "R[...] = 0\nnp.add.at(R, U, 1)"), ("out R f32 M N", "Z = np.zeros((M, N), np.float32)\nnp.add.at(Z, [0, 1, 0], v)\nnp.multiply.at(Z, -1 - I % M, 2)\nreturn Z + X"),
    ("out R bool N", "R = q.copy()\nnp.maximum.at(R, I % N, X[0, 0] > 0)"), ("inout R f32 M N", "np.minimum.at(R, (I[:, None] % M, I % N), W[:, :1])"), ("out R i32 M N", "R = J.copy()\nnp.bitwise_xor.at(R, (0, I % N), 3)"),
    ("inout R f32 M N", "R[...] = v"), ("inout R f32 M N", "for k in range(2):\n    R[k] = v * k\n    R += 1"), ("inout R f32 M N", "R[::-2] -= 1"),
    ("inout R f32 M N", "R[1:, 1:] = X[:-1, :-1]"), ("inout R f32 M N", "R = R + 1\nR = R * R"), ("inout R f32 M N", "R -= X\nR /= 2\nR //= 0.25"),
    ("inout R f32 M N", "t = R.copy()\nR += 1\nR = R * t"), ("inout R f32 M N", "R[None, 1:] = X[None, 1:]"), ("inout R f32 M N", "R[0:2, 0] = np.array([1, 2], R.dtype)"),
    ("out R f32 M N", "R[...] = X"), ("out R f32 M N", "R[:, 0] = u"), ("out R f32 M N", "R[1:-1, 1:-1] = X[2:, 1:-1] + X[:-2, 1:-1]"), ("out R f32 M N", "R = X @ S"),
    ("out R f32 M N", "def f(x):\n    y = x + 1\n    return y * y\nR = f(X) + f(Y)"), ("out R f32 M N", "t = X\nfor i in range(3):\n    if i == 1:\n        continue\n    t = np.tanh(t) + v\nR = t"),
    ("out R f32 M N", "a1, b1 = X, Y\na1, b1 = b1, a1\nreturn a1 - 2 * b1"), ("out R f32 M N", "parts = []\nfor k in range(2):\n    parts.append(X * k)\nreturn np.stack(parts)[1]"),
    ("out R f32 M N", "x = X\nx = x + 1\nx += 1\nx[0] = 0\nreturn x"), ("out R f32 M N", "    s = X.sum()\n    return X / s"), ("out R f32 M N", "h, w = X.shape\nreturn X * h + w"),
    ("out R f32 2 N", "R[0] = v\nR[1] = 2 * v"), ("out R f32 N", "return X[0] if X.ndim == 2 else v"), ("out R i64 N", "return np.arange(N) * n"), ("out R f32 M", "(a1, b1), c1 = [u, u], 1\nreturn a1 + c1 * b1"),
    ("out R f32 M N", "for row in P[0]:\n    s = row\nR[...] = s[0]"), ("out R f32 M N", "R = np.where(X > 0, X, 0)\nR[0] *= 2"), ("out R f32 M N", "if N > 1000000000000000:\n    R = X\nelse:\n    R = Y"),
]
ROWS = [text.strip() for line in EXPRESSIONS.split("\n") for text in line.split(" ;; ") if text.strip()]


def drawn(seed: int, sizes: dict[str, int]) -> dict[str, Any]:
    """Arrays and scalars for the signature."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {}
    for part in SIGNATURE.split(";"):
        name, dtype, *axes = part.split()
        if name == "out":
            continue
        shape = [sizes.get(axis) or int(axis) for axis in axes]
        given[name] = values(rng, dtype, shape)
    return given


def values(rng: np.random.Generator, dtype: str, shape: list[int]) -> Any:
    """Random elements of a type: halves between -2 and 2, so that most sums are exact."""
    kind = DTYPES[dtype].kind
    low, high = (0, 2) if kind == "bool" else (0, 9) if kind in ("uint", "int") else (-8, 9)
    made = rng.integers(low, high, size=shape) / (4 if kind == "float" else 1)
    return np.asarray(made).astype(numpy_dtype(dtype))[()]


def in_numpy(code: str, given: dict[str, Any], sizes: dict[str, int], output: Any = None) -> Any:
    """What Python and numpy compute for the body, which is a text of this file."""
    names: dict[str, Any] = {"np": np, **sizes, **{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}, "R": output}
    lines = textwrap.indent(textwrap.dedent(code), "    ")
    exec(f"def body({', '.join(names)}):\n{lines}\n    return R", names)
    with np.errstate(all="ignore"):
        return names["body"](**{k: v for k, v in names.items() if k not in ("body", "__builtins__")})


def result_type(expected: Any) -> str:
    """The element type that the evaluator gives for what numpy computes."""
    return next(d.name for d in DTYPES.values() if d.numpy == np.asarray(expected).dtype.name)


def compare(found: Any, expected: Any, dtype: str) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if DTYPES[dtype].kind in ("int", "uint", "bool"):
        np.testing.assert_array_equal(found, expected)
    else:
        error = tolerance(dtype)
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), error, error)


def check(text: str, sizes: dict[str, int], seed: int = 0, signature: str = SIGNATURE) -> Evaluated:
    """Compare an expression with numpy."""
    given = drawn(seed, sizes)
    expected = np.asarray(in_numpy(f"return {text}", given, sizes))
    last: Exception | None = None
    first = "f32" if signature == PLAIN and expected.dtype.kind == "f" else result_type(expected)
    own = [first, "f32", "f64", "i64", "f16", "i32", "bool"]
    for dtype in dict.fromkeys(own):
        shape = " ".join(map(str, expected.shape))
        declared = signature.replace("out R f32 M N", f"out R {dtype} {shape}")
        try:
            found = evaluated(declared, f"return {text}")
        except Exception as problem:
            if "E310" not in str(problem) and "E302" not in str(problem):
                raise
            last = problem
            continue
        compare(run(found, sizes, given)[0], expected, dtype)
        return found
    raise AssertionError(text) from last


@pytest.mark.parametrize("text", ROWS)
def test_expressions(text: str) -> None:
    for seed, sizes in enumerate(SIZES):
        check(text, sizes, seed)


@pytest.mark.parametrize(("output", "code"), STATEMENTS)
def test_statements(output: str, code: str) -> None:
    sizes = {"M": 4, "N": 6, "K": 3}
    given = drawn(3, sizes)
    words = output.split()
    shape = [sizes.get(axis) or int(axis) for axis in words[3:]]
    before = values(np.random.default_rng(5), words[2], shape) if words[0] == "inout" else np.zeros(shape, numpy_dtype(words[2]))
    expected = in_numpy(code, given, sizes, before.copy())
    found = evaluated(SIGNATURE.replace("out R f32 M N", output), code)
    made = run(found, sizes, {**given, **({"R": before} if words[0] == "inout" else {})})[0]
    compare(made, expected, words[2])


def test_there_are_enough_expressions() -> None:
    assert len(ROWS) + len(STATEMENTS) >= 300


def test_an_index_outside_fails_its_check() -> None:
    sizes = {"M": 4, "N": 6, "K": 3}
    found = evaluated(SIGNATURE.replace("out R f32 M N", "out R f32 K N"), "return X[I]")
    given = drawn(0, sizes)
    given["I"] = np.array([0, 4, 1])
    with pytest.raises(OutsideError, match="check 1"):
        run(found, sizes, given)


# random expressions


@pytest.mark.slow
def test_random_expressions() -> None:
    for seed in range(300):
        text = drawn_expression(seed)
        check(text, SIZES[seed % 2], seed, PLAIN)


@pytest.mark.parametrize("fault", ["add", "lt", "cast"])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """The comparison of random expressions finds an evaluator that is wrong."""
    genuine: Any = elementwise.apply if fault != "cast" else elementwise.converted

    def faulty(b: Any, what: str, *operands: Any) -> Any:
        if fault == "cast":
            return genuine(b, what, *operands) if what != "f64" else genuine(b, "f64", genuine(b, "i64", *operands))
        return genuine(b, {"add": "sub", "lt": "le"}[what] if what == fault else what, *operands)

    from caten.frontend.arrays import array_functions, python_expressions
    for module in (elementwise, python_expressions, array_functions):
        monkeypatch.setattr(module, "converted" if fault == "cast" else "apply", faulty)
    texts = [drawn_expression(seed) for seed in range(100)]
    texts += ["X.astype(np.float64) + D", "X < X"]
    assert any(differs(text, seed) for seed, text in enumerate(texts))


def differs(text: str, seed: int) -> bool:
    try:
        check(text, SIZES[0], seed)
    except AssertionError:
        return True
    return False

