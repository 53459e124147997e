"""Gradients of programs of values: what they are, and that they are right."""
from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import caten
from caten import driver
from caten.api import options_of
from caten.core import scalars
from caten.core.text import show
from caten.differentiation import gradient_of
from caten.errors import CatenError
from caten.frontend import operator_library as library
from caten.frontend.operator_instances import instances_of
from caten.frontend.spec_files import SpecText
from caten.gradients import adjoints
from caten.gradients.gradient_program import gradient_program
from caten.loading import load_programs, loaded
from caten.options import Options
from caten.tensor.values import Compute, Reduce, Scatter, TensorProgram

ROOT = Path(__file__).resolve().parents[2]


def gradient(body: str, inputs: str = "x{float}[M N]", outputs: str = "y{float}[...]", wrt: tuple[str, ...] = ()) -> TensorProgram:
    text = f"""[composite]
name = "F"
inputs = [{", ".join(f'"{each}"' for each in inputs.split("; "))}]
outputs = ["{outputs}"]

[composite.implementation]
lang = "python"
code = '''
{body}
'''
"""
    options = Options()
    (op,) = load_programs(SpecText("f.toml", text, "toml"), options)
    values = driver.advance(op, "tensor", options)
    assert isinstance(values, TensorProgram)
    found = gradient_program(values, wrt)
    driver.advance(found, "loop", options)                       # it is verified there
    return found


def values(program: TensorProgram) -> list[str]:
    return [re.sub(r"\s+", " ", show(d.value).strip()) for d in program.definitions]


def test_a_product_has_two_products_as_its_gradients() -> None:
    assert values(gradient("return x @ w", "x{float}[M K]; w{float}[K N]")) == [
        "(reduce f32 ((i M) (j K)) ((p N)) add true (* (read grad_y i p) (read w j p)))",
        "(reduce f32 ((i K) (j N)) ((p M)) add true (* (read x p i) (read grad_y p j)))"]


@pytest.mark.parametrize(("body", "found"), [
    ("return np.transpose(x)", ["(compute f32 ((i M) (j N)) (read grad_y j i))"]),
    ("return x[::-1, 1:]", ["(compute f32 ((i M) (j N)) (where (<= 0 (- j 1)) (read grad_y (- (- M i) 1) (- j 1)) 0.0))"]),
    ("return np.broadcast_to(x[:, :1], (M, N))", ["(reduce f32 ((i M)) ((p N)) add true (read grad_y i p))", "(compute f32 ((i M) (j N)) (where (= 0 j) (read v0 i) 0.0))"]),
    ("return x.reshape(-1)", ["(compute f32 ((i M) (j N)) (read grad_y (+ (* N i) j)))"]),
    ("return x.sum(axis=1)", ["(compute f32 ((i M) (j N)) (read grad_y i))"]),
    ("return np.cumsum(x, axis=1)", ["(scan f32 ((i M) (j N)) j add inclusive down true (read grad_y i j))"]),
    ("return np.tile(x, (2, 1))", None), ("return np.repeat(x, 3, axis=0)", None), ("return np.concatenate((x, 2 * x), axis=1)", None)])
def test_views_and_sums_have_views_and_sums(body: str, found: list[str] | None) -> None:
    made = gradient(body)
    assert found is None or values(made) == found
    assert not any(isinstance(d.value, Scatter) for d in made.definitions)


def test_what_is_gathered_is_scattered() -> None:
    made = gradient("return x[i]", "x{float}[M N]; i{int}[K]", wrt=("x",))
    assert [type(d.value) for d in made.definitions if not isinstance(d.value, Compute)] == [Reduce, Scatter]      # the check, and the gradient
    assert made.checks                                             # an index outside fails here as it does there


def test_a_convolution_has_convolutions() -> None:
    made = gradient("return conv2d(x, f)", "x{float}[N C H W]; f{float}[O C 3 3]")
    assert [type(d.value) for d in made.definitions] == [Reduce, Reduce]


def test_windows_with_a_step_are_in_phases() -> None:
    """Of x, a convolution for each of the 2 · 2 remainders, with windows of a quarter, without a division inside."""
    made = gradient("return conv2d(x, f, stride=[2, 2], padding=[1, 1])", "x{float}[N C H W]; f{float}[O C 3 3]", wrt=("x",))
    phased, merged = values(made)
    assert phased.startswith("(reduce f32 ((i 2) (j 2) (k N) (l C) (m (floordiv (+ H 1) 2)) (n (floordiv (+ W 1) 2))) ((p O) (q 2) (r 2)) add ")
    divided = set(re.findall(r"\((?:mod|floordiv) \(\+ (\w)", phased))
    assert divided == {"i", "j", "H", "W"}                           # the remainders themselves, outside of all loops, and extents
    assert merged == "(compute f32 ((i N) (j C) (k H) (l W)) (read v0 (mod k 2) (mod l 2) i j (floordiv k 2) (floordiv l 2)))"


