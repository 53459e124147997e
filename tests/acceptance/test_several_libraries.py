"""Several libraries of caten's in one program: every combination of objects, archives and shared ones links, and each is found by its own name."""
from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import caten

import caten as library

SPEC = """[composite]
name = "{name}"
inputs  = ["x{{float}}[N]"]
outputs = ["y{{float}}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (* {factor}.0 (aref x i))))"
"""
MAIN = """#include <stdio.h>
#include <string.h>
#include "twice.h"
#include "thrice.h"
int main(void)
{
    float x[4] = {1, 2, 3, 4}, y[4], z[4];
    if (ct_twice(x, y, 4) || ct_thrice(y, z, 4)) return 1;
    printf("%g %d %d %d\\n", z[3], !strstr(ct_twice_manifest, "Thrice"), !strstr(ct_thrice_manifest, "Twice"), ct_manifest[0] == '{');
    return 0;
}
"""
COMPILERS = {"gcc": "gcc", "zig": f"{sys.executable} -m ziglang cc"}
KINDS = ("o", "a", "so")


@pytest.fixture(params=COMPILERS)
def both(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with two libraries in every form; the compiler for C programs."""
    if request.param == "zig":
        pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", COMPILERS[request.param])
    for name, factor in (("Twice", 2), ("Thrice", 3)):
        Path(f"{name.lower()}.toml").write_text(SPEC.format(name=name, factor=factor))
        assert caten(f"{name.lower()}.toml", "--emit=so,a,obj").code == 0
    Path("main.c").write_text(MAIN)
    return f"{COMPILERS[request.param]} -O1"                  # without -O, zig first builds another library of its own


def test_every_combination_links_and_runs(both: str) -> None:
    subprocess.run([*both.split(), "-c", "main.c", "-o", "main.o"], check=True)
    for first, second in itertools.product(KINDS, KINDS):
        subprocess.run([*both.split(), "main.o", f"./twice.{first}", f"./thrice.{second}", "-Wl,-rpath,$ORIGIN", "-lm", "-o", "main"], check=True)
        assert subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout == "24 1 1 1\n", (first, second)


def test_python_finds_each_by_itself(both: str) -> None:
    loaded = [library.load(f"{name}.so") for name in ("twice", "thrice", "twice")]
    x = np.ones(3, np.float32)
    for _ in range(3):                                        # the second call goes directly
        assert [f(x).tolist()[0] for f in loaded] == [2, 3, 2]
    assert [f.manifest["op"] for f in loaded] == ["Twice", "Thrice", "Twice"]
    assert {json.loads(Path(f"{n}.json").read_text())["symbol"] for n in ("twice", "thrice")} == {"ct_twice", "ct_thrice"}


def test_a_shared_library_made_of_two_objects(both: str) -> None:
    subprocess.run([*both.split(), "-shared", "twice.o", "thrice.o", "-lm", "-o", "libboth.so"], check=True)
    subprocess.run([*both.split(), "main.c", "-L.", "-lboth", "-Wl,-rpath,$ORIGIN", "-o", "main"], check=True)
    assert subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout == "24 1 1 1\n"
