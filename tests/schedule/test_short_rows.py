"""Rows of a few elements or vectors: several are worked on together, or they are the lanes."""
from __future__ import annotations

import numpy as np
import pytest
from schedule_nets import program

import caten
from caten import driver, loading
from caten.core.expr import Op
from caten.core.program import Schedule
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram, Vref
from caten.options import Options
from caten.schedule import autoscheduler

BODY = '''
[composite]
name = "Rows"
inputs = ["X{%s}[M N]", "s{%s}[M]", "b{%s}[N]"]
outputs = ["%s"]
[implementation]
lang = "python"
code = """
%s
"""
'''
SOFTMAX = "E = np.exp(X - np.max(X, axis=1, keepdims=True))\nreturn E / np.sum(E, axis=1, keepdims=True)"
LAYERNORM = "D = X - np.mean(X, axis=1, keepdims=True)\nreturn D / np.sqrt(np.mean(D * D, axis=1, keepdims=True) + 1e-5) * b"
VARIANCE = "D = X - np.mean(X, axis=1, keepdims=True)\nreturn np.mean(D * D, axis=1)"
TANH = "X[:] = np.tanh(X * s[:, None] + b)\nreturn X"
SCALED = "X[:] = X * s[:, None] + b\nreturn X"
COLUMNS = "E = np.exp(X - np.max(X, axis=0))\nreturn E / np.sum(E, axis=0)"
COPIED = "return np.tanh(X * s[:, None] + b)"
ROWS, LENGTHS = (1, 3, 4, 5, 37), (1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 48, 63, 100, 127, 128, 131)
TOLERANCE = {"float": 2e-5, "double": 1e-12}


def spec(body: str, dtype: str = "float", length: str = "N") -> str:
    out = "X" if "X[:]" in body else f"Y{{{dtype}}}[M]" if body is VARIANCE else f"Y{{{dtype}}}[M N]"
    text = BODY % (dtype, dtype, dtype, out, body)
    return text.replace("[M N]", f"[M {length}]").replace("[N]", f"[{length}]")


def steps(text: str, march: str = "x86_64_v4") -> list[tuple[str, ...]]:
    return [tuple(map(str, step)) for step in scheduled(text, march).all(Schedule)[0].steps]


def scheduled(text: str, march: str = "x86_64_v4") -> LoopProgram:
    options = Options(config=(("MARCH", march),))
    (program,) = loading.load_programs(SpecText("f.toml", text, "toml"), options)
    made = driver.advance(program, "loop", options)
    assert isinstance(made, LoopProgram)
    return made


def functions_of_scalars(made: LoopProgram, fn: str) -> int:
    return sum(isinstance(n, Op) and n.fn == fn and not any(isinstance(m, Vref) for m in n.walk()) for n in made.unique())


@pytest.mark.slice(2)
@pytest.mark.parametrize("length", ["16", "20", "100"])
@pytest.mark.parametrize(("body", "fn"), [(SOFTMAX, "exp"), (LAYERNORM, ""), (VARIANCE, "")], ids=["softmax", "layernorm", "variance"])
def test_rows_of_known_length_are_worked_on_together(body: str, fn: str, length: str) -> None:
    """As those of any length are, in the same vectors, without functions of scalars."""
    text = spec(body, length=length)
    assert any(step[0] == "jam" for step in steps(text))
    assert sum(step[0] == "jam" for step in steps(text)) == sum(step[0] == "jam" for step in steps(spec(body)))
    assert not fn or functions_of_scalars(scheduled(text), fn) == 0


@pytest.mark.parametrize(("dtype", "are_lanes"), [("complex64", True), ("complex128", False)])
def test_short_rows_of_complex_numbers(dtype: str, are_lanes: bool) -> None:
    """A complex number of two float64 fills a register of its own: the sums of such rows are left to C compilers."""
    made = steps(spec("return np.sum(X, axis=1)", dtype).replace(f"Y{{{dtype}}}[M N]", f"Y{{{dtype}}}[M]"))
    assert any(step[0] == "specialize" and step[-1] == "w" for step in made)
    assert (("vectorize", "iwi") in made) == are_lanes


def test_each_row_is_read_again_by_itself_where_it_is_long() -> None:
    assert not any(step[0] == "jam" for step in steps(spec(LAYERNORM, length="128")))


