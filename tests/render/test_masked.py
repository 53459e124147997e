"""Loads and stores of some lanes: what they leave alone, and that they are instructions and no branches."""
from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import caten
from caten.core.program import resolve
from caten.core.text import read
from caten.render.cstyle import CStyle
from caten.runtime import toolchain

TYPES = {"float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "int32": "i4", "int64": "i8"}


@pytest.mark.slice(8)
@pytest.mark.parametrize("compiler", ["clang", "older clang", "gcc"])
@pytest.mark.parametrize("march", ["x86_64_v2", "x86_64_v3", "native"])
@pytest.mark.parametrize("dtype", list(TYPES))
def test_the_rest_of_a_row_is_read_and_written_and_nothing_beyond(compiler: str, march: str, dtype: str, tmp_path: Path) -> None:
    spec = f"(composite Add1 ((X{{{dtype}}}[M N]) -> (Y{{{dtype}}}[M N]))\n  (dotimes (i M) (dotimes (j N) (setf (aref Y i j) (+ 1 (aref X i j))))))"
    config = {"MARCH": march} | ({"CC": " ".join(_older_clang(tmp_path))} if compiler == "older clang" else {})
    add = caten.compile(spec, runtime=compiler.removeprefix("older "), config=config)
    for width in (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 130):
        x = (np.arange(3 * width).reshape(3, width) % 100).astype(TYPES[dtype])
        whole = np.full((5, width), 77, TYPES[dtype])
        add(x, out=whole[1:4])
        np.testing.assert_array_equal(whole[1:4], x + 1)
        assert (whole[[0, 4]] == 77).all()


def _older_clang(folder: Path) -> list[str]:
    """The embedded clang, answering as one before version 22 does: it has no generic builtins for masked accesses."""
    compiler = toolchain.embedded()
    if compiler is None:
        pytest.skip("needs the embedded clang")
    script = folder / "zig"
    script.write_text(f"#!/bin/sh\nexec {compiler.words[0]} \"$@\" -Wno-builtin-macro-redefined '-D__has_builtin(x)=0'\n")
    script.chmod(0o755)
    return [str(script), *compiler.words[1:]]


@pytest.mark.parametrize("compiler", ["older clang", "gcc"])
@pytest.mark.parametrize(("dtype", "lanes", "march"), [
    ("f32", 16, "x86-64-v4"), ("f64", 8, "x86-64-v4"), ("u8", 64, "x86-64-v4"), ("i16", 16, "x86-64-v4"), ("i32", 64, "x86-64-v4"),
    ("f32", 8, "x86-64-v3"), ("f64", 4, "x86-64-v3"), ("i32", 4, "x86-64-v3"), ("i64", 16, "x86-64-v3")])
def test_some_lanes_are_read_and_written_at_once(dtype: str, lanes: int, march: str, compiler: str, tmp_path: Path) -> None:
    if platform.machine() != "x86_64" or (compiler == "gcc" and shutil.which("gcc") is None):
        pytest.skip(f"needs {compiler} for x86")
    words = ["gcc", "-march=" + march] if compiler == "gcc" else [*_older_clang(tmp_path), "-march=" + march.replace("-", "_")]
    mask = f"(< (ramp {lanes} 0 1) (splat {lanes} N))"
    text = f"""(loop P (buffer X {dtype} (N) (0) in) (buffer Y {dtype} (N) (0) out) (size N)
        (kernel main (setf (vref Y {lanes} (0) -1 {mask}) (vref X {lanes} (0) -1 {mask}))))"""
    (tmp_path / "k.c").write_text(CStyle().render(resolve(read(text)[0])))
    subprocess.run([*words, "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument", "-S", "k.c", "-o", "k.s"], cwd=tmp_path, check=True)
    made = (tmp_path / "k.s").read_text()
    assert "vpinsr" not in made
    assert made.count("maskmov") + len(re.findall(r"\{%k\d\}", made)) >= 2
