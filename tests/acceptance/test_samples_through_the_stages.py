"""Every sample through the stages: piped or at once, twice or elsewhere, the same C, which every C compiler takes without a word."""
from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import ENVIRONMENT, ROOT, SAMPLES, caten, shell

STRICT = ("-Wall", "-Wextra", "-Werror")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_sample_piped_or_at_once(path: Path, folder: Path, tool: Any) -> None:
    tool("gcc")
    assert caten("--emit=c=all.c,header=all.h", str(path)).code == 0
    text = ""
    for stage, given in (("parse", str(path)), ("ir", "-"), ("schedule", "-"), ("render", "-")):
        result = caten(stage, given, stdin=text)
        assert (result.code, result.err) == (0, ""), stage
        text = result.out
    assert text == Path("all.c").read_text()
    quiet(["gcc", "-x", "c", "-fsyntax-only", "-"], text)
    quiet(["gcc", "-x", "c", "-fsyntax-only", *STRICT, "-"], text)
    quiet(["gcc", "-x", "c", "-fsyntax-only", "-std=c99", "-pedantic", *STRICT, "-"], '#include "all.h"\n')
    tool("g++")
    quiet(["g++", "-x", "c++", "-fsyntax-only", "-std=c++98", "-Wno-long-long", "-pedantic", *STRICT, "-"], '#include "all.h"\n')


def quiet(command: list[str], text: str) -> None:
    """A compiler that accepts a text and says nothing."""
    done = subprocess.run([*command, "-I."], input=text, text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), command


@pytest.mark.parametrize("name", ["sin", "softmax"])
def test_real_pipes(name: str, folder: Path, tool: Any) -> None:
    tool("gcc")
    shutil.copy(ROOT / "samples" / f"{name}.toml", folder)
    piped = shell(f"caten parse {name}.toml | caten ir - | caten schedule - | caten render -", folder)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout == caten("render", f"{name}.toml").out != ""
    compiled = shell(f"caten render -o - {name}.toml | gcc -x c -fsyntax-only -", folder)
    assert (compiled.returncode, compiled.stdout, compiled.stderr) == (0, "", "")


ALL = """import sys, os, pathlib
sys.path.insert(0, os.environ["HELPERS"])
from command_line import caten
for name in sorted(p.name for p in pathlib.Path().glob("*.toml")):
    for words in (["parse", name], ["ir", name], ["render", name], ["--emit=manifest=-", name], ["--emit=header=-", name], ["--emit=python=-", name]):
        result = caten(*words)
        assert result.code == 0, (words, result.err)
        sys.stdout.write(result.out)
"""
QUICK = ("arange", "conv2d", "gelu", "histogram", "layernorm", "softmax", "sum_columns", "gather", "im2col", "transpose")


def test_hash_seeds_and_folders_make_no_difference(folder: Path) -> None:
    seen = set()
    running = []
    for seed, place in (("1", "a"), ("2", "b/c d")):
        (folder / place).mkdir(parents=True)
        for name in QUICK:
            shutil.copy(ROOT / "samples" / f"{name}.toml", folder / place)
        env = ENVIRONMENT | {"PYTHONHASHSEED": seed, "HELPERS": str(Path(__file__).parent), "PATH": "/usr/bin:/bin", "CC": "gcc", "LC_ALL": "C.UTF-8",
                             "CATEN_CACHE_DIR": str(folder / f"cache{seed}")}
        running.append(subprocess.Popen([sys.executable, "-c", ALL], cwd=folder / place, env=env, stdout=subprocess.PIPE))
    for process in running:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert out.count(b"int32_t ct_") > len(QUICK)
        seen.add(hashlib.sha256(out).hexdigest())
    assert len(seen) == 1
