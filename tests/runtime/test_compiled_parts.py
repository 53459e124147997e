"""A large library is compiled in parts at once, and any C compiler takes its source as a whole too."""
from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import compiler, cores
from caten.api import options_of, read
from caten.errors import CatenError
from caten.render import compiled_parts
from caten.runtime.process import run, run_together

STEP = Path(__file__).parent.parent / "schedule" / "training_step.lisp"
TEXT = re.sub(r"(?m)^  \((target|opt) .*\n", "", STEP.read_text("utf-8"))           # for this machine, and of the level that is asked for
PROTOTYPE = re.compile(r"^CT_KERNEL .*;$", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_parts, "LEAST", 5_000)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> compiler.Built:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores, "available", lambda: 2)
        return compiler.build([read(TEXT)], replace(options_of("compile", config={"OPT": 0}, opt=1), cache_dir=tmp_path_factory.mktemp("cache")))


def results(library: Any) -> list[np.ndarray]:
    draw = np.random.default_rng(1)
    sizes = [(7, 100), (10, 100), (10,), (10, 10), (10,), (5, 10), (5,)]
    given = [draw.standard_normal(s).astype(np.float32) for s in sizes]
    return list(library(*given, draw.integers(0, 5, 7)))


def test_each_part_has_kernels_of_its_own(built: compiler.Built) -> None:
    count = compiled_parts.count(built.source)
    assert count > 1
    commands = [" ".join(c) for c in built.record.commands]
    assert [re.findall(r"-DCT_PART=(\d+)", c) for c in commands] == [*[[str(n + 1)] for n in range(count)], []]
    inside = re.findall(r"^#if CT_IN_PART\((\d+)\)\n(.*?)^#endif", built.source, re.MULTILINE | re.DOTALL)
    assert [int(n) for n, _ in inside] == [*range(1, count + 1)]
    defined = [re.findall(r"^CT_KERNEL (?:void|int32_t) (\w+)\(", text, re.MULTILINE) for _, text in inside]
    assert all(defined)
    assert "ct_graph" in built.source.partition("#if CT_ENTRIES\n")[2]
    assert [name for part in defined for name in part] == [re.findall(r"(\w+)\(", p)[0] for p in PROTOTYPE.findall(built.source)]


