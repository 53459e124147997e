"""Calls that do nothing: they are known by their sizes, ask for no scratch memory, and run no loops around nothing."""
from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import compiler, driver, loading
from caten.core.program import Program, Require
from caten.core.size_formula import evaluate, formula
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec import read_file
from caten.frontend.spec_files import SpecText
from caten.loop.empty_calls import idle_sizes
from caten.options import Options
from caten.render import entry_points
from caten.runtime.library import open_library
from caten.semantics import interpret
from caten.testing import data

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
GEMM = """(composite Gemm ((A{float}[M K], B{float}[K N], C{float}[M N]) -> (C))
  (dotimes (i M) (dotimes (j N) (dotimes (p K) (incf (aref C i j) (* (aref A i p) (aref B p j)))))))"""
COPY = "(composite Copy ((A{float}[M N]) -> (B{float}[M N])) (dotimes (i M) (dotimes (j N) (setf (aref B i j) (aref A i j)))))"
RAISED = COPY.replace("Copy", "Raised").replace("(aref A i j)", "(+ (aref A i j) i)")      # rows that do not become one
SUM = "(composite Sum ((A{float}[M N]) -> (B{float}[M])) (dotimes (i M) (setf (aref B i) 0) (dotimes (j N) (incf (aref B i) (aref A i j)))))"
THIRD = "(composite Third ((A{float}[M N K]) -> (B{float}[M N K])) (dotimes (i M) (dotimes (j N) (dotimes (k K) (when (< 0 (aref A i j k)) (setf (aref B i j k) 1))))))"
SCRATCH = """(composite Turned ((A{float}[M K]) -> (B{float}[M K])) (array t float (K)) (dotimes (i M)
  (dotimes (j K) (setf (aref t j) (aref A i j))) (dotimes (j K) (setf (aref B i j) (aref t (- (- K 1) j))))))"""

TWICE = "(composite Twice ((A{float}[N], C{float}[M]) -> (B{float}[N]) where N = 2 * M) (dotimes (i N) (setf (aref B i) (aref A i))))"


def loops(spec: str, opt: int) -> Program:
    options = Options(runtime="clang", opt=opt)
    return driver.advance(loading.load_programs(SpecText("t", spec, "lisp"), options)[0], "loop", options)


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(("spec", "sizes"), [(GEMM, {"M", "N"}), (COPY, {"M", "N"}), (SUM, {"M"}), (THIRD, {"M", "N", "K"}), (SCRATCH, {"M", "K"}), (TWICE, {"M", "N"}), (TWICE.replace("= 2 * M", "<= M"), {"M", "N"})])
def test_sizes_that_leave_nothing_to_do(spec: str, sizes: set[str], opt: int) -> None:
    program = loops(spec, opt)
    assert {*idle_sizes(program, interpret.statements(program))} - {"K" if spec == GEMM else ""} == sizes


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("spec", "sizes"), [(RAISED, {"M", "N"}), (THIRD, {"M", "N", "K"}), (SCRATCH, {"M", "K"})])
def test_rows_of_vectors_leave_nothing_to_do(spec: str, sizes: set[str], march: str) -> None:
    """Of the branches for rows that fill a vector and for others, an empty row takes one, which does nothing."""
    options = Options(runtime="clang", config=(("MARCH", march),))
    program = driver.advance(loading.load_programs(SpecText("t", spec, "lisp"), options)[0], "loop", options)
    assert {*idle_sizes(program, interpret.statements(program))} == sizes


@pytest.mark.slice(8)
@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem, marks=[pytest.mark.nightly] if p.stem == "mlp" else []) for p in SAMPLES])
@pytest.mark.slow
def test_what_is_said_to_do_nothing_does_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpret, "idle_sizes", lambda program, stmts: ())
    options = Options(runtime="clang", config=(("MARCH", "x86-64-v3"),))
    for op in loading.load_programs(read_file(path), options):
        assert isinstance(op, OpProgram)
        program = driver.advance(op, "loop", options)
        for size in idle_sizes(program, interpret.statements(program)):
            sizes = {n: 0 if n == size else 7 for n in op.sizes}
            try:
                arguments = data.arguments(op, sizes, 1)
            except ValueError:                             # an extent would be negative
                continue
            before = {n: v.copy() for n, v in arguments.items() if isinstance(v, np.ndarray)}
            try:
                code = interpret.run(program, arguments)
            except CatenError:
                assert program.all(Require)
                continue
            for n, old in before.items():
                assert old.tobytes() == arguments[n].tobytes(), (size, n, code)


