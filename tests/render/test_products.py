"""Header, example and wrapper: compiled, run, and called wrongly."""
from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.bindings.c_example import as_reference, example
from caten.bindings.c_header import header
from caten.bindings.python_wrapper import wrapper
from caten.core.program import resolve
from caten.core.text import read
from caten.render.cstyle import CStyle
from caten.runtime import manifest as m
from caten.runtime import program_manifest as p

GEMM = """(loop Gemm (size M) (size K) (size N) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (1 0) in) (buffer C f32 (M N) (0 1) inout)
  (require (< M N)) (require (= 0 (mod M 2))) (check 1 "M */ is odd") (ensure 1 (= 0 (mod M 2))) (doc "C <- A @ B + C */ /* \\"quoted\\" \\\\") (source "gemm.toml")
  (kernel gemm (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))))"""
SCALE = """(loop class (size int) (scalar double f64) (scalar flag bool) (buffer X i32 ((* 2 int)) (0) in)
  (buffer Y f64 ((+ int 1) 2) (1 0) out) (buffer S i64 () () out)
  (kernel k (for i 0 (+ int 1) 1 serial (for j 0 2 1 serial (setf (aref Y i j) (where flag double (cast f64 j))))) (setf (aref S) 7)))"""
TURN = """(loop Turn (size N) (buffer Z c64 (N) (0) inout) (scalar w c64) (kernel k (for i 0 N 1 serial (setf (aref Z i) (* (aref Z i) w)))))"""
COPY = """(loop Copy (size M) (size N) (buffer A f32 (M N) (0 1) in A_stride0 1) (buffer B f32 (M N) (0 1) inout) (scalar A_stride0 i64)
  (kernel c (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref B i j) (aref A i j))))))"""
TAKE = """(loop Take (size N) (size M) (buffer X f32 (N) (0) in) (buffer I i64 (M) (0) in) (buffer Y f32 (M) (0) out)
  (kernel t (for i 0 M 1 serial (setf (aref Y i) (aref X (aref I i))))))"""
SHIFT = """(loop Shift (size N) (size M) (scalar by i64) (require (= M (- N by))) (buffer X f32 (N) (0) in) (buffer Y f32 (M) (0) out)
  (kernel s (for i 0 M 1 serial (setf (aref Y i) (aref X i)))))"""
OPS = {"shift": (SHIFT,), "gemm": (GEMM,), "class": (SCALE,), "turn": (TURN,), "copy": (COPY,), "take": (TAKE,), "several": (GEMM, SCALE, TURN)}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def programs_of(*texts: str) -> Any:
    return [resolve(read(t)[0]) for t in texts]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, dict[str, Any], Any]]:
    """`made("gemm")`: the folder with gemm.so and gemm.h, the manifest, the programs."""
    done: dict[str, tuple[Path, dict[str, Any], Any]] = {}

    def make(name: str) -> tuple[Path, dict[str, Any], Any]:
        if name not in done:
            folder, programs = tmp_path_factory.mktemp(name), programs_of(*OPS[name])
            found = p.library_manifest(programs, "gcc", p.Provenance(target="x86_64"))
            (folder / f"{name}.c").write_text(CStyle().render(*programs) + m.manifest_c(found))
            (folder / f"{name}.h").write_text(header(programs, found))
            flags = ["-std=c11", "-O1", "-fPIC", "-fwrapv", "-shared", "-fvisibility=hidden"]
            subprocess.run(["gcc", *flags, f"{name}.c", "-o", f"{name}.so", "-lm"], cwd=folder, check=True)
            done[name] = folder, found, programs
        return done[name]
    return make


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("compiler", [["gcc", "-std=c99"], ["g++", "-std=c++98", "-Wno-long-long"]], ids=["C99", "C++"])
def test_the_header_compiles(made: Any, name: str, compiler: list[str], tool: Any) -> None:
    tool(compiler[0])
    folder, _, _ = made(name)
    source = folder / f"twice{'.cc' if compiler[0] == 'g++' else '.c'}"
    source.write_text(f'#include "{name}.h"\n#include "{name}.h"\nint main(void) {{ return ct_manifest[0] == 0; }}\n')
    subprocess.run([*compiler, *WARNINGS, source.name, "-L.", f"-l:{name}.so", "-Wl,-rpath,$ORIGIN", "-o", "twice"], cwd=folder, check=True)
    subprocess.run([str(folder / "twice")], check=True)


