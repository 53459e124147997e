"""Programs with loops over elements, as users of numerical Python write them: what they declare, sizes, and code."""
from __future__ import annotations

from typing import NamedTuple


class PythonProgram(NamedTuple):
    """`inputs`, `outputs`: in the notation of a spec, separated by semicolons. `sizes`: `M=4 N=6`."""

    inputs: str
    outputs: str
    sizes: str
    code: str


def _program(inputs: str, outputs: str, sizes: str, code: str) -> PythonProgram:
    return PythonProgram(inputs, outputs, sizes, code.strip("\n"))


SQUARE = "A{double}[N N]"
PROGRAMS: dict[str, PythonProgram] = {
    "matrix product": _program("A{float}[M K]; B{float}[K N]; C{float}[M N]", "C", "M=4 N=6 K=5", """
for i in range(M):
    for j in range(N):
        for p in range(K):
            C[i, j] += A[i, p] * B[p, j]
"""),
    "product of rows and columns": _program("A{float}[M K]; B{float}[K N]", "C{float}[M N]", "M=4 N=6 K=5", """
for i in range(M):
    for j in range(N):
        C[i, j] = A[i, :] @ B[:, j]
"""),
    "stores at indices": _program("X{float}[M N]; I{int}[K]", "Y{float}[M N]", "M=5 N=6 K=3", """
Y = X.copy()
Y[I] = 2 * X[:K]
Y[:, [0, 5]] = -1
Y[I[:2, None], np.arange(2)] += 1
Y[[0, 2]] = Y[[2, 0]]
Y[np.array([1, 1]), 3] = X[0, :2]
return Y
"""),
    "rows exchanged": _program("A{double}[N N]; I{int}[2]", "A; d{double}[]", "N=5", """
d = 1.0
for k in range(N):
    p = np.argmax(np.abs(A[k:, k])) + k
    if p != k:
        A[[k, p]] = A[[p, k]]
        d = -d
    d *= A[k, k]
    A[k + 1:] -= np.outer(A[k + 1:, k] / A[k, k], A[k])
A[:, [0, I[0]]] = A[:, [I[0], 0]]
"""),
    "edit distance, a row from the one before": _program("a{int}[M]; b{int}[N]", "d{int}[]", "M=5 N=6", """
before = np.arange(N + 1)
for i in range(M):
    row = np.empty(N + 1, np.int64)
    row[0] = i + 1
    for j in range(N):
        row[j + 1] = min(row[j] + 1, before[j + 1] + 1, before[j] + (a[i] != b[j]))
    before = row
d = before[N]
"""),
    "softmax": _program("X{float}[M N]", "Y{float}[M N]", "M=4 N=6", """
for i in range(M):
    top = -np.inf
    for j in range(N):
        top = max(top, X[i, j])
    s = 0.0
    for j in range(N):
        Y[i, j] = np.exp(X[i, j] - top)
        s += Y[i, j]
    for j in range(N):
        Y[i, j] /= s
"""),
    "softmax of rows": _program("X{float}[M N]", "Y{float}[M N]", "M=4 N=6", """
for i, row in enumerate(X):
    e = np.exp(row - row.max())
    Y[i] = e / e.sum()
"""),
    "whole arrays around loops": _program("X{float}[M N]; w{float}[N]", "Y{float}[M N]", "M=4 N=6", """
Z = X * w + 1
m = Z.mean(axis=1)
for i in range(M):
    for j in range(N):
        if Z[i, j] > m[i] and j > 0:
            Y[i, j] = Z[i, j] - m[i]
        else:
            Y[i, j] = 0.5
Y = Y * 2
"""),
    "a choice before an index": _program("x{float}[N]", "y{float}[N]", "N=7", """
for i in range(N):
    if i > 0 and x[i - 1] > 0:
        y[i] = x[i] - x[i - 1]
    elif i == 0 or x[i] < 0:
        y[i] = -1
    else:
        y[i] = x[i] if not x[i] > 1.0 else 1.0
"""),
    "negative indices": _program("x{float}[N]", "y{float}[N]", "N=7", """
for i in range(N):
    y[i] = x[i - 3] + x[-1] + x[-i]
"""),
    "the other way round": _program("x{float}[N]", "y{float}[N]", "N=7", """
s = 0.0
for i in range(N - 1, -1, -1):
    s += x[i]
    y[i] = s
for i in range(1, N, 3):
    y[i] *= 2
"""),
    "sparse rows": _program("ptr{int}[4]; col{int32}[Z]; val{float}[Z]; x{float}[N]", "y{float}[3]", "Z=5 N=4", """
for i in range(3):
    s = 0.0
    for k in range(ptr[i], ptr[i + 1]):
        s += val[k] * x[col[k]]
    y[i] = s
"""),
    "histogram": _program("k{int}[N]; w{float}[N]", "h{float}[8]", "N=9", """
h[...] = 0
for i in range(N):
    h[k[i]] += w[i]
"""),
    "least and where": _program("X{float}[M N]", "y{int}[M]; v{float}[M]", "M=4 N=6", """
for i in range(M):
    best, at = np.inf, 0
    for j in range(N):
        if X[i, j] < best:
            best = X[i, j]
            at = j
    y[i] = at
    v[i] = best
"""),
    "how many": _program("x{float}[N]", "y{float}[N]; c{int}[]", "N=9", """
count = 0
y[...] = 0
for i in range(N):
    if x[i] > 0:
        y[count] = x[i]
        count += 1
c[...] = count
"""),
    "a function": _program("X{float}[M N]", "Y{float}[M N]", "M=4 N=6", """
def clamp(v, lo, hi):
    return lo if v < lo else hi if v > hi else v

def scaled(v, by=None):
    w = v * 2
    return w + 1
for i in range(M):
    for j in range(N):
        Y[i, j] = clamp(scaled(X[i, j]), -1.0, 1.5)
""".replace(", by=None", "")),
    "a window of known weights": _program("X{float}[M N]", "Y{float}[M N]", "M=3 N=6", """
k = (0.25, 0.5, 0.25)
for i in range(M):
    for j in range(N):
        s = 0.0
        for d in range(3):
            if 0 <= j + d - 1 < N:
                s += k[d] * X[i, j + d - 1]
        Y[i, j] = s
"""),
    "exchanged variables": _program("x{float}[N]", "y{float}[N]", "N=8", """
a, b = 0.0, 1.0
for i in range(N):
    a, b = b, a + b * x[i]
    y[i] = a
"""),
    "whole arrays in a loop": _program("A{double}[N N]; x{double}[N]; T{int}[]", "y{double}[N]", "N=4 T=3", """
v = x / np.sqrt((x * x).sum())
for t in range(T):
    v = A @ v
    v = v / np.sqrt((v * v).sum())
y = v
"""),
    "iterations that are unrolled": _program("X{float}[M N]; Ws{float}[3 N N]", "Y{float}[M N]", "M=4 N=5", """
H = X
for l in range(3):
    H = np.tanh(H @ Ws[l])
for i in range(M):
    Y[i] = H[i] - H[i].mean()
"""),
    "variables of both branches": _program("x{float}[N]; s{float}[]", "y{float}[N]", "N=6 s=0.25", """
if s > 0:
    scale = 2 * s
else:
    scale = -s
for i in range(N):
    if x[i] > s:
        v = x[i] * scale
        w = 1.0
    else:
        w = 0.5
        v = x[i]
    y[i] = v - w
"""),
    "a view that is changed": _program("A{float}[M N]", "A", "M=4 N=5", """
for i in range(M):
    row = A[i]
    row[0] = 1
    for j in range(1, N):
        row[j] += row[j - 1] * 0.5
"""),
    "rows that overlap": _program("A{float}[M N]", "A", "M=4 N=5", """
for i in range(M):
    A[i, 1:] = A[i, :-1] * 2 - A[i, 1:]
    A[i] = A[i, ::-1]
"""),
    "returned": _program("X{float}[M N]", "lo{float}[M]; hi{float}[M]", "M=4 N=5", """
low, high = np.zeros(M), np.zeros(M)
for i in range(M):
    low[i] = X[i].min()
    high[i] = X[i].max()
return low, high
""".replace("np.zeros(M)", "np.zeros(M, np.float32)")),
    "outputs exchanged": _program("a{float}[N]; b{float}[N]", "a; b", "N=5", """
for i in range(N):
    a[i] += 1
return b, a
"""),
    "a product in place": _program("A{double}[N N]; x{double}[N]", "x", "N=5", """
for i in range(N):
    x[:i] = A[:i, :i] @ x[:i]
"""),
    "a function with names of its own": _program("x{float}[N]", "y{float}[N]", "N=6", """
t = 1.0
t += 1.0
s = x * 3
s = s + 1
def f(v):
    t = v * 2
    t += 1.0
    return t
def g(v):
    s = x * v
    s = s * 2
    return s.sum()
for i in range(N):
    if x[i] > 0:
        u = t
    else:
        u = f(x[i]) + f(2 * x[i])
    y[i] = f(x[i]) + t + g(x[i]) + s[i] + u
"""),
    "half floats": _program("A{half}[M K]; B{half}[K N]", "C{half}[M N]", "M=3 N=4 K=5", """
C[...] = 0
for i in range(M):
    for j in range(N):
        for p in range(K):
            C[i, j] += A[i, p] * B[p, j]
"""),
    "integers": _program("a{int32}[N]; b{uint8}[N]", "y{int32}[N]; z{uint8}[N]", "N=8", """
for i in range(N):
    y[i] = a[i] // 3 - a[i] % 5 + i
    z[i] = (b[i] ^ 21) >> 1
"""),
    "check sum": _program("data{uint8}[N]", "crc{uint32}[]", "N=9", """
r = np.uint32(65535)
for i in range(N):
    r ^= data[i].astype(np.uint32) << 8
    for k in range(8):
        r = (r << 1) ^ 4129 if (r & 32768) > 0 else r << 1
        r &= 65535
crc[...] = r
"""),
    "escape times": _program("cr{float}[N]; ci{float}[N]", "steps{int}[N]", "N=6", """
for i in range(N):
    x, y, count = 0.0, 0.0, 0
    for k in range(30):
        inside = x * x + y * y <= 4.0
        x, y = np.where(inside, x * x - y * y + cr[i], x), np.where(inside, 2 * x * y + ci[i], y)
        count += np.where(inside, 1, 0)
    steps[i] = count
"""),
    # of PolyBench and its like, from their definitions
    "atax": _program("A{double}[M N]; x{double}[N]", "y{double}[N]", "M=4 N=6", "y[...] = 0\nfor i in range(M):\n    y += A[i] * (A[i] @ x)"),
    "bicg": _program("A{double}[N M]; p{double}[M]; r{double}[N]", "s{double}[M]; q{double}[N]", "M=4 N=6", """
s[...] = 0
for i in range(N):
    q[i] = 0
    for j in range(M):
        s[j] += r[i] * A[i, j]
        q[i] += A[i, j] * p[j]
"""),
    "gemver": _program(f"alpha{{double}}[]; beta{{double}}[]; {SQUARE}; u1{{double}}[N]; v1{{double}}[N]; u2{{double}}[N]; v2{{double}}[N]; y{{double}}[N]; "
                       "z{double}[N]", "A; x{double}[N]; w{double}[N]", "N=5 alpha=1.5 beta=0.5", """
A += np.outer(u1, v1) + np.outer(u2, v2)
for i in range(N):
    x[i] = z[i] + beta * (y @ A[:, i])
for i in range(N):
    w[i] = alpha * (A[i] @ x)
"""),
    "doitgen": _program("A{double}[R Q P]; C4{double}[P P]", "A", "R=2 Q=3 P=4", """
for r in range(R):
    for q in range(Q):
        A[r, q, :] = A[r, q, :] @ C4
"""),
    "jacobi 1d": _program("A{double}[N]; B{double}[N]; T{int}[]", "A; B", "N=9 T=3", """
for t in range(1, T):
    B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
    A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
"""),
    "jacobi 2d": _program("A{double}[N N]; B{double}[N N]; T{int}[]", "A; B", "N=6 T=3", """
for t in range(1, T):
    B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
    A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
"""),
    "seidel 2d": _program(f"{SQUARE}; T{{int}}[]", "A", "N=6 T=2", """
for t in range(0, T - 1):
    for i in range(1, N - 1):
        A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
        for j in range(1, N - 1):
            A[i, j] += A[i, j - 1]
            A[i, j] /= 9.0
"""),
    "fdtd 2d": _program("ex{double}[M N]; ey{double}[M N]; hz{double}[M N]; fict{double}[T]", "ex; ey; hz", "M=4 N=5 T=2", """
for t in range(T):
    ey[0, :] = fict[t]
    ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
    ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
    hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
"""),
    "correlation": _program("data{double}[M N]", "corr{double}[N N]", "M=6 N=4", """
mean = data.mean(axis=0)
sd = data.std(axis=0)
sd = np.where(sd <= 0.1, 1.0, sd)
z = (data - mean) / (np.sqrt(1.0 * M) * sd)
for i in range(N):
    corr[i, i] = 1.0
    for j in range(i + 1, N):
        corr[i, j] = z[:, i] @ z[:, j]
        corr[j, i] = corr[i, j]
"""),
    "covariance": _program("data{double}[M N]", "cov{double}[N N]", "M=6 N=4", """
z = data - data.mean(axis=0)
for i in range(N):
    cov[i:N, i] = z[:, i] @ z[:, i:N] / (M - 1.0)
    cov[i, i:N] = cov[i:N, i]
"""),
    "syrk": _program("alpha{double}[]; beta{double}[]; A{double}[N M]; C{double}[N N]", "C", "M=4 N=5 alpha=1.5 beta=1.2", """
for i in range(N):
    C[i, :i + 1] *= beta
    for k in range(M):
        C[i, :i + 1] += alpha * A[i, k] * A[:i + 1, k]
"""),
    "trmm": _program("alpha{double}[]; A{double}[M M]; B{double}[M N]", "B", "M=4 N=3 alpha=1.5", """
for i in range(M):
    for j in range(N):
        B[i, j] += A[i + 1:, i] @ B[i + 1:, j]
B *= alpha
"""),
    "floyd warshall": _program("path{int32}[N N]", "path", "N=5", """
for k in range(N):
    for i in range(N):
        for j in range(N):
            path[i, j] = min(path[i, j], path[i, k] + path[k, j])
"""),
    "triangular solve": _program("L{double}[N N]; b{double}[N]", "x{double}[N]", "N=5", """
for i in range(N):
    x[i] = (b[i] - L[i, :i] @ x[:i]) / (L[i, i] + 4)
"""),
    "lu": _program(SQUARE, "A", "N=5", """
for i in range(N):
    A[i, i] += 5
for i in range(N):
    for j in range(i):
        A[i, j] -= A[i, :j] @ A[:j, j]
        A[i, j] /= A[j, j]
    for j in range(i, N):
        A[i, j] -= A[i, :i] @ A[:i, j]
"""),
    "cholesky": _program(SQUARE, "A", "N=5", """
for i in range(N):
    A[i, i] = A[i, i] + 20.0
for i in range(N):
    for j in range(i):
        A[i, j] = (A[i, j] - np.dot(A[i, :j], A[j, :j])) / A[j, j]
    A[i, i] = np.sqrt(A[i, i] - np.dot(A[i, :i], A[i, :i]))
"""),
    "durbin": _program("r{double}[N]", "y{double}[N]", "N=5", """
y[0] = -r[0]
alpha, beta = -r[0], 1.0
for k in range(1, N):
    beta *= 1.0 - alpha * alpha
    alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
    for i in range(k):
        pass
    t = np.zeros(N)
    for i in range(k):
        t[i] = y[i] + alpha * y[k - 1 - i]
    y[:k] = t[:k]
    y[k] = alpha
"""),
    "gram schmidt": _program("A{double}[M N]", "A; Q{double}[M N]; R{double}[N N]", "M=5 N=3", """
R[...] = 0
for k in range(N):
    R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
    Q[:, k] = A[:, k] / R[k, k]
    for j in range(k + 1, N):
        R[k, j] = np.dot(Q[:, k], A[:, j])
        A[:, j] -= Q[:, k] * R[k, j]
"""),
    "deriche, one direction": _program("img{float}[W H]; a1{float}[]; b1{float}[]", "y{float}[W H]", "W=4 H=6 a1=0.3 b1=0.6", """
y1 = np.zeros((W, H), np.float32)
for i in range(W):
    ym, xm = 0.0, 0.0
    for j in range(H):
        y1[i, j] = a1 * img[i, j] + b1 * xm + 0.5 * ym
        xm = img[i, j]
        ym = y1[i, j]
y = y1 * 2
"""),
    "bodies": _program("pos{double}[N 3]; mass{double}[N]", "acc{double}[N 3]", "N=5", """
acc[...] = 0
for i in range(N):
    for j in range(N):
        if i != j:
            d = pos[j] - pos[i]
            r2 = (d * d).sum() + 0.01
            acc[i] += d * (mass[j] / (r2 * np.sqrt(r2)))
"""),
    "convolution": _program("X{float}[B C H W]; F{float}[O C 3 3]; bias{float}[O]", "Y{float}[B O (- H 2) (- W 2)]", "B=2 C=2 H=5 W=6 O=3", """
for b in range(B):
    for o in range(O):
        for y in range(H - 2):
            for x in range(W - 2):
                s = bias[o]
                for c in range(C):
                    for u in range(3):
                        for v in range(3):
                            s += X[b, c, y + u, x + v] * F[o, c, u, v]
                Y[b, o, y, x] = max(s, 0.0)
"""),
    "nussinov, pairs": _program("seq{int32}[N]", "table{int32}[N N]", "N=6", """
table[...] = 0
for i in range(N - 1, -1, -1):
    for j in range(i + 1, N):
        table[i, j] = max(table[i, j], table[i, j - 1])
        table[i, j] = max(table[i, j], table[i + 1, j])
        if i < j - 1:
            table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
        else:
            table[i, j] = max(table[i, j], table[i + 1, j - 1])
        for k in range(i + 1, j):
            table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
""".replace("for i in range(N - 1, -1, -1):", "for i in range(N - 2, -1, -1):")),
    "heat 3d": _program("A{double}[N N N]; B{double}[N N N]", "B", "N=5", """
B[1:-1, 1:-1, 1:-1] = (0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
                       + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1]) + A[1:-1, 1:-1, 1:-1])
for i in range(N):
    B[i, 0, 0] = i
"""),
    "a name is the variable of a loop, and a number in another": _program("A{double}[N N]", "x{double}[N]", "N=5", """
for i in range(N):
    x[i] = 0.0
    for j in range(i):
        x[i] += A[i, :j] @ A[:j, j]
for k in range(N):
    i = N - 1 - k
    x[i] = x[i] * 2 + A[i, i + 1:].sum()
for k in range(3):
    i = k + 1
    for i in range(2):
        x[i] += 1.0
    x[i] += 10.0
    i = 3
    x[i] += 100.0"""),
    "indices of all elements": _program("X{double}[M N]; y{double}[M N 3]", "total{double}[]; y", "M=3 N=4", """
total = 0.0
for i, j in np.ndindex(M, N):
    total += X[i, j] * (i - j)
for at in np.ndindex(X.shape):
    y[at] *= X[at]
    y[*at, 2] += 1.0
for at in np.ndindex(()):
    total = total * 2 + len(at)
return total, y"""),
    "a matrix at a time": _program("A{double}[M N N]", "T{double}[M]", "M=3 N=4", """
T = np.zeros(M)
for at in np.ndindex(A.shape[:-2]):
    W = np.copy(A[at])
    for k in range(N):
        W[k] -= W[k].sum() * 0.5
    T[at] = W[0, 0] + W[N - 1, N - 1]
return T"""),
    "limits of types": _program("x{float}[N]; count{int32}[N]", "y{float}[N]; m{int32}[N]", "N=4", """
for i in range(N):
    y[i] = x[i] * np.finfo(np.float32).eps + np.finfo(np.float32).tiny
    m[i] = min(count[i], np.iinfo(np.int8).max) + np.iinfo(np.int32).min"""),
    "a loop with the name of a register": _program("x{float}[M N]; w{float}[N]", "y{float}[M N]", "M=3 N=37", """
for at in np.ndindex(M, N):
    a = abs(x[at])
    for step in range(2):
        if a > 0.5:
            b = a * w[at[1]]
            a = a - b
    y[at] = a"""),
    "names that differ in upper and lower case": _program("x{float}[T D]; W{float}[H D]; h{float}[H]", "w{float}[T H]; t{float}[]", "T=3 D=4 H=5", """
t = 0.0
for i in range(T):
    for j in range(H):
        w[i, j] = h[j]
        for d in range(D):
            w[i, j] += x[i, d] * W[j, d]
        t += w[i, j]
return w, t"""),
    "a bitonic sort": _program("x{double}[32]", "y{double}[32]", "", """
y[...] = x
k = 2
for a in range(5):
    j = k // 2
    for b in range(a + 1):
        for i in range(32):
            l = i ^ j
            if l > i:
                if ((i & k) == 0 and y[i] > y[l]) or ((i & k) != 0 and y[i] < y[l]):
                    t = y[i]
                    y[i] = y[l]
                    y[l] = t
        j = j // 2
    k = k * 2"""),
    "elements that masks select": _program("X{double}[M N]; k{int}[N]", "Y{double}[M N]; s{double}[9]; count{int}[]", "M=4 N=6", """
Y[...] = X
Y[Y > 0.5] *= 2
m = (Y < 0) & (X > -1)
Y[m] = np.sqrt(-X[m]) + 1
Y[(Y < 0) & (X > -1)] -= X[m].min()
s[0] = X[X > 0].sum()
s[1] = X[X > 0].mean()
s[2] = X[X < 0].max()
s[3] = X[X < 0].min()
s[4] = np.std(X[X > 0])
s[5] = np.var(X[m], ddof=1)
s[6] = 1.0 if (X[X > 0] > 0.5).any() else 0.0
s[7] = 1.0 if (X[X > 0] < 9).all() else 0.0
s[8] = X[X > 0].prod()
count[...] = X[X > 0].size + len(k[k > 1]) + k[k > 1].max() - k[k > 1].sum()
for i in range(M):
    row = Y[i]
    row[row > 1] -= 0.5
    low = Y[i] < 0
    Y[i][low] = Y[i][low] * i
    Y[i, 0] = Y[i][Y[i] > 0].mean() if (Y[i] > 0).any() else 0.0"""),
    "a beam search": _program("logp{double}[T V]", "score{double}[3]; path{int}[3 T]", "T=4 V=5", """
s = np.full(3, -np.inf)
s[0] = 0
p = np.zeros((3, T), np.int64)
for t in range(T):
    cand = (s[:, None] + logp[t]).reshape(3 * V)
    order = np.argsort(-cand)
    q = p.copy()
    for k in range(3):
        w = order[k]
        s[k] = cand[w]
        p[k] = q[w // V]
        p[k, t] = w % V
score[...] = s
path[...] = p"""),
    "what lists and arguments were before stores": _program("x{double}[N]", "y{double}[N]", "N=9", """
def changed(v):
    y[0] = 3
    return v
def views(v):
    v[0] = 4
    return v[1]
y[...] = x
for i in range(N - 1):
    t = (y[i], y[i + 1] * 2)
    y[i] = t[1]
    y[i + 1] = t[0]
    c = [y * 2, y[::-1]]
    c.append((y + 1).reshape(3, 3))
    c.append(y[i])
    y[i] = c[0][i] + c[1][0] + c[2][0, 1]
    y[0] = c[0][0] - c[3]
    for v in [y[i], y[i + 1]]:
        y[i + 1] = v + 1
    c[0] = y[2]
    y[2] = 0.5
    y[i] += c[0] + changed(y[0] * 2) + views(y)
    rows = [y[0:2], y[2:4]]
    rows[0][1] = 5
    y[i] -= rows[1][0] + y[1]"""),
    "calls that change elements": _program("x{double}[N]", "y{double}[N]", "N=9", """
def f(k):
    y[k] = 100.0 + k
    return 1.0
def g(k):
    return f(k) + 0.5
y[...] = x
for i in range(N - 2):
    y[i + 1] = y[i] + g(i)
    y[i + 2] += f(i + 2)
    y[i] = max(y[i], f(i)) + (1.0 if y[i + 1] < f(i + 1) else 0.0)
    t = (y[i], f(i))
    y[i + 1] -= t[0]"""),
    "variables that are negative at times": _program("x{double}[N]; n{int}[]", "y{double}[N]", "N=9 n=-3", """
down, back, later, swapped, other, product, chosen, scaled = 0, 3, 0, 0, 2, 2, 0, np.int64(1)
held = n + 2
for i in range(N):
    y[i] = x[down] + 10 * x[back] + 100 * x[later] + x[swapped] * 1000 + x[other] - x[product % 5] + 3 * x[chosen] + 7 * x[held]
    y[i] += x[scaled * product % 3 - 1]
    down -= 1
    back += -1
    if i > 4:
        later = i - N
    swapped, other = other, swapped - 1 if swapped > -4 else 0
    product *= -1
    chosen = -2 if x[i] > 0 else 1
    scaled = -scaled
    for k in range(2, -3, -2):
        y[i] += x[k]
    for k in range(n, 1):
        y[i] -= 2 * x[k]
    for k in range(held, 3, 2):
        y[i] += x[k] / 3"""),
    "a negative number from a function": _program("x{double}[N]", "y{double}[N]", "N=7", """
def before(k):
    return k - 2
def sign(k):
    m = k
    if k > 3:
        m = -k
    return m
at = 0
for i in range(N):
    y[i] = x[before(i)] + 10 * x[sign(i)] + 100 * x[at]
    at = before(at) % 4 - 1"""),
    "variables that are never negative": _program("x{double}[N]; I{int}[N]", "y{double}[N]", "N=8", """
src, dst, step = 0, N // 2, np.int64(1)
for i in range(N):
    at, to = src + i // 2, dst + (i * step) % (N // 2)
    y[i] = x[at] + 10 * x[to] + 100 * x[max(I[i], src)] + x[min(src, dst) + N // 4]
    src, dst = dst, src
    step = step * 2 % 5
    for k in range(src // 2, N // 2):
        y[i] += x[k + src // 2]"""),
    "several targets are views": _program("x{double}[M N]", "y{double}[M N]; z{double}[N]", "M=4 N=5", """
y[...] = x
p = x[0].copy()
q = np.zeros(N)
for i in range(M - 1):
    a, b = y[i], y[i + 1]
    a += b
    b -= a
    y[i], y[i + 1] = y[i + 1], y[i]
    y[i, 0], y[i, 1] = y[i, 1], y[i, 0]
    c = d = y[i] * 2
    c[0] = 5
    y[i] = d
    for j in range(1, N - 1):
        q[j] = (p[j - 1] + p[j + 1]) / 2
    p, q = q, p
z[...] = p"""),
    "selected elements are copies": _program("x{double}[N]", "y{double}[N]; s{double}[]", "N=9", """
y[...] = x
s[...] = 0
for i in range(N - 1):
    q = y[y > 0] * 2
    t = (y[y < 0], i)
    y[i] = 100.0
    y[i + 1] = -50.0
    s[...] += q.sum() + t[0].max()"""),
    "sizes and starred targets": _program("x{double}[M N]", "y{double}[M N]", "M=4 N=5", """
y[...] = x
M, N = x.shape
first, *rest = x.shape
for i in range(first):
    *most, last = (i, x[i, 0], x[i, 1])
    for j in range(rest[0]):
        N = x.shape[1]
        y[i, j] = x[i, N - 1 - j] * last + most[1]"""),
    "repeated positions and shadowed loops": _program("x{double}[M N]; k{int}[N]", "y{double}[M N]; last{int}[]", "M=4 N=5", """
y[...] = x
for i in range(M):
    y[i, k] += 1.5
    y[i, k[:3]] *= y[0, 0]
    for i in range(i, 3):
        y[i, 0] -= 1
    last = i
    y[i, 1] = 7"""),
}
