"""NumPy's functions that are operators of the library: a body calls them under NumPy's names, with NumPy's results."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten.frontend.arrays.array_functions import OF_LIBRARY

rng = np.random.default_rng(5)
SQUARE, VECTOR, OTHER, INDICES = rng.standard_normal((4, 4)), np.sort(rng.standard_normal(5)), rng.standard_normal(5), rng.integers(0, 4, (4, 4))
DEFINITE, COMPLEX = SQUARE @ SQUARE.T + 4 * np.eye(4), SQUARE + 1j * SQUARE[::-1]
GIVEN: dict[str, tuple[Any, ...]] = {
    "cross": (SQUARE[:2, :3], SQUARE[2:, :3]), "convolve": (VECTOR, OTHER), "interp": (SQUARE, VECTOR, OTHER), "searchsorted": (VECTOR, OTHER),
    "polyval": (VECTOR, SQUARE), "take_along_axis": (SQUARE, INDICES), "matvec": (SQUARE, SQUARE[0]), "vecmat": (SQUARE[0], SQUARE), "vecdot": (SQUARE, SQUARE),
    "isin": (INDICES, INDICES[0]), "angle": (COMPLEX,), "bitwise_invert": (INDICES,), "bitwise_left_shift": (INDICES, INDICES),
    "bitwise_right_shift": (INDICES, INDICES), "linalg.solve": (DEFINITE, SQUARE), "acosh": (np.abs(SQUARE) + 1,), "ldexp": (SQUARE, INDICES.astype(np.int32)),
    **dict.fromkeys(("fft.rfft", "fft.rfft2", "fft.rfftn", "fft.ihfft"), (SQUARE,)),
    **{name: (np.clip(SQUARE, -0.9, 0.9),) for name in ("acos", "asin", "atanh")},
    **dict.fromkeys(("kron", "copysign", "heaviside", "isclose", "allclose", "array_equal", "logaddexp", "logaddexp2", "inner", "atan2"), (SQUARE, DEFINITE))}
OUTPUTS = {"modf": 2, "linalg.qr": 2, "linalg.eigh": 2, "linalg.slogdet": 2, "linalg.svd": 3}
BUT_SIGNS = ("linalg.qr", "linalg.eigh", "linalg.svd")
EVERYDAY = ("sort", "take_along_axis", "interp", "linalg.inv", "fft.ifft", "nanmean", "degrees")


def arguments(name: str) -> tuple[Any, ...]:
    return GIVEN.get(name) or ((DEFINITE,) if name.startswith("linalg.") else (COMPLEX,) if name.startswith("fft.") else (SQUARE,))


@pytest.mark.slice(3)
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.nightly) for name in OF_LIBRARY])
def test_a_function_of_the_library_has_numpys_results(name: str) -> None:
    of_numpy: Any = np
    for part in name.split("."):
        of_numpy = getattr(of_numpy, part)
    given, more = arguments(name), {"n": 3} if name == "linalg.matrix_power" else {}
    inputs = [f"{letter}{{{a.dtype.name}}}[{' '.join(map(str, a.shape))}]" for letter, a in zip("abc", given, strict=False)]
    outputs = [f"y{n}{{...}}[...]" for n in range(OUTPUTS.get(name, 1))]
    call = ", ".join([*"abc"[:len(given)], *[f"{k}={v}" for k, v in more.items()]])
    made = caten.compile(f"""[composite]
name = "Called"
inputs = {inputs}
outputs = {outputs}

[composite.implementation]
lang = "python"
code = "return np.{name}({call})"
""")(*given)
    expected = of_numpy(*given, **more)
    for found, wanted in zip(made if len(outputs) > 1 else (made,), expected if len(outputs) > 1 else (expected,), strict=True):
        assert np.shape(found) == np.shape(wanted)
        if name in BUT_SIGNS:
            found, wanted = np.abs(found), np.abs(wanted)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_function_of_numpy_is_not_the_specs_own_of_its_name() -> None:
    both = caten.compile("""
[[composite]]
name = "sort"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[composite.implementation]
lang = "python"
code = "return -x"

[[composite]]
name = "Both"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]", "z{float}[N]"]
[composite.implementation]
lang = "python"
code = "return sort(x), np.sort(x)"
""")["Both"]
    mine, numpys = both(np.array([3, 1, 2], np.float32))
    assert mine.tolist() == [-3, -1, -2]
    assert numpys.tolist() == [1, 2, 3]


def test_a_body_in_lisp_is_told_how_to_call_the_library() -> None:
    text = """[composite]
