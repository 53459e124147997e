"""A library that was compiled for a newer processor: refused by name wherever it is used, and never begun on an older one."""
from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import caten
from caten.errors import CatenError, ToolError
from caten.render.cpu_check import CPU_CHECK, FEATURES
from caten.runtime import cpu

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="asks what x86-64 processors have")
SPEC = """[composite]
name = "Scale"
inputs  = ["a{float}[]", "x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* a (aref x i))))"
[test]
code = "lambda a, x: a * x"
"""
MAIN = """#include <stdio.h>
#include "scale.h"
int main(void)
{
    float x[64] = {1, 2, 3}, y[64] = {7, 7, 7};
    const int32_t result = ct_scale(2.0f, x, y, 64), again = ct_scale_ws(2.0f, x, y, 64, 0);
    printf("%d %d %g %s\\n", (int)result, (int)again, y[2], ct_scale_check(result));
    return 0;
}
"""
COMPILERS = {"gcc": "gcc", "zig": f"{sys.executable} -m ziglang cc"}
OTHER = "-D__XOP__=1"                   # as if the compiler used what no processor has had since 2017


@pytest.fixture(params=COMPILERS)
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Any) -> Any:
    """`made(*words)`: a build of the spec in an empty folder."""
    tool("gcc")
    if request.param == "zig":
        pytest.importorskip("ziglang")
    (tmp_path / "scale.toml").write_text(SPEC)
    (tmp_path / "main.c").write_text(MAIN)
    monkeypatch.chdir(tmp_path)
    for name, value in {"CC": COMPILERS[request.param], "CATEN_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(caten.__file__).parents[1])}.items():
        monkeypatch.setenv(name, value)

    def build(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "caten", *words], env=os.environ | env, capture_output=True, text=True)
    return build


def built(made: Any, *words: str, **env: str) -> None:
    done = made("scale.toml", *words, **env)
    said = [line for line in done.stderr.splitlines() if line != "caten: compiling"]      # printed where the machine is busy
    assert (done.returncode, said) == (0, []), done.stderr


def called(processor: str | None, library: str) -> str:
    """What a C program with the library prints, on a processor of that name (None: this one)."""
    subprocess.run(["gcc", "main.c", library, "-Wl,-rpath,$ORIGIN", "-lm", "-o", "main"], check=True)
    return subprocess.run([*(["qemu-x86_64", "-cpu", processor] if processor else []), "./main"], capture_output=True, text=True, check=True).stdout.strip()


PROCESSORS = {"x86-64-v3": {"Nehalem": "avx", "Opteron_G1": "avx", "Haswell": None}, "x86-64-v4": {"Haswell": "avx512f"},
              "nehalem": {"core2duo": "sse4.1", "Haswell": None}, "x86-64": {"Opteron_G1": None}}
BY_DAY = ("x86-64-v3",)                 # linked, for which the embedded clang builds its library first


@pytest.mark.slice(4)
@pytest.mark.parametrize(("march", "opt"), [pytest.param(m, opt, marks=[pytest.mark.nightly] if opt and m not in BY_DAY else []) for m in PROCESSORS for opt in (0, 3)])
def test_c_on_other_processors(march: str, opt: int, made: Any, tool: Any) -> None:
    tool("qemu-x86_64")
    lacks = PROCESSORS[march]
    emitted, file = {0: ("obj,header", "scale.o"), 3: ("so", "./scale.so")}[opt]
    built(made, "--config", f"MARCH={march},OPT={opt}", f"--emit={emitted}")
    for processor, missing in lacks.items():
        assert called(processor, file) == (f"-2 -2 7 this processor lacks {missing}" if missing else "0 0 6")


@pytest.mark.slice(2)
def test_c_of_every_kind_asks(made: Any) -> None:
    for flags, said in ((OTHER, "-2 -2 7 this processor lacks xop"), ("", "0 0 6")):
        built(made, "--emit=so,a,obj", CFLAGS=flags)
        for kind in ("./scale.so", "scale.a", "scale.o"):
            assert called(None, kind) == said, kind


