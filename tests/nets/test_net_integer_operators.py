"""Every operator on every integer type and on bool has one meaning: the table in core.integer_arithmetic. Folding, the interpreter's scalars, numpy,
the formulas over sizes, the generated Python text and compiled C agree with its texts, at all pairs of edge values."""
from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from guarded_calls import call_all
from test_net_operators import Row, every_third, job_of, library, rows, specials

from caten.core import integer_arithmetic
from caten.core.dtypes import DTYPES, is_packed
from caten.core.expr import Const, Op, Var
from caten.core.scalars import OPERATORS
from caten.core.size_formula import ALLOWED, evaluate
from caten.mathematics import evaluate as numpy_functions
from caten.semantics.closures import SCALAR

TYPES = tuple(d for d, row in DTYPES.items() if row.kind in ("int", "uint", "bool") and not is_packed(d))
TABLE = [r for r in rows() if r.fn in OPERATORS and r.operands[-1] in TYPES]


def edges(dtype: str) -> list[int]:
    """The special values, the counts of shifts next to the width, and, of 8 bits, some more."""
    d = DTYPES[dtype]
    if d.kind == "bool":
        return [False, True]
    values = {int(v) for v in specials(dtype)} | {d.bits - 1, d.bits, d.bits + 1, 5, 10, 100, d.least // 2, d.greatest // 2}
    return sorted(v for v in values if d.least <= v <= d.greatest)


def operands(row: Row) -> list[np.ndarray]:
    """Every combination; of three operands every pair with a few third ones."""
    values = [edges(t) for t in row.operands]
    if len(values) == 3:
        values = [values[0], values[1], values[2][::3]]
    grids = np.meshgrid(*[np.array(v, DTYPES[t].numpy) for v, t in zip(values, row.operands, strict=True)], indexing="ij")
    return [np.ascontiguousarray(g.ravel()) for g in grids]


def meant(row: Row, args: list[np.ndarray]) -> np.ndarray:
    """What the text of the table gives, computed here from unbounded integers and reduced modulo 2^bits."""
    dtype = row.operands[-1]
    table = integer_arithmetic.BOOLS if dtype == "bool" else integer_arithmetic.INTEGERS
    code, d, out = compile(table[row.fn], row.fn, "eval"), DTYPES[dtype], []
    for each in zip(*[a.tolist() for a in args], strict=True):
        value = int(eval(code, {"bits": d.bits}, dict(zip("xyz", each, strict=False))))
        out.append(value if d.kind == "bool" or row.result == "bool" else (value - d.least) % (1 << d.bits) + d.least)
    return np.array(out, DTYPES[row.result].numpy)


def differences(row: Row, args: list[np.ndarray], got: np.ndarray) -> Iterator[str]:
    wrong = np.flatnonzero(got != meant(row, args))
    for k in wrong[:1]:
        yield f"{row.name}: ({row.fn} {' '.join(str(a[k]) for a in args)}) gives {got[k]}, not {meant(row, args)[k]}"


def test_the_table_has_every_operator() -> None:
    assert {(r.fn, r.operands[-1]) for r in TABLE} == {(fn, d) for fn, row in OPERATORS.items() for d in TYPES if row.defined_on(d)}
    assert {r.fn for r in TABLE if r.operands[-1] != "bool"} == set(integer_arithmetic.INTEGERS)
    assert {r.fn for r in TABLE if r.operands[-1] == "bool"} == set(integer_arithmetic.BOOLS)


@pytest.mark.parametrize("row", TABLE, ids=lambda r: r.name)
def test_folding_and_numpy_agree_with_the_table(row: Row) -> None:
    args, dtype = operands(row), row.operands[-1]
    compute = integer_arithmetic.function(row.fn, dtype)
    assert compute is not None
    each = list(zip(*[a.tolist() for a in args], strict=True))
    want = meant(row, args)
    assert not list(differences(row, args, np.array([compute(*v) for v in each], want.dtype)))
    assert not list(differences(row, args, numpy_functions.apply(row.fn, args, dtype)))
    scalars = np.array([numpy_functions.apply(row.fn, [a[k] for a in args], dtype) for k in range(0, len(each), 7)], want.dtype)
    assert (scalars == want[::7]).all()
    folded = [integer_arithmetic.fold(row.fn, tuple([Const(v, t) for v, t in zip(each[k], row.operands, strict=True)])) for k in range(0, len(each), 7)]
    assert [(c.value, c.dtype) for c in folded] == [(v, row.result) for v in want[::7].tolist()]


@pytest.mark.parametrize("fn", ALLOWED)
def test_formulas_over_sizes_agree_with_the_table(fn: str) -> None:
    row = next(r for r in TABLE if r.fn == fn and r.operands[-1] == ("bool" if fn in ("and", "or", "not") else "i64"))
    names = ["x", "y", "z"][:OPERATORS[fn].arity]
    args = [a[abs(a.astype(float)) < 1 << 60] if a.dtype != bool and len(names) == 1 else a for a in operands(row)]
    keep = np.logical_and.reduce([abs(a.astype(float)) < 1 << 30 for a in args])          # formulas are exact: nothing wraps
    args = [a[keep] for a in args]
    expr = Op(fn, tuple([Var(n, t) for n, t in zip(names, row.operands, strict=True)]))
    values = [dict(zip(names, v, strict=True)) for v in zip(*[a.tolist() for a in args], strict=True)]
    assert not list(differences(row, args, np.array([evaluate(expr, v) for v in values])))


@pytest.mark.slice(2)
@pytest.mark.parametrize(("runtime", "opt"), [("clang", 2), ("gcc", 0)])
def test_compiled_c_agrees_with_the_table(runtime: str, opt: int, tmp_path: Path, nightly: bool) -> None:
    """By day every third type of each operator."""
    table = TABLE if nightly else every_third(TABLE)
    built = library(table, runtime, opt, tmp_path, "0")
    given = [operands(r) for r in table]
    wrong = []
    jobs = [job_of(r, args) for r, args in zip(table, given, strict=True)]
    for row, args, called in zip(table, given, call_all(built.artifact, built.manifest, jobs), strict=True):
        assert called.status == 0, (row.name, called)
        wrong += differences(row, args, called.results["R"])
    assert not wrong, "\n".join(wrong)


def test_the_quick_choices_of_the_interpreter_are_those_of_numpy() -> None:
    edge = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    for dtype in (np.float32, np.float64):
        for x in map(dtype, edge):
            for y in map(dtype, edge):
                for fn, choose in SCALAR.items():
                    assert np.array_equal(choose(x, y), numpy_functions.apply(fn, (x, y), "f32" if dtype is np.float32 else "f64"), equal_nan=True)


def test_a_wrong_text_in_the_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(r for r in TABLE if r.name == "mod_i32_")
    args = operands(row)
    assert not list(differences(row, args, numpy_functions.apply("mod", args, "i32")))
    monkeypatch.setitem(integer_arithmetic.INTEGERS, "mod", "abs(x) % abs(y) if y else 0")
    assert list(differences(row, args, numpy_functions.apply("mod", args, "i32")))


def test_floats_compare_as_pythons_operators_do() -> None:
    for fn, plain in (("lt", operator.lt), ("le", operator.le), ("eq", operator.eq), ("ne", operator.ne)):
        for x in (0.0, -1.5, float("nan")):
            assert integer_arithmetic.exact(fn)(x, 0.0) is plain(x, 0.0)
