"""Names of products that mean something in C, Python, make or a shell: each file that a name stands in is still right."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import caten

import caten as library
from caten.cli.depfile import depfile
from caten.runtime.toolchain import SONAME, openmp_library, under_name

SPEC = """[composite]
name = "Twice"
inputs  = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* 2.0 (aref x i))))"
"""
NAMES = ('a"b', "a\\b", "a\\", "a'b", "a b", 'a""" b', "-x", "a$HOME", "a;b", "a%d", "*a", "a#b", "{a}", "\u00fc", "a\\n", "a`b`")
MAIN = """#include "twice.h"
int main(void)
{
    float x[2] = {1, 2}, y[2];
    return ct_twice(x, y, 2) || y[1] != 4;
}
"""


@pytest.fixture
def spec(folder: Path) -> str:
    Path("twice.toml").write_text(SPEC)
    return "twice.toml"


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", NAMES)
def test_every_product_of_a_name_works(name: str, spec: str, tool: object) -> None:
    out = f"./{name}.so"
    done = caten(spec, "--emit=so,header,example,python,depfile", "-o", out)
    assert (done.code, done.err) == (0, "")
    line = Path(f"{name}_main.c").read_text().split("\n", 1)[0].removeprefix("/* ").removesuffix(" */")
    built = subprocess.run(line.replace("cc ", "cc -Wall -Wextra -Werror -Wno-unused-function ", 1), shell=True, capture_output=True, text=True)
    assert (built.returncode, built.stdout) == (0, "ok\n"), built.stderr
    wrapped = Path(f"{name}_numpy.py").read_text()
    compile(wrapped, "wrapper", "exec")
    scope = {"__name__": "wrapper", "__file__": os.path.abspath(f"{name}_numpy.py")}
    exec(wrapped, scope)
    assert scope["Twice"](np.ones(2, np.float32)).tolist() == [2, 2]          # type: ignore[operator]   # a function of the wrapper
    assert f"Calls {name}.so with numpy" in str(scope["__doc__"])
    assert library.load(out)(np.ones(2, np.float32)).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["a\nb", "a??(b", 'a">b'])
def test_a_name_that_no_c_program_can_include(name: str, spec: str) -> None:
    done = caten(spec, "--emit=so,example", "-o", f"./{name}.so")
    assert done.code in (1, 2)
    assert "E903" in done.err
    assert list(Path().glob("a*")) == []
    assert caten(spec, "-o", f"./{name}.so").code == 0


@pytest.mark.parametrize("name", ["a b", "a\\b", "a\\ b", "a#b", "a\\#b", "a$b", "a:b", "a%b", "a*b", "a[b]", "a?b", "a|b", "a~b", 'a"b', "a'b", "a\\\\ b"])
@pytest.mark.parametrize("role", ["target", "needed"])
def test_make_reads_the_names_of_a_depfile(name: str, role: str, tmp_path: Path, tool: object) -> None:
    tool("make")                                                               # type: ignore[operator]   # the fixture is a function
    target, needed = (name, "x.toml") if role == "target" else ("x.so", name)
    (tmp_path / needed).touch()
    (tmp_path / "Makefile").write_text(depfile([target], [needed]) + "\t@touch done\n")
    made = []
    for changed in (1, 2, 0):                                                  # not there; older than what it needs; newer
        (tmp_path / "done").unlink(missing_ok=True)
        subprocess.run(["make", "-s", target], cwd=tmp_path, check=True, capture_output=True)
        made.append((tmp_path / "done").exists())
        (tmp_path / target).touch()
        os.utime(tmp_path / target, (10, 10))
        os.utime(tmp_path / needed, (20, 20) if changed == 1 else (5, 5))
    assert made == [True, True, False]


# ---- the name that a library says it has

@pytest.mark.parametrize("cc", ["gcc", f"{sys.executable} -m ziglang cc"])
def test_a_program_runs_from_anywhere(cc: str, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: object) -> None:
    tool("readelf")                                                            # type: ignore[operator]   # as above
    monkeypatch.setenv("CC", cc)
    Path("main.c").write_text(MAIN)
    for out in ("libtwice.so", "libtwice.so.1.2"):
        assert caten(spec, "--emit=so,header=twice.h", "-o", out).code == 0
        assert f"soname: [{out}]" in subprocess.run(["readelf", "-d", out], capture_output=True, text=True, check=True).stdout
    folder = os.getcwd()
    for words in (["-L.", "-ltwice"], ["./libtwice.so"]):
        subprocess.run(["gcc", "main.c", *words, "-o", "main"], check=True)
        subprocess.run([f"{folder}/main"], cwd="/", env={"LD_LIBRARY_PATH": folder}, check=True)
        subprocess.run(["gcc", "main.c", *words, "-Wl,-rpath,$ORIGIN", "-o", "main"], check=True)
        subprocess.run([f"{folder}/main"], cwd="/", env={}, check=True)