@pytest.mark.slice(4)
@pytest.mark.parametrize("runtime", ["clang", "gcc", "numpy"])
@pytest.mark.parametrize("opt", [2, 0])
@pytest.mark.slow
def test_empty_arrays_of_many_rows_take_no_time(runtime: str, opt: int) -> None:
    ops = caten.compile([GEMM, COPY, THIRD, SCRATCH], runtime=runtime, opt=opt)
    many = 2**40
    start = time.monotonic()
    nothing = np.empty((many, 0), np.float32)
    assert ops.Copy(nothing).shape == (many, 0)
    assert ops.Turned(nothing).shape == (many, 0)
    assert ops.Third(np.empty((many, 5, 0), np.float32)).shape == (many, 5, 0)
    assert ops.Third(np.empty((many, 0, 5), np.float32)).shape == (many, 0, 5)
    for m, n in ((0, 0), (0, many), (many, 0)):
        k = 0 if m or n else many
        c = np.empty((m, n), np.float32)
        assert ops.Gemm(np.empty((m, k), np.float32), np.empty((k, n), np.float32), c) is c
    assert ops.Turned(np.empty((0, many), np.float32)).shape == (0, many)
    assert time.monotonic() - start < 20


def library(tmp_path: Path, spec: str, **options: Any) -> ctypes.CDLL:
    result = compiler.build([SpecText("t", spec, "lisp")], Options(runtime="clang", use_cache=False, **options))
    (tmp_path / "kernel.so").write_bytes(Path(result.artifact).read_bytes())
    open_library(tmp_path / "kernel.so")                     # which finds the OpenMP library
    return ctypes.CDLL(str(tmp_path / "kernel.so"))


def call(function: Any, *sizes: int, pointers: int) -> int:
    function.restype = ctypes.c_int32
    return int(function(*[ctypes.c_void_p(None)] * pointers, *map(ctypes.c_int64, sizes)))


@pytest.mark.slice(2)
@pytest.mark.parametrize("config", [(), (("OMP", "1"),)])
@pytest.mark.slow
def test_from_c_an_idle_call_asks_for_no_memory(tmp_path: Path, config: Any) -> None:
    gemm = library(tmp_path, GEMM, config=config)
    for m, k, n in ((0, 5, 2**40), (0, 2**40, 1), (0, 2**40, 3), (5, 0, 2**40), (2**40, 0, 3), (2**40, 0, 1), (0, 2**20, 2**40), (0, 0, 2**40), (0, 2**40, 0)):
        assert call(gemm.ct_gemm, m, k, n, pointers=3) == 0, (m, k, n)


@pytest.mark.slow
def test_without_the_question_every_row_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(folder: Path) -> float:
        folder.mkdir()
        copy = library(folder, RAISED).ct_raised
        start = time.process_time()
        assert call(copy, 2**29, 0, pointers=2) == 0
        return time.process_time() - start
    asked = seconds(tmp_path / "asked")
    monkeypatch.setattr(entry_points, "idle_sizes_of_kernels", lambda program: ())
    assert asked < 0.05 < seconds(tmp_path / "unasked")


@pytest.mark.slow
def test_the_manifest_says_that_idle_calls_need_no_scratch() -> None:
    for spec in (GEMM, SCRATCH):
        needs = formula(caten.compile(spec, opt=2).manifest["scratch_bytes"])
        sizes = {"M": 3, "N": 3, "K": 2**40}
        assert evaluate(needs, sizes) > 0
        assert evaluate(needs, sizes | {"M": 0}) == 0
