"""Compilers that are there and do not run: another one is taken, and the message is about the compiler. The embedded clang always has a folder."""
from __future__ import annotations

import ctypes
import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from caten.errors import ToolError
from caten.runtime import toolchain, zig
from caten.runtime.library_cache import COMPILER, PROBES, Cache
from caten.runtime.protocol import Host, Unavailable
from caten.runtime.toolchain import Compiler

WORKS = 'for word; do [ "$before" = -o ] && echo made > "$word"; before=$word; done\n'
BROKEN = {"refuses": "echo 'error: no place for my cache' >&2; exit 1", "crashes": "kill -SEGV $$", "writes nothing": "exit 0"}


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def no_program(folder: Path, name: str) -> Path:
    """It may be executed, says the file system; it cannot be."""
    file = folder / name
    file.write_bytes(b"\x7fELF of another machine")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("fault", [*BROKEN, "is no program"])
def test_the_next_compiler_is_taken(fault: str, tmp_path: Path) -> None:
    if fault in BROKEN:
        script(tmp_path, "clang-19", BROKEN[fault])
    else:
        no_program(tmp_path, "clang-19")
    host = Host(path=str(tmp_path), cache=tmp_path / "cache")
    with pytest.raises(Unavailable, match=r"none that runs, tried clang-19") as info:
        toolchain.choose(None, ("clang", "gcc"), host)
    assert "clang-19" in str(info.value.diagnostics[0].notes)
    script(tmp_path, "gcc", WORKS)
    assert toolchain.choose(None, ("clang", "gcc"), host).name == "gcc"
    assert toolchain.cross(None, ("clang", "gcc"), host, lambda c: True, "a toaster").name == "gcc"
    (tmp_path / "clang-19").unlink()
    script(tmp_path, "clang-19", WORKS)                                       # a no is not remembered: what was missing may be installed
    assert toolchain.choose(None, ("clang", "gcc"), host).name == "clang-19"


def test_that_it_runs_is_asked_once(tmp_path: Path) -> None:
    script(tmp_path, "gcc", f'echo run >> "{tmp_path}/runs"\n{WORKS}')
    host = Host(path=str(tmp_path), cache=tmp_path / "cache")
    for _ in range(3):
        assert toolchain.choose(None, ("gcc",), host).name == "gcc"
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize("fault", ["refuses", "crashes"])
def test_a_compiler_that_stopped_running_is_blamed_itself(fault: str, tmp_path: Path) -> None:
    file = script(tmp_path, "gcc", f'[ -e "{tmp_path}/broken" ] && {{ {BROKEN[fault]}; }}\n{WORKS}')
    host = Host(path=str(tmp_path), cache=tmp_path / "cache", temp=tmp_path)
    compiler = Compiler((str(file),), "gcc", str(file))
    assert toolchain.runs(compiler, host)
    (tmp_path / "broken").touch()
    with pytest.raises(ToolError, match="E626: the C compiler cannot be used") as info:
        toolchain.compile_c(compiler, [], [], "int x;", tmp_path / "x.so", "so", host)
    assert "caten: please report" not in str(info.value)
    assert not toolchain.runs(compiler, host)                                 # the yes of before is forgotten


def test_a_complaint_about_the_c_is_still_one(tmp_path: Path) -> None:
    file = script(tmp_path, "gcc", f'case "$*" in *probe.o) ;; *) echo "library.c:1: oh no" >&2; exit 1;; esac\n{WORKS}')
    compiler = Compiler((str(file),), "gcc", str(file))
    with pytest.raises(ToolError, match=r"(?s)E623.*oh no.*a fault of caten"):
        toolchain.compile_c(compiler, [], [], "int x;", tmp_path / "x.so", "so", Host(temp=tmp_path))


# ---- the folders of the embedded clang

@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)


