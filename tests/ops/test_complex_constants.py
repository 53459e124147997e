"""Functions of complex constants are NumPy's, where they are folded and where they are not."""
from __future__ import annotations

import numpy as np
import pytest

import caten
from caten import compiler
from caten.frontend.spec_files import SpecText
from caten.options import Options

CONSTANTS = ("c(0)", "c(1)", "c(3 + 4j)", "c(-2j)", "np.full(N, 3 + 4j, c)", "np.zeros(N, c)", "np.full(N, np.inf, c)")
FUNCTIONS = ("np.abs({0})", "{0}.real", "np.imag({0})", "np.conj({0}).imag", "{0}.conjugate().imag", "np.exp({0}).real", "np.sqrt({0}).imag", "({0} * {0}).real", "({0} - {0} / 2).imag",
             "np.abs(-{0} + 1j)", "np.where({0} == c(0), x, 2 * x)", "np.where({0} != 3 + 4j, x, 2 * x)", "np.where(np.abs({0}) > 4, x, 2 * x)", "np.isfinite({0})")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_functions_of_a_constant(constant: str, dtype: str) -> None:
    formulas = [f.format(constant).replace("c(", f"np.{dtype}(").replace(", c)", f", np.{dtype})") for f in FUNCTIONS]
    real = {"complex64": "float", "complex128": "double"}[dtype]
    outputs = ", ".join([f'"y{n}{{{real}}}[N]"' for n in range(len(formulas))])
    body = "return " + ", ".join([f"x * {f}" for f in formulas])
    made = caten.compile(f'[composite]\nname = "Constants"\ninputs = ["x{{{real}}}[N]"]\noutputs = [{outputs}]\n[implementation]\nlang = "python"\ncode = "{body}"')
    x = np.arange(1, 6, dtype={"complex64": "f4", "complex128": "f8"}[dtype])
    with np.errstate(all="ignore"):
        for formula, got in zip(formulas, made(x), strict=True):
            np.testing.assert_allclose(got, x * eval(formula, {"np": np, "N": 5, "x": x}), rtol=1e-6, atol=1e-6, err_msg=formula)


MANDELBROT = """
c = re[None, :] + 1j * im[:, None]
z = np.zeros((M, N), np.complex128)
count = np.zeros((M, N), np.int32)
for step in range(32):
    inside = np.abs(z) <= 2
    z = np.where(inside, z * z + c, z)
    count = count + inside
return count
"""


def test_a_mandelbrot_set_in_the_notation_of_numpy() -> None:
    made = caten.compile(f'[composite]\nname = "Mandelbrot"\ninputs = ["re{{double}}[N]", "im{{double}}[M]"]\noutputs = ["n{{int32}}[M N]"]\n[implementation]\nlang = "python"\ncode = """{MANDELBROT}"""')
    re, im = np.linspace(-2, 0.5, 37), np.linspace(-1.2, 1.2, 23)
    names = {"np": np, "re": re, "im": im, "M": 23, "N": 37}
    exec("def count():\n" + MANDELBROT.replace("\n", "\n    "), names)
    wanted = eval("count()", names)
    assert 0 < np.count_nonzero(wanted == 32) < wanted.size
    np.testing.assert_array_equal(made(re, im), wanted)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_chain_of_choices_is_written_step_by_step(dtype: str) -> None:
    """Each step has four products of the parts of the step before, which are variables."""
    spec = '[composite]\nname = "Mandelbrot"\ninputs = ["c{{{}}}[N]"]\noutputs = ["n{{int32}}[N]"]\n[implementation]\nlang = "python"\ncode = """{}"""'
    code = "z = c * 0\nn = np.zeros(N, np.int32)\nfor step in range({}):\n    inside = np.abs(z) <= 2\n    z = np.where(inside, z * z + c, z)\n    n = n + inside\nreturn n"
    few, many = [len(compiler.prepare([SpecText("m.toml", spec.format(dtype, code.format(steps)))], Options()).source) for steps in (32, 64)]
    assert many < 3 * few
