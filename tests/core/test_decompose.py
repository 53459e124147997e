"""Every operator by its rule against its exact meaning: integers and bits equal, functions within the bound of the table."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from caten.core.dtypes import DTYPES
from caten.core.expr import Bitcast, Cast, Const, Expr, Op, Var
from caten.core.scalars import OPERATORS
from caten.core.text import read
from caten.loop.statements import Aref, Setf
from caten.mathematics import evaluate
from caten.mathematics.decompose import NEVER, decompose, definition
from caten.mathematics.float64_functions import FUNCTIONS

PRINCIPAL = frozenset(fn for fn, row in OPERATORS.items() if row.principal)
DERIVED = [fn for fn in OPERATORS if fn not in PRINCIPAL and fn not in NEVER]
X, Y = Var("x", "f32"), Var("y", "f32")


def compute(expr: Expr, env: dict[str, Any]) -> Any:
    """An expression on arrays, shared parts once."""
    memo: dict[Expr, Any] = {}

    def go(e: Expr) -> Any:
        if e not in memo:
            match e:
                case Const(value, dtype): memo[e] = evaluate.numpy_type(dtype)(value)
                case Var(name): memo[e] = env[name]
                case Op(fn, args): memo[e] = evaluate.function(fn, args[-1].dtype)(*[go(a) for a in args])
                case Cast(target, arg): memo[e] = evaluate.cast(go(arg), arg.dtype, target)
                case Bitcast(target, arg): memo[e] = evaluate.bitcast(go(arg), target)
        return memo[e]
    with np.errstate(all="ignore"):
        return go(expr)


def decomposed(fn: str, operands: tuple[str, ...], native: frozenset[str] = frozenset()) -> Expr:
    expr = decompose(Op(fn, tuple(Var(n, t) for n, t in zip("xyz", operands, strict=False))), native)
    left = {n.fn for n in expr.unique() if isinstance(n, Op)} - PRINCIPAL - native - set(NEVER)
    assert not left
    return expr                 # type: ignore[no-any-return]


def points(dtype: str) -> Any:
    """All exponents in strides, the interval around 0 densely, edges."""
    like, bits = evaluate.numpy_type(dtype), evaluate.numpy_type({"f32": "u32", "f64": "u64"}[dtype])
    width = DTYPES[dtype].bits
    strided = np.linspace(0, (1 << width) - 1, 3001).astype(np.float64)
    patterns = np.array([min(int(v), (1 << width) - 1) for v in strided], bits).view(like)
    dense = np.concatenate([np.linspace(-4, 4, 2003), np.linspace(-30, 30, 801), np.linspace(-800, 800, 401)]).astype(like)
    edges = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan]
    tiny = np.finfo(like)
    return np.concatenate([patterns, dense, np.array([*edges, tiny.tiny, tiny.smallest_subnormal, -tiny.smallest_subnormal, tiny.max, tiny.eps], like)])


def steps(got: Any, expected: Any) -> Any:
    """How many numbers apart; 0 for two NaN, for 0 and -0."""
    bits = evaluate.numpy_type("i32" if got.dtype == np.float32 else "i64")

    def order(v: Any) -> Any:
        i = v.view(bits).astype(np.int64)
        return np.where(i < 0, np.iinfo(bits).min - i, i)
    a, b = order(got), order(expected)
    far = np.abs(a.astype(np.float64) - b.astype(np.float64))
    apart = np.where(far < 2.0**60, np.abs(a - b), far)
    return np.where(np.isnan(got) & np.isnan(expected), 0, np.where(np.isnan(got) != np.isnan(expected), np.inf, apart))


def allowed(fn: str, dtype: str) -> float:
    """Steps: the bound, and half of one for the reference's own rounding; in float64 twice the bound and one more."""
    ulp = OPERATORS[fn].ulp
    return 0 if ulp == 0 else math.floor(ulp + 0.5) if dtype == "f32" else 2 * ulp + 1


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fn", [f for f in DERIVED if OPERATORS[f].arity == 1 and OPERATORS[f].accepts("float")])
def test_functions_of_one_float(fn: str, dtype: str) -> None:
    x = points(dtype)
    if fn == "lgamma" and dtype == "f64":
        x = x[~(x < 0)]                                            # near its zeros below 0 the reflection formula cancels
    got, expected = compute(decomposed(fn, (dtype,)), {"x": x}), evaluate.apply(fn, (x,), dtype)
    assert got.dtype == expected.dtype
    if expected.dtype == np.bool_:
        assert np.array_equal(got, expected)
        return
    apart = steps(got, expected)
    bound = allowed(fn, dtype)
    if fn in ("cos", "tan") and dtype == "f64":
        apart = apart[np.abs(x) < 2.0**999]                        # beyond, cos is absolute
    worst = int(np.argmax(apart))
    assert apart[worst] <= bound, f"{fn} of {x[worst]!r}: {got[worst]!r}, not {expected[worst]!r}: {apart[worst]} steps"


