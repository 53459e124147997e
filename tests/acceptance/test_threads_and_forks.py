"""The threads of a parallel loop share its work and compute the same; kernels are called from many threads and after forks."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ENVIRONMENT, ROOT, caten

import caten as library

SPECS = ("sin", "softmax", "gemv")
COMPILERS = ("gcc", "zig")

CALLS = """import hashlib, json, os, pathlib, sys
import numpy as np
import caten
def spent():
    return {t: int(pathlib.Path(f"/proc/self/task/{t}/schedstat").read_text().split()[0]) for t in os.listdir("/proc/self/task")}
random = np.random.default_rng(7)
x, v = (random.random(s, np.float32) - np.float32(0.5) for s in ((900, 1100), 1100))
before = spent()
library = caten.load("libops.so")
bits = {}
for name, op in library.items():
    given = []
    for a in op.manifest["arguments"]:
        if a["kind"] == "tensor" and a["direction"] != "out":
            shape = {"M": 900, "N": 1100, "K": 1100}
            given.append((random.random([shape.get(n, 1100) for n in a["shape"]], np.float32) - np.float32(0.5)))
        elif a["kind"] == "scalar":
            given.append(0.5)
    results = op(*given)
    for _ in range(200 if name == "Sin" else 0):
        op(*given)
    bits[name] = hashlib.sha256(b"".join(r.tobytes() for r in (results if isinstance(results, tuple) else (results,)))).hexdigest()
worked = [t for t, ticks in spent().items() if ticks > before.get(t, 0) + 5_000_000]       # nanoseconds
print(json.dumps({"bits": bits, "threads": len(worked)}))
"""


@pytest.fixture(params=COMPILERS)
def parallel(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with libops.so, compiled with OMP=1 by one of the compilers."""
    if request.param == "gcc" and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    monkeypatch.setenv("CC", request.param if request.param == "gcc" else f"{sys.executable} -m ziglang cc")
    made = caten(*[str(ROOT / "samples" / f"{n}.toml") for n in SPECS], "-o", "libops.so", "--config", "OMP=1")
    if made.code == 3:
        pytest.skip(f"needs OpenMP for {request.param}")
    assert (made.code, made.err) == (0, "")
    return folder


def test_several_threads_work_and_the_bits_are_the_same(parallel: Path, nightly: bool) -> None:
    said, counts = {}, (1, 2, 4) if nightly else (1, 4)
    for threads in counts:
        settings = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}    # who waits uses no time
        done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, env=os.environ | ENVIRONMENT | settings)
        assert done.returncode == 0, done.stderr
        said[threads] = json.loads(done.stdout)
    assert [said[n]["threads"] for n in counts] == [*counts]
    assert all(said[n]["bits"] == said[1]["bits"] for n in counts)
    assert len(said[1]["bits"]) == len(SPECS)


LONG_SUM = """[composite]
name = "Total"
inputs = ["X{float}[N]<0>()", "Y{float}[]<>()"]
outputs = ["Y"]
[implementation]
code = "(dotimes (i N) (incf (aref Y) (aref X i)))"
[schedule]
code = '''(schedule (split i 65536 cut ib ii) (stage ib Y partial scratch ib) (parallel ib) (split ii 64) (split iii 8)
  (stage iio Y_part tree register iiio iiii) (vectorize iiii) (vectorize iiii_z) (vectorize iiii_h) (vectorize iiii_h_2) (vectorize iiii_h_3)
  (vectorize iiii_w) (unroll iiio full) (unroll iiio_z full) (unroll iiio_h full) (unroll iiio_h_2 full) (unroll iiio_h_3 full))'''
"""
SUM = """import os, pathlib
import numpy as np
import caten
def spent():
    return {t: int(pathlib.Path(f"/proc/self/task/{t}/schedstat").read_text().split()[0]) for t in os.listdir("/proc/self/task")}
total, x, before = caten.load("total.so"), np.random.default_rng(5).random(5_000_011, np.float32), spent()
for _ in range(20):
    y = np.zeros((), np.float32)
    total(x, y)
worked = [t for t, ticks in spent().items() if ticks > before.get(t, 0) + 1_000_000]       # nanoseconds
print(y.tobytes().hex(), abs(float(y) / x.sum(dtype=np.float64) - 1) < 1e-5, len(worked))
"""


