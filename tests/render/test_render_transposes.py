"""Blocks that are transposed in registers: compiled, against numpy; every element that is not the block's stays."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_render_run import COMPILERS, build, program

from caten.core.dtypes import DTYPES
from caten.render.cstyle import CStyle
from caten.render.vector_transposes import powers
from caten.render.work_estimate import work
from caten.schedule.analysis.loop_queries import loops_in

BLOCKS = [("f32", 12, 16), ("f32", 16, 16), ("f32", 6, 8), ("f32", 2, 64), ("f32", 64, 2), ("f64", 8, 8), ("f64", 6, 4), ("i16", 8, 22), ("u8", 16, 32), ("i8", 6, 10),
          ("bool", 4, 4), ("u64", 2, 2), ("i64", 12, 14)]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_blocks_of_every_size_of_element(compiler: str, tmp_path: Path) -> None:
    for dtype, rows, columns in BLOCKS:
        text = f"""(loop Op (buffer X {dtype} (M N) (0 1) in) (buffer Y {dtype} (N M) (0 1) inout) (size M) (size N)
          (kernel main (transpose (vref Y {rows} (2 1)) 0 (vref X {columns} (1 2)) 0)))"""
        folder = tmp_path / f"{dtype}_{rows}_{columns}"
        folder.mkdir()
        run = build(text, folder, compiler, CStyle())
        x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 120, (rows + 2, columns + 3)).astype(DTYPES[dtype].numpy)
        y = np.ones((columns + 3, rows + 2), x.dtype)
        expected = y.copy()
        expected[2:2 + columns, 1:1 + rows] = x[1:1 + rows, 2:2 + columns].T
        assert run(x, y, rows + 2, columns + 3) == 0
        assert np.array_equal(y, expected), (dtype, rows, columns)


def test_a_block_of_a_local_array_keeps_it_in_memory(tmp_path: Path) -> None:
    text = """(loop Op (buffer X f32 (8 8) (0 1) in) (buffer Y f32 (8 8) (0 1) out) (kernel main (local t f32 (8 8) register)
      (transpose (vref t 8 (0 0)) 0 (vref X 8 (0 0)) 0) (for i 0 8 1 serial (for j 0 8 1 serial (setf (aref Y i j) (aref t i j))))))"""
    run = build(text, tmp_path, "zig", CStyle())
    x, y = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros((8, 8), np.float32)
    assert run(x, y) == 0
    assert np.array_equal(y, x.T)


def test_a_block_is_as_much_work_as_its_vectors() -> None:
    def amount(body: str) -> int:
        text = f"""(loop Op (buffer X f32 (64 64) (0 1) in) (buffer Y f32 (64 64) (0 1) out)
          (kernel main (for i 0 8 1 parallel {body})))"""
        (loop,) = loops_in(program(text))
        return int(repr(work(loop)))
    rows = "".join([f"(setf (vref Y 8 (i {8 * n})) (vref X 8 (i {8 * n})))" for n in range(8)])
    assert amount("(transpose (vref Y 8 (0 (* 8 i))) 0 (vref X 8 ((* 8 i) 0)) 0)") == amount(rows)


@pytest.mark.parametrize(("count", "most", "sizes"), [(12, 16, [8, 4]), (6, 16, [4, 2]), (44, 16, [16, 16, 8, 4]), (16, 16, [16]), (2, 64, [2])])
def test_tiles_are_powers_of_two(count: int, most: int, sizes: list[int]) -> None:
    parts = powers(count, most)
    assert [size for _, size in parts] == sizes
    assert [at for at, _ in parts] == [sum(sizes[:n]) for n in range(len(sizes))]
