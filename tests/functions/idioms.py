"""Functions over arrays as people write them for NumPy and numba: each takes x, k (integers from 1), a matrix A, and y, which is zero."""
# ruff: noqa
from __future__ import annotations

import math

import numpy as np


def enumerate_start_of(x, k, A, y):
    for i, v in enumerate(x, 1):
        y[i-1] = v * i
    return y


def zip2_of(x, k, A, y):
    for i, (a, b) in enumerate(zip(x, k)):
        y[i] = a * b
    return y


def reversed_of(x, k, A, y):
    s = 0.0
    for i in reversed(range(len(x))):
        s = s * 0.5 + x[i]
        y[i] = s
    return y


def rows_of(x, k, A, y):
    for i, row in enumerate(A):
        y[i] = row.max() - row.min()
    return y


def listcomp_of(x, k, A, y):
    return np.array([x[i] * i for i in range(3)])


def listcomp2_of(x, k, A, y):
    t = [a * a for a in (1, 2, 3)]
    return x * sum(t)


def gensum_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = sum(A[i, j] * j for j in range(A.shape[1]))
    return y


def gensum_tuple_of(x, k, A, y):
    return x * sum(c for c in (1, 2, 3))


def divmod_of(x, k, A, y):
    for i in range(len(x)):
        q, r = divmod(k[i], 3)
        y[i] = q * 10 + r
    return y


def builtin_sum_of(x, k, A, y):
    return sum(x)


def builtin_max_of(x, k, A, y):
    return max(x)


def minmax3_of(x, k, A, y):
    for i in range(1, len(x) - 1):
        y[i] = max(x[i-1], x[i], x[i+1])
    return y


def annot_of(x, k, A, y):
    total: float = 0.0
    for v in x:
        total += v
    return total


def nested_fn_of(x, k, A, y):
    def f(a, b=2.0):
        return a * b
    for i in range(len(x)):
        y[i] = f(x[i]) + f(x[i], 3.0)
    return y


def lam_of(x, k, A, y):
    g = lambda v: v * v + 1
    return g(x)


def assert_of(x, k, A, y):
    assert len(x) == len(y)
    for i in range(len(x)):
        y[i] = x[i]
    return y


def in_tuple_of(x, k, A, y):
    for i in range(len(x)):
        if i in (0, 2):
            y[i] = 1
        else:
            y[i] = x[i]
    return y


def not_of(x, k, A, y):
    for i in range(len(x)):
        if not x[i] > 0.5:
            y[i] = -1
        else:
            y[i] = 1
    return y


def chain_cmp_of(x, k, A, y):
    for i in range(len(x)):
        if 0.2 < x[i] <= 0.8:
            y[i] = x[i]
        else:
            y[i] = 0
    return y


def elif_of(x, k, A, y):
    for i in range(len(x)):
        if x[i] < 0.3:
            y[i] = 0
        elif x[i] < 0.6:
            y[i] = 1
        else:
            y[i] = 2
    return y


def if_noelse_var_of(x, k, A, y):
    for i in range(len(x)):
        v = x[i]
        if v > 0.5:
            v = 1 - v
        y[i] = v
    return y


def idx2_of(x, k, A, y):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i][j] *= 2
    return A


def neg_idx_of(x, k, A, y):
    y[-1] = x[0]
    y[0] = x[-1]
    return y


def slices_loop_of(x, k, A, y):
    for i in range(1, len(x)):
        y[i] = x[:i].sum()
    return y


def dot_loop_of(x, k, A, y):
    for i in range(A.shape[0]):
        y[i] = np.dot(A[i], A[i])
    return y


def matmul3_of(x, k, A, y):
    return (A.T @ A).trace()


def tuple_swap_of(x, k, A, y):
    a, b = 0.0, 1.0
    for i in range(len(x)):
        a, b = b, a + b
        y[i] = a
    return y


def round_of(x, k, A, y):
    return np.round(x, 2)


def round_b_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = round(x[i] * 10)
    return y


def int_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = int(x[i] * 10) % 3
    return y


def bool_arith_of(x, k, A, y):
    return (x > 0.5).astype(np.float64) + (k > 2)


def bits_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = (k[i] << 2) ^ (k[i] & 1) | (k[i] >> 1)
    return y


def floor_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = math.floor(x[i] * 4) + math.ceil(x[i])
    return y


def isnan_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = 0.0 if math.isnan(x[i]) else x[i]
    return y


def power_of(x, k, A, y):
    return x ** 2 + x ** 0.5 + x ** -1 + 2 ** k


