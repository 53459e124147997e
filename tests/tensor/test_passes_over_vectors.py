"""Normalisations of a single vector: one kernel of passes on one thread, a kernel for each pass with several threads and on devices; the numbers are those of the loops as
written."""
from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For, Local, LoopProgram
from caten.options import Options
from caten.tensor.boundaries import line_of
from caten.tensor.fused_text import fused
from caten.tensor.fusion import boundaries_of, kernels_of
from caten.tensor.values import FusedKernel, TensorProgram

V, Y = "X{float}[N]", "Y{float}[N]"
SOFTMAX = "E = np.exp(X - X.max())\nreturn E / E.sum()"
NORM = "m = X.mean()\nv = ((X - m) ** 2).mean()\nreturn (X - m) / np.sqrt(v + 1e-5)"
# name -> inputs, outputs, body, (kernels, arrays between or in them) on one thread, and the same on several
OPERATORS: dict[str, tuple[list[str], list[str], str, tuple[int, int], tuple[int, int]]] = {
    "softmax": ([V], [Y], SOFTMAX, (1, 0), (4, 0)),
    "softmax of a single row": (["X{float}[1 N]"], ["Y{float}[1 N]"], SOFTMAX, (1, 0), (4, 1)),
    "softmax and its exponentials": ([V], ["E{float}[N]", Y], SOFTMAX.replace("return", "return E,"), (1, 0), (4, 0)),
    "log-softmax": ([V], [Y], "Z = X - X.max()\nreturn Z - np.log(np.exp(Z).sum())", (1, 0), (2, 0)),
    "logsumexp": ([V], ["y{float}[]"], "m = X.max()\nreturn m + np.log(np.exp(X - m).sum())", (1, 0), (1, 0)),
    "layer norm": ([V], [Y], NORM, (1, 0), (2, 0)),
    "layer norm with scale and shift": ([V, "g{float}[N]", "b{float}[N]"], [Y], NORM + " * g + b", (1, 0), (2, 0)),
    "rms norm": ([V, "g{float}[N]"], [Y], "return X / np.sqrt((X * X).mean() + 1e-5) * g", (1, 0), (2, 0)),
    "variance": ([V], ["y{float}[]"], "return X.var()", (1, 0), (1, 0)),
    "scaled to between 0 and 1": ([V], [Y], "return (X - X.min()) / (X.max() - X.min())", (1, 0), (3, 0)),
    "cosine similarity": ([V, "Z{float}[N]"], ["y{float}[]"], "return (X * Z).sum() / np.sqrt((X * X).sum() * (Z * Z).sum())", (1, 0), (1, 0)),
    # What has several axes, or other elements than those of its own pass, is in kernels of its own.
    "softmax of a whole matrix": (["X{float}[M N]"], ["Y{float}[M N]"], SOFTMAX, (4, 0), (4, 0)),
    "in the opposite order": ([V], [Y], "E = np.exp(X - X.max())\nreturn E[::-1] / E.sum()", (2, 1), (4, 1)),
    "of shifted elements under a condition": ([V], [Y], "E = np.exp(np.where(np.roll(X, 1) > 0, X, 0.0) - X.max())\nreturn E / E.sum()", (3, 0), (4, 0)),
    "softmax, and its exponentials after it": ([V], [Y, "Z{float}[N]"], "E = np.exp(X - X.max())\nreturn E / E.sum(), E[::-1] * 2", (3, 1), (5, 0)),
    "a row norm after a scale by the maximum of all": (["X{float}[M N]"], ["Y{float}[M N]"], "Z = np.tanh(X / X.max())\nreturn Z / Z.sum(axis=1, keepdims=True)", (2, 0), (2, 0)),
    "one maximum for two": ([V, "Z{float}[M]"], [Y, "W{float}[M]"], "m = X.max()\nreturn X / m, Z / m", (3, 0), (3, 0)),
    "a sum along another axis": ([V, "Z{float}[M]"], [Y], "return X / Z.sum()", (2, 0), (2, 0)),
}
THREADS = {"one thread": Options(opt=1), "threads": Options(opt=1, config=(("OMP", "1"),))}


def spec_of(name: str, called: str = "Vectors") -> str:
    inputs, outputs, code, *_ = OPERATORS[name]
    lists = [", ".join([f'"{each}"' for each in signature]) for signature in (inputs, outputs)]
    return (f'[composite]\nname = "{called}"\ninputs = [{lists[0]}]\noutputs = [{lists[1]}]\n'
            f'[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n')


def values(name: str, options: Options) -> TensorProgram:
    (found,) = loading.load_programs(SpecText("vectors.toml", spec_of(name)), options)
    program = driver.advance(found, "tensor", options)
    assert isinstance(program, TensorProgram)
    return program


def loops(name: str, options: Options) -> LoopProgram:
    (found,) = loading.load_programs(SpecText("vectors.toml", spec_of(name)), options)
    program = driver.advance(found, "loop", options)
    assert isinstance(program, LoopProgram)
    return program


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_and_arrays(name: str, threads: str) -> None:
    options = THREADS[threads]
    arrays = [n for k in loops(name, options).kernels for n in k.walk() if isinstance(n, Local) and n.shape]
    assert (len(kernels_of(values(name, options))), len(arrays)) == OPERATORS[name][3 if threads == "one thread" else 4]


