"""Building: what is written, where, with which streams and exit codes."""
from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from caten import __version__
from caten.cli.app import COMMANDS
from caten.runtime import toolchain

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def made(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".toml")


def test_a_library_comes_with_header_and_manifest_in_the_current_directory(building: Any, folder: Path) -> None:
    (folder / "specs").mkdir()
    (folder / "axpy.toml").rename(folder / "specs" / "axpy.toml")
    result = building("specs/axpy.toml")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert made(folder) == ["axpy.h", "axpy.json", "axpy.so", "specs"]
    assert made(folder / "specs") == []
    assert os.access(folder / "axpy.so", os.X_OK)
    assert json.loads((folder / "axpy.json").read_text())["symbol"] == "ct_axpy"
    assert "ct_axpy(" in (folder / "axpy.h").read_text()


def test_several_specs_make_one_library(building: Any, folder: Path) -> None:
    (folder / "out").mkdir()
    assert building("axpy.toml", "gemm.toml", "-O0", "-o", "out/libops.so").code == 0
    assert made(folder / "out") == ["libops.h", "libops.json", "libops.so"]
    assert [op["op"] for op in json.loads((folder / "out/libops.json").read_text())["ops"]] == ["Axpy", "Gemm"]
    refused = building("axpy.toml", "gemm.toml")
    assert refused.code == 2
    assert "-o libops.so" in refused.err


@pytest.mark.parametrize(("options", "files"), [
    (["-S"], ["axpy.s"]), (["-c"], ["axpy.o"]), (["-o", "x.c"], ["x.c"]), (["-o", "x.a"], ["x.a", "x.h", "x.json"]), (["-o", "x.h"], ["x.h"]),
    (["-o", "x.json"], ["x.json"]), (["-o", "x.py"], ["x.py"]), (["-E", "-o", "x.op"], ["x.op"]), (["--emit=ir=a,schedule=b"], ["a", "b"]),
    (["--emit=example,depfile"], ["axpy.d", "axpy_main.c"]),
])
def test_each_kind_of_output(building: Any, folder: Path, options: list[str], files: list[str]) -> None:
    result = building("axpy.toml", "-O0", *options)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert made(folder) == files
    for name in files:
        assert (folder / name).stat().st_size > 0


@pytest.mark.parametrize(("options", "files"), [
    ("-E -S", []), ("-S -E", []), ("-c -E", []), ("-c -S -E", []), ("-S -c", ["axpy.s"]), ("-c -S", ["axpy.s"]), ("-c -S -o x.s", ["x.s"]),
    ("-S -E --emit=header", ["axpy.h", "axpy.spec.lisp"]),
])
def test_of_several_stages_the_earliest_counts(building: Any, folder: Path, options: str, files: list[str]) -> None:
    """As gcc has it, in any order; --emit is beside them."""
    result = building("axpy.toml", "-O0", *options.split())
    assert (result.code, result.err) == (0, "")
    assert (made(folder), result.out.startswith("(op Axpy")) == (files, not files)


def test_what_goes_to_stdout_is_the_product_alone(building: Any, folder: Path) -> None:
    assert building("-E", "axpy.toml").out == building("parse", "axpy.toml").out
    assert ".globl\tct_axpy" in building("-S", "axpy.toml", "-O0", "-o", "-").out
    assert building("--emit=c=-", "axpy.toml").out == building("render", "axpy.toml").out
    assert made(folder) == []
    for words in (["-o", "-"], ["-c", "-o", "-"], ["--emit=so=-"]):
        assert building("axpy.toml", *words).code == 2


def test_the_example_builds_with_its_first_line_and_checks_itself(building: Any, folder: Path) -> None:
    assert building("axpy.toml", "-O0", "--emit=so,example").code == 0
    line = (folder / "axpy_main.c").read_text().split("\n", 1)[0].removeprefix("/* ").removesuffix(" */")
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ok" in done.stdout


def test_save_temps_keeps_every_stage(building: Any, folder: Path) -> None:
    assert building("axpy.toml", "-O", "0", "-save-temps").code == 0
    assert made(folder) == ["axpy.c", "axpy.h", "axpy.ir.lisp", "axpy.json", "axpy.s", "axpy.schedule.lisp", "axpy.so", "axpy.spec.lisp"]
    assert (folder / "axpy.spec.lisp").read_text() == building("parse", "axpy.toml", "-O0").out


