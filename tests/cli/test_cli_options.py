"""Every shared option has its effect on the options of the compilation."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from caten.cli.argv import normalise
from caten.cli.diagnostics import Reporter
from caten.cli.output_kinds import Emit
from caten.cli.shared_options import Dependencies, GroupedCommand, Request, compiles
from caten.errors import UsageError


def request_of(*words: str) -> Request:
    """What a command line means."""
    seen: list[Request] = []

    @click.command(cls=GroupedCommand)
    @compiles(products=True)
    def command(request: Request) -> None:
        seen.append(request)
    with command.make_context("caten", normalise(words), obj=Reporter()) as context:
        command.invoke(context)
    return seen[0]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CC", "CFLAGS", "LDFLAGS", "TMPDIR", "CATEN_CACHE_DIR", "CATEN_RUNTIME_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("words", "field", "value"), [
    ([], "opt", 2), ([], "runtime", "clang"), ([], "use_cache", True), ([], "given", frozenset()),
    (["-O0"], "opt", 0), (["-O"], "opt", 1), (["-O1", "-O3"], "opt", 3), (["-O3"], "given", frozenset({"opt"})),
    (["-DM=100", "-D", "N=5"], "binds", (("M", 100), ("N", 5))), (["-DM=1"], "given", frozenset({"binds"})),
    (["-r", "gcc"], "runtime", "gcc"), (["--runtime", "./my.py"], "runtime", "./my.py"), (["--runtime=gcc"], "given", frozenset({"runtime"})),
    (["-march=native"], "config", (("MARCH", "native"),)), (["-fopenmp"], "config", (("OMP", "1"),)), (["-fno-openmp"], "config", (("OMP", "0"),)),
    (["-march=a", "--config", "march=b,OMP=1"], "config", (("march", "b"), ("OMP", "1"))), (["-fopenmp"], "given", frozenset({"config"})),
    (["--config", "OMP=1", "--config", "OMP=0"], "config", (("OMP", "0"),)),
    (["-fstrided=A", "-fstrided=B,C"], "strided", ("A", "B", "C")), (["-fno-bounds-check"], "unchecked", True),
    (["-fbounds-check"], "unchecked", False), (["-fno-reassociate"], "in_order", True), (["-freassociate"], "in_order", False),
    (["-g"], "lines", True), (["-Ifoo", "-I", "bar"], "include_dirs", ("foo", "bar")), (["--only", "Gemm", "--only", "B"], "only", ("Gemm", "B")),
    (["--verify"], "verify", True), (["--seed", "7"], "seed", 7), (["--debug", "3"], "debug", 3), (["-d", "1"], "debug", 1),
    (["--cc-timeout", "2.5"], "cc_timeout", 2.5), (["--no-cache"], "use_cache", False), (["-L/opt", "-lm"], "ldflags", ("-L/opt", "-lm")),
])
def test_options(words: list[str], field: str, value: Any) -> None:
    assert getattr(request_of("gemm.toml", *words).options, field) == value


def test_the_environment_counts_where_the_command_line_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CC": "clang-19", "CFLAGS": "-DX='a b' -Wall", "LDFLAGS": "-L/env", "TMPDIR": "/tmp/x", "CATEN_CACHE_DIR": "/c",
                        "CATEN_RUNTIME_PATH": "/r1:/r2"}.items():
        monkeypatch.setenv(name, value)
    options = request_of("gemm.toml", "-lm").options
    assert (options.cc, options.cflags, options.ldflags) == ("clang-19", ("-DX=a b", "-Wall"), ("-L/env", "-lm"))
    assert (options.temp_dir, options.cache_dir, options.runtime_path) == ("/tmp/x", "/c", ("/r1", "/r2"))
    monkeypatch.setenv("CFLAGS", "'open")
    with pytest.raises(UsageError, match="E910"):
        request_of("gemm.toml")


def test_folders_for_the_compiler_are_relative_to_the_present_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFLAGS", "-Ia -I b -DX -I/c")
    monkeypatch.setenv("LDFLAGS", "-L ../d -lm")
    options = request_of("gemm.toml", "-L", "e").options
    assert options.cflags == (f"-I{tmp_path}/a", "-I", f"{tmp_path}/b", "-DX", "-I/c")
    assert options.ldflags == ("-L", f"{tmp_path.parent}/d", "-lm", f"-L{tmp_path}/e")


@pytest.mark.parametrize(("variable", "flag"), [("CFLAGS", "-ffast-math"), ("CFLAGS", "-ffp-contract=fast"), ("CFLAGS", "-ftrapv"), ("LDFLAGS", "-Ofast")])
def test_flags_that_change_results_are_refused(variable: str, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, f"-g {flag}")
    with pytest.raises(UsageError, match=f"E916: .{variable} holds {flag}"):
        request_of("gemm.toml")


@pytest.mark.parametrize(("words", "field", "value"), [
    (["a.toml", "-i", "b.toml", "-"], "inputs", ("b.toml", "a.toml", "-")), (["-x", "lisp", "-"], "language", "lisp"), (["-ox.so"], "output", "x.so"),
    (["-E"], "emits", (Emit("spec"),)), (["-S"], "emits", (Emit("asm"),)), (["-c"], "emits", (Emit("obj"),)),
    (["--emit=c,header=x.h"], "emits", (Emit("c"), Emit("header", "x.h"))),
    (["--test", "m = 1"], "test", (("m", 1),)), (["-t", ""], "test", ()), ([], "test", None),
    (["-MD"], "depfile", Dependencies()), (["-MF", "x.d"], "depfile", Dependencies("x.d")),
    (["-MD", "-MT", "t", "-MP"], "depfile", Dependencies(None, ("t",), True)), ([], "depfile", None),
    (["-v"], "verbose", True), (["-###"], "dry_run", True), (["--save-temps"], "save_temps", True), (["--print=ops"], "prints", ("ops",)),
    (["--", "-odd.toml"], "inputs", ("-odd.toml",)),
])
def test_requests(words: list[str], field: str, value: Any) -> None:
    assert getattr(request_of(*words), field) == value


def test_a_schedule_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "s.lisp").write_text("(schedule (parallel i))")
    options = request_of("gemm.toml", "-s", str(tmp_path / "s.lisp")).options
    assert options.schedule == "(schedule (parallel i))"
    assert options.schedule_file == str(tmp_path / "s.lisp")
    with pytest.raises(UsageError, match="E902"):
        request_of("gemm.toml", "-s", str(tmp_path / "none"))


@pytest.mark.parametrize("words", [["--debug", "5"], ["--seed", "-1"], ["--cc-timeout", "0"], ["-x", "c"], ["--print=x"],
                                   ["--diagnostics-format=xml"], ["-o"]])
def test_values_out_of_range(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        request_of("gemm.toml", *words)


def test_a_dependency_option_without_a_dependency_file() -> None:
    with pytest.raises(UsageError, match="E900"):
        request_of("gemm.toml", "-MP")


def test_reporting_options() -> None:
    reporter = request_of("gemm.toml", "-Werror", "-Wno-cache", "-w").reporter
    assert reporter.policy.all_errors
    assert reporter.policy.all_silenced
    assert "E650" in reporter.policy.silenced


@pytest.mark.parametrize(("flags", "asked"), [([], False), (["-Wscalar"], True), (["-Wall"], True), (["-Wscalar", "-Wno-scalar"], False),
                                              (["-Werror"], False), (["-Werror=scalar"], True)])
def test_a_warning_that_is_given_on_request(flags: list[str], asked: bool) -> None:
    assert ("E944" in request_of("gemm.toml", *flags).options.asked) == asked


SCAN = '''[composite]
name = "Scan"
inputs = ["X{float}[N]"]
outputs = ["Y{float}[N]"]
[implementation]
code = """
(set s 0.0)
(dotimes (i N)
  (set s (+ (* s 0.5) (aref X i)))
  (setf (aref Y i) s))
