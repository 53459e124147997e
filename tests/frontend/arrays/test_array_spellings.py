"""Two spellings of one thing give the same values; and the values of typical bodies, as text."""
from __future__ import annotations

import pytest
from value_interpreter import evaluated

from caten.core.text import flat, form_of

SIGNATURE = "X f32 M N; Y f32 M N; v f32 N; u f32 M; A f32 M K; W f32 K N; T f32 B M K; P f32 2 3 4; I i64 K; J i32 M N; Q bool M N; a f32; out R f32 1"
SAME = [
    ("X.T", "np.transpose(X)", "X.transpose(1, 0)", "X.transpose((1, 0))", "np.swapaxes(X, 0, 1)", "np.moveaxis(X, 0, 1)", "np.einsum('ij->ji', X)", "X.mT", "np.transpose(X, axes=(-1, 0))"),
    ("A @ W", "np.matmul(A, W)", "np.dot(A, W)", "A.dot(W)", "np.einsum('ij,jk->ik', A, W)", "np.einsum('ij,jk', A, W)", "np.tensordot(A, W, axes=1)", "np.tensordot(A, W, axes=([1], [0]))",
     "np.einsum('...ij,...jk->...ik', A, W)"),
    ("T @ W", "np.einsum('bij,jk->bik', T, W)", "np.matmul(T, W)", "np.dot(T, W)"),
    ("v @ v", "np.dot(v, v)", "np.einsum('i,i', v, v)", "np.einsum('i,i->', v, v)"),
    ("X.sum()", "np.sum(X)", "X.sum(axis=None)", "X.sum(axis=(0, 1))", "np.sum(X, axis=(-1, -2))", "np.einsum('ij->', X)"),
    ("X.sum(axis=1)", "np.sum(X, -1)", "X.sum((1,))", "np.einsum('ij->i', X)"),
    ("X.max(axis=0, keepdims=True)", "X.max(0)[None]", "np.expand_dims(np.amax(X, axis=0), 0)", "np.max(X, axis=0)[None, :]", "X.max(0)[np.newaxis]"),
    ("X.mean(axis=1)", "np.mean(X, axis=-1)", "X.sum(axis=1) / N", "X.sum(axis=1) / X.shape[1]"),
    ("np.exp(X)", "exp(X)", "math.exp(X)"),
    ("abs(X)", "np.abs(X)", "np.absolute(X)", "np.fabs(X)"),
    ("X * X", "X ** 2", "np.square(X)", "X ** 2.0", "np.power(X, 2)", "pow(X, 2)"),
    ("np.sqrt(X)", "X ** 0.5"), ("1 / X", "np.divide(1, X)", "X ** -1", "np.true_divide(1, X)", "np.reciprocal(X)"),
    ("np.maximum(X, 0)", "np.clip(X, 0, None)", "X.clip(0)"), ("-X", "np.negative(X)"), ("X % 2", "np.mod(X, 2)", "np.remainder(X, 2)"),
    ("X // 2", "np.floor_divide(X, 2)"), ("~Q", "np.logical_not(Q)", "np.invert(Q)"), ("Q & Q", "np.logical_and(Q, Q)", "np.bitwise_and(Q, Q)"),
    ("X + (2 * N - N)", "X + N", "X + (N + 1 - 1)"), ("X * 0.5", "X * (1 / 2)", "X * 2 ** -1"),
    ("X[::-1]", "np.flip(X, 0)", "X[::-1, :]", "X[::-1, ...]", "X[-1::-1]", "X[M - 1::-1]"), ("X", "X[:]", "X[...]", "X[0:]", "X[:M, :N]", "X.reshape(M, N)", "X.astype(np.float32)", "+X", "X.copy()", "np.array(X)"),
    ("X.reshape(-1)", "X.ravel()", "X.flatten()", "np.reshape(X, -1)", "X.reshape(M * N)", "X.reshape((M * N,))", "np.ravel(X)", "X.reshape(X.size)"),
    ("X[None]", "X[np.newaxis]", "np.expand_dims(X, 0)", "X[None, ...]", "X.reshape(1, M, N)"),
    ("np.stack((X, Y))", "np.stack([X, Y], axis=0)", "np.stack((X, Y), -3)"), ("np.concatenate((X, Y), axis=-1)", "np.concatenate([X, Y], 1)", "np.hstack((X, Y))"),
    ("X.astype(np.float64)", "X.astype('float64')", "X.astype(float)", "np.float64(X)", "X.astype(np.double)"),
    ("np.take(X, I, axis=1)", "X[:, I]", "X.take(I, 1)", "X[..., I]"), ("X[0]", "np.take(X, 0, axis=0)", "X[0, :]", "X[0, ...]"),
    ("np.linalg.norm(X, axis=1)", "np.sqrt((X * X).sum(axis=1))"), ("np.where(Q, X, Y)", "np.where(Q, X, Y)"),
    ("X.var(axis=0)", "np.square(X - X.mean(axis=0, keepdims=True)).sum(axis=0) / M", "((X - X.mean(0, keepdims=True)) ** 2).mean(axis=0)"),
    ("np.outer(u, v)", "u[:, None] * v"), ("np.zeros((M, N))", "np.full((M, N), 0.0)", "np.zeros(shape=X.shape)", "np.zeros_like(X)"),
    ("np.arange(N)", "np.arange(0, N)", "np.arange(0, N, 1)", "np.arange(stop=N, start=0)"), ("sum([X, Y, X])", "X + Y + X"),
    ("np.roll(X, 1, axis=0)", "np.roll(X, (1,), (0,))"), ("np.pad(v, 1)", "np.pad(v, (1, 1))", "np.pad(v, ((1, 1),), mode='constant', constant_values=0)", "np.pad(v, (1,))", "np.pad(v, ((1,),))"),
    ("np.pad(X, ((1, 1), (2, 2)))", "np.pad(X, ((1,), (2,)))"), ("np.pad(X, ((1, 2), (1, 2)))", "np.pad(X, ((1, 2),))", "np.pad(X, (1, 2))"),
]
TEXTS = [
    ("X.reshape(-1)[:1]", None),
    ("P[1]", "(compute f32 ((i 3) (j 4)) (read P 1 i j))"),
    ("P[:, 2:0:-1]", "(compute f32 ((i 2) (j 2) (k 4)) (read P i (- 2 j) k))"),
    ("X[::-1]", "(compute f32 ((i M) (j N)) (read X (- (- M i) 1) j))"),
    ("A @ W", "(reduce f32 ((i M) (j N)) ((p K)) add true (* (read A i p) (read W p j)))"),
    ("P.reshape(6, 4)", "(compute f32 ((i 6) (j 4)) (read P (floordiv i 3) (mod i 3) j))"),
    ("P.reshape(2, 3, 2, 2)", "(compute f32 ((i 2) (j 3) (k 2) (l 2)) (read P i j (+ (* 2 k) l)))"),
    ("np.concatenate((X, Y))", "(compute f32 ((i (* 2 M)) (j N)) (pieces i ((read X i j) (read Y (- i M) j)) M))"),
    ("np.tril(X)", "(compute f32 ((i M) (j N)) (where (<= j i) (read X i j) 0.0))"),
    ("X[:, I]", "(compute f32 ((i M) (j K)) (read X i (inside (where (< (read I j) 0) (+ (read I j) N) (read I j)) N 1)))"),
    ("np.repeat(v, 2)", "(compute f32 ((i (* 2 N))) (read v (floordiv i 2)))"),
]
SIZED = "X f32 B S H D; out R f32 1"
LISP = [("(setf R (+ A B))", "R = A + B"), ("(setf R (relu (+ A 1)))", "return relu(A + 1)"), ("(return (* 2 A))", "return 2 * A"), ("(setf R (matmul A B))", "R = A @ B"),
        ("(set s (sum A :axis 0 :keepdims t)) (setf R (/ A s))", "s = A.sum(axis=0, keepdims=True); return A / s"), ("(setf r (where (< a 0) (- a) A))", "R = np.where(A < 0, -A, A)"),
        ("(setf R (let ((x (exp A))) (* x x)))", "x = np.exp(A); R = x * x"), ("(setf R 0) (incf R A)", "R[...] = 0; R += A"), ("(setf R (cond ((< A 0) 0) ((> A 1) 1) (t A)))", "R = np.where(A < 0, 0, np.where(A > 1, 1, A))"),
        ("(setf R (cast float (transpose A)))", "R = A.T"), ("(setf R (reshape (reshape A (* N N)) (N N)))", "R = A.reshape(-1).reshape(N, N)"), ("(setf R (max A B 1))", "R = np.maximum(np.maximum(A, B), 1)"),
        ("(setf R A) R", "R = A"), ("(setf R (- A)) (mulcf R 2) (return R)", "R = -A; R *= 2"), ("(setf R (einsum \"ij,jk->ik\" A B))", "R = A @ B")]


