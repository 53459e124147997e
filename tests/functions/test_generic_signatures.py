"""Class words, shapes and types that follow, attributes in shapes, and calls of generic operators from bodies."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError

rng = np.random.default_rng(3)


def spec(name: str, inputs: list[str], outputs: list[str], code: str, attributes: tuple[str, ...] = (), lang: str = "python", more: str = "") -> str:
    def quoted(texts: Any) -> str:
        return "[" + ", ".join([f"'{text}'" for text in texts]) + "]"
    return (f'[[composite]]\nname = "{name}"\nattributes = {quoted(attributes)}\ninputs = {quoted(inputs)}\noutputs = {quoted(outputs)}\n\n'
            f'[composite.implementation]\nlang = "{lang}"\ncode = """\n{code}\n"""\n{more}')


def compiled(text: str, **options: Any) -> Any:
    return caten.compile(text, runtime="gcc", **options)


HALVED = spec("Halved", ["X{Floating}[~]"], ["Y{Floating}[~]"], "return X / 2")
PICK = spec("Pick", ["X{T}[...]", "I{Integer}[...]"], ["Y{T}[...]"], "return np.take(X, I, axis=axis)", ("axis = 0",))
CONVERTED = spec("Converted", ["X{T}[~]"], ["Y{...}[...]", "n{...}[...]"], "return X.astype(dtype), X.sum()", ('dtype = "int32"',))
HEADS = spec("Heads", ["X{T}[(* groups C)]"], ["Y{T}[C]"], "Y = X[:C] + X[(groups - 1) * C:]", ("groups = 2",))


def test_class_words(tool: Any) -> None:
    tool("gcc")
    halved = compiled(HALVED)
    for dtype in (np.float16, np.float32, np.float64):
        x = rng.standard_normal((2, 3)).astype(dtype)
        made = halved(x)
        assert made.dtype == dtype
        assert made.tolist() == (x / 2).tolist()
    with pytest.raises(CatenError, match="E675: Halved: the elements of X are floating-point, not int64"):
        halved(np.arange(3))
    with pytest.raises(CatenError, match="E675: Pick: the elements of I are integers, not float64"):
        compiled(PICK)(np.zeros(3), np.zeros(2))


def test_inputs_with_shapes_of_their_own(tool: Any) -> None:
    tool("gcc")
    pick = compiled(PICK)
    x = rng.standard_normal((4, 5)).astype(np.float32)
    for index, axis in ((np.array([1, -1]), 0), (np.array([[0, 4, 2]], np.int32), 1), (np.array(3), 1), (np.zeros((2, 0), np.int64), 0)):
        made = pick(x, index, axis=axis)
        assert made.shape == np.take(x, index, axis).shape
        assert made.tolist() == np.take(x, index, axis).tolist()
    with pytest.raises(CatenError, match="outside"):
        pick(x, np.array([4]))


def test_types_that_follow(tool: Any) -> None:
    tool("gcc")
    converted = compiled(CONVERTED)
    x = np.array([1.5, -2.5])
    for dtype in ("int32", "float64", "bool"):
        made, total = converted(x, dtype=dtype)
        assert (made.dtype, total.dtype) == (np.dtype(dtype), np.float64)
        assert made.tolist() == x.astype(dtype).tolist()


def test_attributes_in_shapes(tool: Any) -> None:
    tool("gcc")
    heads = compiled(HEADS)
    assert heads(np.arange(6)).tolist() == [3, 5, 7]
    assert heads(np.arange(6), groups=3).tolist() == [4, 6]
    assert heads(np.arange(4), groups=1).tolist() == [0, 2, 4, 6]
    with pytest.raises(CatenError, match="X"):
        heads(np.arange(7))


def test_numbers_take_the_type_of_the_arrays(tool: Any) -> None:
    tool("gcc")
    add = compiled(spec("Add", ["X{T}[~]", "Y{T}[~]"], ["Z{T}[~]"], "return X + Y"))
    x = np.ones((2, 3), np.float32)
    assert add(x, 2.0).dtype == add(2, x).dtype == np.float32
    assert add(x, 2.5).tolist() == [[3.5] * 3] * 2
    assert add(1.0, 2.0) == 3
    assert add(1, 2).dtype == np.int64
    with pytest.raises(CatenError):
        add(np.arange(3), 0.5)


SCALED = spec("Scaled", ["X{T}[~]"], ["Y{T}[~]"], "Y = X * by", ("by = 3",))


@pytest.mark.parametrize(("lang", "code"), [
    ("python", "return Scaled(X, by=2) + Scaled(X)"),
    ("python", "for i in range(M):\n    Y[i, :] = Scaled(X[i], by=2) + Scaled(X[i])"),
    ("lisp", "(set A (call Scaled X)) (return (+ A (+ X X)))"),
    ("lisp", "(array A double (M N)) (call Scaled X A) (dotimes (i M) (dotimes (j N) (setf (aref Y i j) (+ (aref A i j) (* 2 (aref X i j))))))"),
])
def test_a_call_makes_the_instance_for_its_arguments(lang: str, code: str, tool: Any) -> None:
    tool("gcc")
    text = SCALED + spec("Main", ["X{double}[M N]"], ["Y{double}[M N]"], code, lang=lang)
    x = rng.standard_normal((3, 4))
    np.testing.assert_allclose(compiled(text, only=["Main"])(x), 5 * x)


@pytest.mark.parametrize(("code", "message"), [
    ("return Scaled(X, by=X)", "E322: .*the attribute 'by' of Scaled is known when the body is compiled, and not an array"),
    ("return Scaled(X, times=2)", "E322: .*Scaled has no input 'times'"),
    ("return Halved(X)", "E314: .*Halved: the elements of X are floating-point, not int64"),
])
def test_calls_that_no_instance_fits(code: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        caten.check(SCALED + HALVED + spec("Main", ["X{int}[M]"], ["Y{int}[M]"], code))


def test_a_body_calls_the_library(tool: Any) -> None:
    tool("gcc")
    x = rng.standard_normal((3, 4)).astype(np.float32)
    e = np.exp(x - x.max(axis=0))
    made = compiled(spec("Main", ["X{float}[M N]"], ["Y{float}[M N]"], "return softmax(X, axis=0) + add(X, 1.0)"))(x)
    np.testing.assert_allclose(made, e / e.sum(axis=0) + x + 1, rtol=1e-5)
    own = spec("softmax", ["X{float}[M N]"], ["Y{float}[M N]"], "return 2 * X") + spec("Main", ["X{float}[M N]"], ["Y{float}[M N]"], "return softmax(X)")
    np.testing.assert_allclose(compiled(own, only=["Main"])(x), 2 * x)


def test_cases_of_instances() -> None:
    cases = "".join([f"\n[[composite.test.case]]\nname = '{name}'\n{instance}\nsizes = {sizes}\n" for name, instance, sizes in (
        ("default", "", "{ axis0 = 5 }"), ("columns", "instance = 'X=float64[M,N] axis=0'", "{ M = 2, N = 3 }"), ("more", "instance = 'X=float64[M,N] axis=0'", "{ M = 4, N = 1 }"))])
    text = spec("Sum", ["X{T}[~]"], ["Y{T}[...]"], "return X.sum(axis=axis)", ("axis = -1",), more=f"\n[composite.test]\ncode = 'lambda X, axis: X.sum(axis=axis)'\n{cases}")
    file, = caten.test(text).files
    assert [(c.op, c.case, c.passed) for c in file.cases] == [("Sum", "default", True), ("Sum_f64_2d_axis_0", "columns", True), ("Sum_f64_2d_axis_0", "more", True)]
    wrong = text.replace("lambda X, axis: X.sum(axis=axis)", "lambda X, axis: X.sum(axis=axis) * (axis == -1)")
    assert [c.passed for c in caten.test(wrong).files[0].cases] == [True, False, False]


def test_copies_bits_and_types_in_bodies(tool: Any) -> None:
    tool("gcc")
    code = "A = np.copy(X)\nfor i in range(N):\n    A[i] = A[i] + A[0]\nreturn A, X.view(np.uint32) if X.dtype.kind == 'f' and X.dtype.itemsize == 4 else X.view(np.uint64)"
    operator = compiled(spec("Bits", ["X{Floating}[N]"], ["Y{Floating}[...]", "Z{...}[...]"], code))
    for dtype, bits in ((np.float32, np.uint32), (np.float64, np.uint64)):
        x = np.array([1.5, 2.0, -3.0], dtype)
        made, as_bits = operator(x)
        assert made.tolist() == [3.0, 5.0, 0.0]
        assert x.tolist() == [1.5, 2.0, -3.0]
        assert as_bits.tolist() == x.view(bits).tolist()
    with pytest.raises(CatenError, match="E312"):
        caten.check(spec("Wrong", ["X{float}[N]"], ["Y{uint8}[N]"], "return X.view(np.uint8)"))


COMPLEX = [
    ("re{T}[~]; im{T}[~]", "return complex(re, im)", lambda re, im: re + 1j * im),
    ("re{T}[~]; im{T}[~]", "return np.complex128(re, im).real", lambda re, im: re.astype(np.float64)),
    ("re{T}[N]; im{T}[N]", "z = np.zeros(N, np.complex64)\nfor i in range(N):\n    z[i] = np.complex64(re[i], 2)\nreturn z", lambda re, im: (re + 2j).astype(np.complex64)),
    ("re{T}[~]; im{T}[~]", "return np.abs(complex(re, im)) + complex(3.0, 4.0).imag", lambda re, im: np.hypot(re, im) + 4),
]


@pytest.mark.slice(2)
@pytest.mark.parametrize(("inputs", "code", "wanted"), COMPLEX)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complex_numbers_of_their_parts(inputs: str, code: str, wanted: Any, dtype: Any, tool: Any) -> None:
    tool("gcc")
    made = compiled(spec("Made", inputs.split("; "), ["Y{...}[...]"], code))
    re, im = np.array([1.5, -0.0, np.inf, 2], dtype), np.array([-2, np.inf, 1, 0.25], dtype)
    with np.errstate(all="ignore"):
        found, expected = made(re, im), wanted(re, im)
    np.testing.assert_allclose(found.real[[0, 3]], expected.real[[0, 3]], rtol=1e-6)
    np.testing.assert_allclose(found.imag[[0, 3]], expected.imag[[0, 3]], rtol=1e-6)
    if "return complex" in code:                             # a product with i would make NaN of infinities
        assert found.dtype == {np.float32: np.complex64, np.float64: np.complex128}[dtype]
        assert (found.real[2], found.imag[1]) == (np.inf, np.inf)
        assert not np.isnan(found).any()


def test_what_cannot_be_a_part_of_a_complex_number(tool: Any) -> None:
    tool("gcc")
    halves = compiled(spec("Halves", ["x{T}[~]"], ["Y{...}[...]"], "return complex(x, x)"))
    with pytest.raises(CatenError, match="complex is not defined on half"):
        halves(np.zeros(2, np.float16))
    lisp = compiled(spec("Made", ["x{float}[N]"], ["Y{complex64}[N]"], "(return (complex x (* 2 x)))", (), "lisp"))
    assert lisp(np.ones(2, np.float32)).tolist() == [1 + 2j, 1 + 2j]


def test_a_variable_may_have_the_name_of_an_output_that_is_returned_otherwise(tool: Any) -> None:
    tool("gcc")
    turned = compiled(spec("Turned", ["x{T}[M N]"], ["y{T}[...]"], "y = x * 2\nreturn y.T"))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(turned(x), 2 * x.T)
    loops = compiled(spec("Loops", ["x{T}[M N]"], ["y{T}[...]"], "y = np.zeros(N, x.dtype)\nfor j in range(N):\n    y[j] = x[0, j]\nreturn y[::-1] + 1"))
    np.testing.assert_array_equal(loops(x), x[0, ::-1] + 1)
