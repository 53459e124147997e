"""The cache: right answers whatever happens to it."""
from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from caten.errors import Diagnostic
from caten.runtime import library_cache as module
from caten.runtime.library_cache import HASHES, Cache, default_directory, file_identity, key, obstacle

NAME = key("source", "flags")


class Told(list[Diagnostic]):
    """What the cache warned of."""

    @property
    def codes(self) -> list[str]:
        return [d.code for d in self]


@pytest.fixture
def told() -> Told:
    return Told()


def writer(content: str = "library", name: str = "op.so") -> Any:
    def make(folder: Path) -> None:
        made.append(content)
        (folder / name).write_text(content)
    made: list[str] = []
    make.made = made  # type: ignore[attr-defined]
    return make


def test_made_once_then_found(tmp_path: Path, told: Told) -> None:
    make = writer()
    for _ in range(3):
        entry = Cache(tmp_path / "c", told.append).fetch(NAME, make)
        assert (entry / "op.so").read_text() == "library"
    assert len(make.made) == 1
    assert told == []
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


def test_a_hit_starts_no_process_and_makes_no_file(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(tmp_path / "c", told.append).fetch(NAME, writer())

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("not on a hit")
    for where, what in ((subprocess, "Popen"), (os, "fork"), (os, "rename"), (tempfile, "mkdtemp")):
        monkeypatch.setattr(where, what, refuse)
    assert Cache(tmp_path / "c", told.append).fetch(NAME, refuse) == tmp_path / "c" / NAME


@pytest.mark.parametrize("damage", ["truncated", "other bytes", "gone", "extra file", "no hashes", "torn hashes", "hashes of another kind"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, told: Told, damage: str) -> None:
    cache = Cache(tmp_path / "c", told.append)
    entry = cache.fetch(NAME, writer())
    match damage:
        case "truncated": (entry / "op.so").write_text("lib")
        case "other bytes": (entry / "op.so").write_text("LIBRARY")
        case "gone": (entry / "op.so").unlink()
        case "extra file": (entry / "evil.so").write_text("library")
        case "no hashes": (entry / HASHES).unlink()
        case "torn hashes": (entry / HASHES).write_text('{"op.so": "12')
        case _: (entry / HASHES).write_text("[1]")
    make = writer()
    entry = cache.fetch(NAME, make)
    assert make.made == ["library"]
    assert told.codes == ["E651"]
    assert sorted(p.name for p in entry.iterdir()) == ["op.so", HASHES]
    assert [p for p in (tmp_path / "c").iterdir() if p.name != "swept"] == [entry]
    cache.fetch(NAME, make)
    assert len(make.made) == 1


def test_folders_that_are_not_trusted(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "file").write_text("")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for folder, reason in ((tmp_path / "link", "it is a link"), (tmp_path / "file", "it is not a folder"), (shared, "others may write to it"),
                           (tmp_path / "file" / "below", "it cannot be made")):
        told.clear()
        entry = Cache(folder, told.append).fetch(NAME, writer())
        assert (entry / "op.so").read_text() == "library"
        assert told.codes == ["E650"]
        assert reason in told[0].message
        assert told[0].severity == "warning"
    assert list(real.iterdir()) == []
    assert list(shared.iterdir()) == []
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert obstacle(real) == "it belongs to another user"


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("step", ["temporary", "write", "rename"])
def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch, problem: int, step: str) -> None:
    cache = Cache(tmp_path / "c", told.append)
    cache.fetch(NAME, writer())
    real_temporary = tempfile.mkdtemp

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(problem, os.strerror(problem))

    def temporary(prefix: str, dir: Any = None) -> str:
        return fail() if dir is not None else real_temporary(prefix=prefix)  # type: ignore[no-any-return]
    match step:
        case "temporary": monkeypatch.setattr(tempfile, "mkdtemp", temporary)
        case "write": monkeypatch.setattr(module, "_write", fail)
        case _: monkeypatch.setattr(os, "rename", fail)
    other = key("other")
    entry = cache.fetch(other, writer("new"))
    assert (entry / "op.so").read_text() == "new"
    assert told.codes == ["E650"]
    assert os.strerror(problem) in told[0].message
    fresh = Cache(tmp_path / "c", told.append)
    assert (fresh.fetch(NAME, writer("wrong")) / "op.so").read_text() == "library"       # hits still work
    assert fresh.find(other) is None
    monkeypatch.undo()
    assert (Cache(tmp_path / "c", told.append).fetch(other, writer("newer")) / "op.so").read_text() == "newer"


def test_a_disk_that_fills_up_while_the_entry_is_made(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    calls: list[Path] = []

    def make(folder: Path) -> None:
        calls.append(folder)
        if folder.parent == tmp_path / "c":
            raise RuntimeError("the compiler failed")
        (folder / "op.so").write_text("library")
    with pytest.raises(RuntimeError):                        # there is room: the failure is the compiler's own
        Cache(tmp_path / "c", told.append).fetch(NAME, make)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage(10, 10, 0))
    entry = Cache(tmp_path / "c", told.append).fetch(NAME, make)
    assert (entry / "op.so").read_text() == "library"
    assert told.codes == ["E650"]
    assert list((tmp_path / "c").iterdir()) == []


def test_what_make_raises_is_passed_on_and_leaves_nothing(tmp_path: Path, told: Told) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("")
        raise KeyboardInterrupt
    cache = Cache(tmp_path / "c", told.append)
    with pytest.raises(KeyboardInterrupt):
        cache.fetch(NAME, make)
    assert list((tmp_path / "c").iterdir()) == []
    assert told == []


def test_without_a_folder_nothing_is_kept(told: Told) -> None:
    cache = Cache(None, told.append)
    make = writer()
    first, second = cache.fetch(NAME, make), cache.fetch(NAME, make)
    assert first != second
    assert len(make.made) == 2
    assert cache.stats().entries == 0
    assert cache.clean().entries == 0


def test_removing_what_another_process_has_removed_leaves_nothing(tmp_path: Path, told: Told) -> None:
    cache = Cache(tmp_path / "c", told.append)
    cache.forget(NAME)
    assert list((tmp_path / "c").iterdir()) == []


RACER = """
import sys, time
from pathlib import Path
from caten.runtime.library_cache import Cache, key
told = []
def make(folder):
    data = sys.argv[2].encode() * 200_000
    with open(folder / "op.so", "wb") as f:
        for i in range(0, len(data), 20_000):
            f.write(data[i:i + 20_000]); f.flush()
while time.time() < float(sys.argv[3]): pass
for n in range(30):
    entry = Cache(Path(sys.argv[1]), told.append).fetch(key(str(n // 3)), make)
    data = (entry / "op.so").read_bytes()
    assert len(data) == 200_000 and len(set(data)) == 1, (len(data), set(data))
assert not told, told
"""


def test_eight_processes_at_once(tmp_path: Path, told: Told) -> None:
    start = str(time.time() + 0.8)
    racers = [subprocess.Popen([sys.executable, "-c", RACER, str(tmp_path / "c"), letter, start], stderr=subprocess.PIPE) for letter in "abcdefgh"]
    for racer in racers:
        _, problem = racer.communicate(timeout=60)
        assert racer.returncode == 0, problem.decode()
    assert Cache(tmp_path / "c", told.append).stats().entries == 10
    assert [p.name for p in (tmp_path / "c").iterdir() if p.name.startswith("tmp-")] == []


KILLED = """
import sys, time
from pathlib import Path
from caten.runtime.library_cache import Cache
def make(folder):
    with open(folder / "op.so", "w") as f:
        f.write("libr"); f.flush()
        print("half", flush=True)
        time.sleep(60)
Cache(Path(sys.argv[1]), print).fetch(sys.argv[2], make)
"""


def test_a_killed_writer_leaves_no_entry(tmp_path: Path, told: Told) -> None:
    victim = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "c"), NAME], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"half\n"
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    cache = Cache(tmp_path / "c", told.append)
    assert cache.find(NAME) is None
    assert (cache.fetch(NAME, writer()) / "op.so").read_text() == "library"
    assert told == []
    left = list((tmp_path / "c").glob("tmp-*"))
    assert len(left) == 1                                    # it may still be at work, for all that others know
    for old in (left[0], tmp_path / "c" / "swept"):
        os.utime(old, (0, 0))
    cache.fetch(key("next"), writer())
    assert list((tmp_path / "c").glob("tmp-*")) == []


