"""Host compilers: which is chosen, what it is told, and what happens when it is missing, refuses, hangs or writes nothing."""
from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from caten.attach import runtime_of
from caten.errors import CatenError, ToolError, UsageError
from caten.options import Options
from caten.runtime import cpu, toolchain
from caten.runtime.program_manifest import provenance
from caten.runtime.protocol import Host, Unavailable
from caten.runtime.toolchain import Compiler
from growth import Growth

RUNS = 'case "$*" in *probe.o) echo int > probe.o; exit 0;; esac\n'         # of a function of one line it makes an object


def script(folder: Path, name: str, text: str = RUNS) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def code(info: pytest.ExceptionInfo[CatenError]) -> str:
    return info.value.diagnostics[0].code


def test_the_order_of_candidates(tmp_path: Path) -> None:
    for name in ("clang-14", "clang-19", "gcc"):
        script(tmp_path, name)
    (tmp_path / "clang").symlink_to("clang-14")
    host = Host(path=str(tmp_path))
    assert [c.name for c in toolchain.candidates(("clang", "gcc"), host)] == ["clang-19", "clang", "clang-14", "gcc"]
    assert toolchain.choose(None, ("clang", "gcc"), host).name == "clang-19"
    assert toolchain.choose("gcc", ("clang",), host).family == "gcc"
    assert toolchain.choose(None, ("clang",), Host(path=str(tmp_path), cc="clang-14")).name == "clang-14"
    assert toolchain.choose("clang-19", ("clang",), Host(path=str(tmp_path), cc="clang-14")).name == "clang-19"


def test_the_archiver_of_the_embedded_clang_has_none_of_its_flags() -> None:
    assert Compiler(("/usr/bin/python", "-m", "ziglang", "cc", "-O1"), "zig", "").archiver() == ["/usr/bin/python", "-m", "ziglang", "ar"]
    assert Compiler(("clang", "-O1"), "clang", "").archiver() == ["ar"]


def test_a_compiler_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    mine = script(tmp_path / "bin", "mycc", "echo int > library.so")
    monkeypatch.chdir(tmp_path)
    compiler = toolchain.choose("bin/mycc", ("clang",), Host(path=""))
    assert compiler.words == (str(mine),)
    toolchain.compile_c(compiler, [], [], "int x;", tmp_path / "x.so", "so", Host(timeout=20.0, temp=tmp_path))
    assert (tmp_path / "x.so").read_text() == "int\n"


def test_no_compiler_says_what_was_tried_and_what_to_install(tmp_path: Path) -> None:
    host = Host(path=str(tmp_path))
    with pytest.raises(Unavailable) as info:
        toolchain.choose(None, ("clang", "gcc"), host)
    assert info.value.exit_code == 3
    assert code(info) == "E610"
    assert "apt install" in (info.value.diagnostics[0].hint or "")
    with pytest.raises(Unavailable, match="--config CC is 'nocc'"):
        toolchain.choose("nocc", ("clang",), host)
    script(tmp_path, "gcc")
    with pytest.raises(Unavailable, match=r"OpenMP \(tried gcc\)"):
        toolchain.choose(None, ("gcc",), host, lambda c: False)


def test_arguments_in_cc_are_split_and_metacharacters_refused(tmp_path: Path) -> None:
    script(tmp_path, "ccache")
    script(tmp_path, "gcc")
    assert toolchain.choose("ccache gcc", ("clang",), Host(path=str(tmp_path))).words == (str(tmp_path / "ccache"), "gcc")
    for bad in ("gcc; rm", "gcc $X", "gcc `x`", "gcc | tee", "'gcc'"):
        with pytest.raises(ToolError) as info:
            toolchain.choose(bad, ("clang",), Host(path=str(tmp_path)))
        assert code(info) == "E621"
    with pytest.raises(UsageError, match="E916"):
        toolchain.choose("gcc -ffast-math", ("clang",), Host(path=str(tmp_path)))


def test_march_in_each_spelling() -> None:
    zig, gcc = Compiler(("zig", "cc"), "zig", "zig"), Compiler(("gcc",), "gcc", "gcc")
    assert zig.march("x86-64-v3") == ["-march=x86_64_v3"]
    assert gcc.march("x86_64_v3") == ["-march=x86-64-v3"]
    assert gcc.march("native") == zig.march("native") == ["-march=native"]
    assert gcc.march("skylake-avx512") == ["-march=skylake-avx512"]


