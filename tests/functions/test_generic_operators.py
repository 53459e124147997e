"""Generic specs: type variables, `~`, attributes and shapes that follow from the body, in calls and on the command line."""
from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.cli.boundary import guarded
from caten.errors import CatenError
from caten.frontend.generic_signature import read_instance
from caten.frontend.spec_files import SpecText
from caten.functions.generic_operator import OFTEN
from caten.options import Options


def spec(name: str, inputs: str, outputs: str, code: str, attributes: str = "", lang: str = "python") -> str:
    def quoted(text: str) -> str:
        return ", ".join([f'"{part.strip()}"' for part in text.split(";") if part.strip()])
    return (f'[composite]\nname = "{name}"\nattributes = [{quoted(attributes)}]\ninputs = [{quoted(inputs)}]\noutputs = [{quoted(outputs)}]\n\n'
            f'[implementation]\nlang = "{lang}"\ncode = """\n{code}\n"""\n')


SOFTMAX = spec("Softmax", "X{T}[~]", "Y{T}[~]", "e = np.exp(X - X.max(axis=axis, keepdims=True))\nY = e / e.sum(axis=axis, keepdims=True)", "axis = -1")
ADD = spec("Add", "X{T}[~]; B{T}[~]", "Y{T}[~]", "Y = X + B")
PRODUCT = spec("Product", "A{T}[~ M K]; B{T}[~ K N]", "C{T}[~ M N]", "C = A @ B")
SQUARE = spec("Square", "X{T}[~]", "Y{T}[~]", "return X * X")
SUM = spec("Sum", "X{T}[~]", "Y{T}[...]", "return X.sum(axis=axis, keepdims=keepdims)", "axis = none; keepdims = false")
LESS = spec("Less", "X{T}[~]; limit{T}[]", "Y{bool}[...]", "return X < limit")
LISP = spec("Scaled", "X{T}[~]", "Y{T}[~]", "(setf Y (* X scale)) (return Y)", "scale = 2.0", "lisp")
LOOPS = spec("Rows", "X{T}[M N]", "Y{T}[M]", "(dotimes (i M) (setf (aref Y i) 0.0) (loop (j start N) (incf (aref Y i) (aref X i j))))", "start = 1", "lisp")
ORDER = spec("Turned", "X{T}[M ~ N]<1 ~ 0>", "Y{T}[M ~ N]<0 ~ 1>", "Y = X * 2")
CASTS = spec("Casts", "X{T}[~]; like{U}[K]", "Y{U}[~]", "Y[...] = X.astype(like.dtype)")
INFERRED = spec("Twice", "X{T}[~]", "Y{T}[...]", "(return (* X 2))", "", "lisp")
ONE_LINE = "(composite ((A{T}[~ M N] B{T}[~ M 1]) -> (A{T}[~ M k]) where k = (* 2 M)) (dotimes (i M) (dotimes (j k) (setf (aref A_out i j) (+ (aref A i 0) (aref B i 0))))))"
LOOP = spec("Diagonal", "X{T}[N N]", "Y{T}[...]", "Y2 = np.zeros(N, X.dtype)\nfor i in range(N):\n    Y2[i] = X[i, i] * factor\nreturn Y2", "factor = 3")

rng = np.random.default_rng(8)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (4 * rng.standard_normal(shape)).astype(dtype)