"""
'''


def test_a_nest_that_stays_scalar_is_told_with_its_place_and_the_reason(caten: Any, folder: Path) -> None:
    (folder / "scan.toml").write_text(SCAN)
    found = caten("schedule", "scan.toml", "-Wscalar")
    assert found.code == 0
    assert "scan.toml:8:1: warning: Scan: the loop over 'i' stays scalar: each iteration of 'i' stores (aref s) again [E944]" in found.err
    assert "E944" not in caten("schedule", "scan.toml").err
    assert "E944" not in caten("schedule", "axpy.toml", "-Wscalar").err
    assert caten("schedule", "scan.toml", "-Werror=scalar").code == 1


RECURRENCE = '''[composite]
name = "Steps"
inputs = ["X{float}[N]"]
outputs = ["X"]
[implementation]
code = """
(dotimes (i (- N 1))
  (setf (aref X (+ i 1))
        (sin (aref X i))))
"""
'''


def test_a_loop_that_keeps_its_order_is_told_with_the_access_that_keeps_it(caten: Any, folder: Path) -> None:
    (folder / "steps.toml").write_text(RECURRENCE)
    found = caten("schedule", "steps.toml", "-Wnest")
    assert found.code == 0
    assert ("steps.toml:8:9: warning: Steps: 'i' keeps the order of its iterations: an index of a store is not one loop by itself: (aref X (+ i 1)) [E945]"
            in found.err)
    assert found.err.count("E945]") == 1
    assert "E945" not in caten("schedule", "steps.toml").err
    assert "E945" not in caten("schedule", "axpy.toml", "-Wnest").err
    assert caten("schedule", "steps.toml", "-Werror=nest").code == 1
    assert "; 'i' keeps the order of its iterations, because an index of a store is not one loop" in caten("schedule", "steps.toml", "--explain").out


WHOLE = """[composite]
name = "Embed"
inputs = ["K{int}[M]", "G{float}[M D]", "T{float}[N D]", "X{float}[M]"]
outputs = ["T", "Y{float}[M]"]
[implementation]
lang = "python"
code = '''
Y[:] = np.exp(X)
%s
'''
"""


@pytest.mark.parametrize(("body", "told"), [
    ("np.add.at(T, K, G)", "9:1: warning: Embed: the loop that computes 'T' keeps the order of its iterations: a run-time check may end the call between two iterations [E945]"),
    ("np.add.at(T, K, G)\nfor i in range(M):\n    if Y[i] < 2:\n        Y[i] = 2",
     "9:1: warning: Embed: a loop over whole arrays keeps the order of its iterations: a run-time check may end the call between two iterations [E945]"),
    ("for i in range(M - 1):\n    Y[i + 1] = np.sin(Y[i])\nT[:] = 0", "10:9: warning: Embed: 'i' keeps the order of its iterations: an index of a store is not one loop by itself: (aref Y (+ i 1)) [E945]"),
    ("H = np.bincount(K, minlength=N)\nT += (H[::-1] * H)[:, None].astype(np.float32)",
     "2:9: warning: Embed: a loop over whole arrays keeps the order of its iterations: a run-time check may end the call between two iterations [E945]"),
    ("if X[K[0]] > 1:\n    T[0, 0] = 0",
     "2:9: warning: Embed: what makes a run-time check keeps the order of its iterations: a run-time check may end the call between two iterations [E945]"),
])
def test_a_statement_over_whole_arrays_that_keeps_its_order_has_its_place(caten: Any, folder: Path, body: str, told: str) -> None:
    """On a device, whose threads make their own checks."""
    (folder / "embed.toml").write_text(WHOLE % body)
    found = caten("ir", "embed.toml", "-Wnest", "-r", "opencl", "-o", "-")
    assert f"embed.toml:{told}" in found.err


def test_debug_3_prints_what_was_tried(caten: Any, folder: Path) -> None:
    (folder / "scan.toml").write_text(SCAN)
    assert "not taken: plans of maps" in caten("schedule", "scan.toml", "--debug", "3").err
    assert "not taken" not in caten("schedule", "scan.toml", "--debug", "2").err


def test_strided_without_a_name(caten: Any, folder: Path) -> None:
    result = caten("-fstrided=", "axpy.toml")
    assert result.code == 2
    assert "-fstrided lacks a name" in result.err


BLOCKS = """[composite]
name = "Scores"
inputs = ["Q{float}[T 64]", "K{float}[T 64]"]
outputs = ["O{float}[T 64]"]
[implementation]
lang = "python"
code = "return np.exp(Q @ K.T) @ K"
[schedule]
fusion = "(rows 16)"
"""


def test_a_request_that_a_device_cannot_meet_is_ignored(caten: Any, folder: Path) -> None:
    (folder / "scores.toml").write_text(BLOCKS)
    found = caten("schedule", "scores.toml", "--runtime", "cuda")
    assert found.code == 0
    assert "scores.toml:9:11: warning: Scores: (rows 16) is ignored: this device has no kernels of blocks of rows [E946]" in found.err
    assert "E946" not in caten("schedule", "scores.toml", "--runtime", "cuda", "-Wno-requests").err
    assert caten("schedule", "scores.toml", "--runtime", "cuda", "-Werror=requests").code == 1
    assert "E946" not in caten("schedule", "scores.toml").err
