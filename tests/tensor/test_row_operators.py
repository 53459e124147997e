"""Operators over rows and columns, each one numpy expression: one kernel, with as few passes and arrays as its
reductions need. Numbers against numpy along every axis, at odd sizes and extents of 1 and 0."""
from __future__ import annotations

import textwrap
import warnings
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For, Incf, Local, LoopProgram, Setf
from caten.options import Options
from caten.semantics.interpret import run
from caten.tensor.fused_text import fused
from caten.tensor.fusion import kernels_of
from caten.tensor.values import FusedKernel, TensorProgram

SOFTMAX = "E = np.exp(X - X.max(axis={a}, keepdims=True))\nreturn E / E.sum(axis={a}, keepdims=True)"
NORM = ("m = X.mean(axis={a}, keepdims=True)\nv = ((X - m) ** 2).mean(axis={a}, keepdims=True)\n"
        "return (X - m) / np.sqrt(v + 1e-5){b}")
MN, NCHW = "X{float}[M N]", "X{float}[N C H W]"
# name -> inputs, outputs, body, (kernels, passes, stores to outputs in the text, arrays of one iteration)
OPERATORS: dict[str, tuple[list[str], list[str], str, tuple[int, int, int, int]]] = {
    "softmax of rows": ([MN], ["Y{float}[M N]"], SOFTMAX.format(a=1), (1, 3, 2, 0)),
    "softmax of columns": ([MN], ["Y{float}[M N]"], SOFTMAX.format(a=0), (1, 3, 2, 0)),
    "softmax of the middle of 3": (["X{float}[B M N]"], ["Y{float}[B M N]"], SOFTMAX.format(a=1), (1, 3, 2, 0)),
    "softmax of axis 1 of 4": ([NCHW], ["Y{float}[N C H W]"], SOFTMAX.format(a=1), (1, 3, 2, 0)),
    "log-softmax": ([MN], ["Y{float}[M N]"],
                    "Z = X - X.max(axis=1, keepdims=True)\nreturn Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))", (1, 3, 1, 0)),
    "logsumexp": ([MN], ["y{float}[M]"], "m = X.max(axis=1)\nreturn m + np.log(np.exp(X - m[:, None]).sum(axis=1))", (1, 2, 1, 0)),
    "logsumexp of columns": ([MN], ["y{float}[N]"], "m = X.max(axis=0)\nreturn m + np.log(np.exp(X - m).sum(axis=0))", (1, 2, 1, 0)),
    "layer norm": ([MN, "g{float}[N]", "b{float}[N]"], ["Y{float}[M N]"], NORM.format(a=1, b=" * g + b"), (1, 3, 1, 0)),
    "residual and layer norm": ([MN, "R{float}[M N]", "g{float}[N]", "b{float}[N]"], ["Y{float}[M N]"],
                                "Z = X + R\n" + NORM.format(a=1, b=" * g + b").replace("X", "Z"), (1, 3, 2, 0)),
    "rms norm": ([MN, "g{float}[N]"], ["Y{float}[M N]"], "return X / np.sqrt((X * X).mean(axis=1, keepdims=True) + 1e-5) * g",
                 (1, 2, 1, 0)),
    "batch norm": ([NCHW, "g{float}[C]"], ["Y{float}[N C H W]"],
                   NORM.format(a=(0, 2, 3), b=" * g[None, :, None, None]"), (1, 3, 1, 0)),
    "batch norm, channels last": (["X{float}[N H W C]", "g{float}[C]"], ["Y{float}[N H W C]"],
                                  NORM.format(a=(0, 1, 2), b=" * g"), (1, 3, 1, 0)),
    "group norm": (["X{float}[N G C H W]"], ["Y{float}[N G C H W]"], NORM.format(a=(2, 3, 4), b=""), (1, 3, 1, 0)),
    "variance": ([MN], ["y{float}[M]"], "return X.var(axis=1)", (1, 2, 1, 0)),
    "standard deviation of columns": ([MN], ["y{float}[N]"], "return X.std(axis=0)", (1, 2, 1, 0)),
    "argmax": ([MN], ["y{int64}[M]"], "return X.argmax(axis=1)", (1, 2, 1, 0)),
    "argmin of columns": ([MN], ["y{int64}[N]"], "return np.argmin(X, axis=0)", (1, 2, 1, 0)),
    "cross entropy": ([MN, "L{int32}[M]"], ["y{float}[M]"],
                      "m = X.max(axis=1)\ns = np.exp(X - m[:, None]).sum(axis=1)\nreturn np.log(s) + m - X[np.arange(len(m)), L]",
                      (2, 3, 1, 0)),            # the check of the labels is a kernel before it
    "cosine similarity": ([MN, "Z{float}[M N]"], ["y{float}[M]"],
                          "return (X * Z).sum(axis=1) / np.sqrt((X * X).sum(axis=1) * (Z * Z).sum(axis=1))", (1, 1, 1, 0)),
    "pairwise distances": (["X{float}[M D]", "Z{float}[N D]"], ["Y{float}[M N]"],
                           "return ((X[:, None] - Z[None]) ** 2).sum(axis=2)", (1, 2, 2, 0)),
    "the nearest of some points": (["X{float}[M D]", "Z{float}[N D]"], ["y{int64}[M]"],
                                   "return ((X[:, None] - Z[None]) ** 2).sum(axis=2).argmin(axis=1)", (1, 2, 1, 1)),
    "gelu of a dense layer": ([MN, "W{float}[N D]", "b{float}[D]"], ["Y{float}[M D]"],
                              "Z = X @ W + b\nreturn 0.5 * Z * (1.0 + np.tanh(0.79788 * (Z + 0.044715 * Z * Z * Z)))", (1, 3, 3, 0)),
    "moments": ([MN], ["y{float}[M]", "z{float}[M]"], "return X.mean(axis=1), (X * X).mean(axis=1)", (1, 1, 2, 0)),
    "gradients of scale and shift": ([MN, "G{float}[M N]"], ["y{float}[N]", "z{float}[N]"],
                                     "return (G * X).sum(axis=0), G.sum(axis=0)", (1, 1, 2, 0)),
    "two sums of which one needs the other": (
        [MN], ["Y{float}[N M]", "z{float}[M]"],
        "Y = X.T * np.exp(X.sum(axis=1))\nreturn Y, np.log((X * X).sum(axis=1)) + Y.sum(axis=0)", (2, 3, 3, 0)),
}
OPTIONS = Options(opt=1)
SIZES = [{"M": 5, "N": 35, "B": 3, "C": 7, "H": 3, "W": 19, "G": 2, "D": 11}, {"M": 37, "N": 70, "B": 1, "C": 33, "H": 1, "W": 5, "G": 1, "D": 1},
         dict.fromkeys("MNBCHWGD", 1)]


