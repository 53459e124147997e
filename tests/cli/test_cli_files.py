"""Files are written whole or not at all."""
from __future__ import annotations

import os
from pathlib import Path

import pytest

from caten.cli.atomic_files import check, write
from caten.errors import CatenError


def test_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("old")
    write(str(tmp_path / "x.c"), "new")
    write(str(tmp_path / "x.so"), b"\x7fELF", 0o755)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.c", "x.so"]
    assert (tmp_path / "x.c").read_text() == "new"
    assert os.access(tmp_path / "x.so", os.X_OK)


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("path", ["missing/x.c", "folder", "/dev/full"])
def test_what_cannot_be_written_is_a_diagnostic(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CatenError) as refused:
        write(path if path.startswith("/") else str(tmp_path / path), "text")
    assert refused.value.diagnostics[0].code == "E909"
    assert refused.value.exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_devices_are_written_to(tmp_path: Path) -> None:
    write("/dev/null", "text")


def test_a_failed_write_removes_the_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(str(tmp_path / "x"), "text")
    assert list(tmp_path.iterdir()) == []


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        check(str(tmp_path / name))
    check("-")
    check("/dev/null")
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"
    for wrong in (tmp_path, tmp_path / "none" / "x", tmp_path / "old" / "x"):
        with pytest.raises(CatenError, match=f"cannot write {wrong}: "):
            check(str(wrong))
