"""Families of programs: however one is written, its kernels, passes, stores and locals are the same."""
from __future__ import annotations

import re
from collections import Counter

import pytest

from caten import driver, loading
from caten.core.node import Node
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Local
from caten.options import Options
from caten.tensor.fused_text import fused
from caten.tensor.fusion import kernels_of
from caten.tensor.kernels import Group
from caten.tensor.lower import lower
from caten.tensor.repeated_kernels import form_of
from caten.tensor.values import FusedKernel, Nest, Pass, TensorProgram
from index_programs import variants

OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
# name: (the program, its kernels)
FAMILIES = {
    # maps
    "copy": ("Y[i,j] = X[i,j]", 1),
    "map": ("Y[i] = exp(x[i]) * 2.0", 1),
    "map of two": ("Y[i,j] = X[i,j] * Z[i,j] + X[i,j]", 1),
    "broadcast row": ("Y[i,j] = X[i,j] + b[j]", 1),
    "broadcast column": ("Y[i,j] = X[i,j] * a[i]", 1),
    "broadcast both": ("Y[i,j] = a[i] + b[j]", 1),
    "map of rank 3": ("Y[i,j,k] = tanh(X[i,j,k]) + b[k]", 1),
    "map of rank 4": ("Y[i,j,k,l] = X[i,j,k,l] * s[j] + t[j]", 1),
    "choice": ("Y[i,j] = where(X[i,j] < 0.0, a[i], X[i,j])", 1),
    "clip": ("Y[i] = minimum(maximum(x[i], -1.0), 1.0)", 1),
    "chain of maps": ("t[i] = exp(x[i])\nu[i] = sin(t[i])\nY[i] = u[i] * 2.0", 1),
    "cheap map read twice": ("t[i,j] = X[i,j] + 1.0\nY[i,j] = t[i,j] * t[i,j]", 1),
    "costly map read twice": ("t[i,j] = exp(X[i,j])\nY[i,j] = t[i,j] * t[i,j] + t[i,j]", 1),
    "map of a row, read along another axis": ("t[i] = exp(a[i])\nY[i,j] = t[i] * X[i,j]", 1),
    "two outputs of one map": ("t[i] = exp(x[i])\nY[i] = t[i] + 1.0\nZ[i] = t[i] * 2.0", 2),
    "sigmoid": ("Y[i,j] = 1.0 / (1.0 + exp(-X[i,j]))", 1),
    "gelu": ("Y[i,j] = 0.5 * X[i,j] * (1.0 + tanh(0.79788 * (X[i,j] + 0.044715 * X[i,j] * X[i,j] * X[i,j])))", 1),
    "gated": ("g[i,j] = 1.0 / (1.0 + exp(-G[i,j]))\nY[i,j] = X[i,j] * g[i,j]", 1),
    # reductions
    "sum of rows": ("Y[i] = sum j: X[i,j]", 1),
    "sum of the first axis": ("Y[j] = sum i: X[i,j]", 1),
    "maximum": ("Y[i] = max j: X[i,j]", 1),
    "minimum of squares": ("Y[i] = min j: X[i,j] * X[i,j]", 1),
    "sum over two axes": ("Y[i] = sum j k: X[i,j,k]", 1),
    "sum of the middle axis": ("Y[i,k] = sum j: X[i,j,k]", 1),
    "sum of a map": ("e[i,j] = exp(X[i,j])\nY[i] = sum j: e[i,j]", 1),
    "sum, then a map": ("s[i] = sum j: X[i,j]\nY[i] = sqrt(s[i])", 1),
    "two sums of one array": ("Y[i] = sum j: X[i,j]\nZ[i] = sum j: X[i,j] * X[i,j]", 1),
    "sum and deviation": ("s[i] = sum j: X[i,j]\nv[i] = sum j: (X[i,j] - s[i]) * (X[i,j] - s[i])\nY[i] = sqrt(v[i])\nZ[i] = s[i] * 0.5", 1),
    "two functions of a sum": ("s[i] = sum j: X[i,j]\nY[i] = sqrt(s[i])\nZ[i] = s[i] / 3.0", 1),
    "a sum and its logarithm": ("s[i] = sum j: X[i,j]\nY[i] = s[i] * 0.5\nZ[i] = log(s[i])", 2),
    "deviations and their sums": ("s[i] = sum j: X[i,j]\nd[i,j] = X[i,j] - s[i]\nv[i] = sum j: d[i,j] * d[i,j]\nY[i,j] = d[i,j] / sqrt(v[i])\nZ[i] = s[i] * 0.5\nV[i] = 1.0 / sqrt(v[i])", 1),
    "functions of a sum beside a product": ("s[i] = sum k: X[i,k] * X[i,k]\np[i,j] = sum k: X[i,k] * W[k,j]\nY[i,j] = p[i,j] / (1.0 + s[i])\nZ[i] = s[i] * 0.5", 2),
    "a sum with other arrays": ("s[i] = sum k: X[i,k]\nY[i,j] = A[i,j] * s[i]\nZ[i,j] = B[i,j] + s[i]", 2),
    "sum of absolute differences": ("Y[i] = sum j: abs(X[i,j] - Z[i,j])", 1),
    "weighted sum": ("Y[i] = sum j: X[i,j] * w[j]", 1),
    "product of two arrays along an axis": ("Y[i] = sum j: X[i,j] * Z[i,j]", 1),
    # rows
    "softmax": ("m[i] = max j: X[i,j]\ne[i,j] = exp(X[i,j] - m[i])\ns[i] = sum j: e[i,j]\nY[i,j] = e[i,j] / s[i]", 1),
    "softmax of rank 3": ("m[i,j] = max k: X[i,j,k]\ne[i,j,k] = exp(X[i,j,k] - m[i,j])\ns[i,j] = sum k: e[i,j,k]\nY[i,j,k] = e[i,j,k] / s[i,j]", 1),
    "masked softmax": ("t[i,j] = where(M[i,j] < 0.5, -1000.0, X[i,j])\nm[i] = max j: t[i,j]\ne[i,j] = exp(t[i,j] - m[i])\ns[i] = sum j: e[i,j]\nY[i,j] = e[i,j] / s[i]", 1),
    "scaled softmax": ("t[i,j] = X[i,j] * 0.125\nm[i] = max j: t[i,j]\ne[i,j] = exp(t[i,j] - m[i])\ns[i] = sum j: e[i,j]\nY[i,j] = e[i,j] / s[i]", 1),
    "logsumexp": ("m[i] = max j: X[i,j]\ns[i] = sum j: exp(X[i,j] - m[i])\nY[i] = m[i] + log(s[i])", 1),
    "log softmax": ("m[i] = max j: X[i,j]\ns[i] = sum j: exp(X[i,j] - m[i])\nY[i,j] = X[i,j] - m[i] - log(s[i])", 1),
    "softmax of columns": ("m[j] = max i: X[i,j]\ne[i,j] = exp(X[i,j] - m[j])\ns[j] = sum i: e[i,j]\nY[i,j] = e[i,j] / s[j]", 1),
    "centred": ("s[i] = sum j: X[i,j]\nY[i,j] = X[i,j] - s[i] * 0.01", 1),
    "variance": ("s[i] = sum j: X[i,j]\nm[i] = s[i] * 0.01\nv[i] = sum j: (X[i,j] - m[i]) * (X[i,j] - m[i])\nY[i] = v[i] * 0.01", 1),
    "layer norm": ("s[i] = sum j: X[i,j]\nm[i] = s[i] * 0.01\nv[i] = sum j: (X[i,j] - m[i]) * (X[i,j] - m[i])\nr[i] = 1.0 / sqrt(v[i] * 0.01 + 0.00001)\n"
                   "Y[i,j] = (X[i,j] - m[i]) * r[i] * g[j] + b[j]", 1),
    "layer norm of a sum": ("t[i,j] = X[i,j] + R[i,j]\ns[i] = sum j: t[i,j]\nm[i] = s[i] * 0.01\nv[i] = sum j: (t[i,j] - m[i]) * (t[i,j] - m[i])\nY[i,j] = (t[i,j] - m[i]) / sqrt(v[i])", 1),
    "root mean square norm": ("s[i] = sum j: X[i,j] * X[i,j]\nY[i,j] = X[i,j] / sqrt(s[i] * 0.01 + 0.00001) * g[j]", 1),
    "unit rows": ("s[i] = sum j: X[i,j] * X[i,j]\nr[i] = 1.0 / sqrt(s[i])\nY[i,j] = X[i,j] * r[i]", 1),
    "largest absolute value": ("m[i] = max j: abs(X[i,j])\nY[i,j] = X[i,j] / m[i]", 1),
    "range of rows": ("a[i] = min j: X[i,j]\nb[i] = max j: X[i,j]\nY[i,j] = (X[i,j] - a[i]) / (b[i] - a[i])", 1),
    "instance norm": ("s[i,j] = sum k l: X[i,j,k,l]\nm[i,j] = s[i,j] * 0.01\nv[i,j] = sum k l: (X[i,j,k,l] - m[i,j]) * (X[i,j,k,l] - m[i,j])\n"
                      "Y[i,j,k,l] = (X[i,j,k,l] - m[i,j]) / sqrt(v[i,j])", 1),
    "batch norm": ("s[j] = sum i k: X[i,j,k]\nm[j] = s[j] * 0.01\nv[j] = sum i k: (X[i,j,k] - m[j]) * (X[i,j,k] - m[j])\nY[i,j,k] = (X[i,j,k] - m[j]) / sqrt(v[j])", 1),
    "squeeze and excite": ("s[i,j] = sum k: X[i,j,k]\nz[i,j] = 1.0 / (1.0 + exp(-s[i,j]))\nY[i,j,k] = X[i,j,k] * z[i,j]", 1),
    "cross entropy": ("m[i] = max j: X[i,j]\ns[i] = sum j: exp(X[i,j] - m[i])\nt[i] = sum j: X[i,j] * T[i,j]\nY[i] = m[i] + log(s[i]) - t[i]", 1),
    "cosine similarity": ("d[i] = sum j: X[i,j] * Z[i,j]\na[i] = sum j: X[i,j] * X[i,j]\nb[i] = sum j: Z[i,j] * Z[i,j]\nY[i] = d[i] / sqrt(a[i] * b[i])", 1),
    # contractions
    "product": ("Y[i,j] = sum p: A[i,p] * W[p,j]", 1),
    "product of a transposed": ("Y[i,j] = sum p: A[i,p] * W[j,p]", 1),
    "product with bias": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i,j] = t[i,j] + b[j]", 1),
    "dense layer": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i,j] = maximum(t[i,j] + b[j], 0.0)", 1),
    "gelu of a dense layer": ("t[i,j] = sum p: A[i,p] * W[p,j]\nu[i,j] = t[i,j] + b[j]\n"
                              "Y[i,j] = 0.5 * u[i,j] * (1.0 + tanh(0.79788 * (u[i,j] + 0.044715 * u[i,j] * u[i,j] * u[i,j])))", 1),
    "dense layer with residual": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i,j] = tanh(t[i,j] + b[j]) + R[i,j]", 1),
    "scaled product": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i,j] = 0.5 * t[i,j]", 1),
    "batched product": ("Y[h,i,j] = sum p: A[h,i,p] * W[h,p,j]", 1),
    "product over two axes": ("Y[i,j] = sum p q: A[i,p,q] * W[p,q,j]", 1),
    "outer product": ("Y[i,j] = a[i] * b[j]", 1),
    "vector times matrix": ("Y[j] = sum i: v[i] * X[i,j]", 1),
    "bilinear form": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i] = sum j: t[i,j] * C[i,j]", 2),
}
# Programs that are not one kernel, and how many each is.
APART = {
    "two products": ("t[i,j] = sum p: A[i,p] * W[p,j]\nY[i,k] = sum j: t[i,j] * C[j,k]", 2),
    "MLP": ("t[i,j] = sum p: A[i,p] * W[p,j]\nu[i,j] = tanh(t[i,j] + b[j])\nY[i,k] = sum j: u[i,j] * C[j,k]", 2),
    "three products": ("t[i,j] = sum p: A[i,p] * W[p,j]\nu[i,k] = sum j: t[i,j] * C[j,k]\nY[i,l] = sum k: u[i,k] * D[k,l]", 3),
    "product of a costly map": ("e[i,p] = exp(A[i,p])\nY[i,j] = sum p: e[i,p] * W[p,j]", 2),
    "softmax of a product": ("t[i,j] = sum p: A[i,p] * W[p,j]\nm[i] = max j: t[i,j]\ne[i,j] = exp(t[i,j] - m[i])\ns[i] = sum j: e[i,j]\nY[i,j] = e[i,j] / s[i]", 2),
    "layer norm, then a product": ("s[i] = sum p: X[i,p]\nt[i,p] = X[i,p] - s[i] * 0.01\nY[i,j] = sum p: t[i,p] * W[p,j]", 2),
    "sums of both axes": ("s[i] = sum j: X[i,j]\nt[j] = sum i: X[i,j]\nY[i,j] = X[i,j] - exp(s[i]) - exp(t[j])", 2),
    "rows, then columns": ("m[i] = max j: X[i,j]\ne[i,j] = exp(X[i,j] - m[i])\nY[j] = sum i: e[i,j]", 2),
    "outer difference of sums": ("s[i] = sum j: X[i,j]\nt[k] = sum j: Z[k,j]\nY[i,k] = exp(s[i]) * exp(t[k])", 2),
}
BY_HAND = {
    "shifted reads of a costly map": ("e = np.exp(x)\nY = e[1:] + e[:-1]", "x{float}[N]", "Y{float}[(- N 1)]", 2),
    "a costly map and its transpose": ("e = np.exp(X)\nY = e + e.T", "X{float}[N N]", "Y{float}[N N]", 2),
    "a product of a costly map with itself": ("e = np.exp(X)\nY = e @ e.T", "X{float}[M N]", "Y{float}[M M]", 2),
    "a costly map and its reverse": ("e = np.exp(x)\nY = e + e[::-1]", "x{float}[N]", "Y{float}[N]", 2),
    "differences between neighbours of sums": ("s = X.sum(axis=1)\nY = np.sqrt(s[1:] * s[:-1])", "X{float}[M N]", "Y{float}[(- M 1)]", 2),
}


