"""The index of an extreme: narrow indices in short rows, and long rows in blocks; what is searched in blocks, and that the numbers stay."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver
from caten.core.dtypes import DTYPES
from caten.frontend.spec_files import SpecText
from caten.loading import load_programs
from caten.loop.statements import For, Local, LoopProgram
from caten.options import Options
from caten.semantics.interpret import run
from caten.tensor import extreme_search
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.lower import lower
from caten.tensor.values import TensorProgram

LOOPS = "(dotimes (i M) (set best {start}) (set at -5) (dotimes (j N) (let ((x {key})) (when {cond} (set best x) (set at j)))) (setf (aref y i) at) (setf (aref z i) best))"
ROWS = 6
SIZES = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40, 41, 63, 64, 65, 101)


def spec(code: str, dtype: str = "float", lang: str = "lisp", inputs: str = "X{%s}[M N]", outputs: str = '"y{int}[M]", "z{%s}[M]"') -> str:
    return (f'[composite]\nname = "T"\ninputs = ["{inputs}"]\noutputs = [{outputs}]\n[implementation]\nlang = "{lang}"\ncode = """{code}"""\n'.replace("%s", dtype))


def loops(cond: str, start: str = "(- inf)", key: str = "(aref X i j)", dtype: str = "float") -> str:
    return spec(LOOPS.format(start=start, key=key, cond=cond), dtype)


def arrays(line: str, dtype: str = "float", shape: str = "M N") -> str:
    return spec(line, dtype, "python", f"X{{%s}}[{shape}]", '"y{int}[M]"')


IN_BLOCKS = {
    "first of the greatest": loops("(> x best)"),
    "last of the greatest": loops("(>= x best)"),
    "first of the least": loops("(< x best)", "inf"),
    "last of the least": loops("(<= x best)", "inf"),
    "a NaN is the greatest": loops("(not (or (isnan best) (<= x best)))"),
    "the last NaN is the greatest": loops("(or (isnan x) (and (not (isnan best)) (>= x best)))"),
    "integers": loops("(> x best)", "-2147483648", dtype="int32"),
    "the last of integers": loops("(<= x best)", "2147483647", dtype="int32"),
    "of a formula": loops("(> x best)", key="(* 2.0 (abs (aref X i j)))"),
    "NumPy's": arrays("return X.argmax(axis=1)"),
    "NumPy's, of double": arrays("return np.abs(X).argmin(axis=-1)", "double"),
    "a known size above the limit": arrays("return X.argmax(axis=1)", shape="M 40"),
}
NARROW = {
    "columns": arrays("return X.argmax(axis=0)", shape="N M"),
    "every second element": arrays("return X[:, ::2].argmax(axis=1)"),
    "the extreme is found along with a sum": arrays("return np.where(X.sum(axis=1) > 0, X.argmax(axis=1), 0)"),
    "a known size below the limit": arrays("return X.argmax(axis=1)", shape="M 20"),
}
UNCHANGED = {
    "two searches in a loop": arrays("return np.where(X.sum(axis=1) > 0, X.argmax(axis=1), X.argmin(axis=1))"),
    "only the extreme": spec("(dotimes (i M) (set best (- inf)) (dotimes (j N) (set best (max best (aref X i j)))) (setf (aref z i) best))", outputs='"z{%s}[M]"'),
}


def values(text: str, **options: object) -> TensorProgram:
    (loaded,) = load_programs(SpecText("extreme.toml", text), Options(**options))       # type: ignore[arg-type]
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return made


def blocks_in(program: LoopProgram) -> int:
    return sum("_block" in n.name for k in program.kernels for n in k.walk() if isinstance(n, For))


def narrow_in(program: LoopProgram) -> int:
    """The number of local integers of 32 bits. X may be such an array, and then its extreme is one."""
    return sum(n.type == "i32" for k in program.kernels for n in k.walk() if isinstance(n, Local))


def rows(shape: tuple[int, ...], dtype: str, kind: int) -> np.ndarray:
    """Distinct elements; equal elements; with NaN; rows that are all the least, the greatest, NaN, NaN with the least before or behind."""
    rng = np.random.default_rng(kind)
    x = rng.integers(-3, 3, shape).astype(dtype) if kind % 2 else (rng.standard_normal(shape) * 1e6).astype(dtype)
    least, greatest = (np.iinfo(dtype).min, np.iinfo(dtype).max) if x.dtype.kind == "i" else (-np.inf, np.inf)
    if kind >= 2:
        x[:1], x[1:2] = least, greatest
        if x.dtype.kind == "f":
            x[4:][rng.random(x[4:].shape) < 0.1] = np.nan
            x[2:4] = np.nan
            x[2, :1] = x[3, 1:] = least
    return x


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 8 elements, from 33 elements on."""
    monkeypatch.setattr(extreme_search, "BLOCK", 8)
    monkeypatch.setattr(extreme_search, "SHORT", 32)