@pytest.mark.usefixtures("unnamed")
def test_its_library_lies_in_the_cache(tmp_path: Path) -> None:
    found = zig.surroundings(Host(cache=tmp_path / "cache"), tmp_path / "work")
    assert found == {"ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "cache" / COMPILER), "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "work" / "zig")}
    (tmp_path / "cache" / COMPILER / "library").touch()
    (tmp_path / "cache" / PROBES).mkdir()
    Cache(tmp_path / "cache", lambda warning: None).clean()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("fault", ["no cache", "below a file", "a link", "for all to write", "of another user", "full"])
def test_without_a_cache_it_has_a_temporary_folder(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache: Path | None = tmp_path / "cache"
    match fault:
        case "no cache":
            cache = None
        case "below a file":
            (tmp_path / "file").touch()
            cache = tmp_path / "file" / "cache"
        case "a link":
            (tmp_path / "real").mkdir(mode=0o700)
            (tmp_path / "cache").symlink_to("real")
        case "for all to write":
            (tmp_path / "cache").mkdir()
            (tmp_path / "cache").chmod(0o777)
        case "of another user":
            (tmp_path / "cache").mkdir(mode=0o700)
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        case _:
            monkeypatch.setattr(zig, "LEAST_FREE", 1 << 62)
    host = Host(cache=cache, temp=tmp_path)
    folder = Path(zig.surroundings(host, tmp_path / "work")["ZIG_GLOBAL_CACHE_DIR"])
    assert folder.parent == tmp_path
    assert folder.name.startswith("caten-zig-")
    assert zig.surroundings(host, tmp_path / "work")["ZIG_GLOBAL_CACHE_DIR"] == str(folder)           # one for all compilations of a process


LINKED = {"alone": ("__attribute__((visibility(\"default\"))) double ct_f(double x) { return sin(x); }", True),
          "with a complex product": ("__attribute__((visibility(\"default\"))) double ct_f(double x)\n"
                                     "{ double _Complex z = x + x * 1.0i; return creal(z * z * z); }", False)}


@pytest.mark.usefixtures("unnamed")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is linked with its library at once")
@pytest.mark.parametrize("kind", LINKED)
def test_a_library_is_linked_without_the_helpers_that_it_does_not_call(kind: str, tmp_path: Path) -> None:
    """A first compilation would wait for them for seconds."""
    compiler = toolchain.embedded()
    if compiler is None:
        pytest.skip("needs ziglang")
    text, is_alone = LINKED[kind]
    host = Host(cache=tmp_path / "cache", temp=tmp_path)
    (tmp_path / "cache").mkdir(mode=0o700)
    toolchain.compile_c(compiler, ["-O1", "-fPIC", "-fvisibility=hidden"], ["-lm"], f"#include <complex.h>\n#include <math.h>\n{text}\n",
                        tmp_path / "x.so", "so", host)
    built = [file.name for file in (tmp_path / "cache" / COMPILER).rglob("libcompiler_rt.a")]
    assert (built == []) is is_alone
    function = ctypes.CDLL(str(tmp_path / "x.so")).ct_f
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert function(1.0) == pytest.approx(math.sin(1.0) if is_alone else -2.0)


def test_the_temporary_folder_is_gone_with_the_process(tmp_path: Path) -> None:
    code = ("import os, pathlib, sys\nfrom caten.runtime import zig\nfrom caten.runtime.protocol import Host\n"
            "found = zig.surroundings(Host(temp=pathlib.Path(sys.argv[1])), pathlib.Path('w'))['ZIG_GLOBAL_CACHE_DIR']\n"
            "if os.fork() == 0:\n    sys.exit(0)\n"
            "os.wait()\nassert os.path.isdir(found), 'a forked process must leave it'\n")
    env = {k: v for k, v in os.environ.items() if k != "ZIG_GLOBAL_CACHE_DIR"} | {"PYTHONPATH": str(Path(zig.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=True)
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "/somewhere")
    assert list(zig.surroundings(Host(), tmp_path)) == ["ZIG_LOCAL_CACHE_DIR"]


@pytest.mark.parametrize("words", [("zig", "cc"), ("python3", "-m", "ziglang", "cc")])
def test_its_archiver(words: tuple[str, ...]) -> None:
    assert Compiler(words, "zig", "zig").archiver() == [*words[:-1], "ar"]
