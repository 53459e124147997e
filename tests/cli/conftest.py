"""Running command lines: in this process, with streams and exit code as a person would see them."""
from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from caten.cli.boundary import guarded
from spec_texts import AXPY, GEMM

TESTED_GEMM = GEMM + '''
[test]
code = "lambda A, B, C: A @ B + C"
'''


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str


Caten = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, an empty cache, no settings from outside."""
    for name in ("CC", "CFLAGS", "LDFLAGS", "CATEN_RUNTIME_PATH", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "gemm.toml").write_text(TESTED_GEMM)
    (work / "axpy.toml").write_text(AXPY)
    return work


@pytest.fixture
def caten(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Caten:
    """`caten("parse", "gemm.toml", stdin="…")`."""
    def run(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = guarded(list(arguments))
        out, err = capfd.readouterr()
        return Result(code, out, err)
    return run


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def building(caten: Caten, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Caten:
    """`caten` for tests that compile: they share one cache, so that each library is compiled once, by gcc."""
    monkeypatch.setenv("CATEN_CACHE_DIR", str(shared_cache))
    monkeypatch.setenv("CC", "gcc")
    return caten