@pytest.mark.slice(5)
@pytest.mark.slow
@pytest.mark.parametrize(("call", "sizes"), [
    ("conv2d(x, f, stride=[2, 2], padding=[1, 1])", "C = 2, H = 7, W = 8, K = 3, L = 3"), ("conv2d(x, f, stride=[3, 2], padding=[0, 2])", "C = 2, H = 10, W = 7, K = 5, L = 3"),
    ("conv2d(x, f, stride=[2, 2], padding=[1, 1], groups=2)", "C = 1, H = 6, W = 7, K = 3, L = 4"),
    ("conv2d(x, f, stride=[2, 1], dilation=[2, 1])", "C = 2, H = 11, W = 6, K = 3, L = 3"), ("conv2d(x, f, stride=[4, 3])", "C = 1, H = 9, W = 9, K = 2, L = 3")])
def test_windows_with_a_step_have_right_gradients(call: str, sizes: str) -> None:
    groups = 2 if "groups" in call else 1
    found = caten.test(f"""[composite]
name = "F"
inputs = ["x{{float}}[N (* {groups} C) H W]", "f{{float}}[(* {groups} O) C K L]"]
outputs = ["y{{float}}[...]"]

[composite.implementation]
lang = "python"
code = "return {call}"

[[composite.test.case]]
name = "steps"
sizes = {{ N = 2, O = 2, {sizes} }}
""", grad=True)
    assert found.passed, found.files[0].cases


def test_the_second_derivative() -> None:
    """Of x³, as the gradient of the gradient."""
    first = gradient("return x * x * x", "x{float}[N]")
    second = gradient_program(first, ("x",))
    driver.advance(second, "loop", Options())
    assert "grad_grad_x" in second.buffers


@pytest.mark.slice(2)
@pytest.mark.parametrize(("body", "why"), [
    ("y = np.zeros_like(x)\ny[0, 0] = x[0, 0]\nfor i in range(1, M):\n    for j in range(1, N):\n        y[i, j] = y[i - 1, j] * y[i, j - 1] + x[i, j]\nreturn y", "keeps the order"),
    ("return x[:, :1] * np.abs(rfft(x))", "keeps the order"), ("return np.abs(np.complex64(x, x))", "complex"), ("return x * np.complex64(x, 1.0).real", "complex"),
    ("return (x.view(np.int32) + 1).view(np.float32)", "bits"), ("k = x.view(np.int32)\nk = np.cumsum(k, axis=1).astype(np.int32)\nreturn k.view(np.float32)", "bits"),
    ("return lgamma(x)", "lgamma")])                               # a call in a body is differentiated by its values
def test_what_has_no_gradient_is_refused_where_it_stands(body: str, why: str) -> None:
    with pytest.raises(CatenError, match=rf"(?s)E676: F has no gradient: .*{why}"):
        gradient(body)


def test_what_has_nothing_to_differentiate_says_so() -> None:
    with pytest.raises(CatenError, match="E677: F has no output of floats"):
        gradient("return x > 0", outputs="y{bool}[M N]")
    with pytest.raises(CatenError, match="E677: F: 'k' is no input of floats"):
        gradient("return x + k.astype(np.float32)", "x{float}[N]; k{int}[N]", wrt=("k",))


def test_an_arm_that_is_not_taken_has_no_effect() -> None:
    """The derivative of log at -1 is no NaN where another arm is taken."""
    found = caten.test("""[composite]
name = "F"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]

[composite.implementation]
lang = "python"
code = "return np.where(x > 0.1, np.log(x), x * x) + np.where(x > 0, np.sqrt(x), 0)"

[[composite.test.case]]
name = "both arms"
sizes = { N = 60 }
""", grad=True)
    assert found.passed, found.files[0].cases


SAMPLES = ("softmax", "layernorm", "conv2d", "gemm", "gather", "mlp", "prefix_sum")


@pytest.mark.slice(4)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_gradients_of_samples(name: str) -> None:
    found = caten.test(ROOT / "samples" / f"{name}.toml", grad=True)
    assert found.passed, [c for f in found.files for c in f.cases if not c.passed]


# What has no gradient: what works on the bits of numbers; signbit is constant.
NONE = {"signbit", "nextafter", "spacing", "frexp"} | {e.name for e in library.entries() if "gradient" in e.table}       # by hand: test_gradient_sections.py
FAMILIES = [f for f in sorted({e.family for e in library.entries()}) if f not in ("random", "rejection", "bits", "creation", "transforms", "sorting", "sparse", "linear_algebra", "recurrent")]