def where2_of(x, k, A, y):
    return np.where((x > 0.2) & (x < 0.8), x, 0)


def where3_of(x, k, A, y):
    return np.where(np.logical_or(x < 0.2, x > 0.8), 1, 0)


def select_of(x, k, A, y):
    return np.select([x < 0.3, x < 0.6], [x, x * 2], default=0)


def piecewise_clip_of(x, k, A, y):
    return np.clip(x, 0.2, 0.8).cumsum()


def argsort_of(x, k, A, y):
    return x[np.argsort(x)]


def fancy_of(x, k, A, y):
    return x[[2, 0, 1]]


def boolmask_assign_of(x, k, A, y):
    z = x.copy()
    z[z > 0.5] = 0
    return z


def newaxis_of(x, k, A, y):
    return x[:, None] - x[None, :]


def dist_of(x, k, A, y):
    d = A[:, None, :] - A[None, :, :]
    return np.sqrt((d ** 2).sum(-1))


def einsum_of(x, k, A, y):
    return np.einsum('ij,kj->ik', A, A)


def linspace_of(x, k, A, y):
    return np.linspace(0, 1, 5) * x[0]


def meshgrid_of(x, k, A, y):
    a, b = np.meshgrid(x, x)
    return a * b


def outer_of(x, k, A, y):
    return np.outer(x, k)


def cumprod_of(x, k, A, y):
    return np.cumprod(x)


def diff_of(x, k, A, y):
    return np.diff(x) / np.diff(k)


def conv_of(x, k, A, y):
    return np.convolve(x, x[:3], mode='valid')


def interp_of(x, k, A, y):
    return np.interp(x, np.arange(6) / 5, k)


def any_all_of(x, k, A, y):
    return np.any(x > 0.9), np.all(x > 0)


def argmax_of(x, k, A, y):
    return np.argmax(x), x.argmin()


def std_of(x, k, A, y):
    return (A - A.mean(axis=0)) / A.std(axis=0)


def norm_of(x, k, A, y):
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def stack_of(x, k, A, y):
    return np.stack([x, x * 2], axis=1)


def vstack_of(x, k, A, y):
    return np.vstack((x, x + k))


def concat_of(x, k, A, y):
    return np.concatenate([x, k])


def pad_of(x, k, A, y):
    return np.pad(x, 2)


def pad_edge_of(x, k, A, y):
    return np.pad(x, 2, mode='edge')


def roll_of(x, k, A, y):
    return np.roll(x, 1)


def tri_of(x, k, A, y):
    return np.tril(A[:, :4])


def sort2_of(x, k, A, y):
    return np.sort(A, axis=0)[::-1]


def break_of(x, k, A, y):
    for i in range(len(x)):
        if x[i] > 0.5:
            break
        y[i] = x[i]
    return y


def continue_of(x, k, A, y):
    for i in range(len(x)):
        if x[i] > 0.5:
            continue
        y[i] = x[i]
    return y


def early_return_of(x, k, A, y):
    if len(x) > 3:
        return x * 2
    return x


def found_of(x, k, A, y):
    best = -1
    for i in range(len(x)):
        if x[i] > 0.5 and best < 0:
            best = i
    return best


def argmax_loop_of(x, k, A, y):
    best, at = x[0], 0
    for i in range(1, len(x)):
        if x[i] > best:
            best = x[i]
            at = i
    return at, best


def count_of(x, k, A, y):
    c = 0
    for v in x:
        if v > 0.5:
            c += 1
    return c


def mat_loop_of(x, k, A, y):
    n, m = A.shape
    C = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for p in range(m):
                C[i, j] += A[i, p] * A[j, p]
    return C


def tri_loop_of(x, k, A, y):
    n = 4
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            L[i, j] = A[i, j] - L[i, :j] @ L[j, :j]
    return L


def stencil_of(x, k, A, y):
    u = x.copy()
    for t in range(3):
        v = u.copy()
        v[1:-1] = (u[:-2] + u[2:]) / 2
        u = v
    return u


def ravel_for_of(x, k, A, y):
    for i, v in enumerate(A.ravel()):
        A.ravel()[i] = v
    return A


def flat_nd_of(x, k, A, y):
    for i in np.ndindex(A.shape):
        A[i] = A[i] * 2
    return A


def zeros_int_of(x, k, A, y):
    c = np.zeros(4, dtype=int)
    for v in k:
        c[v % 4] += 1
    return c


def ones_dtype_of(x, k, A, y):
    return np.ones(len(x), dtype=x.dtype) * x


def full_of(x, k, A, y):
    return np.full(len(x), 3.0) + x


