"""The clang and gcc runtimes: from a loop program to a library, an object, assembly and an archive, the same bytes every time."""
from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cffi
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.runtime import discover, toolchain
from caten.runtime.protocol import Host, Unavailable

TEXT = """(loop Add (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) inout) (size N)
  (kernel main (for i 0 N 1 parallel (incf (aref Y i) (exp (aref X i))))))"""


def runtime(name: str, *config: tuple[str, str], **host: Any) -> Any:
    found = discover.find(name).configure(tuple(config), Host(**host))
    try:
        found.available()
    except Unavailable as missing:
        pytest.skip(str(missing))
    return found


@pytest.mark.parametrize("name", ["clang", "gcc"])
def test_every_product_and_the_same_bytes_twice(name: str, tmp_path: Path) -> None:
    chosen = runtime(name, ("MARCH", "x86-64-v3"))
    source = chosen.render(resolve(read(TEXT)[0]))
    for kind, suffix in chosen.suffixes.items():
        if kind == "c":
            continue
        record = chosen.compile(source, tmp_path / f"one{suffix}", kind)
        chosen.compile(source, tmp_path / f"two{suffix}", kind)
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()
        assert record.version != "unknown"
        assert "-std=c11" in record.flags
    assert chosen.identity() == runtime(name, ("MARCH", "x86-64-v3")).identity()
    assert chosen.identity() != runtime(name, ("MARCH", "x86-64-v2")).identity()
    words = [w for command in chosen.commands(Path("a.c"), Path("b.so"), "so") for w in command]
    assert {"a.c", "b.so"} <= {*words}


def test_fast_math_is_never_asked_for() -> None:
    clang = runtime("clang", ("MARCH", "x86-64-v3"), ("OPT", "3"))
    words = clang.commands(Path("a.c"), Path("b.so"), "so")[0]
    assert {"-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fPIC", "-fvisibility=hidden"} <= set(words)
    assert "-ffast-math" not in words


def test_the_machine_follows_the_options() -> None:
    clang = discover.find("clang")
    assert clang.configure((("MARCH", "znver2"),)).machine().vector_bytes == 32
    assert clang.configure((("MARCH", "znver2"), ("SIMD_LEN", "4"))).machine().vector_bytes == 16


def test_threads_are_real_or_refused(tmp_path: Path) -> None:
    with_threads = runtime("gcc", ("OMP", "1"), cache=tmp_path / "cache")
    source = with_threads.render(resolve(read(TEXT)[0]))
    assert re.search(r"if \(.* > \d+\) {\n *#pragma omp parallel for schedule\(static\)", source)
    with_threads.compile(source, tmp_path / "add.so", "so")
    ffi = cffi.FFI()
    ffi.cdef("int32_t ct_add(float *, float *, int64_t);")
    library = ffi.dlopen(str(tmp_path / "add.so"))
    x, y = ffi.new("float[100000]"), ffi.new("float[100000]")
    assert library.ct_add(x, y, 100000) == 0
    assert [y[0], y[99999]] == [1, 1]


FAULTS = """
import cffi, resource, sys
ffi = cffi.FFI()
ffi.cdef("int32_t ct_twice(float *, int64_t);")
library, y = ffi.dlopen(sys.argv[1]), ffi.new("float[1500000]")
for n in range(40):
    if n == 20:                 # by then the heap has a place for it
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert library.ct_twice(y, 1500000) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries give large blocks back at once")
def test_a_call_uses_the_scratch_memory_of_the_one_before(tmp_path: Path) -> None:
    """Megabytes that come from the system anew are cleared page by page."""
    text = """(loop Twice (size M) (buffer Y f32 (M) (0) inout) (kernel main (local A f32 (M) scratch)
      (for i 0 M 1 serial (setf (aref A i) (aref Y i))) (for j 0 M 1 serial (incf (aref Y j) (aref A (- (- M 1) j))))))"""
    chosen = runtime("gcc", cache=tmp_path / "cache")
    chosen.compile(chosen.render(resolve(read(text)[0])), tmp_path / "twice.so", "so")
    done = subprocess.run([sys.executable, "-c", FAULTS, str(tmp_path / "twice.so")], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20


def test_openmp_without_a_compiler_that_has_it_is_exit_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "has_openmp", lambda compiler, host: False)
    with pytest.raises(CatenError) as info:
        discover.find("clang").configure((("OMP", "1"),)).available()
    assert info.value.exit_code == 3


def test_a_missing_vector_library_is_exit_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "has_library", lambda compiler, host, library: False)
    chosen = runtime("clang")
    with pytest.raises(Unavailable, match="SLEEF"):
        chosen.configure((("SLEEF", "1"),)).available()


def test_sleef_names_for_vectors_alone() -> None:
    program = resolve(read("""(loop V (buffer X f32 (16) (0) in) (buffer Y f32 (16) (0) out)
      (kernel main (setf (vref Y 8 (0)) (sin (vref X 8 (0)))) (setf (aref Y 8) (sin (aref X 8)))))""")[0])
    text = discover.find("clang").configure((("SLEEF", "1"), ("MARCH", "x86-64-v3"))).render(program)
    assert "extern ct_f32x8 Sleef_sinf8_u10(ct_f32x8);" in text
    assert "Y[8] = sinf(X[8]);" in text


@pytest.mark.parametrize(("kinds", "flag"), [("undefined", "-fsanitize=undefined"), ("address+undefined", "-fsanitize=address,undefined")])
def test_sanitizers_are_an_option_of_gcc(kinds: str, flag: str) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    words = runtime("gcc", ("SANITIZE", kinds)).commands(Path("a.c"), Path("b.so"), "so")[0]
    assert flag in words
    assert not any("-fsanitize" in w for w in runtime("gcc").commands(Path("a.c"), Path("b.so"), "so")[0])
