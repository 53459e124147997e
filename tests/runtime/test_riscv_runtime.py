"""Kernels for RISC-V, under qemu: the same results and the same errors as on this machine."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.runtime import discover, toolchain
from caten.runtime.protocol import Host, Unavailable

GEMM = """(composite Gemm ((A{float}[M K] B{float}[K N] C{float}[M N]) -> (C))
  (dotimes (i M) (dotimes (j N) (dotimes (p K) (incf (aref C i j) (* (aref A i p) (aref B p j)))))))"""
SCALE = "(composite Scale ((a{float}[] x{float}[N](where N > 0)) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (* a (sin (aref x i))))))"


@pytest.fixture
def riscv(tool: Callable[[str], str]) -> Callable[..., Any]:
    """`riscv(spec, VECTOR=1)`: the spec, compiled for RISC-V."""
    tool("qemu-riscv64")
    if toolchain.embedded() is None:
        pytest.skip("needs ziglang")
    return lambda spec, **config: caten.compile(spec, runtime="riscv", config=config)


@pytest.mark.parametrize("vector", [0, 1])
def test_results_are_those_of_this_machine(vector: int, riscv: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    a, b = [rng.standard_normal(shape).astype(np.float32) for shape in ((37, 19), (19, 23))]
    c = riscv(GEMM, VECTOR=vector)(a, b, np.zeros((37, 23), np.float32))
    assert np.abs(c - a.astype(np.float64) @ b).max() < 1e-5


def test_functions_of_the_c_library(riscv: Callable[..., Any]) -> None:
    x = np.float32([0.5, 100, 1e9])
    assert np.abs(riscv(SCALE)(2.0, x) - 2 * np.sin(x.astype(np.float64))).max() < 1e-6


def test_a_condition_that_fails_is_the_same_error(riscv: Callable[..., Any]) -> None:
    with pytest.raises(CatenError, match=r"E711: Scale: .*N"):
        riscv(SCALE)(2.0, np.zeros(0, np.float32))


def test_there_is_one_program_and_vectors_only_where_they_are_asked_for(tmp_path: Path) -> None:
    if toolchain.embedded() is None:
        pytest.skip("needs ziglang")
    plain, vectors = (discover.find("riscv").configure(config) for config in ((), (("VECTOR", "1"),)))
    assert (plain.machine().vector_bytes, vectors.machine().vector_bytes) == (1, 16)
    assert "+v" not in plain.commands(Path("a.c"), Path("a.elf"), "so")[0]
    assert "+v" in vectors.commands(Path("a.c"), Path("a.elf"), "so")[0]
    assert "-DCT_SERVER" not in plain.commands(Path("a.c"), Path("a.o"), "o")[0]
    record = plain.compile("int ct_one(void) { return 1; }\n", tmp_path / "one.o", "o")
    assert (tmp_path / "one.o").read_bytes()[18:20] == b"\xf3\x00"           # EM_RISCV
    assert "riscv64-linux-musl" in record.flags


def test_what_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = discover.find("riscv").configure((), Host(path=str(tmp_path)))
    if toolchain.embedded() is not None:
        with pytest.raises(Unavailable) as info:
            found.available()
        assert info.value.diagnostics[0].hint == "apt install qemu-user"
    monkeypatch.setattr(toolchain, "embedded", lambda: None)
    with pytest.raises(Unavailable) as info:
        found.available()
    assert info.value.diagnostics[0].hint == "pip install 'caten[toolchain]'"


def test_the_compiler_of_this_machine_is_not_taken() -> None:
    if toolchain.embedded() is None:
        pytest.skip("needs ziglang")
    assert discover.find("riscv").configure((), Host(cc="gcc")).compiler().family == "zig"


def test_a_program_is_loaded_with_the_manifest_beside_it(riscv: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from caten.cli.boundary import guarded
    monkeypatch.chdir(tmp_path)
    assert guarded([SCALE, "--runtime", "riscv", "--emit=so=scale.elf"]) == 0
    assert caten.load("scale.elf")(1.0, np.float32([0])).tolist() == [0]
    whole, described = (tmp_path / "scale.elf").read_bytes(), tmp_path / "scale.elf.json"
    for content in (whole[:-1000], b"", b"garbage" * 100, None):
        (tmp_path / "scale.elf").unlink()
        if content is not None:
            (tmp_path / "scale.elf").write_bytes(content)
        with pytest.raises(CatenError, match=r"E66[01]"):
            caten.load("scale.elf")
    (tmp_path / "scale.elf").write_bytes(whole)
    right = described.read_text()
    for text in ("{}", "{", right.replace("Scale", "Other"), right.replace('"riscv"', '"clang"')):
        described.write_text(text)
        with pytest.raises(CatenError, match=r"E66[35]"):
            caten.load("scale.elf")