def strided_of(x, k, A, y):
    return x[::2] + x[1::2]


def rev_of(x, k, A, y):
    return x[::-1]


def complex_of(x, k, A, y):
    z = x + 1j * x
    return np.abs(z)


def mandel_of(x, k, A, y):
    z = complex(0.0, 0.0)
    c = complex(x[0], x[1])
    n = 0
    for i in range(50):
        if abs(z) <= 2:
            z = z * z + c
            n += 1
    return n


def and_or_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = 1 if (x[i] > 0.3 and k[i] < 4) or i == 0 else 0
    return y


def is_none_of(x, k, A, y):
    w = None
    if w is None:
        w = x
    return w * 2


def np_random_no_of(x, k, A, y):
    return x + np.float32(1.5)


def aug_slice_of(x, k, A, y):
    A[:, 0] += x[:A.shape[0]]
    A[1:, :] -= A[:1, :]
    return A


def transposed_assign_of(x, k, A, y):
    B = np.empty((A.shape[1], A.shape[0]))
    B[:] = A.T
    return B


def max_axis_of(x, k, A, y):
    m = A.max(axis=1, keepdims=True)
    e = np.exp(A - m)
    return e / e.sum(axis=1, keepdims=True)


def tuple_ret_named_of(x, k, A, y):
    mean = x.mean()
    var = ((x - mean) ** 2).mean()
    return mean, var


def reduce_of(x, k, A, y):
    return np.add.reduce(x), np.maximum.reduce(x)


def accumulate_of(x, k, A, y):
    return np.add.accumulate(x)


def outer_ufunc_of(x, k, A, y):
    return np.subtract.outer(x, x)


def dot_method_of(x, k, A, y):
    return A.dot(A.T).sum()


def reshape_m1_of(x, k, A, y):
    return A.reshape(-1, 2).sum(axis=1)


def swap_rows_of(x, k, A, y):
    A[[0, 1]] = A[[1, 0]]
    return A


def nonlocal_const_of(x, k, A, y):
    return x * math.pi + math.e


def sum_where_of(x, k, A, y):
    return x[x > 0.5].sum()


def mean_where_of(x, k, A, y):
    return np.mean(x, where=x > 0.5)


def sum_initial_of(x, k, A, y):
    return np.sum(x, initial=1.0)


def float_cast_of(x, k, A, y):
    return float(x[0]) + int(k[1])


def range_len_step_of(x, k, A, y):
    for i in range(0, len(x), 2):
        y[i] = x[i]
    return y


def range_down_of(x, k, A, y):
    for i in range(len(x) - 2, -1, -1):
        y[i] = y[i + 1] + x[i]
    return y


def floor_div_of(x, k, A, y):
    half = len(x) // 2
    return x[:half] + x[half:]


def isclose_of(x, k, A, y):
    return np.isclose(x, x + 1e-9)


def nan_to_num_of(x, k, A, y):
    return np.nan_to_num(x / (x - x[0]))


def sign_of(x, k, A, y):
    return np.sign(x - 0.5) * np.abs(x)


def hypot_of(x, k, A, y):
    return np.hypot(x, k)


def triple_for_tuple_of(x, k, A, y):
    out = np.zeros(3)
    for d, w in ((0, 0.5), (1, 1.0), (2, 2.0)):
        out[d] = w * x[d]
    return out


def dict_const_of(x, k, A, y):
    w = {'a': 2.0, 'b': 3.0}
    return x * w['a'] + w['b']


def str_if_of(x, k, A, y):
    mode = 'sum'
    if mode == 'sum':
        return x.sum()
    return x.mean()


def try_index_of(x, k, A, y):
    for i in range(len(x)):
        j = min(max(i + 2, 0), len(x) - 1)
        y[i] = x[j]
    return y


def indirect_of(x, k, A, y):
    for i in range(len(x)):
        y[i] = x[k[i] - 1]
    return y


def scatter_of(x, k, A, y):
    for i in range(len(x)):
        y[k[i] - 1] += x[i]
    return y


def np_add_at_of(x, k, A, y):
    np.add.at(y, k - 1, x)
    return y


def take_of(x, k, A, y):
    return np.take(x, k - 1)


def mod_idx_of(x, k, A, y):
    n = len(x)
    for i in range(n):
        y[i] = x[(i + 1) % n] - x[(i - 1) % n]
    return y


def w1_of(x, k, A, y):
    return np.sum(A, axis=1, where=A > 0.5), A.mean(axis=0, where=x[:, None] > 0.3), np.max(A, initial=0.5, where=A < 0.9), np.any(A, where=A > 2), A.all(axis=1, where=A > 0.1), np.prod(k, initial=2), k.mean(where=k > 2)