name = "Sorted"
inputs = ["X{float}[N]"]
outputs = ["Y{float}[N]"]
[composite.implementation]
code = "(return (sort X))"
"""
    with pytest.raises(caten.CatenError, match=r"it is an operator of the library: \(call sort …\)"):
        caten.compile(text)
    assert caten.compile(text.replace("(sort", "(call sort"))(np.array([2, 1], np.float32)).tolist() == [1, 2]


LINE, ROWS = rng.standard_normal(9), rng.standard_normal((5, 7))
SORTED, WITH_NAN = np.sort(LINE), np.where(rng.random((5, 7)) < 0.3, np.nan, ROWS)
SIGNATURES = {
    "axis by position": "np.median(ROWS, 0)",
    "None is the flattened array": "np.sort(ROWS, axis=None)",
    "the default of NumPy, where the operator's is another": "np.nancumsum(ROWS)",
    "attributes by position": "np.diff(ROWS, 2)",
    "a name of NumPy alone": "np.searchsorted(SORTED, ROWS, side='right')",
    "percents": "np.percentile(ROWS, q=40, axis=1)",
    "what NumPy has and the operator too": "np.linalg.svd(ROWS, full_matrices=False)[1]",
    "keepdims": "np.nanmedian(ROWS, -1, keepdims=True)",
    "an operator that no table names": "np.spacing(LINE)",
    "the transform of real numbers": "np.fft.fft(ROWS)",
}


def compiled(code: str, outputs: int = 1, before: str = "") -> tuple[Any, dict[str, Any]]:
    """A body that returns an expression, or several, after statements; and the arrays that it names."""
    arrays = {name: value for name, value in (("ROWS", ROWS), ("LINE", LINE), ("SORTED", SORTED), ("WITH_NAN", WITH_NAN)) if name in before + code}
    inputs = [f"{name}{{double}}[{' '.join(map(str, value.shape))}]" for name, value in arrays.items()]
    return caten.compile(f"""[composite]
name = "Called"
inputs = {inputs}
outputs = {[f"y{n}{{...}}[...]" for n in range(outputs)]}

