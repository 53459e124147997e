"""`caten new runtime`: what it writes works, and nothing is overwritten."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slice(2)
@pytest.mark.parametrize("words", [(), ("--from", "clang"), ("--from", "numpy")])
def test_what_is_written_works_as_it_is(words: tuple[str, ...], building: Any, folder: Path) -> None:
    assert building("new", "runtime", "mine", *words).code == 0
    assert building("test", "axpy.toml", "gemm.toml", "--runtime", "./mine.py").code == 0
    assert "mine" in building("new", "runtime", "mine", *words, "-o", "-").out


def test_a_file_that_exists_stays(building: Any, folder: Path) -> None:
    (folder / "mine.py").write_text("mine\n")
    result = building("new", "runtime", "mine")
    assert (result.code, (folder / "mine.py").read_text()) == (2, "mine\n")
    assert "E941" in result.err
    assert building("new", "runtime", "mine", "-o", "other.py").code == 0


@pytest.mark.parametrize(("words", "code"), [(("9lives",), "E941"), (("class",), "E941"), (("a/b",), "E941"), (("mine", "--from", "clagn"), "E602")])
def test_what_cannot_be_written_is_said(words: tuple[str, ...], code: str, building: Any, folder: Path) -> None:
    result = building("new", "runtime", *words)
    assert result.code == 2
    assert code in result.err
    assert not list(folder.glob("*.py"))