def values_of(spec: SpecText) -> TensorProgram:
    (loaded,) = loading.load_programs(spec, OPTIONS)
    made = driver.advance(loaded, "tensor", OPTIONS)
    assert isinstance(made, TensorProgram)
    return made


def structure(values: TensorProgram) -> tuple[object, ...]:
    """How many kernels there are; of each its form, outer loops, passes and stored values; how many local scalars and arrays."""
    found = kernels_of(values)
    kernels = Counter([(k.form, len(k.outer), passes(k.steps), len(g.stored) if isinstance(g, Group) else -1)
                       for k, g in zip(fused(values).all(FusedKernel), found, strict=True)])
    locals_ = Counter([bool(n.shape) for k in lower(values).kernels for s in k.body for n in s.walk() if isinstance(n, Local)])
    return len(found), sorted(kernels.items()), locals_[False], locals_[True]


def kernel_keys(values: TensorProgram) -> list[str]:
    """What is compared of kernels to find those that are the same: loops, locals, arrays and sizes are numbered."""
    program = lower(values)
    arrays = {**program.buffers, **{c.name: c for c in program.clauses if isinstance(c, Local)}}
    keys = []
    for k in program.kernels:
        form = form_of(k.body, arrays)
        assert form is not None
        numbers = dict[str, str]()
        keys.append(re.sub(r"\b(" + "|".join(program.sizes) + r")\b" if program.sizes else "$^",
                           lambda size, numbers=numbers: numbers.setdefault(size[0], f"size{len(numbers)}"), f"{form.stmts} {form.described}"))
    return sorted(keys)