def value(text: str) -> str:
    """The definitions of an expression, without what the output asks of it."""
    found = evaluated(SIGNATURE, f"t = {text}\nR[...] = t.astype(np.float32).sum()")
    return "\n".join([flat(form_of(d)) for d in found.definitions])


@pytest.mark.parametrize("spellings", SAME, ids=lambda row: row[0])
def test_spellings_of_the_same(spellings: tuple[str, ...]) -> None:
    for other in spellings[1:]:
        assert value(other) == value(spellings[0]), other


@pytest.mark.parametrize(("text", "expected"), [row for row in TEXTS if row[1]])
def test_values_as_text(text: str, expected: str) -> None:
    assert value(text).split("\n")[0] == f"(define v0 {expected})"


@pytest.mark.parametrize(("text", "expected"), [
    ("X.reshape(B * S, H * D)", "((i (* B S)) (j (* D H))) (read X (floordiv i S) (mod i S) (floordiv j D) (mod j D))"),
    ("X.reshape(B * S, H, D)", "((i (* B S)) (j H) (k D)) (read X (floordiv i S) (mod i S) j k)"),
    ("X.reshape(B, S, -1)", "((i B) (j S) (k (* D H))) (read X i j (floordiv k D) (mod k D))"),
])
def test_merged_axes_of_symbolic_sizes(text: str, expected: str) -> None:
    found = evaluated(SIZED, f"t = {text}\nR[...] = t.sum()")
    assert flat(form_of(found.definitions[0])) == f"(define v0 (compute f32 {expected}))"