def test_the_least_recently_used_entries_go_first(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [key(str(n)) for n in range(5)]
    cache = Cache(tmp_path / "c", told.append, greatest_bytes=3 * 1200)
    for n, name in enumerate(names[:3]):
        os.utime(cache.fetch(name, writer("x" * 1000)), (n + 1, n + 1))
    cache.find(names[0])                                     # now it is the most recently used
    cache.fetch(names[3], writer("x" * 1000))
    assert [n for n in names if (tmp_path / "c" / n).exists()] == [names[0], names[2], names[3]]
    cache.fetch(names[4], writer("x" * 5000))                # 0 and 3 were used just now: spared, though the bound is passed
    assert [n for n in names if (tmp_path / "c" / n).exists()] == [names[0], names[3], names[4]]


def test_stats_and_clean(tmp_path: Path, told: Told) -> None:
    cache = Cache(tmp_path / "c", told.append)
    cache.fetch(NAME, writer())
    cache.keep_failed(NAME, {"op.c": "int x"})
    (tmp_path / "c" / "mine.txt").write_text("not the cache's")
    found = cache.stats()
    assert (found.entries, found.failed) == (1, 1)
    assert found.bytes == len("library") + len((tmp_path / "c" / NAME / HASHES).read_text())
    assert cache.clean() == found
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["mine.txt"]
    assert cache.stats().entries == 0


def test_sources_of_failures_are_kept_and_bounded(tmp_path: Path, told: Told) -> None:
    cache = Cache(tmp_path / "c", told.append)
    folders = [cache.keep_failed(key(str(n)), {"op.c": f"int x{n};", "command": "cc op.c"}) for n in range(module.MOST_FAILED + 5)]
    assert (folders[-1] / "op.c").read_text() == f"int x{len(folders) - 1};"
    assert len(list((tmp_path / "c" / "failed").iterdir())) == module.MOST_FAILED
    kept = Cache(None, told.append).keep_failed(NAME, {"op.c": "int y;"})
    assert (kept / "op.c").read_text() == "int y;"
    module.shutil.rmtree(kept)


def test_keys_tell_parts_apart(tmp_path: Path) -> None:
    assert len({key("ab", "c"), key("a", "bc"), key("abc"), key("abc", ""), key(b"abc", b"d")}) == 5
    assert key("a", b"b") == key("a", "b")
    tool = tmp_path / "cc"
    tool.write_text("1")
    (tmp_path / "alias").symlink_to(tool)
    before = file_identity(tool)
    assert file_identity(tmp_path / "alias") == before
    os.utime(tool, (1, 1))
    assert file_identity(tool) != before


def test_the_folder_is_chosen_or_the_platforms(tmp_path: Path) -> None:
    assert default_directory(str(tmp_path)) == tmp_path
    assert default_directory().name == "caten"


def test_hashes_are_readable_text(tmp_path: Path, told: Told) -> None:
    entry = Cache(tmp_path / "c", told.append).fetch(NAME, writer())
    assert list(json.loads((entry / HASHES).read_text())) == ["op.so"]


def test_a_user_without_a_home_has_a_cache_below_the_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `docker run --user`: the system knows neither a name nor a home of the user."""
    def nowhere(*args: object, **named: object) -> Path:
        raise RuntimeError("Could not determine home directory.")
    monkeypatch.setattr("platformdirs.user_cache_path", nowhere)
    assert default_directory() == Path(tempfile.gettempdir()) / f"caten-{os.getuid()}"


def test_a_full_cache_is_not_looked_through_at_each_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(Cache, "_evict", lambda self, newest: looked.append(newest))

    def add(name: str, size: int) -> None:
        Cache(tmp_path, Told().append, greatest_bytes=64_000).fetch(key(name), lambda folder: (folder / "f").write_bytes(bytes(size)) and None)
    add("first", 10)
    add("second", 10)
    assert len(looked) == 1
    add("large", 2_000)                                   # more than a share of the bound
    assert len(looked) == 2
    os.utime(tmp_path / "swept", (0, 0))                  # long ago
    add("later", 10)
    assert len(looked) == 3
