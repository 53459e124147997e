"""Libraries from hand-written C, so that loading and calling are tested apart from the compiler."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from native_calls import GEMM, GEMM_C, Native, one

from caten.bindings.cpython import direct_c
from caten.core.program import Program, resolve
from caten.core.text import read
from caten.runtime import manifest as m
from caten.runtime import program_manifest as p
from caten.runtime.call import Operator
from caten.runtime.library import Library, open_library

INCLUDES = "#include <stdint.h>\n#include <stddef.h>\n"


def manifest_of(*texts: str) -> dict[str, Any]:
    """The manifest of (loop …) texts."""
    programs = [resolve(read(t)[0]) for t in texts]
    return p.library_manifest(programs, "gcc", p.Provenance(target="x86_64", compiler="gcc 12", flags=("-O2",)))


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Library]:
    """`native(C text, (loop …) text…)`: the loaded library. Check functions that the C text lacks are added."""
    made: dict[Any, Library] = {}

    def build(c: str, *texts: str) -> Library:
        if (c, texts) not in made:
            made[c, texts] = open_library(shared_object(tmp_path_factory.mktemp("native") / "kernel.so", c, manifest_of(*texts)))
        return made[c, texts]
    return build


def shared_object(out: Path, c: str, manifest: dict[str, Any]) -> Path:
    checks = [f"const char *{op['symbols']['check']}(int32_t n) {{ (void)n; return 0; }}\n" for op in m.operators(manifest)
              if op["symbols"]["check"] + "(" not in c]
    source = out.with_suffix(".c")
    source.write_text(INCLUDES + c + "".join(checks) + m.manifest_c(manifest) + direct_c(m.operators(manifest)))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-O1", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(out)], check=True)
    return out


@pytest.fixture
def make_library() -> Callable[[Path, str, dict[str, Any]], Path]:
    return shared_object


@pytest.fixture
def describe() -> Callable[..., dict[str, Any]]:
    return manifest_of


def program(text: str) -> Program:
    found: Program = resolve(read(text)[0])
    return found


@pytest.fixture
def gemm(native: Native) -> Operator:
    return one(native, GEMM_C, GEMM)