def test_the_parts_and_the_whole_compute_the_same(built: compiler.Built, tmp_path: Path) -> None:
    """The whole is what somebody else's compiler makes of the file."""
    source = tmp_path / "whole.c"
    source.write_text(built.source, "utf-8")
    gcc = shutil.which("gcc")
    assert gcc is not None
    subprocess.run([gcc, "-O1", "-march=native", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-psabi", "-fsyntax-only", str(source)], check=True)
    (tmp_path / "step.lisp").write_text(TEXT, "utf-8")
    whole = caten.compile(tmp_path / "step.lisp", runtime="gcc", opt=1)
    parted = built.runtime.load(built.artifact, built.manifest)
    for one, other in zip(results(whole), results(parted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_versions_of_a_long_kernel_are_functions_of_their_own(tmp_path: Path) -> None:
    """Each is in one part, is called by the kernel, and computes the same there as in the whole."""
    gemm = Path(__file__).parents[2] / "samples" / "gemm.toml"
    made = compiler.build([read(gemm)], replace(options_of("compile", config={"OPT": 0}), cache_dir=str(tmp_path)))
    functions = re.findall(r"^CT_KERNEL void (ct_gemm_gemm\w*)\(.*\n\{", made.source, re.MULTILINE)
    *versions, kernel = functions
    assert len(versions) > 3
    assert kernel == "ct_gemm_gemm"
    assert compiled_parts.count(made.source) > 1
    calls = made.source.rpartition("CT_KERNEL void ct_gemm_gemm(")[2].partition("\n}\n")[0]
    assert [len(re.findall(rf"\b{name}\(", calls.partition("\n{")[2])) for name in versions] == [1] * len(versions)
    parted, whole = made.runtime.load(made.artifact, made.manifest), caten.compile(gemm, runtime="gcc")
    draw = np.random.default_rng(1)
    for m, k, n in [(9, 5, 1), (9, 20, 1), (5, 9, 3), (5, 300, 300), (7, 9, 20), (1, 300, 300), (70, 260, 300)]:
        a, b, c = [draw.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n))]
        np.testing.assert_allclose(parted(a, b, c.copy()), whole(a, b, c.copy()), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(parted(a, b, c.copy()), a @ b + c, rtol=1e-4, atol=1e-4)


PRODUCTS = """[composite]
name = "Low_rank"
inputs = ["X{float}[T D]", "W{float}[D F]", "A{float}[D R]", "B{float}[R F]"]
outputs = ["Y{float}[T F]"]
[implementation]
lang = "python"
code = "return X @ W + (X @ A) @ B"
"""


def test_versions_of_each_product_in_a_kernel_are_functions_of_their_own(tmp_path: Path) -> None:
    """They declare the arrays between the products again, and the kernel declares only those that it uses itself."""
    spec = tmp_path / "low_rank.toml"
    spec.write_text(PRODUCTS, "utf-8")
    made = compiler.build([read(spec)], replace(options_of("compile", config={"OPT": 0}), cache_dir=str(tmp_path)))
    versions = re.findall(r"^CT_KERNEL void ct_low_rank_low_rank_v\d+\(.*\n\{", made.source, re.MULTILINE)
    assert len(versions) > 9
    assert compiled_parts.count(made.source) > 1
    gcc, source = shutil.which("gcc"), tmp_path / "whole.c"
    assert gcc is not None
    source.write_text(made.source, "utf-8")
    subprocess.run([gcc, "-O1", "-march=native", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-psabi", "-fsyntax-only", str(source)], check=True)
    run, draw = made.runtime.load(made.artifact, made.manifest), np.random.default_rng(1)
    for t, d, f, r in [(9, 5, 1, 1), (9, 20, 16, 1), (1, 9, 33, 3), (5, 300, 64, 8), (70, 260, 300, 32)]:
        x, w, a, b = [draw.standard_normal(shape).astype(np.float32) for shape in ((t, d), (d, f), (d, r), (r, f))]
        np.testing.assert_allclose(run(x, w, a, b), x @ w + x @ a @ b, rtol=1e-3, atol=1e-3)


def test_parts_are_of_about_the_same_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_parts, "LEAST", 10)
    kernels = ["a" * 9, "b" * 3, "c" * 8, "d" * 4, "e" * 6]
    assert compiled_parts.divided(kernels, len, 2) == [kernels[:2], kernels[2:]]
    assert compiled_parts.divided(kernels, len, 9) == [kernels[:1], kernels[1:3], kernels[3:]]
    assert compiled_parts.divided(kernels[:2], len, 9) == [kernels[:2]]
    assert compiled_parts.divided([], len, 9) == []


def test_no_kernel_is_seen_from_outside(built: compiler.Built) -> None:
    nm = shutil.which("nm")
    assert nm is not None
    seen = subprocess.run([nm, "-D", "--defined-only", str(built.artifact)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in seen.splitlines()}
    assert "ct_graph" in names
    assert not [name for name in names if "graph_graph" in name]


def test_small_files_are_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_parts, "LEAST", 20_000)
    source = caten.compile(Path(__file__).parents[2] / "samples" / "softmax.toml").source
    assert compiled_parts.count(source) == 1
    assert "CT_PART" not in source


def test_a_library_is_the_same_on_one_core(built: compiler.Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "available", lambda: 1)
    alone = compiler.build([read(TEXT)], replace(options_of("compile", config={"OPT": 0}, opt=1), cache_dir=tmp_path))
    assert not alone.from_cache
    assert alone.artifact.read_bytes() == built.artifact.read_bytes()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_commands_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for what the other writes."""
    monkeypatch.setattr(cores, "available", lambda: 2)
    wait = "import pathlib, time\npathlib.Path({own!r}).touch()\nwhile not pathlib.Path({other!r}).exists(): time.sleep(0.01)\nprint({own!r})"
    done = run_together([python(wait.format(own="a", other="b")), python(wait.format(own="b", other="a"))], 60, tmp_path)
    assert [d.output for d in done] == ["a\n", "b\n"]


def test_an_interrupt_ends_all_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    monkeypatch.setattr(cores, "available", lambda: 2)

    def interrupt() -> None:
        while len(started) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        run_together([python("import time; time.sleep(60)")] * 3, 90, tmp_path, interrupt)
    assert [child.returncode for child in started] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize(("commands", "code"), [
    ([python("import time; time.sleep(60)"), python("import time; time.sleep(60)")], "E622"),
    ([["/no/such/tool"], python("pass")], "E620")])
def test_what_cannot_run_is_told(commands: list[list[str]], code: str) -> None:
    with pytest.raises(CatenError) as caught:
        run_together(commands, 0.5)
    assert caught.value.diagnostics[0].code == code


def test_one_command_is_run_as_before() -> None:
    assert run(python("print(1)"), 60).output == "1\n"
    assert run_together([], 60) == []