def passes(steps: tuple[Node, ...]) -> int:
    return sum([isinstance(s, Pass) for s in steps])


def differences(text: str, number: int) -> tuple[int, list[str], list[str]]:
    """The number of kernels; the variants of another structure than the first; and those with other kernels although axes and extents are the same, or with
    other values although names are, too."""
    written = variants(text, number)
    first = values_of(written[0][1])
    expected, keys = structure(first), kernel_keys(first)
    assert not any(isinstance(d.value, Nest) for d in first.definitions), text
    structures, values = [], []
    for told, spec in written[1:]:
        made = values_of(spec)
        shown = f"{told}\n{spec.text}\n{made.definitions}\n{first.definitions}"
        changed = {"renamed", "permuted", "numbers"} & set(told.split())
        if structure(made) != expected:
            structures.append(f"{structure(made)}, not {expected}: {shown}")
        elif changed <= {"renamed"} and kernel_keys(made) != keys:
            values.append(f"other kernels: {shown}")
        if not changed and (made.definitions, made.outputs) != (first.definitions, first.outputs):
            values.append(shown)
    return kernels_in(expected), structures, values


def kernels_in(found: tuple[object, ...]) -> int:
    assert isinstance(found[0], int)
    return found[0]


@pytest.mark.slice(6)
@pytest.mark.parametrize("name", FAMILIES | APART)
def test_a_family_has_one_structure(name: str, nightly: bool) -> None:
    text, kernels = (FAMILIES | APART)[name]
    found, structures, values = differences(text, 20 if nightly else 3)
    assert found == kernels
    assert not structures, structures[0]
    assert not values, values[0]


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_read_elsewhere_is_stored_by_a_kernel_of_its_own(name: str) -> None:
    code, inputs, outputs, kernels = BY_HAND[name]
    spec = SpecText("apart.toml", f'[composite]\nname = "Apart"\ninputs = ["{inputs}"]\noutputs = ["{outputs}"]\n'
                                  f'[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n')
    assert kernels_in(structure(values_of(spec))) == kernels