def arr_of_arr_of(x, k, A, y):
    return np.array([x, x * 2]), np.array([[x[0], 1.0], [2, x[1]]])


def swap_loop_of(x, k, A, y):
    for t in range(3):
        A[[0, 1]] = A[[1, 0]]
        A[[2, 3]] *= 2
        A[[4, 5]] = t
        A[t][[0, 1]] = (5.0, x[t])
    return A


def swap2_of(x, k, A, y):
    A[[0, 2]] += 1
    A[[1, 0]] = A[[0, 1]] * 2
    return A


def gen2_of(x, k, A, y):
    return sum(x[i] * k[i] for i in range(len(x)) if x[i] > 0.3), any(v > 0.9 for v in x), all(v > 0.01 for v in x), sum(A[i, j] for i in range(A.shape[0]) for j in range(i)), sum((v * w for v, w in zip(x, k)), 1.5)


def gen3_of(x, k, A, y):
    i = 7
    for j in range(len(x)):
        y[j] = sum(x[i] for i in range(j)) + i
        if any(A[j, i] > 0.9 for i in range(A.shape[1])):
            y[j] += 1
    return y


def second_name_of(x, k, A, y):
    t = A + 1
    s = t
    s += 1
    return t


def name_of_a_row_of(x, k, A, y):
    t = A + 1
    s = t[0]
    s += 1
    return t


def function_that_stores_of(x, k, A, y):
    def f():
        y[0] = 2
    y[:] = A[0, :6]
    f()
    return y


def functions_in_functions_of(x, k, A, y):
    def f(x):
        x += 1
        return x
    def g(y):
        z = f(y)
        return y
    return g(A * 1)


def argument_that_changes_of(x, k, A, y):
    def f(x):
        x[0] = 0
    t = A + 1
    f(t)
    return t


def rows_exchanged_of(x, k, A, y):
    x = A * 1
    x[0], x[1] = x[1], x[0]
    return x


def view_of_a_reshape_of(x, k, A, y):
    x = A * 1
    y = x.reshape(-1)
    y[::2] = 0
    return x.sum(axis=0), y


def rows_through_names_of(x, k, A, y):
    a = A * 1
    b, c = a[0], a[1]
    b[:], c[:] = c, b
    return a


def list_of_rows_of(x, k, A, y):
    a = [A[n] * 2 for n in range(2)]
    for row in a:
        row += 1
        row[0] = 3
    return a[0] * a[1]


def view_of_a_view_of(x, k, A, y):
    a = A * 1
    v = a[1]
    w = v[1:]
    a[1] = 7
    w *= 2
    return a, v, w


def effects_in_a_sum_of(x, k, A, y):
    def add(v, n):
        v += n
        return v.sum()
    def twice(v):
        return add(v, 1) + add(v, 2)
    a = A * 1
    s = twice(a[0]) + a[0, 0] + twice(a[1])
    t = 0.0
    for i in range(A.shape[0]):
        t += twice(a[i]) + a[i, 0]
    return a, s, t


def every_second_by_a_name_of(x, k, A, y):
    e = x.copy()
    t = e[::2]
    t[...] = 5
    return e


def two_names_of(x, k, A, y):
    e = x * 2
    f = e
    f += 1
    return e, f


def function_with_a_sum_of(x, k, A, y):
    def change(v):
        v[0] = 7
        return v.sum()
    e = x + 1
    s = change(e)
    return e, s


def rows_of_zeros_of(x, k, A, y):
    e = np.zeros((2, len(x)))
    r, q = e
    r[:] = x
    q += r
    return e


def transposed_name_of(x, k, A, y):
    y = x.reshape(2, 3).copy()
    z = y.T
    z[0] = 1
    y[1, 1] = 9
    return y, z


def list_item_of(x, k, A, y):
    w = [x * 1, x * 2]
    g = w[0]
    g[0] = 4
    return w[0] + w[1]


def names_in_a_loop_of(x, k, A, y):
    e = x * 2
    f = e
    for i in range(3):
        f += i
        e[i] = -1
    return e, f


def name_that_is_given_away_of(x, k, A, y):
    e = x * 2
    f = e
    for i in range(3):
        f += i + 1
        f = f * 2
    return e, f


def function_that_returns_its_argument_of(x, k, A, y):
    def add(v, n):
        v += n
        return v
    e = x + 1
    for i in range(2):
        q = add(e, i)
        q *= 2
    return e
