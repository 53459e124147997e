"""What checks find of all elements of an index array: accesses at these need no nearest index, and no vector of 64 bits."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.loop.context import Context
from caten.loop.statements import Assume, LoopProgram, statements_in
from caten.options import Options
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.element_ranges import element_ranges
from caten.tensor.values import TensorProgram

SPEC = '[composite]\nname = "Take"\ninputs = [{inputs}]\noutputs = ["y{{float}}[{shape}]"]\n[implementation]\n{lang}code = """\n{code}\n"""\n'
GATHER = "(dotimes (i T) (setf (aref y i) (aref X (aref k i))))"


def spec(code: str, inputs: str = "X{float}[M] k{int32}[T]", shape: str = "T") -> str:
    quoted = ", ".join([f'"{each}"' for each in inputs.replace("] ", "]|").split("|")])
    return SPEC.format(inputs=quoted, shape=shape, code=code, lang="" if code.startswith("(") else 'lang = "python"\n')


def values(text: str) -> TensorProgram:
    (op,) = loading.load_programs(SpecText("take.toml", text), Options())
    made = driver.advance(op, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return ready_for_fusion(made)


def found(text: str) -> list[str]:
    program = values(text)
    return [f"{r.array} {show(r.least)} {show(r.end)}" for r in element_ranges(program, Context.of(program))]


def lowered(text: str, opt: int = 2) -> LoopProgram:
    (op,) = loading.load_programs(SpecText("take.toml", text), Options(opt=opt))
    made = driver.advance(op, "loop", Options(opt=opt))
    assert isinstance(made, LoopProgram)
    return made


def assumed(program: LoopProgram) -> list[str]:
    return [show(s) for kernel in program.kernels for s in statements_in(kernel.body) if isinstance(s, Assume)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
@pytest.mark.parametrize(("code", "least"), [("return X[k]", "(* -1 M)"), (GATHER, "0")])
def test_a_check_of_all_elements_gives_their_range(code: str, least: str, dtype: str) -> None:
    text = spec(code, f"X{{float}}[M] k{{{dtype}}}[T]")
    assert found(text) == [f"k {least} M"]
    program = lowered(text)
    assert assumed(program) == [f"(assume (address k read) {least} M)"]
    assert "(aref X (min" not in " ".join(show(program).split())


@pytest.mark.parametrize(("code", "inputs"), [
    ("return np.where(k >= 3, X[k], 0)", "X{float}[M] k{int32}[T]"),                               # all below 3 may be outside
    ("return X[k]", "X{float}[M] k{uint64}[T]"),                                                   # half of them are negative as indices
    ("return X[k[0]] + V", "X{float}[M] k{int32}[T] V{float}[T]"),                                 # the first one
    ("return X[k + 1]", "X{float}[M] k{int32}[T]")])                                              # another number
def test_nothing_is_known_of_elements_that_no_check_looks_at(code: str, inputs: str) -> None:
    text = spec(code, inputs)
    assert [each for each in found(text) if each.endswith(" M")] == []
    program = lowered(text)
    assert not [each for each in assumed(program) if each.endswith(" M)")]


def test_a_check_of_those_that_are_not_negative_bounds_all() -> None:
    text = spec("return np.where(k >= 0, X[k], 0)", "X{float}[M] k{int32}[T]")
    assert found(text) == [f"k {-(1 << 31)} M"]
    assert "(aref X (cast i64 (aref k " in " ".join(show(lowered(text)).split())


def test_what_is_computed_and_checked_has_a_range() -> None:
    text = spec("(dotimes (i T) (setf (aref y i) (aref X (aref k (aref k i)))))", "X{float}[M] k{int32}[T]")
    assert found(text) == ["k 0 T", "v0 0 M"]


def test_checks_in_one_loop_give_a_range_each() -> None:
    text = spec("return X[k] * Z[j]", "X{float}[M] Z{float}[L] k{int32}[T] j{int32}[T]")
    assert sorted(found(text)) == ["j (* -1 L) L", "k (* -1 M) M"]
    assert sorted(assumed(lowered(text))) == ["(assume (address j read) (* -1 L) L)", "(assume (address k read) (* -1 M) M)"]


@pytest.mark.slow
def test_an_array_that_is_written_in_place_keeps_nothing() -> None:
    """Between the check and the access an element may have been written by the loop itself."""
    text = ('[composite]\nname = "Renamed"\ninputs = ["X{int32}[M]", "k{int32}[T]"]\noutputs = ["k"]\n[implementation]\n'
            'code = "(dotimes (i T) (setf (aref k i) (aref X (aref k i))))"\n')
    operator = caten.compile(text, runtime="clang")
    x, k = np.arange(100, 110, dtype=np.int32), np.array([9, 0, 3, 3], np.int32)
    np.testing.assert_array_equal(operator(x, k.copy()), x[k])


CASES = [("return X[k] * 2", "X{float}[M] k{int32}[T]", "T", lambda X, k: X[k] * 2),
         ("return X[k, None] + X[k]", "X{float}[M] k{int32}[T]", "T T", lambda X, k: X[k, None] + X[k]),
         ("return np.exp(X[k])", "X{float}[M] k{int64}[T]", "T", lambda X, k: np.exp(X[k])),
         ("return np.tanh(X[k])", "X{float}[M] k{int8}[T]", "T", lambda X, k: np.tanh(X[k])),
         ("return (np.exp(X[k]) * V).sum(axis=1)", "X{float}[M] k{int32}[T K] V{float}[T K]", "T", lambda X, k, V: (np.exp(X[k]) * V).sum(1)),
         ("return (X[k] * V).sum(axis=1)", "X{float}[M] k{int64}[T K] V{float}[T K]", "T", lambda X, k, V: (X[k] * V).sum(1)),
         ("return np.where(V > 0.5, np.exp(X[k]), 0).sum(axis=1)", "X{float}[M] k{int32}[T K] V{float}[T K]", "T",
          lambda X, k, V: np.where(V > 0.5, np.exp(X[k]), 0).sum(1)),
         ("return np.where(k >= 0, X[k] * V, 0).sum(axis=1)", "X{float}[M] k{int16}[T K] V{float}[T K]", "T",
          lambda X, k, V: np.where(k >= 0, X[k] * V, 0).sum(1)),
         ("return np.exp(X[k]).max(axis=1)", "X{float}[M] k{uint8}[T 3]", "T", lambda X, k: np.exp(X[k]).max(1))]


@pytest.mark.slow
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][7:])
def test_it_gathers_or_fails_as_numpy_does(case: tuple[str, str, str, Any], opt: int) -> None:
    code, inputs, shape, reference = case
    operator = caten.compile(spec(code, inputs, shape), runtime="clang", opt=opt)
    rng = np.random.default_rng(5)
    names = [each.split("{")[0] for each in inputs.replace("] ", "]|").split("|")]
    for m, rows, columns in ((1, 1, 1), (7, 5, 3), (50, 17, 8), (100, 40, 33), (3, 0, 4)):
        kind = inputs.split("k{")[1].split("}")[0]
        index = rng.integers(0 if kind == "uint8" else -m, m, (rows, 3) if "T 3" in inputs else (rows, columns) if "T K" in inputs else rows)
        k = index.astype({"int32": "i4", "int64": "i8", "int16": "i2", "int8": "i1", "uint8": "u1"}[kind])
        given = {"X": rng.random(m, np.float32), "k": k, "V": rng.random((rows, columns), np.float32)}
        given["V"].flat[-1:] = 1.0
        own = {name: given[name] for name in names}
        np.testing.assert_allclose(operator(**own), reference(**own), rtol=1e-5, atol=1e-6)
        for wrong in (m, -m - 1) if k.size else ():
            if np.iinfo(k.dtype).min <= wrong and not (wrong < 0 and "k >= 0" in code):
                own["k"] = k.copy()
                own["k"].flat[-1] = wrong
                with pytest.raises(CatenError, match="index 1"):
                    operator(**own)


@pytest.mark.slow
def test_masked_lanes_read_no_index_behind_the_array() -> None:
    """The elements after a row are no indices: those of lanes behind its end are not read."""
    operator = caten.compile(spec("return np.exp(X[k]).sum(axis=1)", "X{float}[M] k{int32}[T K]"), runtime="clang")
    x = np.linspace(0, 1, 5, dtype=np.float32)
    for columns in range(1, 40):
        space = np.full(3 * columns + 64, 1 << 30, np.int32)
        k = space[:3 * columns].reshape(3, columns)
        k[:] = np.arange(3 * columns).reshape(3, columns) % 5
        np.testing.assert_allclose(operator(x, k), np.exp(x[k]).sum(1), rtol=1e-5)