[composite.implementation]
lang = "python"
code = '''{before}return {code}'''
"""), arrays


# of functions that are made of operators and of each other, in groups: one compilation each
COMPOSITIONS = {
    "of elements that are numbers": "np.nanstd(WITH_NAN, axis=0), np.nanstd(WITH_NAN, ddof=1, keepdims=True), np.nanmean(WITH_NAN, axis=(0, 1)), np.nansum(WITH_NAN, keepdims=True), np.nanvar(WITH_NAN, axis=1, keepdims=True)",
    "quantiles of elements that are numbers": "np.nanpercentile(WITH_NAN, [20, 70], axis=1), np.nanmedian(WITH_NAN)",
    "quantiles": "np.percentile(ROWS, [25, 50, 75], axis=0), np.quantile(ROWS, (0.1, 0.9)), np.quantile(ROWS, 0.3, axis=1, keepdims=True), np.percentile(ROWS, 40)",
    "medians of several axes": "np.median(ROWS, axis=(0, 1)), np.median(ROWS, keepdims=True), np.median(ROWS.reshape(5, 7, 1), axis=(2, 0), keepdims=True), np.median([LINE, LINE * 2, -LINE], axis=0)",
    "gradients": "np.gradient(LINE), np.gradient(ROWS)[0], np.gradient(ROWS)[1], np.gradient(ROWS, 0.5, axis=0), np.gradient(ROWS, 2.0, 3.0)[1], np.gradient(np.arange(4))",
    "integrals": "np.trapezoid(ROWS), np.trapezoid(ROWS, dx=0.5, axis=0), np.trapezoid(ROWS, SORTED[:7]), np.trapezoid(ROWS, ROWS * 2, axis=0), np.trapezoid(ROWS, SORTED[:5], axis=0)",
    "averages": "np.average(ROWS, axis=0), np.average(ROWS, axis=1, weights=SORTED[:7]), np.average(ROWS, weights=ROWS * ROWS), np.average(ROWS, axis=0, weights=ROWS > -1, keepdims=True)",
    "differences": "np.diff(LINE, prepend=0), np.diff(ROWS, axis=0, append=ROWS[:1]), np.diff(ROWS, n=2, prepend=1, append=2)",
    "places": "np.digitize(ROWS, SORTED), np.digitize(SORTED, SORTED, right=True), np.interp(ROWS, SORTED, LINE, left=-9.0, right=np.nan), np.isin(np.arange(5), [1, 3]), LINE.argsort(), SORTED.searchsorted(ROWS)",
    "orders": "np.lexsort((LINE, SORTED)), np.sort(np.partition(LINE, 3)[:3])",
    "partitions": "np.partition(ROWS, -2, axis=0)[-2], LINE[np.argpartition(LINE, 4)][4], LINE.argpartition(2)[2]",
    "windows": "np.hanning(9), np.hamming(LINE.size), np.blackman(ROWS.shape[0]), np.bartlett(8), np.hanning(1), np.fft.fftfreq(LINE.size), np.fft.rfftfreq(8, d=0.1), np.convolve(LINE, [1.0, 2.0, 1.0], 'same')",
    "bits": "np.packbits(ROWS > 0, axis=1), np.packbits(LINE > 0)",
}


@pytest.mark.slice(4)
@pytest.mark.parametrize("code", COMPOSITIONS.values(), ids=COMPOSITIONS)
def test_functions_made_of_others_have_numpys_results(code: str) -> None:
    operator, arrays = compiled(code, code.count(", np.") + code.count(", LINE.") + code.count(", SORTED.") + code.count(", LINE[") + 1)
    made, wanted = operator(*arrays.values()), eval(code, {"np": np, **arrays})
    for found, expected in zip(made, wanted, strict=True):
        assert (np.shape(found), found.dtype) == (np.shape(expected), expected.dtype)
        np.testing.assert_allclose(found, expected, atol=1e-12)


IN_PLACE = {
    "np.put_along_axis": "order = np.argsort(-z, axis=-1)\nnp.put_along_axis(z, order[:, :2], 0, axis=-1)",
    "of each row its own": "np.put_along_axis(z, z.argmax(axis=0, keepdims=True), z[:1] * 2, 0)",
    "sort": "z.sort()", "sort along an axis": "z.sort(axis=0)", "sort of a part": "z[1].sort()\nz[:, 2:].sort(axis=0)",
    "np.fill_diagonal": "np.fill_diagonal(z, 7)\nz.sort()", "in a loop": "for k in range(len(z)):\n    np.minimum(z, z[:, k, None] + z[None, k, :], out=z)",
}


@pytest.mark.slice(2)
@pytest.mark.parametrize("code", IN_PLACE.values(), ids=IN_PLACE)
def test_calls_that_change_an_array(code: str) -> None:
    operator, _ = compiled("z", 1, f"z = ROWS.copy()\n{code}\n")
    z = ROWS.copy()
    exec(code, {"np": np, "z": z})
    np.testing.assert_array_equal(operator(ROWS), z)


@pytest.mark.slice(6)
@pytest.mark.parametrize("code", SIGNATURES.values(), ids=SIGNATURES)
def test_arguments_are_read_by_numpys_signature(code: str) -> None:
    operator, arrays = compiled(code)
    made, wanted = operator(*arrays.values()), eval(code, {"np": np, **arrays})
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(made, wanted, atol=1e-12)


@pytest.mark.parametrize(("code", "message"), {
    "np.nancumsum(ROWS, out=LINE)": "E322: np.nancumsum has no argument 'out'",
    "np.median(ROWS, axis=0, overwrite_input=True)": "E322: np.median has no argument 'overwrite_input'",
    "np.searchsorted(SORTED, ROWS, side='middle')": "E327: np.searchsorted is not supported with these arguments",
    "np.percentile(ROWS, LINE)": "E327: the shares of np.percentile are numbers that are known when the body is compiled",
    "np.quantile(ROWS, 50)": "E326: the shares of np.quantile are between 0 and 1, and not 50",
    "np.quantile(ROWS, 0.5, method='cubic')": "E322: np.quantile has no method 'cubic'",
    "np.partition(LINE, 9)": "E323: the index 9 is outside axis 0",
    "np.gradient(ROWS, LINE, LINE, LINE)": "E327: the distances of np.gradient are one number, or for each axis",
    "np.gradient(ROWS[:1], axis=0)": "E323: axis 0 of .* is too short for np.gradient",
    "np.average(ROWS, weights=LINE)": "E321: weights of one axis need the axis that they are along",
    "np.lexsort(ROWS[0])": "E322: np.lexsort takes keys of one axis",
    "np.median(ROWS[ROWS > 0])": "E328: np.median orders the elements, and how many a mask selects is not known",
}.items())
def test_other_arguments_are_refused(code: str, message: str) -> None:
    operator, arrays = compiled(code)
    with pytest.raises(caten.CatenError, match=message):
        operator(*arrays.values())