def test_the_same_bytes_every_time_and_from_every_stage(building: Any, folder: Path) -> None:
    assert building("axpy.toml", "-O0", "-o", "a.so").code == 0
    first = (folder / "a.so").read_bytes()
    assert building("axpy.toml", "-O0", "-o", "a.so", "--no-cache").code == 0
    assert (folder / "a.so").read_bytes() == first
    assert building("compile", "-", "-o", "c.so", stdin=building("schedule", "axpy.toml", "-O0").out).code == 0
    assert (folder / "c.h").read_text() == (folder / "a.h").read_text()


def test_dry_run_prints_the_commands_and_does_nothing(building: Any, folder: Path) -> None:
    result = building("axpy.toml", "-###", "-lfoo", "-L/bar", "-O0")
    assert result.code == 0
    assert result.out == ""
    assert "gcc" in result.err
    assert "-L/bar -lfoo" in result.err
    assert "-shared -Wl,-soname,axpy.so axpy.c -o axpy.so" in result.err
    assert made(folder) == []


def test_v_shows_the_commands(building: Any) -> None:
    result = building("axpy.toml", "-O0", "-v", "--no-cache")
    assert result.out == ""
    assert "compiled with: " in result.err
    building("axpy.toml", "-O0")
    assert "from the cache" in building("axpy.toml", "-O0", "-v").err