CONVOLUTION = {
    "a sum in a scalar": """(dotimes (n B) (dotimes (o O) (dotimes (y H) (dotimes (x W) (set s 0.0)
  (dotimes (c C) (dotimes (p 3) (dotimes (q 3) (incf s (* (aref X n c (+ y p) (+ x q)) (aref F o c p q))))))
  (setf (aref Y n o y x) (max (+ s (aref z o)) 0.0))))))""",
    "three nests, in other orders": """(dotimes (o O) (dotimes (n B) (dotimes (y H) (dotimes (x W) (setf (aref Y n o y x) 0.0)))))
(dotimes (n B) (dotimes (o O) (dotimes (c C) (dotimes (p 3) (dotimes (q 3) (dotimes (y H) (dotimes (x W)
  (incf (aref Y n o y x) (* (aref X n c (+ y p) (+ x q)) (aref F o c p q))))))))))
(dotimes (x W) (dotimes (y H) (dotimes (n B) (dotimes (o O) (setf (aref Y n o y x) (max (+ (aref Y n o y x) (aref z o)) 0.0))))))""",
}


def test_a_convolution_with_bias_and_activation_is_one_kernel_however_it_is_written() -> None:
    made = [values_of(SpecText("family.toml", '[composite]\nname = "Family"\ninputs = ["X{float}[B C (+ H 2) (+ W 2)]", "F{float}[O C 3 3]", "z{float}[O]"]\n'
                                              f'outputs = ["Y{{float}}[B O H W]"]\n[implementation]\nlang = "lisp"\ncode = """\n{code}\n"""\n'))
            for code in CONVOLUTION.values()]
    assert kernels_in(structure(made[0])) == 1
    assert (made[0].definitions, made[0].outputs) == (made[1].definitions, made[1].outputs)


def test_there_are_enough_families() -> None:
    assert len(FAMILIES) >= 60
    assert len(APART) + len(BY_HAND) >= 12