def spec_of(name: str) -> str:
    inputs, outputs, code, _ = OPERATORS[name]
    lists = [", ".join([f'"{each}"' for each in signature]) for signature in (inputs, outputs)]
    return (f'[composite]\nname = "Rows"\ninputs = [{lists[0]}]\noutputs = [{lists[1]}]\n'
            f'[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n')


def program(name: str, level: str) -> Any:
    (found,) = loading.load_programs(SpecText("rows.toml", spec_of(name)), OPTIONS)
    return driver.advance(found, level, OPTIONS)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_one_kernel_with_few_passes(name: str) -> None:
    values, loops = program(name, "tensor"), program(name, "loop")
    assert isinstance(values, TensorProgram)
    assert isinstance(loops, LoopProgram)
    nodes = [n for kernel in loops.kernels for n in kernel.walk()]
    passes = [n for n in nodes if isinstance(n, For) and not any(isinstance(m, For) for s in n.body for m in s.walk())]
    stores = [n for n in nodes if isinstance(n, Setf | Incf) and getattr(n.ref, "buffer", "") in loops.buffers]
    arrays = [n for n in nodes if isinstance(n, Local) and n.shape]
    assert (len(kernels_of(values)), len(passes), len(stores), len(arrays)) == OPERATORS[name][3]


ATTENTION = """[composite]
name = "Attention"
inputs = ["Q{float}[M 16]", "K{float}[N 16]", "V{float}[N 16]"]
outputs = ["Y{float}[M 16]"]
[implementation]
lang = "python"
code = '''
S = Q @ K.T * 0.25
E = np.exp(S - S.max(axis=1, keepdims=True))
return (E / E.sum(axis=1, keepdims=True)) @ V
'''
"""


def test_attention_is_one_kernel() -> None:
    (found,) = loading.load_programs(SpecText("rows.toml", ATTENTION), OPTIONS)
    values = driver.advance(found, "tensor", OPTIONS)
    assert isinstance(values, TensorProgram)
    assert [k.form for k in fused(values).all(FusedKernel)] == ["blocks"]