def softmax(x: np.ndarray, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    *[(SOFTMAX, (x,), {}, softmax(x)) for x in (array(5), array(2, 3), array(2, 3, 4, dtype=np.float64), array(2, 1, 3, 2, 2))],
    *[(SOFTMAX, (x,), {"axis": a}, softmax(x, a)) for x in (array(3, 4), array(2, 3, 4)) for a in (0, -2)],
    *[(ADD, (x, b), {}, x + b) for x, b in ((array(3, 4), array(4)), (array(3, 1), array(3, 4)), (array(1), array(2, 2)), (array(2, 3, 4), array(3, 1)), (array(), array(3)))],
    (ADD, (array(0, 3), array(3)), {}, np.zeros((0, 3))), (ADD, (np.arange(3), np.arange(3)), {}, 2 * np.arange(3)), (ADD, (array(1, 1), array(1)), {}, None),
    *[(PRODUCT, (a, b), {}, a @ b) for a, b in ((array(3, 4), array(4, 2)), (array(5, 3, 4), array(4, 2)), (array(2, 1, 3, 4), array(5, 4, 2)),
                                                (array(2, 2, dtype=np.float64), array(2, 2, dtype=np.float64)))],
    *[(SUM, (x,), {"axis": a, "keepdims": k}, x.sum(axis=tuple(a) if isinstance(a, list) else a, keepdims=k)) for x in (array(3, 4, dtype=np.float64), array(2, 3, 2, dtype=np.float64))
      for a, k in ((None, False), (0, True), ((0, 1), False), ([1], True))],
    (LESS, (array(3, 2), 0.5), {}, None), (LISP, (array(2, 3),), {}, None), (LISP, (array(2, 3),), {"scale": 0.5}, None),
    (LOOPS, (array(2, 3),), {}, None), (LOOPS, (array(2, 3, dtype=np.float64),), {"start": 0}, None), (ORDER, (array(2, 3, 4),), {}, None),
    (ORDER, (array(2, 4),), {}, None), (ORDER, (array(2, 3, 3, 4),), {}, None), (CASTS, (array(2, 3), np.zeros(2)), {}, None),
    (INFERRED, (array(3, 2),), {}, None), (ONE_LINE, (array(2, 3), array(2, 1)), {}, None),
    (LOOP, (array(3, 3),), {}, None), (LOOP, (np.arange(9).reshape(3, 3),), {"factor": 2}, None),
]
WANTED = {LESS: lambda x, y: x < y, LISP: lambda x, scale=2.0: x * x.dtype.type(scale), LOOPS: lambda x, start=1: x[:, start:].sum(axis=1), ORDER: lambda x: x * 2,
          CASTS: lambda x, like: x.astype(like.dtype), ADD: lambda x, b: x + b, INFERRED: lambda x: x * 2, ONE_LINE: lambda a, b: (a[:, :1] + b).repeat(4, 1),
          LOOP: lambda x, factor=3: np.diag(x) * x.dtype.type(factor)}


@pytest.fixture(scope="module")
def operators() -> dict[str, Any]:
    return {text: caten.compile(text, runtime="gcc") for text, _, _, _ in CALLS}


@pytest.mark.slice(8)
@pytest.mark.parametrize("n", range(len(CALLS)))
def test_what_numpy_computes(n: int, operators: dict[str, Any], tool: Any) -> None:
    tool("gcc")
    text, args, named, wanted = CALLS[n]
    wanted = WANTED[text](*args, **named) if wanted is None else wanted
    for _ in range(2):
        made = operators[text](*args, **named)
        assert (made.shape, made.dtype) == (np.shape(wanted), np.asarray(wanted).dtype if wanted.size else made.dtype)
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


def test_one_kernel_for_all_extents(tool: Any) -> None:
    tool("gcc")
    add = caten.compile(ADD, runtime="gcc")
    assert isinstance(add, caten.GenericOperator)
    first = add.operator(array(3, 4), array(4))
    assert add.operator(array(5, 2), array(2)) is first
    assert add.operator(array(5, 1), array(2)) is not first
    assert add.operator(array(3, 4), array(3, 4)) is not first
    assert len(add.instances) == 3
    assert add.signature == "Add(X{T}[~], B{T}[~]) -> Y{T}[~]"


