"""Builds at once, killed, on full and read-only disks, over torn files: the right answer or a clear error, and the next one works."""
from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import ENVIRONMENT, ROOT, Result, caten, finished, start

import caten as library

SAMPLE = str(ROOT / "samples" / "axpy.toml")


def works(path: str) -> bool:
    """Does the library compute?"""
    x, y = np.arange(40, dtype=np.float32), np.ones(40, np.float32)
    return bool((library.load(path)(2.0, x, y) == 2 * np.arange(40) + 1).all())


def clean(result: Result) -> bool:
    """A person can read it: no traceback, and an error says which."""
    return "Traceback" not in result.err and "internal error" not in result.err and (result.code == 0 or "error:" in result.err)


def leftovers(folder: Path) -> list[str]:
    """Half-written files."""
    return [p.name for p in folder.iterdir() if p.name.startswith(".") or p.suffix in (".tmp", ".part")]


def unnamed(n: int) -> bytes:
    """A library but for the name that it says it has."""
    return Path(f"lib{n}.so").read_bytes().replace(f"\0lib{n}.so\0".encode(), b"\0lib_.so\0")


def test_eight_processes_one_of_them_killed(cold: Path, tmp_path: Path, tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    slow = cold / "slow"
    slow.write_text(f'#!/bin/sh\n[ "$1" = --version ] || {{ echo started >> {tmp_path}/started; sleep 0.5; }}\nexec gcc "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    running = [start(SAMPLE, "-O1", "-o", f"lib{n}.so") for n in range(8)]
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running[3].send_signal(signal.SIGKILL)
    results = [finished(p) for p in running]
    assert [r.code for r in results] == [0, 0, 0, -signal.SIGKILL, 0, 0, 0, 0]
    assert {r.err for r in results} == {""}
    libraries = {unnamed(n) for n in range(8) if n != 3}
    assert len(libraries) == 1
    assert works("lib0.so")
    assert not (cold / "lib3.so").exists()
    (tmp_path / "started").unlink()
    after = caten(SAMPLE, "-O1", "-o", "lib3.so")
    assert (after.code, after.err) == (0, "")
    assert unnamed(3) in libraries
    assert not (tmp_path / "started").exists()                               # from the cache


@pytest.fixture
def full_disk(tmp_path: Path) -> list[str]:
    """What starts a command for which `tmp_path/full` is a disk of 16 KiB."""
    (tmp_path / "full").mkdir()
    words = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=16k,mode=700 none {tmp_path}/full && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs unshare and the right to mount")
    return words


@pytest.mark.parametrize(("full", "code"), [("CATEN_CACHE_DIR", 0), ("TMPDIR", 3), ("output", 1)])
def test_a_full_disk(full: str, code: int, full_disk: list[str], cold: Path, tmp_path: Path, tool: Any) -> None:
    tool("gcc")
    place = tmp_path / "full"
    words = [SAMPLE, "-O1", "--emit=so,c", "-o", str(place / "axpy.so") if full == "output" else "axpy.so"]
    env = os.environ | ENVIRONMENT | ({} if full == "output" else {full: str(place)})
    show = f'"$@"; code=$?; ls -A {place} >&2; exit $code'
    done = subprocess.run([*full_disk, "sh", "-c", show, "sh", sys.executable, "-m", "caten", *words], env=env, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert clean(Result(done.returncode, done.stdout, done.stderr))
    assert leftovers(cold) == []
    match full:
        case "CATEN_CACHE_DIR":
            assert "warning: " in done.stderr
            assert "E650" in done.stderr
            assert works("axpy.so")
        case "TMPDIR":
            assert "No space left" in done.stderr
            assert not (cold / "axpy.so").exists()
        case _:
            assert "No space left" in done.stderr
            assert "E909" in done.stderr
            assert ".tmp" not in done.stderr.split("\n", 1)[1]
    after = caten(SAMPLE, "-O1")
    assert (after.code, after.err) == (0, "")
    assert works("axpy.so")


def test_files_that_may_not_grow(cold: Path, tool: Any) -> None:
    """A quota: whatever cannot be written is not there afterwards, at any limit."""
    tool("gcc")
    codes = set()
    for limit in (0, 2_000, 9_000):
        result = finished(start(SAMPLE, "-O1", "--emit=so,c", preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))))
        codes.add(result.code)
        assert clean(result), result.err
        assert leftovers(cold) == []
        if (cold / "axpy.so").exists():
            assert works("axpy.so")
            (cold / "axpy.so").unlink()
    assert codes <= {0, 1, 3}
    assert codes != {0}
    after = caten(SAMPLE, "-O1")
    assert (after.code, after.err) == (0, "")
    assert works("axpy.so")


@pytest.mark.parametrize("filled", [False, True])
def test_a_cache_that_may_only_be_read(filled: bool, cold: Path, tmp_path: Path, tool: Any) -> None:
    tool("gcc")
    cache = tmp_path / "cache"
    if filled:
        assert caten(SAMPLE, "-O1").code == 0
        (cold / "axpy.so").unlink()
    cache.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "caten", SAMPLE, "-O1"]
    if os.geteuid() == 0:
        tool("setpriv")
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *command]
    cache.chmod(0o500)
    try:
        done = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True)
    finally:
        cache.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert ("warning: " in done.stderr) != filled, done.stderr
    assert works("axpy.so")


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "emptied"])
def test_torn_files_in_the_cache(damage: str, cold: Path, tmp_path: Path, tool: Any) -> None:
    tool("gcc")
    assert caten(SAMPLE, "-O1").code == 0
    right = (cold / "axpy.so").read_bytes()
    torn = 0
    for file in sorted((tmp_path / "cache").rglob("*")):
        if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
            content = {"truncated": right[:len(right) // 2], "overwritten": right[:-64] + b"\0" * 64, "emptied": b""}[damage]
            file.write_bytes(content)
            torn += 1
    assert torn >= 1
    (cold / "axpy.so").unlink()
    result = caten(SAMPLE, "-O1")
    assert result.code == 0
    assert "E651" in result.err
    assert (cold / "axpy.so").read_bytes() == right
    again = caten(SAMPLE, "-O1")
    assert (again.code, again.err) == (0, "")
    compiled = library.compile(SAMPLE, opt=1)
    assert (compiled(2.0, np.ones(3, np.float32), np.ones(3, np.float32)) == 3).all()