# Also those that few have: linear functions, and what is drawn with a given key, whose mask is the same for all differences.
DIFFERENCES = sorted([*FAMILIES, "random", "creation", "transforms"])


@pytest.mark.slice(8)
@pytest.mark.parametrize("family", DIFFERENCES)
def test_the_gradients_of_the_library(family: str, nightly: bool) -> None:
    entries = [e for e in library.entries() if e.family == family and e.name not in NONE]
    entries = entries if nightly else entries[len(family) % min(12, len(entries))::12][::3]
    found = caten.test(library.FOLDER / f"{family}.toml", grad=True, only=[c["name"] for e in entries for c in e.table["test"]["case"]], opt=2 if nightly else 0)
    bad = [c for f in found.files for c in f.cases if not c.passed and c.status != "vacuous"]
    assert not bad, bad
    assert not [d for f in found.files for d in f.diagnostics]


@pytest.mark.slice(4)
@pytest.mark.slow
@pytest.mark.parametrize(("family", "case"), [("convolutions", "im2col"), ("pooling", "max_pool1d with padding"), ("images", "grid_sample"), ("reductions", "prod of two axes")])
def test_scheduled_gradients_are_verified(family: str, case: str) -> None:
    """Reads of the seed at reshaped, padded and computed places; products over several axes."""
    found = caten.test(library.FOLDER / f"{family}.toml", grad=True, only=[case], opt=2)
    assert [c.status for f in found.files for c in f.cases] == ["ok"]


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scalars.OPERATORS, "tanh", replace(scalars.OPERATORS["tanh"], derivative=("(- 1 (tanh x))",)))
    found = caten.test(library.FOLDER / "activations.toml", only=("mish",), grad=True)
    assert [c.status for f in found.files for c in f.cases if c.status not in ("ok", "vacuous")]


def test_great_results_do_not_hide_the_differences_of_others() -> None:
    """The greatest number is the result for an infinity; the sum with it would not change by another element."""
    found = caten.test(library.entry_of("nan_to_num").spec.text, grad=True, only=["infinities"])
    (case,) = found.files[0].cases
    assert (case.status, [o.compared for o in case.outputs]) == ("ok", [1])


def test_a_scan_that_goes_the_wrong_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjoints, "OTHER", {"up": "up", "down": "down"})
    assert not caten.test(library.FOLDER / "cumulative.toml", only=("cumsum",), grad=True).passed


def instances(name: str, dtype: str, ranks: tuple[int, ...] = (1, 2, 3)) -> list[TensorProgram]:
    """An operator of the library for arrays of a type and some ranks, as far as it takes them."""
    entry = next(e for e in library.entries() if e.name == name)
    found = []
    for instance in instances_of(entry, (dtype,), ranks):
        options = replace(options_of("compile"), opt=1, instances=(instance,), only=(name,))
        with suppress(CatenError):
            (op,) = loaded([library.spec_of(name)], options)
            made = driver.advance(op, "tensor", options)
            assert isinstance(made, TensorProgram)
            found.append(made)
    return found


@pytest.mark.slice(12)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradients_of_16_bit_floats_are_verified(family: str, dtype: str, nightly: bool) -> None:
    """What has a gradient of float32 has one of 16 bits, computed in float32 between the arrays."""
    names = [e.name for e in library.entries() if e.family == family and e.name not in NONE]
    for name in names if nightly else names[len(dtype) % min(8, len(names))::8][:4]:
        for short, wide in zip(instances(name, dtype), instances(name, "f32"), strict=True):
            try:
                gradient_of(wide, Options())
            except CatenError:
                continue
            driver.advance(gradient_of(short, Options()), "loop", Options())


def test_the_gradient_of_a_scatter_of_16_bit_floats_gathers() -> None:
    """The rows that accumulate in float32 are arrays of each image; they have their axes."""
    for program in instances("conv_transpose1d", "f16", (3,)):
        made = gradient_of(program, Options())
        assert not any(isinstance(d.value, Scatter) for d in made.definitions)
        driver.advance(made, "loop", Options())


def test_a_sum_of_gradients_is_float32_inside() -> None:
    found = values(gradient("return x + b", "x{bfloat16}[M N]; b{bfloat16}[N]", "y{bfloat16}[...]", ("b",)))
    assert found == ["(reduce f32 ((i N)) ((p M)) add true (cast f32 (read grad_y p i)))", "(compute bf16 ((i N)) (cast bf16 (read v0 i)))"]


def test_a_place_that_is_known_to_be_inside_by_a_check_alone_is_checked() -> None:
    """Rows of the indices are rows of the array only if there are no more of them."""
    for made in instances("take_along_axis", "f32", (2, 3)):
        driver.advance(gradient_of(made, Options()), "loop", Options())
