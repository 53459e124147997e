"""How command lines end: exit codes, messages, no traceback."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from caten.cli import app
from caten.errors import CatenError, Diagnostic, NothingMatched, ToolError, UsageError
from spec_texts import AXPY

ROOT = Path(__file__).resolve().parents[2]


def raising(monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    """`caten explain` now raises this."""
    def fail() -> None:
        raise problem
    monkeypatch.setattr(app.Group, "get_command", lambda *_: click.Command("explain", callback=fail))


@pytest.mark.parametrize(("problem", "code"), [
    (CatenError(Diagnostic("E301", "m")), 1), (UsageError(Diagnostic("E904", "m")), 2), (ToolError(Diagnostic("E620", "m")), 3),
    (NothingMatched(Diagnostic("E920", "m")), 5),
    (ZeroDivisionError("secret"), 4), (RecursionError(), 4), (MemoryError(), 4), (KeyboardInterrupt(), 130),
])
def test_exit_codes(caten: Any, monkeypatch: pytest.MonkeyPatch, problem: BaseException, code: int) -> None:
    raising(monkeypatch, problem)
    result = caten("explain")
    assert result.code == code
    assert "Traceback" not in result.err
    assert result.out == ""


def test_an_internal_error_is_short_and_its_traceback_is_kept(caten: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, ZeroDivisionError("secret"))
    result = caten("explain")
    assert "internal error: ZeroDivisionError [E940]" in result.err
    assert "secret" not in result.err
    assert "report" in result.err
    kept = Path(result.err.split("the details are in ")[1].split("\n")[0])
    assert "Traceback" in kept.read_text()
    assert "secret" in kept.read_text()
    assert kept.is_relative_to(folder.parent / "cache")


def test_a_closed_pipe_ends_quietly(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caten.cli.boundary._silence", lambda: None)
    raising(monkeypatch, BrokenPipeError())
    result = caten("explain")
    assert (result.code, result.err) == (0, "")


def test_unknown_option_with_did_you_mean(caten: Any) -> None:
    result = caten("explain", "--lst")
    assert result.code == 2
    assert "unknown option '--lst'" in result.err
    assert "did you mean '--list'?" in result.err


def test_json_format_holds_for_errors_of_the_command_line_too(caten: Any) -> None:
    result = caten("gemm.toml", "-Q", "--diagnostics-format=json")
    assert result.code == 2
    assert [d["code"] for d in json.loads(result.err)] == ["E901"]


def test_explain(caten: Any) -> None:
    result = caten("explain", "e909", "E902")
    assert result.code == 0
    assert result.out.startswith("# An output that cannot be written\n")
    assert "# No input" in result.out
    assert "\x1b" not in result.out
    listing = caten("explain", "--list").out.splitlines()
    assert [line.split()[0] for line in listing] == sorted(line.split()[0] for line in listing)
    unknown = caten("explain", "E9O9")
    assert unknown.code == 2
    assert "did you mean 'E909'?" in unknown.err
    assert caten("explain").code == 2


def test_cache(caten: Any, folder: Path) -> None:
    place = folder.parent / "cache"
    assert caten("cache", "dir").out == f"{place}\n"
    assert not place.exists()
    assert "libraries     0\n" in caten("cache", "stats").out
    assert caten("cache", "clean").out == "nothing to remove\n"
    (place / "failed" / "x").mkdir(parents=True)
    (place / ("0" * 64)).mkdir()
    assert "libraries     1\n" in caten("cache", "stats").out
    assert "removed 1 libraries, 1 kept failures" in caten("cache", "clean").out
    assert sorted(place.iterdir()) == []


def test_a_cache_that_may_not_be_used_is_a_warning(caten: Any, folder: Path) -> None:
    place = folder.parent / "cache"
    place.mkdir()
    place.chmod(0o777)
    result = caten("cache", "stats")
    assert result.code == 0
    assert "warning:" in result.err
    assert "E650" in result.err


# -- through a process of its own: start-up, signals, pipes

def process(*arguments: str, **kwargs: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "caten", *arguments], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def modules_after(arguments: list[str]) -> set[str]:
    code = ("import atexit, sys; sys.argv = ['caten', *sys.argv[1:]]\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
            "from caten.cli.main import run\nrun()")
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
                          capture_output=True, text=True)
    assert "caten.cli.main" in done.stderr
    return set(done.stderr.split())


def test_foreign_code_finishes_in_the_ordinary_way() -> None:
    """What C has buffered is written at the end."""
    script = ("import ctypes, sys, click\nfrom caten.cli import app, main\n"
              "app.Group.get_command = lambda *_: click.Command('explain', callback=lambda: ctypes.CDLL(None).printf(b'from C'))\n"
              "sys.argv = ['caten', 'explain']\nmain.run()\n")
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True)
    assert done.stdout == "from C"


def test_version_imports_nothing_to_speak_of() -> None:
    loaded = modules_after(["--version"])
    assert {name for name in loaded if name.partition(".")[0] == "caten"} == {"caten", "caten.cli", "caten.cli.main", "caten.cli.standard_streams", "caten.early_interrupt", "caten.version"}
    assert not {"click", "numpy", "islpy", "rich", "cffi"} & loaded


def test_ctrl_c_is_taken_before_the_commands_are_looked_for() -> None:
    """Until then an interruption prints a traceback."""
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "caten", "--version"], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=True)
    loaded = [line.split("|")[-1].strip() for line in done.stderr.splitlines()]
    assert loaded.index("caten.early_interrupt") < min([n for n, name in enumerate(loaded) if name.startswith("caten.cli")])


@pytest.mark.parametrize("arguments", [["--help"], ["build", "--help"], ["explain", "--list"],
                                       ["parse", str(ROOT / "samples/gemm.toml"), "-o", os.devnull]])
def test_start_up_imports_no_heavy_module(arguments: list[str]) -> None:
    assert not {"numpy", "islpy", "rich", "cffi", "_cffi_backend", "ctypes"} & modules_after(arguments)


@pytest.mark.slice(2)
@pytest.mark.parametrize("words", ["explain --list", "--help", "build --help", "new --help", "man", "doctor", "--version", "check -", "fmt -"])
def test_stdout_on_a_full_disk_is_a_diagnostic(words: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "caten", *words.split()], input=AXPY, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True,
                              stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "cannot write stdout" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(("words", "closed", "code", "said"), [("explain --list", ">&-", 1, "cannot write stdout: Bad file descriptor"),
                                                                ("check no.toml", "2>&-", 2, ""), ("check -", "<&-", 1, "stdin is empty"),
                                                                ("explain --list", ">&- 2>&- <&-", 1, "")])
def test_standard_streams_that_the_parent_closed(words: str, closed: str, code: int, said: str) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m caten {words} {closed}"], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True,
                          capture_output=True)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    running = process("explain", "--list")
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait(10) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_at_once_and_its_children_with_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    script = ("import sys, subprocess, click\nfrom caten.cli import app, main\n"
              "def work():\n    child = subprocess.Popen(['sh', '-c', 'sleep 60 & echo $! $$; wait'])\n    child.wait()\n"
              "app.Group.get_command = lambda *_: click.Command('explain', callback=work)\nsys.argv = ['caten', 'explain']\nmain.run()\n")
    running = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    children = [int(word) for word in running.stdout.readline().split()]
    start = time.monotonic()
    running.send_signal(number)
    assert running.wait(10) == code
    assert time.monotonic() - start < 1
    for child in children:
        assert not alive(child)


def alive(pid: int) -> bool:
    """Is it running? A zombie is not."""
    for _ in range(20):
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return False
        except OSError:
            return False
        time.sleep(0.05)
    return True


def test_an_empty_name_is_no_folder(caten: Any) -> None:
    done = caten("")
    assert done.code == 2
    assert "the name of an input is empty" in done.err


def test_an_interrupt_before_the_command_runs_ends_the_process_silently(folder: Path) -> None:
    code = "import os, signal, caten.cli.main\nos.kill(os.getpid(), signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_an_interrupt_that_the_parent_ignores_is_ignored(folder: Path) -> None:
    code = "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nimport caten.cli.main\nos.kill(os.getpid(), signal.SIGINT)\nprint('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "on\n")


LONG = "x" * 5000


@pytest.mark.parametrize("arguments", [(LONG,), ("compile", LONG), ("check", LONG), ("run", "axpy.toml", f"x={LONG}"), (f"@{LONG}",), ("axpy.toml", "-r", f"{LONG}.py"),
                                       ("axpy.toml", "-s", LONG), ("bench", "--compare", LONG, LONG), ("tune", "--merge", LONG), (f"--{LONG}",),
                                       ("axpy.toml", f"--print={LONG}"), ("explain", LONG), ("axpy.toml", "--test", f"N={'2' * 5000}"), ("axpy.toml", f"-DN={'2' * 5000}")])
def test_no_argument_is_too_long_to_be_refused(caten: Any, arguments: tuple[str, ...]) -> None:
    result = caten(*arguments)
    assert result.code == 2, result.err[:500]
    assert len(result.err) < 7000
    assert "E940" not in result.err
    assert max(map(len, result.err.splitlines())) < 1200


@pytest.mark.parametrize("name", ["a\nb.toml", "\x1b[2J.toml", "\x9b2J.toml", "\u202egnp.toml"])
@pytest.mark.parametrize("command", ["parse", "check", "build", "fmt", "test", "bench", "tune"])
def test_a_hostile_name_is_escaped(caten: Any, folder: Path, command: str, name: str) -> None:
    for content in (None, "x = ", "{}"):
        if content is not None:
            (folder / name).write_text(content)
        result = caten(command, name)
        assert result.code in (1, 2)
        assert "E940" not in result.err
        assert not {"\x1b", "\x9b", "\u202e"} & set(result.err + result.out)


@pytest.mark.parametrize(("arguments", "said"), [(("tune", "--merge", "a.json"), "E932"), (("bench", "--compare", "a.json", "a.json"), "E931"), (("report", "merge", "a.json"), "E850")])
def test_documents_of_no_end_or_of_no_sense_are_refused(caten: Any, folder: Path, arguments: tuple[str, ...], said: str) -> None:
    for text in ("[" * 100_000, '{"schema_version": 1e999}', "9" * 5000, '{"\\u001b[2J": 1, "\\u001b[2J": 2}', "\ufeff{}"):
        (folder / "a.json").write_text(text, "utf-8")
        result = caten(*arguments)
        assert result.code in (1, 2)
        assert said in result.err
        assert "\x1b" not in result.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e400", "0", "-1", "1e9", "2" * 5000, "x", ""])
@pytest.mark.parametrize("arguments", [("tune", "axpy.toml", "--budget"), ("axpy.toml", "--cc-timeout"), ("bench", "axpy.toml", "--batch"),
                                       ("test-runtime", "--timeout")])
def test_a_time_that_is_never_over_is_refused(caten: Any, arguments: tuple[str, ...], seconds: str) -> None:
    result = caten(*arguments, seconds)
    assert result.code == 2
    assert "E900" in result.err