def test_the_name_alone_differs(spec: str) -> None:
    assert caten(spec, "-o", "one.so").code == 0
    assert caten(spec, "-o", "another.so").code == 0
    one, another = Path("one.so").read_bytes(), Path("another.so").read_bytes()
    assert one.replace(b"\0one.so".ljust(20, b"\0"), b"\0another.so".ljust(20, b"\0")) == another
    assert SONAME.encode() not in one
    assert under_name(b"\0" + SONAME.encode() + b"\0", "x" * 300) == b"\0" + SONAME.encode() + b"\0"
    assert library.load("one.so")(np.ones(2, np.float32)).tolist() == [2, 2]


# ---- libraries that it needs

@pytest.fixture
def threaded(spec: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with twice.so of the embedded clang, with OMP=1; the OpenMP library."""
    found = openmp_library()
    if found is None:
        pytest.skip("needs the cmeel-libomp package")
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    assert caten(spec, "--config", "OMP=1", "--emit=so,example,python").code == 0
    return found


def test_nothing_of_this_machine_is_in_a_library_with_threads(threaded: Path) -> None:
    content = Path("twice.so").read_bytes()
    assert str(threaded.parent).encode() + b"\0" not in content
    assert b"$ORIGIN\0" in content
    assert json.loads(Path("twice.json").read_text())["libraries"][0] == threaded.stem.removeprefix("lib")


def test_a_library_with_threads_works_here(threaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    call = "import numpy as np; print({}(np.ones(2, np.float32))[0])"
    for start in ("import caten; f = caten.load('twice.so'); " + call.format("f"), "import twice_numpy; " + call.format("twice_numpy.Twice")):
        assert subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True).stdout == "2.0\n"
    line = Path("twice_main.c").read_text().split("\n", 1)[0].removeprefix("/* ").removesuffix(" */")
    assert str(threaded) in line
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_an_openmp_library_that_is_missing(threaded: Path) -> None:
    hidden = "import os.path; found = os.path.isfile; os.path.isfile = lambda p: 'omp' not in str(p) and found(p); "
    for start, said in (("from caten.runtime import library, toolchain; library.openmp_library = lambda needed: None; import caten; caten.load('twice.so')", "E664"),
                        ("import twice_numpy", "ImportError")):
        done = subprocess.run([sys.executable, "-c", hidden + start], capture_output=True, text=True)
        assert done.returncode != 0
        assert said in done.stderr
        assert "pip install " in done.stderr
    os.symlink(threaded, threaded.name)                                        # beside it, it is found
    subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('./twice.so')"], check=True)


# ---- products of several runtimes in one folder

def test_runtimes_do_not_write_over_each_other(spec: str) -> None:
    for runtime in ("clang", "numpy", "wasm"):
        if runtime == "wasm":
            pytest.importorskip("ziglang")
        assert caten(spec, "--runtime", runtime).code == 0
    described = {name: json.loads(Path(name).read_text())["runtime"] for name in ("twice.json", "twice.numpy.manifest.json", "twice.wasm.json")}
    assert list(described.values()) == ["clang", "numpy", "wasm"]
    assert "ct_twice(" in Path("twice.h").read_text()
    assert "ct_twice_ws(" in Path("twice.wasm.h").read_text()


# ---- files that cannot be loaded

@pytest.mark.slice(2)
@pytest.mark.parametrize("suffix", [".so", ".elf", ".wasm", ".py", ".json", ".ptx", ".cl", ".dylib", ""])
@pytest.mark.parametrize("fault", ["missing", "folder", "empty", "garbage", "a text"])
def test_what_cannot_be_loaded(suffix: str, fault: str, spec: str) -> None:
    file = Path(f"other{suffix}")
    match fault:
        case "folder":
            file.mkdir()
        case "empty":
            file.touch()
        case "garbage":
            file.write_bytes(bytes(range(256)) * 20)
        case "a text":
            file.write_text("{}")
    assert caten(spec, "--emit=manifest=other.elf.json").code == 0
    Path("other.wasm.json").write_text(json.dumps(json.loads(Path("other.elf.json").read_text()) | {"runtime": "wasm"}))
    with pytest.raises(library.CatenError, match="E66"):
        library.load(file)


@pytest.mark.parametrize("damage", ["whole", "truncated", "longer", "another's manifest", "no manifest", "no JSON", "a list", "a library of this machine"])
def test_a_module_of_wasm_and_its_manifest(damage: str, spec: str) -> None:
    pytest.importorskip("ziglang")
    pytest.importorskip("wasmtime")
    assert caten(spec, "--runtime", "wasm", "--config", "SIMD=1").code == 0
    file, described = Path("twice.wasm"), Path("twice.wasm.json")
    match damage:
        case "whole":
            assert library.load(file)(np.ones(2, np.float32)).tolist() == [2, 2]
            return
        case "truncated":
            file.write_bytes(file.read_bytes()[:-100])
        case "longer":
            file.write_bytes(file.read_bytes() + b"\0" * 3 + b"\7")
        case "another's manifest":
            described.write_text(described.read_text().replace("Twice", "Thrice"))
        case "no manifest":
            described.unlink()
        case "no JSON":
            described.write_text("{")
        case "a list":
            described.write_text("[]")
        case _:
            assert caten(spec).code == 0
            file.write_bytes(Path("twice.so").read_bytes())
    with pytest.raises(library.CatenError, match=r"E66[0-3]"):
        library.load(file)