@pytest.mark.parametrize("march", ["x86_64_v3", "x86_64_v4"])
def test_functions_of_short_rows_are_computed_in_vectors(march: str) -> None:
    """However few elements a row has; only the last rows, fewer than a vector, might be scalars, and are masked."""
    for length in ("2", "3", "5", "7", "12"):
        assert functions_of_scalars(scheduled(spec(COPIED, length=length), march), "tanh") == 0, length
    assert functions_of_scalars(scheduled(spec(COPIED), march), "tanh") == 0


def test_columns_that_fill_half_a_vector_are_one_under_a_mask() -> None:
    for length in ("9", "12", "15"):
        assert functions_of_scalars(scheduled(spec(COLUMNS, length=length)), "exp") == 0, length
    assert {n.count for n in scheduled(spec(COLUMNS, length="12")).walk() if isinstance(n, Vref)} == {16}


def test_functions_of_rows_in_place_are_computed_of_several_rows_at_once() -> None:
    """Where masks have registers of their own: a masked load would wait for the masked store of the row before."""
    assert any(step[0] == "stage" and "accumulate" in step for step in steps(spec(TANH)))
    assert not any(step[0] == "stage" for step in steps(spec(TANH), "x86_64_v3"))
    assert not any(step[0] == "stage" for step in steps(spec(COPIED)))


def test_rows_in_place_end_in_shorter_vectors() -> None:
    in_place, copied = (scheduled(spec(body)) for body in (SCALED, "return X * s[:, None] + b"))
    assert {n.count for n in in_place.walk() if isinstance(n, Vref) and n.buffer == "X"} == {16, 8, 4}
    assert not any(n.mask for n in in_place.walk() if isinstance(n, Vref))
    assert any(n.mask for n in copied.walk() if isinstance(n, Vref))


@pytest.mark.slow
@pytest.mark.scheduled
@pytest.mark.slice(6)
@pytest.mark.parametrize("config", [{}, {"OMP": "1"}, {"MARCH": "x86_64_v3"}], ids=["", "threads", "AVX2"])
@pytest.mark.parametrize("body", [SOFTMAX, LAYERNORM, VARIANCE, TANH, SCALED, COPIED, COLUMNS],
                         ids=["softmax", "layernorm", "variance", "tanh in place", "scaled in place", "tanh", "columns"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_rows_are_those_of_numpy(body: str, dtype: str, config: dict[str, str]) -> None:
    draw = np.random.default_rng(0)
    operator = caten.compile(spec(body, dtype), config=config)
    length_known = 12 if body is COLUMNS else 20
    known = caten.compile(spec(body, dtype, str(length_known)), config=config)
    for rows in ROWS:
        for length in LENGTHS:
            X, s, b = (draw.standard_normal(shape).astype(operator_type(dtype)) for shape in ((rows, length), rows, length))
            expected = of_numpy(body, X, s, b)
            np.testing.assert_allclose(operator(X.copy(), s, b), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=f"{rows} x {length}")
        X, s, b = (draw.standard_normal(shape).astype(operator_type(dtype)) for shape in ((rows, length_known), rows, length_known))
        np.testing.assert_allclose(known(X.copy(), s, b), of_numpy(body, X, s, b), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def operator_type(dtype: str) -> type:
    return np.float32 if dtype == "float" else np.float64


def of_numpy(body: str, X: np.ndarray, s: np.ndarray, b: np.ndarray) -> np.ndarray:
    given = {"X": X.astype(np.float64), "s": s.astype(np.float64), "b": b.astype(np.float64), "np": np}
    exec("def f(X, s, b):\n" + "\n".join(f"    {line}" for line in body.splitlines()), given)
    return given["f"](given["X"], given["s"], given["b"])


@pytest.mark.parametrize("row", ["i", "ix"])
def test_rows_at_indices_of_their_own_are_worked_on_one_by_one(row: str) -> None:
    """An index for each row would be an array, of whose elements nothing is known."""
    before = program(f"""(for i 0 M 1 serial (let ix i64 (max 0 (min 19 (cast i64 (aref k i))))) (local s f32 () register) (setf (aref s) 0.0)
                         (for j 0 N 1 serial (incf (aref s) (aref W {row} j))) (for j_2 0 N 1 serial (setf (aref A i j_2) (- (aref W {row} j_2) (aref s)))))""",
                     f"(size M) (size N) (buffer k i32 (M) (0) in) (buffer W f32 ({'M' if row == 'i' else '20'} N) (0 1) in) (buffer A f32 (M N) (0 1) out)",
                     '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))')
    made = autoscheduler.drafted(before).program
    assert any(step[0] == "jam" for step in made.all(Schedule)[0].steps) == (row == "i")