def pairs(dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    like = evaluate.numpy_type(dtype)
    edges = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, math.inf, -math.inf, math.nan, 1e-40, 1e30, -1e30, 7.0], like)
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    x = np.concatenate([a, (rng.standard_normal(1500) * 10).astype(like), np.exp(rng.uniform(-60, 60, 1500)).astype(like)])
    y = np.concatenate([b, (rng.standard_normal(1500) * 5).astype(like), rng.uniform(-1.5, 1.5, 1500).astype(like)])
    return x, y


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fn", [f for f in DERIVED if OPERATORS[f].arity >= 2 and OPERATORS[f].accepts("float")])
def test_functions_of_several_floats(fn: str, dtype: str) -> None:
    x, y = pairs(dtype)
    args = (x, y, np.roll(y, 1))[:OPERATORS[fn].arity]
    got = compute(decomposed(fn, (dtype,) * len(args)), dict(zip("xyz", args, strict=False)))
    expected = evaluate.apply(fn, args, dtype)
    apart = np.asarray(got != expected, float) if expected.dtype == np.bool_ else steps(got, expected)
    worst = int(np.argmax(apart))
    assert apart[worst] <= allowed(fn, dtype), f"{fn} of {[a[worst] for a in args]}: {got[worst]!r}, not {expected[worst]!r}: {apart[worst]} steps"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_without_a_native_one_is_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(9)
    like = evaluate.numpy_type(dtype)
    x, y = (rng.standard_normal(600).astype(like) for _ in range(2))
    z = (-(x * y) * (1 + rng.integers(-2, 3, 600) * np.finfo(like).eps)).astype(like)
    z[::3] = rng.standard_normal(200)
    expr = decomposed("fma", (dtype,) * 3)
    assert not any(isinstance(n, Op) and n.fn == "fma" for n in expr.unique())
    assert np.array_equal(compute(expr, {"x": x, "y": y, "z": z}), evaluate.apply("fma", (x, y, z), dtype))
    edges = np.array([0.0, math.inf, math.nan, 1e-30, 3e38], like)
    got, expected = compute(expr, {"x": edges, "y": edges, "z": edges}), evaluate.apply("fma", (edges, edges, edges), dtype)
    assert np.array_equal(got, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i64", "u64", "bool"])
def test_integers_and_bools_are_exact(dtype: str) -> None:
    d = DTYPES[dtype]
    span = range(d.least, d.greatest + 1) if d.bits == 8 else [d.least, d.least + 1, d.greatest, d.greatest - 1, 0, 1, 2, 3, 7, 63, 64, 1 << 40]
    x, y = (v.ravel() for v in np.meshgrid(*[np.array(list(span), d.numpy)] * 2))
    tested = 0
    for fn in [*DERIVED, "fma"]:
        if OPERATORS[fn].takes_type(d.name):
            args = (x, y, np.roll(y, 3))[:OPERATORS[fn].arity]
            expr = decomposed(fn, (dtype,) * len(args))
            got = np.broadcast_to(compute(expr, dict(zip("xyz", args, strict=False))), x.shape)
            assert np.array_equal(got, evaluate.apply(fn, args, dtype)), fn
            tested += 1
    assert tested >= (5 if dtype == "bool" else 14)


def test_complex_numbers() -> None:
    z = np.array([3 - 4j, 0, complex(math.nan, 1), complex(1, math.inf)], np.complex64)
    for fn in ("abs", "neg", "isnan", "isinf"):
        got = compute(decomposed(fn, ("c64",)), {"x": z})
        assert np.array_equal(got, evaluate.apply(fn, (z,), "c64"), equal_nan=fn != "isnan"), fn
    assert np.array_equal(compute(decomposed("ne", ("c64", "c64")), {"x": z, "y": z}), z != z)


def test_what_is_native_stays() -> None:
    expr = Op("tanh", (X,))
    assert decompose(expr, frozenset({"tanh"})) is expr
    assert any(isinstance(n, Op) and n.fn == "expm1" for n in decomposed("tanh", ("f32",), frozenset({"expm1"})).unique())


def test_statements_and_tuples_are_decomposed_inside() -> None:
    stmt, = read("(setf (aref C i) (relu x))")
    stmt = Setf(Aref("C", (Var("i", "i64"),), "f32"), Op("relu", (X,)))
    assert decompose((stmt,), frozenset()) == (stmt.replace(value=Op("max", (X, Const(0.0, "f32")))),)


@pytest.mark.parametrize("fn", ["gt", "le", "ne", "relu", "clip"])
def test_simple_rules_read_as_their_equation(fn: str) -> None:
    shown = {"gt": "(< y x)", "le": "(or (< x y) (= x y))", "ne": "(xor (= x y) true)", "relu": "(max x 0.0)", "clip": "(min (max x y) z)"}
    assert repr(decompose(Op(fn, (X, Y, Var("z", "f32"))[:OPERATORS[fn].arity]), frozenset())) == shown[fn]


@pytest.mark.parametrize("fn", sorted(FUNCTIONS))
def test_a_definition_names_what_is_used_twice(fn: str) -> None:
    body = definition(fn, "f64", frozenset())
    assert body is not None
    env: dict[str, Any] = {"x": np.array([0.3, 2.5, 0.9]), "y": np.array([1.5, -2.0, 3.0])}
    expected = compute(Op(fn, body.params), env)
    uses: dict[Expr, int] = {}
    for expr in [*[e for _, e in body.lets], body.result]:
        for node in expr.walk():
            for child in node.children:
                uses[child] = uses.get(child, 0) + 1           # type: ignore[index]   # expressions hold expressions
    assert all(n == 1 or isinstance(e, (Const, Var)) for e, n in uses.items())
    for var, value in body.lets:
        env[var.name] = compute(value, env)
    assert np.allclose(compute(body.result, env), expected, rtol=1e-14, equal_nan=True)


def test_a_principal_operator_has_no_definition() -> None:
    assert definition("add", "f32", frozenset()) is None
    assert definition("real", "c64", frozenset()) is None
