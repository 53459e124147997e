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
    **dict.fromkeys(("fft.rfft", "fft.rfftn", "fft.ihfft"), (SQUARE,)),
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
SORTED = np.sort(LINE)
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


def compiled(code: str) -> tuple[Any, dict[str, Any]]:
    """A body that returns an expression, and the arrays that it names."""
    arrays = {name: value for name, value in (("ROWS", ROWS), ("LINE", LINE), ("SORTED", SORTED)) if name in code}
    inputs = [f"{name}{{double}}[{' '.join(map(str, value.shape))}]" for name, value in arrays.items()]
    return caten.compile(f"""[composite]
name = "Called"
inputs = {inputs}
outputs = ["y{{...}}[...]"]

[composite.implementation]
lang = "python"
code = '''return {code}'''
"""), arrays


@pytest.mark.slice(6)
@pytest.mark.parametrize("code", SIGNATURES.values(), ids=SIGNATURES)
def test_arguments_are_read_by_numpys_signature(code: str) -> None:
    operator, arrays = compiled(code)
    made, wanted = operator(*arrays.values()), eval(code, {"np": np, **arrays})
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(made, wanted, atol=1e-12)


@pytest.mark.parametrize(("code", "message"), {
    "np.median(ROWS, axis=0, overwrite_input=True)": "E327: np.median is not supported with these arguments",
    "np.searchsorted(SORTED, ROWS, side='middle')": "E327: np.searchsorted is not supported with these arguments",
    "np.percentile(ROWS, LINE)": "E327: np.percentile is not supported with these arguments",
    "np.median(ROWS[ROWS > 0])": "E328: how many elements a mask selects",
    "np.partition(LINE, 3)": "E327: np.partition is not supported yet",
}.items())
def test_other_arguments_are_refused(code: str, message: str) -> None:
    operator, arrays = compiled(code)
    with pytest.raises(caten.CatenError, match=message):
        operator(*arrays.values())