def test_calls_go_to_the_instance_directly(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    add = caten.compile(ADD, runtime="gcc")
    seen: list[Any] = []
    way = add._call
    monkeypatch.setattr(add, "_call", lambda *given, **named: (seen.append(given), way(*given, **named))[1])
    x, y = array(3, 4), array(5, dtype=np.float64)
    for _ in range(4):
        np.testing.assert_array_equal(add(x, x), x + x)
    assert len(seen) == 1
    for _ in range(OFTEN + 4):                                   # another instance, which is tried first once it was called often
        np.testing.assert_array_equal(add(y, y), y + y)
    assert len(seen) == 1 + OFTEN
    np.testing.assert_array_equal(add(x, B=x), x + x)
    np.testing.assert_array_equal(add(x[:, ::2], x[:, 1::2]), x[:, ::2] + x[:, 1::2])
    assert len(seen) == 3 + OFTEN
    with pytest.raises(CatenError):
        add(x, y)
    other = caten.compile(ADD, runtime="gcc")                    # has calls of its own
    np.testing.assert_array_equal(other(x, x), x + x)
    assert len(seen) == 4 + OFTEN


def test_what_an_instance_takes_does_not_depend_on_earlier_calls(tool: Any) -> None:
    tool("gcc")
    add, square = caten.compile(ADD, runtime="gcc"), caten.compile(SQUARE, runtime="gcc")
    x = array(4)
    for _ in range(OFTEN + 4):
        assert add(x, 2.0).dtype == np.float32
        assert square(1.5) == 2.25
    np.testing.assert_array_equal(add(x, np.float32(2)), x + 2)
    with pytest.raises(CatenError):
        add(x, np.float64(2))                                    # not the type of x
    assert square(3).dtype == np.int64
    assert square(np.float32(1.5)).dtype == np.float32


def test_attributes_that_are_equal_and_not_the_same(tool: Any) -> None:
    """1, 1.0 and True."""
    tool("gcc")
    f, whole = caten.compile(spec("Raised", "X{T}[~]", "Y{T}[...]", "return X * by", "by = 1"), runtime="gcc"), np.arange(3)
    power = caten.compile(spec("Half", "X{T}[~]", "Y{double}[...]", "return np.zeros_like(X, dtype=np.float64) + by / 2", "by = 1"), runtime="gcc")
    assert f(whole, by=2).tolist() == [0, 2, 4]
    with pytest.raises(CatenError, match="E310"):
        f(whole, by=2.0)
    assert [power(whole, by=by)[0] for by in (1, True, 1.0, 3)] == [0.5, 0.5, 0.5, 1.5]
    assert len(power.instances) == 4


def test_attributes_of_fixed_types(tool: Any) -> None:
    tool("gcc")
    f = caten.compile(spec("Power", "X{float}[N]", "Y{float}[N]", "Y = X ** power", "power = 2"), runtime="gcc")
    np.testing.assert_allclose([f(array(3) * 0 + 2), f(array(3) * 0 + 2, power=3)], [[4] * 3, [8] * 3])
    assert f.signature == "Power(X{float}[N], power=2) -> Y{float}[N]"


@pytest.mark.parametrize("specs", [[SOFTMAX, ADD], [SOFTMAX, spec("A", "X{float}[N]", "Y{float}[N]", "Y = X")]])
def test_one_beside_other_operators_is_refused(specs: list[str]) -> None:
    with pytest.raises(CatenError, match=r"(?s)E675: Softmax is generic, and one of 2 operators.*only="):
        caten.compile(specs)


def test_one_of_a_file_of_several(tool: Any) -> None:
    tool("gcc")
    both = "".join(text.replace("[composite]", "[[composite]]").replace("[implementation]", "[composite.implementation]") for text in (ADD, SOFTMAX))
    f = caten.compile(both, runtime="gcc", only=["Softmax"])
    for made in (f, pickle.loads(pickle.dumps(f))):
        np.testing.assert_allclose(made(array(2, 2) * 0, axis=0), np.full((2, 2), 0.5))
    assert signature(both, "X=float32[N]", "X=float64[N]") == [
        "Add_f32_1d: f321 f321 f321", "Add_f64_1d: f641 f641 f641", "Softmax_f32_1d: f321 f321", "Softmax_f64_1d: f641 f641"]


@pytest.mark.parametrize("body", ["(call Scaled X Y)", "(array T float (N)) (call Scaled X T) (dotimes (i N) (setf (aref Y i) (aref T i)))"])
def test_a_body_that_calls_one_with_attributes(body: str, tool: Any) -> None:
    tool("gcc")
    inner = spec("Scaled", "X{float}[N]", "Y{float}[N]", "(dotimes (i N) (setf (aref Y i) (* scale (aref X i))))", "scale = 3", "lisp")
    outer = spec("Outer", "X{float}[N]", "Y{float}[N]", body, "", "lisp")
    both = "".join(text.replace("[composite]", "[[composite]]").replace("[implementation]", "[composite.implementation]") for text in (inner, outer))
    f = caten.compile(both.replace("attributes = []\n", ""), runtime="gcc", only=["Outer"])
    np.testing.assert_allclose(f(array(3) * 0 + 2), [6, 6, 6])


def test_an_instance_is_pickled(tool: Any) -> None:
    tool("gcc")
    again = pickle.loads(pickle.dumps(caten.compile(SOFTMAX, runtime="gcc")))
    np.testing.assert_allclose(again(array(2, 3) * 0), np.full((2, 3), 1 / 3), rtol=1e-6)


@pytest.mark.parametrize(("text", "args", "named", "message"), [
    (ADD, (array(3), array(3, dtype=np.float64)), {}, "E675: Add: T is float32 by X, and float64 by B"),
    (ADD, (array(3, 4), array(3)), {}, "E705: Add: the size axis1 is 4 by axis 1 of X, and 3 by axis 0 of B"),
    (PRODUCT, (array(3), array(3, 4)), {}, "E675: Product: A has 1, and at least 2 axes"),
    (LOOPS, (array(3),), {}, "E675: Rows: X has 2 axes, not 1"),
    (SOFTMAX, (array(3),), {"axis": 1}, "E321"),
    (SOFTMAX, (array(3),), {"axes": 1}, "axes"),
    (SOFTMAX, (array(3),), {"axis": {}}, "E675: Softmax: the attribute 'axis' is {}, a dict"),
    (SOFTMAX, (np.array(["a"]),), {}, "E673: Softmax: 'X' has elements of type <U1"),
])
def test_calls_that_no_instance_fits(text: str, args: tuple[Any, ...], named: dict[str, Any], message: str, operators: dict[str, Any], tool: Any) -> None:
    tool("gcc")
    with pytest.raises(CatenError, match=message):
        operators[text](*args, **named)


def signature(text: str, *instances: str) -> list[str]:
    options = Options(runtime="gcc", instances=tuple([read_instance(i) for i in instances]))
    programs = loading.load_programs(SpecText("t.toml", text), options)
    for p in programs:
        driver.advance(p, "loop", options)
    return [f"{p.name}: {' '.join([str(b.type) + str(len(b.shape)) for b in p.all(type(next(iter(p.buffers.values()))))])}" for p in programs]


def test_instances_by_name() -> None:
    assert signature(ADD) == ["Add: f321 f321 f321"]
    assert signature(ADD, "X=float64[M,N] B=float64[N]") == ["Add: f642 f641 f642"]
    assert signature(SUM, "X=int64[A,B,C] axis=[0,2]; keepdims=true") == ["Sum: i643 i643"]
    assert signature(SUM, "X=int64[A,B,C] axis=0") == ["Sum: i643 i642"]
    assert signature(ADD, "X=float32[M] B=float32[M]", "X=float16[8,1] B=float16[1,8]") == ["Add_f32_1d: f321 f321 f321", "Add_f16_2d: f162 f162 f162"]
    assert signature(SOFTMAX, "axis=0", "axis=-1") == ["Softmax_axis_0: f321 f321", "Softmax_axis_m1: f321 f321"]


@pytest.mark.parametrize(("instance", "message"), [
    ("Z=float32[N]", "there is no tensor 'Z'"), ("X=flot[N]", "'flot' is no element type"), ("X=float32[N", "no value of an attribute"), ("axs=1", "there is no attribute 'axs'"),
    ("X=float32[M,N] Y=float32[N,M]", "cannot be broadcast"), ("axis=q", "no value of an attribute"),
])
def test_instances_that_are_refused(instance: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        signature(SOFTMAX, instance)


@pytest.mark.parametrize(("text", "message"), [
    (spec("A", "X{T}[~ N ~]", "Y{T}[N]", "Y = X"), "E111: '~' is there twice"), (spec("A", "X{T}[M N]<1 ~ 0>", "Y{T}[N]", "Y = X"), "E111: '~' in an order"),
    (spec("A", "X{T}[N]", "Y{T}[N]", "Y = X", "n = 1"), "E121: the attribute 'n' has the name of the tensor or size 'N'"),
    (spec("A", "X{T}[~]", "Y{T}[~]", "Y = X", "axis"), "E121: an attribute has a name and a default"), (spec("A", "X{T}[~]", "Y{T}[~]", "Y = X", "a = 1; a = 2"), "E121.*twice"),
    (spec("A", "X{T}[N]", "Y{T}[...]", "(dotimes (i N) (setf (aref Y i) 1))", "", "lisp"), "E2"),
    (spec("A", "X{T}[~]", "Y{T}[...]", "Y = X"), "E229: 0 values are returned for 1 output"), (spec("A", "X{flub}[N]", "Y{float}[N]", "Y = X"), "E105"),
])
def test_specs_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        signature(text)


def test_an_instance_of_a_spec_that_has_one() -> None:
    with pytest.raises(CatenError, match=r"E675: .*no attribute: there is nothing to choose"):
        signature(spec("A", "X{float}[N]", "Y{float}[N]", "Y = X * 2"), "X=float32[N]")


def test_the_command_line(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tool("gcc")
    monkeypatch.chdir(tmp_path)
    Path("softmax.toml").write_text(SOFTMAX)
    assert guarded(["softmax.toml", "--runtime", "gcc", "--instance", "X=float64[M,N] axis=0"]) == 0
    x = array(3, 4, dtype=np.float64)
    np.testing.assert_allclose(caten.load("softmax.so")(x), softmax(x, 0))
    both = ["softmax.toml", "--runtime", "gcc", "--instance", "X=float64[M,N]", "--instance", "X=float32[N]", "-o", "both.so"]
    assert guarded(both) == 0
    library = caten.load("both.so")
    np.testing.assert_allclose(library.Softmax_f64_2d(x), softmax(x))
    assert "ct_softmax_f32_1d(" in Path("both.h").read_text()
    assert [op["op"] for op in json.loads(Path("both.json").read_text())["ops"]] == ["Softmax_f64_2d", "Softmax_f32_1d"]
    capsys.readouterr()
    assert guarded(["softmax.toml", "--runtime", "gcc", "--instance", "Q=float32[N]"]) != 0
    assert "there is no tensor 'Q'" in capsys.readouterr().err
