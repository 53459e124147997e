"""No home, one that cannot be written, no place for the cache: the embedded clang compiles, with no trace left where nothing is to be written."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ENVIRONMENT, Result, finished, start
from test_builds_under_adversity import SAMPLE, clean, works

from caten.runtime.toolchain import embedded

Home = Callable[..., Result]
GONE = ("HOME", "XDG_CACHE_HOME", "CATEN_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR", "CC", "TMPDIR")


CLANG = f"{sys.executable} -m ziglang cc"


def environment(**given: str) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in GONE} | ENVIRONMENT | given


@pytest.fixture
def home(cold: Path) -> Home:
    """`home(*words, **environment)`: a build by the embedded clang in an environment without the usual places."""
    if embedded() is None:
        pytest.skip("needs the ziglang package")

    def build(*words: str, **given: str) -> Result:
        done = subprocess.run([sys.executable, "-m", "caten", SAMPLE, "-O1", *words], env=environment(**given), capture_output=True, text=True)
        return Result(done.returncode, done.stdout, done.stderr)
    return build


def its_library_is_in(cache: Path) -> bool:
    """Is it there, and no compiler was tried out, since one was named?"""
    return {"compiler", "probes"} & {p.name for p in cache.iterdir()} == {"compiler"}


# Each build here compiles zig's own libraries first, which takes seconds: of those alike, one is made by day.
at_night = pytest.mark.nightly


@at_night
@pytest.mark.parametrize("place", [{}, {"HOME": "/nonexistent/home"}, {"HOME": "/dev/null/home"}], ids=["unset", "missing", "no folder"])
def test_a_home_that_is_none(place: dict[str, str], home: Home, tmp_path: Path) -> None:
    done = home(**place, CATEN_CACHE_DIR=str(tmp_path / "cache"), CC=CLANG)
    assert (done.code, done.err) == (0, "")
    assert works("axpy.so")
    assert its_library_is_in(tmp_path / "cache")


@at_night
@pytest.mark.parametrize("places", [{"HOME": "/dev/null/home"}, {"HOME": "/tmp", "XDG_CACHE_HOME": "/dev/null/x"}, {"CATEN_CACHE_DIR": "/dev/null/x"}],
                         ids=["home", "caches", "cache"])
def test_no_place_for_the_cache(places: dict[str, str], home: Home, tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    done = home(**places, TMPDIR=str(tmp_path / "temp"))
    assert done.code == 0, done.err
    assert "E650" in done.err
    assert works("axpy.so")
    assert list((tmp_path / "temp").iterdir()) == []


def test_no_cache_leaves_nothing(home: Home, tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    done = home("--no-cache", HOME=str(tmp_path / "home"), CATEN_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "temp"))
    assert (done.code, done.err) == (0, "")
    assert works("axpy.so")
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "home").exists()
    assert list((tmp_path / "temp").iterdir()) == []


def test_a_user_without_rights(home: Home, tmp_path: Path) -> None:
    """Another user, whose home is not his and who may write to the current directory and to the temporary folder alone. An object file needs no library
    of the compiler's own; that this goes into the temporary folder, too, is seen where there is no cache."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    (tmp_path / "temp").mkdir()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 5 != 5 and folder != Path("/"):
            folder.chmod(0o755)
    for folder in (Path.cwd(), tmp_path / "temp"):
        folder.chmod(0o777)
    done = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", sys.executable, "-m", "caten", SAMPLE, "-O1", "-c"],
                          env=environment(HOME="/root", TMPDIR=str(tmp_path / "temp")), capture_output=True, text=True)
    if "Permission denied" in done.stderr and "caten" not in done.stderr:
        pytest.skip("the interpreter is not readable for other users")
    assert done.returncode == 0, done.stderr
    assert "E650" in done.stderr
    assert Path("axpy.o").read_bytes().startswith(b"\x7fELF")
    assert list((tmp_path / "temp").iterdir()) == []


@pytest.mark.parametrize("named", [True, False])
def test_a_temporary_folder_that_is_none(named: bool, home: Home, tmp_path: Path) -> None:
    places = {"CATEN_CACHE_DIR": str(tmp_path / "cache")} if named else {"HOME": "/dev/null/home"}
    done = home(**places, TMPDIR="/nonexistent")
    assert clean(done)
    assert done.code == 3
    assert "cannot write temporary files to /nonexistent" in done.err


def test_two_processes_at_once(home: Home, tmp_path: Path) -> None:
    env = environment(HOME="/dev/null/home", CATEN_CACHE_DIR=str(tmp_path / "cache"), CC=CLANG)
    both = [subprocess.Popen([sys.executable, "-m", "caten", SAMPLE, "-O1", "-o", f"lib{n}.so"], env=env, stderr=subprocess.PIPE, text=True) for n in range(2)]
    results = [p.communicate(timeout=120)[1] for p in both]
    assert (results, [p.returncode for p in both]) == (["", ""], [0, 0])
    assert works("lib0.so")
    assert works("lib1.so")
    assert its_library_is_in(tmp_path / "cache")


def test_the_users_folder_cannot_be_written(home: Home, tmp_path: Path) -> None:
    """gcc is taken where it is here; else the message is about the compiler."""
    done = home(CATEN_CACHE_DIR=str(tmp_path / "cache"), ZIG_GLOBAL_CACHE_DIR="/dev/null/x")
    assert clean(done)
    assert (done.code == 0 and works("axpy.so")) or "E610" in done.err
    named = home("--config", f"CC={CLANG}", CATEN_CACHE_DIR=str(tmp_path / "cache"), ZIG_GLOBAL_CACHE_DIR="/dev/null/x")
    assert named.code == 3
    assert "E626" in named.err
    assert "cache directory" in named.err
    assert "fault of caten" not in named.err


def test_the_doctor_tells(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if embedded() is None:
        pytest.skip("needs the ziglang package")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "/dev/null/x")
    done = finished(start("doctor"))
    assert "does not run: zig cc ended with status 1" in done.out, done.out
