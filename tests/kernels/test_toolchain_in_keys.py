"""A remembered build belongs to one compiler and one OpenMP library: with others it is not used."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from caten import loading
from caten.api import read
from caten.attach import runtime_for
from caten.kernels.kernel_key import key
from caten.options import Options
from caten.runtime import toolchain
from caten.runtime.toolchain import Compiler
from spec_texts import AXPY


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The key of an operator with threads, for a compiler and an OpenMP library that are files of this test."""
    for name in ("cc", "libomp.so"):
        (tmp_path / name).write_text("1")
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / name).write_text("1")
    options = Options(config=(("OMP", "1"),), cache_dir=str(tmp_path / "cache"))
    programs = loading.loaded([read(AXPY)], options)

    def name(compiler: str = "cc", openmp: str = "libomp.so") -> str:
        chosen = Compiler((str(tmp_path / compiler),), "clang", str(tmp_path / compiler))
        monkeypatch.setattr(toolchain, "choose", lambda *_: chosen)
        monkeypatch.setattr(toolchain, "openmp_flags", lambda compiler: ["-fopenmp", str(tmp_path / openmp)])
        found = key(programs, options, runtime_for(programs, options))
        assert found is not None
        return found.name
    return name


def test_another_compiler_or_openmp_library_is_another_key(named: Callable[..., str], tmp_path: Path) -> None:
    first = named()
    assert named() == first
    assert named(compiler="other/cc") != first
    assert named(openmp="other/libomp.so") != first
    for file in ("cc", "libomp.so"):                       # another version under the same path
        os.utime(tmp_path / file, (1, 1))
        second = named()
        assert second != first
        first = second
