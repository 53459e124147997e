"""What is asked of the caches: requests for lines ahead, and stores past them, in C that every host compiler takes."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from test_render_run import COMPILERS, build, program

from caten.render.cstyle import CStyle

COPY = """(loop C (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (size N)
  (kernel main (for i 0 (floordiv N 8) 1 MARK (setf (vref Y 8 ((* 8 i))) (vref X 8 ((* 8 i))) stream))
    (for j (* 8 (floordiv N 8)) N 1 serial (setf (aref Y j) (aref X j)))))"""
AHEAD = """(loop P (buffer X f32 (M N) (0 1) in) (buffer Y f32 (N) (0) inout) (size M) (size N)
  (kernel main (for i 0 M 1 serial (for j 0 N 1 serial
    (prefetch (aref X (+ i 1024) (- j 1024))) (prefetch (aref Y (+ (* j 1024) 7)) write) (incf (aref Y j) (aref X i j))))))"""


class Threads(CStyle):
    settings: ClassVar = {"OMP": True}


@pytest.mark.slice(2)
@pytest.mark.parametrize("compiler", list(COMPILERS))
@pytest.mark.parametrize(("lanes", "dtype"), [(8, "f32"), (2, "f32"), (4, "f64"), (16, "f32"), (16, "u8"), (4, "bool"), (4, "i64"), (2, "u8")])
def test_streamed_vectors_arrive_whatever_their_address(compiler: str, lanes: int, dtype: str, tmp_path: Path) -> None:
    text = COPY.replace("MARK", "serial").replace("8 ", f"{lanes} ").replace("N 8", f"N {lanes}").replace("f32", dtype)
    run = build(text, tmp_path, compiler, CStyle())
    kind = np.dtype({"f32": "f4", "f64": "f8", "i64": "i8"}.get(dtype, "u1"))
    x = (np.arange(100) % 2).astype(kind)
    room = np.zeros(200 * kind.itemsize, np.uint8)
    for start in range(0, 64 * kind.itemsize, kind.itemsize):
        y = room[start:start + 100 * kind.itemsize].view(kind)
        y[:] = 9
        assert run(x, y, 100) == 0
        assert (y == x).all()


def test_threads_store_past_the_caches(tmp_path: Path) -> None:
    run = build(COPY.replace("MARK", "parallel"), tmp_path, "gcc", Threads(), "-fopenmp", "-Wl,-z,nodelete")        # its threads wait in it
    x = np.random.default_rng(0).random(1_000_003, np.float32)
    y = np.zeros_like(x)
    assert run(x, y, x.size) == 0
    assert (y == x).all()


def test_stores_past_the_caches_are_asked_for_and_followed_by_a_fence() -> None:
    text = CStyle().render(program(COPY.replace("MARK", "serial")))
    assert "ct_stream_f32x8(Y + 8 * i, ct_load_f32x8(X + 8 * i));" in text
    assert re.search(r"Y\[j\] = X\[j\];\n    CT_STREAMED;\n}", text)
    assert "CT_STREAM" not in CStyle().render(program(COPY.replace("MARK", "serial").replace(" stream)", ")")))


def test_each_thread_has_a_fence_behind_its_share() -> None:
    text = Threads().render(program(COPY.replace("MARK", "parallel")))
    assert re.search(r"#pragma omp parallel firstprivate\(.*\)\n        {\n            #pragma omp for schedule\(static\) nowait\n            for ", text)
    assert re.search(r"\n            CT_STREAMED;\n        }\n    } else {", text)
    assert text.count("CT_STREAMED;") == 2                    # the other one is of the nest for one thread
    assert text.index("CT_STREAMED;\n}") > text.index("for (int64_t j")
    assert "#pragma omp parallel for" in Threads().render(program(COPY.replace("MARK", "parallel").replace(" stream)", ")")))


def test_threads_start_behind_the_fence_of_what_was_stored_before() -> None:
    """Of both nests, each written for several threads and again for one."""
    nest = "(for NAME 0 (floordiv N 8) 1 parallel (setf (vref Y 8 ((* 8 NAME))) (vref X 8 ((* 8 NAME))) stream))"
    text = Threads().render(program(COPY[:COPY.index("(for ")] + nest.replace("NAME", "i") + nest.replace("NAME", "k") + "))"))
    _, second = [at.start() for at in re.finditer("#pragma omp parallel", text)]
    assert text.count("} else {") == 2
    assert "CT_STREAMED;" in text[text.index("if (", text.index("} else {")):second]


def test_vectors_that_are_not_neighbours_are_stored_as_ever() -> None:
    text = CStyle().render(program("(loop S (buffer Y f32 (8 N) (0 1) out) (size N) (kernel main (for i 0 N 1 serial (setf (vref Y 8 (0 i) 0) (splat 8 1.0) stream))))"))
    assert "ct_scatter_f32x8(" in text
    assert "CT_STREAMED" not in text


def test_clang_has_the_instructions(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    (tmp_path / "k.c").write_text(Threads().render(program(COPY.replace("MARK", "parallel"))))
    words = [sys.executable, "-m", "ziglang", "cc", "-march=x86_64_v3", "-fno-sanitize=undefined", "-fopenmp", "-O3", "-S", "k.c", "-o", "k.s"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    made = (tmp_path / "k.s").read_text()
    assert "movntps" in made
    assert "sfence" in made


@pytest.mark.parametrize(("compiler", "flags"), [("gcc", ["-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan"]), ("gcc", []), ("zig", [])])
def test_lines_far_outside_of_every_array_may_be_asked_for(compiler: str, flags: list[str], tmp_path: Path) -> None:
    run = build(AHEAD, tmp_path, compiler, CStyle(), *flags)
    assert "__builtin_prefetch(X + (i + 1024) * N + j - 1024);" in run.source
    assert "__builtin_prefetch(Y + j * 1024 + 7, 1);" in run.source
    x, y = np.ones((3, 5), np.float32), np.zeros(5, np.float32)
    assert run(x, y, 3, 5) == 0
    assert (y == 3).all()


@pytest.mark.parametrize(("place", "asked"), [("(vref Y 8 (j (* 8 i)))", "Y + j * N + 8 * i + 7"), ("(vref Z 8 ((* 8 i) j) 0)", "Z + j * M + 8 * i + 7"),
                                              ("(aref Y j i)", "Y + j * N + i")])
def test_of_a_vector_its_last_element_is_asked_for(place: str, asked: str) -> None:
    text = CStyle().render(program(f"""(loop S (buffer Y f32 (M N) (0 1) inout) (buffer Z f32 (M N) (1 0) inout) (size M) (size N)
      (kernel main (for j 0 M 1 serial (for i 0 (floordiv N 8) 1 serial (prefetch {place}) (setf (aref Y j i) 1.0)))))"""))
    assert f"__builtin_prefetch({asked});" in text