def test_cpu_names_resolve_to_levels() -> None:
    assert cpu.resolve("znver3") == cpu.resolve("x86-64-v3") == "x86_64_v3"
    assert cpu.resolve("skylake-avx512") == "x86_64_v4"
    assert cpu.resolve("armv8.2-a") == "aarch64"
    assert cpu.level_of(frozenset(("avx", "avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "sse4_2"))) == "x86_64_v3"
    assert cpu.level_of(frozenset(["avx"])) == "x86_64"
    assert cpu.machine("x86_64_v3").vector_bytes == 32
    assert cpu.machine("x86_64").has_fma is False
    assert cpu.fingerprint("znver3") == "znver3"


@pytest.mark.parametrize(("vendor", "ahead"), [("AuthenticAMD", True), ("GenuineIntel", False), ("", False)])
def test_who_made_the_cpu_says_whether_it_is_asked_for_memory(vendor: str, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "vendor", lambda: "another")
    before = cpu.fingerprint("native")
    monkeypatch.setattr(cpu, "vendor", lambda: vendor)
    assert cpu.machine_of("native") == cpu.machine(cpu.resolve("native")).replace(fetches_ahead=ahead)
    assert cpu.fingerprint("native") != before
    assert [cpu.machine_of(word).fetches_ahead for word in ("znver4", "x86-64-v4", "skylake-avx512")] == [True, False, False]


def test_identity_changes_with_the_file(tmp_path: Path) -> None:
    file = script(tmp_path, "cc1")
    compiler = Compiler((str(file),), "gcc", str(file))
    before = compiler.identity()
    assert before == compiler.identity()
    os.utime(file, (1, 1))
    assert compiler.identity() != before


def compile_with(tmp_path: Path, text: str, timeout: float = 20.0, out: Path | None = None) -> None:
    fake = script(tmp_path, "fakecc", RUNS + text)
    toolchain.compile_c(Compiler((str(fake),), "gcc", str(fake)), ["-O1"], [], "int x;", out or tmp_path / "x.so", "so", Host(timeout=timeout, temp=tmp_path))


def test_a_compiler_that_refuses_crashes_or_writes_nothing(tmp_path: Path) -> None:
    for text, expected, said in (("echo 'k.c:1: oh no' >&2; exit 1", "E623", "oh no"), ("kill -SEGV $$", "E623", "SIGSEGV"), ("exit 0", "E625", "wrote no output")):
        with pytest.raises(ToolError) as info:
            compile_with(tmp_path, text)
        assert (code(info), info.value.exit_code) == (expected, 3)
        assert said in info.value.diagnostics[0].message
        assert [p.name for p in tmp_path.iterdir()] == ["fakecc"]


def test_a_compiler_that_prints_for_ever_is_stopped(tmp_path: Path) -> None:
    start, growth = time.monotonic(), Growth()
    with pytest.raises(ToolError) as info:
        compile_with(tmp_path, "yes error >&2", timeout=0.5)
    assert code(info) == "E622"
    assert time.monotonic() - start < 5
    assert growth.megabytes < 50
    with pytest.raises(ToolError, match="error") as info:
        compile_with(tmp_path, "yes error | head -c 100000000 >&2; exit 1")
    assert len(info.value.diagnostics[0].message) < 1000


def test_a_compiler_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(ToolError) as info:
        compile_with(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait", timeout=0.5)
    assert code(info) == "E622"
    assert time.monotonic() - start < 20
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the compiler's child is still running")


def test_a_result_that_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)                         # where the compiler is asked for its version, it writes, too
    with pytest.raises(ToolError) as info:
        compile_with(tmp_path, "echo x > library.so", out=tmp_path / "missing" / "x.so")
    assert code(info) == "E625"
    with pytest.raises(ToolError) as info:
        toolchain.commands(Compiler(("cc",), "gcc", "cc"), [], [], "x.c", "x.ptx", "ptx")
    assert code(info) == "E624"


def test_answers_about_tools_are_remembered(tmp_path: Path) -> None:
    asked: list[int] = []

    def ask() -> bool:
        asked.append(1)
        return True
    host = Host(cache=tmp_path / "cache")
    assert toolchain.remembered(host, "q", ask)
    assert toolchain.remembered(host, "q", ask)
    assert len(asked) == 1
    for file in (tmp_path / "cache" / "probes").iterdir():
        file.write_text("garbage")
    assert toolchain.remembered(host, "q", ask)
    assert toolchain.remembered(Host(), "q", ask)
    assert len(asked) == 3


def test_the_embedded_clang_needs_the_wheels_openmp_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    zig = Compiler(("zig", "cc"), "zig", sys.executable)
    monkeypatch.setattr(toolchain, "openmp_library", lambda: tmp_path / "libiomp5.so")
    assert toolchain.openmp_flags(zig) == ["-fopenmp", "-Wl,-z,nodelete", str(tmp_path / "libiomp5.so"), "-Wl,-rpath,$ORIGIN"]


def test_the_openmp_library_comes_from_the_small_wheel_where_that_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "cmeel.prefix" / "lib" / "libomp.so"
    about = tmp_path / "cmeel_libomp-21.1.8.dist-info"
    library.parent.mkdir(parents=True)
    library.touch()
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cmeel-libomp\nVersion: 21.1.8\n")
    (about / "RECORD").write_text("cmeel.prefix/lib/libomp.so,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert toolchain.openmp_library() == library
    assert toolchain.openmp_library("libomp.so: cannot open shared object file") == library
    assert toolchain.openmp_library("libiomp5.so: cannot open shared object file") != library
    library.unlink()
    assert toolchain.openmp_library() != library


@pytest.mark.parametrize(("family", "flags"), [("gcc", ["-fopenmp", "-Wl,-z,nodelete", "-lgomp"]),
                                               ("clang", ["-fopenmp=libomp", "-Wl,-z,nodelete", "-lomp"])])
def test_a_compiler_of_the_system_links_its_own_openmp_library(family: str, flags: list[str]) -> None:
    assert toolchain.openmp_flags(Compiler((family,), family, family)) == flags


@pytest.mark.parametrize(("name", "package"), [("clang-19", "libomp-19-dev"), ("clang", "libomp-dev"), ("gcc", "libgomp1")])
def test_a_named_compiler_without_openmp_says_what_to_install(name: str, package: str, tmp_path: Path) -> None:
    script(tmp_path, name)
    with pytest.raises(Unavailable, match=f"{name} does not compile, link and load OpenMP") as info:
        toolchain.choose(name, ("clang", "gcc"), Host(path=str(tmp_path)), lambda c: False)
    assert f"apt install {package}" in (info.value.diagnostics[0].hint or "")


@pytest.mark.parametrize("complaint", ["error: unknown target CPU '64'", "cc1: error: bad value '64' for '-march=' switch",
                                       "info: available CPUs for architecture 'x86_64':"])
def test_a_cpu_that_the_compiler_does_not_know_is_no_fault_of_caten(complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as info:
        compile_with(tmp_path, f'echo "{complaint}" >&2; exit 1')
    assert "take a CPU that this compiler knows" in (info.value.diagnostics[0].hint or "")


@pytest.mark.parametrize(("word", "name"), [("-lm", "m"), ("/opt/libiomp5.so", "iomp5"), ("-Wl,-rpath,/opt", ""), ("-O3", "")])
def test_the_name_of_a_library(word: str, name: str) -> None:
    assert toolchain.library_name(word) == name


def test_the_first_error_is_among_the_first_lines_that_are_shown() -> None:
    few, many = ["a.c:1: warning: w"] * 3, ["a.c:1: warning: w"] * 50
    told = ["a.c:9: error: e", "note"]
    assert toolchain.first_complaints("\n".join([*few, *told])) == [*few, *told]
    assert toolchain.first_complaints("\n".join([*many, *told])) == told
    assert toolchain.first_complaints("\n".join(many)) == many[:20]


@pytest.mark.parametrize("name", ["clang", "gcc"])
def test_a_manifest_has_the_flags_of_every_step_and_no_file_names(name: str) -> None:
    options = Options(runtime=name, config=(("MARCH", "x86_64_v3"),))
    try:
        flags = provenance(runtime_of(options), None, "").flags
    except ToolError:
        pytest.skip(f"{name} is not installed")
    assert len([flag for flag in flags if flag.startswith("-march=")]) == 1, flags
    assert "-shared" in flags
    assert "-lm" in flags
    assert not [flag for flag in flags if flag in ("-c", "-o") or flag.endswith((".c", ".o"))]