def test_a_device_has_a_kernel_for_each_pass() -> None:
    assert len(kernels_of(values("softmax", Options(opt=1, runtime="cuda")))) == 4


def test_the_reason_is_told_where_threads_share_each_pass() -> None:
    assert [line_of(b) for b in boundaries_of(values("softmax", THREADS["threads"]))] == [
        "v0 | v1: a value without axes has no outer loop to share",
        "v1 | v2: v2 reads axis 0 of v1 at its own axis 0 (reduced)",
        "v1 | v3: a value is computed once, in the kernel of the reader that runs first",
        "v2 | v3: a value without axes has no outer loop to share"]
    assert boundaries_of(values("softmax", THREADS["one thread"])) == []


def test_the_exponentials_and_their_sum_share_a_pass() -> None:
    program = fused(values("softmax", THREADS["one thread"]))
    assert [k.form for k in program.all(FusedKernel)] == ["rows"]
    nests = [n for k in loops("softmax", THREADS["one thread"]).kernels for n in k.body if isinstance(n, For)]
    assert len(nests) == 3


@pytest.mark.parametrize("request_", ['(keep "v1")', '(apart "v1" "v2")'])
def test_requests_keep_passes_apart(request_: str) -> None:
    text = spec_of("softmax").replace("[implementation]", f"[schedule]\nfusion = '{request_.replace(chr(34), '')}'\n[implementation]")
    (found,) = loading.load_programs(SpecText("vectors.toml", text), THREADS["one thread"])
    program = driver.advance(found, "tensor", THREADS["one thread"])
    assert isinstance(program, TensorProgram)
    assert len(kernels_of(program)) > 1


def arguments(name: str, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    sizes = {"N": n, "M": 7, "1": 1}
    return [np.asarray(rng.standard_normal([sizes[a] for a in text.partition("[")[2][:-1].split()]), np.float32) for text in OPERATORS[name][0]]


def with_specials(x: np.ndarray) -> list[np.ndarray]:
    """A vector with infinities and NaN in some elements, masked in part and whole, and all of one kind."""
    rng, made = np.random.default_rng(x.size), []
    for kinds in ([np.inf], [-np.inf], [np.nan], [np.inf, -np.inf], [np.inf, np.nan, -np.inf]):
        some = np.round(x)
        some.flat[rng.integers(0, x.size, 2)] = rng.choice(kinds, 2)
        made.append(some)
    masked = x.copy()
    masked[..., ::2] = -np.inf
    return [*made, masked, *[np.full_like(x, each) for each in (np.inf, -np.inf, np.nan, 0.0)]]


@cache
def together(opt: int, threads: str) -> list[Any]:
    """All operators as one library."""
    names = [f"V{n}" for n in range(len(OPERATORS))]
    made = caten.compile([spec_of(name, called) for name, called in zip(OPERATORS, names, strict=True)], opt=opt, config=dict(THREADS[threads].config))
    return [made[called] for called in names]


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_numbers_of_the_loops_as_written(name: str, threads: str) -> None:
    plain, fast = [library[list(OPERATORS).index(name)] for library in (together(0, "one thread"), together(2, threads))]
    for n in (0, 1, 2, 15, 16, 17, 1000)["np.roll" in spec_of(name):]:             # which has a first element
        first, *others = arguments(name, n)
        for x in [first, *(with_specials(first) if n > 1 else [])]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted, found = plain(x, *others), fast(x, *others)
            for a, b in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, wanted)], strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("code", [SOFTMAX, "return X / np.sqrt((X * X).mean()) - X.mean()"], ids=["softmax", "two sums in a pass"])
def test_sums_of_long_vectors_are_added_up_in_blocks(code: str) -> None:
    """With one vector of partial sums for all elements, the errors would be 1.4e-6 and 1.5e-5."""
    x = np.random.default_rng(1).random(10_000_000, np.float32)
    made = caten.compile(spec_of("softmax").replace(SOFTMAX, code), opt=2)
    names = {"np": np, "X": x.astype(np.float64)}
    exec(code.replace("return", "Y ="), names)
    exact = np.asarray(names["Y"])
    assert np.abs(made(x) - exact).max() < 6e-7 * np.abs(exact).max()


@pytest.mark.slow
@pytest.mark.parametrize("threads", THREADS)
def test_a_softmax_in_its_own_memory(threads: str) -> None:
    text = spec_of("softmax").replace("Y{float}[N]", "X").replace("return E / E.sum()", "X = E / E.sum()\nreturn X")
    made = caten.compile(text, opt=2, config=dict(THREADS[threads].config))
    for n in (0, 1, 17, 1000):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        wanted = np.exp(x - x.max()) / np.exp(x - x.max()).sum() if n else x.copy()
        np.testing.assert_allclose(made(x), wanted, rtol=1e-5)