def results(program: LoopProgram, x: np.ndarray, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    own = {b.name: np.full(ROWS, 77, DTYPES[b.type].numpy) for b in program.buffers.values()} | {"X": x.copy()}
    run(program, own | sizes)
    return {name: own[name] for name in ("y", "z") if name in own}


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [*IN_BLOCKS, *NARROW])
def test_numbers(name: str) -> None:
    program = values((IN_BLOCKS | NARROW)[name])
    plain, made = lower(program), lower(program, BLOCKS)
    assert (blocks_in(made) > 0) == (name in IN_BLOCKS)
    assert narrow_in(made) > narrow_in(plain)
    assert not blocks_in(plain)
    of_x = program.buffers["X"]
    for n in SIZES if "known" not in name else (0,):
        sizes = {"M": ROWS, "N": n}
        for kind in range(4):
            x = rows((ROWS, sizes.get(repr(of_x.axes[-1]), 40 if "above" in name else 20)), DTYPES[of_x.type].numpy, kind)
            x = x if name != "columns" else rows((ROWS, n), DTYPES[of_x.type].numpy, kind).T
            found = [results(p, x, sizes) for p in (plain, made)]
            for key, numbers in found[0].items():
                np.testing.assert_array_equal(numbers, found[1][key], err_msg=f"{n}, {kind}")
            if "NumPy" in name and n:
                with np.errstate(all="ignore"):
                    np.testing.assert_array_equal(found[1]["y"], np.abs(x).argmin(axis=1) if "double" in name else x.argmax(axis=1))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", UNCHANGED)
def test_what_stays(name: str) -> None:
    program = values(UNCHANGED[name])
    assert repr(lower(program, BLOCKS).kernels) == repr(lower(program).kernels)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [{"opt": 1}, {"runtime": "cuda"}, {"schedule": "(schedule (parallel i))"}])
def test_other_machines_and_schedules_that_are_given(options: dict[str, object]) -> None:
    program = values(IN_BLOCKS["NumPy's"], **options)
    assert repr(lower(program, BLOCKS).kernels) == repr(lower(program).kernels)


def test_the_nearest_point_is_one_kernel() -> None:
    program = values(spec("return ((X[:, None] - C[None]) ** 2).sum(axis=2).argmin(axis=1)", "float", "python",
                          'X{%s}[M D]", "C{%s}[N D]', '"y{int}[M]"'))
    made = lower(program, BLOCKS)
    assert len(made.kernels) == 1
    assert narrow_in(made)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
@pytest.mark.parametrize("name", ["NumPy's", "NumPy's, of double"])
def test_compiled(name: str, runtime: str, tool: Any) -> None:
    """At the real sizes of blocks."""
    if runtime == "gcc":
        tool("gcc")
    made = caten.compile(IN_BLOCKS[name], runtime=runtime)
    for n in (1, 511, 4096, 4097, 4608, 9999):
        for kind in range(4):
            x = rows((ROWS, n), "float64" if "double" in name else "float32", kind)
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(made(x), np.abs(x).argmin(axis=1) if "double" in name else x.argmax(axis=1), err_msg=f"{n}, {kind}")
