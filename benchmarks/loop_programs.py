"""Kernels in plain Python loops, as they are written for Numba, and arrays to call them with: `python -m
benchmarks.python_loops` compiles the text of each with caten and with `numba.njit`. All results are arguments."""
from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from caten.core.dtypes import DTYPES, SPELLINGS
from caten.frontend.generic_signature import tensors

from .numerical_programs import extent

Sizes = Mapping[str, int]
Draw = Callable[[np.random.Generator, list[int], Sizes], np.ndarray]


@dataclass(frozen=True)
class LoopProgram:
    """A function whose arguments are arrays. `specs`: their declarations, in the order of the arguments; `restored`:
    results whose old elements the program reads; `made`: the other results; `draws`: what fills an argument."""

    function: Callable[..., None]
    specs: tuple[str, ...]
    sizes: Sizes
    restored: tuple[str, ...]
    made: tuple[str, ...]
    draws: Mapping[str, Draw]

    @property
    def name(self) -> str:
        return self.function.__name__

    def spec(self) -> str:
        """The text of a spec whose body is that of the function."""
        lines = inspect.getsource(self.function).splitlines()
        (definition,) = ast.parse("\n".join(lines)).body
        assert isinstance(definition, ast.FunctionDef)
        body = textwrap.dedent("\n".join(lines[definition.body[0].lineno - 1:]))
        listed = {"inputs": [*self.specs], "outputs": [*self.restored, *self.made]}
        heads = [f"{key} = {json.dumps(value)}" for key, value in listed.items()]
        return "\n".join(["[composite]", f'name = "{self.name}"', *heads, "[implementation]", 'lang = "python"',
                          f"code = '''\n{body}'''", ""])

    def arguments(self, limit: int | None = None, seed: int = 0) -> dict[str, np.ndarray]:
        """Arrays by name, the same ones for a seed. `limit`: no size is larger."""
        sizes = {name: min(size, limit or size) for name, size in self.sizes.items()}
        rng = np.random.default_rng(seed)
        found = {}
        for t in tensors(self.specs):
            dtype = DTYPES[SPELLINGS[t.word]]
            draw = self.draws.get(t.name, normal if dtype.kind == "float" else integers(0, 5))
            found[t.name] = draw(rng, [extent(e, sizes) for e in t.shape], sizes).astype(dtype.numpy)
        return found


PROGRAMS: list[LoopProgram] = []