@pytest.mark.slice(2)
def test_python_refuses(made: Any) -> None:
    built(made, "--emit=so,python", CFLAGS=OTHER)
    with pytest.raises(ToolError, match=r"E717: cannot use .*scale\.so here: this processor lacks xop") as info:
        caten.load("scale.so")
    assert info.value.exit_code == 3
    wrapped = subprocess.run([sys.executable, "-c", "import scale_numpy"], capture_output=True, text=True)
    assert "ImportError: scale.so: this processor lacks xop" in wrapped.stderr
    done = made("scale.toml", "--test", "N=4", "-o", "b.so", CFLAGS=OTHER)
    assert done.returncode != 0
    assert "this processor lacks xop" in done.stdout + done.stderr
    done = made("bench", "scale.toml", "--sizes", "N=4", CFLAGS=OTHER)
    assert done.returncode != 0
    assert "E717" in done.stderr


def test_compile_refuses_what_is_in_the_cache(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", OTHER)
    for _ in range(2):
        with pytest.raises(CatenError, match="E717"):
            caten.compile("scale.toml")


def test_the_entry_has_no_instruction_that_may_be_missing(made: Any, tool: Any) -> None:
    tool("objdump")
    built(made, "--config", "MARCH=x86-64-v4", "--emit=obj")
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "scale.o"], capture_output=True, text=True, check=True).stdout
    functions = dict(re.findall(r"<(\w+)>:\n(.*?)(?:\n\n|\Z)", text, re.DOTALL))
    entries = [functions[f"ct_scale{end}"] for end in ("", "_ws", "_ws_size", "_check")] + [functions[n] for n in functions if n.startswith("ct_Processor")]
    newer = re.compile(r"\t(v[a-z0-9]+|andn|bextr|bls\w+|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|popcnt|movbe)\b")
    assert [newer.findall(entry) for entry in entries] == [[]] * len(entries)
    assert any(newer.findall(body) for body in functions.values()), "the kernels do use them"


def test_every_processor_needs_no_question(made: Any) -> None:
    assert not cpu.needs_check("x86-64")
    assert not cpu.needs_check("x86_64")
    assert not cpu.needs_check("armv8-a")
    assert all(map(cpu.needs_check, ("native", "core2", "x86-64-v2", "no-such-word")))
    built(made, "--config", "MARCH=x86-64", "-o", "plain.c")
    assert "CT_UNFIT" not in Path("plain.c").read_text()
    built(made, "--config", "MARCH=x86-64", "-o", "flags.c", CFLAGS="-mavx2")
    assert "CT_UNFIT" in Path("flags.c").read_text()


def test_the_question_agrees_with_the_compilers_own(tmp_path: Path, tool: Any) -> None:
    """Every feature that gcc knows by name, asked in both ways, on every processor that there is."""
    tool("gcc")
    known = [f for f in FEATURES if f.name not in ("cx16", "movbe", "avxvnni", "avxifma", "f16c", "avx512fp16")]        # gcc 12 cannot be asked for these
    text = "#include <stdint.h>\n#include <stdio.h>\n"
    for f in FEATURES:
        text += f"#undef {f.macro}\n"
    body = CPU_CHECK.replace("ct_Processor", "NAME")
    for n, f in enumerate(known):
        text += f"#define {f.macro} 1\n" + re.sub(r"#define CT_(ANY|API|CPUID|TEXT|NEEDS).*\n", "", body if n else "").replace("NAME", f"ct_{n}")
        text += CPU_CHECK.replace("ct_Processor", f"ct_{n}") if not n else ""
        text += f"#undef {f.macro}\n#undef CT_UNFIT\n"
    rows = "".join([f'    __builtin_cpu_init(); printf("{f.name} %d %d\\n", ct_{n}_asked() == 1, !!__builtin_cpu_supports("{f.name}"));\n' for n, f in enumerate(known)])
    (tmp_path / "ask.c").write_text(text + f"int main(void)\n{{\n{rows}    return 0;\n}}\n")
    subprocess.run(["gcc", "-w", "-O1", "ask.c", "-o", "ask"], cwd=tmp_path, check=True)
    emulated = [["qemu-x86_64", "-cpu", name] for name in ("Nehalem", "Haswell", "Opteron_G1", "max")] if shutil.which("qemu-x86_64") else []
    for words in ([], *emulated):
        answers = [line.split() for line in subprocess.run([*words, "./ask"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()]
        assert len(answers) == len(known)
        assert [name for name, ours, theirs in answers if ours != theirs] == [], words
