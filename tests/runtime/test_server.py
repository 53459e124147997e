"""Kernels in a process of their own: what goes over, what comes back, and what becomes of a process that crashes, hangs or is forgotten."""
from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.errors import CatenError, OutOfMemory
from caten.runtime import kernel_server
from caten.runtime import manifest as m
from caten.runtime.call import callables

KERNEL = """(loop Kernel (size N) (scalar a f32) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out)
  (check 1 "N is small") (kernel Kernel (for i 0 N 1 serial (setf (aref Y i) (* a (aref X i))))))"""
COLUMNS = """(loop Columns (size M) (size N) (scalar xs i64) (buffer X f32 (M N) (0 1) inout xs 1)
  (kernel Columns (for i 0 M 1 serial (setf (aref X i 0) 7))))"""
SCALARS = """(loop Scalars (scalar z c128) (scalar b bool) (scalar i i8) (scalar u u64) (buffer Y f64 (4) (0) out)
  (kernel Scalars (setf (aref Y 0) 0)))"""
SIGNATURE = "int32_t ct_kernel(float a, const float *X, float *Y, int64_t N)"
SCALE = SIGNATURE + " { if (N > 100) return 1; for (int64_t i = 0; i < N; i++) Y[i] = a * X[i]; return 0; }"

Serve = Callable[..., Any]


@pytest.fixture
def serve(tool: Callable[[str], str], tmp_path: Path, describe: Callable[..., dict[str, Any]]) -> Serve:
    """`serve(C text, (loop …) text…)`: what calls these functions in a process of their own."""
    def make(c: str, *texts: str) -> Any:
        described = describe(*texts)
        source = tmp_path / "kernel.c"
        source.write_text("#include <stdint.h>\n#include <stdlib.h>\n" + c + m.manifest_c(described) + kernel_server.program(described))
        subprocess.run([tool("gcc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", *kernel_server.FLAGS, str(source), "-o", str(tmp_path / "kernel")],
                       check=True)
        return callables(kernel_server.serve([str(tmp_path / "kernel")], tmp_path / "kernel", described))
    return make


def test_many_calls_go_to_one_process(serve: Serve) -> None:
    pid = "\n#include <unistd.h>\n"
    scale = serve(pid + SIGNATURE + " { (void)a; (void)X; for (int64_t i = 0; i < N; i++) Y[i] = (float)(getpid() % 65536); return 0; }", KERNEL)
    x = np.zeros(3, np.float32)
    assert scale(2, x)[0] == scale(2, x)[2]


def test_arrays_go_over_and_outputs_come_back(serve: Serve) -> None:
    scale = serve(SCALE, KERNEL)
    assert scale(2.5, np.float32([1, 2, 4])).tolist() == [2.5, 5, 10]
    assert scale(2.5, np.zeros(0, np.float32)).shape == (0,)


def test_what_lies_between_the_elements_of_an_output_stays(serve: Serve) -> None:
    columns = serve("int32_t ct_columns(float *X, int64_t M, int64_t N, int64_t xs)"
                    " { for (int64_t i = 0; i < M * xs; i++) X[i - i % xs + i % xs % N] = 7; return 0; }", COLUMNS)
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    columns(whole[:, :2])
    assert whole.tolist() == [[7, 7, 2, 3], [7, 7, 6, 7], [7, 7, 10, 11]]


def test_scalars_of_every_kind(serve: Serve) -> None:
    scalars = serve("typedef struct { double re, im; } ct_c128; int32_t ct_scalars(ct_c128 z, uint8_t b, int8_t i, uint64_t u, double *Y)"
                    " { Y[0] = z.im; Y[1] = b; Y[2] = i; Y[3] = (double)u; return 0; }", SCALARS).__call__
    assert scalars(1 - 2j, True, -3, 1 << 63).tolist() == [-2, 1, -3, 2.0**63]


def test_a_result_is_the_error_that_it_is_everywhere(serve: Serve) -> None:
    with pytest.raises(CatenError, match="E711: Kernel: N is small"):
        serve(SCALE, KERNEL)(1, np.zeros(101, np.float32))
    with pytest.raises(OutOfMemory):
        serve(SIGNATURE + " { (void)a; (void)X; (void)Y; (void)N; return -1; }", KERNEL)(1, np.zeros(3, np.float32))


def test_a_crash_is_an_error_and_the_next_call_starts_anew(serve: Serve) -> None:
    scale = serve(SIGNATURE + " { if (N == 13) abort(); for (int64_t i = 0; i < N; i++) Y[i] = a * X[i]; return 0; }", KERNEL)
    with pytest.raises(CatenError, match=r"E715: Kernel: the kernel crashed \(SIGABRT\)"):
        scale(1, np.zeros(13, np.float32))
    assert scale(2, np.float32([3])).tolist() == [6]


def test_an_array_that_does_not_fit_is_named(serve: Serve) -> None:
    scale = serve("#include <sys/resource.h>\n__attribute__((constructor)) static void small(void)"
                  " { struct rlimit r = {1 << 27, 1 << 27}; setrlimit(RLIMIT_AS, &r); }\n" + SCALE, KERNEL)
    with pytest.raises(OutOfMemory, match="E712: Kernel: X does not fit"):
        scale(1, np.zeros(1 << 26, np.float32))


def test_threads_wait_for_each_other(serve: Serve) -> None:
    scale = serve(SCALE, KERNEL)
    found: list[float] = []
    threads = [threading.Thread(target=lambda n=n: found.append(float(scale(n, np.ones(9, np.float32)).sum()))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [9 * n for n in range(8)]


def test_a_forked_process_has_its_own(serve: Serve) -> None:
    scale = serve(SCALE, KERNEL)
    assert scale(1, np.float32([1])).tolist() == [1]
    child = os.fork()
    if child == 0:
        os._exit(0 if scale(3, np.float32([1])).tolist() == [3] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert scale(2, np.float32([1])).tolist() == [2]


def test_a_kernel_that_hangs_ends_soon_after_its_caller(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    scale = serve('\n#include <stdio.h>\n#include <unistd.h>\n' + SIGNATURE + f' {{ FILE *f = fopen("{file}", "w"); (void)a; (void)X; (void)Y; (void)N;'
                  ' fprintf(f, "%d", (int)getpid()); fclose(f); for (;;) {} }', KERNEL)
    caller = os.fork()
    if caller == 0:
        scale(1, np.float32([1]))
    try:
        while not (file.exists() and file.read_text()):
            time.sleep(0.01)
    finally:
        os.kill(caller, 9)
        os.waitpid(caller, 0)
    end = time.monotonic() + 10
    while Path(f"/proc/{file.read_text()}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{file.read_text()}").exists()
