"""Complex arrays in vectors: their parts are loaded and stored as pairs, by every compiler, in any layout, and equal to NumPy's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten.core.dtypes import is_complex
from caten.core.expr import Cast, Const, Expr, Op, Var
from caten.core.identities import PARTS_OF_ALL
from caten.core.rewrite import Rules
from caten.mathematics import evaluate

LENGTHS = (0, 1, 7, 16, 33, 100)
OUT = {np.dtype("c8"): "complex64", np.dtype("c16"): "complex128", np.dtype("f4"): "float", np.dtype("f8"): "double", np.dtype("?"): "bool"}


def pair(re: Any, im: Any) -> Any:
    made = np.empty(re.shape, np.result_type(re, np.complex64))
    made.real, made.imag = re, im
    return made


BODIES: dict[str, Any] = {
    "np.abs(z)": np.abs, "np.angle(z * w)": lambda z, w: np.angle(z * w), "(z - w).real": lambda z, w: (z - w).real,
    "np.abs(z)[::-1]": lambda z: np.abs(z)[::-1], "complex(z.imag, z.real)[::-1]": lambda z: pair(z.imag, z.real)[::-1],
    "(z + np.conj(w) == w) | np.isnan(z)": lambda z, w: (z + np.conj(w) == w) | np.isnan(z),
    "complex(np.exp(z.real), np.cos(w.imag))": lambda z, w: pair(np.exp(z.real), np.cos(w.imag)),
    "complex(z.real, 2.0 * np.abs(w))": lambda z, w: pair(z.real, 2 * np.abs(w)),
}


def arrays(n: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    made = [(rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype) for _ in range(2)]
    if n > 8:
        made[0][3:8] = [complex(np.inf, np.nan), complex(np.nan, 1), complex(-0.0, 0.0), complex(0.0, -0.0), complex(-np.inf, 2)]
        made[1][:] = np.where(np.isfinite(made[0]), made[1], made[0])
    return made


@pytest.mark.slice(3)
@pytest.mark.parametrize(("dtype", "runtime"), [("complex64", "clang"), ("complex128", "gcc")])
@pytest.mark.parametrize("body", BODIES)
def test_values_are_those_of_numpy(body: str, dtype: str, runtime: str) -> None:
    reference = BODIES[body]
    with np.errstate(all="ignore"):
        for n in LENGTHS:
            z, w = arrays(n, dtype)
            expected = reference(z, w) if reference not in (np.abs,) and reference.__code__.co_argcount == 2 else reference(z)
            operator = caten.compile(f'[composite]\nname = "F"\ninputs = ["z{{{dtype}}}[N]", "w{{{dtype}}}[N]"]\noutputs = ["y{{{OUT[expected.dtype]}}}[N]"]\n'
                                     f'[implementation]\nlang = "python"\ncode = "return {body}"\n', runtime=runtime)
            found = operator(z, w)
            for x, y in ((found.real, expected.real), (found.imag, expected.imag)):
                np.testing.assert_allclose(x, y, rtol=1e-6 if dtype == "complex64" else 1e-14, atol=1e-6 if dtype == "complex64" else 1e-14)


@pytest.mark.scheduled
@pytest.mark.parametrize(("body", "dtype", "is_vector"), [
    ("np.abs(z)", "complex64", True), ("complex(np.exp(z.real), z.imag)", "complex64", True), ("z * z", "complex64", True),
    ("1j / np.conj(z)", "complex64", True), ("z * z", "complex128", False), ("z * np.exp(1j * z.real)", "complex128", True)])
def test_which_loops_are_vectors(body: str, dtype: str, is_vector: bool) -> None:
    gives = "float" if body == "np.abs(z)" else dtype
    operator = caten.compile(f'[composite]\nname = "F"\ninputs = ["z{{{dtype}}}[N]"]\noutputs = ["y{{{gives}}}[N]"]\n'
                             f'[implementation]\nlang = "python"\ncode = "return {body}"\n', config={"MARCH": "x86-64-v3"})
    assert ("vectorize" in operator.schedule) == is_vector


def test_columns_reductions_and_a_given_schedule() -> None:
    z = (np.arange(48) - 20 + 1j * np.arange(48)).astype(np.complex64).reshape(6, 8)
    text = '[composite]\nname = "F"\ninputs = ["z{complex64}[M N]"]\noutputs = ["y{float}[%s]"]\n[implementation]\nlang = "python"\ncode = "return %s"\n'
    np.testing.assert_allclose(caten.compile(text % ("N M", "np.abs(z).T"))(z), np.abs(z).T, rtol=1e-6)
    np.testing.assert_allclose(caten.compile(text % ("N", "np.abs(z).sum(axis=0)"))(z), np.abs(z).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(caten.compile(text % ("", "(z.real * z.real + z.imag * z.imag).sum()"))(z), (np.abs(z)**2).sum(), rtol=1e-5)
    spec = '(composite F ((z{complex128}[N]) -> (y{complex128}[N])) (dotimes (i N) (setf (aref y i) (* (aref z i) (aref z i)))))'
    with pytest.raises(caten.CatenError, match="only their parts"):
        caten.compile(spec, schedule="(schedule (split i 4) (vectorize ii))")


@pytest.mark.parametrize("runtime", ["clang", "gcc"])
def test_lanes_that_lie_apart(runtime: str) -> None:
    z = (np.arange(42) - 20 + 1j * np.arange(42)).astype(np.complex64).reshape(6, 7)
    spec = "(composite F ((z{complex64}[M N]) -> (y{complex64}[M N])) (dotimes (i M) (dotimes (j N) (setf (aref y i j) (complex (imag (aref z i j)) (exp (real (aref z i j))))))))"
    for steps in ("(split i 4 pad) (vectorize ii)", "(split i 2) (vectorize ii)", "(split j 4 pad) (vectorize ji)"):
        operator = caten.compile(spec, schedule=f"(schedule {steps})", runtime=runtime)
        np.testing.assert_allclose(operator(z), pair(z.imag, np.exp(z.real)), rtol=1e-6)
        assert ("interleave_apart" in operator.source) == ("ii" in steps)


def test_parts_of_real_and_of_complex_numbers_in_one_library() -> None:
    z, x = arrays(33, "complex64")[0], np.linspace(-1, 1, 33, dtype=np.float32)
    operator = caten.compile('[composite]\nname = "F"\ninputs = ["z{complex64}[N]", "x{float}[N]"]\noutputs = ["y{float}[N]", "w{float}[N]"]\n'
                             '[implementation]\nlang = "python"\ncode = "return np.real(z), np.real(x) + np.imag(x)"\n')
    y, w = operator(z, x)
    np.testing.assert_array_equal(y, z.real)
    np.testing.assert_array_equal(w, x)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_the_identities_of_parts(dtype: str) -> None:
    assert isinstance(PARTS_OF_ALL, Rules)
    rng, part, checked = np.random.default_rng(0), {"c64": "f32", "c128": "f64"}[dtype], 0
    kind_of = {"x": part, "y": part, "real": part, "condition": "bool"}
    for pattern, template in PARTS_OF_ALL.rules:
        holes: dict[Any, Expr] = {n: Const(1.5 - 2j, dtype) if n.name == "constant" else Var(n.name, kind_of.get(n.name, dtype))
                                  for n in pattern.unique() if type(n).__name__ == "Hole"}

        def filled(e: Any, holes: dict[Any, Expr] = holes) -> Any:
            return holes[e] if e in holes else e.map(lambda a: filled(a))
        env: dict[str, Any] = {}
        for name, kind in {(v.name, v.dtype) for v in holes.values() if isinstance(v, Var)}:
            numbers = rng.standard_normal(50) + (1j * rng.standard_normal(50) if is_complex(kind) else 0)
            env[name] = (numbers > 0 if kind == "bool" else numbers).astype(evaluate.numpy_type(kind))
        result = filled(template) if isinstance(template, Expr) else template(**{h.name: v for h, v in holes.items()})
        left, right = [value(side, env) for side in (filled(pattern), result)]
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=1e-5, err_msg=str(pattern))
        checked += 1
    assert checked == len(PARTS_OF_ALL)


def value(e: Any, env: dict[str, Any]) -> Any:
    """An expression by the meaning of its operators."""
    match e:
        case Var(name=name):
            return env[name]
        case Const(value=number, type=dtype):
            return np.asarray(number, evaluate.numpy_type(dtype))
        case Cast(type=dtype, arg=arg):
            return value(arg, env).astype(evaluate.numpy_type(dtype))
    assert isinstance(e, Op)
    return evaluate.apply(e.fn, [value(a, env) for a in e.args], e.args[-1].dtype)


@pytest.mark.scheduled
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients_are_those_of_numpy(dtype: str) -> None:
    """Also those by zero, and of infinite numbers and NaN."""
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e30, 1e-30]
    z = pair(*np.meshgrid(np.array(parts, {"complex64": "f4", "complex128": "f8"}[dtype]), parts)).ravel().astype(dtype)
    operator = caten.compile(f'[composite]\nname = "F"\ninputs = ["z{{{dtype}}}[M]", "w{{{dtype}}}[N]"]\noutputs = ["y{{{dtype}}}[M N]"]\n'
                             '[implementation]\nlang = "python"\ncode = "return z[:, None] / w[None, :]"\n')
    with np.errstate(all="ignore"):
        expected = z[:, None] / z[None, :]
    for fn in (np.real, np.imag):
        np.testing.assert_allclose(fn(operator(z, z)), fn(expected), rtol=1e-6)
