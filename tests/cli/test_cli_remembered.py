"""A build that was done before runs no stage, and is done again when anything that it depends on changed."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from caten.cli import outputs
from caten.cli.boundary import guarded

SPEC = """
include = ["other.toml"]
[composite]
name = "Twice"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(call Double x y)"
"""
OTHER = """
[composite]
name = "Double"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* 2.0 (aref x i))))"
"""


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Build t.toml with these options; how many builds went through the stages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "t.toml").write_text(SPEC)
    (tmp_path / "other.toml").write_text(OTHER)
    (tmp_path / "out").mkdir()
    real, count = outputs.make, [0]

    def counting(*args: object) -> int:
        count[0] += 1
        return real(*args)  # type: ignore[arg-type]
    monkeypatch.setattr(outputs, "make", counting)

    def run(*options: str) -> int:
        count[0] = 0
        assert guarded(["t.toml", "-o", "out/t.c", *options]) == 0
        return count[0]
    return run


def test_the_second_build_runs_no_stage_and_writes_the_same(builds: Callable[..., int], tmp_path: Path) -> None:
    assert builds() == 1
    first = (tmp_path / "out/t.c").read_bytes()
    (tmp_path / "out/t.c").unlink()
    assert builds() == 0
    assert (tmp_path / "out/t.c").read_bytes() == first


def test_another_option_is_another_build(builds: Callable[..., int]) -> None:
    builds()
    assert builds("-O0") == 1
    assert builds("-DN=8") == 1
    assert builds("--no-cache") == 1
    assert builds() == 0


def test_a_changed_spec_or_a_changed_include_is_built_again(builds: Callable[..., int], tmp_path: Path) -> None:
    builds()
    (tmp_path / "other.toml").write_text(OTHER.replace("2.0", "3.0"))
    assert builds() == 1
    assert "3.0f" in (tmp_path / "out/t.c").read_text()
    (tmp_path / "t.toml").write_text(SPEC.replace("Twice", "Thrice"))
    assert builds() == 1
    assert "ct_thrice" in (tmp_path / "out/t.c").read_text()


def test_a_changed_library_is_another_build(builds: Callable[..., int], tmp_path: Path) -> None:
    library = tmp_path / "libmine.a"
    library.write_bytes(b"!<arch>\n")
    link = ("-L", str(tmp_path), "-lmine")
    assert (builds(*link), builds(*link)) == (1, 0)
    library.write_bytes(b"!<arch>\n\n")
    assert (builds(*link), builds(*link)) == (1, 0)


def test_a_damaged_memory_is_made_again(builds: Callable[..., int], tmp_path: Path) -> None:
    builds()
    first = (tmp_path / "out/t.c").read_bytes()
    for entry in (tmp_path / "cache").glob("*/products.json"):
        entry.with_name("0").write_bytes(b"torn")
    assert builds() == 1
    assert (tmp_path / "out/t.c").read_bytes() == first


def test_what_is_not_a_plain_build_is_not_remembered(builds: Callable[..., int]) -> None:
    builds()
    assert builds("--debug", "1") == 1
    assert builds("-MD") == 1