def test_the_header_says_how_to_call(made: Any) -> None:
    text = (made("gemm")[0] / "gemm.h").read_text()
    for line in ("Gemm from gemm.toml for x86_64.", "any number of threads may call", " *   A: float32 [M K], read",
                 "B: float32 [K N], axes from slowest to fastest 1 0, read",
                 "int32_t ct_gemm(const float *A, const float *B, float *C, int64_t M, int64_t K, int64_t N);", "void *ct_scratch);", "#ifndef CT_GEMM_H",
                 "Required: (< M N)", "1  M * / is odd", "Each call runs on the calling thread alone."):
        assert line in text, line
    assert "int32_t ct_class(double double_, uint8_t flag, const int32_t *X, double *Y, int64_t *S, int64_t int_);" in (made("class")[0] / "class.h").read_text()


@pytest.mark.parametrize("name", OPS)
def test_the_example_checks_itself(made: Any, name: str) -> None:
    folder, found, programs = made(name)
    source = folder / f"{name}_main.c"
    source.write_text(example(found, CStyle().render(*[as_reference(p) for p in programs]), name))
    build = source.read_text().split("\n")[0].removeprefix("/* cc ").removesuffix(" */").split(" && ")[0]
    subprocess.run(f"gcc -Wall -Wextra -Werror -Wno-unused-function {build}", shell=True, cwd=folder, check=True)
    done = subprocess.run([str(folder / f"{name}_main")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n")


def test_the_example_notices_a_wrong_library(made: Any, tmp_path: Path) -> None:
    folder, found, programs = made("gemm")
    name = shutil.copytree(folder, tmp_path / "wrong") / "gemm"
    wrong = (folder / "gemm.c").read_text().replace("B[", "A[", 1)
    assert wrong != (folder / "gemm.c").read_text()
    name.with_suffix(".c").write_text(wrong)
    subprocess.run(["gcc", "-std=c11", "-fPIC", "-shared", "gemm.c", "-o", "gemm.so", "-lm"], cwd=name.parent, check=True)
    (name.parent / "gemm_main.c").write_text(example(found, CStyle().render(*[as_reference(p) for p in programs]), "gemm"))
    subprocess.run("gcc gemm_main.c -L. -l:gemm.so -Wl,-rpath,'$ORIGIN' -lm -o main", shell=True, cwd=name.parent, check=True)
    done = subprocess.run([str(name.parent / "main")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "instead of" in done.stdout
    assert done.stdout.endswith("FAILED\n")


# ---- the wrapper

@pytest.fixture
def wrapped(made: Any) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        folder, found, _ = made(name)
        path = folder / f"{name}_wrapper.py"
        path.write_text(wrapper(found, f"{name}.so"))
        spec = importlib.util.spec_from_file_location(f"wrapper_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return load


def test_the_wrapper_calls(wrapped: Any) -> None:
    gemm = wrapped("gemm").Gemm
    a, b = np.ones((2, 3), np.float32), np.asfortranarray(np.ones((3, 4), np.float32))
    c = np.zeros((2, 4), np.float32)
    assert gemm(a, b, c) is c
    np.testing.assert_array_equal(c, a @ b)
    with pytest.raises(ValueError, match="is odd"):
        gemm(np.ones((3, 3), np.float32), b, np.zeros((3, 4), np.float32))
    module = wrapped("class")
    y, s = module.class_(2.5, True, np.zeros(4, np.int32))
    np.testing.assert_array_equal(y, np.full((3, 2), 2.5))
    assert s == 7
    with pytest.raises(ValueError, match=r"axis 0 of X must be \(\* 2 int\), which cannot be 5 for any size int"):
        module.class_(2.5, True, np.zeros(5, np.int32))
    with pytest.raises(ValueError, match=r"axis 0 of Y must be \(\+ int 1\) = 3"):
        module.class_(2.5, True, np.zeros(4, np.int32), Y=np.zeros((2, 2), order="F"))
    z = np.array([1, 2j], np.complex64)
    np.testing.assert_array_equal(wrapped("turn").Turn(z, 1j), [1j, -2])
    a, b = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(wrapped("copy").Copy(a, b), a)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(wrapped("take").Take(x, np.array([2, 0])), [2, 0])
    np.testing.assert_array_equal(wrapped("shift").Shift(1, x), [0, 1])
    assert list(vars(wrapped("several")))[-3:] == ["Gemm", "class_", "Turn"]


def test_products_are_the_same_every_time(made: Any) -> None:
    _, found, programs = made("several")
    reference = CStyle().render(*[as_reference(p) for p in programs])
    for make in (lambda: header(programs, found), lambda: example(found, reference, "x"), lambda: wrapper(found, "x.so")):
        assert make() == make()