def arguments(name: str, sizes: dict[str, int], special: bool = False) -> list[np.ndarray]:
    rng = np.random.default_rng(len(name))
    found = []
    for text in OPERATORS[name][0]:
        dtype, axes = text.partition("{")[2].replace("]", "").split("}[")
        shape = [sizes[axis] for axis in axes.split()]
        x = rng.integers(-sizes["N"], sizes["N"], shape, np.int32) if dtype == "int32" else np.asarray(
            rng.standard_normal(shape), np.float32)
        if special and x.size and dtype == "float":
            x = np.round(x)                                       # equal elements
            x.flat[rng.integers(0, x.size, max(1, x.size // 40))] = np.nan
        found.append(x)
    return found


def in_numpy(name: str, given: list[np.ndarray]) -> Any:
    inputs, _, code, _ = OPERATORS[name]
    names: dict[str, Any] = {"np": np}
    exec(f"def body({', '.join([text.partition('{')[0] for text in inputs])}):\n{textwrap.indent(code, ' ')}", names)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = names["body"](*given)
    return made if isinstance(made, tuple) else (made,)


def check(operator: Any, name: str, given: list[np.ndarray]) -> None:
    made = operator(*given)
    for found, wanted in zip(made if isinstance(made, tuple) else (made,), in_numpy(name, given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.slice(12)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("name", OPERATORS)
def test_numbers(name: str, opt: int) -> None:
    operator = caten.compile(spec_of(name), opt=opt)
    for sizes in SIZES:
        check(operator, name, arguments(name, sizes))
    if "arg" in name:
        for sizes in SIZES:
            check(operator, name, arguments(name, sizes, special=True))


SPECIAL = ("softmax of rows", "softmax of columns", "softmax of the middle of 3", "log-softmax", "logsumexp", "logsumexp of columns", "layer norm", "rms norm", "batch norm", "argmax",
           "argmin of columns")


PICKED = {
    "the greatest": ("k = np.argmax(S, axis=1)[:, None]", "np.take_along_axis(S, k, axis=1)"),
    "two beside a count": ("k = (S > 1).astype(np.int64).sum(axis=1, keepdims=True)",
                           "np.take_along_axis(S, np.minimum(k, S.shape[1] - 1), axis=1) - np.take_along_axis(S, np.maximum(k - 1, 0), axis=1)"),
    "one at an index at an index": ("k = np.argmin(S, axis=1)[:, None]\nR = (np.abs(S) * 100).astype(np.int64) % S.shape[1]",
                                    "np.take_along_axis(S, np.take_along_axis(R, k, axis=1), axis=1)"),
}


@pytest.mark.slice(5)
@pytest.mark.parametrize("opt", [2, 1, 0])
@pytest.mark.parametrize("row", ["np.exp(X)", "X + X.sum(axis=1, keepdims=True)"])
@pytest.mark.parametrize("picked", PICKED)
def test_rows_are_read_at_indices_that_they_compute(picked: str, row: str, opt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an index reads is in a scalar of the same iteration, wherever in the expression it is met first."""
    index, element = PICKED[picked]
    monkeypatch.setitem(OPERATORS, picked, ([MN], ["Y{float}[M 1]"], f"S = {row}\n{index}\nreturn {element}", (0, 0, 0, 0)))
    own = Options(opt=opt)
    made = driver.advance(loading.load_programs(SpecText("rows.toml", spec_of(picked)), own)[0], "loop", own)
    (x,) = arguments(picked, {"M": 5, "N": 7})
    data: dict[str, Any] = {"X": x, "M": 5, "N": 7, "Y": np.zeros((5, 1), np.float32)}
    assert run(made, data) == 0
    np.testing.assert_allclose(data["Y"], in_numpy(picked, [x])[0], rtol=1e-5)


def with_specials(x: np.ndarray) -> list[np.ndarray]:
    """An array with infinities of either sign and NaN in some rows, with rows that are masked whole, and all of one kind."""
    rng, made = np.random.default_rng(x.size), []
    for kinds in ([np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [np.inf, np.nan, -np.inf]):
        some = np.round(x)
        for row in some.reshape(-1, x.shape[-1])[::2]:
            row[rng.integers(0, len(row), 2)] = rng.choice(kinds, 2)
        made.append(some)
    masked = x.copy()
    masked.reshape(-1, x.shape[-1])[::3] = -np.inf                       # rows
    masked[..., ::4] = -np.inf                                           # and columns
    return [*made, masked, *[np.full_like(x, each) for each in (np.inf, -np.inf, np.nan)]]


@pytest.mark.slow
@pytest.mark.slice(3)
@pytest.mark.parametrize("name", SPECIAL)
def test_infinities_nan_and_rows_that_are_masked_whole(name: str) -> None:
    """What is fused has the same infinities and NaN as the loops as written, and as NumPy."""
    plain, fast = caten.compile(spec_of(name), opt=0), caten.compile(spec_of(name), opt=2)
    for sizes in SIZES[:2]:
        first, *others = arguments(name, sizes)
        for x in with_specials(first):
            (wanted,) = in_numpy(name, [x, *others])
            for found in (plain(x, *others), fast(x, *others)):
                np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax of rows", "softmax of columns", "softmax of axis 1 of 4", "batch norm, channels last",
                                  "layer norm", "argmax"])
def test_no_elements(name: str) -> None:
    operator = caten.compile(spec_of(name))
    empty = {**SIZES[0], "B" if "B" in OPERATORS[name][0][0] else "H" if "H" in OPERATORS[name][0][0] else "M": 0}
    given = [np.zeros([empty[a] for a in text.partition("[")[2][:-1].split()], np.float32) for text in OPERATORS[name][0]]
    found = operator(*given)
    assert found.size == 0


@pytest.mark.slow
def test_the_index_of_an_empty_axis_is_refused() -> None:
    with pytest.raises(caten.CatenError, match="E711"):
        caten.compile(spec_of("argmax"))(np.zeros((3, 0), np.float32))