def test_cflags_and_config_reach_the_compiler(building: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-DSOMETHING=1 -funroll-loops")
    shown = building("axpy.toml", "-###", "--config", "OPT=1", "-march=x86-64", "-g").err
    for word in ("-DSOMETHING=1", "-funroll-loops", "-O1", "-march=x86-64", " -g "):
        assert word in shown
    assert "clang-of-mine" in building("axpy.toml", "--config", "CC=clang-of-mine").err     # the command line wins over $CC


def test_dependencies_for_make(building: Any, folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "axpy.toml").write_text((folder / "axpy.toml").read_text())
    (folder / "user.toml").write_text('include = ["lib/axpy.toml"]\n' + (folder / "gemm.toml").read_text())
    assert building("user.toml", "-O0", "-MD", "-MP", "-o", "lib/u.so").code == 0
    text = (folder / "lib/u.d").read_text()
    assert text.startswith("lib/u.so:")
    for name in ("user.toml", "lib/axpy.toml", "clang.py"):
        assert name in text
    assert "\n\nlib/axpy.toml:\n" in text
    assert building("user.toml", "-O0", "-c", "-MF", "x.d", "-MT", "target").code == 0
    assert (folder / "x.d").read_text().startswith("target: \\\n  user.toml")


def test_options_from_a_file(building: Any, folder: Path) -> None:
    (folder / "args").write_text("-O0 axpy.toml\n-o 'my lib.so'\n")
    assert building("@args").code == 0
    assert made(folder) == ["args", "my lib.h", "my lib.json", "my lib.so"]


def test_outputs_that_cannot_be_written(building: Any, folder: Path) -> None:
    for path in ("no/x.so", "/dev/full/x.so"):
        result = building("axpy.toml", "-O0", "-o", path)
        assert result.code == 1
        assert "E909" in result.err
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.geteuid() != 0:
            assert building("axpy.toml", "-O0").code == 1
    finally:
        folder.chmod(0o700)
    assert made(folder) == []


@pytest.mark.parametrize(("cc", "code"), [("nothing-of-that-name", "E610"), ("false", "E626"), ("true", "E625"), ("gcc;rm", "E621")])
def test_a_compiler_that_is_missing_or_fails_is_exit_3(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, cc: str, code: str) -> None:
    monkeypatch.setenv("CC", cc)
    result = building("axpy.toml", "-O0")
    assert result.code == 3
    assert code in result.err
    assert made(folder) == []


@pytest.mark.parametrize("wrong", ['echo garbage > "$out"', 'gcc "$@" && truncate -s 3000 "$out"'])
def test_a_compiler_that_writes_no_library_is_exit_3(wrong: str, building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "wrong").write_text(f'#!/bin/sh\nfor word; do [ "$before" = -o ] && out=$word; before=$word; done\n{wrong}\n')
    (folder / "wrong").chmod(0o755)
    monkeypatch.setenv("CC", "./wrong")
    for _ in range(2):                                     # it is not remembered
        result = building("axpy.toml", "-O0")
        assert result.code == 3
        assert "E625" in result.err
        assert "the source is kept in" in result.err
        assert made(folder) == ["wrong"]


def test_a_compiler_that_hangs_is_stopped(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "slow").write_text("#!/bin/sh\nsleep 60\n")
    (folder / "slow").chmod(0o755)
    monkeypatch.setenv("CC", str(folder / "slow"))
    result = building("axpy.toml", "-O0", "--cc-timeout", "0.3")
    assert result.code == 3
    assert "E622" in result.err


def test_a_runtime_without_a_compiler(caten: Any, folder: Path) -> None:
    result = caten("axpy.toml", "-r", "numpy", "--test", "N=5")
    assert result.code == 0, result.err
    assert "library axpy.numpy.json" in result.out
    assert made(folder) == ["axpy.numpy.json", "axpy.numpy.manifest.json"]
    for words in (["-S"], ["-o", "x.so"], ["-o", "x.h"], ["--emit=example"]):
        refused = caten("axpy.toml", "-r", "numpy", *words)
        assert refused.code == 2
        assert "E914" in refused.err


# -- running

def test_the_test_report_is_the_product(building: Any, folder: Path) -> None:
    result = building("axpy.toml", "-O0", "--test", "n = 100, A=2.0")
    assert result.code == 0, result.err
    assert result.err == ""
    for word in ("Axpy(", "ok", "N=100", "GFLOP/s", "compiled by", "library axpy.so", "int32_t ct_axpy(", "caten.load('axpy.so')"):
        assert word in result.out
    assert (folder / "axpy.so").exists()


def test_several_operators_take_their_own_sizes(building: Any) -> None:
    result = building("axpy.toml", "gemm.toml", "-O0", "-o", "libops.so", "--test", "M=2,N=3,K=4")
    assert result.code == 0, result.err
    assert result.out.count(": ok") == 2


@pytest.mark.parametrize(("text", "code"), [("M=2,N=3", "E906"), ("M=2,N=3,K=-1", "E905"), ("M=2,N=3,K=4,Q=1", "E904"), ("M", "E904")])
def test_settings_are_checked_before_anything_is_compiled(building: Any, folder: Path, text: str, code: str) -> None:
    result = building("gemm.toml", "--test", text)
    assert result.code == 2
    assert code in result.err
    assert made(folder) == []


def test_a_wrong_kernel_is_exit_1(building: Any, folder: Path) -> None:
    (folder / "axpy.toml").write_text((folder / "axpy.toml").read_text() + '\n[test]\ncode = "lambda a, X, Y: a * X - Y"\n')
    result = building("axpy.toml", "-O0", "--test", "N=10")
    assert result.code == 1
    assert "WRONG" in result.out


def test_the_tests_of_a_spec(building: Any, folder: Path) -> None:
    result = building("test", "axpy.toml", "gemm.toml", "-O0")
    assert result.code == 0, result.err + result.out
    assert result.out.endswith("2 of 2 passed in 2 files\n")
    nothing = building("test", "axpy.toml", "-O0", "--only", "nothing")
    assert nothing.code == 5
    (folder / "gemm.toml").write_text((folder / "gemm.toml").read_text().replace("A @ B + C", "A @ B - C"))
    assert building("test", "gemm.toml", "-O0").code == 1


# -- about the installation

def test_runtimes_shows_broken_plugins_and_goes_on(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "plugins").mkdir()
    (folder / "plugins" / "bad.py").write_text("1 / 0\n")
    monkeypatch.setenv("CATEN_RUNTIME_PATH", str(folder / "plugins"))
    result = building("runtimes")
    assert result.code == 0
    lines = result.out.splitlines()
    assert any(line.startswith("bad ") and "broken" in line and "ZeroDivisionError" in line for line in lines)
    assert any(line.startswith("gcc ") and "ready" in line for line in lines)
    assert building("parse", "axpy.toml").code == 0
    assert building("parse", "axpy.toml", "-r", "bad").code == 2


def test_doctor(building: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = building("doctor")
    assert result.code == 0
    for word in ("compilers", "OpenMP", "runtimes", "cache", "numpy", "islpy", "from $CC"):
        assert word in result.out
    monkeypatch.setenv("CC", "no-such-compiler")
    broken = building("doctor")
    assert broken.code == 3
    assert "to install" in broken.out


def test_doctor_names_what_a_runtime_lacks_and_what_is_broken(building: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "extra").mkdir()
    (folder / "extra" / "bad.py").write_text("1 / 0\n")
    (folder / "extra" / "odd.py").write_text(
        "from caten.runtime.discover import base\nfrom caten.runtime.protocol import Unavailable\n"
        "class Odd(base('numpy')):\n    name = 'odd'\n    def available(self): raise Unavailable('no odd machine', 'apt install odd')\n")
    monkeypatch.setenv("CATEN_RUNTIME_PATH", str(folder / "extra"))
    result = building("doctor")
    assert result.code == 0
    assert "odd         unavailable: no odd machine" in result.out
    assert "runtime odd: apt install odd" in result.out
    assert "bad         broken" in result.out


@pytest.mark.parametrize(("what", "word"), [
    ("runtimes", "clang\n"), ("ops", "sigmoid"), ("dtypes", "f32     32 float float32"), ("config", "MARCH=native"), ("cache-dir", "cache"),
    ("cc", "gcc"), ("cpu", ""), ("target", "-linux-"), ("version", __version__),
])
def test_print(building: Any, what: str, word: str) -> None:
    result = building(f"--print={what}")
    assert (result.code, result.err) == (0, "")
    assert word in result.out
    assert result.out.strip()


def test_the_target_and_the_version_in_gccs_spelling(building: Any) -> None:
    assert building("-dumpversion").out == f"{__version__}\n"
    said = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    assert building("-dumpmachine", "-r", "gcc").out == said
    embedded = toolchain.embedded()
    assert embedded is not None
    triple = building("-dumpmachine", "--config", f"CC={embedded.file} cc").out      # what a build is for, not what zig cc prints
    assert triple in ("x86_64-unknown-linux-gnu\n", "aarch64-unknown-linux-gnu\n")
    assert building("-dumpmachine", "-r", "riscv").out == "riscv64-unknown-linux-musl\n"
    refused = building("-dumpmachine", "-r", "numpy")
    assert (refused.code, refused.out) == (2, "")
    assert "runtime numpy has no C compiler" in refused.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(building: Any, command: str) -> None:
    result = building(command, "--help")
    assert result.code == 0
    assert "Examples:" in result.out
    assert f"caten {command}" in result.out or command == "build"


def test_help_lists_every_command(building: Any) -> None:
    out = building("--help").out
    for command in COMMANDS:
        assert f"  {command} " in out
    assert building("-h").out == out


# -- interrupted

@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_leaves_nothing(folder: Path, number: signal.Signals, code: int) -> None:
    (folder / "slow").write_text(f"#!/bin/sh\necho $$ > {folder}/pid\nsleep 60 & wait\n")
    (folder / "slow").chmod(0o755)
    (folder / "temporary").mkdir()
    running = subprocess.Popen([sys.executable, "-m", "caten", "axpy.toml", "-O0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "CC": str(folder / "slow"), "TMPDIR": str(folder / "temporary")})
    deadline = time.monotonic() + 20
    while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    start = time.monotonic()
    running.send_signal(number)
    out, err = running.communicate(timeout=10)
    assert running.returncode == code
    assert time.monotonic() - start < 5                                          # at once, on a machine that does nothing else
    assert out == ""
    assert "Traceback" not in err
    assert made(folder) == ["pid", "slow", "temporary"]
    assert list((folder / "temporary").iterdir()) == []
    stat = Path(f"/proc/{(folder / 'pid').read_text().strip()}/stat")
    while stat.exists() and ") Z " not in stat.read_text():                       # a zombie is dead, and its new parent's matter
        assert time.monotonic() - start < 10
        time.sleep(0.02)


def test_random_command_lines_end_with_a_message(caten: Any, folder: Path) -> None:
    """Exit codes of the table, no traceback, whatever is typed."""
    words = ["gemm.toml", "axpy.toml", "-", "(", "()", "(op X)", "-O9", "-o", "x.c", "-E", "-D", "-DM", "-DM=", "-DM=x", "-D=", "--config", "OMP", "=",
             "-march=", "-march", "-fstrided=", "-fstrided=A", "-s", "--only", "Gemm", "", "@gemm.toml", "--debug", "4", "--seed", "-1", "--test", "M", "-W",
             "error", "--emit", "c=", "spec,ir", ",", "--diagnostics-format=json", "--", "-x", "lisp", "-g", "-###", "-I", "/dev/null", "/", "a" * 300, "-MD",
             "-MF", "é", "\ud800", "-r", "numpy", "./x.py", "-fno-bounds-check", "cache", "runtimes"]
    starts = [["-O0"], ["parse", "gemm.toml"], ["render", "-O0", "-"], ["check", "-O0", "axpy.toml"], ["build", "-O0", "-E", "gemm.toml"],
              ["gemm.toml", "-O0", "-###"]]
    texts = ["", "(", "(op X)", "x=1", "(tensor X) (loop Y)", "(composite)"]
    random = Random(7)
    codes = set()
    for _ in range(60):
        line = [*random.choice(starts), *random.choices(words, k=random.randint(0, 3))]
        result = caten(*line, stdin=random.choice(texts))
        codes.add(result.code)
        assert result.code in (0, 1, 2, 3, 5), (line, result.err)
        assert "Traceback" not in result.err
    assert {0, 1, 2} <= codes