def test_split_axes_of_symbolic_sizes_stay_affine() -> None:
    found = evaluated(SIZED, "t = X.reshape(B * S, H * D)\nR[...] = t.reshape(B, S, H, D).transpose(0, 2, 1, 3).sum()")
    assert flat(form_of(found.definitions[1])) == "(define v1 (compute f32 ((i B) (j S) (k H) (l D)) (read v0 (+ (* S i) j) (+ (* D k) l))))"


@pytest.mark.parametrize(("lisp", "python"), LISP)
def test_lisp_and_python_give_the_same(lisp: str, python: str) -> None:
    signature = "A f32 N N; B f32 N N; out R f32 N N"
    one, other = evaluated(signature, lisp, lang="lisp"), evaluated(signature, python.replace("; ", "\n"))
    assert one.definitions == other.definitions
    assert one.outputs == other.outputs


def test_conditions_are_those_that_do_not_follow() -> None:
    found = evaluated("X f32 M N; Y f32 K N; v f32 3; out R f32 M N", "t = X + Y\nR = t + v\nR += X[1:][:1]")
    assert [flat(form_of(c)) for c in found.conditions] == ["(require (= M K))", "(require (= N 3))", "(require (<= 1 (max (- M 1) 0)))"]


def test_equal_values_are_one() -> None:
    found = evaluated("X f32 N; out R f32 N", "return np.exp(X) / np.exp(X).sum()")
    assert len(found.definitions) == 3