def on(*specs: str, sizes: Sizes, restored: str = "", made: str = "",
       **draws: Draw) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a program. `restored`, `made`: names with spaces between them."""
    def add(function: Callable[..., None]) -> Callable[..., None]:
        PROGRAMS.append(LoopProgram(function, specs, sizes, tuple(restored.split()), tuple(made.split()), draws))
        return function
    return add


def normal(rng: np.random.Generator, shape: list[int], sizes: Sizes) -> np.ndarray:
    return rng.normal(size=shape)


def unit(rng: np.random.Generator, shape: list[int], sizes: Sizes) -> np.ndarray:
    """Numbers of [0, 1)."""
    return rng.random(shape)


def definite(rng: np.random.Generator, shape: list[int], sizes: Sizes) -> np.ndarray:
    """A matrix that has factors."""
    matrix = normal(rng, shape, sizes)
    return matrix @ matrix.T + shape[0] * np.eye(shape[0])


def shifted(by: float) -> Draw:
    return lambda rng, shape, sizes: normal(rng, shape, sizes) + by


def leading(first: float) -> Draw:
    """Normal numbers after this one."""
    return lambda rng, shape, sizes: np.concatenate([[first], normal(rng, [shape[0] - 1], sizes)])


def integers(low: int, limit: int | str) -> Draw:
    """Of [low, limit), where a limit may be a size."""
    return lambda rng, shape, sizes: rng.integers(low, sizes[limit] if isinstance(limit, str) else limit, shape)


def offsets(total: str) -> Draw:
    """Where each row of a sparse matrix with that many elements begins, and the end."""
    def draw(rng: np.random.Generator, shape: list[int], sizes: Sizes) -> np.ndarray:
        inner = np.sort(rng.integers(0, sizes[total], shape[0] - 2))
        return np.concatenate([[0], inner, [sizes[total]]])
    return draw


@on("D{float}[N N]", sizes={"N": 200}, restored="D")
def floyd_warshall(D):
    N = D.shape[0]
    for k in range(N):
        for i in range(N):
            for j in range(N):
                d = D[i, k] + D[k, j]
                if d < D[i, j]:
                    D[i, j] = d


@on("A{double}[N N]", sizes={"N": 200}, restored="A", A=definite)
def lu(A):
    N = A.shape[0]
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] /= A[k, k]
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@on("A{double}[N N]", sizes={"N": 200}, restored="A", A=definite)
def cholesky(A):
    N = A.shape[0]
    for j in range(N):
        s = A[j, j]
        for k in range(j):
            s -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(s)
        for i in range(j + 1, N):
            t = A[i, j]
            for k in range(j):
                t -= A[i, k] * A[j, k]
            A[i, j] = t / A[j, j]


@on("L{double}[N N]", "B{double}[N M]", sizes={"N": 200, "M": 50}, restored="B", L=definite)
def triangular_solve(L, B):
    N, M = B.shape
    for i in range(N):
        for j in range(M):
            s = B[i, j]
            for k in range(i):
                s -= L[i, k] * B[k, j]
            B[i, j] = s / L[i, i]


@on("a{int8}[N]", "b{int8}[M]", "S{int32}[(+ N 1) (+ M 1)]", sizes={"N": 500, "M": 400}, made="S")
def needleman_wunsch(a, b, S):
    N, M = a.shape[0], b.shape[0]
    for i in range(N + 1):
        S[i, 0] = -i
    for j in range(M + 1):
        S[0, j] = -j
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            m = S[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1)
            S[i, j] = max(m, S[i - 1, j] - 1, S[i, j - 1] - 1)


@on("x{float}[N]", "y{float}[M]", "D{float}[(+ N 1) (+ M 1)]", sizes={"N": 300, "M": 300}, made="D")
def time_warping(x, y, D):
    N, M = x.shape[0], y.shape[0]
    for i in range(N + 1):
        for j in range(M + 1):
            D[i, j] = np.inf
    D[0, 0] = 0
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            c = abs(x[i - 1] - y[j - 1])
            D[i, j] = c + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])


@on("P{float}[N 3]", "m{float}[N]", "F{float}[N 3]", sizes={"N": 1000}, made="F")
def nbody(P, m, F):
    N = P.shape[0]
    for i in range(N):
        fx, fy, fz = 0.0, 0.0, 0.0
        for j in range(N):
            dx = P[j, 0] - P[i, 0]
            dy = P[j, 1] - P[i, 1]
            dz = P[j, 2] - P[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + 1e-3
            inv = m[j] / (r2 * np.sqrt(r2))
            fx += dx * inv
            fy += dy * inv
            fz += dz * inv
        F[i, 0] = fx
        F[i, 1] = fy
        F[i, 2] = fz


@on("ptr{int32}[(+ N 1)]", "col{int32}[Z]", "v{float}[Z]", "x{float}[M]", "y{float}[N]",
    sizes={"N": 5000, "Z": 50000, "M": 4000}, made="y", ptr=offsets("Z"), col=integers(0, "M"))
def sparse_times_vector(ptr, col, v, x, y):
    N = y.shape[0]
    for i in range(N):
        s = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            s += v[k] * x[col[k]]
        y[i] = s


@on("W{int32}[H V]", sizes={"H": 120, "V": 160}, made="W")
def mandelbrot(W):
    H, V = W.shape
    for i in range(H):
        for j in range(V):
            cr = -2.0 + 3.0 * j / V
            ci = -1.5 + 3.0 * i / H
            zr, zi = 0.0, 0.0
            n = 0
            for _k in range(50):
                if zr * zr + zi * zi > 4.0:
                    break
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                n += 1
            W[i, j] = n


@on("U{double}[N M]", sizes={"N": 200, "M": 200}, restored="U")
def gauss_seidel(U):
    N, M = U.shape
    for _it in range(4):
        for i in range(1, N - 1):
            for j in range(1, M - 1):
                U[i, j] = 0.25 * (U[i - 1, j] + U[i + 1, j] + U[i, j - 1] + U[i, j + 1])


@on("U{float}[N M]", "V{float}[N M]", sizes={"N": 400, "M": 400}, made="V")
def jacobi(U, V):
    N, M = U.shape
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            V[i, j] = 0.25 * (U[i - 1, j] + U[i + 1, j] + U[i, j - 1] + U[i, j + 1])


@on("a{double}[B N]", "b{double}[B N]", "c{double}[B N]", "d{double}[B N]",
    sizes={"B": 64, "N": 300}, restored="d c", b=shifted(5))
def thomas(a, b, c, d):
    B, N = d.shape
    for k in range(B):
        c[k, 0] = c[k, 0] / b[k, 0]
        d[k, 0] = d[k, 0] / b[k, 0]
        for i in range(1, N):
            w = b[k, i] - a[k, i] * c[k, i - 1]
            c[k, i] = c[k, i] / w
            d[k, i] = (d[k, i] - a[k, i] * d[k, i - 1]) / w
        for i in range(N - 2, -1, -1):
            d[k, i] = d[k, i] - c[k, i] * d[k, i + 1]


@on("X{float}[N D]", "Q{float}[M D]", "best{int64}[M]", sizes={"N": 500, "M": 200, "D": 16}, made="best")
def nearest(X, Q, best):
    N, D = X.shape
    M = Q.shape[0]
    for i in range(M):
        low = np.inf
        at = 0
        for j in range(N):
            s = 0.0
            for k in range(D):
                t = X[j, k] - Q[i, k]
                s += t * t
            if s < low:
                low = s
                at = j
        best[i] = at


@on("x{float}[N]", "y{float}[N]", "H{int32}[16 16]", sizes={"N": 50000}, made="H", x=unit, y=unit)
def histogram_2d(x, y, H):
    N = x.shape[0]
    for i in range(16):
        for j in range(16):
            H[i, j] = 0
    for k in range(N):
        i = int(x[k] * 16)
        j = int(y[k] * 16)
        if 0 <= i < 16 and 0 <= j < 16:
            H[i, j] += 1


@on("X{float}[H W]", "Y{float}[P Q]", sizes={"H": 100, "W": 120, "P": 200, "Q": 240}, made="Y")
def bilinear(X, Y):
    H, W = X.shape
    P, Q = Y.shape
    for i in range(P):
        for j in range(Q):
            y = (i + 0.5) * H / P - 0.5
            x = (j + 0.5) * W / Q - 0.5
            y0 = int(np.floor(y))
            x0 = int(np.floor(x))
            fy, fx = y - y0, x - x0
            y1 = min(max(y0 + 1, 0), H - 1)
            x1 = min(max(x0 + 1, 0), W - 1)
            y0 = min(max(y0, 0), H - 1)
            x0 = min(max(x0, 0), W - 1)
            Y[i, j] = ((X[y0, x0] * (1 - fx) + X[y0, x1] * fx) * (1 - fy)
                       + (X[y1, x0] * (1 - fx) + X[y1, x1] * fx) * fy)


@on("X{float}[H W]", "T{float}[H W]", "Y{float}[H W]", sizes={"H": 300, "W": 300}, made="T Y")
def separable_blur(X, T, Y):
    H, W = X.shape
    for i in range(H):
        for j in range(W):
            s = 0.0
            for k in range(-2, 3):
                q = min(max(j + k, 0), W - 1)
                s += X[i, q]
            T[i, j] = s / 5
    for i in range(H):
        for j in range(W):
            s = 0.0
            for k in range(-2, 3):
                q = min(max(i + k, 0), H - 1)
                s += T[q, j]
            Y[i, j] = s / 5


@on("X{float}[C L]", "K{float}[F C 5]", "Y{float}[F (- L 4)]", sizes={"C": 16, "L": 500, "F": 24}, made="Y")
def convolution_1d(X, K, Y):
    C, L = X.shape
    F = K.shape[0]
    for f in range(F):
        for t in range(L - 4):
            s = 0.0
            for c in range(C):
                for k in range(5):
                    s += X[c, t + k] * K[f, c, k]
            Y[f, t] = s


@on("A{float}[M K]", "B{float}[K N]", "C{float}[M N]", sizes={"M": 150, "N": 160, "K": 170}, made="C")
def product(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@on("Q{float}[T D]", "K{float}[T D]", "V{float}[T D]", "Y{float}[T D]", "s{float}[T]",
    sizes={"T": 128, "D": 64}, made="Y s")
def causal_attention(Q, K, V, Y, s):
    T, D = Q.shape
    for i in range(T):
        top = -np.inf
        for j in range(i + 1):
            d = 0.0
            for k in range(D):
                d += Q[i, k] * K[j, k]
            s[j] = d / np.sqrt(D)
            top = max(top, s[j])
        z = 0.0
        for j in range(i + 1):
            s[j] = np.exp(s[j] - top)
            z += s[j]
        for k in range(D):
            Y[i, k] = 0
        for j in range(i + 1):
            for k in range(D):
                Y[i, k] += s[j] / z * V[j, k]


@on("x{float}[C T]", "y{float}[C T]", sizes={"C": 64, "T": 2000}, made="y")
def moving_average(x, y):
    C, T = x.shape
    for c in range(C):
        s = 0.0
        for t in range(T):
            s = 0.9 * s + 0.1 * x[c, t]
            y[c, t] = s


@on("X{float}[N 5]", sizes={"N": 20000}, restored="X")
def bubble_sort(X):
    N = X.shape[0]
    for i in range(N):
        for a in range(5):
            for b in range(4 - a):
                if X[i, b] > X[i, b + 1]:
                    t = X[i, b]
                    X[i, b] = X[i, b + 1]
                    X[i, b + 1] = t


@on("X{float}[N M]", sizes={"N": 500, "M": 20}, restored="X")
def insertion_sort(X):
    N, M = X.shape
    for r in range(N):
        for i in range(1, M):
            for j in range(i, 0, -1):
                if X[r, j - 1] <= X[r, j]:
                    break
                t = X[r, j]
                X[r, j] = X[r, j - 1]
                X[r, j - 1] = t


@on("n{int64}[N]", "c{int32}[N]", sizes={"N": 5000}, made="c", n=integers(1, 5000))
def collatz(n, c):
    N = n.shape[0]
    for i in range(N):
        x = n[i]
        k = 0
        for _s in range(1000):
            if x == 1:
                break
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            k += 1
        c[i] = k


@on("p{int8}[N]", sizes={"N": 100000}, made="p")
def sieve(p):
    N = p.shape[0]
    for i in range(N):
        p[i] = 1
    for i in range(2, N):
        if p[i] == 1:
            for j in range(2 * i, N, i):
                p[j] = 0


@on("b{uint8}[N]", "out{uint32}[1]", sizes={"N": 20000}, made="out", b=integers(0, 255))
def crc32(b, out):
    N = b.shape[0]
    c = np.uint32(4294967295)
    for i in range(N):
        c = c ^ np.uint32(b[i])
        for _k in range(8):
            c = (c >> np.uint32(1)) ^ (np.uint32(3988292384) if c & np.uint32(1) else np.uint32(0))
    out[0] = c ^ np.uint32(4294967295)


@on("src{int64}[E]", "dst{int64}[E]", "X{float}[N F]", "Y{float}[N F]",
    sizes={"E": 20000, "N": 2000, "F": 32}, made="Y", src=integers(0, "N"), dst=integers(0, "N"))
def sum_of_edges(src, dst, X, Y):
    N, F = Y.shape
    for i in range(N):
        for f in range(F):
            Y[i, f] = 0
    for e in range(src.shape[0]):
        for f in range(F):
            Y[dst[e], f] += X[src[e], f]


@on("X{double}[N D]", "y{double}[N]", "w{double}[D]", "g{double}[D]",
    sizes={"N": 2000, "D": 20}, restored="w", made="g")
def logistic_regression(X, y, w, g):
    N, D = X.shape
    for _it in range(10):
        for d in range(D):
            g[d] = 0.0
        for i in range(N):
            z = 0.0
            for d in range(D):
                z += X[i, d] * w[d]
            r = 1 / (1 + np.exp(-z)) - y[i]
            for d in range(D):
                g[d] += r * X[i, d]
        for d in range(D):
            w[d] -= 0.1 * g[d] / N


@on("X{float}[N D]", "C{float}[K D]", "S{float}[K D]", "n{int64}[K]", sizes={"N": 3000, "D": 8, "K": 10}, made="S n")
def kmeans(X, C, S, n):
    N, D = X.shape
    K = C.shape[0]
    for k in range(K):
        n[k] = 0
        for d in range(D):
            S[k, d] = 0
    for i in range(N):
        best = np.inf
        at = 0
        for k in range(K):
            s = 0.0
            for d in range(D):
                s += (X[i, d] - C[k, d]) ** 2
            if s < best:
                best = s
                at = k
        n[at] += 1
        for d in range(D):
            S[at, d] += X[i, d]


@on("X{double}[N D]", "R{double}[N N]", sizes={"N": 300, "D": 10}, made="R")
def distances(X, R):
    N, D = X.shape
    for i in range(N):
        for j in range(i + 1, N):
            s = 0.0
            for d in range(D):
                t = X[i, d] - X[j, d]
                s += t * t
            R[i, j] = np.sqrt(s)
            R[j, i] = R[i, j]


@on("X{float}[H W]", "S{float}[H W]", sizes={"H": 300, "W": 300}, made="S")
def integral_image(X, S):
    H, W = X.shape
    for i in range(H):
        row = 0.0
        for j in range(W):
            row += X[i, j]
            S[i, j] = row + (S[i - 1, j] if i > 0 else 0.0)


@on("A{uint8}[H W]", "B{uint8}[H W]", sizes={"H": 200, "W": 200}, made="B", A=integers(0, 2))
def game_of_life(A, B):
    H, W = A.shape
    for i in range(H):
        for j in range(W):
            n = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di != 0 or dj != 0:
                        n += A[(i + di) % H, (j + dj) % W]
            B[i, j] = 1 if n == 3 or (n == 2 and A[i, j] == 1) else 0


@on("X{uint8}[H W 3]", "Y{uint8}[H W]", sizes={"H": 300, "W": 400}, made="Y", X=integers(0, 255))
def grayscale(X, Y):
    H, W = Y.shape
    for i in range(H):
        for j in range(W):
            Y[i, j] = np.uint8(0.299 * X[i, j, 0] + 0.587 * X[i, j, 1] + 0.114 * X[i, j, 2])


@on("X{double}[N D]", "m{double}[D]", "v{double}[D]", sizes={"N": 5000, "D": 16}, made="m v")
def welford(X, m, v):
    N, D = X.shape
    for d in range(D):
        m[d] = 0
        v[d] = 0
    for i in range(N):
        for d in range(D):
            delta = X[i, d] - m[d]
            m[d] += delta / (i + 1)
            v[d] += delta * (X[i, d] - m[d])


@on("r{double}[(+ N 1)]", "a{double}[(+ N 1)]", "b{double}[(+ N 1)]", sizes={"N": 200}, made="a b", r=leading(100))
def levinson(r, a, b):
    N = r.shape[0] - 1
    e = r[0]
    for i in range(N + 1):
        a[i] = 0
        b[i] = 0
    a[0] = 1
    for i in range(1, N + 1):
        acc = 0.0
        for j in range(i):
            acc += a[j] * r[i - j]
        k = -acc / e
        for j in range(i + 1):
            b[j] = a[j] + k * a[i - j]
        for j in range(i + 1):
            a[j] = b[j]
        e *= 1 - k * k