@pytest.mark.parametrize("cc", COMPILERS)
def test_one_long_sum_in_blocks_of_fixed_length(cc: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tool: Any, nightly: bool) -> None:
    if cc == "gcc":
        tool("gcc")
    monkeypatch.setenv("CC", cc if cc == "gcc" else f"{sys.executable} -m ziglang cc")
    Path("total.toml").write_text(LONG_SUM)
    made = caten("total.toml", "-o", "total.so", "--config", "OMP=1")
    if made.code == 3:
        pytest.skip(f"needs OpenMP for {cc}")
    assert (made.code, made.err) == (0, "")
    said, counts = [], (1, 2, 4) if nightly else (1, 4)
    for threads in counts:
        settings = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
        done = subprocess.run([sys.executable, "-c", SUM], capture_output=True, text=True, env=os.environ | ENVIRONMENT | settings)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert [words[2] for words in said] == [str(n) for n in counts]
    assert {words[0] for words in said} == {said[0][0]}
    assert [words[1] for words in said] == ["True"] * len(counts)


CHAIN = """[composite]
name = "Chain"
inputs = ["A{float}[N]", "Y{float}[N]"]
outputs = ["Y"]

[implementation]
code = "(dotimes (i (- N 1)) (setf (aref Y (+ i 1)) (+ (* 0.5 (aref Y i)) (aref A i))))"
"""


def test_the_header_tells_about_threads(parallel: Path) -> None:
    header = (parallel / "libops.h").read_text()
    assert "OMP_NUM_THREADS" in header
    assert "any number of threads may call" in header
    assert "on the calling thread alone" not in header
    assert "omp parallel for" in caten("render", str(ROOT / "samples/sin.toml"), "--config", "OMP=1").out
    Path("chain.toml").write_text(CHAIN)
    for spec, *words in ([ROOT / "samples" / "sin.toml"], ["chain.toml", "--config", "OMP=1"]):         # without OpenMP, and with nothing to run in parallel
        alone = caten(str(spec), *words, "-o", "alone.h")
        assert alone.code == 0
        assert "on the calling thread alone" in Path("alone.h").read_text()


@pytest.mark.parametrize(("omp", "cc"), [(0, "gcc"), (1, "gcc"), (1, "zig")])
def test_a_kernel_in_a_forked_child(omp: int, cc: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tool: Any) -> None:
    """After the parent used it, and so has waiting threads; in the child of a child too, by multiprocessing, and in the parent afterwards."""
    if cc == "gcc":
        tool("gcc")
    monkeypatch.setenv("CC", cc if cc == "gcc" else f"{sys.executable} -m ziglang cc")
    made = caten(str(ROOT / "samples" / "sin.toml"), "--config", f"OMP={omp}")
    if made.code == 3:
        pytest.skip(f"needs OpenMP for {cc}")
    assert made.code == 0, made.err
    code = """import multiprocessing, os, signal, sys
import numpy as np
import caten
sin = caten.load("sin.so")
x = np.random.default_rng(1).random((500, 700), np.float32)
right = sin(x, np.zeros_like(x)).copy()
threads = len(os.listdir("/proc/self/task"))
def child(depth):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        good = (sin(x, np.zeros_like(x)) == right).all() and (depth == 0 or child(depth - 1) == 0)
        os._exit(0 if good else 9)
    return os.waitpid(pid, 0)[1]
assert child(1) == 0
def is_right(_):
    return bool((sin(x, np.zeros_like(x)) == right).all())
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map_async(is_right, range(3)).get(30) == [True] * 3
assert (sin(x, np.zeros_like(x)) == right).all()
fresh = caten.compile(sys.argv[1], config={"OMP": int(sys.argv[2])})
assert child(0) == 0
print(threads)
"""
    done = subprocess.run([sys.executable, "-c", code, str(ROOT / "samples" / "sin.toml"), str(omp)], capture_output=True, text=True, timeout=60,
                          env=os.environ | ENVIRONMENT | {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == (3 if omp else 1)


@pytest.mark.parametrize("omp", [0, 1])
def test_many_threads_call_one_kernel(omp: int, folder: Path, tool: Any) -> None:
    tool("gcc")
    softmax = library.compile(ROOT / "samples" / "softmax.toml", config={"OMP": omp})
    random, wrong, begin = np.random.default_rng(3), [], threading.Barrier(8)
    inputs = [random.random((60 + n, 500), np.float32) for n in range(8)]
    expected = [softmax(x) for x in inputs]

    def call(n: int) -> None:
        begin.wait()
        wrong.extend([n for _ in range(30) if not (softmax(inputs[n]) == expected[n]).all()])
    threads = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert wrong == []
