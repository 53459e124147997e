"""A folder to work in, a cache of its own, and no settings from outside."""
from __future__ import annotations

from pathlib import Path

import pytest

SETTINGS = ("CC", "CFLAGS", "LDFLAGS", "CATEN_RUNTIME_PATH", "NO_COLOR", "SOURCE_DATE_EPOCH", "OMP_NUM_THREADS", "TMPDIR", "MAKEFLAGS")


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests that do not care: each library is compiled once."""
    return tmp_path_factory.mktemp("warm") / "cache"


@pytest.fixture
def folder(tmp_path: Path, warm_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, empty. The compiler is gcc, because it starts fastest."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CATEN_CACHE_DIR", str(warm_cache))
    monkeypatch.setenv("CC", "gcc")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def cold(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`folder`, with an empty cache."""
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    return folder
