"""A long scan in blocks: where it is one, and that it computes the same numbers."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from caten import driver
from caten.core.dtypes import DTYPES
from caten.frontend.spec_files import SpecText
from caten.loading import load_programs
from caten.loop.statements import For, LoopProgram
from caten.options import Options
from caten.semantics.interpret import run
from caten.tensor import long_scans
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.lower import lower
from caten.tensor.values import TensorProgram

SPEC = """[composite]
name = "T"
inputs = {inputs}
outputs = {outputs}
[implementation]
lang = "{lang}"
code = '''
{code}
'''
"""
IN, OUT = '["X{int}[N]", "W{int}[N]"]', '["Y{int}[N]"]'
SIZES = (0, 1, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 101)


def spec(code: str, lang: str = "lisp", inputs: str = IN, outputs: str = OUT) -> str:
    return SPEC.format(inputs=inputs, outputs=outputs, lang=lang, code=code)


SCANS = {
    "of an array": spec("return np.cumsum(X)", "python"),
    "a maximum, from the end": spec("return np.maximum.accumulate(X[::-1])[::-1]", "python"),
    "exclusive": spec("(set s 0) (dotimes (i N) (let ((x (aref X i))) (setf (aref Y i) s) (incf s x)))"),
    "of a formula, with a map behind it": spec("return 2 * np.cumsum(X * X - W) + W", "python"),
    "of some elements": spec("(set s 0) (dotimes (i N) (when (> (aref W i) 0) (incf s (aref X i))) (setf (aref Y i) s))"),
    "in place": spec("(set s 0) (dotimes (i N) (incf s (aref Y i)) (setf (aref Y i) s))", inputs=OUT, outputs='["Y"]'),
    "two in a loop": spec("(set s 0) (set t 1) (dotimes (i N) (incf s (aref X i)) (set t (min t (aref W i))) (setf (aref Y i) (+ s t)))"),
    "a scan of a scan": spec("(set s 0) (set t 0) (dotimes (i N) (incf s (aref X i)) (incf t s) (setf (aref Y i) t))"),
    "a product of 8 bits": spec("(set s (cast uint8 1)) (dotimes (i N) (set s (* s (aref X i))) (setf (aref Y i) s))", inputs='["X{uint8}[N]"]',
                                outputs='["Y{uint8}[N]"]'),
}
WHOLE = {
    "columns": spec("return np.cumsum(X, axis=0)", "python", '["X{int}[N 3]"]', '["Y{int}[N 3]"]'),
    "a known size below the limit": spec("return np.cumsum(X)", "python", '["X{int}[20]"]', '["Y{int}[20]"]'),
}


def values(text: str, **options: object) -> TensorProgram:
    (loaded,) = load_programs(SpecText("scan.toml", text), Options(**{"config": (("OMP", "1"),)} | options))       # type: ignore[arg-type]
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return made


def in_blocks(program: LoopProgram) -> bool:
    return any("_block" in n.name for k in program.kernels for n in k.walk() if isinstance(n, For))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of four blocks of 8 elements, from 32 elements on."""
    for name, value in (("BLOCK", 8), ("CHUNK", 32), ("LONG", 32)):
        monkeypatch.setattr(long_scans, name, value)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", SCANS)
def test_numbers(name: str) -> None:
    program = values(SCANS[name])
    plain, made = lower(program), lower(program, BLOCKS)
    assert in_blocks(made)
    assert not in_blocks(plain)
    rng = np.random.default_rng(0)
    for n in SIZES:
        given = {b.name: rng.integers(0, 9, n).astype(DTYPES[b.type].numpy) for b in program.buffers.values()} | {"N": n}
        results = []
        for loops in (plain, made):
            own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
            assert run(loops, own) == 0
            results.append(own["Y"])
        np.testing.assert_array_equal(*results, err_msg=str(n))
        assert n < 2 or not np.array_equal(results[0], given["Y"])


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", WHOLE)
def test_what_stays_whole(name: str) -> None:
    assert not in_blocks(lower(values(WHOLE[name]), BLOCKS))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("line", "dtype", "expected"), [("np.cumsum(X)", "float", False), ("np.cumsum(X)", "int", True), ("np.maximum.accumulate(X)", "float", True)])
def test_sums_of_floats_stay_in_order_if_that_is_asked(line: str, dtype: str, expected: bool) -> None:
    text = spec(f"return {line}", "python", f'["X{{{dtype}}}[N]"]', f'["Y{{{dtype}}}[N]"]')
    assert in_blocks(lower(values(text), BLOCKS))
    assert in_blocks(lower(values(text, in_order=True), BLOCKS)) == expected


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("options", [{"config": (("OMP", "0"),)}, {"opt": 1}])
def test_without_threads_a_scan_is_one_loop(options: dict[str, object]) -> None:
    assert not in_blocks(lower(values(SCANS["of an array"], **options), BLOCKS))


def test_threads_share_both_loops_over_blocks() -> None:
    """The step that carries the totals from block to block is serial."""
    (loaded,) = load_programs(SpecText("scan.toml", SCANS["of an array"]), Options(config=(("OMP", "1"),)))
    made = driver.advance(loaded, "loop", Options())
    assert isinstance(made, LoopProgram)
    assert [n.name for k in made.kernels for n in k.walk() if isinstance(n, For) and n.mark == "parallel"] == ["i_block", "i_block_3"]


CALL = """import sys, numpy, caten
rng = numpy.random.default_rng(0)
made = caten.compile(sys.argv[1], config={"OMP": 1})
for n in (0, 1, 262143, 262144, 1048576 + 16384 + 5):
    x = rng.standard_normal(n).astype("float32")
    y = made(x)
    exact = numpy.cumsum(x, dtype="float64")
    assert numpy.abs(y - exact).max(initial=0) < 1e-2, n
    print(y.tobytes().hex()[-64:], numpy.bitwise_xor.reduce(y.view("uint32")))
"""


@pytest.mark.slow
def test_the_number_of_threads_does_not_change_the_result() -> None:
    text = spec("return np.cumsum(X)", "python", '["X{float}[N]"]', '["Y{float}[N]"]')
    found = [subprocess.run([sys.executable, "-c", CALL, text], capture_output=True, text=True, check=True,
                            env={**os.environ, "OMP_NUM_THREADS": n, "OMP_WAIT_POLICY": "passive"}).stdout for n in ("1", "2")]
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 5
