"""Functions of NumPy as people write them, and arrays to call them with: `python -m benchmarks.functions` compiles each
by `caten.op` and compares it with NumPy. No kernel was tuned for one of them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Make = Callable[[np.random.Generator], np.ndarray]


class ArrayFunction(NamedTuple):
    """A function, and what makes its arguments."""

    function: Callable[..., Any]
    makers: tuple[Make, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self, seed: int = 0) -> list[np.ndarray]:
        """Arrays for a call, the same ones for a seed."""
        rng = np.random.default_rng(seed)
        return [make(rng) for make in self.makers]


FUNCTIONS: list[ArrayFunction] = []


def on(*makers: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a function, to be called with these arrays."""
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.append(ArrayFunction(function, makers))
        return function
    return add


def normal(*shape: int) -> Make:
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Make:
    return lambda rng: rng.random(shape).astype(np.float32) + np.float32(0.1)


def integers(limit: int, *shape: int) -> Make:
    return lambda rng: rng.integers(0, limit, shape)


def as_bytes(limit: int, *shape: int) -> Make:
    return lambda rng: rng.integers(0, limit, shape).astype(np.uint8)


@on(normal(800, 3), normal(700, 3))
def pairwise(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))


@on(normal(2000, 100))
def zscore(x):
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-05)


@on(normal(1000, 1000))
def sym(x):
    return (x + x.T) / 2


@on(normal(2000, 100))
def cov(x):
    c = x - x.mean(axis=0, keepdims=True)
    return c.T @ c / (x.shape[0] - 1)


@on(normal(16, 64, 64), normal(32, 16, 3, 3))
def conv(x, w):
    out = np.zeros((w.shape[0], x.shape[1] - 2, x.shape[2] - 2), dtype=np.float32)
    for i in range(3):
        for j in range(3):
            out += np.einsum('oc,chw->ohw', w[:, :, i, j], x[:, i:i + x.shape[1] - 2, j:j + x.shape[2] - 2])
    return out


@on(normal(1000, 1000))
def heat(u):
    for _t in range(4):
        u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
    return u


@on(normal(100000))
def ema(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = np.float32(0.9) * y[i - 1] + np.float32(0.1) * x[i]
    return y


@on(normal(500, 200), integers(200, 500))
def nll(x, t):
    z = x - x.max(axis=1, keepdims=True)
    log = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -log[np.arange(x.shape[0]), t].mean()


@on(normal(8, 256, 64), normal(8, 256, 64), normal(8, 256, 64))
def attn(q, k, v):
    s = q @ np.swapaxes(k, 1, 2) / np.float32(8)
    s = np.where(np.tri(s.shape[1], s.shape[1], dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


@on(integers(1000, 100000))
def hist(x):
    h = np.zeros(1000, dtype=np.int64)
    for i in range(x.shape[0]):
        h[x[i]] += 1
    return h


@on(normal(3, 600, 800))
def gray_blur(x):
    g = np.float32(0.299) * x[0] + np.float32(0.587) * x[1] + np.float32(0.114) * x[2]
    p = np.pad(g, 1, mode='edge')
    H, W = g.shape
    return sum(p[i:i + H, j:j + W] for i in range(3) for j in range(3)) / 9


@on(normal(100000))
def haar(x):
    return np.concatenate([(x[0::2] + x[1::2]) * np.float32(0.7), (x[0::2] - x[1::2]) * np.float32(0.7)])


@on(normal(1000, 50), normal(600, 50))
def cosine(a, b):
    return a @ b.T / (np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None, :] + np.float32(1e-08))


@on(normal(20000), normal(50))
def corr(x, k):
    return np.convolve(x, k, mode='valid')


@on(normal(1000, 200))
def topk(x):
    return np.sort(x, axis=1)[:, ::-1][:, :10]


@on(positive(400, 400))
def sinkhorn(c):
    k = np.exp(-c)
    u = np.ones(k.shape[0], dtype=np.float32)
    v = np.ones(k.shape[1], dtype=np.float32)
    for _ in range(20):
        u = 1 / (k @ v)
        v = 1 / (k.T @ u)
    return u[:, None] * k * v[None, :]


@on(normal(8, 16, 64, 64))
def pool(x):
    a, b, c, d = x.shape
    return x.reshape(a, b, c // 2, 2, d // 2, 2).max(axis=(3, 5))


@on(normal(500, 500))
def jacobi(u):
    for _ in range(10):
        v = u.copy()
        v[1:-1, 1:-1] = np.float32(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = v
    return u


@on(normal(200000))
def median(x):
    return np.median(x)


@on(normal(1000, 1000))
def cum(x):
    return np.cumsum(x, axis=1)


@on(normal(1000, 1000))
def integral(x):
    return np.cumsum(np.cumsum(x, axis=0), axis=1)


@on(normal(60, 60), normal(50, 50))
def kron(a, b):
    return np.kron(a, b)


@on(normal(65536))
def rfft(x):
    return np.abs(np.fft.rfft(x))


@on(normal(500, 2))
def nbody(p):
    d = p[None, :, :] - p[:, None, :]
    r2 = (d ** 2).sum(-1) + np.float32(0.01)
    return (d / r2[:, :, None] ** 1.5).sum(axis=1)


@on(normal(120, 120))
def gauss_solve(a):
    n = a.shape[0]
    m = a + n * np.eye(n, dtype=np.float32)
    b = np.ones(n, np.float32)
    m = m.copy()
    for k in range(n):
        for i in range(k + 1, n):
            f = m[i, k] / m[k, k]
            m[i, k:] -= f * m[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n, np.float32)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - m[i, i + 1:] @ x[i + 1:]) / m[i, i]
    return x


@on(positive(150, 150))
def floyd(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        d = np.minimum(d, d[:, k][:, None] + d[k, :][None, :])
    return d


@on(normal(200000))
def newton(x):
    y = np.ones_like(x)
    a = np.abs(x) + 1
    for _ in range(6):
        y = np.float32(0.5) * (y + a / y)
    return y


@on(normal(2000, 50), integers(8, 2000))
def centroids(x, labels):
    one = (labels[:, None] == np.arange(8)[None, :]).astype(np.float32)
    return one.T @ x / np.maximum(one.sum(axis=0)[:, None], 1)


@on(normal(100000))
def bollinger(x):
    v = np.lib.stride_tricks.sliding_window_view(x, 20)
    return v.mean(axis=1) + 2 * v.std(axis=1)


@on(normal(500, 500))
def sobel(x):
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=np.float32)
    H, W = x.shape
    g = np.zeros((H - 2, W - 2), np.float32)
    h = np.zeros((H - 2, W - 2), np.float32)
    for i in range(3):
        for j in range(3):
            g += kx[i, j] * x[i:i + H - 2, j:j + W - 2]
            h += kx[j, i] * x[i:i + H - 2, j:j + W - 2]
    return np.hypot(g, h)


@on(normal(300, 300))
def hsvd(x):
    return np.linalg.svd(x, compute_uv=False)


@on(normal(200, 200))
def inv(x):
    return np.linalg.inv(x + 200 * np.eye(x.shape[0], dtype=np.float32))


@on(normal(300, 300))
def chol(x):
    return np.linalg.cholesky(x @ x.T + 300 * np.eye(x.shape[0], dtype=np.float32))


@on(normal(100000), normal(1000))
def search(x, y):
    return np.searchsorted(np.sort(y), x)


@on(normal(300000))
def sort(x):
    return np.sort(x)


@on(normal(300000))
def argsort(x):
    return np.argsort(x, kind="stable")


@on(normal(5000, 20), integers(5000, 3000))
def embed(w, i):
    return w[i].sum(axis=0)


@on(normal(3000, 20), integers(5000, 3000))
def scatter(u, i):
    z = np.zeros((5000, 20), np.float32)
    np.add.at(z, i, u)
    return z


@on(normal(64, 1024), normal(1024, 1024), normal(1024), normal(1024, 256))
def mlp(x, w1, b1, w2):
    return np.maximum(x @ w1 + b1, 0) @ w2


@on(normal(300, 300))
def gameoflife(x):
    g = (x > 0).astype(np.int32)
    for _ in range(5):
        n = sum(np.roll(g, (i, j), axis=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
        g = ((n == 3) | (g == 1) & (n == 2)).astype(np.int32)
    return g


@on(normal(2000))
def autocorr(x):
    return np.correlate(x, x, mode='full')


@on(normal(400, 400), normal(400, 400))
def einsum3(a, b):
    return np.einsum('ij,kj,ik->i', a, b, a)


@on(normal(100000, 3))
def quatnorm(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@on(normal(1000, 1000))
def argmaxs(x):
    return (x.argmax(axis=0), x.argmin(axis=1))


@on(normal(1000, 1000))
def percent(x):
    return np.percentile(x, 30, axis=1)


@on(normal(100000))
def runmax(x):
    return np.maximum.accumulate(x)


@on(normal(1000, 64))
def pdist_loop(x):
    n = x.shape[0]
    s = np.float32(0)
    for i in range(n):
        s += np.sqrt(((x - x[i]) ** 2).sum(axis=1)).sum()
    return s


@on(normal(256, 512), normal(512, 256), normal(256))
def gelu_layer(x, w, b):
    h = x @ w + b
    return 0.5 * h * (1 + np.tanh(np.float32(0.79788) * (h + np.float32(0.044715) * h ** 3)))


@on(normal(64, 128), normal(128, 128), normal(128, 10), integers(10, 64))
def mlp_loss(x, w, v, t):
    h = np.maximum(x @ w, 0)
    z = h @ v
    z = z - z.max(1, keepdims=True)
    return -(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(64), t].mean()


@on(normal(300, 300))
def power_it(a):
    v = np.ones(a.shape[0], np.float32)
    for _ in range(10):
        v = a @ v
        v = v / np.sqrt(v @ v)
    return v


@on(normal(400, 300))
def gram(x):
    return x.T @ x


@on(normal(500, 64), normal(400, 64))
def rbf(x, y):
    d = (x ** 2).sum(1)[:, None] + (y ** 2).sum(1)[None, :] - 2 * (x @ y.T)
    return np.exp(-np.maximum(d, 0) * np.float32(0.1))


@on(normal(32, 32, 32))
def moments3(x):
    return (x.mean((1, 2)), x.std((0, 2)), x.max((0, 1)))


@on(normal(200, 300, 3))
def img_norm(x):
    m = x.mean((0, 1))
    s = x.std((0, 1))
    return np.transpose((x - m) / s, (2, 0, 1))


@on(as_bytes(256, 480, 640))
def threshold(x):
    return np.where(x > 128, 255, 0).astype(np.uint8)


@on(as_bytes(256, 480, 640, 3))
def gray8(x):
    r, g, b = x[..., 0].astype(np.int32), x[..., 1].astype(np.int32), x[..., 2].astype(np.int32)
    return (r * 77 + g * 150 + b * 29 >> 8).astype(np.uint8)


@on(normal(1000, 1000))
def transpose_add(x):
    return x + np.float32(2) * x.T


@on(normal(1000, 1000))
def rowsoft(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@on(normal(1000, 1000))
def colsoft(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


@on(normal(100000, 8))
def layernorm8(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-05))


@on(normal(1000000))
def norm2(x):
    return np.sqrt((x * x).sum())


@on(normal(1000000), normal(1000000))
def saxpyish(x, y):
    return np.float32(2.5) * x + y


@on(normal(1000, 1000))
def diffs(x):
    return (np.diff(x, axis=0), np.diff(x, axis=1))


@on(normal(64, 64, 64))
def lap3(u):
    inner = u[1:-1, 1:-1, 1:-1]
    return (u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * inner)


@on(normal(10, 128, 128), normal(10, 128, 128))
def bmm(a, b):
    return a @ b


@on(normal(50, 40, 30), normal(40, 30, 20))
def tdot(a, b):
    return np.tensordot(a, b, axes=2)


@on(normal(200, 200), normal(200, 200), normal(200, 200))
def chain(a, b, c):
    return a @ b @ c


@on(normal(512, 512))
def lu_free(x):
    return np.triu(x) @ np.tril(x)


@on(normal(100000), integers(100, 100000))
def segsum(x, g):
    z = np.zeros(100, np.float32)
    np.add.at(z, g, x)
    return z


@on(normal(2000, 2000))
def rowmaxidx(x):
    return (x.argmax(1), np.take_along_axis(x, x.argmax(1)[:, None], 1))


@on(integers(50, 100000))
def modfilter(x):
    return np.where(x % 7 == 3, x * x, x // 2)


@on(normal(20000, 16))
def rank1(x):
    return np.argsort(x, axis=1, kind="stable")


@on(normal(300, 400))
def cumprod_axis(x):
    return np.cumprod(1 + np.float32(0.01) * x, axis=0)


@on(normal(128, 256), normal(128, 256))
def contrastive(a, b):
    a = a / np.linalg.norm(a, axis=1, keepdims=True)
    b = b / np.linalg.norm(b, axis=1, keepdims=True)
    s = a @ b.T * np.float32(10)
    s = s - s.max(1, keepdims=True)
    return -np.mean(np.diagonal(s) - np.log(np.exp(s).sum(1)))


@on(normal(12, 64, 96), normal(12, 64, 96))
def attn_scores(q, k):
    return np.einsum('hqd,hkd->hqk', q, k)


@on(normal(8, 64, 12, 64))
def heads(x):
    return x.transpose(0, 2, 1, 3).reshape(96, 64, 64)


@on(normal(100, 100, 100))
def perm(x):
    return np.ascontiguousarray(x.transpose(2, 0, 1)) + 1


@on(normal(1000, 30))
def standard_cov_inv(x):
    c = x - x.mean(0)
    s = c.T @ c / x.shape[0] + np.eye(30, dtype=np.float32)
    return np.einsum('ij,jk,ik->i', c, np.linalg.inv(s), c)


@on(normal(4096))
def win(x):
    n = np.arange(4096)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * n / 4095)
    return x * w


@on(positive(2000), positive(2000))
def interp(x, xp):
    xs = np.sort(xp)
    return np.interp(x, xs, xs * xs)


@on(normal(200, 1000))
def q90(x):
    return np.quantile(x, 0.9, axis=1)


@on(normal(1000, 1000))
def clipround(x):
    return np.round(np.clip(x * 10, -5, 5)).astype(np.int8)


@on(normal(64, 3, 32, 32), normal(16, 3, 3, 3))
def conv_loop(x, w):
    n, _c, h, ww = x.shape
    o = w.shape[0]
    y = np.zeros((n, o, h - 2, ww - 2), np.float32)
    for i in range(3):
        for j in range(3):
            y += np.einsum('nchw,oc->nohw', x[:, :, i:i + h - 2, j:j + ww - 2], w[:, :, i, j])
    return np.maximum(y, 0)


@on(normal(128, 64), normal(64, 64), normal(64, 64), normal(64, 64))
def self_attn(x, wq, wk, wv):
    q, k, v = (x @ wq, x @ wk, x @ wv)
    s = q @ k.T / np.float32(8)
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) @ v


@on(normal(256, 128), normal(128), normal(128))
def ln(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + np.float32(1e-05)) * g + b


@on(normal(100, 50), normal(50, 200), normal(50))
def gru_step(x, w, h):
    g = x @ w
    z = 1 / (1 + np.exp(-g[:, :50]))
    r = 1 / (1 + np.exp(-g[:, 50:100]))
    n = np.tanh(g[:, 100:150] + r * g[:, 150:])
    return (1 - z) * n + z * h


@on(normal(300, 40), normal(10, 40))
def kmeans_assign(x, c):
    return ((x[:, None, :] - c[None, :, :]) ** 2).sum(-1).argmin(1)


@on(normal(50, 60, 70))
def stats3(x):
    return (x.mean(0), x.var(1), x.max(2), x.sum((0, 1)), np.abs(x).mean())


@on(normal(2000), normal(2000))
def pearson(x, y):
    x = x - x.mean()
    y = y - y.mean()
    return (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())


@on(normal(1000, 20), normal(20))
def logreg_grad(x, w):
    p = 1 / (1 + np.exp(-(x @ w)))
    t = (x[:, 0] > 0).astype(np.float32)
    return x.T @ (p - t) / x.shape[0]


@on(normal(500, 500))
def dct_like(x):
    return np.cos(x) * np.sin(x) + np.tan(x * np.float32(0.1))


@on(normal(64, 64), normal(64, 64))
def kron_sum(a, b):
    return (np.kron(a[:8, :8], b[:8, :8]).sum(), a @ b - b @ a)


@on(normal(256, 256))
def power_spectrum(x):
    return np.abs(np.fft.fft2(x)) ** 2


@on(normal(1000, 3))
def bbox(x):
    return (x.min(0), x.max(0), x.max(0) - x.min(0))


@on(normal(400, 4), normal(300, 4))
def iou(a, b):
    a0 = np.minimum(a[:, :2], a[:, 2:])
    a1 = np.maximum(a[:, :2], a[:, 2:])
    b0 = np.minimum(b[:, :2], b[:, 2:])
    b1 = np.maximum(b[:, :2], b[:, 2:])
    w = np.maximum(np.minimum(a1[:, None], b1[None]) - np.maximum(a0[:, None], b0[None]), 0)
    inter = w[..., 0] * w[..., 1]
    aa = (a1 - a0).prod(1)
    bb = (b1 - b0).prod(1)
    return inter / (aa[:, None] + bb[None] - inter + np.float32(1e-06))


@on(integers(2, 200, 300))
def dilate(x):
    y = x.copy()
    y[1:] |= x[:-1]
    y[:-1] |= x[1:]
    y[:, 1:] |= x[:, :-1]
    y[:, :-1] |= x[:, 1:]
    return y


@on(normal(10000), integers(10000, 5000))
def gatherscale(x, i):
    return x[i] * 2 + x[i[::-1]]


@on(normal(1000, 100))
def minmax(x):
    lo = x.min(0)
    hi = x.max(0)
    return (x - lo) / (hi - lo)


@on(normal(100, 1000))
def topmean(x):
    return np.sort(x, axis=1)[:, -10:].mean(1)


@on(normal(64, 1000), integers(1000, 64))
def ce_grad(x, t):
    e = np.exp(x - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    p[np.arange(64), t] -= 1
    return p / 64


@on(normal(32, 64, 64))
def avgpool_pad(x):
    p = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    return sum(p[:, i:i + 64:2, j:j + 64:2] for i in range(3) for j in range(3)) / 9


@on(normal(3, 256, 256))
def resize_nn(x):
    i = (np.arange(128) * 2)[:, None]
    j = (np.arange(128) * 2)[None, :]
    return x[:, i, j]


@on(normal(256, 256))
def bilinear_up(x):
    a = (x[:-1] + x[1:]) / 2
    b = np.zeros((2 * x.shape[0] - 1, x.shape[1]), np.float32)
    b[0::2] = x
    b[1::2] = a
    c = np.zeros((b.shape[0], 2 * b.shape[1] - 1), np.float32)
    c[:, 0::2] = b
    c[:, 1::2] = (b[:, :-1] + b[:, 1:]) / 2
    return c


@on(positive(5000), positive(5000))
def weibull(x, k):
    return k / 2 * (x / 2) ** (k - 1) * np.exp(-(x / 2) ** k)


@on(normal(128, 128))
def matpow(x):
    return np.linalg.matrix_power(x * np.float32(0.1), 5)


@on(normal(1000, 16), normal(16, 16))
def mahal(x, m):
    return np.einsum('ni,ij,nj->n', x, m, x)


@on(normal(20, 30, 40), normal(40, 50))
def lastdot(x, w):
    return x @ w


@on(normal(20, 30, 40), normal(20, 40, 10))
def batchdot(x, w):
    return np.einsum('bij,bjk->bik', x, w)


@on(normal(500, 500))
def bandpass(x):
    return np.where((np.abs(x) > 0.1) & (np.abs(x) < 1.0), x, 0)


@on(normal(10000, 10))
def anyrow(x):
    return ((x > 1.5).any(1), (x > -2).all(1), np.count_nonzero(x > 0, axis=0))


@on(integers(1000, 50000))
def uniq_counts(x):
    return np.bincount(x, minlength=1000)


@on(normal(100000))
def movavg(x):
    c = np.cumsum(x)
    return (c[10:] - c[:-10]) / 10


@on(normal(700, 700))
def flip_rot(x):
    return np.rot90(x).copy(), np.fliplr(x).copy(), np.flipud(x).copy()


@on(normal(4, 100, 100))
def stack_norm(x):
    return np.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2)
